//! Programs at a terminal of their own.

use bytes::Bytes;
use helve_core::process::{ProcessError, Processes, Stdin, Until};

use crate::stage::{Stage, run};

#[test]
fn what_is_typed_is_read_and_the_size_is_told() {
    run(async {
        let stage = Stage::new();
        let mut spawn = stage.bash("stty size; tty; read -p 'name? ' name; echo hello $name");
        spawn.stdin = Stdin::Terminal { rows: 30, columns: 100 };
        let id = stage.programs.spawn(spawn).await.unwrap();
        let asked = stage.until(&id, Until::Text("name? ".into())).await;
        assert!(asked.process.is_terminal);
        stage.programs.type_in(&id, Bytes::from("you\n")).await.unwrap();
        stage.until(&id, Until::AllEnded).await;
        let output = stage.programs.output(&id).await.unwrap();
        let said = String::from_utf8_lossy(&output.head);
        let said: Vec<_> = said.lines().collect();
        assert_eq!((said[0], said.last()), ("30 100", Some(&"hello you")));
        assert!(said[1].starts_with("/dev/pts/"));
        let late = stage.programs.type_in(&id, Bytes::from("x")).await;
        assert_eq!(late, Err(ProcessError::Ended));
        let plain = stage.start("true").await;
        let typed = stage.programs.type_in(&plain, Bytes::from("x")).await;
        assert_eq!(typed, Err(ProcessError::NoTerminal));
    });
}

#[test]
fn a_shell_that_waits_for_typing_is_ended() {
    run(async {
        let stage = Stage::new();
        for _ in 0..5 {
            let mut spawn = stage.bash("");
            spawn.program = ["bash", "--norc", "-i"].map(Into::into).to_vec();
            spawn.stdin = Stdin::Terminal { rows: 24, columns: 80 };
            let id = stage.programs.spawn(spawn).await.unwrap();
            stage.programs.type_in(&id, Bytes::from("echo re''ady\n")).await.unwrap();
            stage.until(&id, Until::Text("ready".into())).await;
            stage.programs.end(&id).await.unwrap();
            assert!(stage.until(&id, Until::AllEnded).await.process.children.is_empty());
        }
    });
}

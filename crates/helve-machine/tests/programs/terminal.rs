//! Tests of programs with a terminal.

use bytes::Bytes;
use helve_core::process::{ProcessError, Processes, Stdin, WaitCondition};

use crate::fixture::{Fixture, run};

#[test]
fn typing_and_terminal_size_work() {
    run(async {
        let fixture = Fixture::new();
        let mut spawn = fixture.bash("stty size; tty; read -p 'name? ' name; echo hello $name");
        spawn.stdin = Stdin::Terminal { rows: 30, columns: 100 };
        let id = fixture.programs.spawn(spawn).await.unwrap();
        let asked = fixture.wait_for(&id, WaitCondition::Text("name? ".into())).await;
        assert!(asked.process.is_terminal);
        fixture.programs.type_in(&id, Bytes::from("you\n")).await.unwrap();
        fixture.wait_for(&id, WaitCondition::AllEnded).await;
        let output = fixture.programs.output(&id).await.unwrap();
        let printed = String::from_utf8_lossy(&output.head);
        let printed: Vec<_> = printed.lines().collect();
        assert_eq!((printed[0], printed.last()), ("30 100", Some(&"hello you")));
        assert!(printed[1].starts_with("/dev/pts/"));
        let late = fixture.programs.type_in(&id, Bytes::from("x")).await;
        assert_eq!(late, Err(ProcessError::Ended));
        let plain = fixture.start("true").await;
        let typed = fixture.programs.type_in(&plain, Bytes::from("x")).await;
        assert_eq!(typed, Err(ProcessError::NoTerminal));
    });
}

#[test]
fn an_interactive_shell_is_ended() {
    run(async {
        let fixture = Fixture::new();
        for _ in 0..5 {
            let mut spawn = fixture.bash("");
            spawn.argv = ["bash", "--norc", "-i"].map(Into::into).to_vec();
            spawn.stdin = Stdin::Terminal { rows: 24, columns: 80 };
            let id = fixture.programs.spawn(spawn).await.unwrap();
            fixture.programs.type_in(&id, Bytes::from("echo re''ady\n")).await.unwrap();
            fixture.wait_for(&id, WaitCondition::Text("ready".into())).await;
            fixture.programs.end(&id).await.unwrap();
            assert!(
                fixture.wait_for(&id, WaitCondition::AllEnded).await.process.children.is_empty()
            );
        }
    });
}

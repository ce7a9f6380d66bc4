//! Tests of programs that Helve talks to through pipes.

use helve_core::process::{ConnectedProcess, ProcessState, Processes, Stdin, WaitCondition};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::fixture::{Fixture, is_alive, run};

async fn connect(fixture: &Fixture, script: &str) -> ConnectedProcess {
    let mut spawn = fixture.bash(script);
    spawn.stdin = Stdin::Pipe;
    fixture.programs.connect(spawn).await.unwrap()
}

#[test]
fn input_reaches_the_program_and_its_output_comes_back_unchanged() {
    run(async {
        let fixture = Fixture::new();
        let ConnectedProcess { id, mut stdin, mut stdout } =
            connect(&fixture, "echo started >&2; cat").await;
        // Control sequences and bytes that are not UTF-8 pass through. More than a pipe holds is sent at once.
        let sent = b"\x1b[31m\r\n\xff\0".repeat(100_000);
        let writing = async {
            stdin.write_all(&sent).await.unwrap();
            drop(stdin);
        };
        let mut received = Vec::new();
        let (_, read) = tokio::join!(writing, stdout.read_to_end(&mut received));
        assert_eq!(read.unwrap(), sent.len());
        assert_eq!(received, sent);
        let watched = fixture.wait_for(&id, WaitCondition::Ended).await;
        assert_eq!(watched.process.state, ProcessState::Exited(0));
        assert_eq!(&fixture.programs.output(&id).await.unwrap().head[..], b"started\n");
    });
}

#[test]
fn a_program_that_ends_closes_its_pipes() {
    run(async {
        let fixture = Fixture::new();
        let ConnectedProcess { mut stdin, mut stdout, .. } =
            connect(&fixture, "exec 0<&-; echo last; exit 3").await;
        let mut text = String::new();
        stdout.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "last\n");
        assert!(stdin.write_all(&[b'x'; 1 << 17]).await.is_err());
    });
}

#[test]
fn a_connected_program_is_ended_with_its_children() {
    run(async {
        let fixture = Fixture::new();
        let ConnectedProcess { id, stdin: _stdin, mut stdout } =
            connect(&fixture, "sleep 1000 & echo $$ $!; trap '' TERM; wait; sleep 1000").await;
        let mut line = Vec::new();
        while !line.ends_with(b"\n") {
            line.push(stdout.read_u8().await.unwrap());
        }
        let pids = crate::fixture::pids(&line.into());
        assert_eq!(pids.len(), 2);
        fixture.programs.end(&id).await.unwrap();
        assert!(pids.into_iter().all(|pid| !is_alive(pid)));
    });
}

#[test]
fn a_missing_program_is_reported() {
    run(async {
        let fixture = Fixture::new();
        let mut spawn = fixture.bash("");
        spawn.argv = vec!["no-such-program-here".into()];
        spawn.stdin = Stdin::Pipe;
        let error = fixture.programs.connect(spawn).await.map(|_| ()).unwrap_err();
        assert_eq!(error.to_string(), "program not found: no-such-program-here");
    });
}

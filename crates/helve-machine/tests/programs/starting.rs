//! Tests of the initial state of a program, and of failed starts.

use helve_core::process::{Processes, SpawnError};
use helve_machine::LocalProcesses;

use crate::fixture::{Fixture, run, settings, spawn_error};

#[test]
fn output_keeps_its_order_and_the_exit_is_reported() {
    run(async {
        let fixture = Fixture::new();
        for (script, expected) in [
            ("true", "Exited(0)"),
            ("echo out; echo err >&2; echo out; exit 3", "out\nerr\nout\nExited(3)"),
            ("kill -KILL $$", "Killed(9)"),
            ("printf 'no newline'", "no newlineExited(0)"),
        ] {
            assert_eq!(fixture.output_of(script).await, expected);
        }
    });
}

#[test]
fn a_program_has_no_terminal_and_its_own_session() {
    run(async {
        let fixture = Fixture::new();
        let script =
            "cat; read answer || echo none; ( : </dev/tty ) 2>/dev/null || echo no terminal; tty";
        assert_eq!(fixture.output_of(script).await, "none\nno terminal\nnot a tty\nExited(1)");
        // It has its own session and process group.
        let script = "set -- $(ps -o pid=,pgid=,sid= -p $$); [ $1 = $2 -a $1 = $3 ] && echo own";
        assert_eq!(fixture.output_of(script).await, "own\nExited(0)");
    });
}

#[test]
fn only_the_environment_and_standard_streams_are_inherited() {
    run(async {
        let fixture = Fixture::new();
        // None of the 31 standard signals is blocked or ignored.
        let script = "env | sort | grep -v '^\\(PATH\\|PWD\\|SHLVL\\|_\\)='; ls /proc/self/fd | tr '\\n' ' '; \
                      while read name set; do case $name in SigBlk:|SigIgn:) \
                      echo $((0x$set & 0x7fffffff));; esac; done < <(cat /proc/self/status)";
        assert_eq!(fixture.output_of(script).await, "0 1 2 3 0\n0\nExited(0)");
    });
}

#[test]
fn failed_starts_are_explained() {
    run(async {
        let fixture = Fixture::new();
        let mut missing = fixture.bash("");
        missing.argv[0] = "no-such-program".into();
        let mut folder = fixture.bash("");
        folder.folder = fixture.root().join("gone");
        let mut file = fixture.bash("");
        file.folder = fixture.root().join("file");
        std::fs::write(&file.folder, "").unwrap();
        let mut long = fixture.bash("");
        long.argv[2] = "x".repeat(200_000).into();
        let mut longer = fixture.bash("");
        longer.argv[2] = "x".repeat(20_000_000).into();
        let mut empty = fixture.bash("");
        empty.argv.clear();
        for (spawn, error) in [
            (missing, SpawnError::NoProgram("no-such-program".into())),
            (folder, SpawnError::NoFolder(fixture.root().join("gone"))),
            (file, SpawnError::NotAFolder(fixture.root().join("file"))),
            (long, SpawnError::TooLong),
            (longer, SpawnError::TooLong),
        ] {
            assert_eq!(spawn_error(fixture.programs.spawn(spawn).await), error);
        }
        assert!(matches!(spawn_error(fixture.programs.spawn(empty).await), SpawnError::Other(_)));
        // The failed starts do not count as running programs.
        assert_eq!(fixture.output_of("echo still here").await, "still here\nExited(0)");
        assert!(fixture.programs.list().await.len() == 1);
    });
}

#[test]
fn without_a_keeper_nothing_starts() {
    run(async {
        let fixture = Fixture::new();
        let mut settings = settings(fixture.root());
        settings.keeper = Err("none was named".into());
        let programs = LocalProcesses::new(settings.clone());
        let error = spawn_error(programs.spawn(fixture.bash("true")).await);
        assert_eq!(error, SpawnError::NoKeeper("none was named".into()));
        // An executable that is not a keeper.
        settings.keeper =
            Ok(helve_machine::KeeperCommand { program: "/bin/true".into(), arguments: Vec::new() });
        let error = spawn_error(LocalProcesses::new(settings).spawn(fixture.bash("true")).await);
        assert!(matches!(error, SpawnError::NoKeeper(_)), "{error:?}");
    });
}

//! What a program starts with, and why it does not start.

use helve_core::process::{Processes, SpawnError};
use helve_machine::Programs;

use crate::stage::{Stage, refused, run, settings};

#[test]
fn output_keeps_its_order_and_the_end_is_told() {
    run(async {
        let stage = Stage::new();
        for (script, said) in [
            ("true", "Exited(0)"),
            ("echo out; echo err >&2; echo out; exit 3", "out\nerr\nout\nExited(3)"),
            ("kill -KILL $$", "Killed(9)"),
            ("printf 'no newline'", "no newlineExited(0)"),
        ] {
            assert_eq!(stage.said(script).await, said);
        }
    });
}

#[test]
fn nothing_can_ask_the_terminal() {
    run(async {
        let stage = Stage::new();
        let script =
            "cat; read answer || echo none; ( : </dev/tty ) 2>/dev/null || echo no terminal; tty";
        assert_eq!(stage.said(script).await, "none\nno terminal\nnot a tty\nExited(1)");
        // A session and a group of its own.
        let script = "set -- $(ps -o pid=,pgid=,sid= -p $$); [ $1 = $2 -a $1 = $3 ] && echo own";
        assert_eq!(stage.said(script).await, "own\nExited(0)");
    });
}

#[test]
fn nothing_is_inherited_but_what_was_given() {
    run(async {
        let stage = Stage::new();
        // Not held back and not ignored: the 31 signals that programs know.
        let script = "env | sort | grep -v '^\\(PATH\\|PWD\\|SHLVL\\|_\\)='; ls /proc/self/fd | tr '\\n' ' '; \
                      while read name set; do case $name in SigBlk:|SigIgn:) \
                      echo $((0x$set & 0x7fffffff));; esac; done < <(cat /proc/self/status)";
        assert_eq!(stage.said(script).await, "0 1 2 3 0\n0\nExited(0)");
    });
}

#[test]
fn why_it_does_not_start() {
    run(async {
        let stage = Stage::new();
        let mut missing = stage.bash("");
        missing.program[0] = "no-such-program".into();
        let mut folder = stage.bash("");
        folder.folder = stage.root().join("gone");
        let mut file = stage.bash("");
        file.folder = stage.root().join("file");
        std::fs::write(&file.folder, "").unwrap();
        let mut long = stage.bash("");
        long.program[2] = "x".repeat(200_000).into();
        let mut longer = stage.bash("");
        longer.program[2] = "x".repeat(20_000_000).into();
        let mut empty = stage.bash("");
        empty.program.clear();
        for (spawn, error) in [
            (missing, SpawnError::NoProgram("no-such-program".into())),
            (folder, SpawnError::NoFolder(stage.root().join("gone"))),
            (file, SpawnError::NotAFolder(stage.root().join("file"))),
            (long, SpawnError::TooLong),
            (longer, SpawnError::TooLong),
        ] {
            assert_eq!(refused(stage.programs.spawn(spawn).await), error);
        }
        assert!(matches!(refused(stage.programs.spawn(empty).await), SpawnError::Other(_)));
        // None of these took anything away.
        assert_eq!(stage.said("echo still here").await, "still here\nExited(0)");
        assert!(stage.programs.list().await.len() == 1);
    });
}

#[test]
fn without_a_keeper_nothing_starts() {
    run(async {
        let stage = Stage::new();
        let mut settings = settings(stage.root());
        settings.keeper = Err("none was named".into());
        let programs = Programs::new(settings.clone());
        let error = refused(programs.spawn(stage.bash("true")).await);
        assert_eq!(error, SpawnError::NoKeeper("none was named".into()));
        // One that is no keeper at all.
        settings.keeper =
            Ok(helve_machine::Keeper { program: "/bin/true".into(), arguments: Vec::new() });
        let error = refused(Programs::new(settings).spawn(stage.bash("true")).await);
        assert!(matches!(error, SpawnError::NoKeeper(_)), "{error:?}");
    });
}

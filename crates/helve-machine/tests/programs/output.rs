//! What is kept of the output.

use std::time::{Duration, Instant};

use bytes::Bytes;
use helve_core::process::{Processes, State, Until};

use crate::stage::{Stage, run, spooled};

#[test]
fn a_lot_is_kept_at_both_ends_and_spooled_whole() {
    run(async {
        let stage = Stage::new();
        let spawn = spooled(stage.bash("seq 1000000"), 100 << 20);
        let id = stage.programs.spawn(spawn).await.unwrap();
        let watched = stage.until(&id, Until::Ended).await;
        assert_eq!(watched.process.state, State::Exited(0));
        let output = stage.programs.output(&id).await.unwrap();
        assert_eq!((output.lines, output.bytes), (1_000_000, 6_888_896));
        assert!(output.head.starts_with(b"1\n2\n") && output.tail.ends_with(b"\n1000000\n"));
        assert_eq!(output.left_out + (output.head.len() + output.tail.len()) as u64, output.bytes);
        let (path, spooled) = output.spooled.unwrap();
        let whole: String = (1..=1_000_000).map(|n| format!("{n}\n")).collect();
        assert_eq!(spooled, output.bytes);
        assert!(std::fs::read_to_string(path).unwrap() == whole);
    });
}

#[test]
fn what_a_terminal_would_not_show_is_not_kept() {
    run(async {
        let stage = Stage::new();
        for (script, said) in [
            ("printf '\\033[31mred\\033[0m\\n'", "red\nExited(0)"),
            ("for n in 1 2 3; do printf \"\\r$n%%\"; sleep 0.01; done; echo", "3%\nExited(0)"),
            ("printf '\\303'; sleep 0.1; printf '\\244\\377|'", "ä\u{fffd}|Exited(0)"),
        ] {
            assert_eq!(stage.said(script).await, said);
        }
    });
}

#[test]
fn a_line_without_an_end_is_told_although_others_hold_the_pipe() {
    run(async {
        let stage = Stage::new();
        let id = stage.start("sleep 1000 & printf 'no end'").await;
        assert_eq!(&*stage.until(&id, Until::Ended).await.text, b"no end");
        stage.programs.end(&id).await.unwrap();
    });
}

#[test]
fn secrets_are_neither_kept_nor_spooled() {
    run(async {
        let stage = Stage::new();
        let script = "printf 'the key is hunter'; sleep 0.05; printf '2hunter2, see'; echo";
        let mut spawn = spooled(stage.bash(script), 1 << 20);
        spawn.keep.secrets = vec![Bytes::from("hunter2hunter2")];
        let id = stage.programs.spawn(spawn).await.unwrap();
        stage.until(&id, Until::Ended).await;
        let output = stage.programs.output(&id).await.unwrap();
        let told = "the key is [redacted], see\n";
        assert_eq!((&*output.head, output.redacted), (told.as_bytes(), 1));
        assert_eq!(std::fs::read_to_string(output.spooled.unwrap().0).unwrap(), told);
    });
}

fn memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn a_flood_is_counted_in_little_memory_and_spooled_up_to_the_limit() {
    run(async {
        let stage = Stage::new();
        stage.said("true").await;
        // Short lines, and no line at all.
        for script in ["yes | head -c 64M", "head -c 64M /dev/zero | tr '\\0' x"] {
            let before = memory();
            let began = Instant::now();
            let spawn = spooled(stage.bash(script), 10 << 20);
            let id = stage.programs.spawn(spawn).await.unwrap();
            assert_eq!(stage.until(&id, Until::Ended).await.process.state, State::Exited(0));
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
            let output = stage.programs.output(&id).await.unwrap();
            assert_eq!(output.bytes, 64 << 20);
            let (path, spooled) = output.spooled.unwrap();
            assert_eq!((spooled, path.metadata().unwrap().len()), (10 << 20, 10 << 20));
            std::fs::remove_file(path).unwrap();
            assert!(memory() - before < 64, "{} MiB", memory() - before);
        }
    });
}

#[test]
fn a_spool_is_private_and_never_takes_the_place_of_a_file() {
    use std::os::unix::fs::MetadataExt;
    run(async {
        let stage = Stage::new();
        let spawn = spooled(stage.bash("echo one"), 1 << 20);
        let path = spawn.keep.spool.clone().unwrap().path;
        let id = stage.programs.spawn(spawn.clone()).await.unwrap();
        stage.until(&id, Until::Ended).await;
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        std::fs::write(&path, "mine").unwrap();
        let id = stage.programs.spawn(spawn).await.unwrap();
        stage.until(&id, Until::Ended).await;
        let output = stage.programs.output(&id).await.unwrap();
        assert_eq!((&*output.head, output.spooled.unwrap().1), (&b"one\n"[..], 0));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "mine");
    });
}

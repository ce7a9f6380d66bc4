//! Tests of buffering and spooling output.

use std::time::{Duration, Instant};

use bytes::Bytes;
use helve_core::process::{ProcessState, Processes, WaitCondition};

use crate::fixture::{Fixture, run, with_spool};

#[test]
fn large_output_is_kept_at_both_ends_and_spooled_whole() {
    run(async {
        let fixture = Fixture::new();
        let spawn = with_spool(fixture.bash("seq 1000000"), 100 << 20);
        let id = fixture.programs.spawn(spawn).await.unwrap();
        let watched = fixture.wait_for(&id, WaitCondition::Ended).await;
        assert_eq!(watched.process.state, ProcessState::Exited(0));
        let output = fixture.programs.output(&id).await.unwrap();
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
fn escape_sequences_and_overwritten_text_are_removed() {
    run(async {
        let fixture = Fixture::new();
        for (script, expected) in [
            ("printf '\\033[31mred\\033[0m\\n'", "red\nExited(0)"),
            ("for n in 1 2 3; do printf \"\\r$n%%\"; sleep 0.01; done; echo", "3%\nExited(0)"),
            ("printf '\\303'; sleep 0.1; printf '\\244\\377|'", "ä\u{fffd}|Exited(0)"),
        ] {
            assert_eq!(fixture.output_of(script).await, expected);
        }
    });
}

#[test]
fn an_incomplete_line_is_returned_while_a_background_process_holds_the_pipe() {
    run(async {
        let fixture = Fixture::new();
        let id = fixture.start("sleep 1000 & printf 'no end'").await;
        assert_eq!(&*fixture.wait_for(&id, WaitCondition::Ended).await.text, b"no end");
        fixture.programs.end(&id).await.unwrap();
    });
}

#[test]
fn secrets_are_neither_kept_nor_spooled() {
    run(async {
        let fixture = Fixture::new();
        let script = "printf 'the key is hunter'; sleep 0.05; printf '2hunter2, see'; echo";
        let mut spawn = with_spool(fixture.bash(script), 1 << 20);
        spawn.output.secrets = vec![Bytes::from("hunter2hunter2")];
        let id = fixture.programs.spawn(spawn).await.unwrap();
        fixture.wait_for(&id, WaitCondition::Ended).await;
        let output = fixture.programs.output(&id).await.unwrap();
        let expected = "the key is [redacted], see\n";
        assert_eq!((&*output.head, output.redacted), (expected.as_bytes(), 1));
        assert_eq!(std::fs::read_to_string(output.spooled.unwrap().0).unwrap(), expected);
    });
}

fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() / 1024
}

#[test]
fn a_flood_needs_little_memory_and_is_spooled_up_to_the_limit() {
    run(async {
        let fixture = Fixture::new();
        fixture.output_of("true").await;
        // Many short lines, and a single endless line.
        for script in ["yes | head -c 64M", "head -c 64M /dev/zero | tr '\\0' x"] {
            let before = peak_memory();
            let began = Instant::now();
            let spawn = with_spool(fixture.bash(script), 10 << 20);
            let id = fixture.programs.spawn(spawn).await.unwrap();
            assert_eq!(
                fixture.wait_for(&id, WaitCondition::Ended).await.process.state,
                ProcessState::Exited(0)
            );
            assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
            let output = fixture.programs.output(&id).await.unwrap();
            assert_eq!(output.bytes, 64 << 20);
            let (path, spooled) = output.spooled.unwrap();
            assert_eq!((spooled, path.metadata().unwrap().len()), (10 << 20, 10 << 20));
            std::fs::remove_file(path).unwrap();
            assert!(peak_memory() - before < 64, "{} MiB", peak_memory() - before);
        }
    });
}

#[test]
fn a_spool_is_private_and_never_replaces_a_file() {
    use std::os::unix::fs::MetadataExt;
    run(async {
        let fixture = Fixture::new();
        let spawn = with_spool(fixture.bash("echo one"), 1 << 20);
        let path = spawn.output.spool.clone().unwrap().path;
        let id = fixture.programs.spawn(spawn.clone()).await.unwrap();
        fixture.wait_for(&id, WaitCondition::Ended).await;
        assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o600);
        std::fs::write(&path, "mine").unwrap();
        let id = fixture.programs.spawn(spawn).await.unwrap();
        fixture.wait_for(&id, WaitCondition::Ended).await;
        let output = fixture.programs.output(&id).await.unwrap();
        assert_eq!((&*output.head, output.spooled.unwrap().1), (&b"one\n"[..], 0));
        assert_eq!(std::fs::read_to_string(path).unwrap(), "mine");
    });
}

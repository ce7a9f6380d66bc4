//! What is kept of the output.

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

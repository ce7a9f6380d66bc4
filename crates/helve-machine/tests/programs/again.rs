//! A warden watches over one program after the other, as long as nobody can mistake one for another.

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use helve_core::process::{Confine, Network, ProcessId, Processes, Signal, Support, Until};

use crate::stage::{Stage, lives, pids, run, soon};

const WITHIN: Duration = Duration::from_secs(5);

/// The warden of a program that says `$PPID`.
async fn warden(stage: &Stage, id: &ProcessId) -> u32 {
    pids(&stage.programs.output(id).await.unwrap().head)[0]
}

async fn warden_of_next(stage: &Stage) -> u32 {
    let id = stage.start("echo $PPID").await;
    stage.until(&id, Until::AllEnded).await;
    warden(stage, &id).await
}

#[test]
fn many_programs_have_few_wardens() {
    run(async {
        let stage = Stage::new();
        let mut wardens = HashSet::new();
        for _ in 0..100 {
            wardens.insert(warden_of_next(&stage).await);
        }
        assert!(wardens.len() < 50, "{wardens:?}");
    });
}

#[test]
fn a_warden_keeps_nothing_of_its_programs() {
    run(async {
        let stage = Stage::new();
        let size = |warden: u32| {
            let status = std::fs::read_to_string(format!("/proc/{warden}/status")).ok()?;
            let data = status.lines().find_map(|line| line.strip_prefix("VmData:"))?.trim();
            let open = std::fs::read_dir(format!("/proc/{warden}/fd")).ok()?.count();
            Some((data.to_owned(), open))
        };
        let mut sizes = HashSet::new();
        for _ in 0..200 {
            // What fails in the memory of the warden leaves as little.
            let mut missing = stage.bash("");
            missing.program[0] = "no-such-program".into();
            stage.programs.spawn(missing).await.unwrap_err();
            sizes.extend(size(warden_of_next(&stage).await));
        }
        assert!(sizes.len() <= 3, "{sizes:?}");
    });
}

#[test]
fn nothing_of_one_program_is_left_to_the_next() {
    run(async {
        let stage = Stage::new();
        let look = "umask; pwd; ulimit -n; echo $FROM_BEFORE; trap; cat /proc/self/oom_score_adj";
        let before = stage.said(look).await;
        let change = "umask 077; cd /; ulimit -n 20; export FROM_BEFORE=1; trap '' TERM";
        stage.said(change).await;
        let mut confined = stage.bash(change);
        confined.confine =
            Some(Confine { writable: Vec::new(), protected: Vec::new(), network: Network::Off });
        if let Support::Yes(_) = stage.programs.confinement().await.writes {
            let id = stage.programs.spawn(confined).await.unwrap();
            stage.until(&id, Until::AllEnded).await;
        }
        assert_eq!(stage.said(look).await, before);
        assert_eq!(stage.said("echo written > here && cat here").await, "written\nExited(0)");
    });
}

#[test]
fn one_that_was_told_to_others_or_signalled_watches_over_no_other() {
    run(async {
        let stage = Stage::new();
        let script = "echo $PPID ready; while [ ! -e go ]; do sleep 0.01; done";
        let told = stage.start(script).await;
        stage.until(&told, Until::Text("ready".into())).await;
        let record = stage.root().join("run").join(format!("{}.json", told.0));
        assert!(soon(WITHIN, || record.exists()).await);
        std::fs::write(stage.root().join("go"), "").unwrap();
        stage.until(&told, Until::AllEnded).await;
        let signalled = stage.start("echo $PPID ready; exec sleep 1000").await;
        stage.until(&signalled, Until::Text("ready".into())).await;
        stage.programs.signal(&signalled, Signal::Kill).await.unwrap();
        stage.until(&signalled, Until::AllEnded).await;
        for id in [told, signalled] {
            let warden = warden(&stage, &id).await;
            assert!(soon(WITHIN, || !lives(warden)).await);
        }
        assert_eq!(stage.said("echo on").await, "on\nExited(0)");
    });
}

#[test]
fn one_that_is_killed_while_it_waits_is_replaced() {
    run(async {
        let stage = Stage::new();
        for _ in 0..5 {
            let warden = warden_of_next(&stage).await;
            Command::new("kill").args(["-KILL", &warden.to_string()]).status().unwrap();
            assert!(soon(WITHIN, || !lives(warden)).await);
            assert_eq!(stage.said("echo on").await, "on\nExited(0)");
        }
    });
}

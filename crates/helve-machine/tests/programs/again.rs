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
        // One may be handed back a moment after the next was started.
        assert!(wardens.len() <= 4, "{wardens:?}");
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
        let look =
            "umask; pwd; ulimit -n; nice; echo $FROM_BEFORE; trap; cat /proc/self/oom_score_adj";
        let before = stage.said(look).await;
        let change = "umask 077; cd /; ulimit -n 20; export FROM_BEFORE=1; trap '' TERM";
        stage.said(change).await;
        // What it may not do to others it can do to who watches over it.
        let reach = "prlimit --pid $PPID --nofile=20; renice -n 5 $PPID; python3 -c 'import os
os.setpriority(os.PRIO_PROCESS, os.getppid(), 5)'";
        let mut confined = stage.bash(&format!("{change}; {reach}"));
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

fn signal(name: &str, pid: u32) {
    Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
}

/// The keeper of the wardens of a stage.
fn parent(pid: u32) -> u32 {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let (_, after) = stat.rsplit_once(')').unwrap();
    after.split_ascii_whitespace().nth(1).unwrap().parse().unwrap()
}

fn children(pid: u32) -> Vec<u32> {
    let path = format!("/proc/{pid}/task/{pid}/children");
    pids(&std::fs::read(path).unwrap().into())
}

#[test]
fn one_that_somebody_stopped_goes_on() {
    run(async {
        let stage = Stage::new();
        let keeper = parent(warden_of_next(&stage).await);
        for warden in children(keeper) {
            signal("-STOP", warden);
        }
        assert_eq!(stage.said("echo on").await, "on\nExited(0)");
    });
}

#[test]
fn who_gives_up_before_a_program_was_executed_leaves_nothing() {
    run(async {
        let stage = Stage::new();
        let warden = warden_of_next(&stage).await;
        let idle = children(parent(warden));
        for warden in &idle {
            signal("-STOP", *warden);
        }
        let start = stage.programs.spawn(stage.bash("echo ran > ran"));
        assert!(tokio::time::timeout(Duration::from_millis(200), start).await.is_err());
        for warden in &idle {
            signal("-CONT", *warden);
        }
        let gone = || idle.iter().any(|warden| !lives(*warden));
        assert!(soon(WITHIN, gone).await);
        assert_eq!(stage.said("echo on").await, "on\nExited(0)");
        assert!(!stage.root().join("ran").exists());
    });
}

#[test]
fn one_whose_keeper_is_gone_watches_over_no_other() {
    run(async {
        let stage = Stage::new();
        for _ in 0..5 {
            let keeper = parent(warden_of_next_that_waits(&stage).await);
            warden_of_next(&stage).await;
            signal("-KILL", keeper);
            assert!(soon(WITHIN, || !lives(keeper)).await);
            assert_ne!(parent(warden_of_next_that_waits(&stage).await), keeper);
        }
    });
}

/// The same, of a program that lives when this is told.
async fn warden_of_next_that_waits(stage: &Stage) -> u32 {
    let id = stage.start("echo $PPID said; exec sleep 1000").await;
    stage.until(&id, Until::Text("said".into())).await;
    warden(stage, &id).await
}

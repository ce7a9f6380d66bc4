//! Tests that a warden is reused for the next program, unless its process id was recorded or used for a signal.

use std::collections::HashSet;
use std::process::Command;
use std::time::Duration;

use helve_core::process::{
    Network, ProcessId, Processes, SandboxLimits, SandboxPlan, Signal, Support, WaitCondition,
};

use crate::fixture::{Fixture, becomes_true, is_alive, pids, run};

const TIMEOUT: Duration = Duration::from_secs(5);

/// Returns the warden of a program that printed `$PPID`.
async fn warden(fixture: &Fixture, id: &ProcessId) -> u32 {
    pids(&fixture.programs.output(id).await.unwrap().head)[0]
}

async fn warden_of_ended_program(fixture: &Fixture) -> u32 {
    let id = fixture.start("echo $PPID").await;
    fixture.wait_for(&id, WaitCondition::AllEnded).await;
    warden(fixture, &id).await
}

#[test]
fn many_programs_share_few_wardens() {
    run(async {
        let fixture = Fixture::new();
        let mut wardens = HashSet::new();
        for _ in 0..100 {
            wardens.insert(warden_of_ended_program(&fixture).await);
        }
        // Sometimes a warden becomes free only after the next program has started.
        assert!(wardens.len() <= 4, "{wardens:?}");
    });
}

#[test]
fn a_warden_does_not_grow_with_its_programs() {
    run(async {
        let fixture = Fixture::new();
        let size = |warden: u32| {
            let status = std::fs::read_to_string(format!("/proc/{warden}/status")).ok()?;
            let data = status.lines().find_map(|line| line.strip_prefix("VmData:"))?.trim();
            let open = std::fs::read_dir(format!("/proc/{warden}/fd")).ok()?.count();
            Some((data.to_owned(), open))
        };
        let mut sizes = HashSet::new();
        for _ in 0..200 {
            // A failed start must not leave memory or open files behind in the warden either.
            let mut missing = fixture.bash("");
            missing.argv[0] = "no-such-program".into();
            fixture.programs.spawn(missing).await.unwrap_err();
            sizes.extend(size(warden_of_ended_program(&fixture).await));
        }
        assert!(sizes.len() <= 3, "{sizes:?}");
    });
}

#[test]
fn a_program_does_not_affect_the_next_one() {
    run(async {
        let fixture = Fixture::new();
        let inspect =
            "umask; pwd; ulimit -n; nice; echo $FROM_BEFORE; trap; cat /proc/self/oom_score_adj";
        let before = fixture.output_of(inspect).await;
        let change = "umask 077; cd /; ulimit -n 20; export FROM_BEFORE=1; trap '' TERM";
        fixture.output_of(change).await;
        // A confined program cannot affect other processes, but it can affect its warden.
        let affect_warden =
            "prlimit --pid $PPID --nofile=20; renice -n 5 $PPID; python3 -c 'import os
os.setpriority(os.PRIO_PROCESS, os.getppid(), 5)'";
        let mut confined = fixture.bash(&format!("{change}; {affect_warden}"));
        confined.sandbox = Some(SandboxPlan {
            writable: Vec::new(),
            guarded: Vec::new(),
            git_folders: Vec::new(),
            protected: Vec::new(),
            protected_links: Vec::new(),
            hidden: Vec::new(),
            visible: Vec::new(),
            copied: Vec::new(),
            network: Network::Off,
            limits: SandboxLimits::default(),
        });
        if let Support::Yes(_) = fixture.programs.sandbox_support().await.writes {
            let id = fixture.programs.spawn(confined).await.unwrap();
            fixture.wait_for(&id, WaitCondition::AllEnded).await;
        }
        assert_eq!(fixture.output_of(inspect).await, before);
        assert_eq!(
            fixture.output_of("echo written > here && cat here").await,
            "written\nExited(0)"
        );
    });
}

#[test]
fn the_warden_of_a_recorded_or_signalled_program_is_not_reused() {
    run(async {
        let fixture = Fixture::new();
        let script = "echo $PPID ready; while [ ! -e go ]; do sleep 0.01; done";
        let recorded = fixture.start(script).await;
        fixture.wait_for(&recorded, WaitCondition::Text("ready".into())).await;
        let record = fixture.root().join("run").join(format!("{}.json", recorded.0));
        assert!(becomes_true(TIMEOUT, || record.exists()).await);
        std::fs::write(fixture.root().join("go"), "").unwrap();
        fixture.wait_for(&recorded, WaitCondition::AllEnded).await;
        let signalled = fixture.start("echo $PPID ready; exec sleep 1000").await;
        fixture.wait_for(&signalled, WaitCondition::Text("ready".into())).await;
        fixture.programs.signal(&signalled, Signal::Kill).await.unwrap();
        fixture.wait_for(&signalled, WaitCondition::AllEnded).await;
        for id in [recorded, signalled] {
            let warden = warden(&fixture, &id).await;
            assert!(becomes_true(TIMEOUT, || !is_alive(warden)).await);
        }
        assert_eq!(fixture.output_of("echo on").await, "on\nExited(0)");
    });
}

#[test]
fn a_killed_idle_warden_is_replaced() {
    run(async {
        let fixture = Fixture::new();
        for _ in 0..5 {
            let warden = warden_of_ended_program(&fixture).await;
            Command::new("kill").args(["-KILL", &warden.to_string()]).status().unwrap();
            assert!(becomes_true(TIMEOUT, || !is_alive(warden)).await);
            assert_eq!(fixture.output_of("echo on").await, "on\nExited(0)");
        }
    });
}

fn signal(name: &str, pid: u32) {
    Command::new("kill").args([name, &pid.to_string()]).status().unwrap();
}

/// Returns the parent of a process; for a warden this is its keeper.
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
fn a_stopped_warden_is_continued() {
    run(async {
        let fixture = Fixture::new();
        let keeper = parent(warden_of_ended_program(&fixture).await);
        for warden in children(keeper) {
            signal("-STOP", warden);
        }
        assert_eq!(fixture.output_of("echo on").await, "on\nExited(0)");
    });
}

#[test]
fn an_abandoned_start_runs_nothing() {
    run(async {
        let fixture = Fixture::new();
        let warden = warden_of_ended_program(&fixture).await;
        let idle = children(parent(warden));
        for warden in &idle {
            signal("-STOP", *warden);
        }
        let start = fixture.programs.spawn(fixture.bash("echo ran > ran"));
        assert!(tokio::time::timeout(Duration::from_millis(200), start).await.is_err());
        for warden in &idle {
            signal("-CONT", *warden);
        }
        let one_has_ended = || idle.iter().any(|warden| !is_alive(*warden));
        assert!(becomes_true(TIMEOUT, one_has_ended).await);
        assert_eq!(fixture.output_of("echo on").await, "on\nExited(0)");
        assert!(!fixture.root().join("ran").exists());
    });
}

#[test]
fn a_warden_without_keeper_is_not_reused() {
    run(async {
        let fixture = Fixture::new();
        for _ in 0..5 {
            let keeper = parent(warden_of_running_program(&fixture).await);
            warden_of_ended_program(&fixture).await;
            signal("-KILL", keeper);
            assert!(becomes_true(TIMEOUT, || !is_alive(keeper)).await);
            assert_ne!(parent(warden_of_running_program(&fixture).await), keeper);
        }
    });
}

/// Like [`warden_of_ended_program`], for a program that is still running.
async fn warden_of_running_program(fixture: &Fixture) -> u32 {
    let id = fixture.start("echo $PPID started; exec sleep 1000").await;
    fixture.wait_for(&id, WaitCondition::Text("started".into())).await;
    warden(fixture, &id).await
}

//! Tests of ending programs that try to survive.

use std::time::{Duration, Instant};

use helve_core::process::{ProcessState, Processes, Support, WaitCondition};

use crate::fixture::{Fixture, StallMeter, becomes_true, is_alive, pids, run};

/// How long ending the whole tree may take.
const MAX_END_TIME: Duration = Duration::from_secs(1);

/// Starts a script that prints process ids and `ready`, ends it, and checks that none of the processes is left.
async fn check_ends(fixture: &Fixture, script: &str, min_pids: usize) {
    let id = fixture.start(script).await;
    fixture.wait_for(&id, WaitCondition::Text("ready".into())).await;
    let pids = pids(&fixture.programs.output(&id).await.unwrap().head);
    assert!(pids.len() >= min_pids && pids.iter().all(|pid| is_alive(*pid)), "{pids:?}");
    let stalls = StallMeter::begin();
    let began = Instant::now();
    let ended = fixture.programs.end(&id).await.unwrap();
    let duration = began.elapsed();
    let stalled = stalls.end();
    let survivors: Vec<_> = pids.iter().filter(|pid| is_alive(**pid)).collect();
    assert!(survivors.is_empty(), "{script}: {survivors:?} of {pids:?} live");
    assert!(duration < MAX_END_TIME + stalled, "{script}: {duration:?}, stalled for {stalled:?}");
    assert!(ended >= 1, "{script}: {ended}");
    let watched = fixture.wait_for(&id, WaitCondition::AllEnded).await;
    assert!(watched.process.children.is_empty() && watched.process.state != ProcessState::Running);
}

const ROUNDS: usize = 20;

#[test]
fn a_program_that_writes_forever_is_ended() {
    run(async {
        let fixture = Fixture::new();
        for _ in 0..ROUNDS {
            check_ends(&fixture, "echo $$ ready; yes", 1).await;
        }
    });
}

#[test]
fn a_program_that_ignores_sigterm_is_killed() {
    run(async {
        let fixture = Fixture::new();
        let script =
            "trap '' TERM HUP INT; sleep 1000 & echo $$ $! ready; while :; do sleep 1000; done";
        for _ in 0..ROUNDS {
            check_ends(&fixture, script, 2).await;
        }
    });
}

#[test]
fn a_stopped_program_is_ended() {
    run(async {
        let fixture = Fixture::new();
        let script = "sleep 1000 & echo $$ $! ready; kill -STOP $!; kill -STOP $$";
        for _ in 0..ROUNDS {
            check_ends(&fixture, script, 2).await;
        }
    });
}

#[test]
fn a_daemonized_process_is_ended() {
    run(async {
        let fixture = Fixture::new();
        let script = "(setsid bash -c 'trap \"\" TERM HUP; echo $$; sleep 1000 & echo $! ready; wait' &) ; sleep 1000";
        for _ in 0..ROUNDS {
            check_ends(&fixture, script, 2).await;
        }
    });
}

#[test]
fn a_background_process_lives_on_and_can_be_ended() {
    run(async {
        let fixture = Fixture::new();
        for _ in 0..ROUNDS {
            let (began, stalls) = (Instant::now(), StallMeter::begin());
            let id = fixture.start("sleep 1000 & echo $!").await;
            let watched = fixture.wait_for(&id, WaitCondition::Ended).await;
            let duration = began.elapsed();
            assert!(duration < Duration::from_secs(2) + stalls.end(), "{duration:?}");
            let pid = pids(&watched.text)[0];
            assert_eq!(watched.process.state, ProcessState::Exited(0));
            let children: Vec<_> =
                watched.process.children.iter().map(|c| (c.pid, &*c.command)).collect();
            assert_eq!(children, [(pid, "sleep 1000")]);
            assert!(is_alive(pid));
            assert_eq!(fixture.programs.end(&id).await, Ok(1));
            assert!(!is_alive(pid));
        }
    });
}

#[test]
fn a_program_that_kills_its_warden_is_ended() {
    run(async {
        let fixture = Fixture::new();
        for _ in 0..ROUNDS {
            let id = fixture
                .start("setsid sleep 1000 & echo $$ $! ready; kill -KILL $PPID; sleep 1000")
                .await;
            let watched = fixture.wait_for(&id, WaitCondition::AllEnded).await;
            assert_eq!(watched.process.state, ProcessState::Lost);
            let pids = pids(&watched.text);
            assert!(becomes_true(MAX_END_TIME, || !pids.iter().any(|pid| is_alive(*pid))).await);
        }
        assert_eq!(fixture.output_of("echo on").await, "on\nExited(0)");
    });
}

#[test]
fn a_program_that_stops_its_warden_and_keeper_is_ended() {
    run(async {
        let fixture = Fixture::new();
        for _ in 0..3 {
            let script = "keeper=$(ps -o ppid= -p $PPID); kill -STOP $PPID; \
                          [ -e stopped ] || kill -STOP $keeper; echo $$ ready; sleep 1000";
            check_ends(&fixture, script, 1).await;
            std::fs::write(fixture.root().join("stopped"), "").unwrap();
        }
        assert_eq!(fixture.output_of("echo on").await, "on\nExited(0)");
    });
}

#[test]
fn a_program_that_keeps_forking_is_ended() {
    run(async {
        let fixture = Fixture::new();
        let script = "trap '' TERM; again() { while :; do (exec sleep 0.01) & wait $!; done; }; \
                      for n in {1..40}; do again & done; echo $$ $! ready; wait";
        for _ in 0..3 {
            check_ends(&fixture, script, 2).await;
        }
    });
}

#[test]
fn a_fork_bomb_is_contained_and_ended() {
    run(async {
        let fixture = Fixture::new();
        // Without a control group it would affect the rest of the machine.
        if !has_control_group(&fixture).await {
            return println!("skipped: no control group");
        }
        let id = fixture.start("bomb() { bomb | bomb & }; bomb; sleep 1000").await;
        fixture.wait_for(&id, WaitCondition::Text("Resource temporarily unavailable".into())).await;
        // Some of the processes may have given up by now.
        let ended = fixture.programs.end(&id).await.unwrap();
        assert!(ended > 100, "only {ended} processes were ended");
        let watched = fixture.wait_for(&id, WaitCondition::AllEnded).await;
        assert_eq!(watched.process.children, []);
        assert_eq!(fixture.output_of("echo on").await, "on\nExited(0)");
    });
}

#[test]
fn a_program_that_kills_its_warden_and_keeper_is_ended() {
    run(async {
        let fixture = Fixture::new();
        let has_control_group = has_control_group(&fixture).await;
        let id = fixture
            .start("keeper=$(ps -o ppid= -p $PPID); echo $$ ready; kill -KILL $PPID $keeper; exec sleep 1000")
            .await;
        let watched = fixture.wait_for(&id, WaitCondition::AllEnded).await;
        let pid = pids(&watched.text)[0];
        assert_eq!(fixture.output_of("echo on").await, "on\nExited(0)");
        if has_control_group {
            assert!(becomes_true(MAX_END_TIME, || !is_alive(pid)).await);
        } else {
            // Without a control group Helve cannot reach it: clean up after the test.
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    });
}

/// Whether the programs run in a control group.
async fn has_control_group(fixture: &Fixture) -> bool {
    match fixture.programs.sandbox_support().await.processes {
        Support::Yes(by) => by.contains("control group"),
        Support::No(_) => false,
    }
}

#[test]
fn abandoning_a_wait_does_not_end_the_program() {
    run(async {
        let fixture = Fixture::new();
        // The shell still runs, or it has ended and a process that it left behind still holds the output.
        for script in ["echo $$ ready; exec sleep 1000", "sleep 1000 & echo $! ready"] {
            let id = fixture.start(script).await;
            fixture.wait_for(&id, WaitCondition::Text("ready".into())).await;
            let pid = pids(&fixture.programs.output(&id).await.unwrap().head)[0];
            for milliseconds in [0, 1, 10] {
                let waiting = fixture.wait_for(&id, WaitCondition::AllEnded);
                let timeout = Duration::from_millis(milliseconds);
                assert!(tokio::time::timeout(timeout, waiting).await.is_err());
            }
            assert!(is_alive(pid));
            assert_eq!(fixture.programs.end(&id).await, Ok(1));
            assert!(!is_alive(pid));
        }
    });
}

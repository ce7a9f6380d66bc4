//! How programs end, and what they would leave behind.

use std::time::{Duration, Instant};

use helve_core::process::{Processes, State, Support, Until};

use crate::stage::{Stage, Stalls, lives, pids, run, soon};

/// What the whole tree may take to end.
const QUICK: Duration = Duration::from_secs(1);

/// Starts a script that prints process ids and `ready`, ends it, and looks whether one is left.
async fn ends(stage: &Stage, script: &str, least: usize) {
    let id = stage.start(script).await;
    stage.until(&id, Until::Text("ready".into())).await;
    let pids = pids(&stage.programs.output(&id).await.unwrap().head);
    assert!(pids.len() >= least && pids.iter().all(|pid| lives(*pid)), "{pids:?}");
    let stalls = Stalls::begin();
    let began = Instant::now();
    let ended = stage.programs.end(&id).await.unwrap();
    let took = began.elapsed();
    let stalled = stalls.end();
    let left: Vec<_> = pids.iter().filter(|pid| lives(**pid)).collect();
    assert!(left.is_empty(), "{script}: {left:?} of {pids:?} live");
    assert!(took < QUICK + stalled, "{script}: {took:?}, stalled for {stalled:?}");
    assert!(ended >= 1, "{script}: {ended}");
    let watched = stage.until(&id, Until::AllEnded).await;
    assert!(watched.process.children.is_empty() && watched.process.state != State::Running);
}

const TIMES: usize = 20;

#[test]
fn one_that_never_stops_talking_is_ended() {
    run(async {
        let stage = Stage::new();
        for _ in 0..TIMES {
            ends(&stage, "echo $$ ready; yes", 1).await;
        }
    });
}

#[test]
fn one_that_ignores_being_asked_is_killed() {
    run(async {
        let stage = Stage::new();
        let script =
            "trap '' TERM HUP INT; sleep 1000 & echo $$ $! ready; while :; do sleep 1000; done";
        for _ in 0..TIMES {
            ends(&stage, script, 2).await;
        }
    });
}

#[test]
fn a_stopped_one_is_ended() {
    run(async {
        let stage = Stage::new();
        let script = "sleep 1000 & echo $$ $! ready; kill -STOP $!; kill -STOP $$";
        for _ in 0..TIMES {
            ends(&stage, script, 2).await;
        }
    });
}

#[test]
fn one_that_left_its_parents_and_its_session_is_ended() {
    run(async {
        let stage = Stage::new();
        let script = "(setsid bash -c 'trap \"\" TERM HUP; echo $$; sleep 1000 & echo $! ready; wait' &) ; sleep 1000";
        for _ in 0..TIMES {
            ends(&stage, script, 2).await;
        }
    });
}

#[test]
fn one_that_holds_the_pipe_after_the_shell_lives_on_and_is_ended() {
    run(async {
        let stage = Stage::new();
        for _ in 0..TIMES {
            let (began, stalls) = (Instant::now(), Stalls::begin());
            let id = stage.start("sleep 1000 & echo $!").await;
            let watched = stage.until(&id, Until::Ended).await;
            let took = began.elapsed();
            assert!(took < Duration::from_secs(2) + stalls.end(), "{took:?}");
            let pid = pids(&watched.text)[0];
            assert_eq!(watched.process.state, State::Exited(0));
            let children: Vec<_> =
                watched.process.children.iter().map(|c| (c.pid, &*c.command)).collect();
            assert_eq!(children, [(pid, "sleep 1000")]);
            assert!(lives(pid));
            assert_eq!(stage.programs.end(&id).await, Ok(1));
            assert!(!lives(pid));
        }
    });
}

#[test]
fn one_that_kills_its_warden_is_ended_with_all_it_started() {
    run(async {
        let stage = Stage::new();
        for _ in 0..TIMES {
            let id = stage
                .start("setsid sleep 1000 & echo $$ $! ready; kill -KILL $PPID; sleep 1000")
                .await;
            let watched = stage.until(&id, Until::AllEnded).await;
            assert_eq!(watched.process.state, State::Lost);
            let pids = pids(&watched.text);
            assert!(soon(QUICK, || !pids.iter().any(|pid| lives(*pid))).await);
        }
        assert_eq!(stage.said("echo on").await, "on\nExited(0)");
    });
}

#[test]
fn one_that_stops_its_warden_and_its_keeper_is_ended_and_others_start() {
    run(async {
        let stage = Stage::new();
        for _ in 0..3 {
            let script = "keeper=$(ps -o ppid= -p $PPID); kill -STOP $PPID; \
                          [ -e stopped ] || kill -STOP $keeper; echo $$ ready; sleep 1000";
            ends(&stage, script, 1).await;
            std::fs::write(stage.root().join("stopped"), "").unwrap();
        }
        assert_eq!(stage.said("echo on").await, "on\nExited(0)");
    });
}

#[test]
fn one_that_multiplies_all_the_time_is_ended() {
    run(async {
        let stage = Stage::new();
        let script = "trap '' TERM; again() { while :; do (exec sleep 0.01) & wait $!; done; }; \
                      for n in {1..40}; do again & done; echo $$ $! ready; wait";
        for _ in 0..3 {
            ends(&stage, script, 2).await;
        }
    });
}

#[test]
fn a_bomb_is_contained_and_ended() {
    run(async {
        let stage = Stage::new();
        // Anything but a control group would let it at the rest of the machine.
        if !is_bounded(&stage).await {
            return println!("no bomb here");
        }
        let id = stage.start("bomb() { bomb | bomb & }; bomb; sleep 1000").await;
        stage.until(&id, Until::Text("Resource temporarily unavailable".into())).await;
        assert!(stage.programs.end(&id).await.unwrap() > 1000);
        let watched = stage.until(&id, Until::AllEnded).await;
        assert_eq!(watched.process.children, []);
        assert_eq!(stage.said("echo on").await, "on\nExited(0)");
    });
}

#[test]
fn one_that_kills_its_warden_and_its_keeper_is_ended() {
    run(async {
        let stage = Stage::new();
        let is_bounded = is_bounded(&stage).await;
        let id = stage
            .start("keeper=$(ps -o ppid= -p $PPID); echo $$ ready; kill -KILL $PPID $keeper; exec sleep 1000")
            .await;
        let watched = stage.until(&id, Until::AllEnded).await;
        let pid = pids(&watched.text)[0];
        assert_eq!(stage.said("echo on").await, "on\nExited(0)");
        if is_bounded {
            assert!(soon(QUICK, || !lives(pid)).await);
        } else {
            // Without a control group it is out of reach; nothing is to be left of the test.
            let pid = rustix::process::Pid::from_raw(i32::try_from(pid).unwrap()).unwrap();
            rustix::process::kill_process(pid, rustix::process::Signal::KILL).unwrap();
        }
    });
}

/// Whether a control group holds the programs together.
async fn is_bounded(stage: &Stage) -> bool {
    match stage.programs.confinement().await.processes {
        Support::Yes(by) => by.contains("control group"),
        Support::No(_) => false,
    }
}

#[test]
fn abandoning_a_wait_ends_the_waiting_and_not_the_program() {
    run(async {
        let stage = Stage::new();
        // While it runs, and while what is left of its output is waited for.
        for script in ["echo $$ ready; exec sleep 1000", "sleep 1000 & echo $! ready"] {
            let id = stage.start(script).await;
            stage.until(&id, Until::Text("ready".into())).await;
            let pid = pids(&stage.programs.output(&id).await.unwrap().head)[0];
            for milliseconds in [0, 1, 10] {
                let waiting = stage.until(&id, Until::AllEnded);
                let patience = Duration::from_millis(milliseconds);
                assert!(tokio::time::timeout(patience, waiting).await.is_err());
            }
            assert!(lives(pid));
            assert_eq!(stage.programs.end(&id).await, Ok(1));
            assert!(!lives(pid));
        }
    });
}

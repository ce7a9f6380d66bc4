//! How programs end, and what they would leave behind.

use std::time::{Duration, Instant};

use helve_core::process::{Processes, State, Until};

use crate::stage::{Stage, lives, pids, run, soon};

/// What the whole tree may take to end.
const QUICK: Duration = Duration::from_secs(1);

/// Starts a script that prints process ids and `ready`, ends it, and looks whether one is left.
async fn ends(stage: &Stage, script: &str, least: usize) {
    let id = stage.start(script).await;
    stage.until(&id, Until::Text("ready".into())).await;
    let pids = pids(&stage.programs.output(&id).await.unwrap().head);
    assert!(pids.len() >= least && pids.iter().all(|pid| lives(*pid)), "{pids:?}");
    let began = Instant::now();
    let ended = stage.programs.end(&id).await.unwrap();
    let took = began.elapsed();
    let left: Vec<_> = pids.iter().filter(|pid| lives(**pid)).collect();
    assert!(left.is_empty(), "{script}: {left:?} of {pids:?} live");
    assert!(took < QUICK, "{script}: {took:?}");
    assert!(ended >= least, "{script}: {ended}");
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
            let began = Instant::now();
            let id = stage.start("sleep 1000 & echo $!").await;
            let watched = stage.until(&id, Until::Ended).await;
            assert!(began.elapsed() < Duration::from_secs(2));
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

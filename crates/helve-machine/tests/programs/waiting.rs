//! Tests of waiting for text, a port, the end of a program, or a timeout.

use std::time::{Duration, Instant};

use helve_core::process::{
    Excerpt, ProcessError, ProcessId, ProcessState, Processes, Signal, WaitCondition, WaitOutcome,
    WatchRequest,
};

use crate::fixture::{Fixture, TEST_TIMEOUT, pids, run, with_spool};

#[test]
fn the_deadline_holds_whatever_the_program_does() {
    run(async {
        let fixture = Fixture::new();
        for script in ["sleep 1000", "kill -STOP $$", "yes", "trap '' TERM; sleep 1000 & wait"] {
            let id = fixture.start(script).await;
            let timeout = Duration::from_millis(50);
            let began = Instant::now();
            let request = WatchRequest {
                from: 0,
                max_bytes: 10,
                excerpt: Excerpt::Newest,
                until: WaitCondition::Ended,
                timeout,
            };
            let watched = fixture.programs.watch(&id, request).await.unwrap();
            assert_eq!(
                (watched.outcome, watched.process.state),
                (WaitOutcome::TimedOut, ProcessState::Running)
            );
            assert!(began.elapsed() >= timeout && watched.text.len() <= 10);
            fixture.programs.end(&id).await.unwrap();
        }
    });
}

#[test]
fn impossible_conditions_are_reported() {
    run(async {
        let fixture = Fixture::new();
        let id = fixture.start("echo one").await;
        assert_eq!(
            fixture.wait_for(&id, WaitCondition::Text("two".into())).await.outcome,
            WaitOutcome::Impossible
        );
        assert_eq!(
            fixture.wait_for(&id, WaitCondition::Text("one".into())).await.outcome,
            WaitOutcome::Met
        );
        assert_eq!(
            fixture.wait_for(&id, WaitCondition::Port(1)).await.outcome,
            WaitOutcome::Impossible
        );
        assert_eq!(fixture.wait_for(&id, WaitCondition::AllEnded).await.outcome, WaitOutcome::Met);
        let unknown = ProcessId("unknown".into());
        let request = WatchRequest {
            from: 0,
            max_bytes: 1,
            excerpt: Excerpt::Newest,
            until: WaitCondition::Now,
            timeout: TEST_TIMEOUT,
        };
        assert_eq!(fixture.programs.watch(&unknown, request).await, Err(ProcessError::Unknown));
        assert_eq!(fixture.programs.signal(&id, Signal::Terminate).await, Err(ProcessError::Ended));
        assert_eq!(fixture.programs.end(&id).await, Ok(0));
    });
}

#[test]
fn reading_continues_from_a_cursor_at_character_boundaries() {
    run(async {
        let fixture = Fixture::new();
        let script = "printf 'a\\303'; read < go1; printf '\\244b'; read < go2; seq 100000";
        let script = &format!("mkfifo go1 go2; echo ready; {script}");
        let id = fixture.programs.spawn(with_spool(fixture.bash(script), 10 << 20)).await.unwrap();
        fixture.wait_for(&id, WaitCondition::Text("ready\na".into())).await;
        let next = |from, until| {
            let request = WatchRequest {
                from,
                max_bytes: 1 << 20,
                excerpt: Excerpt::Newest,
                until,
                timeout: TEST_TIMEOUT,
            };
            fixture.programs.watch(&id, request)
        };
        let first = next(6, WaitCondition::Now).await.unwrap();
        assert_eq!((&*first.text, first.left_out, first.next), (&b"a"[..], 0, 7));
        std::fs::write(fixture.root().join("go1"), "\n").unwrap();
        let second = next(first.next, WaitCondition::Text("b".into())).await.unwrap();
        assert_eq!((&*second.text, second.next), ("äb".as_bytes(), 10));
        std::fs::write(fixture.root().join("go2"), "\n").unwrap();
        let third = next(second.next, WaitCondition::AllEnded).await.unwrap();
        // More than is kept in memory, so it is read from the spool.
        assert_eq!((third.text.len(), third.left_out), (588_895, 0));
        let request = WatchRequest {
            from: 0,
            max_bytes: 7,
            excerpt: Excerpt::Newest,
            until: WaitCondition::Now,
            timeout: TEST_TIMEOUT,
        };
        let newest = fixture.programs.watch(&id, request).await.unwrap();
        assert_eq!((&*newest.text, newest.left_out), (&b"100000\n"[..], 588_898));
    });
}

#[test]
fn only_a_port_of_the_program_itself_is_awaited() {
    run(async {
        let fixture = Fixture::new();
        let server = "import socket,time; s=socket.socket(); s.bind(('127.0.0.1', 0)); \
                      time.sleep(0.1); s.listen(); print(s.getsockname()[1], flush=True); time.sleep(1000)";
        let id = fixture.start(&format!("python3 -c \"{server}\"")).await;
        let printed = fixture.wait_for(&id, WaitCondition::Text("\n".into())).await;
        let port = u16::try_from(pids(&printed.text)[0]).unwrap();
        assert_eq!(
            fixture.wait_for(&id, WaitCondition::Port(port)).await.outcome,
            WaitOutcome::Met
        );
        let other = fixture.start("sleep 1000").await;
        let timeout = Duration::from_millis(100);
        let request = WatchRequest {
            from: 0,
            max_bytes: 1,
            excerpt: Excerpt::Newest,
            until: WaitCondition::Port(port),
            timeout,
        };
        assert_eq!(
            fixture.programs.watch(&other, request).await.unwrap().outcome,
            WaitOutcome::TimedOut
        );
        fixture.programs.end(&id).await.unwrap();
        fixture.programs.end(&other).await.unwrap();
    });
}

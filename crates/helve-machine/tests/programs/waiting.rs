//! Waiting for a program: for text, a port, its end, or no longer.

use std::time::{Duration, Instant};

use helve_core::process::{
    Excerpt, Met, ProcessError, ProcessId, Processes, Signal, State, Until, Watch,
};

use crate::stage::{LONG, Stage, pids, run, spooled};

#[test]
fn a_deadline_holds_whatever_the_program_does() {
    run(async {
        let stage = Stage::new();
        for script in ["sleep 1000", "kill -STOP $$", "yes", "trap '' TERM; sleep 1000 & wait"] {
            let id = stage.start(script).await;
            let deadline = Duration::from_millis(50);
            let began = Instant::now();
            let want =
                Watch { from: 0, most: 10, told: Excerpt::Newest, until: Until::Ended, deadline };
            let watched = stage.programs.watch(&id, want).await.unwrap();
            assert_eq!((watched.met, watched.process.state), (Met::Deadline, State::Running));
            assert!(began.elapsed() >= deadline && watched.text.len() <= 10);
            stage.programs.end(&id).await.unwrap();
        }
    });
}

#[test]
fn what_cannot_come_any_more_is_told() {
    run(async {
        let stage = Stage::new();
        let id = stage.start("echo one").await;
        assert_eq!(stage.until(&id, Until::Text("two".into())).await.met, Met::Never);
        assert_eq!(stage.until(&id, Until::Text("one".into())).await.met, Met::Yes);
        assert_eq!(stage.until(&id, Until::Port(1)).await.met, Met::Never);
        assert_eq!(stage.until(&id, Until::AllEnded).await.met, Met::Yes);
        let unknown = ProcessId("unknown".into());
        let want =
            Watch { from: 0, most: 1, told: Excerpt::Newest, until: Until::Now, deadline: LONG };
        assert_eq!(stage.programs.watch(&unknown, want).await, Err(ProcessError::Unknown));
        assert_eq!(stage.programs.signal(&id, Signal::Terminate).await, Err(ProcessError::Ended));
        assert_eq!(stage.programs.end(&id).await, Ok(0));
    });
}

#[test]
fn reading_goes_on_from_a_cursor_on_whole_characters() {
    run(async {
        let stage = Stage::new();
        let script = "printf 'a\\303'; read < go1; printf '\\244b'; read < go2; seq 100000";
        let script = &format!("mkfifo go1 go2; echo ready; {script}");
        let id = stage.programs.spawn(spooled(stage.bash(script), 10 << 20)).await.unwrap();
        stage.until(&id, Until::Text("ready\na".into())).await;
        let next = |from, until| {
            let want = Watch { from, most: 1 << 20, told: Excerpt::Newest, until, deadline: LONG };
            stage.programs.watch(&id, want)
        };
        let first = next(6, Until::Now).await.unwrap();
        assert_eq!((&*first.text, first.left_out, first.next), (&b"a"[..], 0, 7));
        std::fs::write(stage.root().join("go1"), "\n").unwrap();
        let second = next(first.next, Until::Text("b".into())).await.unwrap();
        assert_eq!((&*second.text, second.next), ("äb".as_bytes(), 10));
        std::fs::write(stage.root().join("go2"), "\n").unwrap();
        let third = next(second.next, Until::AllEnded).await.unwrap();
        // More than is in memory: from the spool.
        assert_eq!((third.text.len(), third.left_out), (588_895, 0));
        let want =
            Watch { from: 0, most: 7, told: Excerpt::Newest, until: Until::Now, deadline: LONG };
        let newest = stage.programs.watch(&id, want).await.unwrap();
        assert_eq!((&*newest.text, newest.left_out), (&b"100000\n"[..], 588_898));
    });
}

#[test]
fn a_port_is_waited_for_and_only_one_of_its_own() {
    run(async {
        let stage = Stage::new();
        let server = "import socket,time; s=socket.socket(); s.bind(('127.0.0.1', 0)); \
                      time.sleep(0.1); s.listen(); print(s.getsockname()[1], flush=True); time.sleep(1000)";
        let id = stage.start(&format!("python3 -c \"{server}\"")).await;
        let said = stage.until(&id, Until::Text("\n".into())).await;
        let port = u16::try_from(pids(&said.text)[0]).unwrap();
        assert_eq!(stage.until(&id, Until::Port(port)).await.met, Met::Yes);
        let other = stage.start("sleep 1000").await;
        let deadline = Duration::from_millis(100);
        let want =
            Watch { from: 0, most: 1, told: Excerpt::Newest, until: Until::Port(port), deadline };
        assert_eq!(stage.programs.watch(&other, want).await.unwrap().met, Met::Deadline);
        stage.programs.end(&id).await.unwrap();
        stage.programs.end(&other).await.unwrap();
    });
}

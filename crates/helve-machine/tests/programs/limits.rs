//! Many at once, few open files, and what is left open afterwards.

use std::collections::HashSet;
use std::time::Duration;

use helve_core::process::{Lifetime, ProcessError, Processes, SpawnError, State, Until};
use helve_machine::Programs;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::stage::{Stage, refused, run, settings, soon};

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_thousand_leave_no_file_open() {
    run(async {
        let stage = Stage::new();
        // Some wardens are kept, once there were as many.
        tokio::join!(
            stage.said("true"),
            stage.said("true"),
            stage.said("true"),
            stage.said("true")
        );
        let base = open_files();
        let mut ids = HashSet::new();
        for _ in 0..25 {
            let some = (0..40).map(|n| stage.programs.spawn(stage.bash(&format!("exit {n}"))));
            let some: Vec<_> = some.map(tokio::spawn).collect();
            for (n, id) in some.into_iter().enumerate() {
                let id = id.await.unwrap().unwrap();
                let ended = stage.until(&id, Until::AllEnded).await.process.state;
                assert_eq!(ended, State::Exited(i32::try_from(n).unwrap()));
                assert!(ids.insert(id));
            }
        }
        let base_again = || open_files() <= base;
        assert!(soon(Duration::from_secs(5), base_again).await, "{} of {base}", open_files());
        // Those that ended long ago are forgotten.
        assert_eq!(stage.programs.list().await.len(), 512);
    });
}

#[test]
fn what_ended_programs_said_does_not_fill_the_memory() {
    run(async {
        let stage = Stage::new();
        for _ in 0..300 {
            let (_, output) = stage.run("head -c 200000 /dev/zero | tr '\\0' x").await;
            assert_eq!((output.bytes, output.head.len()), (200_000, 64 << 10));
        }
        // Each is remembered with 128 KiB.
        let remembered = stage.programs.list().await.len();
        assert!((200..=260).contains(&remembered), "{remembered}");
    });
}

#[test]
fn more_than_may_run_are_refused_until_one_ends() {
    run(async {
        let stage = Stage::new();
        let mut few = settings(stage.root());
        few.most_running = 2;
        let programs = Programs::new(few);
        let first = programs.spawn(stage.bash("sleep 1000")).await.unwrap();
        programs.spawn(stage.bash("sleep 1000")).await.unwrap();
        let third = refused(programs.spawn(stage.bash("true")).await);
        assert_eq!(third, SpawnError::TooMany(2));
        programs.end(&first).await.unwrap();
        programs.spawn(stage.bash("true")).await.unwrap();
    });
}

#[test]
fn those_that_live_on_are_counted_among_all_helves() {
    run(async {
        let stage = Stage::new();
        let mut few = settings(stage.root());
        few.most_running = 1;
        let mut spawn = stage.bash("sleep 1000");
        spawn.lifetime = Lifetime::Beyond;
        let first = Programs::new(few.clone()).spawn(spawn.clone()).await.unwrap();
        let others = Programs::new(few);
        assert_eq!(refused(others.spawn(spawn.clone()).await), SpawnError::TooMany(1));
        others.end(&first).await.unwrap();
        let second = others.spawn(spawn).await.unwrap();
        others.end(&second).await.unwrap();
    });
}

#[test]
fn few_open_files_are_an_error_that_passes() {
    // The limit is of this process, so the test must not share it: nextest gives each one of its own.
    if std::env::var_os("NEXTEST").is_none() {
        return;
    }
    run(async {
        let stage = Stage::new();
        stage.said("true").await;
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..before }).unwrap();
        let mut running = Vec::new();
        let error = loop {
            match stage.programs.spawn(stage.bash("sleep 1000")).await {
                Ok(id) => running.push(id),
                Err(error) => break error,
            }
        };
        assert_eq!(error, SpawnError::TooManyOpen);
        assert!(running.len() > 8, "{}", running.len());
        for id in running.drain(..) {
            assert!(stage.programs.end(&id).await.unwrap() >= 1);
        }
        for _ in 0..3 {
            assert_eq!(stage.said("echo again").await, "again\nExited(0)");
        }
        let unknown = helve_core::process::ProcessId("unknown".into());
        assert_eq!(stage.programs.end(&unknown).await, Err(ProcessError::Unknown));
    });
}

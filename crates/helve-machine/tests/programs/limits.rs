//! Tests with many programs at once and with few open files.

use std::collections::HashSet;
use std::time::Duration;

use helve_core::process::{
    Lifetime, ProcessError, ProcessState, Processes, SpawnError, WaitCondition,
};
use helve_machine::LocalProcesses;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use crate::fixture::{Fixture, becomes_true, run, settings, spawn_error};

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

#[test]
fn a_thousand_programs_leave_no_file_open() {
    run(async {
        let fixture = Fixture::new();
        // Some idle wardens are kept, so create them first.
        tokio::join!(
            fixture.output_of("true"),
            fixture.output_of("true"),
            fixture.output_of("true"),
            fixture.output_of("true")
        );
        let base = open_files();
        let mut ids = HashSet::new();
        for _ in 0..25 {
            let starts =
                (0..40).map(|n| fixture.programs.spawn(fixture.bash(&format!("exit {n}"))));
            let starts: Vec<_> = starts.map(tokio::spawn).collect();
            for (n, id) in starts.into_iter().enumerate() {
                let id = id.await.unwrap().unwrap();
                let ended = fixture.wait_for(&id, WaitCondition::AllEnded).await.process.state;
                assert_eq!(ended, ProcessState::Exited(i32::try_from(n).unwrap()));
                assert!(ids.insert(id));
            }
        }
        let is_back_to_base = || open_files() <= base;
        assert!(
            becomes_true(Duration::from_secs(5), is_back_to_base).await,
            "{} of {base}",
            open_files()
        );
        // Programs that ended long ago are forgotten.
        assert_eq!(fixture.programs.list().await.len(), 512);
    });
}

#[test]
fn output_of_ended_programs_is_bounded_in_memory() {
    run(async {
        let fixture = Fixture::new();
        for _ in 0..300 {
            let (_, output) = fixture.run("head -c 200000 /dev/zero | tr '\\0' x").await;
            assert_eq!((output.bytes, output.head.len()), (200_000, 64 << 10));
        }
        // Each remembered program keeps 128 KiB.
        let remembered = fixture.programs.list().await.len();
        assert!((200..=260).contains(&remembered), "{remembered}");
    });
}

#[test]
fn programs_beyond_the_limit_are_refused_until_one_ends() {
    run(async {
        let fixture = Fixture::new();
        let mut settings = settings(fixture.root());
        settings.max_running = 2;
        let programs = LocalProcesses::new(settings);
        let first = programs.spawn(fixture.bash("sleep 1000")).await.unwrap();
        programs.spawn(fixture.bash("sleep 1000")).await.unwrap();
        let third = spawn_error(programs.spawn(fixture.bash("true")).await);
        assert_eq!(third, SpawnError::TooManyRunning(2));
        programs.end(&first).await.unwrap();
        programs.spawn(fixture.bash("true")).await.unwrap();
    });
}

#[test]
fn detached_programs_are_counted_across_helve_processes() {
    run(async {
        let fixture = Fixture::new();
        let mut settings = settings(fixture.root());
        settings.max_running = 1;
        let mut spawn = fixture.bash("sleep 1000");
        spawn.lifetime = Lifetime::Detached;
        let first = LocalProcesses::new(settings.clone()).spawn(spawn.clone()).await.unwrap();
        let other_helve = LocalProcesses::new(settings);
        assert_eq!(
            spawn_error(other_helve.spawn(spawn.clone()).await),
            SpawnError::TooManyRunning(1)
        );
        other_helve.end(&first).await.unwrap();
        let second = other_helve.spawn(spawn).await.unwrap();
        other_helve.end(&second).await.unwrap();
    });
}

#[test]
fn running_out_of_file_descriptors_is_a_temporary_error() {
    // The limit applies to the whole process, so the test needs its own, which nextest provides.
    if std::env::var_os("NEXTEST").is_none() {
        return;
    }
    run(async {
        let fixture = Fixture::new();
        fixture.output_of("true").await;
        let before = getrlimit(Resource::Nofile);
        setrlimit(Resource::Nofile, Rlimit { current: Some(64), ..before }).unwrap();
        let mut running = Vec::new();
        let error = loop {
            match fixture.programs.spawn(fixture.bash("sleep 1000")).await {
                Ok(id) => running.push(id),
                Err(error) => break error,
            }
        };
        assert_eq!(error, SpawnError::TooManyOpenFiles);
        assert!(running.len() > 8, "{}", running.len());
        for id in running.drain(..) {
            assert!(fixture.programs.end(&id).await.unwrap() >= 1);
        }
        for _ in 0..3 {
            assert_eq!(fixture.output_of("echo again").await, "again\nExited(0)");
        }
        let unknown = helve_core::process::ProcessId("unknown".into());
        assert_eq!(fixture.programs.end(&unknown).await, Err(ProcessError::Unknown));
    });
}

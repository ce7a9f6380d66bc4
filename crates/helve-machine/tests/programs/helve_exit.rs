//! Tests that a Helve that exits or is killed leaves nothing behind.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use helve_core::process::{Lifetime, Processes, WaitCondition};
use helve_machine::LocalProcesses;

use crate::fixture::{Fixture, bash, becomes_true, is_alive, pids, run, settings, with_spool};

/// Environment variable that tells a test that it is the Helve to be killed, and its folder.
const ROLE: &str = "HELVE_TEST_GONE";

/// How long it may take until everything has ended.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A tree that ignores signals. Writes its process ids and those of its warden and keeper to `pids`.
const STUBBORN: &str = "trap '' TERM HUP; setsid bash -c 'trap \"\" TERM HUP; sleep 1000' & (sleep 1000 &) ; \
    yes > /dev/null & keeper=$(ps -o ppid= -p $PPID); echo $$ $! $PPID $keeper > pids.new; \
    ps -o pid= --ppid $$ >> pids.new; mv pids.new pids; sleep 1000";

/// Starts this test again as a separate Helve.
fn helve(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["helve_exit::nothing_outlives_a_killed_helve", "--exact", "--nocapture"])
        .env(ROLE, folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

#[test]
fn nothing_outlives_a_killed_helve() {
    if let Some(folder) = std::env::var_os(ROLE) {
        let folder = Path::new(&folder);
        return run(async {
            let programs = LocalProcesses::new(settings(folder));
            programs.spawn(bash(folder, STUBBORN)).await.unwrap();
            std::future::pending().await
        });
    }
    run(async {
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let listed = folder.path().join("pids");
            let mut helve = helve(folder.path());
            assert!(becomes_true(TIMEOUT, || listed.exists()).await);
            let pids = pids(&std::fs::read(&listed).unwrap().into());
            assert!(pids.len() >= 6 && pids[..4].iter().all(|pid| is_alive(*pid)), "{pids:?}");
            helve.kill().unwrap();
            helve.wait().unwrap();
            let have_ended = || !pids.iter().any(|pid| is_alive(*pid));
            assert!(becomes_true(TIMEOUT, have_ended).await, "{pids:?}");
        }
    });
}

#[test]
fn dropping_the_processes_ends_them() {
    run(async {
        let fixture = Fixture::new();
        fixture.start(STUBBORN).await;
        let listed = fixture.root().join("pids");
        assert!(becomes_true(TIMEOUT, || listed.exists()).await);
        let pids = pids(&std::fs::read(&listed).unwrap().into());
        let Fixture { programs, folder: _folder } = fixture;
        drop(programs);
        assert!(becomes_true(TIMEOUT, || !pids.iter().any(|pid| is_alive(*pid))).await);
    });
}

#[test]
fn dropping_a_start_ends_what_was_started() {
    run(async {
        let fixture = Fixture::new();
        // Start the keeper first.
        fixture.output_of("true").await;
        for microseconds in (0..4000).step_by(100) {
            let spawn = fixture.bash("echo $$ >> started; exec sleep 1000");
            let starting = fixture.programs.spawn(spawn);
            let timeout = Duration::from_micros(microseconds);
            let Ok(id) = tokio::time::timeout(timeout, starting).await else { continue };
            fixture.programs.end(&id.unwrap()).await.unwrap();
        }
        let started = || pids(&std::fs::read(fixture.root().join("started")).unwrap().into());
        assert!(becomes_true(TIMEOUT, || !started().iter().any(|pid| is_alive(*pid))).await);
    });
}

#[test]
fn a_killed_keeper_is_replaced_and_its_programs_can_be_ended() {
    run(async {
        let fixture = Fixture::new();
        let id = fixture.start("ps -o ppid= -p $PPID; echo $$ ready; sleep 1000").await;
        fixture.wait_for(&id, WaitCondition::Text("ready".into())).await;
        let pids = pids(&fixture.programs.output(&id).await.unwrap().head);
        let [keeper, shell] = pids[..] else { panic!("{pids:?}") };
        Command::new("kill").args(["-KILL", &keeper.to_string()]).status().unwrap();
        assert!(becomes_true(TIMEOUT, || !is_alive(keeper)).await);
        assert_eq!(fixture.output_of("echo on").await, "on\nExited(0)");
        assert!(is_alive(shell));
        assert!(fixture.programs.end(&id).await.unwrap() >= 1);
        assert!(!is_alive(shell));
    });
}

#[test]
fn a_detached_program_outlives_its_helve_and_can_be_ended_by_others() {
    run(async {
        let fixture = Fixture::new();
        let script = "echo $$ one; while [ ! -e go ]; do sleep 0.01; done; echo two; sleep 1000";
        let mut spawn = with_spool(fixture.bash(script), 1 << 20);
        spawn.lifetime = Lifetime::Detached;
        let id = fixture.programs.spawn(spawn).await.unwrap();
        let Fixture { programs, folder } = fixture;
        drop(programs);
        std::fs::write(folder.path().join("go"), "").unwrap();
        let fixture = Fixture { programs: LocalProcesses::new(settings(folder.path())), folder };
        let watched = fixture.wait_for(&id, WaitCondition::Text("two".into())).await;
        assert!(watched.process.is_foreign && watched.text.ends_with(b" one\ntwo\n"));
        let pid = pids(&watched.text)[0];
        assert!(is_alive(pid));
        let listed = fixture.programs.list().await;
        assert_eq!(listed.iter().map(|process| &process.id).collect::<Vec<_>>(), [&id]);
        assert!(fixture.programs.end(&id).await.unwrap() >= 1);
        assert!(!is_alive(pid));
        // How it ended is still known later.
        let ended = fixture.wait_for(&id, WaitCondition::AllEnded).await.process;
        assert_eq!(ended.state, helve_core::process::ProcessState::Killed(15));
    });
}

#[test]
fn a_detached_program_reports_its_end_or_why_it_did_not_start() {
    run(async {
        let fixture = Fixture::new();
        let mut spawn = with_spool(fixture.bash("echo printed; exit 7"), 1 << 20);
        spawn.lifetime = Lifetime::Detached;
        let id = fixture.programs.spawn(spawn).await.unwrap();
        let watched = fixture.wait_for(&id, WaitCondition::AllEnded).await;
        assert_eq!(watched.process.state, helve_core::process::ProcessState::Exited(7));
        let output = fixture.programs.output(&id).await.unwrap();
        assert_eq!((&*output.head, output.lines), (&b"printed\n"[..], 1));
        let mut missing = fixture.bash("");
        missing.argv[0] = "no-such-program".into();
        missing.lifetime = Lifetime::Detached;
        let error = fixture.programs.spawn(missing).await.unwrap_err();
        assert_eq!(error.to_string(), "program not found: no-such-program");
    });
}

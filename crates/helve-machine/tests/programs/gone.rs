//! A Helve that is gone, whichever way, leaves nothing behind.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use helve_core::process::{Lifetime, Processes, Until};
use helve_machine::Programs;

use crate::stage::{Stage, bash, lives, pids, run, settings, soon, spooled};

/// Says to a test that it is the Helve that goes, and where.
const ROLE: &str = "HELVE_TEST_GONE";

/// What everything may take to be gone.
const WITHIN: Duration = Duration::from_secs(5);

/// Prints the process ids of a tree that does not want to end, its warden's and its keeper's.
const STUBBORN: &str = "trap '' TERM HUP; setsid bash -c 'trap \"\" TERM HUP; sleep 1000' & (sleep 1000 &) ; \
    yes > /dev/null & keeper=$(ps -o ppid= -p $PPID); echo $$ $! $PPID $keeper > pids.new; \
    ps -o pid= --ppid $$ >> pids.new; mv pids.new pids; sleep 1000";

/// Starts this test again as a Helve of its own.
fn helve(folder: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["gone::nothing_outlives_a_killed_helve", "--exact", "--nocapture"])
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
            let programs = Programs::new(settings(folder));
            programs.spawn(bash(folder, STUBBORN)).await.unwrap();
            std::future::pending().await
        });
    }
    run(async {
        for _ in 0..5 {
            let folder = tempfile::tempdir().unwrap();
            let listed = folder.path().join("pids");
            let mut helve = helve(folder.path());
            assert!(soon(WITHIN, || listed.exists()).await);
            let pids = pids(&std::fs::read(&listed).unwrap().into());
            assert!(pids.len() >= 6 && pids[..4].iter().all(|pid| lives(*pid)), "{pids:?}");
            helve.kill().unwrap();
            helve.wait().unwrap();
            let gone = || !pids.iter().any(|pid| lives(*pid));
            assert!(soon(WITHIN, gone).await, "{pids:?}");
        }
    });
}

#[test]
fn dropping_the_programs_ends_them() {
    run(async {
        let stage = Stage::new();
        stage.start(STUBBORN).await;
        let listed = stage.root().join("pids");
        assert!(soon(WITHIN, || listed.exists()).await);
        let pids = pids(&std::fs::read(&listed).unwrap().into());
        let Stage { programs, folder: _folder } = stage;
        drop(programs);
        assert!(soon(WITHIN, || !pids.iter().any(|pid| lives(*pid))).await);
    });
}

#[test]
fn dropping_the_start_ends_what_was_started() {
    run(async {
        let stage = Stage::new();
        // So that the keeper runs.
        stage.said("true").await;
        for microseconds in (0..4000).step_by(100) {
            let spawn = stage.bash("echo $$ >> started; exec sleep 1000");
            let starting = stage.programs.spawn(spawn);
            let patience = Duration::from_micros(microseconds);
            let Ok(id) = tokio::time::timeout(patience, starting).await else { continue };
            stage.programs.end(&id.unwrap()).await.unwrap();
        }
        let started = || pids(&std::fs::read(stage.root().join("started")).unwrap().into());
        assert!(soon(WITHIN, || !started().iter().any(|pid| lives(*pid))).await);
    });
}

#[test]
fn a_killed_keeper_is_replaced_and_its_programs_can_be_ended() {
    run(async {
        let stage = Stage::new();
        let id = stage.start("ps -o ppid= -p $PPID; echo $$ ready; sleep 1000").await;
        stage.until(&id, Until::Text("ready".into())).await;
        let pids = pids(&stage.programs.output(&id).await.unwrap().head);
        let [keeper, shell] = pids[..] else { panic!("{pids:?}") };
        Command::new("kill").args(["-KILL", &keeper.to_string()]).status().unwrap();
        assert!(soon(WITHIN, || !lives(keeper)).await);
        assert_eq!(stage.said("echo on").await, "on\nExited(0)");
        assert!(lives(shell));
        assert!(stage.programs.end(&id).await.unwrap() >= 1);
        assert!(!lives(shell));
    });
}

#[test]
fn one_that_is_to_live_on_outlives_its_helve_and_is_found_and_ended_by_others() {
    run(async {
        let stage = Stage::new();
        let script = "echo $$ one; while [ ! -e go ]; do sleep 0.01; done; echo two; sleep 1000";
        let mut spawn = spooled(stage.bash(script), 1 << 20);
        spawn.lifetime = Lifetime::Beyond;
        let id = stage.programs.spawn(spawn).await.unwrap();
        let Stage { programs, folder } = stage;
        drop(programs);
        std::fs::write(folder.path().join("go"), "").unwrap();
        let stage = Stage { programs: Programs::new(settings(folder.path())), folder };
        let watched = stage.until(&id, Until::Text("two".into())).await;
        assert!(watched.process.is_foreign && watched.text.ends_with(b" one\ntwo\n"));
        let pid = pids(&watched.text)[0];
        assert!(lives(pid));
        let listed = stage.programs.list().await;
        assert_eq!(listed.iter().map(|process| &process.id).collect::<Vec<_>>(), [&id]);
        assert!(stage.programs.end(&id).await.unwrap() >= 1);
        assert!(!lives(pid));
        // How it ended is known to whoever asks later.
        let ended = stage.until(&id, Until::AllEnded).await.process;
        assert_eq!(ended.state, helve_core::process::State::Killed(15));
    });
}

#[test]
fn one_that_is_to_live_on_tells_how_it_ended_and_why_it_did_not_start() {
    run(async {
        let stage = Stage::new();
        let mut spawn = spooled(stage.bash("echo said; exit 7"), 1 << 20);
        spawn.lifetime = Lifetime::Beyond;
        let id = stage.programs.spawn(spawn).await.unwrap();
        let watched = stage.until(&id, Until::AllEnded).await;
        assert_eq!(watched.process.state, helve_core::process::State::Exited(7));
        let output = stage.programs.output(&id).await.unwrap();
        assert_eq!((&*output.head, output.lines), (&b"said\n"[..], 1));
        let mut missing = stage.bash("");
        missing.program[0] = "no-such-program".into();
        missing.lifetime = Lifetime::Beyond;
        let error = stage.programs.spawn(missing).await.unwrap_err();
        assert_eq!(error.to_string(), "there is no program no-such-program");
    });
}

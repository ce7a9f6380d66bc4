//! Confined programs: what they are kept from is kept from them, and told.

use helve_core::process::{
    Confine, Network, Processes, SpawnError, Support, Until, Watched, Withheld,
};

use crate::stage::{LONG, Stage, refused, run, soon};

fn plan(stage: &Stage, network: Network) -> Option<Confine> {
    Some(Confine { writable: vec![stage.root().into()], protected: Vec::new(), network })
}

/// Runs a script confined until nothing of it lives; nothing where that cannot be had.
async fn until_all_ended(stage: &Stage, network: Network, script: &str) -> Option<Watched> {
    let mut spawn = stage.bash(script);
    spawn.confine = plan(stage, network);
    let started = stage.programs.spawn(spawn).await;
    match stage.programs.confinement().await.network {
        Support::Yes(_) => Some(stage.until(&started.unwrap(), Until::AllEnded).await),
        Support::No(_) => {
            assert!(matches!(refused(started), SpawnError::NotConfined(_)));
            None
        }
    }
}

#[test]
fn a_confined_program_writes_where_it_may_or_does_not_start() {
    run(async {
        let stage = Stage::new();
        let (open, closed) = (stage.root().join("open"), stage.root().join("closed"));
        std::fs::create_dir(&open).unwrap();
        std::fs::create_dir(&closed).unwrap();
        let script =
            "echo in > open/file; echo out > closed/file; sleep 1000 & echo $! ready; wait";
        let mut spawn = stage.bash(script);
        let protected = open.join("protected");
        spawn.confine = Some(Confine {
            writable: vec![open.clone()],
            protected: vec![protected.clone()],
            network: Network::Off,
        });
        let started = stage.programs.spawn(spawn).await;
        match stage.programs.confinement().await.writes {
            Support::Yes(_) => {
                let id = started.unwrap();
                stage.until(&id, Until::Text("ready".into())).await;
                assert!(open.join("file").exists() && !closed.join("file").exists());
                assert!(protected.exists());
                assert_eq!(stage.programs.end(&id).await, Ok(2));
                stage.until(&id, Until::AllEnded).await;
                // What was held in its place is gone with the program.
                assert!(soon(LONG, || !protected.exists()).await);
            }
            Support::No(_) => {
                let error = refused(started);
                assert!(matches!(error, SpawnError::NotConfined(_)), "{error:?}");
            }
        }
    });
}

/// Opens a socket, and says nothing of how that went.
const CONNECT: &str = "(exec 3<>/dev/tcp/127.0.0.1/9) 2>/dev/null";
/// Asks to be traced, and says with which error that failed.
const TRACE: &str = r#"python3 -c 'import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("ptrace", libc.ptrace(0, 0, 0, 0), ctypes.get_errno())'"#;

#[test]
fn what_it_does_not_get_is_told_once_whatever_it_says_itself() {
    run(async {
        let stage = Stage::new();
        let many = format!("for n in $(seq 50); do {CONNECT}; done; echo done");
        let beside =
            format!("for n in $(seq 20); do ({CONNECT}; {CONNECT}) & done; wait; echo done");
        let later = format!("(sleep 0.2; {CONNECT}) & echo done");
        let both = format!("{CONNECT}; {TRACE}");
        for (network, script, expected, said) in [
            (Network::Off, "echo done", vec![], "done\n"),
            (Network::Off, &many, vec![Withheld::Network], "done\n"),
            (Network::Off, &beside, vec![Withheld::Network], "done\n"),
            (Network::Off, &later, vec![Withheld::Network], "done\n"),
            (Network::Off, &both, vec![Withheld::Network, Withheld::Tracing], "ptrace -1 1\n"),
            (Network::On, &both, vec![Withheld::Tracing], "ptrace -1 1\n"),
        ] {
            let Some(watched) = until_all_ended(&stage, network, script).await else { return };
            assert_eq!(watched.process.withheld, expected, "{script}");
            assert_eq!(watched.text, said, "{script}");
        }
        // The next program of the same warden is not told of.
        let free = stage.start(CONNECT).await;
        assert_eq!(stage.until(&free, Until::AllEnded).await.process.withheld, []);
    });
}

#[test]
fn one_that_is_ended_while_it_asks_is_gone() {
    run(async {
        let stage = Stage::new();
        let mut spawn = stage.bash(&format!("echo begun; while :; do {CONNECT}; done"));
        spawn.confine = plan(&stage, Network::Off);
        let Ok(id) = stage.programs.spawn(spawn).await else { return };
        stage.until(&id, Until::Text("begun".into())).await;
        assert!(stage.programs.end(&id).await.is_ok());
        assert_eq!(stage.until(&id, Until::AllEnded).await.process.children, []);
    });
}

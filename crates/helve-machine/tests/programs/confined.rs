//! Tests of confined programs: restrictions hold, and denials are reported.

use helve_core::process::{
    DeniedCall, Network, Processes, SandboxLimits, SandboxPlan, SpawnError, Support, WaitCondition,
    WatchResult,
};

use crate::fixture::{Fixture, run, spawn_error};

fn plan(fixture: &Fixture, network: Network) -> Option<SandboxPlan> {
    Some(SandboxPlan {
        writable: vec![fixture.root().into()],
        guarded: Vec::new(),
        git_folders: Vec::new(),
        protected: Vec::new(),
        protected_links: Vec::new(),
        hidden: Vec::new(),
        visible: Vec::new(),
        copied: Vec::new(),
        network,
        limits: SandboxLimits::default(),
    })
}

/// Runs a script confined until all its processes have ended; `None` if confinement is not supported.
async fn run_confined(fixture: &Fixture, network: Network, script: &str) -> Option<WatchResult> {
    let mut spawn = fixture.bash(script);
    spawn.sandbox = plan(fixture, network);
    let started = fixture.programs.spawn(spawn).await;
    match fixture.programs.sandbox_support().await.network {
        Support::Yes(_) => Some(fixture.wait_for(&started.unwrap(), WaitCondition::AllEnded).await),
        Support::No(_) => {
            assert!(matches!(spawn_error(started), SpawnError::NotConfined(_)));
            None
        }
    }
}

#[test]
fn a_confined_program_writes_only_to_writable_folders() {
    run(async {
        let fixture = Fixture::new();
        let (open, closed) = (fixture.root().join("open"), fixture.root().join("closed"));
        std::fs::create_dir(&open).unwrap();
        std::fs::create_dir(&closed).unwrap();
        let script = "echo in > open/file; echo out > closed/file; mkdir open/protected; sleep 1000 & echo $! ready; wait";
        let mut spawn = fixture.bash(script);
        let protected = open.join("protected");
        spawn.sandbox = Some(SandboxPlan {
            writable: vec![open.clone()],
            guarded: Vec::new(),
            git_folders: Vec::new(),
            protected: vec![protected.clone()],
            protected_links: Vec::new(),
            hidden: Vec::new(),
            visible: Vec::new(),
            copied: Vec::new(),
            network: Network::Off,
            limits: SandboxLimits::default(),
        });
        let started = fixture.programs.spawn(spawn).await;
        match fixture.programs.sandbox_support().await.writes {
            Support::Yes(_) => {
                let id = started.unwrap();
                fixture.wait_for(&id, WaitCondition::Text("ready".into())).await;
                assert!(open.join("file").exists() && !closed.join("file").exists());
                // The shell ends by itself if `sleep` happens to be ended first.
                let ended = fixture.programs.end(&id).await;
                assert!(matches!(ended, Ok(1 | 2)), "{ended:?}");
                fixture.wait_for(&id, WaitCondition::AllEnded).await;
                assert!(!protected.exists());
            }
            Support::No(_) => {
                let error = spawn_error(started);
                assert!(matches!(error, SpawnError::NotConfined(_)), "{error:?}");
            }
        }
    });
}

/// Opens a socket without printing the result.
const CONNECT: &str = "(exec 3<>/dev/tcp/127.0.0.1/9) 2>/dev/null";
/// Calls `ptrace` and prints the error.
const TRACE: &str = r#"python3 -c 'import ctypes
libc = ctypes.CDLL(None, use_errno=True)
print("ptrace", libc.ptrace(0, 0, 0, 0), ctypes.get_errno())'"#;

#[test]
fn each_kind_of_denial_is_reported_once() {
    run(async {
        let fixture = Fixture::new();
        let many = format!("for n in $(seq 50); do {CONNECT}; done; echo done");
        let parallel =
            format!("for n in $(seq 20); do ({CONNECT}; {CONNECT}) & done; wait; echo done");
        let later = format!("(sleep 0.2; {CONNECT}) & echo done");
        let network_and_trace = format!("{CONNECT}; {TRACE}");
        for (network, script, expected, expected_output) in [
            (Network::Off, "echo done", vec![], "done\n"),
            (Network::Off, &many, vec![DeniedCall::Network], "done\n"),
            (Network::Off, &parallel, vec![DeniedCall::Network], "done\n"),
            (Network::Off, &later, vec![DeniedCall::Network], "done\n"),
            (
                Network::Off,
                &network_and_trace,
                vec![DeniedCall::Network, DeniedCall::Tracing],
                "ptrace -1 1\n",
            ),
            (Network::On, &network_and_trace, vec![DeniedCall::Tracing], "ptrace -1 1\n"),
        ] {
            let Some(watched) = run_confined(&fixture, network, script).await else { return };
            assert_eq!(watched.process.denied_calls, expected, "{script}");
            assert_eq!(watched.text, expected_output, "{script}");
        }
        // An unconfined program is not reported.
        let unconfined = fixture.start(CONNECT).await;
        assert_eq!(
            fixture.wait_for(&unconfined, WaitCondition::AllEnded).await.process.denied_calls,
            []
        );
    });
}

#[test]
fn a_program_in_a_denied_call_can_be_ended() {
    run(async {
        let fixture = Fixture::new();
        let mut spawn = fixture.bash(&format!("echo begun; while :; do {CONNECT}; done"));
        spawn.sandbox = plan(&fixture, Network::Off);
        let Ok(id) = fixture.programs.spawn(spawn).await else { return };
        fixture.wait_for(&id, WaitCondition::Text("begun".into())).await;
        assert!(fixture.programs.end(&id).await.is_ok());
        assert_eq!(fixture.wait_for(&id, WaitCondition::AllEnded).await.process.children, []);
    });
}

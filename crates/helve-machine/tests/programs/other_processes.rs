//! Tests with programs of other Helve processes of the same user.

use std::time::Duration;

use bytes::Bytes;
use helve_core::process::{
    ProcessError, ProcessId, ProcessState, Processes, Signal, WaitCondition,
};
use helve_machine::LocalProcesses;

use crate::fixture::{Fixture, becomes_true, is_alive, pids, run, settings, with_spool};

const TIMEOUT: Duration = Duration::from_secs(5);

#[test]
fn another_helve_lists_watches_signals_and_ends_a_program() {
    run(async {
        let fixture = Fixture::new();
        let script = "trap 'echo heard' USR1; echo $$ ready; while :; do sleep 0.01; done";
        let id = fixture.programs.spawn(with_spool(fixture.bash(script), 1 << 20)).await.unwrap();
        let record_path = fixture.root().join("run").join(format!("{}.json", id.0));
        assert!(becomes_true(TIMEOUT, || record_path.exists()).await);
        let other = Fixture {
            programs: LocalProcesses::new(settings(fixture.root())),
            folder: tempfile::tempdir().unwrap(),
        };
        let [process] = &other.programs.list().await[..] else { panic!("not one process") };
        assert!(process.is_foreign && process.id == id && process.state == ProcessState::Running);
        assert_eq!(process.about.command, script);
        let watched = other.wait_for(&id, WaitCondition::Text("ready".into())).await;
        let pid = pids(&watched.text)[0];
        // The signal may hit a child that has no trap yet.
        while !other.programs.output(&id).await.unwrap().head.ends_with(b"heard\n") {
            other.programs.signal(&id, Signal::User1).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let typed = other.programs.type_in(&id, Bytes::from("x")).await;
        assert_eq!(typed, Err(ProcessError::NoTerminal));
        assert!(other.programs.end(&id).await.unwrap() >= 1);
        assert!(!is_alive(pid));
        assert!(becomes_true(TIMEOUT, || !record_path.exists()).await);
        assert!(other.programs.list().await.is_empty());
        assert_ne!(
            fixture.wait_for(&id, WaitCondition::AllEnded).await.process.state,
            ProcessState::Running
        );
    });
}

#[test]
fn a_forged_record_cannot_harm_another_process() {
    run(async {
        let fixture = Fixture::new();
        let id = fixture.start("sleep 1000").await;
        let folder = fixture.root().join("run");
        let record_path = folder.join(format!("{}.json", id.0));
        assert!(becomes_true(TIMEOUT, || record_path.exists()).await);
        let text = std::fs::read_to_string(&record_path).unwrap();
        let mut victim = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let warden: serde_json::Value = serde_json::from_str(&text).unwrap();
        let forged = text.replace(
            &format!("\"warden\":{}", warden["warden"]),
            &format!("\"warden\":{}", victim.id()),
        );
        let forged_id = "forged00";
        let forged = forged.replace(&id.0, forged_id);
        std::fs::write(folder.join("forged00.json"), &forged).unwrap();
        let other = LocalProcesses::new(settings(fixture.root()));
        let ended = other.end(&ProcessId(forged_id.into())).await;
        assert_eq!(ended, Err(ProcessError::Ended));
        assert!(is_alive(victim.id()));
        victim.kill().unwrap();
        victim.wait().unwrap();
        // The forged record is removed like those whose warden is gone.
        assert_eq!(other.list().await.len(), 1);
        assert!(!folder.join("forged00.json").exists() && record_path.exists());
        for id in ["../run/forged00", "", "no/such", "unknown0"] {
            let unknown = other.end(&ProcessId(id.into())).await;
            assert_eq!(unknown, Err(ProcessError::Unknown), "{id}");
        }
    });
}

#[test]
fn a_record_with_invalid_times_is_harmless() {
    run(async {
        let fixture = Fixture::new();
        let id = fixture.start("echo $$; sleep 1000").await;
        let folder = fixture.root().join("run");
        let record_path = folder.join(format!("{}.json", id.0));
        assert!(becomes_true(TIMEOUT, || record_path.exists()).await);
        let text = std::fs::read_to_string(&record_path).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let other = Fixture {
            programs: LocalProcesses::new(settings(fixture.root())),
            folder: tempfile::tempdir().unwrap(),
        };
        // Times are from the monotonic clock, but a record may contain anything.
        let began = record["began"].as_u64().unwrap();
        for began in [began + 3_600_000, 0, u64::MAX] {
            let mut jumped = record.clone();
            jumped["began"] = began.into();
            std::fs::write(&record_path, jumped.to_string()).unwrap();
            let [process] = &other.programs.list().await[..] else { panic!("not one process") };
            assert_eq!((&process.id, process.state), (&id, ProcessState::Running));
            let request = helve_core::process::WatchRequest {
                from: 0,
                max_bytes: 10,
                excerpt: helve_core::process::Excerpt::Newest,
                until: WaitCondition::AllEnded,
                timeout: Duration::from_millis(20),
            };
            let watched = other.programs.watch(&id, request).await.unwrap();
            assert_eq!(watched.outcome, helve_core::process::WaitOutcome::TimedOut);
        }
        assert!(other.programs.end(&id).await.unwrap() >= 1);
    });
}

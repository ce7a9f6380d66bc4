//! Programs of other Helves of the same user.

use std::time::Duration;

use bytes::Bytes;
use helve_core::process::{ProcessError, ProcessId, Processes, Signal, State, Until};
use helve_machine::Programs;

use crate::stage::{Stage, lives, pids, run, settings, soon, spooled};

const SOON: Duration = Duration::from_secs(5);

#[test]
fn another_helve_lists_watches_signals_and_ends_it() {
    run(async {
        let stage = Stage::new();
        let script = "trap 'echo heard' USR1; echo $$ ready; while :; do sleep 0.01; done";
        let id = stage.programs.spawn(spooled(stage.bash(script), 1 << 20)).await.unwrap();
        let recorded = stage.root().join("run").join(format!("{}.json", id.0));
        assert!(soon(SOON, || recorded.exists()).await);
        let other = Stage {
            programs: Programs::new(settings(stage.root())),
            folder: tempfile::tempdir().unwrap(),
        };
        let [process] = &other.programs.list().await[..] else { panic!("one") };
        assert!(process.is_foreign && process.id == id && process.state == State::Running);
        assert_eq!(process.about.command, script);
        let watched = other.until(&id, Until::Text("ready".into())).await;
        let pid = pids(&watched.text)[0];
        // The trap may not be set for a child that is just being made.
        while !other.programs.output(&id).await.unwrap().head.ends_with(b"heard\n") {
            other.programs.signal(&id, Signal::User1).await.unwrap();
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        let typed = other.programs.type_in(&id, Bytes::from("x")).await;
        assert_eq!(typed, Err(ProcessError::NoTerminal));
        assert!(other.programs.end(&id).await.unwrap() >= 1);
        assert!(!lives(pid));
        assert!(soon(SOON, || !recorded.exists()).await);
        assert!(other.programs.list().await.is_empty());
        assert_ne!(stage.until(&id, Until::AllEnded).await.process.state, State::Running);
    });
}

#[test]
fn a_record_cannot_be_turned_against_another_process() {
    run(async {
        let stage = Stage::new();
        let id = stage.start("sleep 1000").await;
        let folder = stage.root().join("run");
        let recorded = folder.join(format!("{}.json", id.0));
        assert!(soon(SOON, || recorded.exists()).await);
        let text = std::fs::read_to_string(&recorded).unwrap();
        let mut victim = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let warden: serde_json::Value = serde_json::from_str(&text).unwrap();
        let forged = text.replace(
            &format!("\"warden\":{}", warden["warden"]),
            &format!("\"warden\":{}", victim.id()),
        );
        let forged_id = "forged00";
        let forged = forged.replace(&id.0, forged_id);
        std::fs::write(folder.join("forged00.json"), &forged).unwrap();
        let other = Programs::new(settings(stage.root()));
        let ended = other.end(&ProcessId(forged_id.into())).await;
        assert_eq!(ended, Err(ProcessError::Ended));
        assert!(lives(victim.id()));
        victim.kill().unwrap();
        victim.wait().unwrap();
        // It is swept with those whose warden is gone.
        assert_eq!(other.list().await.len(), 1);
        assert!(!folder.join("forged00.json").exists() && recorded.exists());
        for id in ["../run/forged00", "", "no/such", "unknown0"] {
            let unknown = other.end(&ProcessId(id.into())).await;
            assert_eq!(unknown, Err(ProcessError::Unknown), "{id}");
        }
    });
}

#[test]
fn a_record_whose_times_make_no_sense_harms_nobody() {
    run(async {
        let stage = Stage::new();
        let id = stage.start("echo $$; sleep 1000").await;
        let folder = stage.root().join("run");
        let recorded = folder.join(format!("{}.json", id.0));
        assert!(soon(SOON, || recorded.exists()).await);
        let text = std::fs::read_to_string(&recorded).unwrap();
        let record: serde_json::Value = serde_json::from_str(&text).unwrap();
        let other = Stage {
            programs: Programs::new(settings(stage.root())),
            folder: tempfile::tempdir().unwrap(),
        };
        // Times are of a clock that does not jump, but a record may say anything.
        let began = record["began"].as_u64().unwrap();
        for began in [began + 3_600_000, 0, u64::MAX] {
            let mut jumped = record.clone();
            jumped["began"] = began.into();
            std::fs::write(&recorded, jumped.to_string()).unwrap();
            let [process] = &other.programs.list().await[..] else { panic!("one") };
            assert_eq!((&process.id, process.state), (&id, State::Running));
            let want = helve_core::process::Watch {
                from: 0,
                most: 10,
                told: helve_core::process::Excerpt::Newest,
                until: Until::AllEnded,
                deadline: Duration::from_millis(20),
            };
            let watched = other.programs.watch(&id, want).await.unwrap();
            assert_eq!(watched.met, helve_core::process::Met::Deadline);
        }
        assert!(other.programs.end(&id).await.unwrap() >= 1);
    });
}

//! Tests that messages round-trip and that invalid ones are harmless.

use bytes::Bytes;
use helve_core::process::{Lifetime, OutputPolicy, ProcessId, ProcessInfo, Spool};
use proptest::prelude::*;
use std::os::unix::ffi::OsStringExt;

use super::*;
use crate::process::keeper_client::KeeperCommand;

fn text() -> impl Strategy<Value = OsString> {
    proptest::collection::vec(any::<u8>(), 0..20).prop_map(OsString::from_vec)
}

fn texts() -> impl Strategy<Value = Vec<OsString>> {
    proptest::collection::vec(text(), 0..5)
}

fn paths() -> impl Strategy<Value = Vec<PathBuf>> {
    texts().prop_map(|texts| texts.into_iter().map(PathBuf::from).collect())
}

prop_compose! {
    fn confine()(
        writable in paths(),
        guarded in paths(),
        git_folders in paths(),
        protected in paths(),
        protected_links in paths(),
        hidden in paths(),
        visible in paths(),
        changes in paths(),
        (on, memory) in any::<(bool, Option<u64>)>(),
    ) -> SandboxPlan {
        let copied = changes.iter().map(|path| CopiedFolder { folder: path.clone(), changes: path.clone() });
        let copied = copied.collect();
        let network = if on { Network::On } else { Network::Off };
        let limits = SandboxLimits { memory, processes: None, file_size: Some(7) };
        SandboxPlan {
            writable,
            guarded,
            git_folders,
            protected,
            protected_links,
            hidden,
            visible,
            copied,
            network,
            limits,
        }
    }
}

prop_compose! {
    fn spawn()(
        program in texts(),
        folder in text(),
        environment in proptest::collection::vec((text(), text()), 0..5),
        terminal in proptest::option::of((any::<u16>(), any::<u16>())),
        confine in proptest::option::of(confine()),
        (head, tail) in (0..1_000_000_usize, 0..1_000_000_usize),
        spool in proptest::option::of((text(), any::<u64>())),
        secrets in texts(),
        text in "\\PC{0,20}",
    ) -> Spawn {
        Spawn {
            argv: program,
            folder: folder.into(),
            environment,
            stdin: match terminal {
                None => Stdin::Closed,
                Some((rows, columns)) => Stdin::Terminal { rows, columns },
            },
            sandbox: confine,
            output: OutputPolicy {
                head,
                tail,
                spool: spool.map(|(path, max)| Spool { path: path.into(), max_bytes: max }),
                secrets: secrets.into_iter().map(|text| Bytes::from(text.into_vec())).collect(),
            },
            lifetime: Lifetime::Helve,
            about: ProcessInfo {
                command: text.clone(),
                description: text.clone(),
                call: text.clone(),
                session: text.clone(),
                root: text.into(),
            },
        }
    }
}

proptest! {
    #[test]
    fn jobs_round_trip(spawn in spawn(), cut in any::<prop::sample::Index>()) {
        let keeper = KeeperCommand { program: "/helve".into(), arguments: vec!["keeper".into()] };
        let job =
            Job { keeper, records_folder: "/run".into(), id: ProcessId("1".into()), spawn: spawn.clone() };
        let bytes = job.encode().unwrap();
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        prop_assert_eq!(length as usize, bytes.len() - 4);
        prop_assert_eq!(Job::decode(&bytes[4..]), Some(job));
        // A truncated job is not accepted.
        prop_assert_eq!(Job::decode(&bytes[4..][..cut.index(bytes.len() - 4)]), None);
        let request = StartRequest::decode(&StartRequest::encode(&spawn).unwrap()[4..]).unwrap();
        prop_assert_eq!((request.program, request.confine), (spawn.argv, spawn.sandbox));
    }

    #[test]
    fn invalid_messages_are_harmless(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        StartRequest::decode(&bytes);
        Job::decode(&bytes);
        StartFailure::decode(&bytes);
        decode_started(&bytes).ok();
        if let Some((head, _)) = bytes.split_first_chunk() {
            StartReply::decode(*head);
            WardenEvent::decode(*head);
        }
    }
}

#[test]
fn failures_and_events_round_trip() {
    for step in STEPS {
        let failure = StartFailure { step, error: Errno::NOENT, message: "why".into() };
        assert_eq!(StartFailure::decode(&failure.encode()), failure);
        let answer = StartReply::encode(Err(&failure));
        let (head, rest) = answer.split_first_chunk().unwrap();
        assert_eq!(StartReply::decode(*head), Some(StartReply::Failed(rest.len())));
    }
    let endless =
        StartFailure { step: StartStep::Confine, error: Errno::IO, message: "why".repeat(10_000) };
    assert_eq!(StartReply::encode(Err(&endless)).len(), StartReply::SIZE + MAX_FAILURE_BYTES);
    let me = rustix::process::getpid();
    let started: [u8; StartReply::SIZE] = StartReply::encode(Ok(me)).try_into().unwrap();
    assert_eq!(StartReply::decode(started), Some(StartReply::Started(me)));
    for wrong in [
        *b"x0000",
        *b"f\xff\xff\xff\x7f",
        *b"f\xff\xff\xff\xff",
        [b's', 0, 0, 0, 0],
        [b's', 255, 255, 255, 255],
    ] {
        assert_eq!(StartReply::decode(wrong), None);
    }
    for event in [
        WardenEvent::Ended(ProcessState::Exited(-1)),
        WardenEvent::Ended(ProcessState::Killed(9)),
        WardenEvent::Ended(ProcessState::Lost),
        WardenEvent::AllEnded(7),
        WardenEvent::CallDenied(DeniedCall::Network),
        WardenEvent::CallDenied(DeniedCall::Tracing),
    ] {
        assert_eq!(WardenEvent::decode(event.encode()), Some(event));
    }
    for started in [
        Ok(()),
        Err(SpawnError::NoProgram("p".into())),
        Err(SpawnError::NoFolder("/f".into())),
        Err(SpawnError::NotAFolder("/f".into())),
        Err(SpawnError::NotConfined("c".into())),
        Err(SpawnError::TooManyRunning(3)),
        Err(SpawnError::NoMoreProcesses),
        Err(SpawnError::TooLong),
        Err(SpawnError::TooManyOpenFiles),
        Err(SpawnError::NoKeeper("k".into())),
        Err(SpawnError::Other("o".into())),
    ] {
        assert_eq!(decode_started(&encode_started(&started)), started);
    }
}

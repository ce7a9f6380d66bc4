//! What is sent is what is received, and nothing received does harm.

use bytes::Bytes;
use helve_core::process::{About, Keep, Lifetime, ProcessId, Spool};
use proptest::prelude::*;
use std::os::unix::ffi::OsStringExt;

use super::*;
use crate::process::link::Keeper;

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
    fn confine()(writable in paths(), protected in paths(), on in any::<bool>()) -> Confine {
        let network = if on { Network::On } else { Network::Off };
        Confine { writable, protected, network }
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
        words in "\\PC{0,20}",
    ) -> Spawn {
        Spawn {
            program,
            folder: folder.into(),
            environment,
            stdin: match terminal {
                None => Stdin::Closed,
                Some((rows, columns)) => Stdin::Terminal { rows, columns },
            },
            confine,
            keep: Keep {
                head,
                tail,
                spool: spool.map(|(path, most)| Spool { path: path.into(), most }),
                secrets: secrets.into_iter().map(|text| Bytes::from(text.into_vec())).collect(),
            },
            lifetime: Lifetime::Helve,
            about: About {
                command: words.clone(),
                description: words.clone(),
                call: words.clone(),
                session: words.clone(),
                root: words.into(),
            },
        }
    }
}

proptest! {
    #[test]
    fn an_errand_arrives_as_it_was_sent(spawn in spawn(), cut in any::<prop::sample::Index>()) {
        let keeper = Keeper { program: "/helve".into(), arguments: vec!["keeper".into()] };
        let errand =
            Errand { keeper, records: "/run".into(), id: ProcessId("1".into()), spawn: spawn.clone() };
        let bytes = errand.encode().unwrap();
        let length = u32::from_le_bytes(bytes[..4].try_into().unwrap());
        prop_assert_eq!(length as usize, bytes.len() - 4);
        prop_assert_eq!(Errand::decode(&bytes[4..]), Some(errand));
        // What is cut off is not taken for a whole.
        prop_assert_eq!(Errand::decode(&bytes[4..][..cut.index(bytes.len() - 4)]), None);
        let order = Order::decode(&Order::encode(&spawn).unwrap()[4..]).unwrap();
        prop_assert_eq!((order.program, order.confine), (spawn.program, spawn.confine));
    }

    #[test]
    fn anything_else_is_nothing(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        Order::decode(&bytes);
        Errand::decode(&bytes);
        Failure::decode(&bytes);
        decode_started(&bytes).ok();
        if let Some((head, _)) = bytes.split_first_chunk() {
            Answer::decode(*head);
            Word::decode(*head);
        }
    }
}

#[test]
fn failures_and_words_arrive_as_they_were_sent() {
    for step in STEPS {
        let failure = Failure { step, error: Errno::NOENT, words: "why".into() };
        assert_eq!(Failure::decode(&failure.encode()), failure);
        let answer = Answer::encode(Err(&failure));
        let (head, rest) = answer.split_first_chunk().unwrap();
        assert_eq!(Answer::decode(*head), Some(Answer::Failed(rest.len())));
    }
    let endless = Failure { step: Step::Confine, error: Errno::IO, words: "why".repeat(10_000) };
    assert_eq!(Answer::encode(Err(&endless)).len(), Answer::SIZE + MOST_FAILURE);
    let me = rustix::process::getpid();
    let started: [u8; Answer::SIZE] = Answer::encode(Ok(me)).try_into().unwrap();
    assert_eq!(Answer::decode(started), Some(Answer::Started(me)));
    for wrong in [
        *b"x0000",
        *b"f\xff\xff\xff\x7f",
        *b"f\xff\xff\xff\xff",
        [b's', 0, 0, 0, 0],
        [b's', 255, 255, 255, 255],
    ] {
        assert_eq!(Answer::decode(wrong), None);
    }
    for word in [
        Word::Ended(State::Exited(-1)),
        Word::Ended(State::Killed(9)),
        Word::Ended(State::Lost),
        Word::AllEnded(7),
        Word::Withheld(Withheld::Network),
        Word::Withheld(Withheld::Tracing),
    ] {
        assert_eq!(Word::decode(word.encode()), Some(word));
    }
    for started in [
        Ok(()),
        Err(SpawnError::NoProgram("p".into())),
        Err(SpawnError::NoFolder("/f".into())),
        Err(SpawnError::NotAFolder("/f".into())),
        Err(SpawnError::NotConfined("c".into())),
        Err(SpawnError::TooMany(3)),
        Err(SpawnError::NoMoreProcesses),
        Err(SpawnError::TooLong),
        Err(SpawnError::TooManyOpen),
        Err(SpawnError::NoKeeper("k".into())),
        Err(SpawnError::Other("o".into())),
    ] {
        assert_eq!(decode_started(&encode_started(&started)), started);
    }
}

//! Checks the calls of a reply: makes their ids unique, and detects repeated calls.

use std::collections::{BTreeSet, VecDeque};

use serde_json::Value;

use crate::item::{Block, CallBlock};

/// Number of identical calls in a row that counts as a loop.
const REPEATS_IN_A_ROW: usize = 3;
/// Number of identical calls among the last [`WINDOW`] calls that counts as a loop.
const REPEATS_IN_WINDOW: usize = 5;
const WINDOW: usize = 12;
/// Tools that are meant to be called repeatedly with the same arguments.
const POLLING_TOOLS: [&str; 2] = ["process", "task"];

/// Gives every call an id that no other call of the session has. Some servers send no ids, repeat them, or start
/// counting again with each reply. Changes are looked up in the journal by these ids.
pub(crate) fn ensure_unique_ids(known: &mut BTreeSet<String>, blocks: &mut [Block]) {
    for block in blocks {
        let Block::Call(call) = block else { continue };
        if call.id.is_empty() {
            call.id = format!("call_{}", uuid::Uuid::now_v7().simple());
        }
        let mut number = 2;
        let original = call.id.clone();
        while !known.insert(call.id.clone()) {
            call.id = format!("{original}_{number}");
            number += 1;
        }
    }
}

/// Detects that a model makes the same call again and again.
#[derive(Debug, Default)]
pub(crate) struct RepeatDetector {
    recent: VecDeque<blake3::Hash>,
}

impl RepeatDetector {
    /// Records a call. Returns whether it was repeated too often.
    pub(crate) fn record(&mut self, call: &CallBlock) -> bool {
        if POLLING_TOOLS.contains(&call.name.as_str()) {
            return false;
        }
        let fingerprint = fingerprint(call);
        self.recent.push_back(fingerprint);
        if self.recent.len() > WINDOW {
            self.recent.pop_front();
        }
        let in_a_row = self.recent.iter().rev().take_while(|known| **known == fingerprint).count();
        let in_window = self.recent.iter().filter(|known| **known == fingerprint).count();
        in_a_row >= REPEATS_IN_A_ROW || in_window >= REPEATS_IN_WINDOW
    }
}

/// Hashes a call. Two calls have the same hash if their arguments are the same JSON value, however it is formatted.
fn fingerprint(call: &CallBlock) -> blake3::Hash {
    let arguments = match serde_json::from_str::<Value>(&call.arguments) {
        Ok(mut value) => {
            value.sort_all_objects();
            value.to_string()
        }
        Err(_) => call.arguments.clone(),
    };
    blake3::hash(format!("{}\0{arguments}", call.name.to_lowercase()).as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::CallForm;

    fn call(text: &str) -> CallBlock {
        let (name, arguments) = text.split_once(' ').unwrap_or((text, "{}"));
        let id = String::new();
        CallBlock { id, name: name.into(), arguments: arguments.into(), form: CallForm::Json }
    }

    /// Calls are written as `name arguments`. `expected` is the number of the first call that is repeated too often,
    /// from 1.
    #[track_caller]
    fn check(calls: &[&str], expected: Option<usize>) {
        let mut detector = RepeatDetector::default();
        let repeated = calls.iter().position(|text| detector.record(&call(text)));
        assert_eq!(repeated.map(|at| at + 1), expected);
    }

    #[test]
    fn repeated_calls_are_noticed() {
        check(&["a", "a", "a"], Some(3));
        check(&["a", "b", "a", "b", "a", "b", "a", "b", "a"], Some(9));
        check(&[r#"a {"x":1,"y":2}"#, r#"A {"y":2, "x":1}"#, r#"a {"x":1,"y":2}"#], Some(3));
        check(&["a {cut", "a {cut", "b", "a {cut"], None);
        check(&["process", "process", "process", "process", "process", "process"], None);
        check(&["a", "b", "c", "a", "b", "c", "a"], None);
    }

    #[test]
    fn ids_become_unique() {
        let ids = ["", "a", "a", "a_2", "a"];
        let mut blocks: Vec<Block> = ids
            .iter()
            .map(|id| Block::Call(CallBlock { id: id.to_string(), ..call("x") }))
            .collect();
        ensure_unique_ids(&mut BTreeSet::new(), &mut blocks);
        let ids: Vec<&str> = blocks
            .iter()
            .filter_map(|block| match block {
                Block::Call(call) => Some(call.id.as_str()),
                Block::Text(_) | Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => {
                    None
                }
            })
            .collect();
        assert!(ids[0].starts_with("call_"));
        assert_eq!(ids[1..], ["a", "a_2", "a_2_2", "a_3"]);
    }
}

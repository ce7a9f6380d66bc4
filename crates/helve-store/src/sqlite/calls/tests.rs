//! Tests of the limits on stored calls: their number, their age and the size of their texts.

use proptest::prelude::*;

use super::*;

fn call(number: u64, created: i64, status: CallStatus) -> CallState {
    CallState {
        id: number.to_string(),
        session: "s".into(),
        parent: None,
        tool: "read".into(),
        status,
        input: Value::Null,
        title: String::new(),
        metadata: Map::new(),
        output: None,
        error: None,
        created: unsigned(created),
        started: None,
        ended: None,
    }
}

fn count(database: &Database) -> i64 {
    database.main.query_row("SELECT count(*) FROM calls", [], |row| row.get(0)).unwrap()
}

fn fill(database: &Database, calls: impl Iterator<Item = CallState>) {
    database.main.execute_batch("BEGIN").unwrap();
    for call in calls {
        write(&database.main, "me", None, &call).unwrap();
    }
    database.main.execute_batch("COMMIT").unwrap();
}

#[test]
fn history_is_limited_by_count_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("db");
    std::fs::write(&file, "").unwrap();
    let database = Database::file(&file, std::time::Duration::ZERO, "me").unwrap();
    let now = now();
    fill(&database, (0..10_450).map(|number| call(number, now, CallStatus::Completed)));
    assert_eq!((prune(&database).unwrap(), count(&database)), (PruneResult::Partial, 10_250));
    assert_eq!((prune(&database).unwrap(), count(&database)), (PruneResult::Partial, 10_050));
    assert_eq!((prune(&database).unwrap(), count(&database)), (PruneResult::Complete, 10_000));
    assert_eq!((prune(&database).unwrap(), count(&database)), (PruneResult::Complete, 10_000));
    let newest = newest(&database, Some("s"), 1).unwrap();
    assert_eq!(newest[0].id, "10449");
}

#[test]
fn history_is_limited_by_age_except_running_calls() {
    let database = Database::memory().unwrap();
    let (now, day) = (now(), 24 * 3600 * 1000);
    // Half a day ahead, so that no call is exactly as old as the limit.
    let now = now + day / 2;
    fill(&database, [call(100, now - 100 * day, CallStatus::Running)].into_iter());
    let ago = |days: u64| now - i64::try_from(days).unwrap() * day;
    fill(&database, (0..40).rev().map(|days| call(days, ago(days), CallStatus::Error)));
    assert_eq!(prune(&database).unwrap(), PruneResult::Complete);
    let ids: Vec<_> =
        newest(&database, None, 100).unwrap().into_iter().map(|call| call.id).collect();
    assert_eq!(ids.len(), 32);
    assert_eq!(ids[30..], ["30", "100"]);
}

#[test]
fn the_history_in_memory_has_a_lower_limit() {
    let database = Database::memory().unwrap();
    let now = now();
    fill(&database, (0..300).map(|number| call(number, now, CallStatus::Completed)));
    assert_eq!(prune(&database).unwrap(), PruneResult::Complete);
    assert_eq!(count(&database), 200);
}

#[test]
fn json_of_any_shape_is_limited() {
    let numbers = Value::from(vec![1; 1 << 20]);
    assert_eq!(limited_json(&numbers), r#"{"omitted":2097153}"#);
    let nested = json!({ "edits": [{ "old": "o".repeat(300_000), "path": "a" }] });
    let kept: Value = serde_json::from_str(&limited_json(&nested)).unwrap();
    assert_eq!(kept["edits"][0]["path"], "a");
    assert!(kept["edits"][0]["old"].as_str().unwrap().ends_with("o… (298976 more bytes)"));
}

proptest! {
    #[test]
    fn truncated_text_is_a_prefix(text in ".*", max in 0usize..40) {
        let clipped = truncate(&text, max);
        if text.len() <= max {
            prop_assert_eq!(clipped, text);
        } else {
            let (kept, rest) = clipped.rsplit_once("… (").unwrap();
            prop_assert!(text.starts_with(kept) && kept.len() <= max && kept.len() + 4 > max);
            prop_assert_eq!(rest, format!("{} more bytes)", text.len() - kept.len()));
        }
    }

    #[test]
    fn call_states_round_trip(
        id in ".{1,20}", title in ".{0,20}", error in proptest::option::of(".*"),
        output in proptest::option::of(".*"), created in 0u64..1 << 50, text in ".*",
    ) {
        let database = Database::memory().unwrap();
        let mut state = call(0, 0, CallStatus::Completed);
        (state.id, state.title, state.error, state.output) = (id, title, error, output);
        (state.created, state.started, state.ended) = (created, Some(created), None);
        state.input = json!({ &text: [text] });
        state.metadata.insert("n".into(), json!(1.5));
        write(&database.main, "me", None, &state).unwrap();
        prop_assert_eq!(newest(&database, None, 5).unwrap(), vec![state]);
    }
}

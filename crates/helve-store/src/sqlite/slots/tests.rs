//! Tests of slots against a simple model.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Get(u8),
    Put(u8, u64, i32),
}

fn step() -> impl Strategy<Value = Step> {
    let put = (0..3u8, 0..5u64, any::<i32>())
        .prop_map(|(key, expected_version, value)| Step::Put(key, expected_version, value));
    prop_oneof![(0..3u8).prop_map(Step::Get), put]
}

proptest! {
    #[test]
    fn slots_behave_like_a_map_with_versions(steps in proptest::collection::vec(step(), 0..60)) {
        let database = Database::memory().unwrap();
        let mut model: HashMap<u8, (u64, Value)> = HashMap::new();
        for step in steps {
            match step {
                Step::Get(key) => {
                    prop_assert_eq!(get(&database, "s", &key.to_string()).unwrap(), model.get(&key).cloned());
                }
                Step::Put(key, expected_version, value) => {
                    let is_current = expected_version == model.get(&key).map_or(0, |(version, _)| *version);
                    let text = encode(&value.into()).unwrap();
                    prop_assert_eq!(compare_and_set(&database, "s", &key.to_string(), expected_version, &text).unwrap(), is_current);
                    if is_current {
                        model.insert(key, (expected_version + 1, value.into()));
                    }
                }
            }
        }
    }
}

#[test]
fn deeply_nested_values_are_refused() {
    let nested = |depth| (1..depth).fold(Value::Null, |inner, _| Value::from(vec![inner]));
    let text = encode(&nested(MAX_DEPTH)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), nested(MAX_DEPTH));
    let refusal = encode(&nested(MAX_DEPTH + 1)).unwrap_err();
    assert_eq!(refusal.to_string(), "A value nested deeper than 120 levels cannot be remembered.");
}

#[test]
fn expired_slots_are_removed() {
    let database = Database::memory().unwrap();
    for (key, age) in [("old", MAX_AGE_MS + 1000), ("young", MAX_AGE_MS - 60_000)] {
        assert!(compare_and_set(&database, "s", key, 0, "1").unwrap());
        let sql = "UPDATE slots SET touched = ?1 WHERE key = ?2";
        database.main.execute(sql, params![now() - age, key]).unwrap();
    }
    prune(&database).unwrap();
    assert_eq!(get(&database, "s", "old").unwrap(), None);
    assert_eq!(get(&database, "s", "young").unwrap(), Some((1, 1.into())));
}

#[test]
fn the_oldest_slots_beyond_the_maximum_are_removed() {
    let database = Database::memory().unwrap();
    database.main.execute_batch("BEGIN").unwrap();
    for number in 0..MAX_SLOTS + 10 {
        let sql = "INSERT INTO slots VALUES ('s', ?1, 1, ?2, '1')";
        database.main.execute(sql, params![number.to_string(), now() + number]).unwrap();
    }
    database.main.execute_batch("COMMIT").unwrap();
    prune(&database).unwrap();
    let sql = "SELECT count(*), min(CAST(key AS INTEGER)) FROM slots";
    let remaining = database.main.query_row(sql, [], |row| Ok((row.get(0)?, row.get(1)?)));
    assert_eq!(remaining, Ok((MAX_SLOTS, 10)));
}

#[test]
fn a_slot_with_a_damaged_value_can_be_written_again() {
    let database = Database::memory().unwrap();
    for damaged in ["'{\"half'", "CAST(x'ff' AS TEXT)", "''"] {
        assert!(compare_and_set(&database, "s", "k", 0, "1").unwrap());
        database
            .main
            .execute_batch(&format!("UPDATE slots SET value = {damaged}, version = 7"))
            .unwrap();
        assert_eq!(get(&database, "s", "k").unwrap(), None);
        assert!(compare_and_set(&database, "s", "k", 0, "2").unwrap());
        assert_eq!(get(&database, "s", "k").unwrap(), Some((1, 2.into())));
        database.main.execute_batch("DELETE FROM slots").unwrap();
    }
}

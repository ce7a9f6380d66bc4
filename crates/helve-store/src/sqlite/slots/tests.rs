//! Slots against the simplest thing that could be one.

use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

#[derive(Clone, Debug)]
enum Step {
    Get(u8),
    Put(u8, u64, i32),
}

fn step() -> impl Strategy<Value = Step> {
    let put =
        (0..3u8, 0..5u64, any::<i32>()).prop_map(|(key, seen, value)| Step::Put(key, seen, value));
    prop_oneof![(0..3u8).prop_map(Step::Get), put]
}

proptest! {
    #[test]
    fn slots_are_a_map_with_versions(steps in proptest::collection::vec(step(), 0..60)) {
        let base = Base::memory().unwrap();
        let mut model: HashMap<u8, (u64, Value)> = HashMap::new();
        for step in steps {
            match step {
                Step::Get(key) => {
                    prop_assert_eq!(get(&base, "s", &key.to_string()).unwrap(), model.get(&key).cloned());
                }
                Step::Put(key, seen, value) => {
                    let is_last = seen == model.get(&key).map_or(0, |(version, _)| *version);
                    let text = encode(&value.into()).unwrap();
                    prop_assert_eq!(put(&base, "s", &key.to_string(), seen, &text).unwrap(), is_last);
                    if is_last {
                        model.insert(key, (seen + 1, value.into()));
                    }
                }
            }
        }
    }
}

#[test]
fn what_could_not_be_read_back_is_refused() {
    let nested = |depth| (1..depth).fold(Value::Null, |inner, _| Value::from(vec![inner]));
    let text = encode(&nested(DEEPEST)).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), nested(DEEPEST));
    let refusal = encode(&nested(DEEPEST + 1)).unwrap_err();
    assert_eq!(refusal.to_string(), "A value nested deeper than 120 cannot be remembered.");
}

#[test]
fn what_nobody_touches_is_forgotten() {
    let base = Base::memory().unwrap();
    for (key, age) in [("old", KEPT + 1000), ("young", KEPT - 60_000)] {
        assert!(put(&base, "s", key, 0, "1").unwrap());
        let sql = "UPDATE slots SET touched = ?1 WHERE key = ?2";
        base.main.execute(sql, params![now() - age, key]).unwrap();
    }
    prune(&base).unwrap();
    assert_eq!(get(&base, "s", "old").unwrap(), None);
    assert_eq!(get(&base, "s", "young").unwrap(), Some((1, 1.into())));
}

#[test]
fn of_too_many_the_oldest_are_forgotten() {
    let base = Base::memory().unwrap();
    base.main.execute_batch("BEGIN").unwrap();
    for number in 0..MOST + 10 {
        let sql = "INSERT INTO slots VALUES ('s', ?1, 1, ?2, '1')";
        base.main.execute(sql, params![number.to_string(), now() + number]).unwrap();
    }
    base.main.execute_batch("COMMIT").unwrap();
    prune(&base).unwrap();
    let left = "SELECT count(*), min(CAST(key AS INTEGER)) FROM slots";
    let left = base.main.query_row(left, [], |row| Ok((row.get(0)?, row.get(1)?)));
    assert_eq!(left, Ok((MOST, 10)));
}

#[test]
fn what_cannot_be_read_gives_its_slot_free() {
    let base = Base::memory().unwrap();
    for spoilt in ["'{\"half'", "CAST(x'ff' AS TEXT)", "''"] {
        assert!(put(&base, "s", "k", 0, "1").unwrap());
        base.main
            .execute_batch(&format!("UPDATE slots SET value = {spoilt}, version = 7"))
            .unwrap();
        assert_eq!(get(&base, "s", "k").unwrap(), None);
        assert!(put(&base, "s", "k", 0, "2").unwrap());
        assert_eq!(get(&base, "s", "k").unwrap(), Some((1, 2.into())));
        base.main.execute_batch("DELETE FROM slots").unwrap();
    }
}

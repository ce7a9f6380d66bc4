//! The default session of a folder, which `helve call` continues. It ends after some hours without use, so that
//! approvals "for this session" do not last forever.

use std::path::Path;

use helve_core::event::{Millis, now};
use helve_core::store::Store;
use serde_json::{Value, json};

use crate::toolbox::Toolbox;

/// How long a default session lasts without use, in milliseconds.
const MAX_IDLE: Millis = 4 * 3600 * 1000;
/// The slot with the number of a folder's current default session and the time of its last use.
const SLOT: &str = "default_session";

/// Returns the id of the current default session, and records its use.
pub(crate) async fn id(root: &Path, store: &dyn Store) -> String {
    let base = base_id(root);
    let stored = store.get(&base, SLOT).await.ok().flatten();
    let stored = stored.as_ref().map(|(_, value)| value);
    let number = current_number(stored, now());
    store.set(&base, SLOT, json!({"number": number, "used": now()}));
    session_id(&base, number)
}

/// Returns the number of the current session at time `at`: the stored number, or the next one if that session has
/// ended.
fn current_number(stored: Option<&Value>, at: Millis) -> u64 {
    let member = |name| stored.and_then(|value| value.get(name)?.as_u64());
    let (number, used) = (member("number").unwrap_or(0), member("used"));
    match used {
        // A time in the future comes from a wrong clock. The session then counts as ended.
        Some(used) if used > at || at - used > MAX_IDLE => number.saturating_add(1),
        Some(_) | None => number,
    }
}

/// Returns the id of a folder's first default session. The prefix `usual_` is kept from an older version, because
/// stored session ids contain it.
fn base_id(root: &Path) -> String {
    let hash = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    format!("usual_{}", &hash[..16])
}

fn session_id(base: &str, number: u64) -> String {
    if number == 0 { base.to_string() } else { format!("{base}_{number}") }
}

impl Toolbox {
    /// Ends the default session of this folder: the next call begins a new one, without the approvals of the old one.
    pub async fn end_default_session(&self) {
        let base = base_id(self.root());
        let stored = self.store().get(&base, SLOT).await.ok().flatten();
        let number = stored.and_then(|(_, value)| value.get("number")?.as_u64()).unwrap_or(0);
        let next = json!({"number": number.saturating_add(1), "used": now()});
        self.store().set(&base, SLOT, next);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{MAX_IDLE, current_number, session_id};

    #[test]
    fn a_session_ends_after_hours_without_use() {
        let stored = json!({"number": 3, "used": 1_000});
        for (value, at, expected) in [
            (None, 5, 0),
            (Some(&stored), 1_000, 3),
            (Some(&stored), 1_000 + MAX_IDLE, 3),
            (Some(&stored), 1_001 + MAX_IDLE, 4),
            (Some(&stored), 999, 4),
            (Some(&json!("damaged")), 5, 0),
        ] {
            assert_eq!(current_number(value, at), expected, "{value:?} at {at}");
        }
        assert_eq!(session_id("usual_0", 0), "usual_0");
        assert_eq!(session_id("usual_0", 2), "usual_0_2");
    }
}

//! Stored approvals: permission rules that apply to a session, to a project, or everywhere.

use helve_core::store::{ApprovalPlace, ApprovalTarget, StoredApproval};
use helve_core::{Action, Pattern, Rule, Scope, Source, paths};
use rusqlite::{Connection, Row, params};

use super::database::Database;
use super::schema::Table;
use super::{now, signed, unsigned};

/// Maximum number of approvals returned for one session, for one project, or for everywhere. The newest are returned.
const MAX_RULES: i64 = 10_000;
/// How long the approvals of a session are kept, in milliseconds. They expire because a session has no definite end.
const SESSION_MAX_AGE_MS: i64 = 180 * 24 * 3600 * 1000;

/// An owned form of [`ApprovalTarget`], which can be sent to another thread.
pub(crate) struct OwnedTarget {
    scope: Scope,
    /// The session id or the project root; empty for everywhere. Stored in the column of this name.
    holder: Vec<u8>,
}

impl OwnedTarget {
    pub(crate) fn of(target: ApprovalTarget<'_>) -> Self {
        match target {
            ApprovalTarget::Session(id) => Self { scope: Scope::Session, holder: id.into() },
            ApprovalTarget::Project(root) => {
                Self { scope: Scope::Project, holder: root.as_os_str().as_encoded_bytes().into() }
            }
            ApprovalTarget::Everywhere => Self { scope: Scope::Everywhere, holder: Vec::new() },
        }
    }
}

/// Stores a rule. A rule that exists already moves to the end, where it takes precedence.
pub(crate) fn remember(
    database: &Database,
    target: &OwnedTarget,
    rule: &Rule,
) -> rusqlite::Result<()> {
    let mut statement = database.main.prepare_cached(
        "INSERT OR REPLACE INTO rules (number, scope, holder, permission, kind, pattern, action, remembered)
         VALUES ((SELECT coalesce(max(number), 0) + 1 FROM rules), ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let (kind, pattern) = pattern_parts(&rule.pattern);
    let scope = scope_name(target.scope);
    let action = action_name(rule.action);
    let permission = &rule.permission;
    statement
        .execute(params![scope, target.holder, permission, kind, pattern, action, now()])
        .map(drop)
}

/// Returns the rules, oldest first. If the main database is in memory, the rules of the read-only file come first,
/// because they are older.
pub(crate) fn remembered(
    database: &Database,
    targets: &[OwnedTarget],
) -> rusqlite::Result<Vec<Rule>> {
    let fallback = database.fallback(Table::Rules);
    let mut rules =
        fallback.and_then(|fallback| read_rules(fallback, targets).ok()).unwrap_or_default();
    rules.extend(read_rules(&database.main, targets)?);
    Ok(rules)
}

fn read_rules(connection: &Connection, targets: &[OwnedTarget]) -> rusqlite::Result<Vec<Rule>> {
    let mut statement = connection.prepare_cached(
        "SELECT permission, kind, pattern, action, number FROM rules
         WHERE scope = ?1 AND holder = ?2 ORDER BY number DESC LIMIT ?3",
    )?;
    let mut rules: Vec<(i64, Rule)> = Vec::new();
    for OwnedTarget { scope, holder } in targets {
        let mut rows = statement.query(params![scope_name(*scope), holder, MAX_RULES])?;
        while let Some(row) = rows.next()? {
            // An unreadable rule is skipped, so the person is asked again.
            rules.extend(decode(row, *scope).ok().flatten());
        }
    }
    rules.sort_by_key(|(number, _)| *number);
    Ok(rules.into_iter().map(|(_, rule)| rule).collect())
}

/// Returns the approvals of all sessions and projects, oldest first, at most [`MAX_RULES`].
pub(crate) fn all(database: &Database) -> rusqlite::Result<Vec<StoredApproval>> {
    let mut statement = database.main.prepare_cached(
        "SELECT permission, kind, pattern, action, number, scope, holder, remembered FROM rules
         ORDER BY number DESC LIMIT ?1",
    )?;
    let mut rows = statement.query([MAX_RULES])?;
    let mut approvals = Vec::new();
    while let Some(row) = rows.next()? {
        approvals.extend(decode_approval(row).ok().flatten());
    }
    approvals.reverse();
    Ok(approvals)
}

/// Removes approvals. Returns how many there were.
pub(crate) fn revoke(database: &Database, ids: &[u64]) -> rusqlite::Result<usize> {
    let mut statement = database.main.prepare_cached("DELETE FROM rules WHERE number = ?1")?;
    ids.iter().map(|id| statement.execute([signed(*id)])).sum()
}

fn decode_approval(row: &Row<'_>) -> rusqlite::Result<Option<StoredApproval>> {
    let holder: Vec<u8> = row.get(6)?;
    let (scope, place) = match row.get::<_, String>(5)?.as_str() {
        "session" => {
            let session = String::from_utf8_lossy(&holder).into_owned();
            (Scope::Session, ApprovalPlace::Session(session))
        }
        "project" => (Scope::Project, ApprovalPlace::Project(paths::from_bytes(holder))),
        "everywhere" => (Scope::Everywhere, ApprovalPlace::Everywhere),
        _ => return Ok(None),
    };
    let at = unsigned(row.get(7)?);
    let rule = decode(row, scope)?;
    Ok(rule.map(|(number, rule)| StoredApproval { id: unsigned(number), place, rule, at }))
}

fn decode(row: &Row<'_>, scope: Scope) -> rusqlite::Result<Option<(i64, Rule)>> {
    let (kind, text): (String, String) = (row.get(1)?, row.get(2)?);
    let pattern = match kind.as_str() {
        "wild" => Pattern::Wild(text),
        "folded" => Pattern::CaseInsensitive(text),
        "exact" => Pattern::Exact(text),
        _ => return Ok(None),
    };
    let action = match row.get::<_, String>(3)?.as_str() {
        "allow" => Action::Allow,
        "ask" => Action::Ask,
        "deny" => Action::Deny,
        _ => return Ok(None),
    };
    let source = Source::Approved(scope);
    Ok(Some((row.get(4)?, Rule { permission: row.get(0)?, pattern, action, source })))
}

fn pattern_parts(pattern: &Pattern) -> (&'static str, &str) {
    match pattern {
        Pattern::Wild(text) => ("wild", text),
        Pattern::CaseInsensitive(text) => ("folded", text),
        Pattern::Exact(text) => ("exact", text),
    }
}

fn action_name(action: Action) -> &'static str {
    match action {
        Action::Allow => "allow",
        Action::Ask => "ask",
        Action::Deny => "deny",
    }
}

fn scope_name(scope: Scope) -> &'static str {
    match scope {
        Scope::Once => "once",
        Scope::Session => "session",
        Scope::Project => "project",
        Scope::Everywhere => "everywhere",
    }
}

/// Removes approvals of old sessions.
pub(crate) fn prune(database: &Database) -> rusqlite::Result<()> {
    let sql = "DELETE FROM rules WHERE scope = ?1 AND remembered < ?2";
    database
        .main
        .execute(sql, params![scope_name(Scope::Session), now() - SESSION_MAX_AGE_MS])
        .map(drop)
}

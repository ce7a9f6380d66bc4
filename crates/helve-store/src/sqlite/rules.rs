//! Stored approvals: permission rules that apply to a session, to a project, or everywhere.

use helve_core::store::{ApprovalScope, ApprovalScopeRef, StoredApproval};
use helve_core::{Action, Pattern, Rule, Scope, Source, paths};
use rusqlite::{Connection, Row, params};

use super::database::Database;
use super::schema::Table;
use super::{now, signed, unsigned};

/// Maximum number of approvals returned for one session, for one project, or of those that apply everywhere. The newest
/// are returned.
const MAX_RULES: i64 = 10_000;
/// How long the approvals of a session are kept, in milliseconds. They expire because a session has no definite end.
const SESSION_MAX_AGE_MS: i64 = 180 * 24 * 3600 * 1000;

/// An [`ApprovalScopeRef`] as it is stored: the columns `scope` and `holder`.
pub(crate) struct StoredScope {
    scope: Scope,
    /// The session id or the project root; empty for everywhere. Stored in the column `holder`.
    scope_id: Vec<u8>,
}

impl StoredScope {
    pub(crate) fn of(scope: ApprovalScopeRef<'_>) -> Self {
        match scope {
            ApprovalScopeRef::Session(id) => Self { scope: Scope::Session, scope_id: id.into() },
            ApprovalScopeRef::Project(root) => {
                Self { scope: Scope::Project, scope_id: root.as_os_str().as_encoded_bytes().into() }
            }
            ApprovalScopeRef::Everywhere => Self { scope: Scope::Everywhere, scope_id: Vec::new() },
        }
    }
}

/// Stores a rule. A rule that exists already moves to the end, where it takes precedence.
pub(crate) fn remember(
    database: &Database,
    stored_scope: &StoredScope,
    rule: &Rule,
) -> rusqlite::Result<()> {
    let mut statement = database.main.prepare_cached(
        "INSERT OR REPLACE INTO rules (number, scope, holder, permission, kind, pattern, action, remembered)
         VALUES ((SELECT coalesce(max(number), 0) + 1 FROM rules), ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let (kind, pattern) = pattern_parts(&rule.pattern);
    let scope = scope_name(stored_scope.scope);
    let action = action_name(rule.action);
    let permission = &rule.permission;
    statement
        .execute(params![scope, stored_scope.scope_id, permission, kind, pattern, action, now()])
        .map(drop)
}

/// Returns the rules, oldest first. If the store fell back to memory because its file cannot be written, the rules in
/// that file are returned too. They come first, because they are older.
pub(crate) fn remembered(
    database: &Database,
    scopes: &[StoredScope],
) -> rusqlite::Result<Vec<Rule>> {
    let original = database.original_file(Table::Rules);
    let mut rules =
        original.and_then(|original| read_rules(original, scopes).ok()).unwrap_or_default();
    rules.extend(read_rules(&database.main, scopes)?);
    Ok(rules)
}

fn read_rules(connection: &Connection, scopes: &[StoredScope]) -> rusqlite::Result<Vec<Rule>> {
    let mut statement = connection.prepare_cached(
        "SELECT permission, kind, pattern, action, number FROM rules
         WHERE scope = ?1 AND holder = ?2 ORDER BY number DESC LIMIT ?3",
    )?;
    let mut rules: Vec<(i64, Rule)> = Vec::new();
    for StoredScope { scope, scope_id } in scopes {
        let mut rows = statement.query(params![scope_name(*scope), scope_id, MAX_RULES])?;
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

/// Removes approvals. Returns how many were removed.
pub(crate) fn revoke(database: &Database, ids: &[u64]) -> rusqlite::Result<usize> {
    let mut statement = database.main.prepare_cached("DELETE FROM rules WHERE number = ?1")?;
    ids.iter().map(|id| statement.execute([signed(*id)])).sum()
}

fn decode_approval(row: &Row<'_>) -> rusqlite::Result<Option<StoredApproval>> {
    let scope_id: Vec<u8> = row.get(6)?;
    let (scope, approval_scope) = match row.get::<_, String>(5)?.as_str() {
        "session" => {
            let session = String::from_utf8_lossy(&scope_id).into_owned();
            (Scope::Session, ApprovalScope::Session(session))
        }
        "project" => (Scope::Project, ApprovalScope::Project(paths::from_bytes(scope_id))),
        "everywhere" => (Scope::Everywhere, ApprovalScope::Everywhere),
        _ => return Ok(None),
    };
    let at = unsigned(row.get(7)?);
    let rule = decode(row, scope)?;
    Ok(rule.map(|(number, rule)| StoredApproval {
        id: unsigned(number),
        scope: approval_scope,
        rule,
        at,
    }))
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

//! Lasting approvals, by who gave them for what.

use helve_core::permission::{Action, Pattern, Rule, Scope, Source};
use helve_core::store::ApprovalOwner;
use rusqlite::{Connection, Row, params};

use super::base::Base;
use super::now;
use super::schema::Table;

/// The most approvals that one session, project or person is given back; the newest count.
const MOST: i64 = 10_000;
/// How long approvals of a session are kept, in milliseconds: it may be one that never ends.
const SESSION: i64 = 180 * 24 * 3600 * 1000;

/// An [`ApprovalOwner`] that can be sent to another thread.
pub(crate) struct Holder {
    scope: Scope,
    name: Vec<u8>,
}

impl Holder {
    pub(crate) fn of(owner: ApprovalOwner<'_>) -> Self {
        match owner {
            ApprovalOwner::Session(id) => Self { scope: Scope::Session, name: id.into() },
            ApprovalOwner::Project(root) => {
                Self { scope: Scope::Project, name: root.as_os_str().as_encoded_bytes().into() }
            }
            ApprovalOwner::Everyone => Self { scope: Scope::Everywhere, name: Vec::new() },
        }
    }
}

/// Remembering again moves a rule to the end, where it decides.
pub(crate) fn remember(base: &Base, holder: &Holder, rule: &Rule) -> rusqlite::Result<()> {
    let mut statement = base.main.prepare_cached(
        "INSERT OR REPLACE INTO rules (number, scope, holder, permission, kind, pattern, action, remembered)
         VALUES ((SELECT coalesce(max(number), 0) + 1 FROM rules), ?1, ?2, ?3, ?4, ?5, ?6, ?7)",
    )?;
    let (kind, pattern) = pattern_parts(&rule.pattern);
    let scope = scope_name(holder.scope);
    let action = action_name(rule.action);
    let permission = &rule.permission;
    statement
        .execute(params![scope, holder.name, permission, kind, pattern, action, now()])
        .map(drop)
}

/// Oldest first; what lies behind counts as older.
pub(crate) fn remembered(base: &Base, holders: &[Holder]) -> rusqlite::Result<Vec<Rule>> {
    let behind = base.behind(Table::Rules);
    let mut rules = behind.and_then(|behind| of_all(behind, holders).ok()).unwrap_or_default();
    rules.extend(of_all(&base.main, holders)?);
    Ok(rules)
}

fn of_all(connection: &Connection, holders: &[Holder]) -> rusqlite::Result<Vec<Rule>> {
    let mut statement = connection.prepare_cached(
        "SELECT permission, kind, pattern, action, number FROM rules
         WHERE scope = ?1 AND holder = ?2 ORDER BY number DESC LIMIT ?3",
    )?;
    let mut rules: Vec<(i64, Rule)> = Vec::new();
    for Holder { scope, name } in holders {
        let mut rows = statement.query(params![scope_name(*scope), name, MOST])?;
        while let Some(row) = rows.next()? {
            // A rule that cannot be read is not one: the person is asked again.
            rules.extend(decode(row, *scope).ok().flatten());
        }
    }
    rules.sort_by_key(|(number, _)| *number);
    Ok(rules.into_iter().map(|(_, rule)| rule).collect())
}

fn decode(row: &Row<'_>, scope: Scope) -> rusqlite::Result<Option<(i64, Rule)>> {
    let (kind, text): (String, String) = (row.get(1)?, row.get(2)?);
    let pattern = match kind.as_str() {
        "wild" => Pattern::Wild(text),
        "folded" => Pattern::Folded(text),
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
        Pattern::Folded(text) => ("folded", text),
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

/// Removes what sessions of long ago were allowed.
pub(crate) fn prune(base: &Base) -> rusqlite::Result<()> {
    let sql = "DELETE FROM rules WHERE scope = ?1 AND remembered < ?2";
    base.main.execute(sql, params![scope_name(Scope::Session), now() - SESSION]).map(drop)
}

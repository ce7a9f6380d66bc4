//! `helve approvals`: lists the lasting approvals, and withdraws them.

use helve::{ApprovalScope, StoredApproval, Toolbox, paths, visible};
use serde_json::{Value, json};

use crate::Exit;
use crate::args::{ApprovalsCommand, GlobalArgs};
use crate::history::ago;
use crate::output::{self, BOLD, DIM, PLAIN};

pub(crate) async fn run(
    common: &GlobalArgs,
    command: Option<&ApprovalsCommand>,
) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    let exit = match command {
        None | Some(ApprovalsCommand::List) => list(common, &toolbox).await?,
        Some(ApprovalsCommand::Revoke { end_session: true, .. }) => {
            end_session(common, &toolbox).await?
        }
        Some(ApprovalsCommand::Revoke { ids, all, .. }) => {
            revoke(common, &toolbox, ids, *all).await?
        }
    };
    toolbox.close().await;
    Ok(exit)
}

async fn list(common: &GlobalArgs, toolbox: &Toolbox) -> anyhow::Result<Exit> {
    let approvals = toolbox.approvals().await?;
    if common.json {
        let all: Vec<Value> = approvals.iter().map(|it| as_json(toolbox, it)).collect();
        output::print_json(&Value::from(all))?;
    } else if approvals.is_empty() {
        output::print(
            "There are no lasting approvals. Questions that are answered with \"this session\", \"this project\" or \
             \"everywhere\" are listed here.\n",
        )?;
    } else {
        for approval in &approvals {
            output::print(&line(toolbox, approval))?;
        }
    }
    Ok(Exit::Done)
}

async fn revoke(
    common: &GlobalArgs,
    toolbox: &Toolbox,
    ids: &[u64],
    all: bool,
) -> anyhow::Result<Exit> {
    let existing: Vec<u64> = toolbox.approvals().await?.iter().map(|it| it.id).collect();
    let ids = if all { existing.clone() } else { ids.to_vec() };
    if let Some(unknown) = ids.iter().find(|id| !existing.contains(id)) {
        output::error(&format!(
            "There is no approval {unknown}. Nothing was withdrawn; `helve approvals` lists all."
        ));
        return Ok(Exit::Failed);
    }
    let count = toolbox.revoke_approvals(&ids).await?;
    if common.json {
        output::print_json(&json!({"revoked": ids}))?;
    } else {
        let approvals = if count == 1 { "approval" } else { "approvals" };
        output::print(&format!("Withdrew {count} {approvals}.\n"))?;
    }
    Ok(Exit::Done)
}

/// Ends the session of this folder. Its approvals are withdrawn, because nothing can use them any more.
async fn end_session(common: &GlobalArgs, toolbox: &Toolbox) -> anyhow::Result<Exit> {
    let approvals = toolbox.approvals().await?;
    let is_of_session = |it: &&StoredApproval| is_current_session(toolbox, it);
    let ids: Vec<u64> = approvals.iter().filter(is_of_session).map(|it| it.id).collect();
    toolbox.revoke_approvals(&ids).await?;
    toolbox.end_default_session().await;
    if common.json {
        output::print_json(&json!({"revoked": ids, "endedSession": toolbox.session_id()}))?;
    } else {
        let were = if ids.len() == 1 { "was" } else { "were" };
        output::print(&format!(
            "Ended the session of this folder; {} of its approvals {were} withdrawn.\n",
            ids.len()
        ))?;
    }
    Ok(Exit::Done)
}

fn is_current_session(toolbox: &Toolbox, approval: &StoredApproval) -> bool {
    matches!(&approval.scope, ApprovalScope::Session(id) if id == toolbox.session_id())
}

fn line(toolbox: &Toolbox, approval: &StoredApproval) -> String {
    let place = match &approval.scope {
        ApprovalScope::Session(_) if is_current_session(toolbox, approval) => {
            "in this session".into()
        }
        ApprovalScope::Session(id) => format!("in session {id}"),
        ApprovalScope::Project(root) if root == toolbox.root() => "in this project".into(),
        ApprovalScope::Project(root) => format!("in {}", paths::display(root)),
        ApprovalScope::Everywhere => "everywhere".into(),
    };
    let rule = &approval.rule;
    let action = action_name(approval);
    format!(
        "{BOLD}{}{PLAIN}  {action} {} {}  {}  {DIM}{}{PLAIN}\n",
        approval.id,
        visible::escape_line(&rule.permission),
        visible::escape_line(rule.pattern.as_str()),
        visible::escape_line(&place),
        ago(approval.at)
    )
}

fn action_name(approval: &StoredApproval) -> &'static str {
    match approval.rule.action {
        helve::Action::Allow => "allow",
        helve::Action::Ask => "ask",
        helve::Action::Deny => "deny",
    }
}

fn as_json(toolbox: &Toolbox, approval: &StoredApproval) -> Value {
    let (scope, place) = match &approval.scope {
        ApprovalScope::Session(id) => ("session", Some(id.clone())),
        ApprovalScope::Project(root) => ("project", Some(paths::display(root).into_owned())),
        ApprovalScope::Everywhere => ("everywhere", None),
    };
    json!({
        "id": approval.id,
        "permission": approval.rule.permission,
        "pattern": approval.rule.pattern.as_str(),
        "action": action_name(approval),
        "scope": scope,
        "where": place,
        "current": scope != "session" || is_current_session(toolbox, approval),
        "at": approval.at,
    })
}

//! Wording about sub-agents.

use helve_core::agents::{ChildError, ChildReport, ChildState};
use helve_core::{ErrorKind, ToolError};

use super::{clip, count};

/// Maximum length of a result in the note about a task that has ended, in characters.
const MAX_NOTE: usize = 4_000;

/// Returns the report on a task: its result or, while it runs, the text so far.
pub(crate) fn report_text(report: &ChildReport) -> String {
    let ChildReport { task, state, .. } = report;
    let mut text = format!("<task id=\"{task}\" state=\"{}\">\n", state_word(state));
    match state {
        ChildState::Incomplete(why) | ChildState::Failed(why) => {
            text.push_str(&format!("<task_error>\n{why}\n</task_error>\n"));
        }
        ChildState::Queued | ChildState::Running | ChildState::Completed | ChildState::Aborted => {}
    }
    if !report.files.is_empty() {
        text.push_str(&format!("Files changed: {}\n", report.files.join(", ")));
    }
    // Before the result, because a long result is cut at its end.
    text.push_str(&format!("[{}]\n", status_line(report)));
    let name = if state.has_ended() { "task_result" } else { "task_so_far" };
    match report.text.trim() {
        "" => {}
        result => text.push_str(&format!("<{name}>\n{result}\n</{name}>\n")),
    }
    text.push_str("</task>");
    text
}

/// Returns the ids of the tasks in texts of `report_text`.
pub fn reported_tasks(text: &str) -> Vec<&str> {
    let starts = text.lines().filter_map(|line| line.strip_prefix("<task id=\""));
    starts.filter_map(|rest| Some(rest.split_once("\" state=\"")?.0)).collect()
}

/// Returns one line about a task: who works on what, how far it is, and what it used.
pub(crate) fn status_line(report: &ChildReport) -> String {
    let mut parts = vec![
        format!(
            "{} \"{}\": {}",
            report.agent,
            clip(&report.description),
            state_word(&report.state)
        ),
        count(u64::from(report.steps), "step", "steps"),
        count(u64::from(report.calls), "call", "calls"),
        count(report.tokens, "token", "tokens"),
    ];
    parts.extend(report.cost.filter(|cost| *cost > 0.0).map(|cost| format!("${cost:.4}")));
    parts.push(format!("{} s", report.elapsed.as_secs()));
    if !report.activity.is_empty() {
        parts.push(format!("last call: {}", clip(&report.activity)));
    }
    parts.join(", ")
}

pub(crate) fn state_word(state: &ChildState) -> &'static str {
    match state {
        ChildState::Queued => "queued",
        ChildState::Running => "running",
        ChildState::Completed => "completed",
        ChildState::Incomplete(_) => "incomplete",
        ChildState::Failed(_) => "error",
        ChildState::Aborted => "aborted",
    }
}

/// Returns the note that a task in the background has ended.
pub fn task_ended(report: &ChildReport) -> String {
    let shown: String = report.text.chars().take(MAX_NOTE).collect();
    let rest = match shown.len() < report.text.len() {
        true => "\nThe result is cut; read all of it with the task tool, action \"read\".",
        false => "",
    };
    let report = ChildReport { text: shown, ..report.clone() };
    format!("A task in the background has ended.\n{}{rest}", report_text(&report))
}

/// Returns the text about tasks in the background that a summary of the conversation must not lose.
pub fn tasks_running(reports: &[ChildReport]) -> String {
    let line = |report: &ChildReport| format!("- {}: {}", report.task, status_line(report));
    let lines: Vec<String> = reports.iter().map(line).collect();
    format!("Tasks in the background:\n{}", lines.join("\n"))
}

pub(crate) fn child_error(error: ChildError) -> ToolError {
    let (kind, message, hint) = match error {
        ChildError::UnknownAgent { name, known } => (
            ErrorKind::NotFound,
            format!("There is no agent {} for tasks.", clip(&name)),
            format!("Known agents: {}.", known.join(", ")),
        ),
        ChildError::TooDeep { limit } => (
            ErrorKind::Denied,
            format!("Sub-agents cannot be nested deeper than {limit} here."),
            "Do this task yourself.".into(),
        ),
        ChildError::TooMany { limit } => (
            ErrorKind::Denied,
            format!("No more than {limit} tasks can be started in one turn."),
            "Do the rest yourself, or continue an earlier task later.".into(),
        ),
        ChildError::UnknownTask { task, known } => (
            ErrorKind::NotFound,
            format!("There is no task {} in this session.", clip(&task)),
            match known.is_empty() {
                true => "No task was started yet. Leave task_id out to start a new one.".into(),
                false => format!("Known tasks: {}.", known.join(", ")),
            },
        ),
        ChildError::StillRunning { task } => (
            ErrorKind::Failed,
            format!("The task {} still runs.", clip(&task)),
            "Wait for it with action \"wait\", or abort it with action \"cancel\".".into(),
        ),
        ChildError::Unavailable(why) => (
            ErrorKind::Failed,
            format!("The sub-agent cannot be started: {why}."),
            "Do this task yourself.".into(),
        ),
    };
    ToolError::new(kind, message).hint(hint)
}

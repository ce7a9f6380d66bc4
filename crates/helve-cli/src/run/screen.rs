//! What a person sees of a run: the answer as it arrives, one line per call, diffs, and what the turn used.

use std::collections::{BTreeMap, BTreeSet};
use std::io::IsTerminal;
use std::pin::pin;
use std::time::{Duration, Instant};

use helve::agent_loop::event::{AgentEvent, TodoEntry, TurnEnd};
use helve::agent_loop::reply::Usage;
use helve::{TurnReport, visible};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::time::interval;

use super::events::describe;
use crate::output::{self, BOLD, DIM, GREEN, PLAIN, RED, YELLOW};

/// Maximum number of lines shown per diff.
const MAX_DIFF_LINES: usize = 40;
/// How often the time in the status line is updated.
const TICK: Duration = Duration::from_secs(1);
/// Maximum number of to-do entries shown.
const MAX_TODOS: usize = 30;
/// Maximum length of a call's subject.
const MAX_SUBJECT: usize = 100;
/// Arguments that say best what a call is about, in this order.
const SUBJECTS: [&str; 10] = [
    "command",
    "filePath",
    "path",
    "file_path",
    "pattern",
    "query",
    "url",
    "description",
    "name",
    "id",
];

/// Prints a run for a person. The answer goes to standard output, everything else to standard error.
pub(super) struct Screen {
    /// Whether standard output shows the answer as it arrives.
    streams_answer: bool,
    /// Whether standard error can show a status line, which later output replaces.
    has_status: bool,
    state: Mutex<ScreenState>,
}

#[derive(Default)]
struct ScreenState {
    line: LineState,
    /// What is happening, for the status line.
    activity: Option<Activity>,
    /// Whether the last thing shown was a part of the answer.
    is_in_answer: bool,
    /// The running calls by id.
    calls: BTreeMap<String, Activity>,
    /// Calls whose changes the person saw in a question.
    shown_in_question: BTreeSet<String>,
    /// While somebody types, output waits here.
    held: Option<Vec<Piece>>,
    started: Option<Instant>,
    call_count: usize,
}

/// Something that takes time.
#[derive(Clone)]
struct Activity {
    text: String,
    since: Instant,
}

impl Activity {
    fn begin(text: impl Into<String>) -> Self {
        Self { text: text.into(), since: Instant::now() }
    }

    /// Returns the status line at this time.
    fn line(&self, now: Instant) -> String {
        let elapsed = now.saturating_duration_since(self.since);
        if elapsed < TICK {
            return format!("… {}", self.text);
        }
        format!("… {}  {}", output::elapsed(elapsed), self.text)
    }
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum LineState {
    /// The cursor is at the beginning of an empty line.
    #[default]
    Empty,
    /// A line of the answer is not complete.
    Partial,
    /// The status line is shown.
    Status,
}

enum Piece {
    Answer(String),
    /// The next piece of an answer begins a line.
    EndOfAnswer,
    Line(String),
    Status(Activity),
}

impl Default for Screen {
    fn default() -> Self {
        Self {
            streams_answer: std::io::stdout().is_terminal(),
            has_status: std::io::stderr().is_terminal(),
            state: Mutex::default(),
        }
    }
}

impl Screen {
    /// Prints a line of its own.
    pub(super) fn line(&self, text: impl Into<String>) {
        self.state.lock().show(Piece::Line(text.into()));
    }

    /// Runs something that shows events here, and keeps the time in the status line current meanwhile.
    pub(super) async fn watch<T>(&self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        let mut ticks = interval(TICK);
        loop {
            tokio::select! {
                result = &mut work => return result,
                _ = ticks.tick() => self.state.lock().draw_status(),
            }
        }
    }

    /// Holds all output until [`Screen::release`].
    pub(super) fn hold(&self) {
        let mut state = self.state.lock();
        state.end_line();
        state.held.get_or_insert_default();
    }

    pub(super) fn release(&self) {
        let mut state = self.state.lock();
        for piece in state.held.take().unwrap_or_default() {
            state.show(piece);
        }
        state.draw_status();
    }

    /// Remembers that a question showed what a call changes.
    pub(super) fn mark_shown(&self, call: &str) {
        self.state.lock().shown_in_question.insert(call.into());
    }

    pub(super) fn begin(&self) {
        let mut state = self.state.lock();
        *state = ScreenState { started: Some(Instant::now()), ..ScreenState::default() };
    }

    pub(super) fn event(&self, event: &AgentEvent) {
        let mut state = self.state.lock();
        match event {
            AgentEvent::Request { .. } => {
                state.show(Piece::EndOfAnswer);
                self.status(&mut state, "waiting for the model");
            }
            AgentEvent::Reasoning(_) => self.status(&mut state, "thinking"),
            AgentEvent::Text(text) if self.streams_answer => {
                state.show(Piece::Answer(visible::escape(text).into_owned()));
            }
            AgentEvent::Text(_)
            | AgentEvent::Usage { .. }
            | AgentEvent::Asked { .. }
            | AgentEvent::ChildEnded(_) => {}
            AgentEvent::Child { agent, event, .. } => self.child_event(&mut state, agent, event),
            AgentEvent::Todos(todos) => {
                for line in todo_lines(todos) {
                    state.show(Piece::Line(line));
                }
            }
            AgentEvent::Call { id, name, arguments } => {
                let text = format!("{} {}", tool_name(name), subject(arguments));
                let call = Activity::begin(text.trim_end());
                self.activity(&mut state, call.clone());
                state.calls.insert(id.clone(), call);
            }
            AgentEvent::Progress { id, text } => {
                let last = text.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("");
                if let Some(call) = state.calls.get(id) {
                    let text = format!("{}  {}", call.text, last.trim_end());
                    let call = Activity { text, since: call.since };
                    self.activity(&mut state, call);
                }
            }
            AgentEvent::Result { id, name, title, error, took, diff, .. } => {
                state.call_count += 1;
                let name = &tool_name(name);
                let call = state.calls.remove(id).map_or_else(|| name.clone(), |call| call.text);
                let error = error.as_ref().map(|(_, text)| text.as_str());
                state.show(Piece::Line(call_line((name, title), &call, *took, error)));
                if let Some(diff) = diff
                    && !state.shown_in_question.remove(id)
                {
                    state.show(Piece::Line(bounded_diff(diff)));
                }
                state.activity = None;
                if let Some(running) = state.calls.values().next_back().cloned() {
                    self.activity(&mut state, running);
                }
            }
            AgentEvent::Retry { attempt, wait, reason } => state.show(Piece::Line(format!(
                "{YELLOW}attempt {attempt} in {:.1} s:{PLAIN} {DIM}{}{PLAIN}",
                wait.as_secs_f64(),
                visible::escape_line(reason)
            ))),
            AgentEvent::Notice(text) => {
                state.show(Piece::Line(format!("{DIM}{}{PLAIN}", visible::escape_line(text))));
            }
        }
    }

    /// Shows what a sub-agent does, in the status line.
    fn child_event(&self, state: &mut ScreenState, agent: &str, event: &AgentEvent) {
        let agent = tool_name(agent);
        match event {
            AgentEvent::Call { name, arguments, .. } => {
                let text = format!("{agent}: {} {}", tool_name(name), subject(arguments));
                self.status(state, text.trim_end());
            }
            AgentEvent::Retry { reason, .. } => {
                self.status(state, &format!("{agent}: {}", visible::escape_line(reason)));
            }
            AgentEvent::Result { name, error: Some((_, error)), .. } => {
                let first = visible::escape_line(error.lines().next().unwrap_or_default());
                let name = tool_name(name);
                state.show(Piece::Line(format!("{DIM}  {agent}: {name}: {first}{PLAIN}")));
            }
            AgentEvent::Notice(text) => {
                let text = visible::escape_line(text);
                state.show(Piece::Line(format!("{DIM}  {agent}: {text}{PLAIN}")));
            }
            AgentEvent::Request { .. }
            | AgentEvent::Text(_)
            | AgentEvent::Reasoning(_)
            | AgentEvent::Progress { .. }
            | AgentEvent::Asked { .. }
            | AgentEvent::Result { .. }
            | AgentEvent::Usage { .. }
            | AgentEvent::Todos(_)
            | AgentEvent::Child { .. }
            | AgentEvent::ChildEnded(_) => {}
        }
    }

    fn status(&self, state: &mut ScreenState, text: &str) {
        // The same activity may be reported many times, such as each piece of reasoning.
        let current = state.activity.clone().filter(|activity| activity.text == text);
        self.activity(state, current.unwrap_or_else(|| Activity::begin(text)));
    }

    fn activity(&self, state: &mut ScreenState, activity: Activity) {
        if self.has_status {
            state.show(Piece::Status(activity));
        }
    }

    /// Shows what was held, and removes the status line.
    pub(super) fn finish(&self) {
        self.release();
        let mut state = self.state.lock();
        state.activity = None;
        state.end_line();
    }

    /// Ends a turn. Prints the answer unless it was streamed, what the turn used if there is a status line, and why the
    /// turn failed, if it did.
    pub(super) fn end(&self, report: &TurnReport) -> anyhow::Result<()> {
        self.finish();
        let state = self.state.lock();
        if !self.streams_answer && !report.text.is_empty() {
            output::print_bytes(format!("{}\n", report.text.trim_end()).as_bytes())?;
        }
        if self.has_status {
            let took = state.started.map_or(Duration::ZERO, |started| started.elapsed());
            output::note(&format!("{DIM}{}{PLAIN}", used(report, state.call_count, took)));
        }
        match describe(&report.end).1 {
            Some(_) if report.end == TurnEnd::Aborted => {
                output::note(&format!("{YELLOW}aborted{PLAIN}"));
            }
            Some(explanation) => output::error(&explanation),
            None => {}
        }
        Ok(())
    }
}

impl ScreenState {
    fn show(&mut self, piece: Piece) {
        if let Some(held) = &mut self.held {
            match (held.last_mut(), piece) {
                (Some(Piece::Answer(last)), Piece::Answer(more)) => last.push_str(&more),
                (_, Piece::Status(activity)) => self.activity = Some(activity),
                (_, piece) => held.push(piece),
            }
            return;
        }
        match piece {
            Piece::Answer(text) => {
                if !self.is_in_answer {
                    self.end_line();
                }
                if self.line == LineState::Status {
                    output::status("");
                }
                self.is_in_answer = true;
                self.activity = None;
                output::print_bytes(text.as_bytes()).ok();
                self.line =
                    if text.ends_with('\n') { LineState::Empty } else { LineState::Partial };
            }
            Piece::EndOfAnswer => self.end_line(),
            Piece::Line(text) => {
                self.end_line();
                self.is_in_answer = false;
                output::note(text.trim_end_matches('\n'));
            }
            Piece::Status(activity) => {
                self.activity = Some(activity);
                self.draw_status();
            }
        }
    }

    /// Shows what is happening, unless the screen belongs to something else. An answer is not interrupted.
    fn draw_status(&mut self) {
        if let Some(activity) = &self.activity
            && self.held.is_none()
            && self.line != LineState::Partial
        {
            output::status(&activity.line(Instant::now()));
            self.line = LineState::Status;
        }
    }

    /// Moves to the beginning of an empty line.
    fn end_line(&mut self) {
        match self.line {
            LineState::Empty => {}
            LineState::Partial => {
                output::print("\n").ok();
            }
            LineState::Status => output::status(""),
        }
        self.line = LineState::Empty;
    }
}

/// The to-do list, one line for each entry.
fn todo_lines(todos: &[TodoEntry]) -> Vec<String> {
    let line = |todo: &TodoEntry| {
        let shown: String = visible::escape_line(&todo.content).chars().take(MAX_SUBJECT).collect();
        match todo.status.as_str() {
            "completed" => format!("  {GREEN}✓{PLAIN} {DIM}{shown}{PLAIN}"),
            "in_progress" => format!("  {YELLOW}▸{PLAIN} {BOLD}{shown}{PLAIN}"),
            "cancelled" => format!("  {DIM}– {shown}{PLAIN}"),
            _ => format!("  {DIM}○{PLAIN} {shown}"),
        }
    };
    let mut lines: Vec<String> = todos.iter().take(MAX_TODOS).map(line).collect();
    if todos.len() > MAX_TODOS {
        lines.push(format!("  {DIM}… {} more{PLAIN}", todos.len() - MAX_TODOS));
    }
    lines
}

/// A tool's name as the model wrote it, made safe to show.
fn tool_name(name: &str) -> String {
    visible::escape_line(name).chars().take(MAX_SUBJECT).collect()
}

/// What a call is about: the most telling of its arguments.
fn subject(arguments: &str) -> String {
    let value = serde_json::from_str(arguments).unwrap_or(Value::Null);
    let known = SUBJECTS.iter().find_map(|key| value.get(key)?.as_str());
    let text = known.unwrap_or(arguments);
    let text = if text == "{}" { "" } else { text };
    let line = text.lines().next().unwrap_or_default();
    let more = if text.lines().count() > 1 { " …" } else { "" };
    let mut shown: String = visible::escape_line(line).chars().take(MAX_SUBJECT).collect();
    shown.push_str(more);
    shown
}

/// The line about a call that ended.
fn call_line(
    (name, title): (&str, &str),
    call: &str,
    took: Duration,
    error: Option<&str>,
) -> String {
    let time = format!("{:.1} s", took.as_secs_f64());
    let Some(error) = error else {
        let subject = call.strip_prefix(name).unwrap_or(call).trim();
        let shown: String = visible::escape_line(title).chars().take(MAX_SUBJECT).collect();
        let shown = if shown.trim().is_empty() { subject.to_string() } else { shown };
        return format!("{GREEN}•{PLAIN} {BOLD}{name}{PLAIN} {shown} {DIM}{time}{PLAIN}");
    };
    let first = visible::escape_line(error.lines().next().unwrap_or_default()).into_owned();
    format!("{RED}✗{PLAIN} {} {DIM}{time}{PLAIN}\n  {RED}{first}{PLAIN}", call.trim_end())
}

/// Returns the first [`MAX_DIFF_LINES`] lines of a diff, coloured, and how many more there are.
pub(super) fn bounded_diff(diff: &str) -> String {
    let lines: Vec<&str> = diff.lines().collect();
    let shown = lines.iter().take(MAX_DIFF_LINES).fold(String::new(), |mut all, line| {
        all.push_str(line);
        all.push('\n');
        all
    });
    let mut text = output::colour_diff(&shown, "  ");
    if lines.len() > MAX_DIFF_LINES {
        let more = output::count(lines.len() - MAX_DIFF_LINES, "more line");
        text.push_str(&format!("  {DIM}… {more}; `helve show` shows all{PLAIN}\n"));
    }
    text
}

/// What a turn used, in one line.
fn used(report: &TurnReport, calls: usize, took: Duration) -> String {
    let mut parts = Vec::new();
    if report.usage != Usage::default() {
        parts.push(tokens(&report.usage));
    }
    if let Some(cost) = report.cost {
        parts.push(dollars(cost));
    }
    if calls > 0 {
        parts.push(output::count(calls, "call"));
    }
    parts.push(format!("{:.1} s", took.as_secs_f64()));
    parts.join(" · ")
}

fn tokens(usage: &Usage) -> String {
    let input = usage.input + usage.cache_read + usage.cache_write;
    let cached = match usage.cache_read * 100 / input.max(1) {
        0 => String::new(),
        share => format!(" ({share} % cached)"),
    };
    let output = usage.output + usage.reasoning;
    format!("{} tokens in{cached}, {} out", thousands(input), thousands(output))
}

/// An amount of money, with more digits where it is small.
pub(super) fn dollars(amount: f64) -> String {
    if amount < 0.1 { format!("${amount:.4}") } else { format!("${amount:.2}") }
}

/// A number with separators: `12,345`.
pub(super) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_named_by_its_most_telling_argument() {
        for (arguments, expected) in [
            (r#"{"description":"Runs tests","command":"cargo test"}"#, "cargo test"),
            (r#"{"filePath":"a/b.rs","limit":3}"#, "a/b.rs"),
            (r#"{"command":"a\nb"}"#, "a …"),
            (r#"{"todos":[1]}"#, r#"{"todos":[1]}"#),
            ("{}", ""),
            ("{\"command\":\"a\\u001b[2J\"}", "a"),
            ("not json", "not json"),
        ] {
            assert!(
                subject(arguments).starts_with(expected),
                "{arguments}: {}",
                subject(arguments)
            );
            assert!(!subject(arguments).contains('\u{1b}'));
        }
    }

    #[test]
    fn nothing_from_a_model_controls_the_terminal() {
        let evil = "a\u{1b}]0;x\u{7}\u{9b}2J";
        let error = format!("{evil}\nmore");
        let call = format!("{} {}", tool_name(evil), subject(evil));
        for line in [
            call_line((&tool_name(evil), evil), &call, Duration::ZERO, None),
            call_line((&tool_name(evil), evil), &call, Duration::ZERO, Some(&error)),
            bounded_diff(&format!("+{evil}")),
        ] {
            assert!(!line.contains("\u{1b}]") && !line.contains(['\u{7}', '\u{9b}']), "{line:?}");
        }
    }

    #[test]
    fn the_todo_list_shows_what_is_done() {
        let todo = |content: &str, status: &str| TodoEntry {
            content: content.into(),
            status: status.into(),
        };
        let lines = todo_lines(&[todo("a", "completed"), todo("b", "in_progress"), todo("c", "x")]);
        assert!(lines[0].contains('✓') && lines[1].contains('▸') && lines[2].contains('○'));
        assert!(!todo_lines(&[todo("a\u{1b}[2J", "pending")])[0].contains("\u{1b}[2J"));
        assert_eq!(todo_lines(&vec![todo("a", "pending"); 100]).len(), MAX_TODOS + 1);
    }

    #[test]
    fn diffs_are_bounded() {
        let long: String = (0..100).map(|line| format!("+{line}\n")).collect();
        let shown = bounded_diff(&long);
        assert_eq!(shown.lines().count(), MAX_DIFF_LINES + 1);
        assert!(shown.contains("60 more lines"));
        assert_eq!(bounded_diff("+a\n").lines().count(), 1);
    }

    #[test]
    fn numbers_are_grouped() {
        for (number, text) in [(0, "0"), (999, "999"), (1000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(thousands(number), text);
        }
    }
}

//! The form that asks for approval: what would happen, and one choice. Clients show one dialog per field, so there is
//! only one field. Does no I/O.

use std::fmt::Write;

use helve_core::{Action, Ask, Part, Reply, Scope};
use helve_text::visible;
use rmcp::model::{
    ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema, PrimitiveSchemaDefinition,
    StringSchema,
};

/// Maximum length of the message in bytes. A longer one is cut, with a notice.
const MAX_MESSAGE: usize = 256 << 10;
/// Maximum length of the note for the model, in characters.
const MAX_NOTE: usize = 2000;
/// Name of the field with the decision.
const DECISION: &str = "decision";
/// Name of the field with a note for the model, in a form of its own.
const NOTE: &str = "note";
const NO: &str = "no";
/// This answer leads to a second form, with a field for the reason.
const NO_WITH_REASON: &str = "no, with a reason";

/// What a person is shown, and the answers offered.
#[derive(Debug)]
pub(crate) struct Form {
    pub(super) message: String,
    scopes: &'static [(Scope, &'static str)],
    /// Whether `once` is preselected.
    has_default: bool,
}

/// What an answer means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum FormAnswer {
    Final(Reply),
    /// The person says no and wants to give a reason.
    NoWithReason,
}

const ONCE: &[(Scope, &str)] = &[(Scope::Once, "once")];
const LASTING: &[(Scope, &str)] = &[
    (Scope::Once, "once"),
    (Scope::Session, "session"),
    (Scope::Project, "project"),
    (Scope::Everywhere, "everywhere"),
];

impl Form {
    pub(crate) fn of(ask: &Ask) -> Self {
        let lasting = ask.parts.iter().any(|part| part.remember_as.is_some());
        let scopes = if lasting { LASTING } else { ONCE };
        Self { message: message(ask), scopes, has_default: can_be_undone(ask) }
    }

    /// Returns a form that accepts every scope, for an answer that arrives after the call that asked has ended.
    pub(crate) fn any_scope() -> Self {
        Self { message: String::new(), scopes: LASTING, has_default: false }
    }

    pub(super) fn schema(&self) -> ElicitationSchema {
        let mut answers: Vec<String> = self.scopes.iter().map(|(_, name)| (*name).into()).collect();
        answers.extend([NO.into(), NO_WITH_REASON.into()]);
        // Some clients preselect the first answer.
        if !self.has_default {
            answers.rotate_right(2);
        }
        let description = match self.scopes.len() {
            1 => "Allow it this once, or not at all",
            _ => {
                "Allow it this once, for this session, for this project, in all your projects, or not at all"
            }
        };
        let builder =
            || EnumSchema::builder(answers.clone()).title("Allow").description(description);
        let decision = match self.has_default {
            true => builder().with_default("once").unwrap_or_else(|_| builder()),
            false => builder(),
        };
        let fields = [(DECISION.into(), PrimitiveSchemaDefinition::Enum(decision.build()))];
        ElicitationSchema::new(fields.into()).with_required(vec![DECISION.into()])
    }

    /// Maps an answer to a reply. Only a yes that was offered and spelled exactly counts.
    pub(crate) fn reply(&self, answer: &ElicitResult) -> Reply {
        match self.answer(answer) {
            FormAnswer::Final(reply) => reply,
            FormAnswer::NoWithReason => Reply::No { note: None },
        }
    }

    pub(super) fn answer(&self, answer: &ElicitResult) -> FormAnswer {
        let content = match answer.action {
            ElicitationAction::Accept => answer.content.as_ref(),
            // Some clients decline by themselves when nobody is there, so this may not be a person's no.
            ElicitationAction::Decline => return FormAnswer::Final(Reply::Declined),
            ElicitationAction::Cancel | _ => return FormAnswer::Final(Reply::Unanswered),
        };
        match content.and_then(|content| content[DECISION].as_str()).unwrap_or_default() {
            NO => FormAnswer::Final(Reply::No { note: content.and_then(note) }),
            NO_WITH_REASON => FormAnswer::NoWithReason,
            decision => {
                let scope = self.scopes.iter().find(|(_, name)| *name == decision);
                FormAnswer::Final(scope.map_or(Reply::Unanswered, |(scope, _)| Reply::Yes(*scope)))
            }
        }
    }

    /// Returns the form that asks why the person said no.
    pub(super) fn reason_schema() -> ElicitationSchema {
        let note = StringSchema::new().title("Reason").description("A message for the model");
        let fields = [(NOTE.into(), PrimitiveSchemaDefinition::String(note))];
        ElicitationSchema::new(fields.into()).with_required(vec![NOTE.into()])
    }

    /// Returns the refusal, with the reason from the second form.
    pub(super) fn reason(answer: Option<&ElicitResult>) -> Reply {
        let accepted = answer.filter(|answer| answer.action == ElicitationAction::Accept);
        Reply::No { note: accepted.and_then(|answer| answer.content.as_ref()).and_then(note) }
    }
}

fn note(content: &serde_json::Value) -> Option<String> {
    let note = content[NOTE].as_str().map(str::trim).filter(|note| !note.is_empty())?;
    Some(note.chars().take(MAX_NOTE).collect())
}

/// Whether the call only makes changes that `helve undo` takes back, so that pressing Enter too early does no harm.
fn can_be_undone(ask: &Ask) -> bool {
    ask.parts.iter().zip(&ask.actions).all(|(part, action)| {
        *action == Action::Allow || part.permission == "edit" && !part.via_shell
    }) && !ask.actions.is_empty()
}

/// Lists everything that would happen, with invisible characters escaped.
fn message(ask: &Ask) -> String {
    let mut text = String::from("Allow this?");
    if !ask.from.is_empty() {
        let from = ask.from.join(" › ");
        append(&mut text, format_args!(" (asked by {})", visible::escape_line(&from)));
    }
    for (index, part) in ask.parts.iter().enumerate() {
        append(&mut text, format_args!("\n{}", describe_part(part)));
        if let Some(reason) = ask.reasons.get(index).filter(|reason| !reason.is_empty()) {
            append(&mut text, format_args!(" ({})", visible::escape_line(reason)));
        }
        if let Some(remembered_pattern) = &part.remember_as
            && remembered_pattern.as_str() != part.subject()
        {
            let rule = visible::escape_line(remembered_pattern.as_str());
            append(&mut text, format_args!("\n  a lasting approval would add the rule: {rule}"));
        }
    }
    let preview = visible::escape(&ask.preview);
    if !preview.trim().is_empty() {
        append(&mut text, format_args!("\n\n{}", preview.trim_end()));
    }
    truncate(text)
}

fn describe_part(part: &Part) -> String {
    let subjects: Vec<_> =
        part.subjects.iter().map(|subject| visible::escape_line(subject)).collect();
    match subjects.as_slice() {
        [real, given @ ..] if !given.is_empty() => {
            format!("{} {real} (given as {})", part.permission, given.join(", "))
        }
        subjects => format!("{} {}", part.permission, subjects.join(", ")),
    }
}

fn append(text: &mut String, more: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    text.write_fmt(more).ok();
}

fn truncate(text: String) -> String {
    if text.len() <= MAX_MESSAGE {
        return text;
    }
    let shown = &text[..text.floor_char_boundary(MAX_MESSAGE)];
    let hidden = text.len() - shown.len();
    format!(
        "{shown}\n\n[{hidden} more bytes are not shown. Choose no if you need to see the rest before deciding.]"
    )
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use helve_core::Pattern;
    use serde_json::{Value, json};

    use super::*;

    fn ask() -> Ask {
        let edit = Part::new("edit", "src/a.rs").remember_as(Pattern::Wild("src/*".into()));
        let actions = vec![Action::Ask];
        Ask { parts: vec![edit], actions, ..Ask::default() }.preview("-old\n+new\u{202e}\x1b[2J\n")
    }

    fn check(ask: &Ask, expected: Expect) {
        let form = Form::of(ask);
        let schema = serde_json::to_string(&form.schema()).unwrap();
        expected.assert_eq(&format!("{}\n{schema}\n", form.message));
    }

    #[test]
    fn shows_the_parts_and_escapes_invisible_characters() {
        check(
            &ask(),
            expect![[r#"
                Allow this?
                edit src/a.rs
                  a lasting approval would add the rule: src/*

                -old
                +new\u{202e}\u{1b}[2J
                {"type":"object","properties":{"decision":{"type":"string","title":"Allow","description":"Allow it this once, for this session, for this project, in all your projects, or not at all","enum":["once","session","project","everywhere","no","no, with a reason"],"default":"once"}},"required":["decision"]}
            "#]],
        );
        let once = Ask { parts: vec![Part::new("bash", "rm \u{200b}x")], ..Ask::default() };
        check(
            &once,
            expect![[r#"
                Allow this?
                bash rm \u{200b}x
                {"type":"object","properties":{"decision":{"type":"string","title":"Allow","description":"Allow it this once, or not at all","enum":["no","no, with a reason","once"]}},"required":["decision"]}
            "#]],
        );
    }

    #[test]
    fn a_cut_message_says_so() {
        let long = Form::of(&ask().preview("é\n".repeat(200_000)));
        assert!(long.message.len() < MAX_MESSAGE + 200);
        assert!(
            long.message.ends_with("Choose no if you need to see the rest before deciding.]"),
            "{}",
            long.message
        );
    }

    #[test]
    fn only_an_offered_yes_counts() {
        let lasting = Form::of(&ask());
        let once = Form::of(&Ask { parts: vec![Part::new("bash", "x")], ..Ask::default() });
        let reply = |form: &Form, action: &str, content: Value| {
            let answer = json!({"action": action, "content": content});
            form.reply(&serde_json::from_value(answer).unwrap())
        };
        let no = Reply::No { note: None };
        for (form, action, content, expected) in [
            (&lasting, "accept", json!({"decision": "once"}), Reply::Yes(Scope::Once)),
            (&lasting, "accept", json!({"decision": "everywhere"}), Reply::Yes(Scope::Everywhere)),
            (&once, "accept", json!({"decision": "everywhere"}), Reply::Unanswered),
            (&lasting, "accept", json!({"decision": "Once"}), Reply::Unanswered),
            (&lasting, "accept", json!({"decision": true}), Reply::Unanswered),
            (&lasting, "accept", json!({}), Reply::Unanswered),
            (&lasting, "accept", json!(null), Reply::Unanswered),
            (&lasting, "accept", json!(["once"]), Reply::Unanswered),
            (&lasting, "accept", json!({"decision": "no"}), no.clone()),
            (
                &lasting,
                "accept",
                json!({"decision": "no", "note": " not that file "}),
                Reply::No { note: Some("not that file".into()) },
            ),
            (&lasting, "accept", json!({"decision": "no, with a reason"}), no),
            (&lasting, "decline", json!({"decision": "once"}), Reply::Declined),
            (&lasting, "cancel", json!({"decision": "once"}), Reply::Unanswered),
        ] {
            assert_eq!(reply(form, action, content.clone()), expected, "{action} {content}");
        }
    }
}

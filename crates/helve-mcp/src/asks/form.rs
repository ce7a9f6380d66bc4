//! The form that asks for approval: what would happen, and for how long to allow it. Pure.

use std::fmt::Write;

use helve_core::{Ask, Part, Reply, Scope};
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
/// Name of the field with a note for the model.
const NOTE: &str = "note";
/// Earlier name of that field, still accepted.
const OLD_NOTE: &str = "word";
const NO: &str = "no";

/// What a person is shown, and the answers offered.
#[derive(Debug)]
pub(crate) struct Form {
    pub(super) message: String,
    scopes: &'static [(Scope, &'static str)],
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
        Self { message: message(ask), scopes: if lasting { LASTING } else { ONCE } }
    }

    /// Returns a form that accepts every scope, for an answer to a question that this process no longer has.
    pub(crate) fn any_scope() -> Self {
        Self { message: String::new(), scopes: LASTING }
    }

    pub(super) fn schema(&self) -> ElicitationSchema {
        let mut answers: Vec<String> = self.scopes.iter().map(|(_, name)| (*name).into()).collect();
        answers.push(NO.into());
        let description = match self.scopes.len() {
            1 => "Allow it this once, or not at all",
            _ => {
                "Allow it this once, for this session, for this project, in all your projects, or not at all"
            }
        };
        let decision = EnumSchema::builder(answers).title("Allow").description(description).build();
        let note = StringSchema::new().title("Note").description("If no: a note for the model");
        let fields = [
            (DECISION.into(), PrimitiveSchemaDefinition::Enum(decision)),
            (NOTE.into(), PrimitiveSchemaDefinition::String(note)),
        ];
        ElicitationSchema::new(fields.into()).with_required(vec![DECISION.into()])
    }

    /// Maps an answer to a reply. Only a yes that was offered and spelled exactly counts.
    pub(crate) fn reply(&self, answer: ElicitResult) -> Reply {
        if answer.action != ElicitationAction::Accept {
            return Reply::No { note: None };
        }
        let content = answer.content.unwrap_or_default();
        let decision = content[DECISION].as_str().unwrap_or_default();
        if decision == NO {
            let note = [NOTE, OLD_NOTE].into_iter().find_map(|name| content[name].as_str());
            let note = note.map(str::trim).filter(|note| !note.is_empty());
            return Reply::No { note: note.map(|note| note.chars().take(MAX_NOTE).collect()) };
        }
        let scope = self.scopes.iter().find(|(_, name)| *name == decision);
        scope.map_or(Reply::Unanswered, |(scope, _)| Reply::Yes(*scope))
    }
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
        Ask { parts: vec![edit], ..Ask::default() }.preview("-old\n+new\u{202e}\x1b[2J\n")
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
            {"type":"object","properties":{"decision":{"type":"string","title":"Allow","description":"Allow it this once, for this session, for this project, in all your projects, or not at all","enum":["once","session","project","everywhere","no"]},"note":{"type":"string","title":"Note","description":"If no: a note for the model"}},"required":["decision"]}
        "#]],
        );
        let once = Ask { parts: vec![Part::new("bash", "rm \u{200b}x")], ..Ask::default() };
        check(
            &once,
            expect![[r#"
            Allow this?
            bash rm \u{200b}x
            {"type":"object","properties":{"decision":{"type":"string","title":"Allow","description":"Allow it this once, or not at all","enum":["once","no"]},"note":{"type":"string","title":"Note","description":"If no: a note for the model"}},"required":["decision"]}
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
            form.reply(serde_json::from_value(answer).unwrap())
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
            (
                &lasting,
                "accept",
                json!({"decision": "no", "word": "the old name of the field"}),
                Reply::No { note: Some("the old name of the field".into()) },
            ),
            (&lasting, "decline", json!({"decision": "once"}), no.clone()),
            (&lasting, "cancel", json!({"decision": "once"}), no),
        ] {
            assert_eq!(reply(form, action, content.clone()), expected, "{action} {content}");
        }
    }
}

//! The form for a question from the model: options to choose from, and a field for a free-text answer. Does no I/O.

use helve_core::{Answer, AskKey, Question};
use helve_text::visible;
use rmcp::model::{
    ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema, EnumSchema,
    PrimitiveSchemaDefinition, StringSchema,
};
use serde_json::Value;

/// Name of the field with the chosen options.
const CHOICE: &str = "choice";
/// Name of the field with a free-text answer.
const TEXT: &str = "answer";
/// Maximum length of an answer that a person writes, in characters.
const MAX_TEXT: usize = 10_000;
/// Maximum length of the preview shown above the question, in bytes.
const MAX_PREVIEW: usize = 128 << 10;

pub(super) fn request(question: &Question) -> ElicitRequestParams {
    ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: message(question),
        requested_schema: schema(question),
    }
}

/// Identifies a question, for clients that send the answer with a later request.
pub(super) fn key(question: &Question) -> AskKey {
    let labels = question.options.iter().map(|option| option.label.as_str());
    let parts: Vec<&str> = [question.question.as_str()].into_iter().chain(labels).collect();
    AskKey(format!("question-{}", blake3::hash(parts.join("\0").as_bytes()).to_hex()))
}

/// The question and its options, with invisible characters escaped.
fn message(question: &Question) -> String {
    let mut text = String::new();
    let preview = visible::escape(&question.preview);
    if !preview.trim().is_empty() {
        let shown = &preview[..preview.floor_char_boundary(MAX_PREVIEW)];
        let cut = if shown.len() < preview.len() { "\n[cut]" } else { "" };
        text.push_str(&format!("{}{cut}\n\n", shown.trim_end()));
    }
    text.push_str(visible::escape(&question.question).trim_end());
    if !question.from.is_empty() {
        let from = question.from.join(" › ");
        text.push_str(&format!(" (asked by {})", visible::escape_line(&from)));
    }
    for option in &question.options {
        text.push_str(&format!("\n- {}", visible::escape_line(&option.label)));
        if !option.description.trim().is_empty() {
            text.push_str(&format!(": {}", visible::escape_line(&option.description)));
        }
    }
    text
}

fn schema(question: &Question) -> ElicitationSchema {
    let mut fields = Vec::new();
    let mut required = Vec::new();
    let title = match question.header.trim() {
        "" => "Answer".to_string(),
        header => visible::escape_line(header).into_owned(),
    };
    if !question.options.is_empty() {
        let labels = question.options.iter().map(|option| option.label.clone()).collect();
        let choices = EnumSchema::builder(labels).title(title.clone());
        let choices = match question.allows_several {
            true => choices.multiselect().build(),
            false => choices.build(),
        };
        fields.push((CHOICE.to_string(), PrimitiveSchemaDefinition::Enum(choices)));
        if !question.accepts_text {
            required.push(CHOICE.to_string());
        }
    }
    if question.accepts_text {
        let own = match question.options.is_empty() {
            true => StringSchema::new().title(title),
            false => StringSchema::new().title("Your own answer"),
        };
        fields.push((TEXT.to_string(), PrimitiveSchemaDefinition::String(own)));
    }
    ElicitationSchema::new(fields.into_iter().collect()).with_required(required)
}

/// Maps the client's answer. Only options that were offered count; `None` if the person does not answer.
pub(super) fn answer(question: &Question, answer: ElicitResult) -> Option<Answer> {
    if answer.action != ElicitationAction::Accept {
        return None;
    }
    let content = answer.content.unwrap_or_default();
    let is_offered =
        |label: &&str| question.options.iter().any(|option| option.label.as_str() == *label);
    let chosen: Vec<&str> = match &content[CHOICE] {
        Value::String(label) => vec![label.as_str()],
        Value::Array(labels) => labels.iter().filter_map(Value::as_str).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => Vec::new(),
    };
    let max_choices = if question.allows_several { question.options.len() } else { 1 };
    let mut answers: Vec<String> =
        chosen.into_iter().filter(is_offered).take(max_choices).map(String::from).collect();
    let text = content[TEXT].as_str().map(str::trim).filter(|text| !text.is_empty());
    if let Some(text) = text.filter(|_| question.accepts_text) {
        answers.push(text.chars().take(MAX_TEXT).collect());
    }
    Some(Answer(answers))
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use helve_core::QuestionOption;
    use serde_json::json;

    use super::*;

    fn question(allows_several: bool, accepts_text: bool) -> Question {
        let option = |label: &str, description: &str| QuestionOption {
            label: label.into(),
            description: description.into(),
        };
        Question {
            header: "Colour".into(),
            question: "Which\u{202e} one?".into(),
            options: vec![option("red", "warm"), option("blue", "")],
            allows_several,
            accepts_text,
            from: vec!["explore".into()],
            ..Question::default()
        }
    }

    #[test]
    fn options_become_a_form() {
        let shown = |question: &Question| {
            format!(
                "{}\n{}\n",
                message(question),
                serde_json::to_string(&schema(question)).unwrap()
            )
        };
        expect![[r#"
            Which\u{202e} one? (asked by explore)
            - red: warm
            - blue
            {"type":"object","properties":{"choice":{"type":"string","title":"Colour","enum":["red","blue"]}},"required":["choice"]}
        "#]].assert_eq(&shown(&question(false, false)));
        expect![[r#"
            Which\u{202e} one? (asked by explore)
            - red: warm
            - blue
            {"type":"object","properties":{"answer":{"type":"string","title":"Your own answer"},"choice":{"type":"array","title":"Colour","items":{"type":"string","enum":["red","blue"]}}},"required":[]}
        "#]].assert_eq(&shown(&question(true, true)));
    }

    #[test]
    fn only_offered_options_count() {
        let (one, several) = (question(false, false), question(true, true));
        for (question, action, content, expected) in [
            (&one, "accept", json!({"choice": "red"}), Some(vec!["red"])),
            (&one, "accept", json!({"choice": "green", "answer": "x"}), Some(vec![])),
            (&one, "accept", json!({"choice": ["red", "blue"]}), Some(vec!["red"])),
            (&one, "decline", json!({"choice": "red"}), None),
            (&one, "cancel", json!(null), None),
            (&several, "accept", json!({"choice": ["red", "blue"]}), Some(vec!["red", "blue"])),
            (
                &several,
                "accept",
                json!({"choice": ["red", 3], "answer": " x "}),
                Some(vec!["red", "x"]),
            ),
            (&several, "accept", json!({}), Some(vec![])),
            (&several, "accept", json!("red"), Some(vec![])),
        ] {
            let given = json!({"action": action, "content": content});
            let given = answer(question, serde_json::from_value(given).unwrap());
            let expected = expected
                .map(|labels| Answer(labels.iter().map(|label| label.to_string()).collect()));
            assert_eq!(given, expected, "{action} {content}");
        }
    }
}

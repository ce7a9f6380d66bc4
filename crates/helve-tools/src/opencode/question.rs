//! `question`: asks the person.

use helve_core::ForeignParameters;
use helve_core::question::{Answer, Question, QuestionOption};
use helve_core::{
    Ask, Audience, ErrorKind, Tool, ToolContext, ToolError, ToolOutput, ToolProperties,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::foreign;
use crate::words::count;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    #[schemars(length(min = 1, max = 10))]
    questions: Vec<QuestionArgs>,
}

#[derive(Deserialize, JsonSchema)]
struct QuestionArgs {
    /// The whole question
    #[schemars(length(min = 1, max = 2000))]
    question: String,
    /// A very short label, at most 30 characters
    #[serde(default)]
    header: String,
    /// The answers to choose from
    #[serde(default)]
    #[schemars(length(max = 20))]
    options: Vec<OptionArgs>,
    /// Whether several options can be chosen
    #[serde(default)]
    multiple: bool,
    /// Whether the user can write an answer of their own, default true
    custom: Option<bool>,
}

#[derive(Deserialize, JsonSchema)]
struct OptionArgs {
    /// One to five words
    #[schemars(length(min = 1, max = 200))]
    label: String,
    /// What it means to choose this
    #[serde(default)]
    description: String,
}

pub(super) struct QuestionTool;

impl Tool for QuestionTool {
    type Args = Args;
    const NAME: &'static str = "question";
    const ABOUT: &'static str = include_str!("question.txt");
    const FOREIGN: ForeignParameters = foreign::QUESTION;
    const PROPERTIES: ToolProperties =
        ToolProperties { read_only: true, ..ToolProperties::SESSION_STATE_ONLY };
    const AUDIENCE: Audience = Audience { needs_person: true, ..Audience::EVERYONE };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        ctx.ask(Ask::to_use(Self::NAME)).await?;
        if !ctx.takes_questions() {
            return Err(nobody());
        }
        let number = args.questions.len();
        let mut answers: Vec<(String, Answer)> = Vec::new();
        for asked in args.questions {
            let question = question(asked);
            let text = question.question.clone();
            match ctx.question(question).await? {
                Some(answer) => answers.push((text, answer)),
                None => return Err(dismissed()),
            }
        }
        let pairs: Vec<String> = answers
            .iter()
            .map(|(question, answer)| format!("\"{question}\"=\"{}\"", answer_text(answer)))
            .collect();
        let text = format!(
            "User has answered your questions: {}. You can now continue with the user's answers in mind.",
            pairs.join(", ")
        );
        let lists: Vec<_> = answers.into_iter().map(|(_, answer)| answer.0).collect();
        let title = format!("Asked {}", count(number as u64, "question", "questions"));
        Ok(ToolOutput::text(title, text).with_metadata("answers", serde_json::json!(lists)))
    }
}

fn question(args: QuestionArgs) -> Question {
    let option = |option: OptionArgs| QuestionOption {
        label: option.label,
        description: option.description,
    };
    let options: Vec<QuestionOption> = args.options.into_iter().map(option).collect();
    Question {
        header: args.header,
        question: args.question,
        // Without options, an answer can only be written.
        accepts_text: args.custom.unwrap_or(true) || options.is_empty(),
        allows_several: args.multiple,
        options,
        ..Question::default()
    }
}

fn answer_text(answer: &Answer) -> String {
    match answer.0.is_empty() {
        true => "Unanswered".into(),
        false => answer.0.join(", "),
    }
}

/// The error if the person does not want to answer.
pub(super) fn dismissed() -> ToolError {
    ToolError::new(ErrorKind::Rejected, "The user dismissed this question.")
}

/// The error where nobody can be asked.
pub(super) fn nobody() -> ToolError {
    ToolError::new(ErrorKind::Failed, "Nobody can answer questions here.")
        .hint("Decide yourself, and say in your answer what you assumed.")
}

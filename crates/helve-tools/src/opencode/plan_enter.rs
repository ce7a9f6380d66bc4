//! `plan_enter`: asks the person whether the plan agent should take over.

use helve_core::question::{Question, QuestionOption};
use helve_core::{
    Ask, Audience, ErrorKind, Handover, Tool, ToolContext, ToolError, ToolOutput, ToolProperties,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::question::{dismissed, nobody};
use crate::words::plan::{PLAN_MODE, plan_file, plan_message};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

pub(super) struct PlanEnter;

const YES: &str = "Yes";
const NO: &str = "No";

impl Tool for PlanEnter {
    type Args = Args;
    const NAME: &'static str = "plan_enter";
    const ABOUT: &'static str = include_str!("plan_enter.txt");
    const PROPERTIES: ToolProperties = ToolProperties::SESSION_STATE_ONLY;
    const AUDIENCE: Audience =
        Audience { needs_person: true, flag: Some(PLAN_MODE), ..Audience::EVERYONE };

    async fn run(&self, _args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        ctx.ask(Ask::to_use(Self::NAME)).await?;
        let question = yes_or_no(
            "Plan Agent",
            "Plan first? The plan agent changes no files except its plan.",
            ["Plan before anything is changed", "Go on without a plan"],
        );
        if !is_yes(ctx, question).await? {
            // The same agent continues to work.
            let text = "The user wants you to go on without a plan.";
            return Err(ToolError::new(ErrorKind::Denied, text));
        }
        let file = plan_file(&ctx.call.session);
        let mut output = ToolOutput::text("plan", "The user agreed. The plan agent takes over.");
        output.handover = Some(Handover { agent: "plan".into(), message: plan_message(&file) });
        Ok(output)
    }
}

/// A question with two answers and no others.
pub(super) fn yes_or_no(header: &str, question: &str, [yes, no]: [&str; 2]) -> Question {
    let option = |label: &str, description: &str| QuestionOption {
        label: label.into(),
        description: description.into(),
    };
    Question {
        header: header.into(),
        question: question.into(),
        options: vec![option(YES, yes), option(NO, no)],
        ..Question::default()
    }
}

/// Asks a question with two answers.
pub(super) async fn is_yes(ctx: &ToolContext, question: Question) -> Result<bool, ToolError> {
    if !ctx.takes_questions() {
        return Err(nobody());
    }
    let answer = ctx.question(question).await?.ok_or_else(dismissed)?;
    Ok(answer.0.first().is_some_and(|answer| answer == YES))
}

//! `plan_exit`: shows the plan to the person, and asks whether the build agent should carry it out.

use helve_core::{
    Audience, ErrorKind, Handover, Tool, ToolContext, ToolError, ToolOutput, ToolProperties,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::plan_enter::{is_yes, yes_or_no};
use super::question::nobody;
use crate::ops::plan::read_plan;
use crate::words::plan::{PLAN_MODE, approved_message, plan_file};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {}

pub(super) struct PlanExit;

impl Tool for PlanExit {
    type Args = Args;
    const NAME: &'static str = "plan_exit";
    const ABOUT: &'static str = include_str!("plan_exit.txt");
    const PROPERTIES: ToolProperties = ToolProperties::SESSION_STATE_ONLY;
    const AUDIENCE: Audience =
        Audience { needs_person: true, flag: Some(PLAN_MODE), ..Audience::EVERYONE };

    async fn run(&self, _args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        if !ctx.takes_questions() {
            return Err(nobody());
        }
        let file = plan_file(&ctx.call.session);
        let plan = read_plan(ctx, Self::NAME, &file).await?;
        if plan.trim().is_empty() {
            let text = format!("There is no plan in {file} yet.");
            return Err(ToolError::new(ErrorKind::NotFound, text)
                .hint("Write the plan to this file, then call again."));
        }
        let mut question = yes_or_no(
            "Build Agent",
            &format!("The plan in {file} is complete. Carry it out with the build agent?"),
            ["Switch to the build agent and carry out the plan", "Stay with the plan agent"],
        );
        question.preview = plan;
        if !is_yes(ctx, question).await? {
            let text = "The user does not want the plan carried out yet.";
            return Err(ToolError::new(ErrorKind::Rejected, text)
                .hint("Wait for what they say about the plan."));
        }
        let mut output = ToolOutput::text("plan approved", "The user approved the plan.");
        output.handover =
            Some(Handover { agent: "build".into(), message: approved_message(&file) });
        Ok(output)
    }
}

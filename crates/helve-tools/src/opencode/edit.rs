//! `edit`: replaces one piece of text in a file.

use helve_core::{Tool, ToolContext, ToolError, ToolOutput, Traits};
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::settings::Settings;
use super::multiedit::{Replacement, run};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The file to change
    #[schemars(length(min = 1))]
    file_path: String,
    /// The text to replace
    old_string: String,
    /// The text to put in its place
    new_string: String,
    /// Replace every place instead of the only one
    #[serde(default)]
    replace_all: bool,
}

pub(super) struct Edit {
    pub(super) settings: Settings,
}

impl Tool for Edit {
    type Args = Args;
    const NAME: &'static str = "edit";
    const ABOUT: &'static str = include_str!("edit.txt");
    const TRAITS: Traits = Traits::MUTATES;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Args { file_path, old_string, new_string, replace_all } = args;
        let replacement = Replacement { file_path: None, old_string, new_string, replace_all };
        run(ctx, self.settings, Self::NAME, &file_path, vec![replacement]).await
    }
}

//! The default dialect: the tools and formats of opencode.

mod apply_patch;
mod bash;
mod batch;
mod codesearch;
mod edit;
mod foreign;
mod glob;
mod grep;
mod invalid;
mod list;
mod list_mcp_resource_templates;
mod list_mcp_resources;
mod lsp;
mod multiedit;
mod plan_enter;
mod plan_exit;
mod process;
mod question;
mod read;
mod read_mcp_resource;
mod skill;
mod task;
mod todoread;
mod todowrite;
mod webfetch;
mod websearch;
mod write;

use std::sync::Arc;
use std::time::Duration;

use helve_core::language::CodeIntelligence;
use helve_core::web::SearchKind;
use helve_core::{Agents, AnyTool, Dialect, Media, Resources};
use helve_text::cut::Limits;

use crate::EditSettings;
use crate::ops::skill::{SkillInfo, SkillSource};
use crate::words::change::EditTerms;
use crate::words::engine::EngineWords;
use crate::words::search::SearchTerms;
use crate::words::shell::ShellTerms;

/// Limits and wording.
pub static DIALECT: Dialect =
    Dialect { name: "opencode", limits: Limits { lines: 2000, bytes: 50 << 10 }, words: &WORDS };

static WORDS: EngineWords = EngineWords {
    delegate_saved: "Have a sub-agent search it with grep and read (task tool), so that it does not fill this conversation.",
    search_saved: "Search it with grep, or read it with offset and limit.",
    read_part: "Read the file in parts with offset and limit.",
};
const EDIT_TERMS: EditTerms =
    EditTerms { old: "oldString", new: "newString", all: Some("replaceAll") };
const SEARCH_TERMS: SearchTerms =
    SearchTerms { path: "path", ignored: Some("ignored"), literal: Some("literal") };
const SHELL_TERMS: ShellTerms = ShellTerms {
    folder: "workdir",
    timeout: "timeout",
    background: "run_in_background",
    terminal: "terminal: true",
    outside_sandbox: "outside_sandbox: true",
    run: "bash",
    process: "the process tool",
    read: "action \"read\"",
    edit: "edit or write",
};

/// Returns every tool of the dialect with default settings. `media` decodes pictures and documents for `read`.
pub fn tools(media: Arc<dyn Media>) -> Vec<Arc<dyn AnyTool>> {
    tools_with(media, EditSettings::DEFAULT, DEFAULT_TIMEOUT)
}

/// Timeout of a command if neither the configuration nor the call sets one.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(120);

/// Returns every tool of the dialect with the user's settings. `timeout` is the default timeout of commands, which the
/// schema mentions.
pub fn tools_with(
    media: Arc<dyn Media>,
    settings: EditSettings,
    timeout: Duration,
) -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(apply_patch::ApplyPatch { settings }),
        Arc::new(bash::BashTool { timeout }),
        Arc::new(batch::Batch),
        Arc::new(edit::EditTool { settings }),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
        Arc::new(invalid::Invalid),
        Arc::new(list::List),
        Arc::new(multiedit::MultiEdit { settings }),
        Arc::new(plan_enter::PlanEnter),
        Arc::new(plan_exit::PlanExit),
        Arc::new(process::ProcessTool),
        Arc::new(question::QuestionTool),
        Arc::new(read::Read { media }),
        Arc::new(todoread::TodoRead),
        Arc::new(todowrite::TodoWrite),
        Arc::new(write::Write { settings }),
    ]
}

/// Returns the tool that loads skills, for workspaces that have some. Its description lists those in `listed`.
pub fn skill_tool(listed: Vec<SkillInfo>, source: Arc<dyn SkillSource>) -> Arc<dyn AnyTool> {
    Arc::new(skill::SkillTool { listed, source })
}

/// Returns the tool that asks language servers.
pub fn language_tool(
    languages: Arc<dyn CodeIntelligence>,
    settings: EditSettings,
) -> Arc<dyn AnyTool> {
    Arc::new(lsp::Lsp { languages, settings })
}

/// Returns the tool that starts sub-agents.
pub fn task_tool(agents: Arc<dyn Agents>) -> Arc<dyn AnyTool> {
    Arc::new(task::TaskTool { agents })
}

/// Returns the tools for MCP resources, for workspaces with a server that offers some.
pub fn resource_tools(
    servers: &Arc<dyn Resources>,
    media: &Arc<dyn Media>,
) -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(list_mcp_resources::ListMcpResources { servers: servers.clone() }),
        Arc::new(list_mcp_resource_templates::ListMcpResourceTemplates {
            servers: servers.clone(),
        }),
        Arc::new(read_mcp_resource::ReadMcpResource {
            servers: servers.clone(),
            media: media.clone(),
        }),
    ]
}

/// Returns the tools for the web: `webfetch`, and one for each kind of search that is configured.
pub fn web_tools(media: &Arc<dyn Media>, searches: &[SearchKind]) -> Vec<Arc<dyn AnyTool>> {
    let mut tools: Vec<Arc<dyn AnyTool>> =
        vec![Arc::new(webfetch::WebFetch { media: media.clone() })];
    for kind in searches {
        tools.push(match kind {
            SearchKind::Web => Arc::new(websearch::WebSearch),
            SearchKind::Code => Arc::new(codesearch::CodeSearch),
        });
    }
    tools
}

#[cfg(test)]
mod tests;

#[cfg(test)]
fn check(fixture: &str, expected: expect_test::Expect) {
    helve_testkit::check(&DIALECT, tools(Arc::new(helve_core::NoMedia)), fixture, expected);
}

//! The default dialect: the tools and formats of opencode.

mod apply_patch;
mod bash;
mod change;
mod edit;
mod glob;
mod grep;
mod invalid;
mod list;
mod list_mcp_resource_templates;
mod list_mcp_resources;
mod multiedit;
mod process;
mod read;
mod read_mcp_resource;
mod todoread;
mod todowrite;
mod undo;
mod words;
mod write;

pub use change::settings::{Settings, SyntaxCheck};

use std::sync::Arc;

use helve_core::{AnyTool, Dialect, Media, Resources};
use helve_text::cut::Limits;

/// Tools that a host without processes does not offer.
pub const NEEDS_PROCESSES: [&str; 2] = ["bash", "process"];

/// Limits and words.
pub static DIALECT: Dialect = Dialect {
    name: "opencode",
    limits: Limits { lines: 2000, bytes: 50 << 10 },
    words: &words::Opencode,
};

/// The difference between two states of a file, as previews show it.
pub fn difference(shown: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    words::change::difference(shown, before, after).text
}

/// Every tool of the dialect. `media` decodes what `read` finds that is not text.
pub fn tools(media: Arc<dyn Media>) -> Vec<Arc<dyn AnyTool>> {
    tools_with(media, Settings::USUAL)
}

/// Every tool of the dialect, with what a user chose.
pub fn tools_with(media: Arc<dyn Media>, settings: Settings) -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(apply_patch::ApplyPatch { settings }),
        Arc::new(bash::Bash),
        Arc::new(edit::Edit { settings }),
        Arc::new(glob::Glob),
        Arc::new(grep::Grep),
        Arc::new(invalid::Invalid),
        Arc::new(list::List),
        Arc::new(multiedit::MultiEdit { settings }),
        Arc::new(process::Process),
        Arc::new(read::Read { media }),
        Arc::new(todoread::TodoRead),
        Arc::new(todowrite::TodoWrite),
        Arc::new(undo::Undo { settings }),
        Arc::new(write::Write { settings }),
    ]
}

/// The tools for what MCP servers hold besides tools, for a folder where one of them holds something.
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

#[cfg(test)]
mod tests;

#[cfg(test)]
fn check(fixture: &str, expected: expect_test::Expect) {
    helve_testkit::check(&DIALECT, tools(Arc::new(helve_core::NoMedia)), fixture, expected);
}

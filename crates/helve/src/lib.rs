//! The tool layer of a coding agent.
//!
//! A [`Toolbox`] combines a folder, the tools that work in it, and a person who answers when a tool needs
//! permission:
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let data = tempfile::tempdir()?;
//! # std::fs::write(folder.path().join("hello.txt"), "Hello\n")?;
//! use serde_json::json;
//!
//! let toolbox = helve::Toolbox::builder().dir(folder.path()).data(data.path()).build().await?;
//! for tool in toolbox.tools().specs() {
//!     println!("{}: {}", tool.name, tool.about);
//! }
//! let result = toolbox.call("read", json!({"filePath": "hello.txt"})).await;
//! assert!(result.outcome?.joined_text().contains("00001| Hello"));
//! toolbox.close().await;
//! # Ok(())
//! # }
//! ```

mod agent;
mod attach;
mod build;
mod child_turns;
mod commands;
mod default_session;
mod defaults;
mod environment;
mod error;
mod export;
mod instructions;
mod keys;
#[cfg(feature = "languages")]
pub mod languages;
mod models;
#[cfg(not(feature = "languages"))]
mod no_languages;
#[cfg(not(feature = "scripts"))]
mod no_scripts;
#[cfg(not(feature = "servers"))]
mod no_servers;
mod notes;
#[cfg(feature = "scripts")]
mod plugin_requests;
mod program_context;
mod providers;
mod read_config;
mod run;
#[cfg(feature = "scripts")]
pub mod scripts;
mod serve;
mod shell;
mod skills;
mod stored;
mod subagents;
mod title;
mod toolbox;
mod tracker;
mod tree;
mod trust;
mod web;

pub use build::Builder;
pub use commands::{CommandError, CommandInfo, CommandKind, FilledCommand};
pub use error::BuildError;
pub use export::{ExportedSession, totals_json};
pub use keys::{KeyOrigin, ProviderKeyInfo};
pub use models::{DEFAULT_CONTEXT_WINDOW, DEFAULT_OUTPUT_TOKENS, KnownModel, ModelError, model_at};
pub use run::{AgentError, AgentSession, ContextReport, TurnInput, TurnOptions, TurnReport};
pub use shell::{KEEPER, TOKEN_VARIABLE};
pub use stored::{
    SessionError, SessionStatistics, StoredSession, ToolTotals, TurnRedone, TurnUndone,
};
pub use toolbox::{Explanation, Toolbox};
pub use trust::{TrustChange, TrustState};

pub use helve_agent as agent_loop;
pub use helve_core::confine::Sandbox;
pub use helve_core::event::{CallOutcome, EventDelivery, EventKind, Progress};
pub use helve_core::hook::PlannedCommand;
pub use helve_core::journal;
pub use helve_core::paths;
pub use helve_core::process::{SandboxSupport, Support};
pub use helve_core::shell::AUTO_BACKGROUND;
pub use helve_core::store::{ApprovalScope, StoreError, StoredApproval};
pub use helve_core::transcript::{
    ForkOrigin, ModelTotals, SearchHit, TokenCounts, TranscriptInfo, Transcripts,
};
pub use helve_core::{
    Act, Action, AgentInfo, AlwaysYes, Answer, AnyTool, Ask, Audience, BoxFuture, CallMode,
    CallRef, CallState, CallStatus, Caller, ChildReport, ChildState, Content, Engine, ErrorKind,
    Event, Files, ForeignParameters, Grant, Hook, Host, Input, InputSpec, Machine, MachineError,
    Media, Memory, Nobody, Origin, Part, Pattern, Person, Question, QuestionOption, Reason, Reply,
    Resolved, Rule, Saved, SchemaFlavour, Scope, ServerError, Session, Slot, Source, Store,
    Subscription, Tool, ToolCall, ToolContext, ToolError, ToolOutput, ToolProperties, ToolResult,
    ToolSet, ToolSpec, Verdict, adapt_schema,
};
pub use helve_ext::config;
#[cfg(feature = "servers")]
pub use helve_ext::servers;
pub use helve_machine::keep_freed_memory;
pub use helve_mcp::{BadToken, HttpServer, MetadataMode, ServeError, Token};
pub use helve_store::{SavedToken, TokenOrigin, load_or_create_token, read_token};
pub use helve_text::visible;
pub use helve_tools::{PLAN_MODE, reason};
/// The crates that define the types of this interface. What is not re-exported above, such as the requests and results
/// of a [`Machine`], has its name here.
pub use {helve_core, helve_policy, helve_text};

/// Compiles the Rust snippets of the README and the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
#[doc = include_str!("../../../docs/library.md")]
pub struct Guide;

/// Turns this process into a keeper, which looks after the processes that commands start.
///
/// A program that contains the library is its own keeper by default: it starts itself again, and becomes a keeper
/// before its `main` runs. Where that is not possible (the library is loaded as a plugin of another program, or the C
/// library is not glibc), a program passes its path to [`Builder::keeper`], and its `main` calls this function before
/// anything else if the first argument is [`KEEPER`].
pub fn keeper() -> std::process::ExitCode {
    helve_machine::keeper::main()
}

/// Returns a unified diff between two states of a file, headed by `display_path`. `None` means that the file does not
/// exist.
pub fn difference(display_path: &str, before: Option<&[u8]>, after: Option<&[u8]>) -> String {
    helve_tools::difference(display_path, before, after)
}

/// Encodes bytes as base64, for use in JSON.
pub fn base64(bytes: &[u8]) -> String {
    use base64::Engine;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

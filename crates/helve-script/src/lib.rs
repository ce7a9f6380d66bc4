//! Custom tools and plugins written in TypeScript or JavaScript, run on the user's bun or node.
//!
//! ```text
//! FoundScripts    {tool,plugin}(s)/*.{ts,js,mjs} of the config folders, and `plugin` of the configuration
//!  ScriptSources  each file with everything it imports, found by a text scan; its hash is part of the trusted digest
//! - trust -       a project's files must be trusted before the steps below
//!  Bundle         types stripped, specifiers rewritten; written into the cache under a hash of the result
//!  ScriptRuntime  one helper process (bun, else node) per workspace, through `Processes::connect`; JSON lines
//!  ScriptListing  ids, descriptions, schemas; stored under the hash of the sources, so that listing tools starts no process
//!  ScriptTool     an `AnyTool` in `Layer::Config` (plugins: `Layer::Plugin`); its id is the permission that is asked for
//! ```
//!
//! The scan finds too much rather than too little, and does not parse, because the files are not trusted yet. A file that
//! the scan did not find cannot be imported. Before each call the files are read again. If the user's files changed, they
//! are loaded again; if a project's files changed, they are refused until they are trusted again.
//!
//! Messages use descriptors 3 and 4 of the helper process. Its standard output is redirected to its standard error. If the
//! process crashes, its running calls fail, and the next call starts another process.
//!
//! Tools may also be programs in any language, which run once per call (`ScriptKind::Program`). Commands may run before
//! and after calls, in Claude Code's hook format (`CommandHooks`).
//!
//! Packages are never installed. A symbolic link next to the generated module leads to an installed package; for a missing
//! package, the error says how to install it.

mod bundle;
mod cache;
mod command_hook;
mod disk;
mod found;
mod hooks;
mod program;
mod resolve;
mod runtime;
mod scan;
mod script;
mod scripts;
mod settings;
mod sources;
mod strip;
mod tool;
mod wire;

pub use bundle::ScriptError;
pub use found::{
    FolderContents, FoundScript, FoundScripts, HookEntry, HookEvent, PluginEntry, ProgramEntry,
    ScriptFolder, ScriptKind, ScriptOwner, ScriptSearch,
};
pub use script::ClientRequestHandler;
pub use scripts::{CheckedScript, Scripts, ScriptsSetup, ToolOrigin};
pub use settings::{
    DEFAULT_BLOCKED_TIME, DEFAULT_HOOK_TIME, RuntimeChoice, RuntimeInfo, RuntimeSettings,
    ScriptLimits,
};
pub use sources::ScriptSources;

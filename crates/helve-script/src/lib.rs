//! Custom tools and plugins written in TypeScript or JavaScript, run on the user's bun or node.
//!
//! What happens to a file, from the configuration folder to a tool that can be called:
//!
//! ```text
//! FoundScripts    finds {tool,plugin}(s)/*.{ts,js,mjs} in configuration folders, and `plugin` entries of configuration files
//!  ScriptSources  reads each file with everything that it imports; its hash is part of the digest that a person trusts
//!                 (a project's files are not used any further until they are trusted)
//!  Bundle         strips types and rewrites import specifiers; the result is written into the cache under its hash
//!  ScriptRuntime  runs the code in one helper process per workspace: bun, or else node; the messages are lines of JSON
//!  ScriptListing  ids, descriptions and schemas of the tools; cached, so that listing tools starts no process
//!  ScriptTool     an `AnyTool` in `Layer::Config`, or in `Layer::Plugin` for plugins; its id is the permission to ask for
//! ```
//!
//! Imports are found by a text scan without a parser, because the files are not trusted yet. The scan may report texts
//! that are not imports. An import that it does not find is refused later, when the file is parsed. Before each call
//! the files are read again. If the user's files changed, they are loaded again; if a project's files changed, they are
//! refused until they are trusted again.
//!
//! Messages use descriptors 3 and 4 of the helper process. Its standard output is redirected to its standard error. If
//! the process crashes, its running calls fail, and the next call starts another process.
//!
//! Tools may also be programs in any language, which run once per call (`ScriptKind::Program`). Commands may run before
//! and after calls, in Claude Code's hook format (`CommandHooks`).
//!
//! Packages are never installed. A symbolic link next to the generated module leads to an installed package; for a
//! missing package, the error says how to install it.

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
pub use scripts::{CheckedScript, PluginSummary, Scripts, ScriptsSetup, ToolOrigin};
pub use settings::{
    DEFAULT_BLOCKING_TIME, DEFAULT_HOOK_TIME, RuntimeChoice, RuntimeInfo, RuntimeSettings,
    ScriptLimits,
};
pub use sources::ScriptSources;

//! Custom tools and plugins written in TypeScript or JavaScript, run on the user's bun or node.
//!
//! ```text
//! FoundScripts    {tool,plugin}(s)/*.{ts,js,mjs} of the config folders, and `plugin` of the configuration
//!  ScriptSources  each file with everything it imports, found by a text scan; its hash is part of the digest of trust
//! - trust -       nothing below happens to a project's files before
//!  Bundle         types stripped, specifiers rewritten; written into the cache under a hash of the result
//!  ScriptRuntime  one helper process (bun, else node) per workspace, through `Processes::connect`; JSON lines
//!  ScriptListing  ids, descriptions, schemas; stored under the hash of the sources, so that listing tools starts nothing
//!  ScriptTool     an `AnyTool` in `Layer::Config` (plugins: `Layer::Plugin`); asked about under its id
//! ```
//!
//! The scan finds too much rather than too little and never parses, since the files are not trusted yet; a file that it
//! did not find cannot be imported. Before each call the files are read again: the user's are loaded anew if they changed,
//! a project's changed file is refused until it is trusted again. Messages use descriptors 3 and 4 of the helper process;
//! its standard output is its standard error. A crash fails the calls in flight, and the next call starts another process.
//! Packages are never installed: a link beside the generated module leads to the installed package, or a message names it.

mod bundle;
mod cache;
mod disk;
mod found;
mod hooks;
mod resolve;
mod runtime;
mod scan;
mod script;
mod scripts;
mod sources;
mod strip;
mod tool;
mod wire;

pub use bundle::ScriptError;
pub use found::{FoundScript, FoundScripts, PluginEntry, ScriptFolder, ScriptKind, ScriptOwner};
pub use runtime::{RuntimeChoice, RuntimeInfo, RuntimeSettings};
pub use script::ScriptClient;
pub use scripts::{CheckedScript, Scripts, ScriptsSetup, ToolOrigin};
pub use sources::ScriptSources;

//! The spine: what a tool is, who may do what, and how one call runs from JSON to result.
//!
//! Traits that other crates implement are here too: [`Machine`], [`Store`], [`Outputs`], [`Person`], [`Hook`].

pub mod after;
pub mod builtin;
pub mod change;
pub mod commit;
pub mod confine;
pub mod context;
pub mod dialect;
pub mod engine;
pub mod environment;
pub mod event;
pub mod files;
pub mod flow;
pub mod gate;
pub mod hook;
pub mod input;
pub mod journal;
pub mod machine;
pub mod media;
pub mod paths;
pub mod permission;
pub mod process;
pub mod programs;
pub mod registry;
pub mod schema;
pub mod search;
pub mod server;
pub mod session;
pub mod shell;
mod shown;
pub mod store;
pub mod tool;
pub mod validate;
pub mod workspace;

pub use after::{AfterWrite, Diagnostic};
pub use change::{Made, Rebase, Then, Unmade, Wanted, Written};
pub use context::{Memory, ToolContext};
pub use dialect::{Cut, Dialect, Words};
pub use engine::{Engine, ToolResult};
pub use event::{CallState, Event, Events, Progress, Status, Subscription};
pub use files::{Files, Resolved};
pub use flow::Flow;
pub use gate::{Gate, Nobody, Person, Refusal, SaysYes};
pub use hook::Hook;
pub use input::{BadInput, Input};
pub use journal::Journal;
pub use machine::{Kind, Machine, MachineError, Place};
pub use media::{Media, NoMedia};
pub use permission::{
    Action, Ask, AskKey, Grant, Let, Part, Pattern, Policy, Reply, Rule, Scope, Source, Verdict,
    Wall, decide,
};
pub use registry::{Layer, Registration, Registry, Switch, ToolSet};
pub use schema::{Flavour, fit, unfit};
pub use server::{Resources, ServerTrouble};
pub use session::{Session, Slot};
pub use shown::Shown;
pub use store::{Outputs, Saved, Store};
pub use tool::{
    AnyTool, Audience, Caller, Content, ErrorKind, InputSpec, Origin, Tool, ToolCall, ToolError,
    ToolOutput, ToolSpec, Traits,
};
pub use workspace::{Neighbours, Workspace};

/// A future that a trait object may return.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

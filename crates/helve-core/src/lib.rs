//! The core: tools, calls, sessions, permission, and the engine that runs a call from JSON to result.
//!
//! Words that occur in every file:
//!
//! - An *ask* is the one question for everything that a call needs. Its *parts* are judged by rules; each has a
//!   permission key, such as `edit`, and the texts that the rules are matched against. Its *acts* are what the call may
//!   do once it is granted, such as reading a certain file.
//! - The *gate* judges an ask, and asks the *person* if no rule decides. The result is a *grant*, or a refusal.
//! - A *wall* is a list of rules. There are several, such as the user's and the agent's; the strictest decides.
//! - A *dialect* is the wording and the limits of one family of tools. A *session* is one conversation with a model.
//! - The *root* is the folder of the workspace, in which tools work.
//!
//! Other crates implement its traits, such as [`Machine`], [`process::Processes`], [`Store`], [`Outputs`], [`Journal`],
//! [`Person`], [`Agents`], [`Hook`], [`AfterWrite`].

pub mod after;
pub mod agents;
pub mod call;
pub mod change;
pub mod confine;
pub mod context;
pub mod dialect;
pub mod engine;
pub mod environment;
pub mod event;
pub mod files;
pub mod flow;
pub mod foreign;
pub mod gate;
pub mod hook;
pub mod host;
pub mod input;
pub mod journal;
pub mod language;
pub mod machine;
pub mod media;
pub mod output;
pub mod paths;
pub mod process;
pub mod programs;
pub mod question;
pub mod recorder;
pub mod registry;
mod resolved;
pub mod schema;
pub mod search;
mod seen;
pub mod server;
pub mod session;
pub mod shell;
pub mod spec;
pub mod store;
pub mod tool;
pub mod transcript;
pub mod validate;
pub mod web;
mod web_fetch;
mod web_search;
pub mod workspace;

pub use helve_policy::builtin;
pub use helve_policy::{
    Act, Action, AddressAccess, AddressKind, Advice, AdvisedRule, Ask, AskKey, MissingApproval,
    Part, Pattern, Policy, Readable, Reason, Refusal, Reply, Request, Rule, Scope, Source,
    TreeRules, TreeScope, Unclear, Verdict, Wall, decide,
};

pub use after::{
    AfterWrite, Diagnostic, DiagnosticReport, DiagnosticSeverity, MissedCheck, UncheckedReason,
    WrittenFile,
};
pub use agents::{AgentInfo, Agents, ChildError, ChildReport, ChildSpec, ChildState};
pub use call::{CallMode, CallRef, MAX_DEPTH, Origin, ToolCall, ToolResult};
pub use change::{
    AppliedChanges, ChangeKind, ComputedContent, DirectChange, FileChange, FileToChange,
    LoadPermit, Rebase,
};
pub use context::{Memory, Tasks, ToolContext};
pub use dialect::{CommitFailure, Dialect, OutputCut, Words};
pub use engine::Engine;
pub use event::{CallState, CallStatus, Event, Events, Progress, Subscription};
pub use files::Files;
pub use flow::Flow;
pub use foreign::{ForeignParameters, UnknownPolicy};
pub use gate::{AlwaysYes, DOOM_LOOP, Gate, Grant, Nobody, Person};
pub use hook::Hook;
pub use host::Host;
pub use input::{BadInput, Input};
pub use journal::Journal;
pub use machine::commit;
pub use machine::{FileKind, LocatedPath, Machine, MachineError, Place};
pub use media::{Media, NoMedia};
pub use output::{Content, ErrorKind, Handover, Saved, ToolError, ToolOutput};
pub use question::{Answer, Question, QuestionOption};
pub use recorder::Recorder;
pub use registry::{Layer, Registration, Registry, ToolSet};
pub use resolved::Resolved;
pub use schema::{SchemaFlavour, adapt_schema, restore_arguments};
pub use seen::SeenState;
pub use server::{Resources, ServerError};
pub use session::{ChildSession, ParentCall, Session, Slot};
pub use spec::{Audience, Caller, InputSpec, ToolProperties, ToolSpec, ToolSwitch};
pub use store::{Outputs, Store};
pub use tool::{AnyTool, Tool};
pub use web::Web;
pub use workspace::{Extensions, Workspace};

/// A future that a trait object may return.
pub type BoxFuture<'a, T> = std::pin::Pin<Box<dyn Future<Output = T> + Send + 'a>>;

//! Permission: the rules, what a call asks for, and the verdict on each part of it.
//!
//! Everything here is pure. Facts about files come in through [`shell::FileFacts`], the person who answers an
//! [`Ask`] lives in `helve-core`.
//!
//! The modules build on one another in this order: [`rule`], [`command`], [`ask`], [`wall`], [`builtin`], [`shell`].

pub mod ask;
pub mod builtin;
pub mod command;
mod readable;
pub mod rule;
pub mod shell;
pub mod wall;

pub use ask::{Act, Ask, AskKey, MatchBy, Part, ProcessId, Refusal, Reply, Request, Unclear};
pub use command::{Command, Decision};
pub use readable::Readable;
pub use rule::{Action, Pattern, Rule, Scope, Source, Verdict, decide};
pub use wall::{Policy, Wall};

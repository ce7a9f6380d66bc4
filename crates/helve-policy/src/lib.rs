//! Permissions: rules, what a call asks for, and the verdict on each part of it.
//!
//! Everything here is pure. Callers supply facts about files through [`shell::FileFacts`]. `helve-core` defines the
//! person who answers an [`Ask`].
//!
//! Each of these modules builds on the ones before it: [`rule`], [`command`], [`ask`], [`wall`], [`builtin`],
//! [`shell`].

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
pub use rule::{Action, Pattern, Reason, Rule, Scope, Source, Verdict, decide};
pub use shell::{TreeRules, TreeScope, is_simple_glob};
pub use wall::{Policy, Wall};

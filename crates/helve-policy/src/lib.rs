//! Permissions: rules, what a call asks for, and the verdict on each part of it.
//!
//! A call asks for one or several parts, such as a command to run and a file to read. A [`Policy`] judges each part by
//! its rules: allow, ask or deny. `helve-core` shows an [`Ask`] to the person who answers it.
//!
//! Everything here is pure. Callers supply facts about files through [`shell::FileFacts`].
//!
//! Each module builds on the ones before it: [`rule`], [`command`], [`ask`], [`wall`], [`builtin`],
//! [`shell`].

pub mod address;
mod advice;
pub mod ask;
pub mod builtin;
pub mod command;
mod file_name;
mod readable;
pub mod rule;
pub mod shell;
pub mod wall;

pub use address::{AddressAccess, AddressKind};
pub use ask::{
    Act, Advice, AdvisedRule, Ask, AskKey, MatchBy, MentionedFiles, MissingApproval, Part,
    ProcessId, Refusal, Reply, Request, Unclear,
};
pub use command::{Command, Decision};
pub use file_name::could_refer_to;
pub use readable::Readable;
pub use rule::{Action, Pattern, Reason, Rule, Scope, Source, Verdict, decide};
pub use shell::{TreeRules, TreeScope, is_simple_glob};
pub use wall::{Policy, Wall};

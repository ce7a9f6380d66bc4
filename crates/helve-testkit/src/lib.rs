//! Test support: a machine and a store in memory, a scripted person, and the fixture language.

pub mod fixture;
mod journal;
mod machine;
mod person;
mod provider;
pub mod scenario;
mod store;
mod tree;

pub use fixture::{check, run};
pub use journal::MemoryJournal;
pub use machine::MemoryMachine;
pub use person::ScriptedPerson;
pub use provider::{ScriptedAnswer, ScriptedProvider};
pub use store::{MemoryOutputs, MemoryStore};
pub use tree::MemoryNode;

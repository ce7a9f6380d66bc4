//! Operations: what tools do, independent of any dialect.
//!
//! An operation takes typed input and a [`ToolContext`](helve_core::ToolContext). It resolves paths, loads files,
//! computes, asks and commits, then returns a value or an error value. It knows no parameter names and writes no text
//! for a model.

pub(crate) mod change;
pub(crate) mod edit;
pub(crate) mod language;
pub(crate) mod list;
pub(crate) mod missing;
pub(crate) mod patch;
pub(crate) mod plan;
pub(crate) mod process;
pub(crate) mod read;
pub(crate) mod resources;
pub(crate) mod search;
pub(crate) mod shell;
pub(crate) mod skill;
pub(crate) mod todo;
pub(crate) mod undo;
pub(crate) mod web;
pub(crate) mod write;

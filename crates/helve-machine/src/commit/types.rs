//! Re-exports of the core's commit types.

pub use helve_core::commit::{
    Change, CommitError, Committed, Content, ContentHash, Expect, FileMode, HardLinks, Left,
};

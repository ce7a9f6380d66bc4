//! What a commit takes and gives back: the core's own types.

pub use helve_core::commit::{
    Change, CommitError, Committed, Content, ContentHash, Expect, FileMode, HardLinks, Left,
};

//! What the tools that change files share.

pub(super) mod overwrite;
pub(super) mod settings;
pub(super) mod syntax;

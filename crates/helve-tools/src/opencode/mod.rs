//! The default dialect: the tools and formats of opencode.

mod invalid;
mod read;
mod todoread;
mod todowrite;
mod words;

use std::sync::Arc;

use helve_core::{AnyTool, Dialect};
use helve_text::cut::Limits;

/// Limits and words.
pub static DIALECT: Dialect = Dialect {
    name: "opencode",
    limits: Limits { lines: 2000, bytes: 50 << 10 },
    words: &words::Opencode,
};

/// Every tool of the dialect.
pub fn tools() -> Vec<Arc<dyn AnyTool>> {
    vec![
        Arc::new(invalid::Invalid),
        Arc::new(read::Read),
        Arc::new(todoread::TodoRead),
        Arc::new(todowrite::TodoWrite),
    ]
}

#[cfg(test)]
fn check(fixture: &str, expected: expect_test::Expect) {
    helve_testkit::check(&DIALECT, tools(), fixture, expected);
}

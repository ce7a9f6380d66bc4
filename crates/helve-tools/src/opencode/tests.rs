//! Checks that the documentation of wrong calls shows the real answers.

mod links;
mod secrecy;
mod settings;

use std::sync::Arc;

use expect_test::expect_file;
use helve_core::NoMedia;

use super::{DIALECT, tools};

#[test]
fn documented_answers_are_current() {
    let page = expect_file!["../../../../docs/wrong-calls.md"];
    let updated = with_answers(&page.data());
    page.assert_eq(&updated);
}

/// Returns the page with the answers that the tools give now.
fn with_answers(page: &str) -> String {
    let (mut updated, mut fixture, mut block) = (String::new(), String::new(), Block::None);
    for line in page.split_inclusive('\n') {
        match (line.trim_end(), block) {
            ("```fixture", Block::None) => {
                fixture.clear();
                block = Block::Fixture;
                updated.push_str(line);
            }
            ("```text", Block::None) => {
                block = Block::Answer;
                updated.push_str(line);
                updated.push_str(&helve_testkit::run(&DIALECT, tools(Arc::new(NoMedia)), &fixture));
            }
            ("```", _) => {
                block = Block::None;
                updated.push_str(line);
            }
            (_, Block::Fixture) => {
                fixture.push_str(line);
                updated.push_str(line);
            }
            (_, Block::Answer) => {}
            (_, Block::None) => updated.push_str(line),
        }
    }
    updated
}

#[derive(Clone, Copy)]
enum Block {
    None,
    Fixture,
    Answer,
}

//! Functions in Python code whose whole body is `...` by intention: of protocols, abstract classes and overloads.

use crate::edit::NewText;

/// Maximum number of lines between a decorator and the body of a function.
const MAX_DECORATED: usize = 12;

/// Whether a `...` after these new lines is the body of a function that needs no other one.
pub(super) fn is_stub_body(text: &NewText<'_>, new_before: &[&str]) -> bool {
    let file = text.file.lines().take(text.first_line.saturating_sub(1));
    let before: Vec<&str> = file.chain(new_before.iter().copied()).map(str::trim).collect();
    let mut upwards = before.iter().rev().filter(|line| !line.is_empty());
    let ends_header = upwards.next().is_some_and(|line| {
        line.ends_with(':')
            && ["def ", "async def ", ")"].iter().any(|start| line.starts_with(start))
    });
    let is_decorated = || {
        before.iter().rev().take(MAX_DECORATED).take_while(|line| **line != "...").any(|line| {
            line.starts_with('@') && (line.contains("abstract") || line.ends_with("overload"))
        })
    };
    let is_in_protocol = || {
        let class = before.iter().rev().find(|line| line.starts_with("class "));
        class.is_some_and(|class| class.contains("Protocol") || class.contains("ABC"))
    };
    ends_header && (is_decorated() || is_in_protocol())
}

//! Checks that a new text has no leftovers of a tool call, a listing, a code fence or escapes.
//!
//! A model sometimes sends more than it means to write. Text with such leftovers is refused, unless the replaced text
//! has the same leftovers or the file is of a kind that may quote them.

mod encoded;
mod escaped;
mod fence;
mod listing;
mod tool_call;

use memchr::memchr;

use super::{placeholder, text_kind::TextKind};

/// Why a text should not be written as it was sent. Lines are counted from 1 in the new text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TextFault {
    /// A line is a placeholder for omitted code.
    Placeholder { text: String },
    /// The text ends or starts with a part of the tool call in which it was sent.
    ToolCall { text: String },
    /// Lines start with line numbers, as in the output of a tool that reads files.
    Listing { text: String },
    /// The text is in a Markdown code fence, and the file is not Markdown.
    Fence { text: String },
    /// A line has the two characters `\n` where a line break is meant.
    EscapedNewline { text: String },
    /// A line has HTML entities where the old text has the characters themselves.
    Entities { text: String },
    /// A line has backslashes before the backquotes of a template literal.
    EscapedBackquotes { text: String },
    /// The text contains a NUL character.
    Nul { line: usize },
}

/// A text that would be written, and what it replaces.
#[derive(Debug, Clone, Copy)]
pub struct NewText<'a> {
    /// The text that is replaced. Empty if there is none.
    pub old: &'a str,
    pub new: &'a str,
    /// The whole text of the file before the change.
    pub file: &'a str,
    /// The line of the file, from 1, at which the new text starts.
    pub first_line: usize,
    /// The text on the same line before the new text.
    pub before: &'a str,
    /// The text on the same line after the new text.
    pub after: &'a str,
    pub kind: TextKind,
}

impl<'a> NewText<'a> {
    /// Describes a new text that replaces the whole content of a file.
    pub fn whole_file(old: &'a str, new: &'a str, kind: TextKind) -> NewText<'a> {
        NewText { old, new, file: old, first_line: 1, before: "", after: "", kind }
    }

    /// Whether the new text is all that the file will contain.
    fn is_whole_file(&self) -> bool {
        self.old.len() == self.file.len()
    }

    /// Whether the new text starts inside a comment or string of several lines.
    fn is_in_comment(&self) -> bool {
        let lines = self.file.split_inclusive('\n').take(self.first_line.saturating_sub(1));
        let before = lines.collect::<String>() + self.before;
        let is_open = |mark: &str| before.matches(mark).count() % 2 == 1;
        let is_unclosed = |open: &str, close: &str| before.rfind(open) > before.rfind(close);
        // In YAML, a text of several lines is indented.
        self.kind == TextKind::Data && (self.new.starts_with(' ') || self.before.starts_with(' '))
            || ["\"\"\"", "'''", "`"].into_iter().any(is_open)
            || is_unclosed("\n/*", "*/")
            || is_unclosed(" /*", "*/")
            || before.starts_with("/*") && !before.contains("*/")
            || is_unclosed("<!--", "-->")
    }

    /// Returns the first reason not to write the text.
    pub fn fault(&self) -> Option<TextFault> {
        if let Some(at) = memchr(0, self.new.as_bytes()) {
            let line = self.new[..at].matches('\n').count() + 1;
            return Some(TextFault::Nul { line });
        }
        let owned = |text: &str| text.trim().to_owned();
        listing::find(self)
            .map(|text| TextFault::Listing { text: owned(text) })
            .or_else(|| tool_call::find(self).map(|text| TextFault::ToolCall { text: owned(text) }))
            .or_else(|| fence::find(self).map(|text| TextFault::Fence { text: owned(text) }))
            .or_else(|| {
                let text = placeholder::find_placeholder(self)?;
                Some(TextFault::Placeholder { text: owned(text) })
            })
            .or_else(|| {
                let text = escaped::find(self)?;
                Some(TextFault::EscapedNewline { text })
            })
            .or_else(|| {
                let text = encoded::find_entities(self).map(owned)?;
                Some(TextFault::Entities { text })
            })
            .or_else(|| {
                let text = encoded::find_escaped_backquotes(self).map(owned)?;
                Some(TextFault::EscapedBackquotes { text })
            })
    }
}

//! Finds syntax of the tool call that slipped into an argument of the call, e.g. `</new_string>` at its end.

use memchr::memmem;

use super::NewText;
use crate::edit::text_kind::TextKind;

/// Names of tags around the arguments of a call.
const TAGS: &[&str] = &[
    "antml:function_calls",
    "antml:invoke",
    "antml:parameter",
    "apply_diff",
    "arg_value",
    "arguments",
    "content",
    "diff",
    "edit",
    "edits",
    "file",
    "filePath",
    "file_content",
    "file_path",
    "file_text",
    "function",
    "function_call",
    "function_calls",
    "function_result",
    "input",
    "insert_text",
    "invoke",
    "newString",
    "newText",
    "new_str",
    "new_string",
    "new_text",
    "oldString",
    "oldText",
    "old_str",
    "old_string",
    "parameter",
    "parameters",
    "patchText",
    "path",
    "replace",
    "replaceAll",
    "replace_all",
    "replace_in_file",
    "search",
    "text",
    "tool",
    "tool_call",
    "tool_calls",
    "tool_use",
    "write",
    "write_file",
    "write_to_file",
];
/// Tags that occur only in tool calls. The other tags of [`TAGS`] are also elements of ordinary documents.
const TOOL_CALL_TAGS: &[&str] = &[
    "antml:function_calls",
    "antml:invoke",
    "antml:parameter",
    "apply_diff",
    "arg_value",
    "filePath",
    "file_content",
    "file_path",
    "file_text",
    "function_call",
    "function_calls",
    "function_result",
    "insert_text",
    "invoke",
    "newString",
    "newText",
    "new_str",
    "new_string",
    "new_text",
    "oldString",
    "oldText",
    "old_str",
    "old_string",
    "parameter",
    "patchText",
    "replaceAll",
    "replace_all",
    "replace_in_file",
    "tool_call",
    "tool_calls",
    "tool_use",
    "write",
    "write_file",
    "write_to_file",
];
/// Tokens with which models end a message or a call.
const TOKENS: &[&str] = &[
    "<|im_end|>",
    "<|endoftext|>",
    "<|eot_id|>",
    "<|eom_id|>",
    "<|end|>",
    "<|end_of_text|>",
    "<|call|>",
    "<|return|>",
    "<|tool_call_end|>",
    "<|tool_calls_section_end|>",
    "<end_of_turn>",
    "<\u{ff5c}tool\u{2581}call\u{2581}end\u{ff5c}>",
    "<\u{ff5c}tool\u{2581}calls\u{2581}end\u{ff5c}>",
    "<\u{ff5c}end\u{2581}of\u{2581}sentence\u{ff5c}>",
    "[/TOOL_CALLS]",
    "*** End Patch",
    ">>>>>>> REPLACE",
    "+++++++ REPLACE",
];
/// Lines with which models start an edit or a patch.
const MARKERS: &[&str] = &["<<<<<<< SEARCH", "------- SEARCH", "*** Begin Patch"];

/// Returns the first sign of a tool call: at the end of the text, at its start, or inside.
pub(super) fn find<'a>(text: &NewText<'a>) -> Option<&'a str> {
    let new = text.new.trim();
    if new.is_empty() {
        return None;
    }
    find_at_end(text, new)
        .or_else(|| find_at_start(text, new))
        .or_else(|| find_cdata(text, new))
        .or_else(|| find_inside(text, new))
}

/// Whether the old text contains a tag or marker too.
fn old_contains(text: &NewText<'_>, mark: &str) -> bool {
    memmem::find(text.old.as_bytes(), mark.as_bytes()).is_some()
}

/// Finds a token or a closing tag of a call at the end of the text.
fn find_at_end<'a>(text: &NewText<'a>, new: &'a str) -> Option<&'a str> {
    if let Some(token) = TOKENS.iter().find(|token| new.ends_with(**token)) {
        let line = new.lines().next_back()?;
        // The end marker of a patch or a conflict stands alone on its line.
        let may_follow_text = token.starts_with('<') || token.starts_with('[');
        return ((may_follow_text || line == *token)
            && !old_contains(text, token)
            && !has_opening_marker(new)
            && !is_chat_template(text, new))
        .then_some(line);
    }
    let tag_start = new.rfind('<').filter(|_| new.ends_with('>'))?;
    let tag = &new[tag_start..];
    let name = closing_name(tag)?;
    if !TAGS.contains(&name) || !is_unbalanced(text, name) || is_in_example(text, new) {
        return None;
    }
    // If only a part of a markup file is edited, a tag of an ordinary document may be closed elsewhere in the file.
    match text.kind {
        TextKind::Markup if !TOOL_CALL_TAGS.contains(&name) && !text.is_whole_file() => None,
        TextKind::Code
        | TextKind::Python
        | TextKind::PythonStub
        | TextKind::Markup
        | TextKind::Prose
        | TextKind::Data
        | TextKind::Unknown => Some(tag),
    }
}

/// Whether a text also contains the marker that starts a patch or a conflict, so that the end marker belongs to it.
fn has_opening_marker(text: &str) -> bool {
    MARKERS.iter().any(|marker| {
        text.lines().any(|line| line.trim_start() == *marker && !text.starts_with(marker))
    })
}

/// Whether the text is a template of chat messages, which has tokens such as `<|im_start|>` too, or is filled in by
/// `{{ message }}`.
fn is_chat_template(text: &NewText<'_>, new: &str) -> bool {
    let has_other_token = |text: &str| {
        [
            "<|im_start|>",
            "<|start|>",
            "<|start_header_id|>",
            "<|user|>",
            "<start_of_turn>",
            "[INST]",
        ]
        .iter()
        .any(|token| text.contains(token))
    };
    let last_line = new.lines().next_back().unwrap_or_default();
    text.kind == TextKind::Unknown && last_line.contains("{{")
        || has_other_token(new)
        || has_other_token(text.file)
}

/// Whether the last line belongs to an example in a document: a line that is indented by at least four spaces.
fn is_in_example(text: &NewText<'_>, new: &str) -> bool {
    let last_line = new.lines().next_back().unwrap_or_default();
    text.kind == TextKind::Prose
        && (last_line.starts_with("    ") || last_line.starts_with('\t'))
        && new.contains('\n')
}

/// Returns the name in `</name>`.
fn closing_name(tag: &str) -> Option<&str> {
    let name = tag.strip_prefix("</")?.strip_suffix('>')?.trim();
    name.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-'))
        .then_some(name)
}

/// Whether the new text closes an element more often than it opens it, and neither the old text nor the rest of the
/// file explains that.
fn is_unbalanced(text: &NewText<'_>, name: &str) -> bool {
    let balance = |text: &str| {
        let closings = memmem::find_iter(text.as_bytes(), format!("</{name}>").as_bytes()).count();
        let opening = format!("<{name}");
        let is_opening = |at: &usize| {
            matches!(
                text.as_bytes().get(at + opening.len()),
                Some(b'>' | b' ' | b'\n' | b'\t' | b'=')
            )
        };
        let openings =
            memmem::find_iter(text.as_bytes(), opening.as_bytes()).filter(is_opening).count();
        closings.cast_signed() - openings.cast_signed()
    };
    balance(text.new) > 0
        && balance(text.old) <= 0
        && (text.is_whole_file() || balance(text.file) >= 0)
}

/// Finds an opening tag that belongs to a call, or the marker of a patch, in front of the text.
fn find_at_start<'a>(text: &NewText<'a>, new: &'a str) -> Option<&'a str> {
    let first_line = new.lines().next()?;
    if MARKERS.contains(&first_line) {
        // A file that is not code may itself be a patch.
        return (text.kind.is_code() && !old_contains(text, first_line)).then_some(first_line);
    }
    let tag = first_line.strip_prefix('<')?;
    let end = tag.find('>')?;
    let name = tag[..end].split([' ', '=']).next()?;
    let has_name_attribute = tag[..end].contains("name=\"");
    let is_call_tag = TOOL_CALL_TAGS.contains(&name) && (name != "parameter" || has_name_attribute);
    let is_wrapped = new.ends_with(&format!("</{name}>"));
    let is_alone = tag[end + 1..].trim().is_empty();
    let is_fault = match text.kind {
        TextKind::Code | TextKind::Python | TextKind::PythonStub | TextKind::Data => {
            TAGS.contains(&name) && (is_call_tag || is_wrapped && is_alone && text.is_whole_file())
        }
        TextKind::Markup | TextKind::Unknown | TextKind::Prose => {
            is_call_tag && text.is_whole_file() && !text.kind_may_quote_calls()
        }
    };
    (is_fault && !old_contains(text, &first_line[..end + 2])).then_some(&first_line[..end + 2])
}

/// Finds a CDATA section around a text that is not XML.
fn find_cdata<'a>(text: &NewText<'a>, new: &'a str) -> Option<&'a str> {
    const OPEN: &str = "<![CDATA[";
    const CLOSE: &str = "]]>";
    let (opens, closes) = (new.starts_with(OPEN), new.ends_with(CLOSE));
    let is_fault = match text.kind {
        // No document starts with such a section.
        TextKind::Markup => opens && closes && text.is_whole_file(),
        TextKind::Code
        | TextKind::Python
        | TextKind::PythonStub
        | TextKind::Data
        | TextKind::Prose
        | TextKind::Unknown => opens || closes && !new.contains(OPEN) && new.ends_with("\n]]>"),
    };
    (is_fault && !old_contains(text, OPEN) && !old_contains(text, CLOSE)).then_some(if opens {
        OPEN
    } else {
        CLOSE
    })
}

/// Finds the end of one argument followed by the next one: `</newString>`, then `<parameter name="replaceAll">true`.
fn find_inside<'a>(text: &NewText<'a>, new: &'a str) -> Option<&'a str> {
    for name in TOOL_CALL_TAGS {
        let tag = format!("</{name}>");
        let Some(at) = memmem::find(new.as_bytes(), tag.as_bytes()) else { continue };
        let after_tag = &new[at + tag.len()..];
        let is_value = |line: &str| {
            let line = line.trim();
            line.is_empty() || line.starts_with('<') || matches!(line, "true" | "false")
        };
        let is_leftover =
            after_tag.trim_start().starts_with('<') && after_tag.lines().all(is_value);
        if is_leftover && is_unbalanced(text, name) && !is_in_example(text, new) {
            return Some(&new[at..at + tag.len()]);
        }
    }
    None
}

impl NewText<'_> {
    /// Whether files of this kind quote tool calls, as documentation does.
    fn kind_may_quote_calls(&self) -> bool {
        match self.kind {
            TextKind::Prose => true,
            TextKind::Code
            | TextKind::Python
            | TextKind::PythonStub
            | TextKind::Markup
            | TextKind::Data
            | TextKind::Unknown => false,
        }
    }
}

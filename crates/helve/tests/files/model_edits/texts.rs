//! Generates new text that was not meant to be written as it is: placeholders, parts of a call, listings with line
//! numbers, code fences, escapes.

use fastrand::Rng;
use serde_json::json;

use super::languages::{LANGUAGES, Source, pick};
use super::{Case, Generator, change, refusal};

pub(super) const GENERATORS: &[Generator] = &[
    placeholder,
    placeholder_without_loss,
    placeholder_in_the_file,
    comment_like_a_placeholder,
    end_of_a_call,
    quoted_call,
    closing_tag,
    listing,
    partial_listing,
    numbered_data,
    fence,
    fence_in_markdown,
    nul,
    escaped_line_break,
    escape_in_a_string,
];

/// Texts that stand for code which the model left out.
const PLACEHOLDERS: &[&str] = &[
    "...",
    "…",
    "... existing code ...",
    "... rest of the function ...",
    "(...no changes around here)",
    "[original content here]",
    "other methods remain the same",
    "... keep the other methods ...",
    "rest of class unchanged",
    "[rest of file unchanged]",
    "... (rest unchanged)",
    "Rest of the code remains the same",
    "... remaining code unchanged ...",
    "existing code here",
    "... other imports ...",
    "The rest of the file stays the same",
    "<existing code>",
    "... same as before ...",
    "remaining code omitted for brevity",
    "... 12 more lines ...",
    "everything else stays the same",
    "... 其余代码不变 ...",
    "... Rest bleibt unverändert ...",
];

/// Ordinary comments that resemble placeholders.
const COMMENTS: &[&str] = &[
    "Check for an existing session...",
    "Wait for the rest...",
    "Load the remaining items lazily.",
    "The same limit applies to the other queue.",
    "Existing users keep their settings",
    "Retry until the original request is done...",
    "Skip the rest if nothing changed",
    "TODO: handle the remaining cases",
    "... and then close the connection",
    "This must remain below the limit.",
    "Note: order matters here",
    "See the previous section for details.",
    "copy existing headers",
    "keep existing sessions",
    "see the original paper",
    "start of the loop",
    "3 more retries",
];

/// A placeholder replaces lines of the file.
fn placeholder(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let kept_lines = rng.usize(..2);
    let mut new: Vec<String> = source.lines[source.body.clone()][..kept_lines].to_vec();
    new.push(source.comment(pick(rng, PLACEHOLDERS)));
    if rng.bool() {
        new.push(source.lines[source.body.end - 1].replace('1', "2"));
    }
    let (tool, input) = source.call(rng, source.body.clone(), &new);
    Case::new(
        "a placeholder replaces lines",
        tool,
        input,
        refusal(&["omits code", "Nothing was written"]),
    )
    .file(source.path(), &source.text())
}

/// The placeholder is only added, so that no line disappears.
fn placeholder_without_loss(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let mut new: Vec<String> = source.lines[source.body.clone()].to_vec();
    new.push(source.comment(pick(rng, PLACEHOLDERS)));
    let (tool, input) = source.call(rng, source.body.clone(), &new);
    let expected = change(source.path(), source.replaced(source.body.clone(), &new));
    Case::new("a placeholder is added", tool, input, expected).file(source.path(), &source.text())
}

/// The file already contains the placeholder.
fn placeholder_in_the_file(rng: &mut Rng) -> Case {
    let mut source = Source::new(rng);
    let at = source.body.start;
    source.lines.insert(at, source.comment(pick(rng, PLACEHOLDERS)));
    let range = at..source.body.end;
    let new =
        vec![source.lines[at].clone(), format!("{}changed_{}", source.language.indent, rng.u8(..))];
    let (tool, input) = source.call(rng, range.clone(), &new);
    let expected = change(source.path(), source.replaced(range, &new));
    Case::new("the file has the placeholder", tool, input, expected)
        .file(source.path(), &source.text())
}

/// A new comment resembles a placeholder.
fn comment_like_a_placeholder(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let line = source.body.start + rng.usize(..source.body.len());
    let new = vec![
        source.comment(pick(rng, COMMENTS)),
        format!("{} ", source.lines[line]).replace("1", "7").trim_end().to_owned() + "x",
    ];
    let (tool, input) = source.call(rng, line..line + 1, &new);
    let expected = change(source.path(), source.replaced(line..line + 1, &new));
    Case::new("a comment resembles a placeholder", tool, input, expected)
        .file(source.path(), &source.text())
}

/// The end of a tool call, in the formats of several models.
const CALL_ENDS: &[&str] = &[
    "</content>\n</invoke>",
    "</content>",
    "</parameter>\n</invoke>\n</function_calls>",
    "</newString>\n<parameter name=\"replaceAll\">true",
    "</new_string>\n</invoke>",
    "</newString>",
    "</parameter>",
    "</tool_call>",
    "</function>\n</tool_call>",
    "</write_to_file>",
    "<|im_end|>",
    "<|eot_id|>",
    "</file_text>",
    "</arguments>",
];

/// The new text ends with the end of a tool call.
fn end_of_a_call(rng: &mut Rng) -> Case {
    // Without HTML, the last language, whose own closing tags are legitimate.
    let source = Source::among(rng, &LANGUAGES[..10]);
    let end = pick(rng, CALL_ENDS);
    if rng.bool() {
        let content = format!("{}{end}\n", source.text());
        let input = json!({"filePath": format!("new_{}", source.path()), "content": content});
        return Case::new(
            "a written file ends with the closing tags of a call",
            "write",
            input,
            refusal(&["part of a tool call"]),
        );
    }
    let mut new: Vec<String> = vec![source.lines[source.body.start].replace('1', "2")];
    new.extend(end.lines().map(str::to_owned));
    let (tool, input) = source.call(rng, source.body.start..source.body.start + 1, &new);
    let is_at_end = tool != "write" || source.body.end == source.lines.len();
    if is_at_end {
        return Case::new(
            "new text ends with the closing tags of a call",
            tool,
            input,
            refusal(&["part of a tool call"]),
        )
        .file(source.path(), &source.text());
    }
    let input = json!({"filePath": source.path(), "content": format!("{}{end}\n", source.text())});
    Case::new(
        "a file ends with the closing tags of a call",
        "write",
        input,
        refusal(&["part of a tool call"]),
    )
    .file(source.path(), &source.text())
}

/// Documentation quotes whole calls.
fn quoted_call(rng: &mut Rng) -> Case {
    let name = pick(rng, &["invoke", "tool_call", "function_calls", "content", "newString"]);
    let sample = format!("<{name}>\n{}\n</{name}>", rng.u32(..));
    let text = match rng.usize(..3) {
        0 => format!("# Calls\n\nA model sends this:\n\n```xml\n{sample}\n```\n"),
        1 => format!("# Calls\n\nIt closes with `</{name}>`.\n"),
        _ => format!("# Calls\n\n{sample}\n"),
    };
    let input = json!({"filePath": "docs/calls.md", "content": text});
    Case::new("documentation quotes a call", "write", input, change("docs/calls.md", text))
}

/// An edit closes an element that the file opens.
fn closing_tag(rng: &mut Rng) -> Case {
    let name = pick(rng, &["content", "parameters", "text", "input"]);
    let text = format!("<root>\n<{name}>\n  <item n=\"{}\"/>\n</root>\n", rng.u8(..));
    let old = text.lines().nth(2).unwrap();
    let new = format!("{old}\n</{name}>");
    let expected = change("page.xml", text.replace(old, &new));
    let input = json!({"filePath": "page.xml", "oldString": old, "newString": new});
    Case::new("an element is closed", "edit", input, expected).file("page.xml", &text)
}

/// Adds line numbers, in the format of one of several tools.
fn numbered(rng: &mut Rng, first: usize, lines: &[String]) -> Vec<String> {
    let format = rng.usize(..3);
    let number = |(line, number): (&String, usize)| match format {
        0 => format!("{number:05}| {line}"),
        1 => format!("{number:>6}\t{line}"),
        _ => format!("{number:>6}\u{2192}{line}"),
    };
    lines.iter().zip(first..).map(number).collect()
}

/// The new text is a listing of the file with line numbers.
fn listing(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let refused = refusal(&["line numbers"]);
    if rng.bool() {
        let lines = numbered(rng, 1, &source.lines);
        let framed = format!(
            "<file>\n{}\n\n(End of file, {} lines)\n</file>",
            lines.join("\n"),
            lines.len()
        );
        let content = if rng.bool() { framed } else { lines.join("\n") + "\n" };
        let is_new = rng.bool();
        let path =
            if is_new { "copy/".to_owned() + source.path() } else { source.path().to_owned() };
        let input = json!({"filePath": path, "content": content});
        return Case::new("a listing is written back", "write", input, refused)
            .file(source.path(), &source.text());
    }
    let mut new: Vec<String> = source.lines[source.body.clone()].to_vec();
    new[0].push_str(" changed");
    let new = numbered(rng, source.body.start + 1, &new);
    let old = source.lines[source.body.clone()].join("\n");
    let input = json!({"filePath": source.path(), "oldString": old, "newString": new.join("\n")});
    Case::new("new text is a listing", "edit", input, refused).file(source.path(), &source.text())
}

/// Only one of the new lines begins with its line number.
fn partial_listing(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let mut new: Vec<String> = source.lines[source.body.clone()].to_vec();
    let at = rng.usize(..new.len());
    new[at] = format!("{:05}| {} changed", source.body.start + at + 1, new[at]);
    let old = source.lines[source.body.clone()].join("\n");
    let (tool, input) = match rng.bool() {
        true => (
            "edit",
            json!({"filePath": source.path(), "oldString": old, "newString": new.join("\n")}),
        ),
        false => ("apply_patch", json!({"patchText": source.patch(source.body.clone(), &new)})),
    };
    Case::new("one new line has its number", tool, input, refusal(&["line numbers"]))
        .file(source.path(), &source.text())
}

/// Data whose lines start with numbers of their own.
fn numbered_data(rng: &mut Rng) -> Case {
    let (path, separator) =
        [("codes.yaml", ": "), ("table.tsv", "\t"), ("notes.md", ". "), ("table.txt", " | ")]
            [rng.usize(..4)];
    let first = rng.usize(1..400);
    let text: String = (first..first + rng.usize(2..9))
        .map(|n| format!("{n}{separator}word {}\n", rng.u16(..)))
        .collect();
    let input = json!({"filePath": path, "content": text});
    Case::new("data is numbered", "write", input, change(path, text))
}

/// The new text is enclosed in a Markdown code fence.
fn fence(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let language = pick(rng, &["", "rust", "python", "text"]);
    if rng.bool() {
        let input = json!({"filePath": source.path(), "content": format!("```{language}\n{}```\n", source.text())});
        return Case::new("a file is in a fence", "write", input, refusal(&["fence"]));
    }
    let mut new = vec![format!("```{language}"), format!("{}x", source.lines[source.body.start])];
    new.push("```".to_owned());
    let old = &source.lines[source.body.start];
    let input = json!({"filePath": source.path(), "oldString": old, "newString": new.join("\n")});
    Case::new("new text is in a fence", "edit", input, refusal(&["fence"]))
        .file(source.path(), &source.text())
}

/// A Markdown file contains a code fence.
fn fence_in_markdown(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let text = format!("```\n{}```\n", source.text());
    let path = pick(rng, &["README.md", "docs/a.markdown", "prompt.txt", "page.mdx"]);
    let input = json!({"filePath": path, "content": text});
    Case::new("Markdown has a fence", "write", input, change(path, text))
}

/// The new text contains a NUL character.
fn nul(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let new = vec![format!("{}\0", source.lines[source.body.start])];
    let (tool, input) = source.call(rng, source.body.start..source.body.start + 1, &new);
    Case::new("new text has a NUL", tool, input, refusal(&["NUL"]))
        .file(source.path(), &source.text())
}

/// The new text contains `\n` as two characters in place of a line break.
fn escaped_line_break(rng: &mut Rng) -> Case {
    // In these languages a line is a statement.
    let source = Source::among(rng, &LANGUAGES[..6]);
    let line = &source.lines[source.body.start];
    let second = line.replace("value", "other");
    let new = match rng.bool() {
        true => format!("{line}\\n{second}"),
        false => format!("{}\\n{second}\\n{line}", line.replace("compute", "prepare")),
    };
    let range = source.body.start..source.body.start + 1;
    let (tool, input) = source.call(rng, range, &[new]);
    Case::new("line breaks are escaped", tool, input, refusal(&["line break"]))
        .file(source.path(), &source.text())
}

/// The escape belongs to a string, a pattern or a path.
fn escape_in_a_string(rng: &mut Rng) -> Case {
    let source = Source::among(rng, &LANGUAGES[..6]);
    let line = source.lines[source.body.start].clone();
    let text = pick(
        rng,
        &[
            "print(\"a = 1;\\nb = 2;\")",
            "print('first\\n  second')",
            "split(/\\r?\\n/)",
            "join(\",\\n\")",
            "log(`one;\\n  two`)",
            "open(\"C:\\\\new\\\\notes\")",
            "write(\"done\\n\")",
        ],
    );
    let new = vec![line.clone(), format!("{}{text}", source.language.indent)];
    let range = source.body.start..source.body.start + 1;
    let (tool, input) = source.call(rng, range.clone(), &new);
    let expected = change(source.path(), source.replaced(range, &new));
    Case::new("an escape is in a string", tool, input, expected).file(source.path(), &source.text())
}

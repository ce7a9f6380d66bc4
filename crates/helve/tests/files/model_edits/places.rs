//! Generates edits whose `oldString` is cut off, has another indentation, is escaped or numbered, or was already
//! replaced.

use fastrand::Rng;
use serde_json::json;

use super::languages::{LANGUAGES, Source, pick};
use super::{Case, Expected, Generator, change, refusal};

pub(super) const GENERATORS: &[Generator] = &[
    other_indent_width,
    indented_too_deep,
    cut_word,
    renamed_part_of_a_word,
    dropped_line_end,
    deleted_line,
    already_applied,
    similar_insertion,
    long_line,
    html_entities,
    decomposed,
    empty_file,
    numbered_quote,
    escaped_template,
];

/// The file is indented by four spaces and `oldString` by two, or the other way round. A new line is one level deeper.
fn other_indent_width(rng: &mut Rng) -> Case {
    let depth = rng.usize(1..4);
    let (file_step, quoted_step) = if rng.bool() { (4, 2) } else { (2, 4) };
    let number = rng.u16(..);
    let mut text = String::new();
    for level in 0..=depth {
        text.push_str(&format!("{}open_{level}_{number} {{\n", " ".repeat(level * file_step)));
    }
    let line = format!("call_{number}();");
    text.push_str(&format!("{}{line}\n", " ".repeat((depth + 1) * file_step)));
    let at =
        |step: usize, level: usize, line: &str| format!("{}{line}\n", " ".repeat(step * level));
    let new = |step: usize| {
        at(step, depth + 1, "if ready() {")
            + &at(step, depth + 2, &line)
            + &at(step, depth + 1, "}")
    };
    let wanted = text.replace(&at(file_step, depth + 1, &line), &new(file_step));
    let input = json!({"filePath": "deep.txt", "oldString": at(quoted_step, depth + 1, &line), "newString": new(quoted_step)});
    Case::new(
        "another step of indentation",
        "edit",
        input,
        Expected::ChangeOrRefusal("deep.txt".into(), wanted),
    )
    .file("deep.txt", &text)
}

/// `oldString` is indented one level too deep, with the indentation width of the file.
fn indented_too_deep(rng: &mut Rng) -> Case {
    let step = [2, 4][rng.usize(..2)];
    let number = rng.u16(..);
    let at = |level: usize, line: &str| format!("{}{line}\n", " ".repeat(step * level));
    let line = format!("call_{number}();");
    let text = at(0, "a {")
        + &at(1, "b {")
        + &at(2, "c {")
        + &at(3, &line)
        + &at(2, "}")
        + &at(1, "}")
        + &at(0, "}");
    let new = |level: usize| at(level, "if ready() {") + &at(level + 1, &line) + &at(level, "}");
    let wanted = text.replace(&at(3, &line), &new(3));
    let input = json!({"filePath": "deep.txt", "oldString": at(4, &line), "newString": new(4)});
    Case::new("indented a level too deep", "edit", input, change("deep.txt", wanted))
        .file("deep.txt", &text)
}

/// `oldString` ends inside a word.
fn cut_word(rng: &mut Rng) -> Case {
    let word = pick(rng, &["time", "connection", "größe", "value_of_pi", "Duration"]);
    let cut = word.char_indices().nth(rng.usize(1..word.chars().count() - 1)).unwrap().0;
    let text = format!("use core::{word};\nuse core::other_{};\n", rng.u16(..));
    let old = format!("use core::{}", &word[..cut]);
    let new = match rng.usize(..4) {
        0 => format!("use core::{word}::warn;"),
        3 => format!("use core::{word}s_more"),
        1 => format!("use core::log;\nuse core::{word}"),
        _ => format!("use std::{word};"),
    };
    let (new, expected) = match old.as_str() == new {
        true => (format!("{new};"), refusal(&["inside the word"])),
        false => (new, refusal(&["inside the word"])),
    };
    let input = json!({"filePath": "lib.rs", "oldString": old, "newString": new});
    Case::new("a quotation ends inside a word", "edit", input, expected).file("lib.rs", &text)
}

/// `oldString` ends inside a word too, but the edit is a rename, so it is applied.
fn renamed_part_of_a_word(rng: &mut Rng) -> Case {
    let number = rng.u16(..);
    let text = format!("let user_name_{number} = read_user_name();\n");
    let (old, new) = [
        (format!("user_name_{number} = read_user"), format!("login_name_{number} = read_login")),
        ("read_user".to_owned(), "fetch_user".to_owned()),
        ("read_us".to_owned(), "load_us".to_owned()),
        ("ame();".to_owned(), "umber();".to_owned()),
    ][rng.usize(..4)]
    .clone();
    let expected = change("lib.rs", text.replace(&old, &new));
    let input = json!({"filePath": "lib.rs", "oldString": old, "newString": new});
    Case::new("part of a word is renamed", "edit", input, expected).file("lib.rs", &text)
}

/// `oldString` ends with a line break, and `newString` does not.
fn dropped_line_end(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let line = source.body.start;
    let new = source.lines[line].replace(|c: char| c.is_ascii_digit(), "9");
    let old = format!("{}\n", source.lines[line]);
    let expected =
        change(source.path(), source.replaced(line..line + 1, std::slice::from_ref(&new)));
    let input = json!({"filePath": source.path(), "oldString": old, "newString": new});
    Case::new("the new text lacks the line end", "edit", input, expected)
        .file(source.path(), &source.text())
}

/// A line is deleted together with its line break.
fn deleted_line(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let line = source.body.start;
    let input = json!({"filePath": source.path(), "oldString": format!("{}\n", source.lines[line]), "newString": ""});
    let expected = change(source.path(), source.replaced(line..line + 1, &[]));
    Case::new("a line is deleted", "edit", input, expected).file(source.path(), &source.text())
}

/// The file already contains the change.
fn already_applied(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let line = source.body.start;
    let added = format!("{}added_{}", source.language.indent, rng.u32(..));
    let new = match rng.usize(..4) {
        0 => vec![source.lines[line].clone(), added],
        1 => vec![added, source.lines[line].clone()],
        2 => vec![source.lines[line].clone() + " more"],
        _ => vec![added],
    };
    let text = source.replaced(line..line + 1, &new);
    let old = &source.lines[line];
    let (tool, input) = match rng.usize(..3) {
        0 => {
            let edit = json!({"oldString": old, "newString": new.join("\n")});
            ("multiedit", json!({"filePath": source.path(), "edits": [edit]}))
        }
        1 => (
            "edit",
            json!({"filePath": source.path(), "oldString": old, "newString": new.join("\n")}),
        ),
        _ => ("apply_patch", json!({"patchText": source.patch(line..line + 1, &new)})),
    };
    Case::new("the edit was applied before", tool, input, refusal(&["already has"]))
        .file(source.path(), &text)
}

/// The added line is new, although its neighbours are in the file.
fn similar_insertion(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let line = source.body.start;
    let new = vec![
        source.lines[line].clone(),
        format!("{}fresh_{}", source.language.indent, rng.u32(..)),
    ];
    let (tool, input) = source.call(rng, line..line + 1, &new);
    let expected = change(source.path(), source.replaced(line..line + 1, &new));
    Case::new("a line is added", tool, input, expected).file(source.path(), &source.text())
}

/// A very long line differs from `oldString` far from its start.
fn long_line(rng: &mut Rng) -> Case {
    let words = rng.usize(2_000..20_000);
    let text: String = (0..words).map(|n| format!("w{n} ")).collect();
    let at = rng.usize(words / 2..words - 10);
    let old = text.trim_end().replace(&format!("w{at} "), "changed ");
    let input = json!({"filePath": "long.txt", "oldString": old, "newString": "x"});
    let expected = refusal(&["was not found", &format!("w{at} w{} ", at + 1)]);
    Case::new("a long line differs far inside", "edit", input, expected)
        .file("long.txt", &format!("{}\n", text.trim_end()))
}

/// `oldString` contains HTML entities such as `&lt;` in place of characters.
fn html_entities(rng: &mut Rng) -> Case {
    let number = rng.u16(..);
    let text = format!("if (a{number} < b && c > \"d\") {{\n  run();\n}}\n");
    let old = format!("if (a{number} &lt; b &amp;&amp; c &gt; &quot;d&quot;) {{");
    let input = json!({"filePath": "main.js", "oldString": old, "newString": "if (x) {"});
    Case::new("the quotation has entities", "edit", input, refusal(&["HTML entities"]))
        .file("main.js", &text)
}

/// `oldString` has the same letters in decomposed Unicode form.
fn decomposed(rng: &mut Rng) -> Case {
    let (composed, decomposed) = [
        ("한글", "\u{1112}\u{1161}\u{11ab}\u{1100}\u{1173}\u{11af}"),
        ("café", "cafe\u{301}"),
        ("ガス", "カ\u{3099}ス"),
    ][rng.usize(..3)];
    let number = rng.u16(..);
    let text = format!("name = \"{composed}\" {number}\nother = 1\n");
    let old = format!("name = \"{decomposed}\" {number}");
    let input = json!({"filePath": "names.toml", "oldString": old, "newString": "name = 2"});
    Case::new("the quotation is decomposed", "edit", input, refusal(&["composed"]))
        .file("names.toml", &text)
}

/// The file has no text.
fn empty_file(rng: &mut Rng) -> Case {
    let text = pick(rng, &["", "\n"]);
    let input =
        json!({"filePath": "empty.txt", "oldString": format!("a{}", rng.u8(..)), "newString": "b"});
    Case::new("the file is empty", "edit", input, refusal(&["has no text"])).file("empty.txt", text)
}

/// The lines of both texts begin with their line numbers.
fn numbered_quote(rng: &mut Rng) -> Case {
    let source = Source::among(rng, &LANGUAGES[..9]);
    let format = rng.usize(..4);
    let number = |(line, at): (&String, usize)| match format {
        0 => format!("{at} | {line}"),
        1 => format!("L{at}: {line}"),
        2 => format!("{at:05}| {line}"),
        _ => format!("{at}: {line}"),
    };
    let first = source.body.start;
    let old: Vec<String> = source.lines[source.body.clone()].to_vec();
    let mut new = old.clone();
    new[0].push_str(" // changed");
    let numbered =
        |lines: &[String]| lines.iter().zip(first + 1..).map(number).collect::<Vec<_>>().join("\n");
    let input = json!({"filePath": source.path(), "oldString": numbered(&old), "newString": numbered(&new)});
    let expected = change(source.path(), source.replaced(source.body.clone(), &new));
    Case::new("both texts have line numbers", "edit", input, expected)
        .file(source.path(), &source.text())
}

/// Both texts escape the backquotes of a JavaScript template literal.
fn escaped_template(rng: &mut Rng) -> Case {
    let number = rng.u16(..);
    let text = format!("const a = `x ${{b}} {number}`;\nconst c = 1;\n");
    let old = format!("const a = \\`x \\${{b}} {number}\\`;");
    let new = format!("const a = \\`y \\${{b}} {number}\\`;");
    let wanted = text.replace("`x ", "`y ");
    let input = json!({"filePath": "main.js", "oldString": old, "newString": new});
    Case::new("a template literal is escaped", "edit", input, change("main.js", wanted))
        .file("main.js", &text)
}

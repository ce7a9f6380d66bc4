//! Generates patches with links, moves, several sections for one file, unusual formats and line endings.

use fastrand::Rng;
use serde_json::json;

use super::languages::{Source, pick};
use super::{Case, Expected, Generator, change, refusal};

pub(super) const GENERATORS: &[Generator] = &[
    link,
    move_onto_file,
    move_onto_deleted_file,
    move_away_and_add,
    two_files_at_one_path,
    rewritten_with_placeholder,
    rewritten,
    add_update_move,
    several_updates,
    additions_first,
    malformed,
    tolerated_format,
    lone_carriage_return,
];

/// Returns the arguments of `apply_patch`.
fn patch(sections: &str) -> serde_json::Value {
    json!({"patchText": format!("*** Begin Patch\n{sections}*** End Patch")})
}

/// Expects these contents after the call; `None` for a file that does not exist.
fn changes_to(changes: &[(&str, Option<&str>)]) -> Expected {
    Expected::Changes(
        changes.iter().map(|(path, text)| ((*path).into(), text.map(Into::into))).collect(),
    )
}

/// A link is deleted or moved. The file that it leads to stays.
fn link(rng: &mut Rng) -> Case {
    let text = format!("one {}\n", rng.u16(..));
    let section = match rng.bool() {
        true => "*** Delete File: link.txt\n",
        false => "*** Update File: link.txt\n*** Move to: renamed.txt\n",
    };
    Case::new("a link is patched", "apply_patch", patch(section), changes_to(&[]))
        .file("real.txt", &text)
        .link("link.txt", "real.txt")
}

/// A file is moved to a path at which there is another file.
fn move_onto_file(rng: &mut Rng) -> Case {
    let hunk = if rng.bool() { "@@\n-one\n+two\n" } else { "" };
    let section = format!("*** Update File: a.txt\n*** Move to: b.txt\n{hunk}");
    Case::new(
        "a file is moved onto another",
        "apply_patch",
        patch(&section),
        refusal(&["b.txt exists"]),
    )
    .file("a.txt", "one\n")
    .file("b.txt", &format!("precious {}\n", rng.u16(..)))
}

/// A file is moved to the path of a file that the same patch deletes.
fn move_onto_deleted_file(rng: &mut Rng) -> Case {
    let section =
        "*** Delete File: b.txt\n*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+two\n";
    Case::new(
        "a deleted file is replaced",
        "apply_patch",
        patch(section),
        changes_to(&[("a.txt", None), ("b.txt", Some("two\n"))]),
    )
    .file("a.txt", "one\n")
    .file("b.txt", &format!("old {}\n", rng.u16(..)))
}

/// A file is moved, and a new file is added at its old path.
fn move_away_and_add(rng: &mut Rng) -> Case {
    let (moves, adds) = (
        "*** Update File: a.txt\n*** Move to: b.txt\n@@\n-one\n+two\n",
        "*** Add File: a.txt\n+fresh\n",
    );
    let section = if rng.bool() { format!("{moves}{adds}") } else { format!("{adds}{moves}") };
    Case::new(
        "a file is moved away and replaced",
        "apply_patch",
        patch(&section),
        changes_to(&[("a.txt", Some("fresh\n")), ("b.txt", Some("two\n"))]),
    )
    .file("a.txt", "one\n")
}

/// A file is moved to a path at which the patch adds another file.
fn two_files_at_one_path(rng: &mut Rng) -> Case {
    let (moves, adds) = (
        "*** Update File: a.txt\n*** Move to: b.txt\n".to_owned(),
        format!("*** Add File: b.txt\n+fresh {}\n", rng.u16(..)),
    );
    let section = if rng.bool() { format!("{moves}{adds}") } else { format!("{adds}{moves}") };
    Case::new("two files at one path", "apply_patch", patch(&section), refusal(&["b.txt"]))
        .file("a.txt", "one\n")
}

/// Returns sections that replace a file with these lines, and the path of the new file.
fn rewriting_sections(rng: &mut Rng, path: &str, lines: &[String]) -> (String, String) {
    let (delete, add) = (format!("*** Delete File: {path}\n"), |path: &str| {
        let rows: String = lines.iter().map(|line| format!("+{line}\n")).collect();
        format!("*** Add File: {path}\n{rows}")
    });
    let moved = format!("moved/{path}");
    match rng.usize(..4) {
        0 => (delete + &add(path), path.to_owned()),
        1 => (add(path), path.to_owned()),
        2 => (delete + &add(&moved), moved),
        _ => (add(&moved) + &delete, moved),
    }
}

/// A patch deletes a file and adds it again, with a placeholder for most of its lines.
fn rewritten_with_placeholder(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let mut lines = source.lines[..source.body.start + 1].to_vec();
    lines.push(source.comment("... rest of the file unchanged"));
    let (sections, _) = rewriting_sections(rng, source.path(), &lines);
    Case::new(
        "a file is rewritten with a placeholder",
        "apply_patch",
        patch(&sections),
        refusal(&["omits code"]),
    )
    .file(source.path(), &source.text())
}

/// A patch deletes a file and adds it again, with other lines or with all of its lines.
fn rewritten(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let lines = match rng.bool() {
        true => vec![format!("fresh {}", rng.u16(..)), "second".to_owned()],
        false => {
            let mut lines = source.lines.clone();
            lines.push(source.comment("... rest of the file unchanged"));
            lines
        }
    };
    let (sections, path) = rewriting_sections(rng, source.path(), &lines);
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    let mut changes = vec![(path.as_str(), Some(text.as_str()))];
    if path != source.path() && sections.contains("Delete File") {
        changes.push((source.path(), None));
    }
    Case::new("a file is rewritten", "apply_patch", patch(&sections), changes_to(&changes))
        .file(source.path(), &source.text())
}

/// A file is added, updated and moved in one patch.
fn add_update_move(rng: &mut Rng) -> Case {
    let number = rng.u16(..);
    let section = format!(
        "*** Add File: new.txt\n+one\n+{number}\n*** Update File: new.txt\n@@\n-one\n+two\n*** Update File: new.txt\n*** Move to: sub/final.txt\n"
    );
    let text = format!("two\n{number}\n");
    Case::new(
        "a file is added, updated and moved",
        "apply_patch",
        patch(&section),
        change("sub/final.txt", text),
    )
}

/// Two sections of a patch update the same file.
fn several_updates(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let (first, last) = (source.body.start, source.body.end - 1);
    let changed = |line: usize| format!("{}x", source.lines[line]);
    let section = |line: usize| {
        format!(
            "*** Update File: {}\n@@\n-{}\n+{}\n",
            source.path(),
            source.lines[line],
            changed(line)
        )
    };
    let sections =
        if rng.bool() { section(first) + &section(last) } else { section(last) + &section(first) };
    let mut lines = source.lines.clone();
    (lines[first], lines[last]) = (changed(first), changed(last));
    let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
    Case::new(
        "two sections for one file",
        "apply_patch",
        patch(&sections),
        change(source.path(), text),
    )
    .file(source.path(), &source.text())
}

/// The added lines of a hunk come before the removed ones.
fn additions_first(rng: &mut Rng) -> Case {
    let source = Source::new(rng);
    let line = source.body.start;
    let new = format!("{}x", source.lines[line]);
    let section =
        format!("*** Update File: {}\n@@\n+{new}\n-{}\n", source.path(), source.lines[line]);
    let expected = change(source.path(), source.replaced(line..line + 1, &[new]));
    Case::new("additions come first", "apply_patch", patch(&section), expected)
        .file(source.path(), &source.text())
}

/// The patch mixes formats or is escaped.
fn malformed(rng: &mut Rng) -> Case {
    let (text, mentioned) = [
        ("*** Begin Patch\\n*** Update File: a.txt\\n@@\\n-one\\n+two\\n*** End Patch", "escaped"),
        (
            "*** Begin Patch\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n*** End Patch",
            "unified diff",
        ),
        (
            "*** Begin Patch\n*** Update File: a.txt\n--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-one\n+two\n*** End Patch",
            "unified diff",
        ),
        ("@@ -1 +1 @@\n-one\n+two\n", "--- PATH"),
        ("@@\n-one\n+two\n", "--- PATH"),
    ][rng.usize(..5)];
    Case::new("a malformed patch", "apply_patch", json!({"patchText": text}), refusal(&[mentioned]))
        .file("a.txt", "one\nthree\n")
}

/// The patch is not in the expected format, but its meaning is clear.
fn tolerated_format(rng: &mut Rng) -> Case {
    let text = pick(
        rng,
        &[
            "*** Begin Patch ***\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch ***",
            "cat <<'EOF'\n*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** End Patch\nEOF",
            "--- a/a.txt\n+++ b/a.txt\n@@ -1,5 +1,5 @@\n-one\n+two\n three\n",
            "```diff\n--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n-one\n+two\n three\n```",
        ],
    );
    Case::new(
        "a tolerated format",
        "apply_patch",
        json!({"patchText": text}),
        change("a.txt", "two\nthree\n"),
    )
    .file("a.txt", "one\nthree\n")
}

/// A line of the file ends with a carriage return alone.
fn lone_carriage_return(rng: &mut Rng) -> Case {
    let number = rng.u16(..);
    let text = format!("first {number}\rsecond\r\nthird\nfourth\n");
    let wanted = text.replace("second", "2nd");
    let (tool, input) = match rng.bool() {
        true => (
            "apply_patch",
            patch(&format!("*** Update File: a.txt\n@@\n first {number}\n-second\n+2nd\n third\n")),
        ),
        false => (
            "edit",
            json!({"filePath": "a.txt", "oldString": format!("first {number}\nsecond\nthird"), "newString": format!("first {number}\n2nd\nthird")}),
        ),
    };
    Case::new("a lone carriage return ends a line", tool, input, change("a.txt", wanted))
        .file("a.txt", &text)
}

//! Small files in many languages, and the ways in which a change to them can be sent.

use std::ops::Range;

use fastrand::Rng;
use serde_json::{Value, json};

pub(super) struct Language {
    pub(super) file_name: &'static str,
    /// The start and the end of a comment.
    pub(super) comment: (&'static str, &'static str),
    pub(super) indent: &'static str,
    /// Templates of the first line, a line and the last line of a block. `#` stands for a number.
    block: (&'static str, &'static str, &'static str),
}

pub(super) const LANGUAGES: &[Language] = &[
    Language {
        file_name: "main.rs",
        comment: ("//", ""),
        indent: "    ",
        block: ("fn step_#() {", "let value_# = compute_#(1);", "}"),
    },
    Language {
        file_name: "main.py",
        comment: ("#", ""),
        indent: "    ",
        block: ("def step_#():", "value_# = compute_#(1)", ""),
    },
    Language {
        file_name: "main.js",
        comment: ("//", ""),
        indent: "  ",
        block: ("function step#() {", "const value# = compute#(1);", "}"),
    },
    Language {
        file_name: "main.ts",
        comment: ("//", ""),
        indent: "  ",
        block: ("export function step#(): void {", "const value#: number = compute#(1);", "}"),
    },
    Language {
        file_name: "main.go",
        comment: ("//", ""),
        indent: "\t",
        block: ("func step#() {", "value# := compute#(1)", "}"),
    },
    Language {
        file_name: "Main.java",
        comment: ("//", ""),
        indent: "    ",
        block: ("void step#() {", "int value# = compute#(1);", "}"),
    },
    Language {
        file_name: "main.c",
        comment: ("/*", " */"),
        indent: "    ",
        block: ("void step_#(void) {", "int value_# = compute_#(1);", "}"),
    },
    Language {
        file_name: "query.sql",
        comment: ("--", ""),
        indent: "  ",
        block: ("CREATE TABLE step_# (", "column_# INTEGER NOT NULL,", ");"),
    },
    Language {
        file_name: "run.sh",
        comment: ("#", ""),
        indent: "  ",
        block: ("step_#() {", "compute_# one two", "}"),
    },
    Language {
        file_name: "config.yaml",
        comment: ("#", ""),
        indent: "  ",
        block: ("step_#:", "value_#: compute_#", ""),
    },
    Language {
        file_name: "index.html",
        comment: ("<!--", " -->"),
        indent: "  ",
        block: ("<section id=\"step-#\">", "<p>Value # of the page</p>", "</section>"),
    },
    Language {
        file_name: "Makefile",
        comment: ("#", ""),
        indent: "\t",
        block: ("step-#:", "compute-# --fast", ""),
    },
    Language {
        file_name: "style.css",
        comment: ("/*", " */"),
        indent: "  ",
        block: (".step-# {", "margin-left: #px;", "}"),
    },
];

/// A file with blocks of lines, all of which differ.
pub(super) struct Source {
    pub(super) language: &'static Language,
    pub(super) lines: Vec<String>,
    /// The lines inside a block in the middle of the file.
    pub(super) body: Range<usize>,
}

impl Source {
    pub(super) fn new(rng: &mut Rng) -> Source {
        Source::among(rng, LANGUAGES)
    }

    /// Returns a file in one of these languages.
    pub(super) fn among(rng: &mut Rng, languages: &'static [Language]) -> Source {
        let language = &languages[rng.usize(..languages.len())];
        let (mut lines, mut number) = (Vec::new(), rng.usize(10..90));
        let (blocks, edited) = (rng.usize(2..5), 1);
        let mut body = 0..0;
        for block in 0..blocks {
            let (first, line, last) = language.block;
            let fill = |template: &str, number: usize| template.replace('#', &number.to_string());
            lines.push(fill(first, number));
            let start = lines.len();
            for _ in 0..rng.usize(3..7) {
                number += 1;
                lines.push(format!("{}{}", language.indent, fill(line, number)));
            }
            if block == edited {
                body = start..lines.len();
            }
            if !last.is_empty() {
                lines.push(last.to_owned());
            }
            lines.push(String::new());
            number += 1;
        }
        Source { language, lines, body }
    }

    pub(super) fn path(&self) -> &'static str {
        self.language.file_name
    }

    pub(super) fn text(&self) -> String {
        join(&self.lines)
    }

    /// Returns a comment, indented like the body.
    pub(super) fn comment(&self, text: &str) -> String {
        let (open, close) = self.language.comment;
        format!("{}{open} {text}{close}", self.language.indent)
    }

    /// Returns the text with some lines replaced.
    pub(super) fn replaced(&self, range: Range<usize>, new: &[String]) -> String {
        let mut lines = self.lines.clone();
        lines.splice(range, new.iter().cloned());
        join(&lines)
    }

    /// Returns a call that replaces some lines, through one of the tools.
    pub(super) fn call(
        &self,
        rng: &mut Rng,
        range: Range<usize>,
        new: &[String],
    ) -> (&'static str, Value) {
        let (path, old) = (self.path(), self.lines[range.clone()].join("\n"));
        match rng.usize(..4) {
            0 => ("edit", json!({"filePath": path, "oldString": old, "newString": new.join("\n")})),
            1 => {
                let edit = json!({"oldString": old, "newString": new.join("\n")});
                ("multiedit", json!({"filePath": path, "edits": [edit]}))
            }
            2 => ("apply_patch", json!({"patchText": self.patch(range, new)})),
            _ => ("write", json!({"filePath": path, "content": self.replaced(range, new)})),
        }
    }

    /// Returns a patch that replaces some lines.
    pub(super) fn patch(&self, range: Range<usize>, new: &[String]) -> String {
        let mut rows = String::new();
        if let Some(before) = range.start.checked_sub(1) {
            rows.push_str(&format!(" {}\n", self.lines[before]));
        }
        let added: Vec<&String> = new.iter().collect();
        let unchanged = self.lines[range.clone()]
            .iter()
            .zip(&added)
            .take_while(|(old, new)| old == *new)
            .count();
        for line in &self.lines[range.start..range.start + unchanged] {
            rows.push_str(&format!(" {line}\n"));
        }
        for line in &self.lines[range.start + unchanged..range.end] {
            rows.push_str(&format!("-{line}\n"));
        }
        for line in &new[unchanged..] {
            rows.push_str(&format!("+{line}\n"));
        }
        format!("*** Begin Patch\n*** Update File: {}\n@@\n{rows}*** End Patch", self.path())
    }
}

fn join(lines: &[String]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// Chooses one of the items.
pub(super) fn pick<'a, T: ?Sized>(rng: &mut Rng, items: &[&'a T]) -> &'a T {
    items[rng.usize(..items.len())]
}

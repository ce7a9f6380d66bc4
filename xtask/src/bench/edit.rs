//! Edits: in a large file, in a small one, and what is said of one that fits nowhere.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::Figures;
use super::calls::{answered, compared, tool};
use super::measure::timed;
use super::stage::Stage;

const LARGE: usize = 1 << 20;
/// Where the edits apply.
const LINE: usize = 12_345;

/// The old and the new text, by turns, so that every call changes something.
pub(super) fn exact(stage: &mut Stage) -> Result<Figures, String> {
    turns(stage, "large.txt", &large(), |number| format!("        value_{LINE} = {number};\n"))
}

/// The same, quoted with another indentation.
pub(super) fn tolerant(stage: &mut Stage) -> Result<Figures, String> {
    turns(stage, "tolerant.txt", &large(), |number| {
        format!("  begin_{LINE}();\n  value_{LINE} = {number};\n  end_{LINE}();\n")
    })
}

pub(super) fn small(stage: &mut Stage) -> Result<Figures, String> {
    let text = block(LINE, 0) + &block(1, 0);
    turns(stage, "edited.txt", &text, |number| format!("        value_{LINE} = {number};\n"))
}

/// A quotation of which a value is another one now.
pub(super) fn nearest(stage: &mut Stage) -> Result<Figures, String> {
    let path = stage.helve.workspace.join("nearest.txt");
    write(&path, &large())?;
    let quoted = block(LINE, 0).replace("end", "finish");
    let arguments = json!({"filePath": path, "oldString": quoted, "newString": "x"});
    let server = stage.editor()?;
    let ours = || {
        let (answer, took) = answered(server, "edit", &arguments)?;
        match answer.is_error && answer.text.contains("The nearest place is lines") {
            true => Ok(took),
            false => Err(format!("another answer: {}", answer.text)),
        }
    };
    compared("read 1 MB", 20, || read(&path), ours)
}

fn turns(
    stage: &mut Stage,
    name: &str,
    text: &str,
    quoted: impl Fn(usize) -> String,
) -> Result<Figures, String> {
    let path = stage.helve.workspace.join(name);
    write(&path, text)?;
    let beside = stage.helve.workspace.join(format!("floor-{name}"));
    let server = stage.editor()?;
    let mut number = 0;
    let ours = || {
        let (old, new) = (quoted(number), quoted(number + 1));
        number += 1;
        let arguments: Value = json!({"filePath": path, "oldString": old, "newString": new});
        tool(server, "edit", &arguments, "Edited")
    };
    compared("write, sync, rename, sync", 40, || synced(&beside, text), ours)
}

/// The least that a careful writer does.
fn synced(path: &Path, text: &str) -> Result<Duration, String> {
    let told = |error: std::io::Error| format!("{}: {error}", path.display());
    let folder = path.parent().unwrap_or(path);
    let temporary = path.with_extension("tmp");
    let ((), took) = timed(|| {
        let mut file = File::create(&temporary).map_err(told)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(told)?;
        fs::rename(&temporary, path).map_err(told)?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(told)
    })?;
    Ok(took)
}

fn read(path: &Path) -> Result<Duration, String> {
    let read = || fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    timed(read).map(|(_, took)| took)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A megabyte of blocks that differ in their numbers.
fn large() -> String {
    let mut text = String::with_capacity(LARGE + 200);
    let mut number = LINE;
    while text.len() < LARGE {
        text.push_str(&block(number, 0));
        number = if number == LINE { 0 } else { number + 1 };
        number += usize::from(number == LINE);
    }
    text
}

fn block(number: usize, value: usize) -> String {
    let mut text = String::new();
    for line in [
        format!("        begin_{number}();"),
        format!("        value_{number} = {value};"),
        format!("        end_{number}();"),
    ] {
        writeln!(text, "{line}").unwrap_or_default();
    }
    text
}

//! Benchmarks of `edit`: in a large file, in a small file, and with an old text that matches nowhere.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;
use std::time::Duration;

use serde_json::json;

use super::Measurement;
use super::calls::{compare, timed_call, timed_call_expecting};
use super::fixture::Fixture;
use super::measure::timed;

const LARGE_BYTES: usize = 1 << 20;
/// Number of edits of one kind, and of writes that they are compared with.
const ROUNDS: usize = 100;
/// Number of the block that is edited.
const BLOCK: usize = 12_345;

/// How the edits are called.
#[derive(Clone, Copy)]
enum Door {
    /// Over MCP, as a client sees it.
    Mcp,
    /// Through the library, in the process that measures.
    Library,
}

pub(super) fn exact(fixture: &mut Fixture) -> Result<Measurement, String> {
    repeat_exact(fixture, Door::Mcp, "large.txt")
}

pub(super) fn exact_in_process(fixture: &mut Fixture) -> Result<Measurement, String> {
    repeat_exact(fixture, Door::Library, "large-library.txt")
}

pub(super) fn tolerant(fixture: &mut Fixture) -> Result<Measurement, String> {
    repeat_tolerant(fixture, Door::Mcp, "tolerant.txt")
}

pub(super) fn tolerant_in_process(fixture: &mut Fixture) -> Result<Measurement, String> {
    repeat_tolerant(fixture, Door::Library, "tolerant-library.txt")
}

pub(super) fn small(fixture: &mut Fixture) -> Result<Measurement, String> {
    repeat_small(fixture, Door::Mcp, "edited.txt")
}

pub(super) fn small_in_process(fixture: &mut Fixture) -> Result<Measurement, String> {
    repeat_small(fixture, Door::Library, "edited-library.txt")
}

/// Measures edits whose old text matches exactly.
fn repeat_exact(fixture: &mut Fixture, door: Door, name: &str) -> Result<Measurement, String> {
    repeat_edit(fixture, door, name, &large_text(), |number| {
        format!("        value_{BLOCK} = {number};\n")
    })
}

/// Measures edits whose old text is indented differently than in the file.
fn repeat_tolerant(fixture: &mut Fixture, door: Door, name: &str) -> Result<Measurement, String> {
    repeat_edit(fixture, door, name, &large_text(), |number| {
        format!("  begin_{BLOCK}();\n  value_{BLOCK} = {number};\n  end_{BLOCK}();\n")
    })
}

fn repeat_small(fixture: &mut Fixture, door: Door, name: &str) -> Result<Measurement, String> {
    let text = block(BLOCK, 0) + &block(1, 0);
    repeat_edit(fixture, door, name, &text, |number| format!("        value_{BLOCK} = {number};\n"))
}

/// Measures edits that fail because the old text only resembles a part of the file.
pub(super) fn nearest(fixture: &mut Fixture) -> Result<Measurement, String> {
    let path = fixture.helve.workspace.join("nearest.txt");
    write(&path, &large_text())?;
    let similar = block(BLOCK, 0).replace("end", "finish");
    let arguments = json!({"filePath": path, "oldString": similar, "newString": "x"});
    let server = fixture.editing_server()?;
    let ours = || {
        let (answer, took) = timed_call(server, "edit", &arguments)?;
        if answer.is_error && answer.text.contains("The closest match is lines") {
            return Ok(took);
        }
        Err(format!("unexpected answer: {}", answer.text))
    };
    compare("read 1 MB", 20, || timed_read(&path), ours)
}

/// Measures repeated edits of a file. Call number `n` replaces `text_at(n)` with `text_at(n + 1)`. The baseline is the
/// time to write the whole text to another file durably.
fn repeat_edit(
    fixture: &mut Fixture,
    door: Door,
    name: &str,
    text: &str,
    text_at: impl Fn(usize) -> String,
) -> Result<Measurement, String> {
    let path = fixture.helve.workspace.join(name);
    write(&path, text)?;
    let baseline_path = fixture.helve.workspace.join(format!("baseline-{name}"));
    let mut number = 0;
    let mut next_arguments = || {
        let (old, new) = (text_at(number), text_at(number + 1));
        number += 1;
        json!({"filePath": path, "oldString": old, "newString": new})
    };
    let baseline = || timed_synced_write(&baseline_path, text);
    let command = "write, sync, rename, sync";
    match door {
        Door::Mcp => {
            let server = fixture.editing_server()?;
            compare(command, ROUNDS, baseline, || {
                timed_call_expecting(server, "edit", &next_arguments(), "Edited")
            })
        }
        Door::Library => {
            let library = fixture.library()?;
            compare(command, ROUNDS, baseline, || {
                library.timed_call_expecting("edit", &next_arguments(), "Edited")
            })
        }
    }
}

/// Writes a file durably in as few steps as possible. Returns how long it took.
fn timed_synced_write(path: &Path, text: &str) -> Result<Duration, String> {
    let with_path = |error: std::io::Error| format!("{}: {error}", path.display());
    let folder = path.parent().unwrap_or(path);
    let temporary = path.with_extension("tmp");
    let ((), took) = timed(|| {
        let mut file = File::create(&temporary).map_err(with_path)?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(with_path)?;
        fs::rename(&temporary, path).map_err(with_path)?;
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(with_path)
    })?;
    Ok(took)
}

fn timed_read(path: &Path) -> Result<Duration, String> {
    let read = || fs::read(path).map_err(|error| format!("{}: {error}", path.display()));
    timed(read).map(|(_, took)| took)
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// Returns a megabyte of blocks with different numbers. The first block is number `BLOCK`.
fn large_text() -> String {
    let mut text = String::with_capacity(LARGE_BYTES + 200);
    for number in std::iter::once(BLOCK).chain((0..).filter(|number| *number != BLOCK)) {
        if text.len() >= LARGE_BYTES {
            break;
        }
        text.push_str(&block(number, 0));
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

//! Two servers that change different lines of the same files: no update is lost, and neither waits for ever.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use super::{Ground, Progress};
use crate::helve::Helve;

/// A server does so many rounds, then another takes its place.
const SHIFT: usize = 10_000;
/// Both files at once, in opposite order, after so many rounds.
const BOTH_EVERY: usize = 10;
const FILES: [&str; 2] = ["a.txt", "b.txt"];
/// Attempts before a round counts as stuck.
const MOST_ATTEMPTS: usize = 1_000;

pub(super) fn run(ground: &Ground) -> Result<String, String> {
    let helve = ground.helve()?;
    for file in FILES {
        let filler: String = (0..20).map(|number| format!("between {number}\n")).collect();
        let text = format!("left 0 of {file}\n{filler}right 0 of {file}\n");
        fs::write(helve.workspace.join(file), text).map_err(|error| error.to_string())?;
    }
    let (progress, refused) = (Progress::new(ground.count), AtomicUsize::new(0));
    let ends = thread::scope(|scope| {
        let sides = [("left", [0, 1]), ("right", [1, 0])].map(|(side, order)| {
            let (progress, refused) = (&progress, &refused);
            scope.spawn(move || {
                let mut side = Side { helve, name: side, order, numbers: [0; 2] };
                side.play(ground.count, progress, refused).map(|()| side.numbers)
            })
        });
        let joined = |_| Err("a side panicked".to_owned());
        sides.map(|side| side.join().unwrap_or_else(joined))
    });
    let [left, right] = ends;
    let (left, right) = (left?, right?);
    for (at, file) in FILES.iter().enumerate() {
        let text = fs::read_to_string(helve.workspace.join(file)).map_err(|it| it.to_string())?;
        let first = format!("left {} of {file}\n", left[at]);
        let last = format!("\nright {} of {file}\n", right[at]);
        if !text.starts_with(&first) || !text.ends_with(&last) || text.lines().count() != 22 {
            return Err(format!("{file} should have {first:?} and {last:?} and reads:\n{text}"));
        }
    }
    let refused = refused.into_inner();
    Ok(format!("2 × {} rounds, none lost, {refused} refused in words and made again", ground.count))
}

struct Side<'a> {
    helve: &'a Helve,
    name: &'static str,
    order: [usize; 2],
    numbers: [u64; 2],
}

impl Side<'_> {
    /// Each round quotes what the one before wrote: a lost update would be noticed by the next.
    fn play(
        &mut self,
        count: usize,
        progress: &Progress,
        refused: &AtomicUsize,
    ) -> Result<(), String> {
        let mut server = None;
        for round in 0..count {
            if round % SHIFT == 0 {
                let mut fresh = self.helve.serve_with(&["--allow", "edit"])?;
                fresh.client()?.initialize()?;
                server = Some(fresh);
            }
            let Some(server) = &mut server else { continue };
            let files: Vec<usize> =
                if round % BOTH_EVERY == 0 { self.order.into() } else { vec![round % 2] };
            let (tool, arguments) = self.change(&files);
            let mut attempts = 0;
            loop {
                let answer = server.client()?.call(tool, &arguments)?;
                if !answer.is_error {
                    break;
                }
                attempts += 1;
                if !answer.text.contains("Nothing was written") || attempts > MOST_ATTEMPTS {
                    return Err(format!("{} {round}: {}", self.name, answer.text));
                }
                refused.fetch_add(1, Ordering::Relaxed);
            }
            for file in files {
                self.numbers[file] += 1;
            }
            if self.name == "left" {
                progress.step();
            }
        }
        Ok(())
    }

    fn change(&self, files: &[usize]) -> (&'static str, serde_json::Value) {
        let line = |file: usize, number: u64| format!("{} {number} of {}", self.name, FILES[file]);
        let pair =
            |file: usize| (line(file, self.numbers[file]), line(file, self.numbers[file] + 1));
        if let [file] = files {
            let (old, new) = pair(*file);
            let arguments = json!({"filePath": FILES[*file], "oldString": old, "newString": new});
            return ("edit", arguments);
        }
        let mut patch = String::from("*** Begin Patch\n");
        for file in files {
            let (old, new) = pair(*file);
            patch.push_str(&format!("*** Update File: {}\n-{old}\n+{new}\n", FILES[*file]));
        }
        ("apply_patch", json!({"patchText": patch + "*** End Patch"}))
    }
}

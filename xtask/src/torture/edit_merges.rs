//! Two servers change different lines of the same files. No change may be lost, and neither server may wait forever.

use std::fs;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::json;

use super::{Context, Progress};
use crate::helve::Helve;

/// Number of rounds after which a new server is started.
const ROUNDS_PER_SERVER: usize = 10_000;
/// Every so many rounds, a call changes both files. The two servers name the files in opposite order.
const BOTH_EVERY: usize = 10;
const FILES: [&str; 2] = ["a.txt", "b.txt"];
/// Number of refused attempts after which a round has failed.
const MAX_ATTEMPTS: usize = 1_000;

pub(super) fn run(context: &Context) -> Result<String, String> {
    let helve = context.helve()?;
    for file in FILES {
        let filler: String = (0..20).map(|number| format!("between {number}\n")).collect();
        let text = format!("left 0 of {file}\n{filler}right 0 of {file}\n");
        fs::write(helve.workspace.join(file), text).map_err(|error| error.to_string())?;
    }
    let (progress, refused) = (Progress::new(context.count), AtomicUsize::new(0));
    let results = thread::scope(|scope| {
        let editors = [("left", [0, 1]), ("right", [1, 0])].map(|(name, order)| {
            let (progress, refused) = (&progress, &refused);
            scope.spawn(move || {
                let mut editor = LineEditor { helve, name, order, numbers: [0; 2] };
                editor.edit(context.count, progress, refused).map(|()| editor.numbers)
            })
        });
        let panicked = |_| Err("an editor panicked".to_owned());
        editors.map(|editor| editor.join().unwrap_or_else(panicked))
    });
    let [left, right] = results;
    let (left, right) = (left?, right?);
    for (index, file) in FILES.iter().enumerate() {
        let text = fs::read_to_string(helve.workspace.join(file)).map_err(|it| it.to_string())?;
        let first = format!("left {} of {file}\n", left[index]);
        let last = format!("\nright {} of {file}\n", right[index]);
        if !text.starts_with(&first) || !text.ends_with(&last) || text.lines().count() != 22 {
            return Err(format!(
                "{file} should start with {first:?} and end with {last:?}, but contains:\n{text}"
            ));
        }
    }
    let refused = refused.into_inner();
    Ok(format!("2 × {} rounds, no change lost, {refused} calls refused and retried", context.count))
}

/// Changes one line of each file, the first or the last.
struct LineEditor<'a> {
    helve: &'a Helve,
    name: &'static str,
    /// Order of the files in a call that changes both.
    order: [usize; 2],
    /// The number in the line of each file.
    numbers: [u64; 2],
}

impl LineEditor<'_> {
    /// Makes `count` rounds of edits. Each round replaces what the previous one wrote, so it fails if that change was
    /// lost.
    fn edit(
        &mut self,
        count: usize,
        progress: &Progress,
        refused: &AtomicUsize,
    ) -> Result<(), String> {
        let mut server = None;
        for round in 0..count {
            if round % ROUNDS_PER_SERVER == 0 {
                let mut new_server = self.helve.start_mcp_with(&["--allow", "edit"])?;
                new_server.client()?.initialize()?;
                server = Some(new_server);
            }
            let Some(server) = &mut server else { continue };
            let files: Vec<usize> =
                if round % BOTH_EVERY == 0 { self.order.into() } else { vec![round % 2] };
            let (tool, arguments) = self.next_call(&files);
            let mut attempts = 0;
            loop {
                let answer = server.client()?.call(tool, &arguments)?;
                if !answer.is_error {
                    break;
                }
                attempts += 1;
                if !answer.text.contains("Nothing was written") || attempts > MAX_ATTEMPTS {
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

    /// Returns a call that increments the numbers in these files.
    fn next_call(&self, files: &[usize]) -> (&'static str, serde_json::Value) {
        let line = |file: usize, number: u64| format!("{} {number} of {}", self.name, FILES[file]);
        let old_and_new =
            |file: usize| (line(file, self.numbers[file]), line(file, self.numbers[file] + 1));
        if let [file] = files {
            let (old, new) = old_and_new(*file);
            let arguments = json!({"filePath": FILES[*file], "oldString": old, "newString": new});
            return ("edit", arguments);
        }
        let mut patch = String::from("*** Begin Patch\n");
        for file in files {
            let (old, new) = old_and_new(*file);
            patch.push_str(&format!("*** Update File: {}\n-{old}\n+{new}\n", FILES[*file]));
        }
        ("apply_patch", json!({"patchText": patch + "*** End Patch"}))
    }
}

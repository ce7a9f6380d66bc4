//! Kills servers while they change files. Each file must have its content from before or after the interrupted call,
//! and it must be possible to undo that call.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Context, Progress, random_duration, todos};
use crate::helve::Helve;

const WORKERS: u64 = 2;
/// Number of kills after which the last call is undone.
const UNDO_EVERY: usize = 20;
const FILES: [&str; 3] = ["one.txt", "two.txt", "deep/er/three.txt"];
/// The number in each of the three files.
type FileNumbers = [u64; 3];

pub(super) fn run(context: &Context) -> Result<String, String> {
    let (calls, undone) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let progress = Progress::new(context.count);
    let share = context.count.div_ceil(WORKERS as usize);
    thread::scope(|scope| {
        let workers: Vec<_> = (0..WORKERS)
            .map(|number| {
                let (calls, undone, progress) = (&calls, &undone, &progress);
                scope.spawn(move || {
                    let mut worker = EditWorker::new(context, number)?;
                    for kill in 1..=share {
                        worker
                            .call_until_killed(calls)
                            .map_err(|why| format!("kill {kill}: {why}"))?;
                        if kill % UNDO_EVERY == 0 && worker.has_changed() {
                            worker.undo().map_err(|why| format!("undo {kill}: {why}"))?;
                            undone.fetch_add(1, Ordering::Relaxed);
                        }
                        progress.step();
                    }
                    worker.finish()
                })
            })
            .collect();
        let panicked = |_| Err("a worker panicked".to_owned());
        workers.into_iter().try_for_each(|worker| worker.join().unwrap_or_else(panicked))
    })?;
    let databases = todos::check_databases(&context.helve()?.data())?;
    let kills = share * WORKERS as usize;
    let (calls, undone) = (calls.into_inner(), undone.into_inner());
    Ok(format!(
        "{kills} kills, {calls} finished calls, {undone} calls undone; no file had mixed content, {databases}"
    ))
}

/// Changes the files of one folder through one server after another.
struct EditWorker {
    helve: Helve,
    rng: Rng,
    /// The numbers in the files before the last call that changed them.
    before: FileNumbers,
    /// The numbers in the files now.
    now: FileNumbers,
    /// The numbers in the files after the current call, if it finishes.
    pending: FileNumbers,
    /// Maximum time after which a server is killed.
    kill_window: Duration,
}

impl EditWorker {
    fn new(context: &Context, number: u64) -> Result<EditWorker, String> {
        let helve = context.helve()?.with_workspace(&format!("worker{number}"))?;
        let worker = EditWorker {
            helve,
            rng: context.rng(number),
            before: [0; 3],
            now: [0; 3],
            pending: [0; 3],
            kill_window: Duration::from_millis(40),
        };
        for file in FILES {
            let path = worker.path(file);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(|error| error.to_string())?;
            }
            fs::write(path, content(0)).map_err(|error| error.to_string())?;
        }
        Ok(worker)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.helve.workspace.join(file)
    }

    /// Makes calls until the server is killed, then checks the files.
    fn call_until_killed(&mut self, calls: &AtomicUsize) -> Result<(), String> {
        let delay = random_duration(&mut self.rng, self.kill_window);
        let mut server = self.helve.start_mcp_with(&["--allow", "edit"])?;
        let killer = server.killer();
        let killer_thread = thread::spawn(move || {
            thread::sleep(delay);
            killer.kill();
        });
        let mut answered = 0;
        if server.client()?.initialize().is_ok() {
            loop {
                let (tool, arguments, next) = self.choose_call();
                self.pending = next;
                match server.client()?.call(tool, &arguments) {
                    Ok(answer) if answer.is_error => {
                        return Err(format!("{tool} was refused: {}", answer.text));
                    }
                    Ok(_) => (self.before, self.now) = (self.now, next),
                    Err(_) => break,
                }
                answered += 1;
            }
        }
        killer_thread.join().map_err(|_| "the killer panicked".to_owned())?;
        drop(server);
        calls.fetch_add(answered, Ordering::Relaxed);
        // The window is adjusted so that a few calls are answered before the kill.
        self.kill_window = match answered {
            0 => self.kill_window * 11 / 10,
            1..=6 => self.kill_window,
            _ => self.kill_window * 9 / 10,
        };
        self.check_files()
    }

    /// Returns a random call, and the numbers in the files after it.
    fn choose_call(&mut self) -> (&'static str, Value, FileNumbers) {
        let mut next = self.now;
        let index = self.rng.usize(..3);
        let edit = |numbers: &mut FileNumbers, index: usize| {
            let old = numbers[index];
            numbers[index] += 1;
            (format!("number {old} "), format!("number {} ", numbers[index]))
        };
        match self.rng.u64(..3) {
            0 => {
                let (old, new) = edit(&mut next, index);
                let arguments = json!({"filePath": FILES[index], "oldString": old, "newString": new, "replaceAll": true});
                ("edit", arguments, next)
            }
            1 => {
                let (old, new) = edit(&mut next, index);
                let first = json!({"oldString": old, "newString": "between ", "replaceAll": true});
                let second = json!({"oldString": "between ", "newString": new, "replaceAll": true});
                ("multiedit", json!({"filePath": FILES[index], "edits": [first, second]}), next)
            }
            _ => {
                let mut patch = String::from("*** Begin Patch\n");
                for (index, file) in FILES.iter().enumerate() {
                    let (old, new) = edit(&mut next, index);
                    patch.push_str(&format!("*** Update File: {file}\n"));
                    for _ in 0..LINES {
                        patch.push_str(&format!("-{}\n", line(&old)));
                    }
                    for _ in 0..LINES {
                        patch.push_str(&format!("+{}\n", line(&new)));
                    }
                }
                ("apply_patch", json!({"patchText": patch + "*** End Patch"}), next)
            }
        }
    }

    /// Checks that each file has its number from before or after the interrupted call.
    fn check_files(&mut self) -> Result<(), String> {
        let mut found = self.now;
        for (index, file) in FILES.iter().enumerate() {
            let number = number(&self.path(file))?;
            if number != self.now[index] && number != self.pending[index] {
                let (now, pending) = (self.now[index], self.pending[index]);
                return Err(format!("{file} contains {number} instead of {now} or {pending}"));
            }
            found[index] = number;
        }
        if found != self.now {
            self.before = self.now;
        }
        self.now = found;
        Ok(())
    }

    fn has_changed(&self) -> bool {
        self.before != self.now
    }

    /// Undoes the last call that started to change files, finished or not.
    fn undo(&mut self) -> Result<(), String> {
        let finished = self.helve.run(&["--yes", "undo"])?;
        finished.success("helve undo")?;
        let mut found = self.now;
        for (index, file) in FILES.iter().enumerate() {
            found[index] = number(&self.path(file))?;
        }
        if found != self.before && found != self.now {
            return Err(format!(
                "the files contain {found:?} instead of {:?} or {:?}",
                self.before, self.now
            ));
        }
        // The undo is a change too.
        (self.before, self.now) = (self.now, found);
        Ok(())
    }

    /// Checks that one more change removes all temporary files that killed calls left behind.
    fn finish(&mut self) -> Result<(), String> {
        for file in FILES {
            let path = Path::new(file).with_extension("last");
            let arguments = json!({"filePath": path, "content": "last\n"});
            let mut command = self.helve.call_command("last", "write", &arguments);
            command.arg("--yes");
            crate::process::run(&mut command, crate::helve::CALL_LIMIT)?
                .success("helve call write")?;
            let folder = self.path(file);
            let folder = folder.parent().unwrap_or(&folder);
            for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
                let name = entry.map_err(|error| error.to_string())?.file_name();
                if name.to_string_lossy().starts_with(".helve-") {
                    return Err(format!(
                        "{} was left behind in {}",
                        name.display(),
                        folder.display()
                    ));
                }
            }
        }
        Ok(())
    }
}

/// Number of lines of each file.
const LINES: usize = 100;

fn line(number: &str) -> String {
    format!("{number}of many lines that an incomplete write would mix")
}

/// Returns the text of a file with the same number in each line.
fn content(number: u64) -> String {
    format!("{}\n", line(&format!("number {number} "))).repeat(LINES)
}

/// Returns the number in a file, or an error if its lines differ.
fn number(path: &Path) -> Result<u64, String> {
    let found = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let number = found.split(' ').nth(1).and_then(|word| word.parse().ok());
    match number {
        Some(number) if found == content(number) => Ok(number),
        Some(_) | None => {
            let start: String = found.chars().take(200).collect();
            Err(format!("{} has mixed content: {} bytes, {start:?}", path.display(), found.len()))
        }
    }
}

//! A server killed while it changes files: each is old or new, and what was interrupted can be taken back.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::random::Random;
use super::{Ground, Progress, todos};
use crate::helve::Helve;

const LANES: u64 = 2;
/// What was interrupted is taken back after so many kills.
const UNDO_EVERY: usize = 20;
const FILES: [&str; 3] = ["one.txt", "two.txt", "deep/er/three.txt"];
/// The numbers of the three files.
type State = [u64; 3];

pub(super) fn run(ground: &Ground) -> Result<String, String> {
    let (calls, undone) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let progress = Progress::new(ground.count);
    let share = ground.count.div_ceil(LANES as usize);
    thread::scope(|scope| {
        let lanes: Vec<_> = (0..LANES)
            .map(|lane| {
                let (calls, undone, progress) = (&calls, &undone, &progress);
                scope.spawn(move || {
                    let mut lane = Lane::new(ground, lane)?;
                    for kill in 1..=share {
                        lane.until_killed(calls).map_err(|why| format!("kill {kill}: {why}"))?;
                        if kill % UNDO_EVERY == 0 && lane.has_changed() {
                            lane.take_back().map_err(|why| format!("undo {kill}: {why}"))?;
                            undone.fetch_add(1, Ordering::Relaxed);
                        }
                        progress.step();
                    }
                    lane.finish()
                })
            })
            .collect();
        let joined = |_| Err("a lane panicked".to_owned());
        lanes.into_iter().try_for_each(|lane| lane.join().unwrap_or_else(joined))
    })?;
    let databases = todos::check_databases(&ground.helve()?.data())?;
    let kills = share * LANES as usize;
    let (calls, undone) = (calls.into_inner(), undone.into_inner());
    Ok(format!(
        "{kills} kills among {calls} finished calls, {undone} undone; every file old or new, {databases}"
    ))
}

/// One folder, changed by one server after the other.
struct Lane {
    helve: Helve,
    random: Random,
    /// Before and after the last call that was answered.
    before: State,
    now: State,
    /// What the call that was under way would have left.
    perhaps: State,
    span: Duration,
}

impl Lane {
    fn new(ground: &Ground, lane: u64) -> Result<Lane, String> {
        let helve = ground.helve()?.in_folder(&format!("lane{lane}"))?;
        let lane = Lane {
            helve,
            random: Random::new(ground.seed, lane),
            before: [0; 3],
            now: [0; 3],
            perhaps: [0; 3],
            span: Duration::from_millis(40),
        };
        for file in FILES {
            let path = lane.path(file);
            if let Some(folder) = path.parent() {
                fs::create_dir_all(folder).map_err(|error| error.to_string())?;
            }
            fs::write(path, content(0)).map_err(|error| error.to_string())?;
        }
        Ok(lane)
    }

    fn path(&self, file: &str) -> PathBuf {
        self.helve.workspace.join(file)
    }

    /// Calls until the server is gone, then looks at the files.
    fn until_killed(&mut self, calls: &AtomicUsize) -> Result<(), String> {
        let span = u64::try_from(self.span.as_micros()).unwrap_or(u64::MAX);
        let moment = Duration::from_micros(self.random.below(span));
        let mut server = self.helve.serve_with(&["--allow", "edit"])?;
        let killer = server.killer();
        let killing = thread::spawn(move || {
            thread::sleep(moment);
            killer.kill();
        });
        let mut answered = 0;
        if server.client()?.initialize().is_ok() {
            loop {
                let (tool, arguments, next) = self.choose();
                self.perhaps = next;
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
        killing.join().map_err(|_| "the killer panicked".to_owned())?;
        drop(server);
        calls.fetch_add(answered, Ordering::Relaxed);
        // Drifts to where a few calls are answered before the kill.
        self.span = match answered {
            0 => self.span * 11 / 10,
            1..=6 => self.span,
            _ => self.span * 9 / 10,
        };
        self.look()
    }

    fn choose(&mut self) -> (&'static str, Value, State) {
        let mut next = self.now;
        let which = self.random.below(3) as usize;
        let edit = |state: &mut State, at: usize| {
            let old = state[at];
            state[at] += 1;
            (format!("number {old} "), format!("number {} ", state[at]))
        };
        match self.random.below(3) {
            0 => {
                let (old, new) = edit(&mut next, which);
                let arguments = json!({"filePath": FILES[which], "oldString": old, "newString": new, "replaceAll": true});
                ("edit", arguments, next)
            }
            1 => {
                let (old, new) = edit(&mut next, which);
                let first = json!({"oldString": old, "newString": "between ", "replaceAll": true});
                let second = json!({"oldString": "between ", "newString": new, "replaceAll": true});
                ("multiedit", json!({"filePath": FILES[which], "edits": [first, second]}), next)
            }
            _ => {
                let mut patch = String::from("*** Begin Patch\n");
                for (at, file) in FILES.iter().enumerate() {
                    let (old, new) = edit(&mut next, at);
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

    /// Every file is as the last answer left it, or as the call under way would have left it.
    fn look(&mut self) -> Result<(), String> {
        let mut found = self.now;
        for (at, file) in FILES.iter().enumerate() {
            let number = number(&self.path(file))?;
            if number != self.now[at] && number != self.perhaps[at] {
                let (now, perhaps) = (self.now[at], self.perhaps[at]);
                return Err(format!("{file} holds {number}, neither {now} nor {perhaps}"));
            }
            found[at] = number;
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

    /// Undoes the last call that began to change files, whether it was answered or not.
    fn take_back(&mut self) -> Result<(), String> {
        let finished = self.helve.command_line(&["--yes", "undo"])?;
        finished.good("helve undo")?;
        let mut found = self.now;
        for (at, file) in FILES.iter().enumerate() {
            found[at] = number(&self.path(file))?;
        }
        if found != self.before && found != self.now {
            return Err(format!(
                "found {found:?}, which is neither {:?} nor {:?}",
                self.before, self.now
            ));
        }
        // The undo is a change, too.
        (self.before, self.now) = (self.now, found);
        Ok(())
    }

    /// After one more change nothing that the killed ones left is there.
    fn finish(&mut self) -> Result<(), String> {
        for file in FILES {
            let path = Path::new(file).with_extension("last");
            let arguments = json!({"filePath": path, "content": "last\n"});
            let mut command = self.helve.call_command("last", "write", &arguments);
            command.arg("--yes");
            crate::process::finish(&mut command, crate::helve::CALL_LIMIT)?
                .good("helve call write")?;
            let folder = self.path(file);
            let folder = folder.parent().unwrap_or(&folder);
            for entry in fs::read_dir(folder).map_err(|error| error.to_string())? {
                let name = entry.map_err(|error| error.to_string())?.file_name();
                if name.to_string_lossy().starts_with(".helve-") {
                    return Err(format!("{} is left in {}", name.display(), folder.display()));
                }
            }
        }
        Ok(())
    }
}

const LINES: usize = 100;

fn line(number: &str) -> String {
    format!("{number}of many lines that a torn write would mix")
}

/// The same number in each line.
fn content(number: u64) -> String {
    format!("{}\n", line(&format!("number {number} "))).repeat(LINES)
}

/// The number of a file that is whole.
fn number(path: &Path) -> Result<u64, String> {
    let found = fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let number = found.split(' ').nth(1).and_then(|word| word.parse().ok());
    match number {
        Some(number) if found == content(number) => Ok(number),
        Some(_) | None => {
            let start: String = found.chars().take(200).collect();
            Err(format!("{} is torn: {} bytes, {start:?}", path.display(), found.len()))
        }
    }
}

//! Repeatedly replaces a folder and a file by links that lead out of the workspace, while a server writes to them.
//! Nothing outside the workspace may change.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use fastrand::Rng;
use serde_json::{Value, json};

use super::{Context, Progress};

/// One call is made per this many swaps.
const SWAPS_PER_CALL: usize = 10;
/// Number of calls after which the files outside are checked.
const CHECK_EVERY: usize = 100;
const SECRET: &str = "outside, must not change\n";

pub(super) fn run(context: &Context) -> Result<String, String> {
    let tree = SwapTree::new(context).map_err(|error| error.to_string())?;
    let (stop, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (changed, refused) = thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                tree.swap().map_err(|error| format!("the swapper: {error}"))?;
                swaps.fetch_add(4, Ordering::Relaxed);
            }
            Ok(())
        });
        let written = tree.write_while_swapping(context, &swaps);
        stop.store(true, Ordering::Relaxed);
        let swapped = swapper.join().unwrap_or_else(|_| Err("the swapper panicked".to_owned()));
        written.and_then(|written| swapped.map(|()| written))
    })?;
    tree.check_outside()?;
    let swaps = swaps.into_inner();
    Ok(format!("{swaps} swaps, {changed} changes made, {refused} refused, nothing outside changed"))
}

/// The workspace, and a folder next to it with files of the same names.
struct SwapTree {
    inside: PathBuf,
    outside: PathBuf,
}

impl SwapTree {
    fn new(context: &Context) -> io::Result<SwapTree> {
        let inside = context.helve().map_err(io::Error::other)?.workspace.clone();
        let tree = SwapTree { outside: inside.with_file_name("outside"), inside };
        fs::create_dir_all(tree.inside.join("folder"))?;
        fs::create_dir_all(tree.outside.join("folder"))?;
        for name in ["folder/file.txt", "file.txt"] {
            fs::write(tree.inside.join(name), "number 0\n")?;
            fs::write(tree.outside.join(name), SECRET)?;
        }
        symlink(tree.outside.join("folder"), tree.inside.join("link-to-folder"))?;
        symlink(tree.outside.join("file.txt"), tree.inside.join("link-to-file"))?;
        Ok(tree)
    }

    /// Replaces the folder and the file by links, then restores them.
    fn swap(&self) -> io::Result<()> {
        let at = |name: &str| self.inside.join(name);
        for (name, link, aside) in
            [("folder", "link-to-folder", "real-folder"), ("file.txt", "link-to-file", "real-file")]
        {
            rename_over(&at(name), &at(aside))?;
            rename_over(&at(link), &at(name))?;
            rename_over(&at(name), &at(link))?;
            rename_over(&at(aside), &at(name))?;
        }
        Ok(())
    }

    /// Makes calls until there were enough calls and swaps. Returns how many calls changed a file and how many were
    /// refused.
    fn write_while_swapping(
        &self,
        context: &Context,
        swaps: &AtomicUsize,
    ) -> Result<(usize, usize), String> {
        let mut rng = context.rng(0);
        let mut server = context.helve()?.start_mcp_with(&["--allow", "edit"])?;
        server.client()?.initialize()?;
        let progress = Progress::new(context.count / SWAPS_PER_CALL);
        let (mut changed, mut refused) = (0, 0);
        for call in 1.. {
            let (tool, arguments) = choose_call(&mut rng, call);
            let answer = server.client()?.call(tool, &arguments)?;
            if answer.text.contains(SECRET.trim_end()) {
                return Err(format!("{tool} showed a file outside the workspace: {}", answer.text));
            }
            *(if answer.is_error { &mut refused } else { &mut changed }) += 1;
            if call % CHECK_EVERY == 0 {
                self.check_outside()?;
            }
            progress.step();
            if call * SWAPS_PER_CALL >= context.count
                && swaps.load(Ordering::Relaxed) >= context.count
            {
                break;
            }
        }
        Ok((changed, refused))
    }

    /// Checks that the files outside are unchanged and that there are no others.
    fn check_outside(&self) -> Result<(), String> {
        for name in ["folder/file.txt", "file.txt"] {
            let path = self.outside.join(name);
            let found =
                fs::read_to_string(&path).map_err(|it| format!("{}: {it}", path.display()))?;
            if found != SECRET {
                return Err(format!("{} contains {found:?}", path.display()));
            }
        }
        let count = |folder: &Path| fs::read_dir(folder).map(Iterator::count);
        let found = (count(&self.outside), count(&self.outside.join("folder")));
        match found {
            (Ok(2), Ok(1)) => Ok(()),
            (outer, inner) => Err(format!("there are {outer:?} and {inner:?} entries outside")),
        }
    }
}

/// Renames a file or folder. Removes whatever the server has created at the target in the meantime.
fn rename_over(from: &Path, to: &Path) -> io::Result<()> {
    let mut result = fs::rename(from, to);
    for _ in 0..100 {
        if result.is_ok() {
            break;
        }
        let is_folder = fs::symlink_metadata(to).is_ok_and(|it| it.is_dir());
        let removed = if is_folder { fs::remove_dir_all(to) } else { fs::remove_file(to) };
        result = removed.and_then(|()| fs::rename(from, to));
    }
    result
}

fn choose_call(rng: &mut Rng, call: usize) -> (&'static str, Value) {
    let file = ["folder/file.txt", "file.txt"][rng.usize(..2)];
    match rng.u64(..4) {
        0 => (
            "write",
            json!({"filePath": format!("folder/new{}.txt", call % 50), "content": format!("{call}\n")}),
        ),
        1 => {
            let first = json!({"oldString": "number", "newString": "numeral"});
            let second = json!({"oldString": "numeral ", "newString": "number 2"});
            ("multiedit", json!({"filePath": file, "edits": [first, second]}))
        }
        2 => {
            let patch =
                format!("*** Begin Patch\n*** Add File: folder/added{call}.txt\n+x\n*** End Patch");
            ("apply_patch", json!({"patchText": patch}))
        }
        _ => ("edit", json!({"filePath": file, "oldString": "number ", "newString": "number 1"})),
    }
}

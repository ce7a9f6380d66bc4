//! Folders and files that become links to the outside and back, while a server writes there: nothing outside changes.

use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};

use super::random::Random;
use super::{Ground, Progress};

/// At least one call for so many swaps.
const SWAPS_PER_CALL: usize = 10;
const LOOK_EVERY: usize = 100;
const SECRET: &str = "outside, and to stay so\n";

pub(super) fn run(ground: &Ground) -> Result<String, String> {
    let scene = Scene::set(ground).map_err(|error| error.to_string())?;
    let (stop, swaps) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (made, refused) = thread::scope(|scope| {
        let swapper = scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                scene.swap().map_err(|error| format!("the swapper: {error}"))?;
                swaps.fetch_add(4, Ordering::Relaxed);
            }
            Ok(())
        });
        let written = scene.write(ground, &swaps);
        stop.store(true, Ordering::Relaxed);
        let swapped = swapper.join().unwrap_or_else(|_| Err("the swapper panicked".to_owned()));
        written.and_then(|written| swapped.map(|()| written))
    })?;
    scene.look()?;
    let swaps = swaps.into_inner();
    Ok(format!("{swaps} swaps, {made} changes made, {refused} refused, nothing outside touched"))
}

struct Scene {
    inside: PathBuf,
    outside: PathBuf,
}

impl Scene {
    fn set(ground: &Ground) -> io::Result<Scene> {
        let inside = ground.helve().map_err(io::Error::other)?.workspace.clone();
        let scene = Scene { outside: inside.with_file_name("outside"), inside };
        fs::create_dir_all(scene.inside.join("folder"))?;
        fs::create_dir_all(scene.outside.join("folder"))?;
        for name in ["folder/file.txt", "file.txt"] {
            fs::write(scene.inside.join(name), "number 0\n")?;
            fs::write(scene.outside.join(name), SECRET)?;
        }
        symlink(scene.outside.join("folder"), scene.inside.join("link-to-folder"))?;
        symlink(scene.outside.join("file.txt"), scene.inside.join("link-to-file"))?;
        Ok(scene)
    }

    /// Folder and file become links, and themselves again.
    fn swap(&self) -> io::Result<()> {
        let at = |name: &str| self.inside.join(name);
        for (name, link, aside) in
            [("folder", "link-to-folder", "real-folder"), ("file.txt", "link-to-file", "real-file")]
        {
            put(&at(name), &at(aside))?;
            put(&at(link), &at(name))?;
            put(&at(name), &at(link))?;
            put(&at(aside), &at(name))?;
        }
        Ok(())
    }

    fn write(&self, ground: &Ground, swaps: &AtomicUsize) -> Result<(usize, usize), String> {
        let mut random = Random::new(ground.seed, 0);
        let mut server = ground.helve()?.serve_with(&["--allow", "edit"])?;
        server.client()?.initialize()?;
        let progress = Progress::new(ground.count / SWAPS_PER_CALL);
        let (mut made, mut refused) = (0, 0);
        for call in 1.. {
            let (tool, arguments) = choose(&mut random, call);
            let answer = server.client()?.call(tool, &arguments)?;
            if answer.text.contains(SECRET.trim_end()) {
                return Err(format!("{tool} told what is outside: {}", answer.text));
            }
            *(if answer.is_error { &mut refused } else { &mut made }) += 1;
            if call % LOOK_EVERY == 0 {
                self.look()?;
            }
            progress.step();
            if call * SWAPS_PER_CALL >= ground.count
                && swaps.load(Ordering::Relaxed) >= ground.count
            {
                break;
            }
        }
        Ok((made, refused))
    }

    /// Outside there is what was there, and nothing else.
    fn look(&self) -> Result<(), String> {
        for name in ["folder/file.txt", "file.txt"] {
            let path = self.outside.join(name);
            let found =
                fs::read_to_string(&path).map_err(|it| format!("{}: {it}", path.display()))?;
            if found != SECRET {
                return Err(format!("{} reads {found:?}", path.display()));
            }
        }
        let count = |folder: &Path| fs::read_dir(folder).map(Iterator::count);
        let found = (count(&self.outside), count(&self.outside.join("folder")));
        match found {
            (Ok(2), Ok(1)) => Ok(()),
            (outer, inner) => Err(format!("outside there are {outer:?} and {inner:?} names")),
        }
    }
}

/// Renames. What the server created there meanwhile makes way.
fn put(from: &Path, to: &Path) -> io::Result<()> {
    let mut renamed = fs::rename(from, to);
    for _ in 0..100 {
        if renamed.is_ok() {
            break;
        }
        let is_folder = fs::symlink_metadata(to).is_ok_and(|it| it.is_dir());
        let removed = if is_folder { fs::remove_dir_all(to) } else { fs::remove_file(to) };
        renamed = removed.and_then(|()| fs::rename(from, to));
    }
    renamed
}

fn choose(random: &mut Random, call: usize) -> (&'static str, Value) {
    let file = ["folder/file.txt", "file.txt"][random.below(2) as usize];
    match random.below(4) {
        0 => (
            "write",
            json!({"filePath": format!("folder/new{}.txt", call % 50), "content": format!("{call}\n")}),
        ),
        1 => {
            let there = json!({"oldString": "number", "newString": "numeral"});
            let back = json!({"oldString": "numeral ", "newString": "number 2"});
            ("multiedit", json!({"filePath": file, "edits": [there, back]}))
        }
        2 => {
            let patch =
                format!("*** Begin Patch\n*** Add File: folder/added{call}.txt\n+x\n*** End Patch");
            ("apply_patch", json!({"patchText": patch}))
        }
        _ => ("edit", json!({"filePath": file, "oldString": "number ", "newString": "number 1"})),
    }
}

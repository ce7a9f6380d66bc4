//! Tests with generated edits: edits with mistakes that models make, and correct edits that look similar.
//!
//! Each generator makes the cases of one class. For every class of faulty edits, which must be refused, there is a
//! class of similar, correct edits, which must be applied. `HELVE_EDIT_CASES` sets the number of cases,
//! `HELVE_EDIT_SEED` the first seed.

mod languages;
mod patches;
mod paths;
mod places;
mod texts;

use std::collections::BTreeMap;
use std::os::unix::fs::symlink;

use fastrand::Rng;
use serde_json::{Value, json};

use crate::stage::{Stage, call};

/// Number of cases in an ordinary run of the tests.
const CASES: u64 = 800;
/// Number of cases after which a new folder is used.
const CASES_PER_STAGE: u64 = 200;

/// A call, the files before it, and the expected result.
struct Case {
    class: &'static str,
    files: BTreeMap<String, String>,
    /// Symbolic links with their targets.
    links: BTreeMap<String, String>,
    tool: &'static str,
    input: Value,
    expected: Expected,
}

#[derive(Debug)]
enum Expected {
    /// These files have this content after the call; `None` means that the file does not exist. All others stay as they
    /// are.
    Changes(Vec<(String, Option<String>)>),
    /// The call is refused: no file changes, and the error message contains all these texts.
    Refusal(Vec<String>),
    /// Either the file has this content after the call, or the call is refused and no file changes.
    ChangeOrRefusal(String, String),
}

impl Case {
    fn new(class: &'static str, tool: &'static str, input: Value, expected: Expected) -> Case {
        let (files, links) = (BTreeMap::new(), BTreeMap::new());
        Case { class, files, links, tool, input, expected }
    }

    fn file(mut self, path: &str, text: &str) -> Case {
        self.files.insert(path.into(), text.into());
        self
    }

    fn link(mut self, path: &str, target: &str) -> Case {
        self.links.insert(path.into(), target.into());
        self
    }
}

/// Expects that the call is refused, with a message that contains these texts.
fn refusal(mentioned: &[&str]) -> Expected {
    Expected::Refusal(mentioned.iter().map(|text| (*text).to_owned()).collect())
}

/// Expects that one file has this content after the call.
fn change(path: &str, text: impl Into<String>) -> Expected {
    Expected::Changes(vec![(path.into(), Some(text.into()))])
}

/// Makes a random case of one class.
type Generator = fn(&mut Rng) -> Case;

const GENERATORS: &[&[Generator]] =
    &[texts::GENERATORS, places::GENERATORS, paths::GENERATORS, patches::GENERATORS];

/// Returns the value of an environment variable, or a default.
fn number(variable: &str, default: u64) -> u64 {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test]
async fn faulty_edits_are_refused_and_similar_ones_applied() {
    let generators: Vec<Generator> = GENERATORS.iter().copied().flatten().copied().collect();
    let (count, first_seed) = (number("HELVE_EDIT_CASES", CASES), number("HELVE_EDIT_SEED", 1));
    let mut failures = Vec::new();
    let mut done = 0;
    while done < count {
        let stage = Stage::new();
        let toolbox = stage.toolbox().await;
        for index in done..count.min(done + CASES_PER_STAGE) {
            let seed = first_seed.wrapping_add(index);
            let mut rng = Rng::with_seed(seed);
            let generator = generators[usize::try_from(index).unwrap() % generators.len()];
            let case = generator(&mut rng);
            if let Err(why) = check(&stage, &toolbox, &case).await {
                failures.push(format!(
                    "{} (seed {seed}): {why}\n{} {}\n{:?}",
                    case.class, case.tool, case.input, case.files
                ));
            }
        }
        done += CASES_PER_STAGE;
        toolbox.close().await;
    }
    let shown: Vec<&str> = failures.iter().map(String::as_str).take(12).collect();
    assert!(
        failures.is_empty(),
        "{} of {count} cases failed\n{}",
        failures.len(),
        shown.join("\n\n")
    );
}

/// Runs one case in an empty folder.
async fn check(stage: &Stage, toolbox: &helve::Toolbox, case: &Case) -> Result<(), String> {
    for entry in std::fs::read_dir(stage.root.path()).unwrap() {
        let path = entry.unwrap().path();
        let is_folder = path.is_dir() && !path.is_symlink();
        if is_folder {
            std::fs::remove_dir_all(path).unwrap()
        } else {
            std::fs::remove_file(path).unwrap()
        }
    }
    for (path, text) in &case.files {
        stage.put(path, text, 0o644);
    }
    for (path, target) in &case.links {
        symlink(target, stage.path(path)).unwrap();
    }
    for path in case.files.keys() {
        call(toolbox, "read", json!({"filePath": path}))
            .await
            .map_err(|error| format!("read: {error}"))?;
    }
    let answer = call(toolbox, case.tool, case.input.clone()).await;
    let files_after = files(stage);
    let unchanged = files_after == case.files;
    match (&case.expected, &answer) {
        (Expected::Changes(changes), Ok(_)) => {
            let mut wanted = case.files.clone();
            for (path, text) in changes {
                match text {
                    Some(text) => wanted.insert(path.clone(), text.clone()),
                    None => wanted.remove(path),
                };
            }
            if files_after == wanted {
                Ok(())
            } else {
                Err(format!("wrong result\nfound {files_after:?}\nwanted {wanted:?}"))
            }
        }
        (Expected::Changes(_), Err(message)) => Err(format!("wrongly refused: {message}")),
        (Expected::Refusal(mentioned), Err(message)) => {
            match mentioned.iter().find(|text| !message.contains(*text)) {
                _ if !unchanged => Err(format!("refused, but changed: {message}")),
                Some(text) => Err(format!("the message does not mention {text:?}: {message}")),
                None => Ok(()),
            }
        }
        (Expected::Refusal(_), Ok(answer)) => Err(format!("wrongly applied: {answer}")),
        (Expected::ChangeOrRefusal(path, text), _) => {
            let is_right = unchanged && answer.is_err() || files_after.get(path) == Some(text);
            if is_right { Ok(()) } else { Err(format!("wrong result: {files_after:?}")) }
        }
    }
}

/// Returns the content of every regular file.
fn files(stage: &Stage) -> BTreeMap<String, String> {
    let files = stage.tree().into_iter().filter_map(|(path, (content, _))| {
        Some((path.to_str()?.to_owned(), String::from_utf8_lossy(&content?).into_owned()))
    });
    files.collect()
}

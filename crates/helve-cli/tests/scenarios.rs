//! Runs every scenario folder on the real machine: files and calls in, the last answer and files out.
//!
//! `UPDATE_EXPECT=1` updates the expected output. Check the diff before committing it.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot be set up has failed"
)]
#![expect(clippy::disallowed_methods, reason = "scenarios are real files in a real folder")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use helve::Toolbox;
use helve_testkit::scenario::{Scenario, load_all};

#[tokio::test]
async fn scenarios() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let found = load_all(&folder);
    assert!(!found.is_empty(), "no scenario below {}", folder.display());
    let mut failures = Vec::new();
    for scenario in &found {
        let result = run_scenario(scenario).await;
        if std::env::var_os("UPDATE_EXPECT").is_some() {
            fs::write(scenario.folder.join("output.txt"), &result.output).unwrap();
            write_files(&scenario.folder.join("expected"), &result.files);
            continue;
        }
        let expected = read_files(&scenario.folder.join("expected"));
        if result.output != scenario.output || result.files != expected {
            failures.push(format!(
                "{}\n--- expected\n{}\n--- found\n{}\n--- files expected {:?}, found {:?}",
                scenario.name,
                scenario.output,
                result.output,
                expected.keys(),
                result.files.keys()
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

struct ScenarioResult {
    output: String,
    files: BTreeMap<PathBuf, Vec<u8>>,
}

async fn run_scenario(scenario: &Scenario) -> ScenarioResult {
    let (root, data) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let root_path = root.path().canonicalize().unwrap();
    write_files(&root_path, &read_files(&scenario.folder.join("input")));
    let mut builder = Toolbox::builder()
        .flag(helve::PLAN_MODE)
        .dir(&root_path)
        .data(data.path())
        .keeper(env!("CARGO_BIN_EXE_helve"))
        .yes();
    // The user's own configuration, for settings that a folder cannot make.
    let config = scenario.folder.join("config.json");
    if config.exists() {
        builder = builder.config(config);
    }
    let toolbox = builder.build().await.unwrap();
    let mut output = String::new();
    for call in scenario.calls.as_array().expect("call.json is a list") {
        let tool = call["tool"].as_str().expect("each call names its tool");
        let result = toolbox.call(tool, call["arguments"].clone()).await;
        output = match result.outcome {
            Ok(output) => format!("{}\n", output.joined_text()),
            Err(err) => format!("error: {}\n", err.full_message()),
        };
    }
    toolbox.close().await;
    let output = output.replace(&root_path.display().to_string(), "{root}");
    ScenarioResult { output: without_time(&output), files: read_files(&root_path) }
}

/// Removes the duration of a command, which differs between runs.
fn without_time(output: &str) -> String {
    let line = |line: &str| match line.split_once(", ") {
        Some((code, time)) if code.starts_with("[exit code ") && time.ends_with("s]\n") => {
            format!("{code}, {{time}}]\n")
        }
        Some(_) | None => line.to_string(),
    };
    output.split_inclusive('\n').map(line).collect()
}

fn read_files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let (mut found, mut unvisited) = (BTreeMap::new(), vec![folder.to_path_buf()]);
    while let Some(next) = unvisited.pop() {
        for entry in fs::read_dir(&next).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                unvisited.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_path_buf();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

fn write_files(folder: &Path, files: &BTreeMap<PathBuf, Vec<u8>>) {
    for (name, content) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
}

//! Real files: special files, oversized files, and links.
#![expect(clippy::disallowed_methods, reason = "these tests work on real folders")]

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use expect_test::{Expect, expect};

use crate::config::{
    Config, ConfigHost as _, ConfigPaths, ConfigReadError, Disk, LinkPolicy, Trust, gather,
};

/// Interprets the configuration in the folders `user` and `project`, which `make` fills.
#[track_caller]
fn check(trust: Trust, make: impl FnOnce(&Path), expect: Expect) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let base = folder.path().canonicalize().unwrap();
    fs::create_dir_all(base.join("user")).unwrap();
    fs::create_dir_all(base.join("project")).unwrap();
    make(&base);
    let paths = ConfigPaths {
        user: Some(base.join("user")),
        opencode: None,
        given: Vec::new(),
        root: base.join("project"),
        home: Some(base.join("home")),
    };
    let before = snapshot(&base);
    let config = gather(&Disk, &paths).interpret(&Disk, trust);
    assert_eq!(snapshot(&base), before, "configuration is never written");
    let problems: Vec<_> = config.problems.iter().map(ToString::to_string).collect();
    let user = super::render_rules(&config.user_rules);
    let project = super::render_rules(&config.project_rules);
    let all = format!("user\n{user}project\n{project}{}", problems.join("\n"));
    expect.assert_eq(&all.replace(base.to_str().unwrap(), "BASE"));
    config
}

/// Returns every path in a folder with its modification time.
fn snapshot(folder: &Path) -> Vec<(PathBuf, SystemTime)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let metadata = fs::symlink_metadata(&path).unwrap();
        all.push((path.clone(), metadata.modified().unwrap()));
        if metadata.is_dir() {
            all.extend(snapshot(&path));
        }
    }
    all.sort();
    all
}

fn fifo(path: &Path) {
    let mode = rustix::fs::Mode::from_raw_mode(0o600);
    rustix::fs::mknodat(rustix::fs::CWD, path, rustix::fs::FileType::Fifo, mode, 0).unwrap();
}

#[test]
fn a_fifo_is_refused_without_blocking() {
    check(
        Trust::Trusted,
        |base| {
            fifo(&base.join("project/opencode.json"));
            fifo(&base.join("user/helve.json"));
        },
        expect![[r#"
            user
            * * Ask
            project
            * * Ask
            BASE/user/helve.json: error: this is a FIFO, not a file
            BASE/project/opencode.json: error: this is a FIFO, not a file"#]],
    );
}

#[test]
fn folders_and_devices_are_refused() {
    check(
        Trust::Trusted,
        |base| {
            fs::create_dir_all(base.join("project/opencode.json/full")).unwrap();
            // Counts as missing: while a sandboxed program runs, an empty folder is mounted in place of a missing file.
            fs::create_dir(base.join("project/helve.json")).unwrap();
            symlink("/dev/zero", base.join("user/helve.json")).unwrap();
        },
        expect![[r#"
            user
            * * Ask
            project
            * * Ask
            BASE/user/helve.json: error: this is a device, not a file
            BASE/project/opencode.json: error: this is a folder, not a file"#]],
    );
}

#[test]
fn links_out_of_the_project_are_not_read() {
    check(
        Trust::Trusted,
        |base| {
            fs::write(base.join("outside.json"), r#"{"permission": "allow"}"#).unwrap();
            symlink(base.join("outside.json"), base.join("project/opencode.json")).unwrap();
            fs::create_dir_all(base.join("elsewhere/agents")).unwrap();
            fs::write(base.join("elsewhere/helve.json"), r#"{"permission": "allow"}"#).unwrap();
            fs::write(base.join("elsewhere/agents/a.md"), "A").unwrap();
            symlink(base.join("elsewhere"), base.join("project/.helve")).unwrap();
        },
        expect![[r#"
            user
            project
            * * Ask
            BASE/project/opencode.json: error: this link leads out of the project, to BASE/outside.json, and is not read
              put the file into the project, or name it with --config
            BASE/project/.helve/helve.json: error: this link leads out of the project, to BASE/elsewhere/helve.json, and is not read
              put the file into the project, or name it with --config
            BASE/project/.helve/agents: error: this link leads out of the project, to BASE/elsewhere/agents, and is not read
              put the file into the project, or name it with --config"#]],
    );
}

#[test]
fn links_of_the_user_and_links_inside_the_project_are_followed() {
    let config = check(
        Trust::Trusted,
        |base| {
            fs::write(base.join("dotfile.json"), r#"{"permission": {"bash": "ask"}}"#).unwrap();
            symlink(base.join("dotfile.json"), base.join("user/helve.json")).unwrap();
            fs::create_dir_all(base.join("project/.helve/agents")).unwrap();
            fs::write(base.join("project/real.json"), r#"{"permission": {"edit": "ask"}}"#)
                .unwrap();
            symlink("../real.json", base.join("project/.helve/helve.json")).unwrap();
            symlink("nowhere", base.join("project/helve.json")).unwrap();
            fs::create_dir_all(base.join("dotagents/sub")).unwrap();
            fs::write(base.join("dotagents/sub/mine.md"), "Mine.").unwrap();
            symlink(base.join("dotagents"), base.join("user/agents")).unwrap();
            symlink(base.join("dotagents"), base.join("project/.helve/agents/linked")).unwrap();
            symlink(".", base.join("dotagents/round")).unwrap();
        },
        expect![[r#"
            user
            bash * Ask
            project
            * * Ask
            edit * Ask
            BASE/project/.helve/agents/linked: error: this is a link to a folder; links to folders in a project are not followed
            BASE/project/helve.json: error: this is a broken link"#]],
    );
    assert!(config.agents.iter().any(|agent| agent.name == "sub/mine"));
}

#[test]
fn oversized_files_are_refused() {
    check(
        Trust::Trusted,
        |base| fs::write(base.join("project/opencode.json"), vec![b' '; 10 << 20]).unwrap(),
        expect![[r#"
            user
            project
            * * Ask
            BASE/project/opencode.json: error: this is larger than 1024 KiB"#]],
    );
}

#[test]
fn unreadable_files_make_the_layer_ask() {
    // The unreadable file might restrict anything, so it asks, and the allow of the other file asks too. Root can read
    // every file, so this one cannot be opened for another reason: it is a link to itself.
    check(
        Trust::Trusted,
        |base| {
            symlink("helve.json", base.join("user/helve.json")).unwrap();
            fs::write(base.join("user/helve.jsonc"), r#"{"permission": "allow"}"#).unwrap();
        },
        expect![[r#"
            user
            * * Ask
            * * Ask
            project
            BASE/user/helve.json: error: the file cannot be read: Too many levels of symbolic links (os error 40)"#]],
    );
    if rustix::process::geteuid().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.json");
    fs::write(&path, "{}").unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
    assert!(matches!(Disk.read(&path, LinkPolicy::Anywhere), Err(ConfigReadError::Failed(_))));
}

#[test]
fn a_file_cannot_include_itself_and_included_text_is_not_expanded() {
    check(
        Trust::Trusted,
        |base| {
            fs::write(base.join("user/helve.json"), r#"{"shell": "{file:link.json}"}"#).unwrap();
            symlink("helve.json", base.join("user/link.json")).unwrap();
            fs::write(base.join("project/a"), "{file:a}").unwrap();
            fs::write(base.join("project/helve.json"), r#"{"shell": "{file:a}"}"#).unwrap();
            fifo(&base.join("project/fifo"));
            fs::write(base.join("project/opencode.json"), r#"{"shell": "{file:fifo}"}"#).unwrap();
        },
        expect![[r#"
            user
            project
            BASE/user/helve.json:1:11: error: a file cannot include itself
              {"shell": "{file:link.json}"}
                        ^
            BASE/project/opencode.json:1:11: error: BASE/project/fifo cannot be included: this is a FIFO, not a file
              {"shell": "{file:fifo}"}
                        ^
            BASE/project/helve.json:1:11: warning: scripts for "{file:a}" cannot be judged, so commands run in bash
              {"shell": "{file:a}"}
                        ^
              use one of bash, zsh, sh, dash, ash, yash, ksh, mksh, oksh, rbash"#]],
    );
}

#[test]
fn the_number_of_agent_files_is_limited() {
    let config = check(
        Trust::Trusted,
        |base| {
            let folder = base.join("project/.opencode/agent");
            let deep = folder.join("a/b/c/d/e/f/g/h");
            fs::create_dir_all(&deep).unwrap();
            fs::write(deep.join("deep.md"), "x").unwrap();
            fs::write(folder.join(".hidden.md"), "x").unwrap();
            fs::write(folder.join("other.txt"), "x").unwrap();
            for n in 0..250 {
                fs::write(folder.join(format!("n{n:03}.md")), "x").unwrap();
            }
        },
        expect![[r#"
            user
            project
            BASE/project/.opencode/agent: error: not all files here are read: the limits are 200 files and 8 folder levels"#]],
    );
    assert_eq!(config.agents.len(), 4 + 200);
}

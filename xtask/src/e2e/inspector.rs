//! `@modelcontextprotocol/inspector` of npm, on its command line.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{FETCH_LIMIT, FILE, LINE, RUN_LIMIT, Said, check_tools, names, shelf};
use crate::helve::Helve;
use crate::process;
use crate::web::Port;

const VERSION: &str = "2.12.0";
/// It asks for 22.19 but its command line runs on this, too.
const OLDEST_NODE: u32 = 20;

pub(super) fn over_pipes(helve: &Helve) -> Result<Said, String> {
    run(helve, |command| {
        command.arg(helve.binary()).arg("--dir").arg(&helve.workspace).arg("mcp");
        for (name, path) in helve.environment() {
            command.arg("-e").arg(format!("{name}={}", path.display()));
        }
    })
}

pub(super) fn over_http(helve: &Helve) -> Result<Said, String> {
    let port = Port::open(helve, Ipv4Addr::LOCALHOST)?;
    run(helve, |command| {
        command.arg(format!("http://{}/mcp", port.address)).args(["--transport", "http"]);
        command.arg("--header").arg(format!("Authorization: Bearer {}", port.token));
    })
}

/// Lists and reads at the server that `named` adds to the command line.
fn run(helve: &Helve, named: impl Fn(&mut Command)) -> Result<Said, String> {
    let Some(node) = node_version() else { return Ok(Said::Skipped("there is no node".into())) };
    if node < OLDEST_NODE {
        return Ok(Said::Skipped(format!("node {node} is older than {OLDEST_NODE}")));
    }
    let folder = shelf(&format!("inspector-{VERSION}"));
    let program = folder.join("node_modules/.bin/mcp-inspector");
    fetch(&folder, &program)?;
    let ask = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--cli");
        named(&mut command);
        command.args(arguments).envs(helve.environment()).current_dir(&helve.workspace);
        answer(&mut command)
    };
    let listed = ask(&["--method", "tools/list", "--strict"])?;
    let names = names(&listed["tools"]);
    check_tools(&names)?;
    let file = format!("filePath={FILE}");
    let read = ["--method", "tools/call", "--tool-name", "read", "--tool-arg", &file];
    check_read(&ask(&read)?)?;
    Ok(Said::Passed(format!("{} tools, schemas accepted, read answered", names.len())))
}

fn node_version() -> Option<u32> {
    let finished = process::finish(Command::new("node").arg("--version"), RUN_LIMIT).ok()?;
    major(&finished.stdout)
}

fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

fn fetch(folder: &Path, program: &Path) -> Result<(), String> {
    if program.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut install = Command::new("npm");
    install.args(["install", "--silent", "--no-fund", "--no-audit", "--prefix"]).arg(folder);
    install.arg(format!("@modelcontextprotocol/inspector@{VERSION}"));
    process::finish(&mut install, FETCH_LIMIT)?.good("npm install").map(|_| ())
}

fn answer(command: &mut Command) -> Result<Value, String> {
    let printed = process::finish(command, RUN_LIMIT)?.good("mcp-inspector")?;
    serde_json::from_str(&printed)
        .map_err(|error| format!("{error} in what the inspector printed: {printed}"))
}

fn check_read(read: &Value) -> Result<(), String> {
    let text = read["content"][0]["text"].as_str().unwrap_or_default();
    if read["isError"] == true || !text.contains(LINE) {
        return Err(format!("read of {FILE} answered {read}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn node_says_its_version() {
        assert_eq!((major("v20.20.2\n"), major("v8"), major("what")), (Some(20), Some(8), None));
    }

    #[test]
    fn an_answer_without_the_line_is_a_fault() {
        let answer = |text: &str, error: bool| json!({"content": [{"type": "text", "text": text}], "isError": error});
        assert_eq!(check_read(&answer(LINE, false)), Ok(()));
        assert!(
            check_read(&answer(LINE, true)).is_err()
                && check_read(&answer("", false)).is_err()
                && check_read(&json!({})).is_err()
        );
    }
}

//! The command line of the MCP inspector (npm package `@modelcontextprotocol/inspector`).

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::{
    DOWNLOAD_LIMIT, E2eResult, FILE, LINE, RUN_LIMIT, check_tools, download_folder, tool_names,
};
use crate::helve::Helve;
use crate::process;
use crate::web::HttpServer;

const VERSION: &str = "2.12.0";
/// The package asks for 22.19, but its command line also works with this version.
const MIN_NODE: u32 = 20;

pub(super) fn over_stdio(helve: &Helve) -> Result<E2eResult, String> {
    run(helve, |command| {
        command.arg(helve.binary()).arg("--dir").arg(&helve.workspace).arg("mcp");
        for (name, path) in helve.environment() {
            command.arg("-e").arg(format!("{name}={}", path.display()));
        }
    })
}

pub(super) fn over_http(helve: &Helve) -> Result<E2eResult, String> {
    let server = HttpServer::start(helve, Ipv4Addr::LOCALHOST)?;
    run(helve, |command| {
        command.arg(format!("http://{}/mcp", server.address)).args(["--transport", "http"]);
        command.arg("--header").arg(format!("Authorization: Bearer {}", server.token));
    })
}

/// Lists the tools and reads a file. `add_server` adds the server to the command line.
fn run(helve: &Helve, add_server: impl Fn(&mut Command)) -> Result<E2eResult, String> {
    let Some(node) = node_version() else {
        return Ok(E2eResult::Skipped("node is not installed".into()));
    };
    if node < MIN_NODE {
        return Ok(E2eResult::Skipped(format!("node {node} is older than {MIN_NODE}")));
    }
    let folder = download_folder(&format!("inspector-{VERSION}"));
    let program = folder.join("node_modules/.bin/mcp-inspector");
    install(&folder, &program)?;
    let inspect = |arguments: &[&str]| {
        let mut command = Command::new(&program);
        command.arg("--cli");
        add_server(&mut command);
        command.args(arguments).envs(helve.environment()).current_dir(&helve.workspace);
        run_inspector(&mut command)
    };
    let listed = inspect(&["--method", "tools/list", "--strict"])?;
    let names = tool_names(&listed["tools"]);
    check_tools(&names)?;
    let file = format!("filePath={FILE}");
    let read = ["--method", "tools/call", "--tool-name", "read", "--tool-arg", &file];
    check_read(&inspect(&read)?)?;
    Ok(E2eResult::Passed(format!("{} tools, schemas accepted, a file read", names.len())))
}

fn node_version() -> Option<u32> {
    let finished = process::run(Command::new("node").arg("--version"), RUN_LIMIT).ok()?;
    major(&finished.stdout)
}

fn major(version: &str) -> Option<u32> {
    version.trim().strip_prefix('v')?.split('.').next()?.parse().ok()
}

fn install(folder: &Path, program: &Path) -> Result<(), String> {
    if program.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--silent", "--no-fund", "--no-audit", "--prefix"]).arg(folder);
    npm.arg(format!("@modelcontextprotocol/inspector@{VERSION}"));
    process::run(&mut npm, DOWNLOAD_LIMIT)?.success("npm install").map(|_| ())
}

fn run_inspector(command: &mut Command) -> Result<Value, String> {
    let printed = process::run(command, RUN_LIMIT)?.success("mcp-inspector")?;
    serde_json::from_str(&printed)
        .map_err(|error| format!("{error} in the output of the inspector: {printed}"))
}

fn check_read(read: &Value) -> Result<(), String> {
    let text = read["content"][0]["text"].as_str().unwrap_or_default();
    if read["isError"] == true || !text.contains(LINE) {
        return Err(format!("reading {FILE} returned {read}"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_major_version_of_node_is_read() {
        assert_eq!((major("v20.20.2\n"), major("v8"), major("what")), (Some(20), Some(8), None));
    }

    #[test]
    fn an_answer_without_the_line_fails() {
        let answer = |text: &str, error: bool| json!({"content": [{"type": "text", "text": text}], "isError": error});
        assert_eq!(check_read(&answer(LINE, false)), Ok(()));
        assert!(
            check_read(&answer(LINE, true)).is_err()
                && check_read(&answer("", false)).is_err()
                && check_read(&json!({})).is_err()
        );
    }
}

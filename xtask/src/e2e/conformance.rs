//! `@modelcontextprotocol/conformance` of npm: the protocol's own judgement of `helve serve`.

use std::net::Ipv4Addr;
use std::path::Path;
use std::process::Command;

use super::{FETCH_LIMIT, RUN_LIMIT, Said, shelf};
use crate::helve::Helve;
use crate::process;
use crate::web::{Port, proxy};

const VERSION: &str = "0.1.16";
/// It needs a newer one than many systems have.
const NODE: &str = "22.23.3";

/// Those that need no tools made for the suite; docs/mcp.md says what the others need.
const SCENARIOS: &[&str] = &[
    "server-initialize",
    "ping",
    "tools-list",
    "resources-list",
    "prompts-list",
    "completion-complete",
    "server-sse-multiple-streams",
    "dns-rebinding-protection",
];

pub(super) fn run(helve: &Helve) -> Result<Said, String> {
    let npm = process::finish(Command::new("npm").arg("--version"), RUN_LIMIT);
    if npm.is_err() {
        return Ok(Said::Skipped("there is no npm".into()));
    }
    let folder = shelf(&format!("conformance-{VERSION}"));
    let suite = folder.join("node_modules/@modelcontextprotocol/conformance/dist/index.js");
    let node = folder.join("node_modules/node/bin/node");
    fetch(&folder, &suite, &node)?;
    // Another address of this machine's own, so that the proxy can have the port that clients name.
    let port = Port::open(helve, Ipv4Addr::new(127, 0, 0, 2))?;
    let address = proxy::open(&port)?;
    let mut checks = 0;
    for scenario in SCENARIOS {
        let mut command = Command::new(&node);
        command.arg(&suite).args(["server", "--url", &format!("http://{address}/mcp")]);
        command.args(["--scenario", scenario]).current_dir(&folder);
        let printed = process::finish(&mut command, RUN_LIMIT)?;
        checks += passed(&printed.good(scenario)?)
            .ok_or_else(|| format!("{scenario}: no checks were counted"))?;
    }
    Ok(Said::Passed(format!("{} scenarios, {checks} checks", SCENARIOS.len())))
}

fn fetch(folder: &Path, suite: &Path, node: &Path) -> Result<(), String> {
    if suite.exists() && node.exists() {
        return Ok(());
    }
    std::fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut install = Command::new("npm");
    install.args(["install", "--silent", "--no-fund", "--no-audit", "--prefix"]).arg(folder);
    install.arg(format!("@modelcontextprotocol/conformance@{VERSION}"));
    install.arg(format!("node@{NODE}"));
    process::finish(&mut install, FETCH_LIMIT)?.good("npm install").map(|_| ())
}

/// `Passed: 3/3, 0 failed, 0 warnings`: how many, if it was all of them.
fn passed(printed: &str) -> Option<usize> {
    let line = printed.lines().find_map(|line| line.trim().strip_prefix("Passed: "))?;
    let (passed, rest) = line.split_once('/')?;
    let all = rest.split(',').next()?;
    (passed == all).then(|| passed.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_all_is_passed() {
        let printed = |line: &str| format!("Test Results:\n{line}\n\nmore\n");
        assert_eq!(passed(&printed("Passed: 12/12, 0 failed, 0 warnings")), Some(12));
        assert_eq!(passed(&printed("Passed: 2/3, 1 failed, 0 warnings")), None);
        assert_eq!(passed("nothing"), None);
    }
}

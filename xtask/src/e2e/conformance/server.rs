//! The suite as a client of `helve serve`.

use std::net::Ipv4Addr;
use std::process::Command;

use super::super::{RUN_LIMIT, Said};
use crate::helve::Helve;
use crate::process;
use crate::web::{Port, proxy};

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

pub(crate) fn run(helve: &Helve) -> Result<Said, String> {
    let Some(modules) = super::modules()? else {
        return Ok(Said::Skipped("there is no npm".into()));
    };
    let suite = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    let node = modules.join("node/bin/node");
    // Another address of this machine's own, so that the proxy can have the port that clients name.
    let port = Port::open(helve, Ipv4Addr::new(127, 0, 0, 2))?;
    let address = proxy::open(&port)?;
    let mut checks = 0;
    for scenario in SCENARIOS {
        let mut command = Command::new(&node);
        command.arg(&suite).args(["server", "--url", &format!("http://{address}/mcp")]);
        command.args(["--scenario", scenario]).current_dir(&modules);
        let printed = process::finish(&mut command, RUN_LIMIT)?;
        checks += passed(&printed.good(scenario)?)
            .ok_or_else(|| format!("{scenario}: no checks were counted"))?;
    }
    Ok(Said::Passed(format!("{} scenarios, {checks} checks", SCENARIOS.len())))
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

//! The conformance suite as a client of `helve serve`.

use std::net::Ipv4Addr;
use std::process::Command;

use super::super::{E2eResult, RUN_LIMIT};
use crate::helve::Helve;
use crate::process;
use crate::web::{HttpServer, proxy};

/// Scenarios that do not need special tools. docs/mcp.md lists the others.
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

pub(crate) fn run(helve: &Helve) -> Result<E2eResult, String> {
    let Some(modules) = super::install()? else {
        return Ok(E2eResult::Skipped("npm is not installed".into()));
    };
    let suite = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    let node = modules.join("node/bin/node");
    // The server listens on a different loopback address from the proxy, so that both can use the same port.
    let server = HttpServer::start(helve, Ipv4Addr::new(127, 0, 0, 2))?;
    let address = proxy::start(&server)?;
    let mut checks = 0;
    for scenario in SCENARIOS {
        let mut command = Command::new(&node);
        command.arg(&suite).args(["server", "--url", &format!("http://{address}/mcp")]);
        command.args(["--scenario", scenario]).current_dir(&modules);
        let printed = process::run(&mut command, RUN_LIMIT)?;
        checks += passed_checks(&printed.success(scenario)?)
            .ok_or_else(|| format!("{scenario}: the suite did not pass all checks"))?;
    }
    Ok(E2eResult::Passed(format!("{} scenarios, {checks} checks", SCENARIOS.len())))
}

/// Returns the number in `Passed: 3/3, 0 failed, 0 warnings` if all checks passed.
fn passed_checks(printed: &str) -> Option<usize> {
    let line = printed.lines().find_map(|line| line.trim().strip_prefix("Passed: "))?;
    let (passed, rest) = line.split_once('/')?;
    let all = rest.split(',').next()?;
    (passed == all).then(|| passed.parse().ok())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_checks_must_pass() {
        let printed = |line: &str| format!("Test Results:\n{line}\n\nmore\n");
        assert_eq!(passed_checks(&printed("Passed: 12/12, 0 failed, 0 warnings")), Some(12));
        assert_eq!(passed_checks(&printed("Passed: 2/3, 1 failed, 0 warnings")), None);
        assert_eq!(passed_checks("nothing"), None);
    }
}

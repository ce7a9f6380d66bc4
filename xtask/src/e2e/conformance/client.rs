//! The conformance suite as an MCP server that `helve call` uses.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::super::{E2eResult, RUN_LIMIT, npm};
use crate::helve::Helve;
use crate::process;
use crate::scratch::Scratch;

/// Scenarios of the suite, and the `helve` command for each. The suite's server is configured as `suite`.
const SCENARIOS: &[(&str, &str)] = &[
    ("initialize", "mcp check suite"),
    ("tools_call", "call suite_add_numbers a:=5 b:=3"),
    ("elicitation-sep1034-client-defaults", "call suite_test_client_elicitation_defaults"),
    ("sse-retry", "call suite_test_reconnection"),
];

pub(crate) fn run(helve: &Helve) -> Result<E2eResult, String> {
    let Some(modules) = super::install()? else {
        return Ok(E2eResult::Skipped("npm is not installed".into()));
    };
    let scratch = Scratch::new("conformance")?;
    let folder = scratch.folder("run")?;
    for (scenario, arguments) in SCENARIOS {
        let script = folder.join(format!("{scenario}.sh"));
        fs::write(&script, driver_script(helve, &folder, arguments))
            .map_err(|error| format!("{}: {error}", script.display()))?;
        let mut command = Command::new(modules.join("node/bin/node"));
        command.arg(modules.join(".bin/conformance")).args(["client", "--scenario", scenario]);
        command.arg("--command").arg(format!("sh {}", script.display()));
        command.env("PATH", npm::path(&modules)?).envs(helve.environment()).current_dir(&folder);
        let finished = process::run(&mut command, RUN_LIMIT)?;
        // The suite prints to either stream.
        let printed = format!("{}{}", finished.stdout, finished.stderr);
        finished.success(scenario)?;
        if !printed.contains("OVERALL: PASSED") {
            return Err(format!("{scenario}: {printed}"));
        }
    }
    let names: Vec<&str> = SCENARIOS.iter().map(|(name, _)| *name).collect();
    Ok(E2eResult::Passed(names.join(", ")))
}

/// Returns a script that the suite starts with the URL of its server.
fn driver_script(helve: &Helve, folder: &Path, arguments: &str) -> String {
    format!(
        "printf '{{\"mcp\": {{\"suite\": {{\"type\": \"remote\", \"url\": \"%s\"}}}}}}' \"$1\" > '{config}'\n\
         exec '{helve}' --dir '{folder}' --yes --config '{config}' {arguments}\n",
        config = folder.join("suite.json").display(),
        helve = helve.binary().display(),
        folder = folder.display(),
    )
}

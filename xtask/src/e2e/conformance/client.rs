//! The suite as a server that `helve call` uses.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::super::{RUN_LIMIT, Said, npm};
use crate::helve::Helve;
use crate::process;
use crate::scratch::Scratch;

/// What the client does in a scenario: its server is set up under the name `suite`.
const SCENARIOS: &[(&str, &str)] = &[
    ("initialize", "mcp check suite"),
    ("tools_call", "call suite_add_numbers a:=5 b:=3"),
    ("elicitation-sep1034-client-defaults", "call suite_test_client_elicitation_defaults"),
    ("sse-retry", "call suite_test_reconnection"),
];

pub(crate) fn run(helve: &Helve) -> Result<Said, String> {
    let Some(modules) = super::modules()? else {
        return Ok(Said::Skipped("there is no npm".into()));
    };
    let scratch = Scratch::new("conformance")?;
    let folder = scratch.folder("run")?;
    for (scenario, does) in SCENARIOS {
        let script = folder.join(format!("{scenario}.sh"));
        fs::write(&script, driver(helve, &folder, does))
            .map_err(|error| format!("{}: {error}", script.display()))?;
        let mut command = Command::new(modules.join("node/bin/node"));
        command.arg(modules.join(".bin/conformance")).args(["client", "--scenario", scenario]);
        command.arg("--command").arg(format!("sh {}", script.display()));
        command.env("PATH", npm::path(&modules)?).envs(helve.environment()).current_dir(&folder);
        let finished = process::finish(&mut command, RUN_LIMIT)?;
        // Which of the two it prints to is its own affair.
        let printed = format!("{}{}", finished.stdout, finished.stderr);
        finished.good(scenario)?;
        if !printed.contains("OVERALL: PASSED") {
            return Err(format!("{scenario}: {printed}"));
        }
    }
    let names: Vec<&str> = SCENARIOS.iter().map(|(name, _)| *name).collect();
    Ok(Said::Passed(names.join(", ")))
}

/// The suite starts it with the address of its server.
fn driver(helve: &Helve, folder: &Path, does: &str) -> String {
    format!(
        "printf '{{\"mcp\": {{\"suite\": {{\"type\": \"remote\", \"url\": \"%s\"}}}}}}' \"$1\" > '{config}'\n\
         exec '{helve}' --dir '{folder}' --yes --config '{config}' {does}\n",
        config = folder.join("suite.json").display(),
        helve = helve.binary().display(),
        folder = folder.display(),
    )
}

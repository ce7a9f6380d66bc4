//! `helve config`: what is in force, and where it was written.

use helve::config::{SettingState, Severity};
use helve::visible;
use serde_json::{Value, json};

use crate::End;
use crate::args::Common;
use crate::paint::{self, DIM, PLAIN};

pub(crate) async fn run(common: &Common) -> anyhow::Result<End> {
    // Problems go to standard error here as everywhere.
    let toolbox = common.toolbox().await?;
    let config = toolbox.config();
    if common.json {
        paint::json(&as_json(config))?;
    } else {
        for file in &config.sources {
            paint::out(&format!("{DIM}read {}{PLAIN}\n", shown(&file.path.display().to_string())))?;
        }
        for line in config.explain() {
            let waits = match line.state {
                SettingState::Active => "",
                SettingState::NeedsTrust => " (waits for `helve trust`)",
            };
            paint::out(&format!(
                "{} = {}{waits}  {DIM}{}{PLAIN}\n",
                line.key,
                line.value,
                paint::source(&line.source)
            ))?;
        }
    }
    let broken = config.problems.iter().any(|problem| problem.severity == Severity::Error);
    toolbox.close().await;
    Ok(if broken { End::Failed } else { End::Done })
}

fn shown(path: &str) -> String {
    visible::escape_line(path).into_owned()
}

fn as_json(config: &helve::config::Config) -> Value {
    let values: Vec<Value> = config
        .explain()
        .map(|line| {
            json!({
                "key": line.key,
                "value": line.value,
                "source": paint::source(&line.source),
                "inForce": line.state == SettingState::Active,
            })
        })
        .collect();
    let problems: Vec<Value> = config
        .problems
        .iter()
        .map(|problem| {
            json!({
                "file": problem.file.display().to_string(),
                "line": problem.at.map(|at| at.line),
                "column": problem.at.map(|at| at.column),
                "error": problem.severity == Severity::Error,
                "what": problem.what,
                "suggestion": problem.suggestion,
            })
        })
        .collect();
    let files: Vec<String> =
        config.sources.iter().map(|file| file.path.display().to_string()).collect();
    json!({"files": files, "values": values, "problems": problems})
}

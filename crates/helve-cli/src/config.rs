//! `helve config`: prints the active configuration and the source of each value.

use helve::config::{ConfigProblem, SettingState, Severity};
use helve::visible;
use serde_json::{Value, json};

use crate::Exit;
use crate::args::GlobalArgs;
use crate::output::{self, DIM, PLAIN};

pub(crate) async fn run(common: &GlobalArgs) -> anyhow::Result<Exit> {
    let toolbox = common.builder().client("cli").inspect().build().await?;
    let config = toolbox.config();
    let rule_warnings = config.warnings_about_rules();
    let problems: Vec<&ConfigProblem> = config.problems.iter().chain(&rule_warnings).collect();
    problems.iter().for_each(|problem| output::print_problem(problem));
    output::print_trust(&toolbox);
    if common.json {
        output::print_json(&as_json(config, &problems))?;
    } else {
        for file in &config.sources {
            output::print(&format!(
                "{DIM}read {}{PLAIN}\n",
                escape_path(&file.path.display().to_string())
            ))?;
        }
        let covered = config.covered_rules();
        for line in config.explain() {
            let suffix = match line.state {
                SettingState::NeedsTrust => " (needs `helve trust`)",
                SettingState::Active if covered.contains(&line.source) => {
                    " (never decides: a later rule covers it)"
                }
                SettingState::Active => "",
            };
            output::print(&format!(
                "{} = {}{suffix}  {DIM}{}{PLAIN}\n",
                line.key,
                line.value,
                output::describe_source(&line.source)
            ))?;
        }
    }
    let has_errors = problems.iter().any(|problem| problem.severity == Severity::Error);
    toolbox.close().await;
    Ok(if has_errors { Exit::Failed } else { Exit::Done })
}

fn escape_path(path: &str) -> String {
    visible::escape_line(path).into_owned()
}

fn as_json(config: &helve::config::Config, problems: &[&ConfigProblem]) -> Value {
    let covered = config.covered_rules();
    let values: Vec<Value> = config
        .explain()
        .map(|line| {
            json!({
                "key": line.key,
                "value": line.value,
                "source": output::describe_source(&line.source),
                "active": line.state == SettingState::Active && !covered.contains(&line.source),
            })
        })
        .collect();
    let problems: Vec<Value> = problems
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

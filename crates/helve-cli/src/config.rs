//! `helve config`: prints the active configuration and the source of each value.

use helve::config::{ConfigProblem, SettingLine, SettingState, Severity};
use helve::{Source, Toolbox, visible};
use serde_json::{Value, json};

use crate::Exit;
use crate::args::GlobalArgs;
use crate::output::{self, DIM, PLAIN};

pub(crate) async fn run(common: &GlobalArgs, with_defaults: bool) -> anyhow::Result<Exit> {
    let toolbox = common.builder().client("cli").inspect().build().await?;
    let config = toolbox.config();
    let rule_warnings = config.warnings_about_rules();
    let problems: Vec<&ConfigProblem> = config.problems.iter().chain(&rule_warnings).collect();
    problems.iter().for_each(|problem| output::print_problem(problem));
    output::print_trust(&toolbox);
    let lines = setting_lines(&toolbox, with_defaults);
    if common.json {
        output::print_json(&as_json(config, &lines, &problems))?;
    } else {
        for file in &config.sources {
            output::print(&format!(
                "{DIM}read {}{PLAIN}\n",
                escape_path(&file.path.display().to_string())
            ))?;
        }
        let covered = config.covered_rules();
        for line in &lines {
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
        if !with_defaults {
            output::print(&format!(
                "{DIM}built-in rules, agents and values: helve config --defaults{PLAIN}\n"
            ))?;
        }
    }
    let has_errors = problems.iter().any(|problem| problem.severity == Severity::Error);
    toolbox.close().await;
    Ok(if has_errors { Exit::Failed } else { Exit::Done })
}

/// Returns the configured settings, preceded by the built-in ones if `with_defaults`.
fn setting_lines(toolbox: &Toolbox, with_defaults: bool) -> Vec<SettingLine> {
    let config = toolbox.config();
    let is_builtin = |line: &SettingLine| line.source == Source::Builtin;
    if !with_defaults {
        return config.explain().filter(|line| !is_builtin(line)).collect();
    }
    let mut lines = toolbox.default_settings();
    lines.extend(config.explain().filter(|line| !is_builtin(line) || toolbox.applies_here(line)));
    lines
}

fn escape_path(path: &str) -> String {
    visible::escape_line(path).into_owned()
}

fn as_json(
    config: &helve::config::Config,
    lines: &[SettingLine],
    problems: &[&ConfigProblem],
) -> Value {
    let covered = config.covered_rules();
    let values: Vec<Value> = lines
        .iter()
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

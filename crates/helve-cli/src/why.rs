//! `helve why`: shows whether a call would be allowed, and which rule decides.

use helve::{Action, Explanation, Part, Pattern, Reason, Verdict, visible};
use serde_json::{Value, json};

use crate::Exit;
use crate::args::{self, GlobalArgs};
use crate::output::{self, DIM, PLAIN};

pub(crate) async fn run(
    common: &GlobalArgs,
    tool: &str,
    raw_args: &[String],
) -> anyhow::Result<Exit> {
    let input = args::parse_input(raw_args)?;
    let toolbox = common.toolbox().await?;
    let explanation = toolbox.why(tool, input).await;
    let printed =
        if common.json { output::print_json(&as_json(&explanation)) } else { print(&explanation) };
    toolbox.close().await;
    printed.map(|()| Exit::Done)
}

fn print(explanation: &Explanation) -> anyhow::Result<()> {
    let mut text = format!("{}\n", output::coloured_action(explanation.decision));
    for (part, verdict) in &explanation.parts {
        let action = output::action_name(verdict.action);
        let subjects: Vec<_> =
            part.subjects.iter().map(|subject| visible::escape_line(subject)).collect();
        text.push_str(&format!("  {action:5} {} {}\n", part.permission, subjects.join(" = ")));
        text.push_str(&format!("        {DIM}{}{PLAIN}\n", because(part, verdict)));
    }
    for (permission, pattern) in lasting_rules(explanation) {
        let shown = visible::escape_line(&pattern).into_owned();
        text.push_str(&format!("  a lasting approval would add the rule: {permission} {shown}\n"));
    }
    if explanation.parts.is_empty() {
        let message = match explanation.result_without_ask.as_ref().map(|result| &result.outcome) {
            None | Some(Ok(_)) => "The call needs no permission.".into(),
            Some(Err(err)) => {
                format!("The call fails before it needs permission: {}", err.full_message())
            }
        };
        text.push_str(&format!("  {}\n", visible::escape(&message)));
    }
    output::print(&text)
}

fn because(part: &Part, verdict: &Verdict) -> String {
    let rule = verdict.rule.as_ref().map(|rule| {
        format!(
            "{}: {} \"{}\": {} ({})",
            verdict.wall,
            rule.permission,
            visible::escape_line(rule.pattern.as_str()),
            output::action_name(rule.action),
            output::describe_source(&rule.source)
        )
    });
    match (rule, &verdict.reason) {
        (Some(rule), Reason::Rule) => rule,
        (_, Reason::OnlyReads) => helve::reason(part, verdict),
        (None, Reason::Rule) if verdict.action == Action::Allow => {
            format!("no {} rule asks about it or denies it", verdict.wall)
        }
        (None, _) => visible::escape_line(&helve::reason(part, verdict)).into_owned(),
        (Some(rule), _) => {
            format!("{}; {rule}", visible::escape_line(&helve::reason(part, verdict)))
        }
    }
}

/// Returns the rules that a lasting approval would add, as (permission, pattern).
fn lasting_rules(explanation: &Explanation) -> Vec<(String, String)> {
    let asked = explanation.parts.iter().filter(|(_, verdict)| verdict.action == Action::Ask);
    let rules = asked.filter_map(|(part, _)| {
        Some((part.permission.to_string(), part.remember_as.as_ref()?.as_str().to_string()))
    });
    rules.collect()
}

fn as_json(explanation: &Explanation) -> Value {
    let always: Vec<Value> = lasting_rules(explanation)
        .into_iter()
        .map(|(permission, pattern)| json!({"permission": permission, "pattern": pattern}))
        .collect();
    let error = explanation
        .result_without_ask
        .as_ref()
        .and_then(|result| result.outcome.as_ref().err())
        .map(helve::ToolError::full_message);
    json!({
        "decision": output::action_name(explanation.decision),
        "parts": explanation.parts.iter().map(|(part, verdict)| part_json(part, verdict)).collect::<Vec<_>>(),
        "always": always,
        "error": error,
    })
}

fn part_json(part: &Part, verdict: &Verdict) -> Value {
    let rule = verdict.rule.as_ref().map(|rule| {
        json!({
            "permission": rule.permission,
            "pattern": rule.pattern.as_str(),
            "action": output::action_name(rule.action),
            "source": output::describe_source(&rule.source),
        })
    });
    json!({
        "permission": part.permission,
        "subjects": part.subjects,
        "action": output::action_name(verdict.action),
        "wall": verdict.wall,
        "reason": helve::reason(part, verdict),
        "rule": rule,
        "always": part.remember_as.as_ref().map(Pattern::as_str),
    })
}

//! `helve why`: what permission would say, and by which rule.

use helve::{Action, Explanation, Part, Pattern, Verdict, visible};
use serde_json::{Value, json};

use crate::End;
use crate::args::{self, Common};
use crate::paint::{self, DIM, PLAIN};

pub(crate) async fn run(common: &Common, tool: &str, typed: &[String]) -> anyhow::Result<End> {
    let input = args::input(typed)?;
    let toolbox = common.toolbox().await?;
    let explanation = toolbox.why(tool, input).await;
    let printed =
        if common.json { paint::json(&as_json(&explanation)) } else { print(&explanation) };
    toolbox.close().await;
    printed.map(|()| End::Done)
}

fn print(explanation: &Explanation) -> anyhow::Result<()> {
    let mut text = format!("{}\n", paint::coloured(explanation.decision));
    for (part, verdict) in &explanation.parts {
        let word = paint::action(verdict.action);
        let subjects: Vec<_> =
            part.subjects.iter().map(|subject| visible::escape_line(subject)).collect();
        text.push_str(&format!("  {word:5} {} {}\n", part.permission, subjects.join(" = ")));
        text.push_str(&format!("        {DIM}{}{PLAIN}\n", because(part, verdict)));
    }
    for pattern in remembered(explanation) {
        let shown = visible::escape_line(&pattern.1).into_owned();
        text.push_str(&format!("  a lasting yes would remember: {} {shown}\n", pattern.0));
    }
    if explanation.parts.is_empty() {
        let words = match explanation.unasked.as_ref().map(|result| &result.outcome) {
            None | Some(Ok(_)) => "It asks for nothing.".into(),
            Some(Err(err)) => format!("It ends before it asks for anything: {}", err.words()),
        };
        text.push_str(&format!("  {}\n", visible::escape(&words)));
    }
    paint::out(&text)
}

fn because(part: &Part, verdict: &Verdict) -> String {
    match (&verdict.rule, part.unclear().map(helve::unclear)) {
        (None, Some(why)) => format!("no rule can allow {why}"),
        (None, None) => format!("no rule of {} matches", verdict.wall),
        (Some(rule), _) => format!(
            "{}: {} \"{}\": {} ({})",
            verdict.wall,
            rule.permission,
            visible::escape_line(rule.pattern.as_str()),
            paint::action(rule.action),
            paint::source(&rule.source)
        ),
    }
}

/// What a yes for longer than once would leave behind, as (permission, pattern).
fn remembered(explanation: &Explanation) -> Vec<(String, String)> {
    let open = explanation.parts.iter().filter(|(_, verdict)| verdict.action == Action::Ask);
    let each = open.filter_map(|(part, _)| {
        Some((part.permission.to_string(), part.always.as_ref()?.as_str().to_string()))
    });
    each.collect()
}

fn as_json(explanation: &Explanation) -> Value {
    let always: Vec<Value> = remembered(explanation)
        .into_iter()
        .map(|(permission, pattern)| json!({"permission": permission, "pattern": pattern}))
        .collect();
    let error = explanation
        .unasked
        .as_ref()
        .and_then(|result| result.outcome.as_ref().err())
        .map(helve::ToolError::words);
    json!({
        "decision": paint::action(explanation.decision),
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
            "action": paint::action(rule.action),
            "source": paint::source(&rule.source),
        })
    });
    json!({
        "permission": part.permission,
        "subjects": part.subjects,
        "action": paint::action(verdict.action),
        "wall": verdict.wall,
        "unclear": part.unclear().map(helve::unclear),
        "rule": rule,
        "always": part.always.as_ref().map(Pattern::as_str),
    })
}

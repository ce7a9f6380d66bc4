//! `helve doctor`: whether everything Helve needs is in order, and what to do where it is not.

use helve::config::Severity;
use helve::{Support, TrustState, visible};
use serde_json::{Value, json};

use crate::End;
use crate::args::Common;
use crate::paint::{self, BOLD, GREEN, PLAIN, RED, YELLOW};

/// One thing that was looked at.
struct Finding {
    what: &'static str,
    state: Health,
    says: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Health {
    Good,
    Mind,
    Bad,
}

pub(crate) async fn run(common: &Common) -> anyhow::Result<End> {
    let toolbox = common.builder().client("cli").build().await?;
    let mut findings = vec![
        Finding {
            what: "helve",
            state: Health::Good,
            says: format!("version {}", env!("CARGO_PKG_VERSION")),
        },
        Finding { what: "folder", state: Health::Good, says: toolbox.root().display().to_string() },
    ];
    findings.push(store(&toolbox).await);
    findings.push(configuration(&toolbox));
    findings.push(trust(&toolbox));
    findings.push(tools(&toolbox));
    findings.extend(sandbox(&toolbox).await);
    toolbox.close().await;
    if common.json {
        let all = findings.iter().map(|finding| {
            json!({"what": finding.what, "state": word(finding.state), "says": finding.says})
        });
        paint::json(&Value::from(all.collect::<Vec<_>>()))?;
    } else {
        for finding in &findings {
            let colour = match finding.state {
                Health::Good => GREEN,
                Health::Mind => YELLOW,
                Health::Bad => RED,
            };
            let says = visible::escape(&finding.says);
            let word = word(finding.state);
            paint::out(&format!(
                "{colour}{word:4}{PLAIN} {BOLD}{}{PLAIN}: {says}\n",
                finding.what
            ))?;
        }
    }
    let bad = findings.iter().any(|finding| finding.state == Health::Bad);
    Ok(if bad { End::Failed } else { End::Done })
}

fn word(state: Health) -> &'static str {
    match state {
        Health::Good => "ok",
        Health::Mind => "note",
        Health::Bad => "bad",
    }
}

async fn store(toolbox: &helve::Toolbox) -> Finding {
    let folder = toolbox.data().display();
    let tried = toolbox.store().calls(None, 1).await;
    let notice = toolbox.store().notice().await;
    let (state, says) = match (tried, notice) {
        (_, Some(notice)) => (Health::Bad, notice),
        (Err(err), None) => (Health::Bad, format!("{folder}: {err}")),
        (Ok(_), None) => (Health::Good, format!("data in {folder}")),
    };
    Finding { what: "store", state, says }
}

fn configuration(toolbox: &helve::Toolbox) -> Finding {
    let config = toolbox.config();
    let errors = config.problems.iter().filter(|one| one.severity == Severity::Error).count();
    let warnings = config.problems.len() - errors;
    let state = match (errors, warnings) {
        (0, 0) => Health::Good,
        (0, _) => Health::Mind,
        (_, _) => Health::Bad,
    };
    let files = config.sources.len();
    let mut says = format!("{files} files read, {errors} errors, {warnings} warnings");
    if state != Health::Good {
        says.push_str("; `helve config` shows them");
    }
    Finding { what: "configuration", state, says }
}

fn trust(toolbox: &helve::Toolbox) -> Finding {
    let (state, says) = match toolbox.trust() {
        TrustState::NothingToTrust => (Health::Good, "the folder brings nothing to be trusted"),
        TrustState::Trusted => (Health::Good, "the folder is trusted"),
        TrustState::Untrusted => {
            (Health::Mind, "the folder is not trusted: it can forbid, not allow (`helve trust`)")
        }
        TrustState::Changed => (
            Health::Mind,
            "the folder's configuration changed since it was trusted (`helve trust` again)",
        ),
    };
    Finding { what: "trust", state, says: says.into() }
}

/// What programs can be confined by, and whether that is asked for.
async fn sandbox(toolbox: &helve::Toolbox) -> [Finding; 2] {
    let found = toolbox.confinement().await;
    let mode = toolbox.config().sandbox.mode();
    let wanted = mode != helve::Sandbox::default();
    let (state, says) = match found.writes {
        Support::Yes(means) if wanted => (Health::Good, format!("{}, by {means}", mode.word())),
        Support::Yes(means) => (Health::Good, format!("off; could be had by {means}")),
        Support::No(why) if wanted => {
            (Health::Bad, format!("{} is asked for and cannot be had: {why}", mode.word()))
        }
        Support::No(why) => (Health::Mind, format!("off; could not be had: {why}")),
    };
    let processes = match found.processes {
        Support::Yes(means) => (Health::Good, format!("their number is bounded by {means}")),
        Support::No(why) => (Health::Mind, format!("their number is not bounded: {why}")),
    };
    [
        Finding { what: "sandbox", state, says },
        Finding { what: "processes", state: processes.0, says: processes.1 },
    ]
}

fn tools(toolbox: &helve::Toolbox) -> Finding {
    let says = toolbox.tools().names().join(", ");
    Finding { what: "tools", state: Health::Good, says }
}

//! Asks at the first run in a folder whether it is trusted, and shows what that would enable.

use std::io::IsTerminal;

use helve::config::{ConfigLayer, SettingState};
use helve::{Toolbox, TrustState, visible};

use crate::args::GlobalArgs;
use crate::output::{self, BOLD, DIM, PLAIN, YELLOW};
use crate::prompt;

/// Maximum number of lines about what trust would enable.
const MAX_LINES: usize = 20;

/// What a person decided about a folder.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum TrustDecision {
    /// It is trusted from now on, so the toolbox must be built again.
    Given,
    Unchanged,
}

/// Asks whether to trust the folder, if somebody can answer and if that would change anything.
pub(super) async fn ask(common: &GlobalArgs, toolbox: &Toolbox) -> anyhow::Result<TrustDecision> {
    let can_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    let effects = effects(toolbox);
    if effects.is_empty() {
        return Ok(TrustDecision::Unchanged);
    }
    if !can_ask || common.yes || common.json || toolbox.was_trust_declined().await {
        note_unused_instructions(toolbox);
        return Ok(TrustDecision::Unchanged);
    }
    show_effects(toolbox, &effects).await;
    let question = format!(
        "{BOLD}[y] trust{PLAIN}  [n] not now (you are asked again if it changes; `helve trust` trusts it later): "
    );
    match prompt::choose(&question, &['y', 'n']).await {
        Some('y') => {
            toolbox.give_trust().await?;
            Ok(TrustDecision::Given)
        }
        Some(_) => {
            toolbox.decline_trust();
            Ok(TrustDecision::Unchanged)
        }
        None => Ok(TrustDecision::Unchanged),
    }
}

/// Shows what trusting the folder would enable, and asks whether to trust it. For `helve trust`.
pub(crate) async fn confirm(common: &GlobalArgs, toolbox: &Toolbox) -> bool {
    let effects = effects(toolbox);
    if common.json || effects.is_empty() {
        return true;
    }
    show_effects(toolbox, &effects).await;
    let can_ask = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
    if !can_ask || common.yes {
        return true;
    }
    let question = format!("{BOLD}[y] trust{PLAIN}  [n] no: ");
    prompt::choose(&question, &['y', 'n']).await == Some('y')
}

async fn show_effects(toolbox: &Toolbox, effects: &[String]) {
    let root = visible::escape_line(&toolbox.root().display().to_string()).into_owned();
    let why = match toolbox.trust() {
        TrustState::Changed => "changed since you trusted it",
        TrustState::Untrusted | TrustState::NothingToTrust | TrustState::Trusted => {
            "is not trusted yet"
        }
    };
    for change in toolbox.changes_since_trust().await.iter().take(MAX_LINES) {
        output::note(&format!("  {}", visible::escape_line(&change.to_string())));
    }
    output::note(&format!("{YELLOW}{root} {why}.{PLAIN} Trusting it would enable:"));
    for line in effects.iter().take(MAX_LINES) {
        output::note(&format!("  {line}"));
    }
    if effects.len() > MAX_LINES {
        output::note(&format!(
            "  {DIM}… {} more, see `helve config`{PLAIN}",
            effects.len() - MAX_LINES
        ));
    }
}

/// What an untrusted folder would do if it were trusted, one line each.
fn effects(toolbox: &Toolbox) -> Vec<String> {
    if !matches!(toolbox.trust(), TrustState::Untrusted | TrustState::Changed) {
        return Vec::new();
    }
    let config = toolbox.config();
    let settings = config.explain().filter(|line| line.state == SettingState::NeedsTrust);
    let settings = settings.map(|line| {
        let source = output::describe_source(&line.source);
        let setting = format!("{} = {}", line.key, line.value);
        let (setting, source) = (visible::escape_line(&setting), visible::escape_line(&source));
        format!("{setting}  {DIM}{source}{PLAIN}")
    });
    let files = project_instructions(toolbox)
        .map(|path| format!("instructions for the model in {}", visible::escape_line(&path)));
    settings.chain(files).collect()
}

/// The readable instruction files of the project, relative to its root.
fn project_instructions(toolbox: &Toolbox) -> impl Iterator<Item = String> {
    let files = toolbox.config().instructions.iter();
    let of_project =
        files.filter(|file| file.layer == ConfigLayer::Project && file.content.is_ok());
    of_project.map(|file| {
        file.path.strip_prefix(toolbox.root()).unwrap_or(&file.path).display().to_string()
    })
}

/// Tells the person that the model does not get the project's instruction files.
fn note_unused_instructions(toolbox: &Toolbox) {
    let files: Vec<String> = project_instructions(toolbox).collect();
    if !files.is_empty() {
        let files = visible::escape_line(&files.join(", ")).into_owned();
        output::note(&format!(
            "{DIM}not used, because the folder is not trusted: {files} (see `helve trust`){PLAIN}"
        ));
    }
}

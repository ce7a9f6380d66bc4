//! `helve trust`: trusts a folder's configuration.

use helve::TrustState;
use helve::config::ConfigLayer;
use helve::visible;
use serde_json::json;

use crate::Exit;
use crate::args::GlobalArgs;
use crate::output;
use crate::run::trust::confirm;

pub(crate) async fn run(common: &GlobalArgs, remove: bool) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox_to_inspect().await?;
    let root = visible::escape_line(&toolbox.root().display().to_string()).into_owned();
    let changes = toolbox.changes_since_trust().await;
    let message = if remove {
        toolbox.withdraw_trust().await?;
        format!("{root} is no longer trusted.")
    } else if toolbox.trust() == TrustState::NothingToTrust {
        toolbox.give_trust().await?;
        format!(
            "{root} has no configuration that needs trust. It is trusted from now on: `helve run` also follows instruction files (AGENTS.md) in its subfolders."
        )
    } else if !confirm(common, &toolbox).await {
        toolbox.close().await;
        output::print("Nothing changed.\n")?;
        return Ok(Exit::Refused);
    } else {
        toolbox.give_trust().await?;
        let config = toolbox.config();
        let sources = config.sources.iter().filter(|file| file.layer == ConfigLayer::Project);
        let instructions =
            config.instructions.iter().filter(|file| file.layer == ConfigLayer::Project);
        let scripts = toolbox.scripts().project_files().iter().map(|file| file.as_path());
        let paths = sources.map(|file| &*file.path);
        let paths = paths.chain(instructions.map(|file| file.path.as_path())).chain(scripts);
        let lines: String = paths
            .map(|path| format!("  {}\n", visible::escape_line(&path.display().to_string())))
            .collect();
        let changed: String = changes
            .iter()
            .map(|change| format!("  {}\n", visible::escape_line(&change.to_string())))
            .collect();
        let changed = match changed.is_empty() {
            true => changed,
            false => format!("Changes since you last trusted it:\n{changed}"),
        };
        format!(
            "{changed}{root} is now trusted: its configuration may now allow actions that would otherwise need your approval, `helve run` follows its instruction files, and its custom tools and plugins are loaded.\n{lines}If one of these files changes, the folder is untrusted until you trust it again."
        )
    };
    // If the store could not save the trust, the command must not report success.
    let warning = toolbox.store().pending_warning().await;
    toolbox.close().await;
    if let Some(warning) = warning {
        output::error(&warning);
        return Ok(Exit::Failed);
    }
    if common.json {
        output::print_json(&json!({"root": root, "trusted": !remove}))?;
    } else {
        output::print(&format!("{message}\n"))?;
    }
    Ok(Exit::Done)
}

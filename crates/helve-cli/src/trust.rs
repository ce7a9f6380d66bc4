//! `helve trust`: a person vouches for a folder.

use helve::TrustState;
use helve::config::ConfigLayer;
use helve::visible;
use serde_json::json;

use crate::End;
use crate::args::Common;
use crate::paint;

pub(crate) async fn run(common: &Common, remove: bool) -> anyhow::Result<End> {
    let toolbox = common.toolbox().await?;
    let root = visible::escape_line(&toolbox.root().display().to_string()).into_owned();
    let said = if remove {
        toolbox.withdraw_trust().await?;
        format!("{root} is not trusted any more.")
    } else if toolbox.trust() == TrustState::NothingToTrust {
        format!("{root} brings no configuration, so there is nothing to trust.")
    } else {
        toolbox.give_trust().await?;
        let files = toolbox.config().sources.iter();
        let brought = files.filter(|file| file.layer == ConfigLayer::Project);
        let each = brought
            .map(|file| format!("  {}\n", visible::escape_line(&file.path.display().to_string())));
        let each: String = each.collect();
        format!(
            "{root} is trusted as it is now: its configuration may allow what yours asks about.\n{each}If one of these files changes, it counts as untrusted until you trust it again."
        )
    };
    // A store that could not keep it must not look as if it had.
    let notice = toolbox.store().notice().await;
    toolbox.close().await;
    if let Some(notice) = notice {
        paint::error(&notice);
        return Ok(End::Failed);
    }
    if common.json {
        paint::json(&json!({"root": root, "trusted": !remove}))?;
    } else {
        paint::out(&format!("{said}\n"))?;
    }
    Ok(End::Done)
}

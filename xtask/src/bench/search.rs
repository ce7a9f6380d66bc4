//! Searching beside `rg`, which is asked for the same and prints all of it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use super::calls::{compared, tool};
use super::measure::interleaved;
use super::stage::Stage;
use super::tree::{COMMON, FILES, MANY, RARE};
use super::{Figures, Floor};
use crate::helve::CALL_LIMIT;
use crate::process;

const ROUNDS: usize = 30;

pub(super) fn grep_rare(stage: &mut Stage) -> Result<Figures, String> {
    let tree = stage.large_tree()?;
    let call = Call { tool: "grep", arguments: json!({"pattern": RARE, "path": tree}), says: RARE };
    beside_rg(stage, "rg -n RARE", &["-n", RARE], &tree, &call)
}

pub(super) fn grep_common(stage: &mut Stage) -> Result<Figures, String> {
    let tree = stage.large_tree()?;
    let arguments = json!({"pattern": COMMON, "path": tree});
    let call = Call { tool: "grep", arguments, says: "100 of " };
    beside_rg(stage, "rg -n COMMON", &["-n", COMMON], &tree, &call)
}

pub(super) fn glob(stage: &mut Stage) -> Result<Figures, String> {
    let tree = stage.large_tree()?;
    let says = format!("100 of {} files", FILES.div_ceil(3));
    let call = Call { tool: "glob", arguments: globbing(&tree), says: &says };
    beside_rg(stage, "rg --files -g", &["--files", "-g", "**/*.rs"], &tree, &call)
}

pub(super) fn glob_many(stage: &mut Stage) -> Result<Figures, String> {
    let tree = stage.very_large_tree()?;
    let says = format!("100 of {} files", MANY.div_ceil(3));
    let call = Call { tool: "glob", arguments: globbing(&tree), says: &says };
    beside_rg(stage, "rg --files -g", &["--files", "-g", "**/*.rs"], &tree, &call)
}

pub(super) fn list(stage: &mut Stage) -> Result<Figures, String> {
    let tree = stage.large_tree()?;
    let call = Call { tool: "list", arguments: json!({"path": tree}), says: "part000/" };
    beside_rg(stage, "rg --files", &["--files"], &tree, &call)
}

/// All of these once, for whoever looks at what they cost.
pub(super) fn once(stage: &mut Stage) -> Result<(), String> {
    let tree = stage.large_tree()?;
    let server = stage.server()?;
    tool(server, "grep", &json!({"pattern": COMMON, "path": tree}), "100 of ")?;
    tool(server, "grep", &json!({"pattern": RARE, "path": tree}), RARE)?;
    tool(server, "glob", &globbing(&tree), "100 of ")?;
    tool(server, "list", &json!({"path": tree}), "part000/").map(|_| ())
}

fn globbing(tree: &Path) -> Value {
    json!({"pattern": "**/*.rs", "path": tree})
}

struct Call<'a> {
    tool: &'static str,
    arguments: Value,
    says: &'a str,
}

fn beside_rg(
    stage: &mut Stage,
    command: &'static str,
    arguments: &[&str],
    tree: &Path,
    call: &Call<'_>,
) -> Result<Figures, String> {
    let server = stage.server()?;
    let ours = || tool(server, call.tool, &call.arguments, call.says);
    if rg(&["--version"], None).is_ok() {
        return compared(command, ROUNDS, || rg(arguments, Some(tree)), ours);
    }
    eprintln!("there is no `rg` here, so {} is measured without a floor", call.tool);
    let pair = interleaved(ROUNDS, || Ok(Duration::ZERO), ours)?;
    Ok(Figures { ours: pair.ours, floor: None::<Floor>, rounds: ROUNDS })
}

fn rg(arguments: &[&str], tree: Option<&Path>) -> Result<Duration, String> {
    let mut command = Command::new("rg");
    command.args(["--no-config", "--hidden", "--glob", "!.git"]).args(arguments).args(tree);
    let finished = process::finish(&mut command, CALL_LIMIT)?;
    let took = finished.took;
    finished.good("rg").map(|_| took)
}

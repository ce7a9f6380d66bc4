//! `helve install`: adds Helve to another program's configuration, and can restore the file exactly as it was.

mod client;
mod file;
mod json;
mod toml;

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use serde_json::{Value, json};

use self::client::ConfigTarget;
use self::file::InstallRecord;
use crate::args::{GlobalArgs, InstallArgs, InstallClient, InstallPermission};
use crate::output::{self, BOLD, DIM, PLAIN};
use crate::{Exit, output::GREEN};

/// The server entry that starts Helve.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HelveEntry {
    pub(crate) name: String,
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
}

pub(crate) fn run(common: &GlobalArgs, install: &InstallArgs) -> anyhow::Result<Exit> {
    refuse_other_options(common)?;
    let entry = HelveEntry {
        name: install.name.clone(),
        program: program()?,
        args: args(install.permission),
    };
    if install.print {
        return print(&entry, install.client);
    }
    let Some(client) = install.client else {
        bail!(
            "name a program: claude-code, codex, opencode, cursor, vscode, zed or gemini-cli; for others use --print"
        );
    };
    let target = ConfigTarget::find(client)?;
    let before = file::read(&target.path)?;
    let after = if install.remove {
        target.remove_entry(before.as_deref(), &entry.name)
    } else {
        target.add_entry(before.as_deref(), &entry)
    };
    let after = after.with_context(|| target.path.display().to_string())?;
    let Some(mut after) = after else {
        let state = if install.remove { "is not configured" } else { "is already configured" };
        output::print(&format!(
            "{}: {} {state}; nothing to do.\n",
            target.path.display(),
            entry.name
        ))?;
        return Ok(Exit::Done);
    };
    // If the file is unchanged since the install, restore the exact original.
    let record = InstallRecord::load(&target.path, &entry.name)?;
    if install.remove
        && let Some(original) =
            record.and_then(|record| record.original_if_unchanged(before.as_deref()))
    {
        after = original;
    }
    print_diff(&target.path, before.as_deref(), &after)?;
    if !install.remove {
        warn_about_refusals(client, install.permission)?;
    }
    if !common.yes && std::io::stdin().is_terminal() && !confirm()? {
        output::print("Nothing written.\n")?;
        return Ok(Exit::Refused);
    }
    write(&target.path, before.as_deref(), &after, install, &entry.name)?;
    let outcome = if install.remove { "removed from" } else { "added to" };
    output::print(&format!("{GREEN}{}{PLAIN} {outcome} {}\n", entry.name, target.path.display()))?;
    Ok(Exit::Done)
}

/// Returns an error for options that would have no effect on the server entry.
fn refuse_other_options(common: &GlobalArgs) -> anyhow::Result<()> {
    let given = [
        ("--allow", !common.allow.is_empty()),
        ("--agent", common.agent.is_some()),
        ("--dir", common.dir.is_some()),
        ("--config", !common.config.is_empty()),
    ];
    match given.into_iter().find(|(_, is_given)| *is_given) {
        Some((option, _)) => bail!(
            "install has no use for {option}. Rules belong into your helve.json; --permission chooses what is allowed without asking"
        ),
        None => Ok(()),
    }
}

/// Says what will be refused if the program cannot show questions.
fn warn_about_refusals(client: InstallClient, permission: InstallPermission) -> anyhow::Result<()> {
    let refused = match permission {
        _ if client::shows_questions(client) => return Ok(()),
        InstallPermission::Ask => "every change to a file and every command is",
        InstallPermission::Workspace => "every command is",
        InstallPermission::Yes => return Ok(()),
    };
    output::print(&format!(
        "This program does not show the questions of MCP servers, so {refused} refused unless a rule in your helve.json \
         allows it. --permission workspace allows changes in the folder, --permission yes also commands.\n"
    ))
}

/// Writes the file. On removal, deletes a file that the install had created. Records what is needed to restore the
/// original.
fn write(
    path: &Path,
    before: Option<&str>,
    after: &str,
    install: &InstallArgs,
    name: &str,
) -> anyhow::Result<()> {
    let delete = install.remove && after.is_empty();
    if delete {
        file::remove(path)?;
    } else {
        file::write(path, after)?;
    }
    if install.remove {
        InstallRecord::delete(path, name)
    } else {
        InstallRecord::save(path, name, before, after)
    }
}

/// Returns `helve` if `PATH` leads to this program, otherwise its full path.
fn program() -> anyhow::Result<String> {
    let this_program = std::env::current_exe().context("cannot find the path of this program")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let in_path = std::env::split_paths(&path)
        .map(|folder| folder.join("helve"))
        .find_map(|path| file::resolve(&path));
    if in_path.is_some() && in_path == file::resolve(&this_program) {
        return Ok("helve".into());
    }
    let text = this_program.to_str().map(str::to_owned);
    text.with_context(|| format!("{} is not valid UTF-8", this_program.display()))
}

fn args(permission: InstallPermission) -> Vec<String> {
    let args: &[&str] = match permission {
        InstallPermission::Ask => &["mcp"],
        InstallPermission::Workspace => &["--allow", "edit", "mcp"],
        InstallPermission::Yes => &["--yes", "mcp"],
    };
    args.iter().map(ToString::to_string).collect()
}

fn print(entry: &HelveEntry, client: Option<InstallClient>) -> anyhow::Result<Exit> {
    let text = match client {
        Some(client) => client::fragment(client, entry),
        None => {
            let server = json!({"command": entry.program, "args": entry.args});
            let config: Value = json!({"mcpServers": {entry.name.as_str(): server}});
            serde_json::to_string_pretty(&config)? + "\n"
        }
    };
    output::print_bytes(text.as_bytes())?;
    Ok(Exit::Done)
}

fn print_diff(path: &Path, before: Option<&str>, after: &str) -> anyhow::Result<()> {
    output::print(&format!("{BOLD}{}{PLAIN}\n", path.display()))?;
    let shown: PathBuf = path.file_name().map(PathBuf::from).unwrap_or_default();
    let after = (!after.is_empty()).then_some(after.as_bytes());
    let text = helve::difference(&shown.display().to_string(), before.map(str::as_bytes), after);
    output::print_escaped(&text)
}

fn confirm() -> anyhow::Result<bool> {
    let mut err = anstream::stderr().lock();
    write!(err, "{BOLD}Write this?{PLAIN} {DIM}[y/N]{PLAIN} ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

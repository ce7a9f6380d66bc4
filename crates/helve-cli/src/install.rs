//! `helve install`: puts Helve into another program's configuration, and takes it out again exactly.

mod client;
mod file;
mod json;
mod toml;

use std::io::{BufRead, IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use crate::args::{Common, Install};
use crate::install::client::Target;
use crate::paint::{self, BOLD, DIM, PLAIN};
use crate::{End, paint::GREEN};

/// Programs whose configuration is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Client {
    ClaudeCode,
    Codex,
    Opencode,
}

/// What may be done without being asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Permission {
    /// What Helve's rules say: reading is free, changes are asked about
    Ask,
    /// Changes to files of the folder too
    Workspace,
    /// Everything that no rule denies
    Yes,
}

/// How Helve is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) program: String,
    pub(crate) args: Vec<String>,
}

pub(crate) fn run(common: &Common, wanted: &Install) -> anyhow::Result<End> {
    let entry =
        Entry { name: wanted.name.clone(), program: program()?, args: args(wanted.permission) };
    if wanted.print {
        return print(&entry, wanted.client);
    }
    let Some(client) = wanted.client else {
        bail!("which program? claude-code, codex or opencode; --print shows what any other needs");
    };
    let target = Target::find(client)?;
    let before = file::read(&target.path)?;
    let after = if wanted.remove {
        target.without(before.as_deref(), &entry.name)
    } else {
        target.with(before.as_deref(), &entry)
    };
    let after = after.with_context(|| target.path.display().to_string())?;
    let Some(mut after) = after else {
        let state = if wanted.remove { "is not there" } else { "is there already" };
        paint::out(&format!(
            "{}: {} {state}; nothing to do.\n",
            target.path.display(),
            entry.name
        ))?;
        return Ok(End::Done);
    };
    // What was there before the last install, if nobody changed anything since.
    let kept = file::Kept::of(&target.path, &entry.name)?;
    if wanted.remove
        && let Some(original) = kept.and_then(|kept| kept.before_if(before.as_deref()))
    {
        after = original;
    }
    show(&target.path, before.as_deref(), &after)?;
    if !common.yes && std::io::stdin().is_terminal() && !confirmed()? {
        paint::out("Nothing was written.\n")?;
        return Ok(End::Refused);
    }
    write(&target.path, before.as_deref(), &after, wanted, &entry.name)?;
    let word = if wanted.remove { "taken out of" } else { "put into" };
    paint::out(&format!("{GREEN}{}{PLAIN} {word} {}\n", entry.name, target.path.display()))?;
    Ok(End::Done)
}

/// Writes the file, or takes it away where there was none before; keeps what is needed to undo it.
fn write(
    path: &Path,
    before: Option<&str>,
    after: &str,
    wanted: &Install,
    name: &str,
) -> anyhow::Result<()> {
    let gone = wanted.remove && after.is_empty();
    if gone {
        file::remove(path)?;
    } else {
        file::write(path, after)?;
    }
    if wanted.remove {
        file::Kept::forget(path, name)
    } else {
        file::Kept::keep(path, name, before, after)
    }
}

/// `helve` where that is this program, else where it lies.
fn program() -> anyhow::Result<String> {
    let here = std::env::current_exe().context("where this program lies")?;
    let path = std::env::var_os("PATH").unwrap_or_default();
    let first = std::env::split_paths(&path)
        .map(|folder| folder.join("helve"))
        .find_map(|one| file::real(&one));
    if first.is_some() && first == file::real(&here) {
        return Ok("helve".into());
    }
    let text = here.to_str().map(str::to_owned);
    text.with_context(|| format!("{} is not text", here.display()))
}

fn args(permission: Permission) -> Vec<String> {
    let words: &[&str] = match permission {
        Permission::Ask => &["mcp"],
        Permission::Workspace => &["--allow", "edit", "mcp"],
        Permission::Yes => &["--yes", "mcp"],
    };
    words.iter().map(ToString::to_string).collect()
}

fn print(entry: &Entry, client: Option<Client>) -> anyhow::Result<End> {
    let text = match client {
        Some(client) => client::fragment(client, entry),
        None => {
            let server = json!({"command": entry.program, "args": entry.args});
            let whole: Value = json!({"mcpServers": {entry.name.as_str(): server}});
            serde_json::to_string_pretty(&whole)? + "\n"
        }
    };
    paint::bytes(text.as_bytes())?;
    Ok(End::Done)
}

fn show(path: &Path, before: Option<&str>, after: &str) -> anyhow::Result<()> {
    paint::out(&format!("{BOLD}{}{PLAIN}\n", path.display()))?;
    let shown: PathBuf = path.file_name().map(PathBuf::from).unwrap_or_default();
    let after = (!after.is_empty()).then_some(after.as_bytes());
    let text = helve::difference(&shown.display().to_string(), before.map(str::as_bytes), after);
    paint::foreign(&text)
}

fn confirmed() -> anyhow::Result<bool> {
    let mut err = anstream::stderr().lock();
    write!(err, "{BOLD}Write this?{PLAIN} {DIM}[y/N]{PLAIN} ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

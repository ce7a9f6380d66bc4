//! `helve install`: adds Helve to another program's configuration, and can restore the file exactly as it was.

mod client;
mod file;
mod json;
mod own_tools;
mod plan;
mod toml;

use std::io::{BufRead, IsTerminal, Write};

use anyhow::{Context, bail};
use clap::ValueEnum;
use serde_json::{Value, json};

use self::client::ConfigTarget;
use self::file::InstallRecord;
use self::plan::PlannedFile;
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
    let files = match install.remove {
        true => plan::remove(client, &entry.name)?,
        false => plan::install(client, &entry, install.replace)?,
    };
    if files.is_empty() {
        let path = ConfigTarget::find(client)?.path;
        let state = if install.remove { "is not configured" } else { "is already configured" };
        if common.json {
            output::print_bytes(result_json(&files).as_bytes())?;
        } else {
            output::print(&format!(
                "{}: {} {state}; nothing to do.\n",
                path.display(),
                entry.name
            ))?;
        }
        return Ok(Exit::Done);
    }
    if common.json {
        output::print_bytes(result_json(&files).as_bytes())?;
    } else {
        for file in &files {
            print_diff(file)?;
        }
        if !install.remove {
            warn_about_refusals(client, install.permission)?;
        }
    }
    if !common.yes && std::io::stdin().is_terminal() && !confirm()? {
        output::print("Nothing written.\n")?;
        return Ok(Exit::Refused);
    }
    for file in &files {
        write(file, &entry.name)?;
    }
    if !common.json {
        print_outcome(client, install, &entry.name, &files)?;
    }
    Ok(Exit::Done)
}

/// Says what was written and how to undo it.
fn print_outcome(
    client: InstallClient,
    install: &InstallArgs,
    name: &str,
    files: &[PlannedFile],
) -> anyhow::Result<()> {
    let outcome = if install.remove { "removed from" } else { "added to" };
    let paths: Vec<_> = files.iter().map(|file| file.path.display().to_string()).collect();
    output::print(&format!("{GREEN}{name}{PLAIN} {outcome} {}\n", paths.join(" and ")))?;
    if !install.replace {
        return Ok(());
    }
    let own_tools = own_tools::of(client, name)?.ok();
    let note = own_tools.and_then(|own_tools| own_tools.note).unwrap_or_default();
    let program = client.to_possible_value().map(|value| value.get_name().to_owned());
    let mut undo = format!("helve install {} --remove", program.unwrap_or_default());
    if name != "helve" {
        undo.push_str(&format!(" --name {name}"));
    }
    let text = format!(
        "The program's own file and shell tools are off, so that a model does not see two of each. {note}"
    );
    output::print(&format!("{}\nTo undo all of this: {undo}\n", text.trim_end()))
}

/// Returns the changes as JSON.
fn result_json(files: &[PlannedFile]) -> String {
    let change = |file: &PlannedFile| json!({"path": file.path, "diff": diff(file)});
    format!("{:#}\n", json!({"files": files.iter().map(change).collect::<Vec<_>>()}))
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
            "install has no use for {option}. Rules belong in your helve.json; --permission chooses what is allowed without asking"
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
         allows it. --permission workspace allows changes in the folder, --permission yes allows commands as well.\n"
    ))
}

/// Writes or deletes the file, and records what is needed to restore the original.
fn write(file: &PlannedFile, name: &str) -> anyhow::Result<()> {
    match &file.after {
        Some(text) => file::write(&file.path, text)?,
        None => file::remove(&file.path)?,
    }
    match &file.record {
        Some(record) => record.save(&file.path, name),
        None => InstallRecord::delete(&file.path, name),
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

fn print_diff(file: &PlannedFile) -> anyhow::Result<()> {
    output::print(&format!("{BOLD}{}{PLAIN}\n", file.path.display()))?;
    output::print(&output::colour_diff(&diff(file), ""))
}

fn diff(file: &PlannedFile) -> String {
    let name = file.path.file_name().unwrap_or_default().display().to_string();
    let [before, after] =
        [&file.before, &file.after].map(|text| text.as_deref().map(str::as_bytes));
    helve::difference(&name, before, after)
}

fn confirm() -> anyhow::Result<bool> {
    let mut err = anstream::stderr().lock();
    write!(err, "{BOLD}Write this?{PLAIN} {DIM}[y/N]{PLAIN} ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

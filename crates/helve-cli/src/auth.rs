//! `helve auth`: saves, lists and removes keys of model providers. No key is ever printed or taken from an argument.

use std::io::{IsTerminal, Read, Write};

use anyhow::{Context, bail};
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers, read};
use crossterm::terminal::{disable_raw_mode, enable_raw_mode};
use helve::{KeyOrigin, ProviderKeyInfo, Toolbox, visible};
use serde_json::{Value, json};

use crate::Exit;
use crate::args::{AuthCommand, GlobalArgs};
use crate::output::{self, BOLD, DIM, PLAIN};

/// Maximum number of bytes read as a key.
const MAX_KEY: u64 = 4_096;

pub(crate) async fn run(common: &GlobalArgs, command: &AuthCommand) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    let exit = match command {
        AuthCommand::Login { provider } => login(&toolbox, provider)?,
        AuthCommand::List => list(common, &toolbox)?,
        AuthCommand::Logout { provider } => logout(&toolbox, provider)?,
    };
    toolbox.close().await;
    Ok(exit)
}

fn login(toolbox: &Toolbox, provider: &str) -> anyhow::Result<Exit> {
    let known = toolbox.provider_keys();
    if !known.iter().any(|info| info.provider == provider) {
        let names: Vec<&str> = known.iter().map(|info| info.provider.as_str()).collect();
        bail!(
            "unknown provider \"{provider}\"; known: {}; add others to the configuration first",
            names.join(", ")
        );
    }
    let key = match std::io::stdin().is_terminal() {
        true => match prompt_for_key(provider)? {
            Some(key) => key,
            None => return Ok(Exit::Interrupted),
        },
        false => {
            let mut text = String::new();
            std::io::stdin()
                .take(MAX_KEY)
                .read_to_string(&mut text)
                .context("cannot read the key from standard input")?;
            text
        }
    };
    toolbox.save_key(provider, key.trim()).context("cannot save the key")?;
    output::note(&format!("Saved the key for {provider}."));
    Ok(Exit::Done)
}

/// Reads a key from the terminal without showing it. `None` if the person gave up.
fn prompt_for_key(provider: &str) -> anyhow::Result<Option<String>> {
    let mut err = std::io::stderr().lock();
    write!(err, "Key for {provider} (it is not shown): ").and_then(|()| err.flush())?;
    enable_raw_mode()?;
    let typed = read_hidden();
    disable_raw_mode()?;
    writeln!(err)?;
    typed
}

fn read_hidden() -> anyhow::Result<Option<String>> {
    let mut key = String::new();
    loop {
        let Event::Key(KeyEvent { code, modifiers, kind, .. }) = read()? else { continue };
        if kind == KeyEventKind::Release {
            continue;
        }
        let is_control = modifiers.contains(KeyModifiers::CONTROL);
        match code {
            KeyCode::Enter => return Ok(Some(key)),
            KeyCode::Esc => return Ok(None),
            KeyCode::Char('c' | 'd') if is_control => return Ok(None),
            KeyCode::Char('u') if is_control => key.clear(),
            KeyCode::Char('m' | 'j') if is_control => return Ok(Some(key)),
            KeyCode::Backspace => drop(key.pop()),
            KeyCode::Char(typed) if !is_control && key.len() < MAX_KEY as usize => key.push(typed),
            _ => {}
        }
    }
}

fn list(common: &GlobalArgs, toolbox: &Toolbox) -> anyhow::Result<Exit> {
    let providers = toolbox.provider_keys();
    if common.json {
        let provider = |info: &ProviderKeyInfo| {
            json!({
                "provider": info.provider,
                "key": info.origin.as_ref().map(describe),
                "variables": info.variables,
            })
        };
        let providers: Vec<Value> = providers.iter().map(provider).collect();
        output::print_json(&Value::from(providers))?;
        return Ok(Exit::Done);
    }
    for info in &providers {
        let name = visible::escape_line(&info.provider);
        let origin = match &info.origin {
            Some(origin) => describe(origin),
            None if info.variables.is_empty() => "no key".into(),
            None => format!("no key; set {}", info.variables.join(" or ")),
        };
        output::print(&format!("{BOLD}{name:<14}{PLAIN} {DIM}{origin}{PLAIN}\n"))?;
    }
    Ok(Exit::Done)
}

fn describe(origin: &KeyOrigin) -> String {
    match origin {
        KeyOrigin::Config => "key from the configuration".into(),
        KeyOrigin::Variable(name) => format!("key from {name}"),
        KeyOrigin::Saved => "key saved by `helve auth login`".into(),
        KeyOrigin::Opencode => "key from opencode".into(),
    }
}

fn logout(toolbox: &Toolbox, provider: &str) -> anyhow::Result<Exit> {
    if toolbox.remove_key(provider).context("cannot remove the key")? {
        output::note(&format!("Removed the key for {provider}."));
        return Ok(Exit::Done);
    }
    output::error(&format!("No key for {provider} is saved; `helve auth list` lists the keys."));
    Ok(Exit::Failed)
}

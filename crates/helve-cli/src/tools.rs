//! `helve tools`: lists the available tools, and checks files with custom tools.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use helve::{SchemaFlavour, adapt_schema, visible};
use serde_json::{Value, json};

use crate::Exit;
use crate::args::{GlobalArgs, Provider};
use crate::output::{self, BOLD, PLAIN};

pub(crate) async fn run(common: &GlobalArgs, provider: Option<Provider>) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    toolbox.start_servers().await;
    let tools = toolbox.tools();
    let origins: HashMap<String, PathBuf> =
        toolbox.scripts().origins().into_iter().map(|it| (it.tool, it.file)).collect();
    if common.json {
        let flavour = provider.map_or(SchemaFlavour::Plain, SchemaFlavour::from);
        let all: Vec<Value> = tools
            .specs()
            .map(|spec| {
                json!({
                    "name": spec.name,
                    "description": spec.about,
                    "inputSchema": adapt_schema(&spec.input, flavour),
                    "readOnly": spec.properties.read_only,
                    "destructive": spec.properties.destructive,
                    "file": origins.get(&spec.name),
                })
            })
            .collect();
        output::print_json(&Value::from(all))?;
    } else {
        let width = tools.names().iter().map(|name| name.len()).max().unwrap_or_default();
        for spec in tools.specs() {
            let about = spec.about.lines().next().unwrap_or_default();
            let file = origins.get(&spec.name).map(|file| {
                let file = file.strip_prefix(toolbox.root()).unwrap_or(file);
                format!(" [{}]", visible::escape_line(&file.display().to_string()))
            });
            let file = file.unwrap_or_default();
            output::print(&format!("{BOLD}{:width$}{PLAIN}  {about}{file}\n", spec.name))?;
        }
    }
    toolbox.close().await;
    Ok(Exit::Done)
}

/// Shows the whole description of one tool, and its parameters.
pub(crate) async fn describe(common: &GlobalArgs, name: &str) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    toolbox.start_servers().await;
    let tools = toolbox.tools();
    let found = tools.specs().find(|spec| spec.name == name);
    let exit = match found {
        Some(spec) if common.json => {
            let schema = adapt_schema(&spec.input, SchemaFlavour::Plain);
            output::print_json(&json!({
                "name": spec.name,
                "description": spec.about,
                "inputSchema": schema,
            }))?;
            Exit::Done
        }
        Some(spec) => {
            let schema = adapt_schema(&spec.input, SchemaFlavour::Plain);
            output::print(&format!("{BOLD}{}{PLAIN}\n", visible::escape_line(&spec.name)))?;
            output::print_escaped(&format!("{}\n{}", spec.about.trim_end(), parameters(&schema)))?;
            Exit::Done
        }
        None => {
            let names = tools.names().join(", ");
            output::error(&format!("There is no tool {name}. Available tools: {names}."));
            Exit::BadUsage
        }
    };
    toolbox.close().await;
    Ok(exit)
}

/// Lists the parameters of a schema, one per line: name, type, description.
fn parameters(schema: &Value) -> String {
    let Some(Value::Object(members)) = schema.get("properties") else { return String::new() };
    let required = schema.get("required").and_then(Value::as_array);
    let mut text = String::from("\nParameters:\n");
    for (name, member) in members {
        let is_required = required.is_some_and(|names| names.iter().any(|it| it == name));
        let kind = member.get("type").and_then(Value::as_str).unwrap_or("any");
        let kind = if is_required { kind.into() } else { format!("{kind}, optional") };
        let about = member.get("description").and_then(Value::as_str).unwrap_or_default();
        text.push_str(&format!("  {name} ({kind})  {about}\n"));
    }
    text
}

/// Loads one file and shows its tools and problems.
pub(crate) async fn check(common: &GlobalArgs, file: &Path) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    let file = std::env::current_dir()?.join(file);
    let checked = toolbox.scripts().check(&file).await;
    toolbox.close().await;
    let problems: Vec<String> = checked.problems.iter().map(ToString::to_string).collect();
    if common.json {
        let tools = checked.tools.iter().map(|(name, description, schema)| {
            json!({"name": name, "description": description, "inputSchema": schema})
        });
        let tools: Vec<Value> = tools.collect();
        output::print_json(&json!({"tools": tools, "hooks": checked.hooks, "problems": problems}))?;
    } else {
        for (name, description, schema) in &checked.tools {
            let about = visible::escape(description);
            let schema = serde_json::to_string_pretty(schema)?;
            output::print(&format!("{BOLD}{name}{PLAIN}  {about}\n{schema}\n"))?;
        }
        if !checked.hooks.is_empty() {
            output::print(&format!("hooks: {}\n", checked.hooks.join(", ")))?;
        }
        problems.iter().for_each(|problem| output::error(problem));
    }
    Ok(if problems.is_empty() { Exit::Done } else { Exit::Failed })
}

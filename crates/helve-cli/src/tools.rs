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
                    "readOnly": spec.traits.read_only,
                    "destructive": spec.traits.destructive,
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

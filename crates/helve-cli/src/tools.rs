//! `helve tools`: lists the available tools.

use helve::{SchemaFlavour, adapt_schema};
use serde_json::{Value, json};

use crate::Exit;
use crate::args::{GlobalArgs, Provider};
use crate::output::{self, BOLD, PLAIN};

pub(crate) async fn run(common: &GlobalArgs, provider: Option<Provider>) -> anyhow::Result<Exit> {
    let toolbox = common.toolbox().await?;
    toolbox.start_servers().await;
    let tools = toolbox.tools();
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
                })
            })
            .collect();
        output::print_json(&Value::from(all))?;
    } else {
        let width = tools.names().iter().map(|name| name.len()).max().unwrap_or_default();
        for spec in tools.specs() {
            let about = spec.about.lines().next().unwrap_or_default();
            output::print(&format!("{BOLD}{:width$}{PLAIN}  {about}\n", spec.name))?;
        }
    }
    toolbox.close().await;
    Ok(Exit::Done)
}

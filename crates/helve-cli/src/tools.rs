//! `helve tools`: what is on offer.

use helve::{Flavour, fit};
use serde_json::{Value, json};

use crate::End;
use crate::args::{Common, Provider};
use crate::paint::{self, BOLD, PLAIN};

pub(crate) async fn run(common: &Common, provider: Option<Provider>) -> anyhow::Result<End> {
    let toolbox = common.toolbox().await?;
    toolbox.start_servers().await;
    let tools = toolbox.tools();
    if common.json {
        let flavour = provider.map_or(Flavour::Plain, Flavour::from);
        let all: Vec<Value> = tools
            .specs()
            .map(|spec| {
                json!({
                    "name": spec.name,
                    "description": spec.about,
                    "inputSchema": fit(&spec.input, flavour),
                    "readOnly": spec.traits.read_only,
                    "destructive": spec.traits.destructive,
                })
            })
            .collect();
        paint::json(&Value::from(all))?;
    } else {
        let width = tools.names().iter().map(|name| name.len()).max().unwrap_or_default();
        for spec in tools.specs() {
            let about = spec.about.lines().next().unwrap_or_default();
            paint::out(&format!("{BOLD}{:width$}{PLAIN}  {about}\n", spec.name))?;
        }
    }
    toolbox.close().await;
    Ok(End::Done)
}

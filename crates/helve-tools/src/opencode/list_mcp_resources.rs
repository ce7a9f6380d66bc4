//! `list_mcp_resources`: lists the resources of MCP servers.

use std::sync::Arc;

use helve_core::server::ResourceKind;
use helve_core::{Resources, Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::ops::resources::{self, ListedResource};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The server to list; all servers if omitted
    pub(super) server: Option<String>,
}

pub(super) struct ListMcpResources {
    pub(super) servers: Arc<dyn Resources>,
}

impl Tool for ListMcpResources {
    type Args = Args;
    const NAME: &'static str = "list_mcp_resources";
    const ABOUT: &'static str = include_str!("list_mcp_resources.txt");
    const GROUP: &'static str = "read";
    const PROPERTIES: ToolProperties =
        ToolProperties { open_world: true, ..ToolProperties::READ_ONLY };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (servers, what) = (&*self.servers, ResourceKind::Resources);
        let items = resources::list(ctx, servers, Self::NAME, what, args.server).await?;
        Ok(json_output(Self::NAME, "resources", items))
    }
}

/// Returns the items as JSON under `key`, each with the name of its server first.
pub(super) fn json_output(tool: &str, key: &str, items: Vec<ListedResource>) -> ToolOutput {
    let items: Vec<Value> = items.into_iter().map(with_server).collect();
    let count = items.len();
    let text = serde_json::to_string_pretty(&json!({key: items})).unwrap_or_default();
    ToolOutput::text(tool, text).with_metadata("count", count)
}

fn with_server(item: ListedResource) -> Value {
    let mut object = Map::from_iter([("server".to_owned(), Value::from(item.server))]);
    object.extend(item.fields);
    Value::Object(object)
}

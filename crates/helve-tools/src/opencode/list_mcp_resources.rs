//! `list_mcp_resources`: what the MCP servers hold that can be read.

use std::sync::Arc;

use helve_core::permission::Let;
use helve_core::server::Listing;
use helve_core::{Ask, Part, Pattern, Resources, Tool, ToolContext, ToolError, ToolOutput, Traits};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The server whose resources to list; all servers if left out
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
    const TRAITS: Traits = Traits { open_world: true, ..Traits::READ_ONLY };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let items = gather(Self::NAME, &*self.servers, args, Listing::Resources, ctx).await?;
        Ok(told(Self::NAME, "resources", items))
    }
}

/// What the servers list, each entry with the name of its server.
pub(super) async fn gather(
    tool: &'static str,
    servers: &dyn Resources,
    args: Args,
    what: Listing,
    ctx: &ToolContext,
) -> Result<Vec<Value>, ToolError> {
    let names = match args.server.filter(|name| !name.trim().is_empty()) {
        Some(name) => vec![name],
        None => servers.holders().await,
    };
    let mut ask = Ask::default();
    for name in &names {
        ask = ask.and(Let::Use(tool.into()), part(name, "*", tool));
    }
    ctx.ask(ask).await?;
    let (mut items, mut troubles) = (Vec::new(), Vec::new());
    for name in &names {
        match servers.list(name, what).await {
            Ok(listed) => items.extend(listed.into_iter().map(|item| (name.clone(), item))),
            Err(trouble) => troubles.push(ctx.words().server(name, &trouble)),
        }
    }
    // One server that fails does not hide what the others hold.
    match troubles.pop() {
        Some(trouble) if items.is_empty() => return Err(trouble),
        Some(_) | None => {}
    }
    items.sort_by_cached_key(|(server, item)| {
        let text = |key: &str| item.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        (server.clone(), text("name"), text("uri") + &text("uriTemplate"))
    });
    Ok(items.into_iter().map(|(server, item)| named(server, item)).collect())
}

/// One server's things as something to be judged.
pub(super) fn part(server: &str, uri: &str, tool: &'static str) -> Part {
    let all = Pattern::Wild(format!("mcp:{server}:*"));
    Part::new("read", format!("mcp:{server}:{uri}")).always(all).by(tool)
}

fn named(server: String, item: Map<String, Value>) -> Value {
    let mut whole = Map::from_iter([("server".to_owned(), Value::from(server))]);
    whole.extend(item);
    Value::Object(whole)
}

pub(super) fn told(tool: &str, key: &str, items: Vec<Value>) -> ToolOutput {
    let count = items.len();
    let text = serde_json::to_string_pretty(&json!({key: items})).unwrap_or_default();
    ToolOutput::text(tool, text).with("count", count)
}

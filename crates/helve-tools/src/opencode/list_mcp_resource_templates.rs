//! `list_mcp_resource_templates`: lists the resource templates of MCP servers.

use std::sync::Arc;

use helve_core::server::ResourceKind;
use helve_core::{Resources, Tool, ToolContext, ToolError, ToolOutput, ToolProperties};

use super::list_mcp_resources::{Args, json_output};
use crate::ops::resources;

pub(super) struct ListMcpResourceTemplates {
    pub(super) servers: Arc<dyn Resources>,
}

impl Tool for ListMcpResourceTemplates {
    type Args = Args;
    const NAME: &'static str = "list_mcp_resource_templates";
    const ABOUT: &'static str = include_str!("list_mcp_resource_templates.txt");
    const GROUP: &'static str = "read";
    const PROPERTIES: ToolProperties =
        ToolProperties { open_world: true, ..ToolProperties::READ_ONLY };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (servers, what) = (&*self.servers, ResourceKind::Templates);
        let items = resources::list(ctx, servers, Self::NAME, what, args.server).await?;
        Ok(json_output(Self::NAME, "resourceTemplates", items))
    }
}

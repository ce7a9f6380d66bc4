//! `read_mcp_resource`: reads one resource of an MCP server.

use std::sync::Arc;

use helve_core::{
    Content, Media, Resources, Tool, ToolContext, ToolError, ToolOutput, ToolProperties,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ops::resources::{self, ResourceContent, ResourcePiece};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The server that offers the resource
    server: String,
    /// The uri of the resource, from list_mcp_resources or a filled-in template
    uri: String,
}

pub(super) struct ReadMcpResource {
    pub(super) servers: Arc<dyn Resources>,
    pub(super) media: Arc<dyn Media>,
}

impl Tool for ReadMcpResource {
    type Args = Args;
    const NAME: &'static str = "read_mcp_resource";
    const ABOUT: &'static str = include_str!("read_mcp_resource.txt");
    const GROUP: &'static str = "read";
    const PROPERTIES: ToolProperties =
        ToolProperties { open_world: true, ..ToolProperties::READ_ONLY };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let (servers, media, from) = (&*self.servers, &*self.media, (&*args.server, &*args.uri));
        let pieces = resources::read(ctx, servers, media, Self::NAME, from).await?;
        Ok(answer(args, pieces))
    }
}

fn answer(args: Args, pieces: Vec<ResourcePiece>) -> ToolOutput {
    let Args { server, uri } = args;
    let (mut texts, mut attached) = (Vec::new(), Vec::new());
    for ResourcePiece { uri, mime, content } in pieces {
        let mime = mime.as_deref().unwrap_or("unknown");
        let text = match content {
            ResourceContent::Text(text) => text,
            ResourceContent::Media { mime, data } => {
                attached.push(Content::Media { mime, data });
                "[attached]".into()
            }
            ResourceContent::Unshowable { size, reason: None } => {
                format!("[{size} bytes that cannot be shown]")
            }
            ResourceContent::Unshowable { size, reason: Some(why) } => {
                format!("[{size} bytes that cannot be shown: {why}]")
            }
        };
        texts.push(format!("Resource: {uri}\nMIME: {mime}\n{text}"));
    }
    if texts.is_empty() {
        texts.push(format!("The server {server} has nothing at {uri}."));
    }
    let mut output = ToolOutput::text(uri, texts.join("\n\n")).with_metadata("server", server);
    output.content.extend(attached);
    output
}

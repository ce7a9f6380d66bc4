//! `read_mcp_resource`: reads one thing that an MCP server holds.

use std::sync::Arc;

use helve_core::media::{Format, Seen};
use helve_core::permission::Let;
use helve_core::server::{Body, Held};
use helve_core::{
    Ask, Content, Media, Resources, Tool, ToolContext, ToolError, ToolOutput, Traits,
};
use schemars::JsonSchema;
use serde::Deserialize;

use super::list_mcp_resources::part;

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The server that holds the resource
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
    const TRAITS: Traits = Traits { open_world: true, ..Traits::READ_ONLY };

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let Args { server, uri } = args;
        ctx.ask(Ask::default().and(Let::Use(Self::NAME.into()), part(&server, &uri, Self::NAME)))
            .await?;
        let held = self.servers.read(&server, &uri).await;
        let held = held.map_err(|trouble| ctx.words().server(&server, &trouble))?;
        let (mut texts, mut attached) = (Vec::new(), Vec::new());
        for piece in held {
            let mime = piece.mime.clone().unwrap_or_else(|| "unknown".into());
            let head = format!("Resource: {}\nMIME: {mime}", piece.uri);
            match self.shown(piece).await {
                Shown::Text(text) => texts.push(format!("{head}\n{text}")),
                Shown::Attached(content) => {
                    texts.push(format!("{head}\n[attached]"));
                    attached.push(content);
                }
            }
        }
        if texts.is_empty() {
            texts.push(format!("The server {server} has nothing at {uri}."));
        }
        let mut output = ToolOutput::text(uri, texts.join("\n\n")).with("server", server);
        output.content.extend(attached);
        Ok(output)
    }
}

enum Shown {
    Text(String),
    Attached(Content),
}

impl ReadMcpResource {
    async fn shown(&self, piece: Held) -> Shown {
        let bytes = match piece.body {
            Body::Text(text) => return Shown::Text(text),
            Body::Bytes(bytes) => bytes,
        };
        let size = bytes.len();
        let Some(format) = Format::of_content(&bytes) else {
            return Shown::Text(format!("[{size} bytes that cannot be shown]"));
        };
        match self.media.look(bytes.clone(), format).await {
            Ok(Seen::Picture(picture)) => {
                Shown::Attached(Content::Media { mime: picture.mime.into(), data: picture.bytes })
            }
            Ok(Seen::Document(_)) => {
                Shown::Attached(Content::Media { mime: format.mime().into(), data: bytes })
            }
            Err(why) => Shown::Text(format!("[{size} bytes that cannot be shown: {why}]")),
        }
    }
}

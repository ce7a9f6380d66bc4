//! Lists and reads what MCP servers offer besides tools.

use bytes::Bytes;
use helve_core::Act;
use helve_core::media::{MediaContent, MediaError, MediaFormat};
use helve_core::server::{ResourceBody, ResourceItem, ResourceKind};
use helve_core::{Ask, Media, Part, Pattern, Resources, ToolContext, ToolError};
use serde_json::{Map, Value};

/// One listed resource or template, as its server describes it.
pub(crate) struct ListedResource {
    pub(crate) server: String,
    /// The fields that the server sent, like `name` and `uri`.
    pub(crate) fields: Map<String, Value>,
}

/// One piece of a resource.
pub(crate) struct ResourcePiece {
    pub(crate) uri: String,
    pub(crate) mime: Option<String>,
    pub(crate) content: ResourceContent,
}

pub(crate) enum ResourceContent {
    Text(String),
    Media {
        mime: String,
        data: Bytes,
    },
    /// Bytes of an unknown format, or that could not be decoded for the given reason.
    Unshowable {
        size: usize,
        reason: Option<MediaError>,
    },
}

/// Lists what one server offers, or all servers if `server` is `None` or blank. `key` is the tool's own permission key.
pub(crate) async fn list(
    ctx: &ToolContext,
    servers: &dyn Resources,
    key: &'static str,
    what: ResourceKind,
    server: Option<String>,
) -> Result<Vec<ListedResource>, ToolError> {
    let names = match server.filter(|name| !name.trim().is_empty()) {
        Some(name) => vec![name],
        None => servers.server_names().await,
    };
    let mut ask = Ask::default();
    for name in &names {
        ask = ask.add(Act::UseTool(key.into()), part(name, "*", key));
    }
    ctx.ask(ask).await?;
    let (mut items, mut errors) = (Vec::new(), Vec::new());
    for name in &names {
        match servers.list(name, what).await {
            Ok(listed) => items.extend(
                listed.into_iter().map(|fields| ListedResource { server: name.clone(), fields }),
            ),
            Err(error) => errors.push(ctx.words().server_error(name, &error)),
        }
    }
    // One server that fails does not hide what the others offer.
    match errors.pop() {
        Some(error) if items.is_empty() => return Err(error),
        Some(_) | None => {}
    }
    items.sort_by_cached_key(|item| {
        let text =
            |key: &str| item.fields.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        (item.server.clone(), text("name"), text("uri") + &text("uriTemplate"))
    });
    Ok(items)
}

/// Reads one resource. `key` is the tool's own permission key.
pub(crate) async fn read(
    ctx: &ToolContext,
    servers: &dyn Resources,
    media: &dyn Media,
    key: &'static str,
    (server, uri): (&str, &str),
) -> Result<Vec<ResourcePiece>, ToolError> {
    ctx.ask(Ask::default().add(Act::UseTool(key.into()), part(server, uri, key))).await?;
    let read = servers.read(server, uri).await;
    let items = read.map_err(|error| ctx.words().server_error(server, &error))?;
    let mut pieces = Vec::new();
    for ResourceItem { uri, mime, body } in items {
        let content = match body {
            ResourceBody::Text(text) => ResourceContent::Text(text),
            ResourceBody::Bytes(bytes) => decoded(media, bytes).await,
        };
        pieces.push(ResourcePiece { uri, mime, content });
    }
    Ok(pieces)
}

async fn decoded(media: &dyn Media, bytes: Bytes) -> ResourceContent {
    let size = bytes.len();
    let Some(format) = MediaFormat::of_content(&bytes) else {
        return ResourceContent::Unshowable { size, reason: None };
    };
    match media.decode(bytes.clone(), format).await {
        Ok(MediaContent::Picture(picture)) => {
            ResourceContent::Media { mime: picture.mime.into(), data: picture.bytes }
        }
        Ok(MediaContent::Document(_)) => {
            ResourceContent::Media { mime: format.mime().into(), data: bytes }
        }
        Err(reason) => ResourceContent::Unshowable { size, reason: Some(reason) },
    }
}

/// The permission that reading from a server needs.
fn part(server: &str, uri: &str, key: &'static str) -> Part {
    let all = Pattern::Wild(format!("mcp:{server}:*"));
    Part::new("read", format!("mcp:{server}:{uri}")).remember_as(all).for_tool(key)
}

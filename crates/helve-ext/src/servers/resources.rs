//! Access to the resources of servers.

use std::sync::Weak;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use helve_core::server::{ResourceBody, ResourceItem, ResourceKind, ServerStep};
use helve_core::{BoxFuture, Resources, ServerError};
use rmcp::model::{PaginatedRequestParams, ReadResourceRequestParams, ResourceContents};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Inner;
use super::live_server::with_timeout;

/// Maximum number of pages read per list.
const MAX_PAGES: usize = 100;
/// Maximum number of entries returned.
const MAX_ENTRIES: usize = 2_000;

/// Accesses the servers without keeping them alive.
pub(super) struct ResourcesHandle(pub(super) Weak<Inner>);

impl Resources for ResourcesHandle {
    fn server_names(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            let Some(inner) = self.0.upgrade() else { return Vec::new() };
            for managed in &inner.servers {
                managed.wait_until_started().await;
            }
            inner.resource_servers()
        })
    }

    fn list<'a>(
        &'a self,
        server: &'a str,
        what: ResourceKind,
    ) -> BoxFuture<'a, Result<Vec<Map<String, Value>>, ServerError>> {
        Box::pin(async move {
            let inner = self.inner()?;
            let (managed, live) = inner.resource_server(server).await?;
            let (mut items, mut cursor) = (Vec::new(), None);
            for _ in 0..MAX_PAGES {
                let page = Some(PaginatedRequestParams::default().with_cursor(cursor));
                cursor = match what {
                    ResourceKind::Resources => {
                        let request = live.peer.list_resources(page);
                        let page = with_timeout(&managed, ServerStep::Resource, request).await?;
                        items.extend(page.resources.iter().filter_map(to_map));
                        page.next_cursor
                    }
                    ResourceKind::Templates => {
                        let request = live.peer.list_resource_templates(page);
                        let page = with_timeout(&managed, ServerStep::Resource, request).await?;
                        items.extend(page.resource_templates.iter().filter_map(to_map));
                        page.next_cursor
                    }
                };
                if cursor.is_none() || items.len() >= MAX_ENTRIES {
                    break;
                }
            }
            items.truncate(MAX_ENTRIES);
            Ok(items)
        })
    }

    fn read<'a>(
        &'a self,
        server: &'a str,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<Vec<ResourceItem>, ServerError>> {
        Box::pin(async move {
            let inner = self.inner()?;
            let (managed, live) = inner.resource_server(server).await?;
            let request = live.peer.read_resource(ReadResourceRequestParams::new(uri));
            let read = with_timeout(&managed, ServerStep::Resource, request).await?;
            Ok(read.contents.into_iter().filter_map(to_resource).collect())
        })
    }
}

impl ResourcesHandle {
    fn inner(&self) -> Result<std::sync::Arc<Inner>, ServerError> {
        self.0.upgrade().ok_or(ServerError::Ended { why: "Helve is shutting down".into() })
    }
}

fn to_map(item: &impl Serialize) -> Option<Map<String, Value>> {
    match serde_json::to_value(item) {
        Ok(Value::Object(members)) => Some(members),
        Ok(_) | Err(_) => None,
    }
}

fn to_resource(contents: ResourceContents) -> Option<ResourceItem> {
    Some(match contents {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            ResourceItem { uri, mime: mime_type, body: ResourceBody::Text(text) }
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let bytes = STANDARD.decode(&blob).unwrap_or_default();
            ResourceItem { uri, mime: mime_type, body: ResourceBody::Bytes(bytes.into()) }
        }
        _ => return None,
    })
}

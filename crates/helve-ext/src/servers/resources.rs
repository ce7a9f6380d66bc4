//! What servers hold besides tools.

use std::sync::Weak;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use helve_core::server::{Body, Held, Listing, Step};
use helve_core::{BoxFuture, Resources, ServerTrouble};
use rmcp::model::{PaginatedRequestParams, ReadResourceRequestParams, ResourceContents};
use serde::Serialize;
use serde_json::{Map, Value};

use super::Inner;
use super::live::within;

/// Pages of a list that are read, and entries that are kept.
const MOST_PAGES: usize = 100;
const MOST_ENTRIES: usize = 2_000;

/// A handle that does not keep the servers alive.
pub(super) struct Handle(pub(super) Weak<Inner>);

impl Resources for Handle {
    fn holders(&self) -> BoxFuture<'_, Vec<String>> {
        Box::pin(async move {
            let Some(inner) = self.0.upgrade() else { return Vec::new() };
            for link in &inner.links {
                link.settled().await;
            }
            inner.holders()
        })
    }

    fn list<'a>(
        &'a self,
        server: &'a str,
        what: Listing,
    ) -> BoxFuture<'a, Result<Vec<Map<String, Value>>, ServerTrouble>> {
        Box::pin(async move {
            let inner = self.inner()?;
            let (link, live) = inner.holder(server).await?;
            let (mut items, mut cursor) = (Vec::new(), None);
            for _ in 0..MOST_PAGES {
                let page = Some(PaginatedRequestParams::default().with_cursor(cursor));
                cursor = match what {
                    Listing::Resources => {
                        let asking = live.peer.list_resources(page);
                        let page = within(&link, Step::Resource, asking).await?;
                        items.extend(page.resources.iter().filter_map(entry));
                        page.next_cursor
                    }
                    Listing::Templates => {
                        let asking = live.peer.list_resource_templates(page);
                        let page = within(&link, Step::Resource, asking).await?;
                        items.extend(page.resource_templates.iter().filter_map(entry));
                        page.next_cursor
                    }
                };
                if cursor.is_none() || items.len() >= MOST_ENTRIES {
                    break;
                }
            }
            items.truncate(MOST_ENTRIES);
            Ok(items)
        })
    }

    fn read<'a>(
        &'a self,
        server: &'a str,
        uri: &'a str,
    ) -> BoxFuture<'a, Result<Vec<Held>, ServerTrouble>> {
        Box::pin(async move {
            let inner = self.inner()?;
            let (link, live) = inner.holder(server).await?;
            let asking = live.peer.read_resource(ReadResourceRequestParams::new(uri));
            let read = within(&link, Step::Resource, asking).await?;
            Ok(read.contents.into_iter().filter_map(held).collect())
        })
    }
}

impl Handle {
    fn inner(&self) -> Result<std::sync::Arc<Inner>, ServerTrouble> {
        self.0.upgrade().ok_or(ServerTrouble::Ended { why: "Helve is ending".into() })
    }
}

fn entry(item: &impl Serialize) -> Option<Map<String, Value>> {
    match serde_json::to_value(item) {
        Ok(Value::Object(members)) => Some(members),
        Ok(_) | Err(_) => None,
    }
}

fn held(contents: ResourceContents) -> Option<Held> {
    Some(match contents {
        ResourceContents::TextResourceContents { uri, mime_type, text, .. } => {
            Held { uri, mime: mime_type, body: Body::Text(text) }
        }
        ResourceContents::BlobResourceContents { uri, mime_type, blob, .. } => {
            let bytes = STANDARD.decode(&blob).unwrap_or_default();
            Held { uri, mime: mime_type, body: Body::Bytes(bytes.into()) }
        }
        _ => return None,
    })
}

//! What a server's tool gave back, as the output of one of ours.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use helve_core::media::{Format, Seen};
use helve_core::{Content, ErrorKind, Media, ToolError, ToolOutput};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

/// The largest attachment, decoded.
const MOST_BYTES: usize = 10 << 20;
/// The most attachments of one result.
const MOST_ATTACHED: usize = 20;
/// The largest structured content that is kept, as JSON.
const MOST_STRUCTURED: usize = 256 << 10;

/// Text joined, pictures checked, sound attached, resources linked, structured content kept.
pub(super) async fn output(
    server: &str,
    tool: &str,
    result: CallToolResult,
    media: &dyn Media,
) -> Result<ToolOutput, ToolError> {
    let failed = result.is_error == Some(true);
    let mut pile = Pile { texts: Vec::new(), attached: Vec::new(), media };
    for block in result.content {
        pile.add(block).await;
    }
    let Pile { mut texts, attached, .. } = pile;
    let structured = result.structured_content;
    if texts.is_empty()
        && attached.is_empty()
        && let Some(structured) = &structured
    {
        texts.push(serde_json::to_string_pretty(structured).unwrap_or_default());
    }
    let text = texts.join("\n\n");
    if failed {
        let text = if text.trim().is_empty() {
            format!("The tool {tool} of the MCP server \"{server}\" failed without a word.")
        } else {
            bounded(text)
        };
        return Err(ToolError::new(ErrorKind::Failed, text));
    }
    let mut output = ToolOutput::text(format!("{server}: {tool}"), text)
        .with("server", server)
        .with("tool", tool)
        // Written by others: material, never instructions.
        .with("untrusted", true);
    match structured {
        Some(value) if value.to_string().len() <= MOST_STRUCTURED => {
            output.metadata.insert("structuredContent".into(), value);
        }
        Some(_) => {
            output.metadata.insert("structuredContentOmitted".into(), Value::Bool(true));
        }
        None => {}
    }
    output.content.extend(attached);
    Ok(output)
}

/// Errors are not held to the session's limits by the engine.
fn bounded(text: String) -> String {
    const MOST: usize = 8_000;
    match text.char_indices().nth(MOST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}

struct Pile<'a> {
    texts: Vec<String>,
    attached: Vec<Content>,
    media: &'a dyn Media,
}

impl Pile<'_> {
    async fn add(&mut self, block: ContentBlock) {
        match block {
            ContentBlock::Text(text) => self.texts.push(text.text),
            ContentBlock::Image(image) => self.bytes("image", &image.mime_type, &image.data).await,
            ContentBlock::Audio(audio) => self.bytes("audio", &audio.mime_type, &audio.data).await,
            ContentBlock::ResourceLink(link) => {
                let (uri, name) = (link.uri.clone(), link.name.clone());
                self.texts.push(format!("[resource {name}: {uri}]"));
                self.attach(Content::Link { uri, name });
            }
            ContentBlock::Resource(embedded) => match embedded.resource {
                ResourceContents::TextResourceContents { uri, text, .. } => {
                    self.texts.push(format!("Resource: {uri}\n{text}"));
                }
                ResourceContents::BlobResourceContents { mime_type, blob, .. } => {
                    let mime = mime_type.unwrap_or_default();
                    self.bytes("resource", &mime, &blob).await;
                }
                _ => self.texts.push("[a resource of a kind that is not known here]".into()),
            },
            _ => self.texts.push("[content of a kind that is not known here]".into()),
        }
    }

    async fn bytes(&mut self, what: &str, mime: &str, data: &str) {
        let mime: String = mime.chars().take(100).collect();
        let omit = |why: &str| format!("[{what} {mime} left out: {why}]");
        if data.len() / 4 * 3 > MOST_BYTES {
            return self.texts.push(omit("it is too large"));
        }
        let Ok(bytes) = STANDARD.decode(data) else {
            return self.texts.push(omit("it is not base64"));
        };
        let bytes = Bytes::from(bytes);
        if let Some(format) = Format::of_content(&bytes) {
            match self.media.look(bytes.clone(), format).await {
                Ok(Seen::Picture(picture)) => {
                    self.attach(Content::Media { mime: picture.mime.into(), data: picture.bytes })
                }
                Ok(Seen::Document(_)) => {
                    self.attach(Content::Media { mime: format.mime().into(), data: bytes });
                }
                Err(why) => self.texts.push(omit(&why.to_string())),
            }
        } else if what == "audio" && mime.starts_with("audio/") {
            self.attach(Content::Media { mime, data: bytes });
        } else {
            self.texts.push(omit("it is not a picture or a document"));
        }
    }

    fn attach(&mut self, content: Content) {
        match self.attached.len() {
            count if count < MOST_ATTACHED => self.attached.push(content),
            MOST_ATTACHED => self.texts.push("[further attachments left out]".into()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use helve_core::NoMedia;
    use serde_json::json;

    use super::*;

    async fn check(result: Value, expected: Expect) {
        let result = serde_json::from_value(result).unwrap();
        let made = output("files", "get", result, &NoMedia).await;
        expected.assert_eq(&match made {
            Ok(output) => {
                let attached = output.content.iter().filter_map(|content| match content {
                    Content::Text(_) => None,
                    Content::Media { mime, data } => Some(format!("\n+ {mime} {}", data.len())),
                    Content::Link { uri, name } => Some(format!("\n+ {name} {uri}")),
                });
                let attached: String = attached.collect();
                let structured = output.metadata.get("structuredContent");
                let structured = structured.map(|value| format!("\n= {value}")).unwrap_or_default();
                format!("{}{attached}{structured}", output.joined())
            }
            Err(error) => format!("! {}", error.message),
        });
    }

    #[tokio::test]
    async fn every_kind_of_content() {
        check(
            json!({"content": [
                {"type": "text", "text": "one"},
                {"type": "text", "text": "two"},
                {"type": "audio", "mimeType": "audio/wav", "data": "UklGRg=="},
                {"type": "image", "mimeType": "image/png", "data": "bm8="},
                {"type": "image", "mimeType": "image/png", "data": "!"},
                {"type": "resource_link", "uri": "db://1", "name": "row"},
                {"type": "resource", "resource": {"uri": "db://2", "text": "inside"}},
            ], "structuredContent": {"a": 1}}),
            expect![[r#"
                one

                two

                [image image/png left out: it is not a picture or a document]

                [image image/png left out: it is not base64]

                [resource row: db://1]

                Resource: db://2
                inside
                + audio/wav 4
                + row db://1
                = {"a":1}"#]],
        )
        .await;
    }

    #[tokio::test]
    async fn structured_content_stands_in_for_text() {
        check(
            json!({"content": [], "structuredContent": {"a": [1]}}),
            expect![[r#"
            {
              "a": [
                1
              ]
            }
            = {"a":[1]}"#]],
        )
        .await;
    }

    #[tokio::test]
    async fn a_failure_is_the_servers_words() {
        check(
            json!({"content": [{"type": "text", "text": "no such row"}], "isError": true}),
            expect!["! no such row"],
        )
        .await;
        check(
            json!({"content": [], "isError": true}),
            expect![[r#"! The tool get of the MCP server "files" failed without a word."#]],
        )
        .await;
    }
}

//! Converts tools and results into types of the protocol.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helve_core::Saved;
use helve_core::{Content, SchemaFlavour, ToolOutput, ToolResult, ToolSpec, adapt_schema};
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, MetaObject, Resource, ResourceContents,
    ResourceTemplate, Tool, ToolAnnotations,
};
use serde_json::Value;

use crate::MetadataMode;

/// URI prefix of saved outputs.
const OUTPUT: &str = "helve://output/";
/// Key of a tool's metadata in a result's `_meta`.
const META: &str = "helve/metadata";

/// Converts a tool for `tools/list`.
pub(crate) fn tool(spec: &ToolSpec) -> Tool {
    let properties = spec.properties;
    let hints = ToolAnnotations::new()
        .read_only(properties.read_only)
        .destructive(properties.destructive)
        .open_world(properties.open_world);
    Tool::new(spec.name.clone(), spec.about.clone(), schema(spec))
        .with_title(title(&spec.name))
        .with_annotations(hints)
}

/// The protocol requires `"type": "object"` at the top. Some providers also require `properties`.
fn schema(spec: &ToolSpec) -> JsonObject {
    let mut schema = match adapt_schema(&spec.input, SchemaFlavour::Plain) {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    schema
}

/// Turns a tool name into a title: `apply_patch` becomes "Apply patch".
fn title(name: &str) -> String {
    let words = name.replace(['_', '-'], " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => words,
    }
}

/// Converts a saved output, for a list or as a link.
pub(crate) fn resource(saved: &Saved) -> Resource {
    Resource::new(format!("{OUTPUT}{}", saved.id), format!("{}.txt", saved.id))
        .with_title("Full output")
        .with_mime_type("text/plain")
        .with_size(saved.bytes)
}

/// Returns the resource template for the URIs of saved outputs.
pub(crate) fn output_template() -> ResourceTemplate {
    ResourceTemplate::new(format!("{OUTPUT}{{id}}"), "output")
        .with_title("Saved output")
        .with_description("Full output of a call that was too long to show; kept for 7 days")
        .with_mime_type("text/plain")
}

pub(crate) fn output_id(uri: &str) -> Option<&str> {
    uri.strip_prefix(OUTPUT)
}

/// Converts the result of a call.
pub(crate) fn result(result: ToolResult, metadata: MetadataMode) -> CallToolResult {
    match result.outcome {
        Ok(output) => {
            let structured = structured(&output, metadata);
            let meta = meta(output.metadata);
            let pieces = output.content.into_iter().enumerate();
            let mut blocks: Vec<ContentBlock> =
                pieces.map(|(at, piece)| content(&result.call, at, piece)).collect();
            blocks
                .extend(output.saved.as_ref().map(|it| ContentBlock::resource_link(resource(it))));
            let mut result = CallToolResult::success(blocks);
            result.structured_content = structured;
            result.meta = meta;
            result
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.full_message())]),
    }
}

/// Wraps a tool's metadata, unless it only says that nothing was truncated.
fn meta(metadata: JsonObject) -> Option<MetaObject> {
    let plain = metadata.iter().all(|(key, value)| key == "truncated" && *value == false);
    (!plain).then(|| MetaObject(JsonObject::from_iter([(META.into(), metadata.into())])))
}

/// Most clients show the structured content to the model *instead of* the text. So it includes the text, and
/// is omitted if it could not include all content.
fn structured(output: &ToolOutput, metadata: MetadataMode) -> Option<Value> {
    match metadata {
        MetadataMode::Hidden => return None,
        MetadataMode::Structured => {}
    }
    let all_text = output.content.iter().all(|piece| matches!(piece, Content::Text(_)));
    all_text.then(|| {
        let mut members = output.metadata.clone();
        members.insert("output".into(), output.joined_text().into());
        Value::Object(members)
    })
}

fn content(call: &str, at: usize, piece: Content) -> ContentBlock {
    match piece {
        Content::Text(text) => ContentBlock::text(text),
        Content::Link { uri, name } => ContentBlock::resource_link(Resource::new(uri, name)),
        Content::Media { mime, data } => {
            let encoded = STANDARD.encode(&data);
            if mime.starts_with("image/") {
                ContentBlock::image(encoded, mime)
            } else if mime.starts_with("audio/") {
                ContentBlock::audio(encoded, mime)
            } else {
                let uri = format!("helve://call/{call}/{}", at + 1);
                ContentBlock::resource(ResourceContents::blob(encoded, uri).with_mime_type(mime))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn titles_start_with_a_capital() {
        for (name, expected) in
            [("read", "Read"), ("apply_patch", "Apply patch"), ("écrire", "Écrire"), ("", "")]
        {
            assert_eq!(title(name), expected);
        }
    }
}

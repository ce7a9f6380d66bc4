//! Our tools and results in the protocol's types.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helve_core::{Content, Flavour, ToolResult, ToolSpec, fit};
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, Resource, ResourceContents, Tool, ToolAnnotations,
};
use serde_json::Value;

/// A tool as a client lists it.
pub(crate) fn tool(spec: &ToolSpec) -> Tool {
    let traits = spec.traits;
    let hints = ToolAnnotations::new()
        .read_only(traits.read_only)
        .destructive(traits.destructive)
        .open_world(traits.open_world);
    Tool::new(spec.name.clone(), spec.about.clone(), schema(spec))
        .with_title(title(&spec.name))
        .with_annotations(hints)
}

/// The protocol wants an object at the top, said so; some providers want to see its members too.
fn schema(spec: &ToolSpec) -> JsonObject {
    let mut schema = match fit(&spec.input, Flavour::Plain) {
        Value::Object(schema) => schema,
        _ => JsonObject::new(),
    };
    schema.entry("type").or_insert_with(|| "object".into());
    schema.entry("properties").or_insert_with(|| Value::Object(JsonObject::new()));
    schema
}

/// `apply_patch` for a person: "Apply patch".
fn title(name: &str) -> String {
    let words = name.replace(['_', '-'], " ");
    let mut letters = words.chars();
    match letters.next() {
        Some(first) => first.to_uppercase().chain(letters).collect(),
        None => words,
    }
}

/// What became of a call, as a client gets it.
pub(crate) fn result(result: ToolResult) -> CallToolResult {
    match result.outcome {
        Ok(output) => {
            let pieces = output.content.into_iter().enumerate();
            CallToolResult::success(
                pieces.map(|(at, piece)| content(&result.call, at, piece)).collect(),
            )
        }
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.words())]),
    }
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
    fn titles_are_words() {
        for (name, expected) in
            [("read", "Read"), ("apply_patch", "Apply patch"), ("écrire", "Écrire"), ("", "")]
        {
            assert_eq!(title(name), expected);
        }
    }
}

//! Our tools and results in the protocol's types.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use helve_core::store::Saved;
use helve_core::{Content, Flavour, ToolOutput, ToolResult, ToolSpec, fit};
use rmcp::model::{
    CallToolResult, ContentBlock, JsonObject, MetaObject, Resource, ResourceContents,
    ResourceTemplate, Tool, ToolAnnotations,
};
use serde_json::Value;

use crate::Metadata;

/// Where saved outputs are, as resources.
const OUTPUT: &str = "helve://output/";
/// The name under which a result carries a tool's metadata.
const META: &str = "helve/metadata";

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

/// A saved output, for a list or as a link.
pub(crate) fn resource(saved: &Saved) -> Resource {
    Resource::new(format!("{OUTPUT}{}", saved.id), format!("{}.txt", saved.id))
        .with_title("The whole output")
        .with_mime_type("text/plain")
        .with_size(saved.bytes)
}

/// All saved outputs, as one template.
pub(crate) fn resources() -> ResourceTemplate {
    ResourceTemplate::new(format!("{OUTPUT}{{id}}"), "output")
        .with_title("A saved output")
        .with_description("The whole output of a call that was too long to be shown; kept 7 days")
        .with_mime_type("text/plain")
}

pub(crate) fn output_id(uri: &str) -> Option<&str> {
    uri.strip_prefix(OUTPUT)
}

/// What became of a call, as a client gets it.
pub(crate) fn result(result: ToolResult, metadata: Metadata) -> CallToolResult {
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
        Err(error) => CallToolResult::error(vec![ContentBlock::text(error.words())]),
    }
}

/// A tool's metadata, where it says more than that nothing was cut.
fn meta(metadata: JsonObject) -> Option<MetaObject> {
    let plain = metadata.iter().all(|(key, value)| key == "truncated" && *value == false);
    (!plain).then(|| MetaObject(JsonObject::from_iter([(META.into(), metadata.into())])))
}

/// Most clients show a model the structured content *instead of* the text. So it holds the text too,
/// and there is none where it could not hold everything.
fn structured(output: &ToolOutput, metadata: Metadata) -> Option<Value> {
    match metadata {
        Metadata::Aside => return None,
        Metadata::Structured => {}
    }
    let all_text = output.content.iter().all(|piece| matches!(piece, Content::Text(_)));
    all_text.then(|| {
        let mut members = output.metadata.clone();
        members.insert("output".into(), output.joined().into());
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
    fn titles_are_words() {
        for (name, expected) in
            [("read", "Read"), ("apply_patch", "Apply patch"), ("écrire", "Écrire"), ("", "")]
        {
            assert_eq!(title(name), expected);
        }
    }
}

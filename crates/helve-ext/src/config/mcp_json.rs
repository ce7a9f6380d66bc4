//! `.mcp.json`, the file that several agents share, put into the shape of an `mcp` section.
//!
//! Keys that other programs keep there are passed over.

use super::page::Page;
use super::tree::{At, Entry, Node, What};
use super::words;

/// The servers as entries of an `mcp` section.
pub(super) fn section(page: &mut Page<'_>, entries: &[Entry]) -> Option<Node> {
    let servers = entries.iter().rev().find(|entry| entry.key == "mcpServers")?;
    let listed = page.map("mcpServers", &servers.value)?;
    let each = listed.iter().filter_map(|entry| {
        let value = server(page, entry)?;
        Some(Entry { key: entry.key.clone(), at: entry.at, value })
    });
    let map = each.collect();
    Some(Node { at: servers.value.at, what: What::Map(map) })
}

fn server(page: &mut Page<'_>, entry: &Entry) -> Option<Node> {
    let fields = page.map(&words::key_path(&["mcpServers", &entry.key]), &entry.value)?;
    let field = |key: &str| fields.iter().rev().find(|field| field.key == key);
    let kind = match field("type").map(|field| &field.value.what) {
        Some(What::Text(kind)) => kind.as_str(),
        Some(_) | None if field("url").is_some() => "http",
        Some(_) | None => "stdio",
    };
    let kind = match kind {
        "stdio" | "local" => "local",
        "http" | "streamable-http" | "streamableHttp" | "remote" => "remote",
        other => {
            page.error(entry.at, || words::unknown_mcp_json_type(other));
            return None;
        }
    };
    let mut made = vec![made(entry.at, "type", What::Text(kind.into()))];
    let mut put = |from: &str, to: &str| {
        made.extend(field(from).map(|field| Entry {
            key: to.into(),
            at: field.at,
            value: dollars(page, &field.value),
        }));
    };
    put("url", "url");
    put("headers", "headers");
    put("env", "environment");
    put("cwd", "cwd");
    put("timeout", "timeout");
    if kind == "local" {
        made.extend(command(page, field("command"), field("args")));
    }
    Some(Node { at: entry.value.at, what: What::Map(made) })
}

/// The program and its arguments in one list; nothing if they are not that, so that the server is dropped.
fn command(page: &mut Page<'_>, program: Option<&Entry>, args: Option<&Entry>) -> Option<Entry> {
    let program = program?;
    let mut list = vec![dollars(page, &program.value)];
    if let Some(args) = args {
        match dollars(page, &args.value).what {
            What::List(args) => list.extend(args),
            _ => return page.wrong("args", &args.value, "a list of texts"),
        }
    }
    let value = Node { at: program.value.at, what: What::List(list) };
    Some(Entry { key: "command".into(), at: program.at, value })
}

fn made(at: At, key: &str, what: What) -> Entry {
    Entry { key: key.into(), at, value: Node { at, what } }
}

/// `${NAME}` and `${NAME:-otherwise}` as `{env:NAME}`, in every text.
fn dollars(page: &Page<'_>, node: &Node) -> Node {
    let what = match &node.what {
        What::Text(text) => What::Text(rewritten(page, text)),
        What::List(list) => What::List(list.iter().map(|one| dollars(page, one)).collect()),
        What::Map(entries) => {
            let each = entries.iter().map(|entry| Entry {
                key: entry.key.clone(),
                at: entry.at,
                value: dollars(page, &entry.value),
            });
            What::Map(each.collect())
        }
        What::Null => What::Null,
        What::Bool(flag) => What::Bool(*flag),
        What::Number(number) => What::Number(number.clone()),
    };
    Node { at: node.at, what }
}

fn rewritten(page: &Page<'_>, text: &str) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let Some((inside, after)) = after.split_once('}') else { break };
        let (name, otherwise) = match inside.split_once(":-") {
            Some((name, otherwise)) => (name, Some(otherwise)),
            None => (inside, None),
        };
        whole.push_str(before);
        match otherwise {
            Some(otherwise) if page.surroundings.outside.variable(name).is_none() => {
                whole.push_str(otherwise);
            }
            Some(_) | None => whole.push_str(&format!("{{env:{name}}}")),
        }
        rest = after;
    }
    whole + rest
}

//! Writes sessions as JSON, Markdown or one HTML page.

use helve_agent::history;
use helve_agent::item::{Block, Entry, Item, MessagePart};
use helve_core::transcript::{ModelTotals, TranscriptInfo};
use serde_json::{Value, json};

/// The image types that are shown in an HTML page. Others, such as SVG, could contain scripts.
const SHOWN_IMAGES: [&str; 4] = ["image/png", "image/jpeg", "image/gif", "image/webp"];

/// A session with everything that is stored about it.
#[derive(Clone, Debug)]
pub struct ExportedSession {
    pub info: TranscriptInfo,
    pub entries: Vec<Entry>,
    pub totals: Vec<ModelTotals>,
}

impl ExportedSession {
    /// Returns everything that is stored, as JSON.
    pub fn to_json(&self) -> serde_json::Result<Value> {
        let items =
            self.entries.iter().map(serde_json::to_value).collect::<Result<Vec<Value>, _>>()?;
        let fork = self.info.fork.as_ref();
        Ok(json!({
            "version": 1,
            "session": self.info.session,
            "root": self.info.root.to_string_lossy(),
            "title": self.info.title,
            "created": self.info.created,
            "updated": self.info.updated,
            "fork": fork.map(|fork| json!({"session": fork.session, "last": fork.last})),
            "items": items,
            "usage": self.totals.iter().map(totals_json).collect::<Vec<_>>(),
        }))
    }

    /// Returns the conversation as Markdown. What was undone is left out.
    pub fn to_markdown(&self) -> String {
        let mut text = format!("# {}\n", one_line(&self.info.title));
        for entry in history::shown(&self.entries) {
            for piece in pieces(&entry.item) {
                text.push_str(&piece.markdown());
            }
        }
        text
    }

    /// Returns the conversation as one HTML page, which contains no scripts and loads nothing. What was undone is left
    /// out.
    pub fn to_html(&self) -> String {
        let shown = history::shown(&self.entries);
        let body: String =
            shown.iter().flat_map(|entry| pieces(&entry.item)).map(|piece| piece.html()).collect();
        let title = escape(&one_line(&self.info.title));
        format!(
            "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'; img-src data:\">\
             <meta name=\"viewport\" content=\"width=device-width\"><title>{title}</title>\n<style>{STYLE}</style></head>\
             <body><h1>{title}</h1>\n{body}</body></html>\n"
        )
    }
}

const STYLE: &str = "body{max-width:60rem;margin:2rem auto;padding:0 1rem;font:16px/1.5 system-ui,sans-serif}\
pre{white-space:pre-wrap;overflow-wrap:anywhere;background:#8881;padding:.6rem;border-radius:.3rem}\
section{margin:1rem 0}h2{font-size:1rem;margin:0;color:#777}img{max-width:100%}.error pre{border-left:3px solid #c33}\
details summary{cursor:pointer;color:#777}";

/// Returns the totals of one model as JSON.
pub fn totals_json(totals: &ModelTotals) -> Value {
    json!({
        "session": totals.session,
        "provider": totals.provider,
        "model": totals.model,
        "requests": totals.requests,
        "input": totals.tokens.input,
        "cacheRead": totals.tokens.cache_read,
        "cacheWrite": totals.tokens.cache_write,
        "output": totals.tokens.output,
        "reasoning": totals.tokens.reasoning,
        "estimatedRequests": totals.estimated,
        "cost": (totals.unpriced < totals.requests).then_some(totals.cost),
        "unpricedRequests": totals.unpriced,
        "milliseconds": totals.milliseconds,
    })
}

/// A part of an item in the Markdown or HTML form.
enum Piece<'a> {
    /// Text of the person, the model, a note or a summary.
    Said {
        who: &'static str,
        text: &'a str,
    },
    /// Text that is shown in a code block: the arguments or the result of a call.
    Verbatim {
        title: String,
        text: &'a str,
        is_error: bool,
    },
    Image {
        mime: &'a str,
        data: &'a str,
    },
    /// A line in place of an attachment that is not shown.
    Remark(String),
}

fn pieces(item: &Item) -> Vec<Piece<'_>> {
    match item {
        Item::User { content } => message_pieces("You", content),
        Item::Assistant(message) => message.blocks.iter().filter_map(block_piece).collect(),
        Item::Result(result) => {
            let mut pieces = Vec::new();
            for part in &result.content {
                match part {
                    MessagePart::Text(text) => pieces.push(Piece::Verbatim {
                        title: format!("Result: {}", one_line(&result.title)),
                        text,
                        is_error: result.is_error,
                    }),
                    MessagePart::Media { mime, data, name } => {
                        pieces.push(media_piece(mime, data, name.as_deref()));
                    }
                }
            }
            pieces
        }
        Item::Note { text, .. } => vec![Piece::Said { who: "Note", text }],
        Item::Summary { text, .. } => vec![Piece::Said { who: "Summary", text }],
        Item::OutputsCleared { .. }
        | Item::MediaRejected { .. }
        | Item::Undone { .. }
        | Item::Redone { .. } => Vec::new(),
    }
}

fn message_pieces<'a>(who: &'static str, content: &'a [MessagePart]) -> Vec<Piece<'a>> {
    let piece = |part: &'a MessagePart| match part {
        MessagePart::Text(text) => Piece::Said { who, text },
        MessagePart::Media { mime, data, name } => media_piece(mime, data, name.as_deref()),
    };
    content.iter().map(piece).collect()
}

fn block_piece(block: &Block) -> Option<Piece<'_>> {
    match block {
        Block::Text(text) => Some(Piece::Said { who: "Model", text }),
        Block::Reasoning { text, .. } if !text.is_empty() => {
            Some(Piece::Said { who: "Model, thinking", text })
        }
        Block::Reasoning { .. } | Block::Phase(_) | Block::Other(_) => None,
        Block::Call(call) => {
            let title = format!("Call: {}", one_line(&call.name));
            Some(Piece::Verbatim { title, text: &call.arguments, is_error: false })
        }
    }
}

fn media_piece<'a>(mime: &'a str, data: &'a str, name: Option<&str>) -> Piece<'a> {
    let is_base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=".contains(&byte);
    match SHOWN_IMAGES.contains(&mime) && data.bytes().all(is_base64) {
        true => Piece::Image { mime, data },
        false => Piece::Remark(format!("({}, {mime})", name.unwrap_or("an attachment"))),
    }
}

impl Piece<'_> {
    fn markdown(&self) -> String {
        match self {
            Piece::Said { who, text } => format!("\n## {who}\n\n{}\n", text.trim_end()),
            Piece::Verbatim { title, text, .. } => {
                let fence = fence(text);
                format!("\n### {title}\n\n{fence}\n{}\n{fence}\n", text.trim_end())
            }
            Piece::Image { mime, .. } => format!("\n({mime})\n"),
            Piece::Remark(text) => format!("\n{}\n", one_line(text)),
        }
    }

    fn html(&self) -> String {
        match self {
            Piece::Said { who, text } => {
                let text = escape(text.trim_end());
                format!("<section><h2>{who}</h2><pre>{text}</pre></section>\n")
            }
            Piece::Verbatim { title, text, is_error } => {
                let (title, text) = (escape(title), escape(text.trim_end()));
                let class = if *is_error { " class=\"error\"" } else { "" };
                format!(
                    "<section{class}><details><summary>{title}</summary><pre>{text}</pre></details></section>\n"
                )
            }
            Piece::Image { mime, data } => {
                format!("<section><img alt=\"\" src=\"data:{mime};base64,{data}\"></section>\n")
            }
            Piece::Remark(text) => format!("<section>{}</section>\n", escape(text)),
        }
    }
}

/// Returns a Markdown fence that is longer than every run of backticks in a text.
fn fence(text: &str) -> String {
    let (mut longest, mut current) = (0, 0);
    for c in text.chars() {
        current = if c == '`' { current + 1 } else { 0 };
        longest = longest.max(current);
    }
    "`".repeat(3.max(longest + 1))
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Escapes text for HTML. Control characters, which HTML does not allow, are replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\n' | '\t' => escaped.push(c),
            c if c.is_control() => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use helve_agent::item::CallResult;

    use super::*;

    fn session(items: Vec<Item>) -> ExportedSession {
        let info = TranscriptInfo {
            parent: None,
            session: "s".into(),
            root: "/w".into(),
            title: "<b>a</b>\n# b".into(),
            created: 1,
            updated: 2,
            fork: None,
        };
        let entries = (1..).zip(items).map(|(seq, item)| Entry { seq, item }).collect();
        ExportedSession { info, entries, totals: Vec::new() }
    }

    fn user(text: &str) -> Item {
        Item::User { content: vec![MessagePart::Text(text.into())] }
    }

    fn image(mime: &str, data: &str) -> Item {
        let (mime, data) = (mime.to_string(), data.to_string());
        Item::User { content: vec![MessagePart::Media { mime, data, name: Some("<x>".into()) }] }
    }

    #[test]
    fn html_contains_nothing_that_runs_or_loads() {
        let hostile = "</pre><script>alert(1)</script><img src=x onerror=alert(1)>\u{0}&amp;";
        let result = Item::Result(CallResult {
            call: "1".into(),
            title: "\"><script>".into(),
            content: vec![MessagePart::Text(hostile.into())],
            is_error: true,
            saved: None,
        });
        let page = session(vec![
            user(hostile),
            result,
            image("image/png", "aGk="),
            image("image/svg+xml", "aGk="),
            image("image/png", "\" onload=\"alert(1)"),
        ])
        .to_html();
        assert!(!page.contains("<script") && !page.contains("<img src=x"), "{page}");
        assert_eq!(page.matches("<img ").count(), 1, "{page}");
        assert!(
            !page.contains("onload=\"") && !page.contains("http://") && !page.contains("https://")
        );
        assert!(page.contains("&lt;b&gt;a&lt;/b&gt; # b") && page.contains("&amp;amp;"));
    }

    #[test]
    fn markdown_fences_are_longer_than_their_content() {
        let result = Item::Result(CallResult {
            call: "1".into(),
            title: "a".into(),
            content: vec![MessagePart::Text("````\ncode".into())],
            is_error: false,
            saved: None,
        });
        let undone = Item::Undone { from: 3, call: None };
        let text = session(vec![user("hi"), result, user("secret plan"), undone]).to_markdown();
        assert_eq!(
            text,
            "# <b>a</b> # b\n\n## You\n\nhi\n\n### Result: a\n\n`````\n````\ncode\n`````\n"
        );
    }

    #[test]
    fn json_is_lossless() {
        let exported = session(vec![user("hi"), Item::Undone { from: 1, call: Some("c".into()) }]);
        let json = exported.to_json().unwrap();
        let items: Vec<Entry> = serde_json::from_value(json["items"].clone()).unwrap();
        let again = serde_json::to_value(&items).unwrap();
        assert_eq!(again, json["items"]);
        assert_eq!(items.len(), 2);
    }
}

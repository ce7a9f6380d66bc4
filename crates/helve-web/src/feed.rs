//! Renders feeds (RSS, Atom) and sitemaps as lists.

use helve_core::web::PageKind;

use crate::html::{Attribute, MarkupMode, Token, Tokens, attributes, decode_references};

/// Maximum number of entries that are listed.
const MAX_ENTRIES: usize = 5000;
/// Maximum number of characters of an entry's summary.
const MAX_SUMMARY: usize = 300;

/// Recognizes a feed or sitemap by its root element.
pub(crate) fn kind_of(source: &str) -> Option<PageKind> {
    let mut tokens = Tokens::new(source, MarkupMode::Xml);
    let root = tokens.find_map(|token| match token {
        Token::Start { name, .. } => Some(local_name(name).to_ascii_lowercase()),
        Token::End { .. } | Token::Text(_) | Token::RawText(_) | Token::Comment(_) => None,
    });
    match root?.as_str() {
        "rss" | "feed" | "rdf" => Some(PageKind::Feed),
        "urlset" | "sitemapindex" => Some(PageKind::Sitemap),
        _ => None,
    }
}

#[derive(Default)]
struct FeedEntry {
    title: String,
    link: String,
    date: String,
    summary: String,
}

/// Renders a feed or sitemap. Returns its title and a list of its entries.
pub(crate) fn render(source: &str) -> (Option<String>, String) {
    let mut title = String::new();
    let mut entries: Vec<FeedEntry> = Vec::new();
    let mut current: Option<FeedEntry> = None;
    let (mut field, mut text) = (String::new(), String::new());
    for token in Tokens::new(source, MarkupMode::Xml) {
        match token {
            Token::Start { name, attributes: raw_attributes, .. } => {
                field = local_name(name).to_ascii_lowercase();
                text.clear();
                if is_entry(&field) {
                    current = Some(FeedEntry::default());
                }
                if let (Some(entry), "link") = (&mut current, field.as_str()) {
                    entry.read_link(raw_attributes);
                }
            }
            Token::Text(piece) => text.push_str(&decode_references(piece)),
            Token::RawText(piece) => text.push_str(piece),
            Token::End { name } => {
                let name = local_name(name).to_ascii_lowercase();
                if is_entry(&name) {
                    entries.extend(current.take().filter(|_| entries.len() < MAX_ENTRIES));
                } else if name == field {
                    match &mut current {
                        Some(entry) => entry.set(&name, &text),
                        None if name == "title" && title.is_empty() => title = one_line(&text),
                        None => {}
                    }
                }
                text.clear();
            }
            Token::Comment(_) => {}
        }
    }
    let lines: Vec<String> = entries.iter().map(FeedEntry::line).collect();
    (Some(title).filter(|title| !title.is_empty()), lines.join("\n"))
}

impl FeedEntry {
    /// Reads the link of an Atom entry, which is an attribute.
    fn read_link(&mut self, raw_attributes: &str) {
        let find = |name: &str| {
            attributes(raw_attributes).find(|it: &Attribute<'_>| it.name == name).map(|it| it.value)
        };
        let is_page = find("rel").is_none_or(|rel| rel == "alternate");
        if let (Some(href), true, true) = (find("href"), is_page, self.link.is_empty()) {
            self.link = decode_references(href).trim().to_owned();
        }
    }

    fn set(&mut self, field: &str, text: &str) {
        let slot = match field {
            "title" => &mut self.title,
            "link" | "loc" => &mut self.link,
            "pubdate" | "published" | "updated" | "date" | "lastmod" => &mut self.date,
            "description" | "summary" => &mut self.summary,
            _ => return,
        };
        if slot.is_empty() {
            *slot = match field {
                "description" | "summary" => summary(text),
                _ => one_line(text),
            };
        }
    }

    fn line(&self) -> String {
        let FeedEntry { title, link, date, summary } = self;
        let mut line = match (title.is_empty(), link.is_empty()) {
            (false, false) => format!("- [{title}]({link})"),
            (true, false) => format!("- {link}"),
            (_, true) => format!("- {title}"),
        };
        if !date.is_empty() {
            line.push_str(&format!(" ({date})"));
        }
        if !summary.is_empty() {
            line.push_str(&format!("\n  {summary}"));
        }
        line
    }
}

fn is_entry(name: &str) -> bool {
    matches!(name, "item" | "entry" | "url" | "sitemap")
}

/// Returns the name without its namespace.
fn local_name(name: &str) -> &str {
    name.rsplit(':').next().unwrap_or(name)
}

fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    helve_text::visible::escape_hidden(&words.join(" ")).into_owned()
}

/// Returns the start of a summary as text. Summaries are often HTML.
fn summary(text: &str) -> String {
    let mut plain = String::new();
    for token in Tokens::new(text, MarkupMode::Html) {
        match token {
            Token::Text(piece) => {
                plain.push_str(&decode_references(piece));
                plain.push(' ');
            }
            Token::Start { .. } | Token::End { .. } | Token::RawText(_) | Token::Comment(_) => {}
        }
        if plain.len() > 4 * MAX_SUMMARY {
            break;
        }
    }
    let line = one_line(&plain);
    let (short, is_cut) = helve_text::lines::clip(&line, MAX_SUMMARY);
    if is_cut { format!("{short}…") } else { short.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn feeds_and_sitemaps_become_lists() {
        let rss = "<?xml version='1.0'?><rss><channel><title>News &amp; more</title><link>https://n.example</link>\
            <item><title><![CDATA[One <b>]]></title><link>https://n.example/1</link><pubDate>Mon, 1 Jan 2024</pubDate>\
            <description>&lt;p&gt;First &lt;b&gt;story&lt;/b&gt;.&lt;/p&gt;</description></item>\
            <item><title>Two</title></item></channel></rss>";
        assert_eq!(kind_of(rss), Some(PageKind::Feed));
        let list = "- [One <b>](https://n.example/1) (Mon, 1 Jan 2024)\n  First story .\n- Two";
        assert_eq!(render(rss), (Some("News & more".into()), list.into()));
        let atom = "<feed xmlns='http://www.w3.org/2005/Atom'><title>A</title><entry><title>E</title>\
            <link rel='self' href='https://a.example/self'/><link href='https://a.example/e?x=1&amp;y=2'/>\
            <updated>2024-02-03T00:00:00Z</updated></entry></feed>";
        assert_eq!(kind_of(atom), Some(PageKind::Feed));
        assert_eq!(render(atom).1, "- [E](https://a.example/e?x=1&y=2) (2024-02-03T00:00:00Z)");
        let sitemap = "<urlset><url><loc>https://s.example/a</loc><lastmod>2024-01-01</lastmod></url><url><loc>https://s.example/b</loc></url></urlset>";
        assert_eq!(kind_of(sitemap), Some(PageKind::Sitemap));
        assert_eq!(render(sitemap).1, "- https://s.example/a (2024-01-01)\n- https://s.example/b");
        assert_eq!(kind_of("<html><body>"), None);
        assert_eq!(kind_of("no markup"), None);
        assert_eq!(render("<rss><item><title>cut").1, "");
    }
}

//! Renders the tree of a page.

use std::borrow::Cow;

use helve_text::url::WebUrl;

use super::elements::{
    collapse_spaces, escape_url, is_line_number, is_never_shown, is_permalink, longest_run,
};
use super::language::{language_name, language_of_classes};
use super::main_content::main_content;
use super::tables;
use super::tag::Tag;
use super::tree::{NodeId, ROOT, Tree};
use super::writer::{Mark, Markup, Writer, escape_hidden};

/// Maximum nesting of elements that is rendered with its structure. Deeper text is kept, its structure is not.
const MAX_DEPTH: usize = 150;
/// If a page has less text than this without its navigation, the navigation is shown too.
const MIN_TEXT: usize = 200;
/// Maximum number of ancestors that are searched for the language of a code block.
const LANGUAGE_ANCESTORS: usize = 4;

const HEADING_MARKS: [&str; 6] = ["# ", "## ", "### ", "#### ", "##### ", "###### "];

pub(crate) struct RenderOptions<'a> {
    pub(crate) is_markdown: bool,
    pub(crate) main_only: bool,
    /// The URL of the page, against which links are resolved.
    pub(crate) base: &'a WebUrl,
}

/// A rendered page.
pub(crate) struct HtmlPage {
    pub(crate) text: String,
    pub(crate) title: Option<String>,
    /// Number of hidden elements and comments with text.
    pub(crate) hidden: usize,
    pub(crate) is_flattened: bool,
    /// Whether the main content was wanted and found.
    pub(crate) has_main: bool,
}

pub(crate) fn render(source: &str, options: &RenderOptions<'_>) -> HtmlPage {
    let tree = Tree::parse(source);
    let base = tree.base.as_deref().and_then(|base| options.base.join(base).ok());
    let base = base.as_ref().unwrap_or(options.base);
    let main = if options.main_only { main_content(&tree) } else { None };
    let markup = if options.is_markdown { Markup::Markdown } else { Markup::Plain };
    // The text can be longer than its source, because links are made absolute and markup is added, but its length stays
    // proportional to that of the source.
    let limit = 3 * source.len() + (64 << 10);
    let render = |navigation| {
        let mut writer = Writer::new(markup, limit);
        writer.out.reserve(source.len() / 2);
        let mut renderer = Renderer::new(&tree, base, writer, navigation);
        renderer.renders_main_only = main.is_some();
        renderer.render_children(main.unwrap_or(ROOT));
        renderer
    };
    let mut renderer = render(Navigation::LeftOut);
    if renderer.left_out_navigation && renderer.writer.out.len() < MIN_TEXT {
        renderer = render(Navigation::Shown);
    }
    let Renderer { writer, hidden, is_flattened, .. } = renderer;
    HtmlPage {
        text: writer.finish(),
        hidden: hidden + tree.comments,
        is_flattened: is_flattened || tree.is_flattened,
        has_main: main.is_some(),
        title: tree.title,
    }
}

/// What happens to the navigation of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Navigation {
    LeftOut,
    Shown,
}

pub(super) struct Renderer<'a> {
    pub(super) tree: &'a Tree<'a>,
    base: &'a WebUrl,
    pub(super) writer: Writer,
    navigation: Navigation,
    left_out_navigation: bool,
    /// Whether only the main content is rendered.
    renders_main_only: bool,
    hidden: usize,
    is_flattened: bool,
    /// The elements around the current node, outermost first.
    ancestors: Vec<NodeId>,
    /// The next number of each open list; `None` for bullets.
    lists: Vec<Option<u64>>,
    /// Whether we are in a heading, where bold text is not marked.
    in_heading: bool,
}

impl<'a> Renderer<'a> {
    fn new(tree: &'a Tree<'a>, base: &'a WebUrl, writer: Writer, navigation: Navigation) -> Self {
        Self {
            tree,
            base,
            writer,
            navigation,
            left_out_navigation: false,
            renders_main_only: false,
            hidden: 0,
            is_flattened: false,
            ancestors: Vec::new(),
            lists: Vec::new(),
            in_heading: false,
        }
    }

    fn is_markdown(&self) -> bool {
        self.writer.markup() == Markup::Markdown
    }

    /// Renders the children of a node as one line, for a heading or a table cell.
    pub(super) fn render_to_line(&mut self, node: NodeId) -> String {
        let limit = 64 << 10;
        let line = Writer::for_one_line(self.writer.markup(), limit);
        let outer = std::mem::replace(&mut self.writer, line);
        self.render_children(node);
        std::mem::replace(&mut self.writer, outer).finish()
    }

    pub(super) fn render_children(&mut self, node: NodeId) {
        if self.ancestors.len() >= MAX_DEPTH {
            self.is_flattened = true;
            return self.write_flat_text(node);
        }
        self.ancestors.push(node);
        let tree = self.tree;
        for child in tree.children(node) {
            if self.writer.is_full() {
                break;
            }
            match tree.tag(child) {
                Some(tag) => self.render_element(child, tag),
                None => self.writer.text(&tree.text(child).unwrap_or_default()),
            }
        }
        self.ancestors.pop();
    }

    /// Writes all text below a node, without its structure.
    fn write_flat_text(&mut self, node: NodeId) {
        let tree = self.tree;
        let mut hidden = 0;
        let writer = &mut self.writer;
        tree.walk(node, |id| match tree.tag(id) {
            Some(tag) if is_never_shown(tag) => false,
            Some(_) if tree.is_hidden(id) => {
                hidden += 1;
                false
            }
            Some(tag) => {
                if tag.is_block() || tag == Tag::Br {
                    writer.break_lines(1);
                }
                true
            }
            None => {
                writer.text(&tree.text(id).unwrap_or_default());
                true
            }
        });
        self.hidden += hidden;
    }

    fn render_element(&mut self, node: NodeId, tag: Tag) {
        if is_never_shown(tag) {
            return;
        }
        if self.tree.is_hidden(node) {
            self.hidden += usize::from(self.tree.has_text(node));
            return;
        }
        if self.is_left_out(node, tag) {
            return;
        }
        match tag {
            Tag::Br => self.writer.break_lines(1),
            Tag::Hr => self.render_rule(),
            Tag::Img => self.render_image(node),
            Tag::Input => self.render_input(node),
            Tag::Video | Tag::Audio | Tag::Iframe | Tag::Embed => self.render_embedded(node, tag),
            Tag::A => self.render_link(node),
            Tag::B | Tag::Strong => self.render_emphasized(node, "**"),
            Tag::I | Tag::Em => self.render_emphasized(node, "*"),
            Tag::Del | Tag::S | Tag::Strike => self.render_emphasized(node, "~~"),
            Tag::Code | Tag::Kbd | Tag::Samp | Tag::Tt => self.render_code(node),
            Tag::Q => {
                self.writer.verbatim("\"");
                self.render_children(node);
                self.writer.verbatim("\"");
            }
            Tag::Math => self.render_formula(node),
            Tag::Pre | Tag::Xmp => self.render_code_block(node),
            Tag::Table => tables::render_table(self, node),
            Tag::Ul | Tag::Menu => self.render_list(node, None),
            Tag::Ol => {
                let start =
                    self.tree.attribute(node, "start").and_then(|it| it.trim().parse().ok());
                self.render_list(node, Some(start.unwrap_or(1)));
            }
            Tag::Li => self.render_item(node),
            Tag::Dt => self.render_block(node, 1),
            Tag::Dd => {
                self.writer.break_lines(1);
                self.render_prefixed(node, ": ", "  ");
                self.writer.break_lines(1);
            }
            Tag::Blockquote => {
                self.writer.break_lines(2);
                let mark = if self.is_markdown() { "> " } else { "  " };
                self.render_prefixed(node, mark, mark);
                self.writer.break_lines(2);
            }
            Tag::OptionItem | Tag::Tr | Tag::Summary | Tag::Legend => self.render_block(node, 1),
            _ => match tag.heading_level() {
                Some(level) => self.render_heading(node, level),
                None if tag.is_block() => self.render_block(node, 2),
                None => self.render_children(node),
            },
        }
    }

    /// Whether an element is navigation, or an aside or footer around the main content.
    fn is_left_out(&mut self, node: NodeId, tag: Tag) -> bool {
        let role = || self.tree.attribute(node, "role");
        let is_navigation = tag == Tag::Nav
            || matches!(tag, Tag::Div | Tag::Section | Tag::Ul | Tag::Header | Tag::Form)
                && role().is_some_and(|role| matches!(&*role, "navigation" | "search"));
        if is_navigation && self.navigation == Navigation::LeftOut {
            self.left_out_navigation = true;
            return true;
        }
        self.renders_main_only && matches!(tag, Tag::Aside | Tag::Footer)
    }

    pub(super) fn render_block(&mut self, node: NodeId, breaks: usize) {
        self.writer.break_lines(breaks);
        self.render_children(node);
        self.writer.break_lines(breaks);
    }

    fn render_prefixed(
        &mut self,
        node: NodeId,
        first: impl Into<Cow<'static, str>>,
        rest: impl Into<Cow<'static, str>>,
    ) {
        self.writer.push_prefix(first.into(), rest.into());
        self.render_children(node);
        self.writer.pop_prefix();
    }

    fn render_rule(&mut self) {
        if !self.writer.is_empty() {
            self.writer.break_lines(2);
            self.writer.verbatim("---");
            self.writer.break_lines(2);
        }
    }

    fn render_heading(&mut self, node: NodeId, level: usize) {
        let was_in_heading = std::mem::replace(&mut self.in_heading, true);
        let text = self.render_to_line(node);
        self.in_heading = was_in_heading;
        let text = if text.contains("<br>") { text.replace("<br>", " ") } else { text };
        let mark = if self.is_markdown() { HEADING_MARKS[level.clamp(1, 6) - 1] } else { "" };
        self.writer.marked_line(mark, &text);
    }

    fn render_list(&mut self, node: NodeId, number: Option<u64>) {
        let breaks = if self.lists.is_empty() { 2 } else { 1 };
        self.writer.break_lines(breaks);
        self.lists.push(number);
        self.render_children(node);
        self.lists.pop();
        self.writer.break_lines(breaks);
    }

    fn render_item(&mut self, node: NodeId) {
        let marker = match self.lists.last_mut() {
            Some(Some(number)) => {
                let value =
                    self.tree.attribute(node, "value").and_then(|it| it.trim().parse().ok());
                let current = value.unwrap_or(*number);
                *number = current.saturating_add(1);
                Cow::Owned(format!("{current}. "))
            }
            Some(None) | None => Cow::Borrowed("- "),
        };
        self.writer.break_lines(1);
        let indent = match &marker {
            Cow::Borrowed(_) => Cow::Borrowed("  "),
            Cow::Owned(marker) => Cow::Owned(" ".repeat(marker.len())),
        };
        self.render_prefixed(node, marker, indent);
        self.writer.break_lines(1);
    }

    fn render_emphasized(&mut self, node: NodeId, mark: &'static str) {
        if self.in_heading && mark == "**" {
            return self.render_children(node);
        }
        let mark = Mark::Emphasis(mark);
        self.writer.open(mark.clone());
        self.render_children(node);
        self.writer.close(&mark);
    }

    fn render_code(&mut self, node: NodeId) {
        // Code that contains images, line breaks or blocks is rendered like other text.
        let is_rich =
            self.tree.contains(node, |tag| tag == Tag::Img || tag == Tag::Br || tag.is_block());
        if !self.is_markdown() || is_rich {
            return self.render_children(node);
        }
        let text = self.plain_text(node);
        let text = collapse_spaces(&text);
        if text.is_empty() {
            return;
        }
        let fence = match longest_run(&text, b'`') {
            0 => Cow::Borrowed("`"),
            longest => Cow::Owned("`".repeat(longest + 1)),
        };
        let pad = if text.starts_with('`') || text.ends_with('`') { " " } else { "" };
        // The first link in the code becomes a link around all of it.
        let link = self.first_link(node);
        if let Some(url) = &link {
            self.writer.open(Mark::Link(url.clone()));
        }
        self.writer.verbatim_parts(&[&fence, pad, &text, pad, &fence]);
        if let Some(url) = link {
            self.writer.close(&Mark::Link(url));
        }
    }

    /// Returns the target of the first link below a node.
    fn first_link(&self, node: NodeId) -> Option<String> {
        let mut target = None;
        self.tree.walk(node, |id| {
            if target.is_none() && self.tree.tag(id) == Some(Tag::A) {
                target = self.link_target(id);
            }
            true
        });
        target
    }

    /// Returns the visible text below a node as it is in the source.
    fn plain_text(&mut self, node: NodeId) -> String {
        let tree = self.tree;
        let (mut text, mut hidden) = (String::new(), 0);
        tree.walk(node, |id| match tree.tag(id) {
            Some(tag) if is_never_shown(tag) => false,
            Some(Tag::Br) => {
                text.push('\n');
                false
            }
            Some(_) if is_line_number(tree, id) => false,
            Some(tag) => {
                let is_hidden = tree.is_hidden(id);
                hidden += usize::from(is_hidden && tree.has_text(id));
                let starts_line = tag.is_block() && !is_hidden;
                if starts_line && !text.is_empty() && !text.ends_with('\n') {
                    text.push('\n');
                }
                !is_hidden
            }
            None => {
                text.push_str(&escape_hidden(&tree.text(id).unwrap_or_default()));
                true
            }
        });
        self.hidden += hidden;
        text
    }

    fn render_code_block(&mut self, node: NodeId) {
        let text = self.plain_text(node);
        let text = match text.contains('\r') {
            true => text.replace("\r\n", "\n").replace('\r', "\n"),
            false => text,
        };
        // The line break after the start tag does not belong to the text.
        let text = text.strip_prefix('\n').unwrap_or(&text).trim_end();
        if text.trim().is_empty() {
            return;
        }
        self.writer.break_lines(2);
        if self.is_markdown() {
            let fence = "`".repeat(longest_run(text, b'`').max(2) + 1);
            let language = self.language(node).unwrap_or_default();
            self.writer.lines(&format!("{fence}{language}\n{text}\n{fence}"));
        } else {
            self.writer.lines(text);
        }
        self.writer.break_lines(2);
    }

    /// Finds the language of a code block: on itself, on its `code`, or on the elements around it.
    fn language(&self, node: NodeId) -> Option<String> {
        let tree = self.tree;
        let own = [node]
            .into_iter()
            .chain(tree.children(node).filter(|id| tree.tag(*id) == Some(Tag::Code)));
        let around = self.ancestors.iter().rev().take(LANGUAGE_ANCESTORS).copied();
        let candidates = own.map(|id| (id, true)).chain(around.map(|id| (id, false)));
        for (id, is_code) in candidates {
            for name in ["data-lang", "data-language"] {
                if let Some(language) =
                    tree.attribute(id, name).and_then(|name| language_name(&name))
                {
                    return Some(language);
                }
            }
            let classes = tree.attribute(id, "class").unwrap_or_default();
            if let Some(language) = language_of_classes(&classes, is_code) {
                return Some(language);
            }
        }
        None
    }

    fn render_link(&mut self, node: NodeId) {
        if is_permalink(self.tree, node) {
            return;
        }
        match self.link_target(node) {
            Some(url) => {
                let mark = Mark::Link(url);
                self.writer.open(mark.clone());
                self.render_children(node);
                self.writer.close(&mark);
            }
            None => self.render_children(node),
        }
    }

    /// Returns the absolute target of a link; `None` if it leads to the same page or cannot be followed.
    fn link_target(&self, node: NodeId) -> Option<String> {
        let href = self.tree.attribute(node, "href")?;
        self.absolute(&href).filter(|_| !href.trim_start().starts_with('#'))
    }

    /// Returns an absolute URL, with its fragment.
    fn absolute(&self, reference: &str) -> Option<String> {
        let reference = reference.trim();
        let (address, fragment) = match reference.split_once('#') {
            Some((address, fragment)) => (address, Some(fragment)),
            None => (reference, None),
        };
        let mut url = match self.base.join(address) {
            Ok(url) => url.as_str().to_owned(),
            Err(_) => {
                let scheme = address.split(':').next().unwrap_or_default().to_ascii_lowercase();
                let is_useful = matches!(
                    scheme.as_str(),
                    "http" | "https" | "mailto" | "tel" | "ftp" | "magnet" | "irc" | "geo"
                );
                return is_useful.then(|| escape_url(address));
            }
        };
        if let Some(fragment) = fragment.filter(|fragment| !fragment.is_empty()) {
            url.push('#');
            url.push_str(fragment);
        }
        Some(escape_url(&url))
    }

    fn render_image(&mut self, node: NodeId) {
        let attribute = |name: &str| self.tree.attribute(node, name).unwrap_or_default();
        let alt = attribute("alt");
        let words: Vec<&str> = alt.split_whitespace().collect();
        let alt = escape_hidden(&words.join(" ")).into_owned();
        if !self.is_markdown() {
            return self.writer.text(&alt);
        }
        let source = match attribute("src") {
            Cow::Borrowed("") => attribute("data-src"),
            source => source,
        };
        let source = if source.starts_with("data:") { None } else { self.absolute(&source) };
        let is_pixel = attribute("width") == "1" || attribute("height") == "1";
        match source.filter(|source| !source.is_empty() && !is_pixel) {
            Some(url) => self.writer.verbatim(&format!("![{alt}]({url})")),
            None if !alt.is_empty() => self.writer.verbatim(&format!("![{alt}]()")),
            None => {}
        }
    }

    fn render_input(&mut self, node: NodeId) {
        let attribute = |name: &str| self.tree.attribute(node, name);
        let kind = attribute("type").unwrap_or_default().to_ascii_lowercase();
        let text = match (kind.as_str(), attribute("checked")) {
            ("checkbox", Some(_)) => "[x]".into(),
            ("checkbox", None) => "[ ]".into(),
            ("submit" | "button" | "reset", _) => attribute("value").unwrap_or_default(),
            ("image", _) => attribute("alt").unwrap_or_default(),
            (_, _) => return,
        };
        self.writer.verbatim(&escape_hidden(&text));
    }

    fn render_embedded(&mut self, node: NodeId, tag: Tag) {
        let source = self.tree.attribute(node, "src").and_then(|source| self.absolute(&source));
        let (Some(url), true) = (source, self.is_markdown()) else { return };
        let name = match tag {
            Tag::Video => "video",
            Tag::Audio => "audio",
            _ => "embedded page",
        };
        self.writer.verbatim(&format!("[{name}]({url})"));
    }

    fn render_formula(&mut self, node: NodeId) {
        let tree = self.tree;
        let mut tex = None;
        tree.walk(node, |id| {
            let is_tex = tree.tag(id) == Some(Tag::Annotation)
                && tree.attribute(id, "encoding").is_some_and(|it| it.contains("tex"));
            if is_tex && tex.is_none() {
                tex = Some(id);
            }
            true
        });
        match tex {
            Some(id) => {
                let text = self.plain_text(id);
                self.writer.verbatim(&format!("${}$", text.trim()));
            }
            None => self.render_children(node),
        }
    }
}

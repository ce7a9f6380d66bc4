//! The tree of a page: nodes in one list, connected by indices.

use std::borrow::Cow;

use super::hidden::{HiddenRules, is_hidden};
use super::tag::Tag;
use super::tokens::{MarkupMode, Token, Tokens, attributes};

/// Maximum nesting of elements. Deeper elements become siblings, as in browsers.
const MAX_DEPTH: usize = 512;

/// Maximum number of inline elements that are reopened after the end of a paragraph.
const MAX_REOPENED: usize = 8;

/// Index of a node.
pub(crate) type NodeId = u32;
/// Stands for no node.
const NONE: NodeId = NodeId::MAX;
/// The node that contains everything.
pub(crate) const ROOT: NodeId = 0;

pub(crate) struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    pub(crate) title: Option<String>,
    pub(crate) base: Option<String>,
    /// Number of comments that contain words.
    pub(crate) comments: usize,
    /// Whether elements were nested too deeply.
    pub(crate) is_flattened: bool,
    pub(crate) hidden_rules: HiddenRules,
}

struct Node<'a> {
    content: NodeContent<'a>,
    parent: NodeId,
    first_child: NodeId,
    last_child: NodeId,
    next: NodeId,
}

#[derive(Clone, Copy)]
enum NodeContent<'a> {
    Element { tag: Tag, attributes: &'a str, is_forced_hidden: bool },
    Text { text: &'a str, is_literal: bool },
}

impl<'a> Tree<'a> {
    pub(crate) fn parse(source: &'a str) -> Self {
        let mut builder = TreeBuilder::new(source.len() / 24);
        for token in Tokens::new(source, MarkupMode::Html) {
            builder.add_token(token);
        }
        builder.tree
    }

    pub(crate) fn node_count(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn children(&self, node: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let mut next = self.nodes[node as usize].first_child;
        std::iter::from_fn(move || {
            let id = next;
            (id != NONE).then(|| {
                next = self.nodes[id as usize].next;
                id
            })
        })
    }

    /// Returns the element that contains a node; the root contains itself.
    pub(crate) fn parent(&self, node: NodeId) -> NodeId {
        self.nodes[node as usize].parent
    }

    /// Returns the tag of an element; `None` for text.
    pub(crate) fn tag(&self, node: NodeId) -> Option<Tag> {
        match self.nodes[node as usize].content {
            NodeContent::Element { tag, .. } => Some(tag),
            NodeContent::Text { .. } => None,
        }
    }

    /// Returns the decoded text of a text node.
    pub(crate) fn text(&self, node: NodeId) -> Option<Cow<'a, str>> {
        match self.nodes[node as usize].content {
            NodeContent::Text { text, is_literal: true } => Some(Cow::Borrowed(text)),
            NodeContent::Text { text, is_literal: false } => Some(decode(text)),
            NodeContent::Element { .. } => None,
        }
    }

    /// Returns the decoded value of an attribute.
    pub(crate) fn attribute(&self, node: NodeId, name: &str) -> Option<Cow<'a, str>> {
        let NodeContent::Element { attributes: text, .. } = self.nodes[node as usize].content
        else {
            return None;
        };
        if text.is_empty() {
            return None;
        }
        let found = attributes(text).find(|attribute| attribute.name.eq_ignore_ascii_case(name))?;
        Some(htmlize::unescape_attribute(found.value))
    }

    /// Whether an element has a class.
    pub(crate) fn has_class(&self, node: NodeId, wanted: impl Fn(&str) -> bool) -> bool {
        self.attribute(node, "class")
            .is_some_and(|classes| classes.split_ascii_whitespace().any(wanted))
    }

    /// Whether an element is not visible in a browser.
    pub(crate) fn is_hidden(&self, node: NodeId) -> bool {
        match self.nodes[node as usize].content {
            NodeContent::Element { tag, attributes, is_forced_hidden } => {
                is_forced_hidden || is_hidden(tag, attributes, &self.hidden_rules)
            }
            NodeContent::Text { .. } => false,
        }
    }

    /// Calls `visit` with every node below a node, in order. Elements for which it returns `false` are not entered.
    pub(crate) fn walk(&self, node: NodeId, mut visit: impl FnMut(NodeId) -> bool) {
        let mut id = self.nodes[node as usize].first_child;
        while id != NONE {
            let child = self.nodes[id as usize].first_child;
            if visit(id) && child != NONE {
                id = child;
                continue;
            }
            while self.nodes[id as usize].next == NONE {
                id = self.nodes[id as usize].parent;
                if id == node {
                    return;
                }
            }
            id = self.nodes[id as usize].next;
        }
    }

    /// Whether there is text below a node that is not only whitespace.
    pub(crate) fn has_text(&self, node: NodeId) -> bool {
        let mut found = false;
        self.walk(node, |id| {
            if let NodeContent::Text { text, .. } = self.nodes[id as usize].content {
                found |= text.bytes().any(|byte| !byte.is_ascii_whitespace());
            }
            !found && !matches!(self.tag(id), Some(Tag::Script | Tag::Style))
        });
        found
    }

    /// Whether an element of a certain kind is below a node.
    pub(crate) fn contains(&self, node: NodeId, wanted: impl Fn(Tag) -> bool) -> bool {
        let mut found = false;
        self.walk(node, |id| {
            found |= self.tag(id).is_some_and(&wanted);
            !found
        });
        found
    }
}

/// Decodes character references.
pub(crate) fn decode(text: &str) -> Cow<'_, str> {
    match memchr::memchr(b'&', text.as_bytes()) {
        Some(_) => htmlize::unescape(text),
        None => Cow::Borrowed(text),
    }
}

struct TreeBuilder<'a> {
    tree: Tree<'a>,
    /// The open elements, outermost first.
    open: Vec<OpenElement<'a>>,
}

#[derive(Clone, Copy)]
struct OpenElement<'a> {
    id: NodeId,
    tag: Tag,
    name: &'a str,
}

impl<'a> TreeBuilder<'a> {
    fn new(capacity: usize) -> Self {
        let root = Node {
            content: NodeContent::Element {
                tag: Tag::Html,
                attributes: "",
                is_forced_hidden: false,
            },
            parent: ROOT,
            first_child: NONE,
            last_child: NONE,
            next: NONE,
        };
        let mut nodes = Vec::with_capacity(capacity + 1);
        nodes.push(root);
        let tree = Tree {
            nodes,
            title: None,
            base: None,
            comments: 0,
            is_flattened: false,
            hidden_rules: HiddenRules::default(),
        };
        Self { tree, open: vec![OpenElement { id: ROOT, tag: Tag::Html, name: "html" }] }
    }

    /// Returns the innermost open element. The root is never closed.
    fn top(&self) -> OpenElement<'a> {
        let root = OpenElement { id: ROOT, tag: Tag::Html, name: "html" };
        self.open.last().copied().unwrap_or(root)
    }

    fn add_token(&mut self, token: Token<'a>) {
        match token {
            Token::Text(text) => self.add_text(text, false),
            Token::RawText(text) => self.add_text(text, true),
            Token::Comment(text) => {
                let has_word = text.split_ascii_whitespace().any(|word| {
                    word.len() > 2 && word.bytes().all(|byte| byte.is_ascii_alphabetic())
                });
                self.tree.comments += usize::from(has_word);
            }
            Token::Start { name, tag, attributes, is_self_closing } => {
                self.start_element((name, tag), attributes, is_self_closing)
            }
            Token::End { name } => self.end_element(Tag::of(name), name),
        }
    }

    fn add_text(&mut self, text: &'a str, is_literal: bool) {
        match self.top().tag {
            Tag::Style => self.tree.hidden_rules.read(text),
            Tag::Title if self.tree.title.is_none() => {
                let title: Vec<String> =
                    decode(text).split_whitespace().take(50).map(String::from).collect();
                self.tree.title = Some(title.join(" ")).filter(|title| !title.is_empty());
            }
            _ => {}
        }
        self.append(NodeContent::Text { text, is_literal });
    }

    fn append(&mut self, content: NodeContent<'a>) -> NodeId {
        let parent = self.top().id;
        let id = self.tree.nodes.len() as NodeId;
        let node = Node { content, parent, first_child: NONE, last_child: NONE, next: NONE };
        self.tree.nodes.push(node);
        let parent = &mut self.tree.nodes[parent as usize];
        let previous = std::mem::replace(&mut parent.last_child, id);
        match previous {
            NONE => parent.first_child = id,
            previous => self.tree.nodes[previous as usize].next = id,
        }
        id
    }

    fn start_element(
        &mut self,
        (name, tag): (&'a str, Tag),
        attributes: &'a str,
        is_self_closing: bool,
    ) {
        match tag {
            // These elements exist already. Only the start of the body has an effect.
            Tag::Html | Tag::Body | Tag::Head => return self.close_head_before(tag),
            Tag::Base => self.read_base(attributes),
            _ => {}
        }
        self.close_implied(tag);
        let is_forced_hidden = self.end_innermost_if_too_deep();
        let id = self.append(NodeContent::Element { tag, attributes, is_forced_hidden });
        // A slash ends only foreign elements, such as those of SVG.
        let is_foreign = || self.open.iter().rev().any(|it| matches!(it.tag, Tag::Svg | Tag::Math));
        if !tag.is_void()
            && !(is_self_closing && (matches!(tag, Tag::Svg | Tag::Math) || is_foreign()))
        {
            self.open.push(OpenElement { id, tag, name });
        }
    }

    /// Ends the innermost element if the nesting is too deep. Returns whether that element was hidden; if so, the next
    /// one must be hidden too.
    fn end_innermost_if_too_deep(&mut self) -> bool {
        if self.open.len() < MAX_DEPTH {
            return false;
        }
        self.tree.is_flattened = true;
        let id = self.top().id;
        self.open.pop();
        self.tree.is_hidden(id)
    }

    fn close_head_before(&mut self, tag: Tag) {
        if tag == Tag::Body {
            self.open.retain(|it| it.tag != Tag::Head);
        }
    }

    fn read_base(&mut self, text: &str) {
        let href = attributes(text).find(|attribute| attribute.name.eq_ignore_ascii_case("href"));
        if let (Some(href), None) = (href, &self.tree.base) {
            self.tree.base = Some(htmlize::unescape_attribute(href.value).into_owned());
        }
    }

    /// Ends elements whose end tags are optional before this start tag.
    fn close_implied(&mut self, tag: Tag) {
        if tag.closes_paragraph() {
            self.close_paragraph();
        }
        let is_list =
            |it: Tag| it.is_boundary() || matches!(it, Tag::Ul | Tag::Ol | Tag::Menu | Tag::Dl);
        let is_table = |it: Tag| it == Tag::Table || it == Tag::Template;
        match tag {
            Tag::Li => self.close_within(|it| it == Tag::Li, is_list),
            Tag::Dt | Tag::Dd => self.close_within(|it| matches!(it, Tag::Dt | Tag::Dd), is_list),
            Tag::OptionItem => {
                self.close_within(|it| it == Tag::OptionItem, |it| it != Tag::OptionItem)
            }
            Tag::Optgroup => self.close_within(
                |it| matches!(it, Tag::OptionItem | Tag::Optgroup),
                |it| !matches!(it, Tag::OptionItem | Tag::Optgroup),
            ),
            Tag::Td | Tag::Th => {
                self.close_within(|it| matches!(it, Tag::Td | Tag::Th | Tag::Caption), is_table)
            }
            Tag::Tr => self.close_within(|it| matches!(it, Tag::Tr | Tag::Caption), is_table),
            Tag::Tbody | Tag::Thead | Tag::Tfoot => self.close_within(
                |it| matches!(it, Tag::Tbody | Tag::Thead | Tag::Tfoot | Tag::Caption),
                is_table,
            ),
            _ if tag.heading_level().is_some() && self.top().tag.heading_level().is_some() => {
                self.open.pop();
            }
            _ => {}
        }
    }

    /// Ends an open paragraph. Links and other inline elements that are still open are reopened after it.
    fn close_paragraph(&mut self) {
        if !self.has_open_paragraph() {
            return;
        }
        let Some(at) = self.open.iter().rposition(|it| it.tag == Tag::P) else { return };
        // The paragraph itself is never reopened. Usually nothing else is open in it, and an empty list is not
        // allocated.
        let closed: Vec<OpenElement<'a>> =
            self.open.drain(at..).filter(|it| it.tag.is_formatting()).collect();
        for element in closed.iter().take(MAX_REOPENED) {
            let NodeContent::Element { attributes, .. } =
                self.tree.nodes[element.id as usize].content
            else {
                continue;
            };
            let (tag, is_forced_hidden) = (element.tag, self.end_innermost_if_too_deep());
            let id = self.append(NodeContent::Element { tag, attributes, is_forced_hidden });
            self.open.push(OpenElement { id, ..*element });
        }
    }

    /// Ends the innermost element that is wanted, and everything inside it, unless a boundary comes first.
    fn close_within(&mut self, wanted: impl Fn(Tag) -> bool, boundary: impl Fn(Tag) -> bool) {
        for at in (1..self.open.len()).rev() {
            let tag = self.open[at].tag;
            if wanted(tag) {
                self.open.truncate(at);
                return;
            }
            if boundary(tag) {
                return;
            }
        }
    }

    fn end_element(&mut self, tag: Tag, name: &str) {
        match tag {
            Tag::Br => {
                self.append(NodeContent::Element { tag, attributes: "", is_forced_hidden: false });
            }
            Tag::Html | Tag::Body => {}
            Tag::Head => self.open.retain(|it| it.tag != Tag::Head),
            // The end of a paragraph that is not open is an empty paragraph, which separates words.
            Tag::P if !self.has_open_paragraph() => {
                self.append(NodeContent::Element { tag, attributes: "", is_forced_hidden: false });
            }
            Tag::Table => self.close_within(|it| it == Tag::Table, |it| it == Tag::Template),
            Tag::Tr | Tag::Tbody | Tag::Thead | Tag::Tfoot | Tag::Td | Tag::Th | Tag::Caption => {
                self.close_within(|it| it == tag, |it| matches!(it, Tag::Table | Tag::Template));
            }
            Tag::Li => self.close_within(
                |it| it == tag,
                |it| it.is_boundary() || matches!(it, Tag::Ul | Tag::Ol),
            ),
            _ if tag.heading_level().is_some() => {
                self.close_within(|it| it.heading_level().is_some(), Tag::is_boundary);
            }
            Tag::Other => self.end_unknown_element(name),
            _ if tag.is_special() => self.close_within(|it| it == tag, Tag::is_boundary),
            _ => self.close_within(|it| it == tag, Tag::is_special),
        }
    }

    fn has_open_paragraph(&self) -> bool {
        let inner = self.open.iter().rev().take_while(|it| !it.tag.is_boundary());
        inner.into_iter().any(|it| it.tag == Tag::P)
    }

    /// Ends an element that the converter does not know.
    fn end_unknown_element(&mut self, name: &str) {
        for at in (1..self.open.len()).rev() {
            let element = self.open[at];
            if element.tag == Tag::Other && element.name.eq_ignore_ascii_case(name) {
                self.open.truncate(at);
                return;
            }
            if element.tag.is_special() {
                return;
            }
        }
    }
}

//! The elements that the converter knows.

macro_rules! tags {
    ($($name:ident $text:literal)*) => {
        /// The name of an element.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Tag { $($name,)* Other }

        impl Tag {
            /// Returns the tag of a name in upper or lower case.
            pub(crate) fn of(name: &str) -> Tag {
                let mut lower = [0_u8; 16];
                let Some(buffer) = lower.get_mut(..name.len()) else { return Tag::Other };
                buffer.copy_from_slice(name.as_bytes());
                buffer.make_ascii_lowercase();
                match std::str::from_utf8(buffer) {
                    $(Ok($text) => Tag::$name,)*
                    Ok(_) | Err(_) => Tag::Other,
                }
            }
        }
    };
}

tags! {
    A "a" Abbr "abbr" Address "address" Annotation "annotation" Article "article" Aside "aside" Audio "audio" B "b"
    Base "base" Area "area" Blockquote "blockquote" Body "body" Br "br" Button "button" Canvas "canvas"
    Caption "caption" Center "center" Cite "cite" Code "code" Col "col" Colgroup "colgroup" Dd "dd" Del "del"
    Details "details" Dialog "dialog" Div "div" Dl "dl" Dt "dt" Em "em" Embed "embed" Fieldset "fieldset"
    Figcaption "figcaption" Figure "figure" Font "font" Footer "footer" Form "form" H1 "h1" H2 "h2" H3 "h3" H4 "h4"
    H5 "h5" H6 "h6" Head "head" Header "header" Hgroup "hgroup" Hr "hr" Html "html" I "i" Iframe "iframe" Img "img"
    Input "input" Ins "ins" Kbd "kbd" Label "label" Legend "legend" Li "li" Link "link" Main "main" Mark "mark"
    Math "math" Menu "menu" Meta "meta" Nav "nav" Noembed "noembed" Noframes "noframes" Noscript "noscript"
    Object "object" Ol "ol" Optgroup "optgroup" OptionItem "option" P "p" Param "param" Picture "picture" Pre "pre"
    Q "q" S "s" Samp "samp" Script "script" Search "search" Section "section" Select "select" Small "small"
    Source "source" Span "span" Strike "strike" Strong "strong" Style "style" Sub "sub" Summary "summary" Sup "sup"
    Svg "svg" Table "table" Tbody "tbody" Td "td" Template "template" Textarea "textarea" Tfoot "tfoot" Th "th"
    Thead "thead" Title "title" Tr "tr" Track "track" Tt "tt" U "u" Ul "ul" Var "var" Video "video" Wbr "wbr" Xmp "xmp"
}

impl Tag {
    /// Whether the element has no content and no end tag.
    pub(crate) fn is_void(self) -> bool {
        matches!(
            self,
            Tag::Area
                | Tag::Base
                | Tag::Br
                | Tag::Col
                | Tag::Embed
                | Tag::Hr
                | Tag::Img
                | Tag::Input
                | Tag::Link
                | Tag::Meta
                | Tag::Param
                | Tag::Source
                | Tag::Track
                | Tag::Wbr
        )
    }

    /// Whether everything up to the end tag is text.
    pub(crate) fn is_raw(self) -> bool {
        matches!(
            self,
            Tag::Script
                | Tag::Style
                | Tag::Textarea
                | Tag::Title
                | Tag::Iframe
                | Tag::Noembed
                | Tag::Noframes
                | Tag::Xmp
        )
    }

    /// Whether the element starts on a line of its own.
    pub(crate) fn is_block(self) -> bool {
        matches!(
            self,
            Tag::Address
                | Tag::Article
                | Tag::Aside
                | Tag::Blockquote
                | Tag::Body
                | Tag::Caption
                | Tag::Center
                | Tag::Dd
                | Tag::Details
                | Tag::Dialog
                | Tag::Div
                | Tag::Dl
                | Tag::Dt
                | Tag::Fieldset
                | Tag::Figcaption
                | Tag::Figure
                | Tag::Footer
                | Tag::Form
                | Tag::Header
                | Tag::Hgroup
                | Tag::Hr
                | Tag::Html
                | Tag::Legend
                | Tag::Li
                | Tag::Main
                | Tag::Menu
                | Tag::Nav
                | Tag::Ol
                | Tag::Optgroup
                | Tag::OptionItem
                | Tag::P
                | Tag::Pre
                | Tag::Search
                | Tag::Section
                | Tag::Summary
                | Tag::Table
                | Tag::Tbody
                | Tag::Td
                | Tag::Tfoot
                | Tag::Th
                | Tag::Thead
                | Tag::Tr
                | Tag::Ul
                | Tag::Xmp
        ) || self.heading_level().is_some()
    }

    pub(crate) fn heading_level(self) -> Option<usize> {
        match self {
            Tag::H1 => Some(1),
            Tag::H2 => Some(2),
            Tag::H3 => Some(3),
            Tag::H4 => Some(4),
            Tag::H5 => Some(5),
            Tag::H6 => Some(6),
            _ => None,
        }
    }

    /// Whether a start tag ends an open paragraph.
    pub(crate) fn closes_paragraph(self) -> bool {
        let keeps_paragraph_open = matches!(
            self,
            Tag::Body
                | Tag::Caption
                | Tag::Html
                | Tag::Legend
                | Tag::Optgroup
                | Tag::OptionItem
                | Tag::Tbody
                | Tag::Td
                | Tag::Tfoot
                | Tag::Th
                | Tag::Thead
                | Tag::Tr
        );
        self.is_block() && !keeps_paragraph_open
    }

    /// Whether the element is reopened after the end of a paragraph if it is still open then.
    pub(crate) fn is_formatting(self) -> bool {
        matches!(
            self,
            Tag::A
                | Tag::B
                | Tag::Code
                | Tag::Em
                | Tag::Font
                | Tag::I
                | Tag::S
                | Tag::Small
                | Tag::Strike
                | Tag::Strong
                | Tag::Tt
                | Tag::U
        )
    }

    /// Whether an end tag inside the element cannot end an element outside of it.
    pub(crate) fn is_boundary(self) -> bool {
        matches!(
            self,
            Tag::Html | Tag::Table | Tag::Td | Tag::Th | Tag::Caption | Tag::Template | Tag::Object
        )
    }

    /// Whether the element is "special" in the sense of the standard: end tags of inline elements do not cross it.
    pub(crate) fn is_special(self) -> bool {
        self.is_block()
            || self.is_boundary()
            || matches!(self, Tag::Button | Tag::Select | Tag::Head)
    }
}

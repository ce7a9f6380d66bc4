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
                for (lower, byte) in buffer.iter_mut().zip(name.bytes()) {
                    *lower = byte.to_ascii_lowercase();
                }
                // Byte strings, because a match on `str` patterns compares them one after another.
                match &*buffer {
                    $($text => Tag::$name,)*
                    _ => Tag::Other,
                }
            }
        }
    };
}

tags! {
    A b"a" Abbr b"abbr" Address b"address" Annotation b"annotation" Article b"article" Aside b"aside" Audio b"audio" B b"b"
    Base b"base" Area b"area" Blockquote b"blockquote" Body b"body" Br b"br" Button b"button" Canvas b"canvas"
    Caption b"caption" Center b"center" Cite b"cite" Code b"code" Col b"col" Colgroup b"colgroup" Dd b"dd" Del b"del"
    Details b"details" Dialog b"dialog" Div b"div" Dl b"dl" Dt b"dt" Em b"em" Embed b"embed" Fieldset b"fieldset"
    Figcaption b"figcaption" Figure b"figure" Font b"font" Footer b"footer" Form b"form" H1 b"h1" H2 b"h2" H3 b"h3" H4 b"h4"
    H5 b"h5" H6 b"h6" Head b"head" Header b"header" Hgroup b"hgroup" Hr b"hr" Html b"html" I b"i" Iframe b"iframe" Img b"img"
    Input b"input" Ins b"ins" Kbd b"kbd" Label b"label" Legend b"legend" Li b"li" Link b"link" Main b"main" Mark b"mark"
    Math b"math" Menu b"menu" Meta b"meta" Nav b"nav" Noembed b"noembed" Noframes b"noframes" Noscript b"noscript"
    Object b"object" Ol b"ol" Optgroup b"optgroup" OptionItem b"option" P b"p" Param b"param" Picture b"picture" Pre b"pre"
    Q b"q" S b"s" Samp b"samp" Script b"script" Search b"search" Section b"section" Select b"select" Small b"small"
    Source b"source" Span b"span" Strike b"strike" Strong b"strong" Style b"style" Sub b"sub" Summary b"summary" Sup b"sup"
    Svg b"svg" Table b"table" Tbody b"tbody" Td b"td" Template b"template" Textarea b"textarea" Tfoot b"tfoot" Th b"th"
    Thead b"thead" Title b"title" Tr b"tr" Track b"track" Tt b"tt" U b"u" Ul b"ul" Var b"var" Video b"video" Wbr b"wbr" Xmp b"xmp"
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

    /// Whether the element, if it is not closed when a paragraph ends, continues after the paragraph.
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

    /// Whether an end tag inside this element cannot close an element outside it.
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

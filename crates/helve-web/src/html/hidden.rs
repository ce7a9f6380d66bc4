//! Which elements a browser does not show because the page itself says so.

use std::collections::HashSet;

use super::tag::Tag;
use super::tokens::attributes;

/// Maximum size of a style sheet that is read, and number of names that are kept.
const MAX_SHEET: usize = 256 << 10;
const MAX_NAMES: usize = 1000;

/// Classes and ids that the page's own style sheets hide.
#[derive(Clone, Debug, Default)]
pub(crate) struct HiddenRules {
    classes: HashSet<String>,
    ids: HashSet<String>,
}

impl HiddenRules {
    /// Reads rules with simple selectors, such as `.x { display: none }`, from a style sheet.
    pub(super) fn read(&mut self, sheet: &str) {
        if sheet.len() > MAX_SHEET {
            return;
        }
        let mut rest = sheet;
        while let Some(open) = rest.find('{') {
            let selectors = rest[..open].rsplit(['}', ';']).next().unwrap_or_default();
            let selectors = selectors.rsplit("*/").next().unwrap_or_default().trim();
            // Rules inside `@media` depend on the screen.
            let end = if selectors.starts_with('@') {
                block_end(rest, open)
            } else {
                rest[open..].find('}').map(|at| open + at)
            };
            let Some(end) = end else { return };
            if !selectors.starts_with('@') {
                self.add(selectors, hides(&rest[open + 1..end]));
            }
            rest = &rest[end + 1..];
        }
    }

    fn add(&mut self, selectors: &str, hides: bool) {
        for selector in selectors.split(',').map(str::trim) {
            let is_name = |name: &str| {
                !name.is_empty()
                    && name
                        .bytes()
                        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
            };
            let (names, name) = match (selector.strip_prefix('.'), selector.strip_prefix('#')) {
                (Some(name), _) if is_name(name) => (&mut self.classes, name),
                (_, Some(name)) if is_name(name) => (&mut self.ids, name),
                (_, _) => continue,
            };
            if hides && names.len() < MAX_NAMES {
                names.insert(name.into());
            } else if !hides {
                names.remove(name);
            }
        }
    }
}

/// Returns the end of the block that starts at `open`, with the blocks inside it.
fn block_end(text: &str, open: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for (at, byte) in text.bytes().enumerate().skip(open) {
        match byte {
            b'{' => depth += 1,
            b'}' if depth <= 1 => return Some(at),
            b'}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// Whether an element is hidden by its attributes or by a rule.
pub(super) fn is_hidden(tag: Tag, text: &str, rules: &HiddenRules) -> bool {
    let mut is_open = false;
    for attribute in attributes(text) {
        let is = |name: &str| attribute.name.eq_ignore_ascii_case(name);
        let hides_itself = match attribute.name.len() {
            2 if is("id") => !rules.ids.is_empty() && rules.ids.contains(attribute.value),
            4 if is("open") => {
                is_open = true;
                false
            }
            4 if is("type") => tag == Tag::Input && attribute.value.eq_ignore_ascii_case("hidden"),
            5 if is("style") => hides(attribute.value),
            5 if is("class") => attribute
                .value
                .split_ascii_whitespace()
                .any(|class| is_hiding_class(class) || rules.classes.contains(class)),
            6 if is("hidden") => true,
            _ => false,
        };
        if hides_itself {
            return true;
        }
    }
    tag == Tag::Dialog && !is_open
}

/// Whether a class is a usual name for text that only screen readers read.
fn is_hiding_class(class: &str) -> bool {
    matches!(
        class,
        "sr-only"
            | "visually-hidden"
            | "visuallyhidden"
            | "screen-reader-text"
            | "screenreader-only"
    )
}

/// Whether declarations of a style make an element invisible.
fn hides(style: &str) -> bool {
    let (mut is_clipped, mut has_no_size, mut is_far_away) = (false, false, false);
    for declaration in style.split(';') {
        let Some((name, value)) = declaration.split_once(':') else { continue };
        let (name, value) = (name.trim().to_ascii_lowercase(), value.trim().to_ascii_lowercase());
        let value = value.trim_end_matches("!important").trim_end();
        let number = leading_number(value);
        match name.as_str() {
            "display" if value == "none" => return true,
            "visibility" if matches!(value, "hidden" | "collapse") => return true,
            "content-visibility" if value == "hidden" => return true,
            "opacity" if number.is_some_and(|number| number < 0.05) => return true,
            "font-size" if number.is_some_and(|number| number < 2.0) && !value.ends_with("em") => {
                return true;
            }
            "font-size" if number == Some(0.0) => return true,
            "color" if value == "transparent" => return true,
            "transform"
                if value.replace(' ', "").starts_with("scale(0") && !value.contains("0.") =>
            {
                return true;
            }
            "clip"
                if value.replace(' ', "").starts_with("rect(0")
                    || value.starts_with("rect(1px") =>
            {
                return true;
            }
            "clip-path"
                if value.starts_with("inset(50%")
                    || value.starts_with("inset(100%")
                    || value.starts_with("circle(0") =>
            {
                return true;
            }
            "text-indent" | "left" | "right" | "top" | "margin-left" | "margin-top" => {
                is_far_away |= number.is_some_and(|number| number <= -900.0);
            }
            "overflow" | "overflow-x" | "overflow-y" => {
                is_clipped |= matches!(value, "hidden" | "clip")
            }
            "width" | "height" | "max-height" | "max-width" => {
                has_no_size |= number.is_some_and(|number| number <= 1.0)
                    && (number == Some(0.0) || value.ends_with("px"));
            }
            _ => {}
        }
    }
    is_far_away || is_clipped && has_no_size
}

fn leading_number(value: &str) -> Option<f64> {
    let end = value.find(|c: char| !c.is_ascii_digit() && !matches!(c, '-' | '.' | '+'));
    value[..end.unwrap_or(value.len())].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hidden_elements_are_recognized() {
        let mut rules = HiddenRules::default();
        rules.read("a{x:y} .gone, #lost { display : NONE !important } .back{display:none}.back{display:block}");
        rules.read("@media print { .printed { display: none } } /* .c */ .tiny{font-size:0px}");
        for text in [
            "hidden",
            "hidden=''",
            " style=\"display:none\"",
            "style='DISPLAY: None !important'",
            "style='visibility:hidden'",
            "style='opacity:0'",
            "style=\"font-size:0\"",
            "style='font-size:1px'",
            "style='position:absolute;left:-9999px'",
            "style='text-indent:-9999px'",
            "style='width:0;height:0;overflow:hidden'",
            "style='height:1px;overflow:hidden'",
            "style='clip:rect(0,0,0,0)'",
            "style='clip-path: inset(50%)'",
            "style='transform: scale(0)'",
            "style='color:transparent'",
            "class='a gone b'",
            "id=lost",
            "class=tiny",
            "class=sr-only",
        ] {
            assert!(is_hidden(Tag::Div, text, &rules), "{text}");
        }
        for text in [
            "",
            "class='hidden-phone'",
            "style='display:block'",
            "style='opacity:0.5'",
            "style='font-size:1em'",
            "style='font-size:0.9em'",
            "style='width:0'",
            "style='overflow:hidden'",
            "style='left:-20px'",
            "class=back",
            "class=printed",
            "data-hidden=1",
            "aria-hidden=true",
            "style='transform:scale(0.5)'",
            "title='hidden'",
        ] {
            assert!(!is_hidden(Tag::Div, text, &rules), "{text}");
        }
        assert!(is_hidden(Tag::Dialog, "", &rules) && !is_hidden(Tag::Dialog, "open", &rules));
        assert!(
            is_hidden(Tag::Input, "type=hidden", &rules)
                && !is_hidden(Tag::Input, "type=text", &rules)
        );
    }
}

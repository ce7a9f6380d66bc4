//! Draws terminal output as an SVG image: a dark window with monospaced text, without scripts or embedded fonts.

/// Maximum number of characters of a line. Longer lines are wrapped.
const COLUMNS: usize = 100;
const FONT_SIZE: f64 = 14.0;
/// The width of a character in nearly all monospaced fonts, as a share of the font size.
const ADVANCE: f64 = 0.602;
const LINE_HEIGHT: f64 = 19.0;
const PADDING: f64 = 18.0;
const TITLE_BAR: f64 = 34.0;

const BACKGROUND: &str = "#161b22";
const FOREGROUND: &str = "#d0d7de";
const FONTS: &str = "ui-monospace, 'SF Mono', Menlo, Consolas, 'DejaVu Sans Mono', monospace";
const BUTTONS: [&str; 3] = ["#ff5f57", "#febc2e", "#28c840"];

/// The style of a character, set by the escape sequences before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct TextStyle {
    colour: Option<&'static str>,
    bold: bool,
    dim: bool,
}

impl TextStyle {
    /// Applies the parameters of a sequence `ESC [ … m`. Ignores unknown parameters.
    fn apply(&mut self, parameters: &str) {
        for parameter in parameters.split(';') {
            match parameter {
                "" | "0" => *self = TextStyle::default(),
                "1" => self.bold = true,
                "2" => self.dim = true,
                "31" => self.colour = Some("#ff7b72"),
                "32" => self.colour = Some("#56d364"),
                "33" => self.colour = Some("#e3b341"),
                "36" => self.colour = Some("#76e3ea"),
                _ => {}
            }
        }
    }

    fn attributes(self) -> String {
        let mut attributes = String::new();
        if let Some(colour) = self.colour {
            attributes.push_str(&format!(" fill=\"{colour}\""));
        } else if self.dim {
            attributes.push_str(" fill=\"#8b949e\"");
        }
        if self.bold {
            attributes.push_str(" font-weight=\"bold\"");
        }
        attributes
    }
}

type StyledLine = Vec<(char, TextStyle)>;

/// Draws text with colour sequences. The same text always gives the same image.
pub(super) fn render(title: &str, text: &str) -> String {
    let lines = styled_lines(text);
    let columns = lines.iter().map(Vec::len).max().unwrap_or_default();
    let width = (columns as f64 * FONT_SIZE * ADVANCE + 2.0 * PADDING).ceil();
    let height = TITLE_BAR + lines.len() as f64 * LINE_HEIGHT + PADDING;
    let title = escape(title);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" viewBox=\"0 0 {width} {height}\" role=\"img\">\n\
         <title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"9\" fill=\"{BACKGROUND}\"/>\n"
    );
    for (index, colour) in BUTTONS.iter().enumerate() {
        let x = PADDING + 4.0 + index as f64 * 20.0;
        svg.push_str(&format!("<circle cx=\"{x}\" cy=\"17\" r=\"6\" fill=\"{colour}\"/>\n"));
    }
    svg.push_str(&format!(
        "<g font-family=\"{FONTS}\" font-size=\"{FONT_SIZE}\" fill=\"{FOREGROUND}\">\n"
    ));
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let y = TITLE_BAR + index as f64 * LINE_HEIGHT + FONT_SIZE;
        let spans = spans(line);
        svg.push_str(&format!(
            "<text x=\"{PADDING}\" y=\"{y}\" xml:space=\"preserve\">{spans}</text>\n"
        ));
    }
    svg.push_str("</g>\n</svg>\n");
    svg
}

/// Splits text into lines of at most [`COLUMNS`] characters with their styles.
fn styled_lines(text: &str) -> Vec<StyledLine> {
    let mut style = TextStyle::default();
    let mut lines = Vec::new();
    for line in text.lines() {
        let mut characters = StyledLine::new();
        let mut rest = line;
        while let Some((before, after)) = rest.split_once("\x1b[") {
            characters.extend(before.chars().map(|character| (character, style)));
            let end = after.find(|c: char| c.is_ascii_alphabetic()).unwrap_or(after.len());
            let (parameters, after) = after.split_at(end);
            style.apply(parameters);
            rest = after.get(1..).unwrap_or_default();
        }
        characters.extend(rest.chars().map(|character| (character, style)));
        if characters.is_empty() {
            lines.push(characters);
        } else {
            lines.extend(characters.chunks(COLUMNS).map(<[_]>::to_vec));
        }
    }
    lines
}

/// Returns a line as text, with one `tspan` for each run of characters that have a style.
fn spans(line: &StyledLine) -> String {
    let runs = line.chunk_by(|(_, left), (_, right)| left == right);
    let span = |run: &[(char, TextStyle)]| {
        let text = escape(&run.iter().map(|(character, _)| character).collect::<String>());
        let attributes = run.first().map(|(_, style)| style.attributes()).unwrap_or_default();
        if attributes.is_empty() { text } else { format!("<tspan{attributes}>{text}</tspan>") }
    };
    runs.map(span).collect()
}

/// Escapes text for XML. Characters that XML cannot represent are replaced.
fn escape(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            control if control.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped_for_xml() {
        let svg = render("a & b", "\x1b[31mif a < b && c > \"d\"\x07\x1b[0m");
        assert!(svg.contains("<title>a &amp; b</title>"), "{svg}");
        let line =
            "<tspan fill=\"#ff7b72\">if a &lt; b &amp;&amp; c &gt; &quot;d&quot;\u{fffd}</tspan>";
        assert!(svg.contains(line), "{svg}");
        assert!(!svg.contains('\x1b'), "{svg}");
    }

    #[test]
    fn styles_end_where_the_text_resets_them() {
        let line = |text: &str| styled_lines(text).iter().map(spans).collect::<Vec<_>>();
        assert_eq!(line("a\x1b[1mb\x1b[0mc"), ["a<tspan font-weight=\"bold\">b</tspan>c"]);
        assert_eq!(
            line("\x1b[2ma\n\nb"),
            ["<tspan fill=\"#8b949e\">a</tspan>", "", "<tspan fill=\"#8b949e\">b</tspan>"]
        );
    }

    #[test]
    fn long_lines_are_wrapped_and_rendering_is_deterministic() {
        let text = "x".repeat(COLUMNS + 1);
        let lengths: Vec<_> = styled_lines(&text).iter().map(Vec::len).collect();
        assert_eq!(lengths, [COLUMNS, 1]);
        assert_eq!(render("title", &text), render("title", &text));
    }
}

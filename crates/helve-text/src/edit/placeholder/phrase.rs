//! Recognizes the phrases with which models say that they left code out.

use crate::edit::text_kind::TextKind;

/// How certain it is that a line is a placeholder rather than an ordinary comment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Certainty {
    Certain,
    /// An ordinary comment could have these words.
    Likely,
    /// An ordinary comment before other new code could have these words.
    IfAlone,
    /// The line is a statement of the language, such as `...` in Python.
    Possible,
}

/// Maximum length of a placeholder in bytes. A longer line is an ordinary sentence.
const MAX_BYTES: usize = 160;
/// Maximum number of words in a placeholder.
const MAX_WORDS: usize = 12;
/// Maximum number of words besides those of [`STATE`] and [`FILLER`], such as the name of a function.
const MAX_NAMES: usize = 3;

/// Words that say that something is left out or unchanged.
const STATE: &[&str] = &[
    "abbreviated",
    "before",
    "continue",
    "continued",
    "continues",
    "elided",
    "else",
    "everything",
    "existing",
    "identical",
    "intact",
    "keep",
    "kept",
    "leave",
    "omitted",
    "original",
    "other",
    "others",
    "previous",
    "previously",
    "remain",
    "remainder",
    "remaining",
    "remains",
    "rest",
    "same",
    "shortened",
    "skipped",
    "snip",
    "snipped",
    "stay",
    "stays",
    "truncated",
    "unchanged",
    "unmodified",
    "untouched",
];
/// Words that name the code left out, as in `remaining methods`. A placeholder without an ellipsis needs one of them.
const SUBJECT: &[&str] = &[
    "all",
    "else",
    "everything",
    "existing",
    "original",
    "other",
    "others",
    "previous",
    "remainder",
    "remaining",
    "rest",
];
/// Words that say what happened to the code left out, as in `remaining methods unchanged`.
const PREDICATE: &[&str] = &[
    "before",
    "changed",
    "changes",
    "continue",
    "continues",
    "elided",
    "goes",
    "here",
    "identical",
    "intact",
    "is",
    "kept",
    "modified",
    "omitted",
    "remain",
    "remains",
    "same",
    "skipped",
    "stay",
    "stays",
    "truncated",
    "unchanged",
    "unmodified",
    "untouched",
];
/// Words that are common in placeholders, but that alone do not make a line a placeholder.
const FILLER: &[&str] = &[
    "a",
    "above",
    "after",
    "all",
    "also",
    "and",
    "are",
    "around",
    "as",
    "be",
    "below",
    "block",
    "body",
    "brevity",
    "change",
    "changed",
    "changes",
    "class",
    "classes",
    "code",
    "component",
    "components",
    "config",
    "configuration",
    "content",
    "contents",
    "declarations",
    "definition",
    "definitions",
    "document",
    "entries",
    "etc",
    "exactly",
    "exports",
    "fields",
    "file",
    "for",
    "from",
    "function",
    "functionality",
    "functions",
    "goes",
    "handlers",
    "here",
    "html",
    "implementation",
    "implementations",
    "import",
    "imports",
    "in",
    "is",
    "it",
    "its",
    "jsx",
    "just",
    "line",
    "lines",
    "logic",
    "markup",
    "members",
    "method",
    "methods",
    "modified",
    "module",
    "more",
    "needed",
    "no",
    "not",
    "of",
    "or",
    "page",
    "part",
    "parts",
    "properties",
    "query",
    "required",
    "routes",
    "rules",
    "schema",
    "script",
    "section",
    "sections",
    "setup",
    "statements",
    "stuff",
    "styles",
    "test",
    "tests",
    "text",
    "that",
    "the",
    "this",
    "to",
    "type",
    "types",
    "up",
    "variables",
    "was",
    "were",
    "will",
    "with",
    "your",
];
/// Words before a placeholder that is to be replaced later.
const MARKS: &[&str] = &["fixme", "note", "todo"];
/// Words that ask somebody to put the code left out there.
const INSERTING: &[&str] = &["add", "copy", "include", "insert", "paste", "put", "restore"];
/// Words that ask somebody to leave code as it is.
const KEEPING: &[&str] = &["keep", "leave", "preserve", "retain"];
/// Words that name code which was there before.
const EARLIER: &[&str] = &["existing", "original", "previous", "remainder", "remaining", "rest"];
/// Words for code in general.
const CODE: &[&str] = &["code", "implementation", "lines", "logic"];
/// Words for the first or last part of a file.
const PARTS: &[&str] = &["beginning", "bottom", "end", "middle", "start", "top"];
/// Words that say that code stays as it is.
const UNCHANGED: &[&str] =
    &["identical", "omitted", "same", "unchanged", "unmodified", "untouched"];
/// Words that continue a sentence after an ellipsis: `... and then returns`.
const CONTINUATIONS: &[&str] = &[
    "and",
    "because",
    "but",
    "if",
    "or",
    "otherwise",
    "so",
    "then",
    "unless",
    "until",
    "when",
    "which",
    "while",
];
/// Phrases in other languages, in lower case.
const FOREIGN: &[&str] = &[
    "其余",
    "其他代码",
    "保持不变",
    "不变",
    "省略",
    "现有代码",
    "原有代码",
    "既存",
    "変更なし",
    "残りの",
    "同じ",
    "기존",
    "나머지",
    "생략",
    "동일",
    "unverändert",
    "übrige",
    "rest bleibt",
    "bestehender code",
    "inchangé",
    "reste du",
    "code existant",
    "resto del",
    "sin cambios",
    "código existente",
    "restante",
    "sem alterações",
    "остальн",
    "без изменений",
    "существующ",
    "resto del codice",
    "invariato",
];

/// Returns how certain it is that a line is a placeholder, or `None` if it is not one.
pub(super) fn classify(line: &str, kind: TextKind) -> Option<Certainty> {
    let line = line.trim();
    if line.is_empty() || line.len() > MAX_BYTES {
        return None;
    }
    let (inner, is_comment) = strip_comment(line, kind);
    let UnframedText { text, is_bracketed, has_leading_ellipsis, has_trailing_ellipsis } =
        strip_frame(inner);
    let is_marked = has_leading_ellipsis || has_trailing_ellipsis || is_bracketed;
    if !is_comment && (!is_marked || is_spread(line)) {
        return None;
    }
    let words: Vec<String> = text
        .split(|character: char| !character.is_alphanumeric() && character != '\'')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect();
    if words.is_empty() {
        return (has_leading_ellipsis || has_trailing_ellipsis)
            .then(|| classify_bare_ellipsis(kind, is_comment))
            .flatten();
    }
    let lower = text.to_lowercase();
    if FOREIGN.iter().any(|phrase| lower.contains(phrase)) {
        return Some(if is_marked { Certainty::Certain } else { Certainty::Likely });
    }
    if words.len() > MAX_WORDS || !is_comment && !is_marked_line(line) {
        return None;
    }
    let words = match words.as_slice() {
        [first, rest @ ..] if MARKS.contains(&first.as_str()) => rest,
        words => words,
    };
    let phrase = Phrase { words };
    let is_markup = kind == TextKind::Markup;
    if let Some(certainty) = phrase.classify_instruction(is_markup) {
        return Some(certainty);
    }
    if has_leading_ellipsis {
        return phrase.classify_after_ellipsis(has_trailing_ellipsis);
    }
    let has_ellipsis = text.contains("...") || text.contains('\u{2026}');
    if has_trailing_ellipsis || is_bracketed || has_ellipsis {
        return phrase.is_only_omission().then_some(Certainty::Certain);
    }
    phrase.classify_comment()
}

/// Whether a line that is not a comment starts with an ellipsis or is in brackets.
fn is_marked_line(line: &str) -> bool {
    line.starts_with(['[', '(', '<', '{', '.', '\u{2026}'])
}

/// Whether a line starts with the spread operator: `...rest`.
fn is_spread(line: &str) -> bool {
    line.strip_prefix("...").is_some_and(|rest| {
        rest.starts_with(|character: char| !character.is_whitespace() && character != '.')
            && !rest.ends_with("...")
    })
}

/// Classifies a line with nothing but an ellipsis.
fn classify_bare_ellipsis(kind: TextKind, is_comment: bool) -> Option<Certainty> {
    match kind {
        _ if is_comment => Some(Certainty::Certain),
        TextKind::Code | TextKind::Markup => Some(Certainty::Certain),
        TextKind::Python | TextKind::Prose => Some(Certainty::Possible),
        // Three dots end a YAML document, and are the body of functions in stubs.
        TextKind::Data | TextKind::Unknown | TextKind::PythonStub => None,
    }
}

/// The words of a line, in lower case.
struct Phrase<'a> {
    words: &'a [String],
}

impl Phrase<'_> {
    fn has(&self, list: &[&str]) -> bool {
        self.words.iter().any(|word| list.contains(&word.as_str()))
    }

    /// Whether the words say that something is left out or unchanged.
    fn states_omission(&self) -> bool {
        let negated = self.has(&["no", "not", "without"])
            && self.has(&["change", "changed", "changes", "modified"]);
        self.has(STATE) || negated || self.has(&["goes"]) && self.has(&["here"])
    }

    /// Counts the words that are not in the lists above, such as names of functions.
    fn other_word_count(&self) -> usize {
        let is_in_vocabulary = |word: &String| {
            let word = word.as_str();
            STATE.contains(&word)
                || FILLER.contains(&word)
                || word.bytes().all(|byte| byte.is_ascii_digit())
        };
        let unknown = self.words.iter().filter(|word| !is_in_vocabulary(word)).count();
        if self.starts_with_part() { unknown.saturating_sub(1) } else { unknown }
    }

    /// Classifies an instruction to put or leave code there: `copy existing code here`, `30 more lines`.
    fn classify_instruction(&self, is_markup: bool) -> Option<Certainty> {
        let words: Vec<&str> = self.words.iter().map(String::as_str).collect();
        let (first, rest) = words.split_first()?;
        let is = |list: &[&str], word: &str| list.contains(&word);
        let names_code =
            self.has(EARLIER) && self.has(CODE) && (self.has(&["here"]) || self.has(&["code"]));
        match rest {
            _ if is(INSERTING, first) && names_code && self.other_word_count() <= 1 => {
                Some(Certainty::Likely)
            }
            ["original" | "existing" | "previous"] if *first == "see" => Some(Certainty::Likely),
            [adjective, _] if is(KEEPING, first) && is(EARLIER, adjective) => {
                Some(if is_markup { Certainty::Likely } else { Certainty::IfAlone })
                    .filter(|_| self.other_word_count() > 0)
            }
            ["more" | "other", "lines" | "methods" | "functions" | "rows" | "tests"]
                if first.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                Some(Certainty::Likely)
            }
            [.., "here"]
                if is(EARLIER, first) && self.has(CODE) && self.other_word_count() == 1 =>
            {
                Some(Certainty::Likely)
            }
            _ => None,
        }
    }

    /// Whether the words start with a part of the file: `the beginning of the file`.
    fn starts_with_part(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(String::as_str).take(3).collect();
        let is_part = |word: &str| PARTS.contains(&word);
        matches!(words.as_slice(), ["the", part, "of"] | [part, "of", ..] if is_part(part))
    }

    /// Whether the words say that something is left out, and say little else.
    fn is_only_omission(&self) -> bool {
        self.states_omission() && self.other_word_count() == 0
            || self.starts_with_rest() && self.other_word_count() <= 1
            || self.states_omission()
                && self.has(&["unchanged", "omitted", "unmodified"])
                && self.other_word_count() <= MAX_NAMES
    }

    fn starts_with_rest(&self) -> bool {
        let words: Vec<&str> = self.words.iter().map(String::as_str).take(3).collect();
        matches!(
            words.as_slice(),
            ["rest" | "remainder", "of", ..] | ["the", "rest" | "remainder", "of", ..]
        )
    }

    /// Classifies the words after an ellipsis: `... rest of the code`.
    fn classify_after_ellipsis(&self, has_trailing_ellipsis: bool) -> Option<Certainty> {
        if self.words.first().is_some_and(|first| CONTINUATIONS.contains(&first.as_str())) {
            return None;
        }
        match (self.states_omission() || self.has(&["more"]), has_trailing_ellipsis) {
            (true, _) if self.other_word_count() <= MAX_NAMES => Some(Certainty::Certain),
            (true, _) | (false, true) => Some(Certainty::Likely),
            (false, false) => (self.other_word_count() == 0).then_some(Certainty::Likely),
        }
    }

    /// Classifies a comment without an ellipsis: `rest of class unchanged`.
    fn classify_comment(&self) -> Option<Certainty> {
        if !self.states_omission() && !self.starts_with_rest() {
            return None;
        }
        let has_predicate = self.has(PREDICATE);
        let has_noun = self.has(&[
            "code",
            "file",
            "class",
            "function",
            "functions",
            "method",
            "methods",
            "implementation",
            "imports",
            "content",
            "contents",
            "body",
            "logic",
            "lines",
        ]);
        match self.other_word_count() {
            0 if self.has(SUBJECT) && (has_predicate || has_noun) => Some(Certainty::Certain),
            0 | 1 if self.starts_with_part() => {
                Some(Certainty::Likely).filter(|_| self.has(UNCHANGED))
            }
            0 => Some(Certainty::Likely),
            1..=2
                if self.has(SUBJECT)
                    && self.has(&["unchanged", "same", "omitted", "unmodified", "untouched"]) =>
            {
                Some(Certainty::Likely)
            }
            _ => None,
        }
    }
}

/// Starts of comments with their ends, longer ones first.
const COMMENTS: &[(&str, &str)] = &[
    ("{{!--", "--}}"),
    ("<%--", "--%>"),
    ("<!--", "-->"),
    ("--[[", "]]"),
    ("{/*", "*/}"),
    ("/**", "*/"),
    ("\"\"\"", "\"\"\""),
    ("'''", "'''"),
    ("///", ""),
    ("//!", ""),
    ("/*", "*/"),
    ("{#", "#}"),
    ("(*", "*)"),
    ("//", ""),
    ("--", ""),
    ("::", ""),
    ("REM ", ""),
    ("rem ", ""),
    ("#", ""),
    (";", ""),
    ("%", ""),
    ("*", "*/"),
];

/// Whether a line is a comment.
pub(in crate::edit) fn is_comment(line: &str, kind: TextKind) -> bool {
    strip_comment(line.trim(), kind).1
}

/// Returns the text of a comment and `true`, or the line itself and `false` if it is not a comment.
fn strip_comment(line: &str, kind: TextKind) -> (&str, bool) {
    for (start, end) in COMMENTS {
        let Some(rest) = line.strip_prefix(start) else { continue };
        // In prose, these are headings, lists and rules.
        if kind == TextKind::Prose && matches!(*start, "#" | "*" | "--" | ";" | "%" | "::") {
            continue;
        }
        let rest = rest.trim_start_matches(['#', '/', ';', '%', '-', '*', '=', '!']);
        // `*rest`, `--rest`, `#rest` and `::before` are code.
        if matches!(*start, "#" | "*" | "--" | ";" | "%" | "::")
            && !rest.starts_with([' ', '\t', '.', '\u{2026}', '[', '(', '<'])
            && !rest.is_empty()
        {
            continue;
        }
        let rest = rest.trim_end();
        let rest = if end.is_empty() { rest } else { rest.strip_suffix(end).unwrap_or(rest) };
        return (rest.trim().trim_end_matches(['-', '=', '#', '*']).trim_end(), true);
    }
    (line, false)
}

/// A text without the ellipses and brackets around it.
struct UnframedText<'a> {
    text: &'a str,
    is_bracketed: bool,
    /// Whether the text starts with an ellipsis.
    has_leading_ellipsis: bool,
    /// Whether the text ends with an ellipsis.
    has_trailing_ellipsis: bool,
}

/// Removes ellipses and brackets around a text.
fn strip_frame(text: &str) -> UnframedText<'_> {
    let mut frame = UnframedText {
        text: text.trim(),
        is_bracketed: false,
        has_leading_ellipsis: false,
        has_trailing_ellipsis: false,
    };
    loop {
        let before = frame.text;
        for (open, close) in [('[', ']'), ('(', ')'), ('<', '>'), ('{', '}')] {
            let inner = frame.text.strip_prefix(open).and_then(|rest| rest.strip_suffix(close));
            if let Some(inner) = inner.filter(|inner| !inner.contains([open, close])) {
                (frame.text, frame.is_bracketed) = (inner.trim(), true);
            }
        }
        if let Some(rest) = strip_dots_start(frame.text) {
            (frame.text, frame.has_leading_ellipsis) = (rest, true);
        }
        if let Some(rest) = strip_dots_end(frame.text) {
            (frame.text, frame.has_trailing_ellipsis) = (rest, true);
        }
        if frame.text == before {
            return frame;
        }
    }
}

fn strip_dots_start(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('\u{2026}').or_else(|| text.strip_prefix("..."))?;
    Some(rest.trim_start_matches(['.', '\u{2026}']).trim_start())
}

fn strip_dots_end(text: &str) -> Option<&str> {
    let rest = text.strip_suffix('\u{2026}').or_else(|| text.strip_suffix("..."))?;
    Some(rest.trim_end_matches(['.', '\u{2026}']).trim_end())
}

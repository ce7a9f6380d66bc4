//! Classifies files by their names: code, markup, prose or data.

/// The kind of text in a file. It decides which new texts are refused because they certainly do not belong there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextKind {
    /// Program code other than Python.
    Code,
    /// Python code, in which `...` alone is a statement.
    Python,
    /// A stub of Python code, in which `...` is the body of every function.
    PythonStub,
    /// Text with tags, such as HTML and XML.
    Markup,
    /// Text for people, which may quote anything.
    Prose,
    /// Configuration and tables, such as JSON and CSV.
    Data,
    #[default]
    Unknown,
}

const CODE: &[&str] = &[
    "asm", "bash", "bat", "c", "cc", "cjs", "clj", "cmake", "cpp", "cs", "css", "cts", "cu", "cxx",
    "d", "dart", "el", "elm", "erl", "ex", "exs", "f90", "fish", "fs", "gd", "glsl", "go",
    "gradle", "graphql", "groovy", "h", "hpp", "hs", "hxx", "java", "jl", "js", "kt", "kts",
    "less", "lisp", "lua", "m", "mjs", "mk", "ml", "mm", "mts", "nim", "nix", "pas", "php", "pl",
    "pm", "proto", "ps1", "r", "rb", "rs", "s", "sass", "scala", "scss", "sh", "sol", "sql",
    "swift", "tf", "ts", "v", "vb", "vim", "wgsl", "zig", "zsh",
];
const MARKUP: &[&str] = &[
    "astro", "cshtml", "csproj", "ejs", "hbs", "htm", "html", "jsx", "plist", "svelte", "svg",
    "tsx", "vue", "xaml", "xhtml", "xml", "xsd", "xsl", "xslt",
];
const PROSE: &[&str] = &[
    "adoc", "asciidoc", "log", "markdown", "md", "mdc", "mdx", "org", "qmd", "rmd", "rst", "tex",
    "text", "txt",
];
const DATA: &[&str] = &[
    "cfg",
    "conf",
    "csv",
    "env",
    "ini",
    "ipynb",
    "json",
    "json5",
    "jsonc",
    "jsonl",
    "lock",
    "properties",
    "toml",
    "tsv",
    "yaml",
    "yml",
];
const CODE_NAMES: &[&str] = &[
    "CMakeLists.txt",
    "Containerfile",
    "Dockerfile",
    "GNUmakefile",
    "Gemfile",
    "Jenkinsfile",
    "Makefile",
    "Rakefile",
    "justfile",
    "makefile",
];

impl TextKind {
    /// Returns the kind of a file by its name.
    pub fn of(path: &str) -> TextKind {
        let name = path.rsplit(['/', '\\']).next().unwrap_or(path);
        if CODE_NAMES.contains(&name) {
            return TextKind::Code;
        }
        let Some((_, extension)) = name.rsplit_once('.') else { return TextKind::Unknown };
        let extension = extension.to_ascii_lowercase();
        let is_in = |list: &[&str]| list.contains(&extension.as_str());
        match () {
            () if matches!(extension.as_str(), "py" | "pyw") => TextKind::Python,
            () if extension == "pyi" => TextKind::PythonStub,
            () if is_in(CODE) => TextKind::Code,
            () if is_in(MARKUP) => TextKind::Markup,
            () if is_in(PROSE) => TextKind::Prose,
            () if is_in(DATA) => TextKind::Data,
            () => TextKind::Unknown,
        }
    }

    /// Whether the text is program code. Code with tags in it, such as JSX, counts as markup.
    pub(crate) fn is_code(self) -> bool {
        match self {
            TextKind::Code | TextKind::Python | TextKind::PythonStub => true,
            TextKind::Markup | TextKind::Prose | TextKind::Data | TextKind::Unknown => false,
        }
    }
}

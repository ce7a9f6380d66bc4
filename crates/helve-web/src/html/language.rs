//! The language of a code block, by the classes that highlighters use.

/// Finds a language among the classes of an element. `is_code` says that the element is the code itself.
pub(super) fn language_of_classes(classes: &str, is_code: bool) -> Option<String> {
    const PREFIXES: [&str; 6] =
        ["language-", "lang-", "highlight-source-", "highlight-text-", "highlight-", "src-"];
    let mut classes_after_brush =
        classes.split_ascii_whitespace().skip_while(|class| *class != "brush:");
    if let Some(brush) = classes_after_brush.nth(1) {
        return language_name(brush.trim_end_matches(';'));
    }
    for class in classes.split_ascii_whitespace() {
        let prefixed = PREFIXES.iter().find_map(|prefix| class.strip_prefix(prefix));
        if let Some(language) =
            prefixed.or_else(|| class.strip_prefix("brush:")).and_then(language_name)
        {
            return Some(language);
        }
    }
    let known = |class: &&str| KNOWN_LANGUAGES.contains(class);
    classes.split_ascii_whitespace().find(known).filter(|_| is_code).and_then(language_name)
}

/// Returns a language as it is written after a fence; `None` for names that mean no language.
pub(super) fn language_name(name: &str) -> Option<String> {
    let name = name.trim().to_ascii_lowercase();
    let is_valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '#' | '.' | '_');
    let means_none = matches!(
        name.as_str(),
        "" | "default"
            | "none"
            | "plain"
            | "plaintext"
            | "text"
            | "txt"
            | "nohighlight"
            | "auto"
            | "fallback"
            | "wrapper"
    );
    (!means_none && name.len() <= 24 && name.chars().all(is_valid)).then_some(name)
}

/// Languages that are recognized as a class of a code block without a prefix.
const KNOWN_LANGUAGES: &[&str] = &[
    "asm",
    "awk",
    "bash",
    "basic",
    "bat",
    "batch",
    "c",
    "c++",
    "clojure",
    "cmake",
    "coffeescript",
    "console",
    "cpp",
    "csharp",
    "css",
    "d",
    "dart",
    "diff",
    "dockerfile",
    "elixir",
    "elm",
    "erlang",
    "fortran",
    "fsharp",
    "go",
    "graphql",
    "groovy",
    "haskell",
    "hcl",
    "html",
    "http",
    "ini",
    "java",
    "javascript",
    "js",
    "json",
    "json5",
    "jsonc",
    "jsx",
    "julia",
    "kotlin",
    "latex",
    "less",
    "lisp",
    "lua",
    "makefile",
    "markdown",
    "matlab",
    "md",
    "nginx",
    "nim",
    "nix",
    "objc",
    "ocaml",
    "pascal",
    "perl",
    "php",
    "powershell",
    "prolog",
    "proto",
    "protobuf",
    "py",
    "pycon",
    "python",
    "python3",
    "r",
    "rb",
    "rst",
    "ruby",
    "rust",
    "sass",
    "scala",
    "scheme",
    "scss",
    "sh",
    "shell",
    "shell-session",
    "solidity",
    "sql",
    "svelte",
    "swift",
    "tcl",
    "tex",
    "toml",
    "ts",
    "tsx",
    "typescript",
    "vb",
    "vim",
    "vue",
    "wasm",
    "xml",
    "yaml",
    "yml",
    "zig",
    "zsh",
];

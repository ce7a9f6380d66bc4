//! Maps file names to languages.

use super::Language;

/// Extensions that mark a template, even if another extension follows.
const TEMPLATE_EXTENSIONS: &[&str] =
    &["ejs", "erb", "hbs", "in", "j2", "jinja", "jinja2", "mustache", "template", "tmpl", "tpl"];

/// JSON files that may contain comments.
const JSON_WITH_COMMENTS: &[&str] = &[
    ".babelrc",
    ".eslintrc",
    ".eslintrc.json",
    ".hintrc",
    ".jscsrc",
    ".jshintrc",
    ".jslintrc",
    ".swcrc",
    "api-extractor.json",
    "biome.json",
    "components.json",
    "deno.json",
    "devcontainer.json",
    "helve.json",
    "language-configuration.json",
    "nx.json",
    "opencode.json",
    "renovate.json",
    "rush.json",
    "settings.json",
    "tslint.json",
    "turbo.json",
    "typedoc.json",
    "wrangler.json",
];

/// Folders whose JSON files may contain comments.
const JSON_WITH_COMMENTS_FOLDERS: &[&str] = &[".vscode", ".devcontainer", ".zed"];

/// Returns the language of a file by its name. Templates have none.
pub(super) fn language(path: &str) -> Option<Language> {
    if path.contains("{{") || path.contains("{%") {
        return None;
    }
    let mut parts = path.rsplit(['/', '\\']);
    let name = parts.next()?.to_ascii_lowercase();
    if name.split('.').skip(1).any(|extension| TEMPLATE_EXTENSIONS.contains(&extension)) {
        return None;
    }
    let language = by_name(&name).or_else(|| by_extension(name.rsplit_once('.')?.1))?;
    let allows_comments = language == Language::Json
        && (JSON_WITH_COMMENTS.contains(&name.as_str())
            || name.starts_with("tsconfig")
            || name.starts_with("jsconfig")
            || parts.any(|folder| JSON_WITH_COMMENTS_FOLDERS.contains(&folder)));
    Some(if allows_comments { Language::JsonWithComments } else { language })
}

fn by_name(name: &str) -> Option<Language> {
    Some(match name {
        ".bashrc" | ".bash_profile" | ".bash_aliases" | ".bash_logout" | ".profile"
        | "pkgbuild" => Language::Bash,
        ".babelrc" | ".eslintrc" | ".hintrc" | ".jscsrc" | ".jshintrc" | ".jslintrc" | ".swcrc" => {
            Language::Json
        }
        "gemfile" | "rakefile" | "guardfile" | "vagrantfile" | "podfile" | "fastfile" => {
            Language::Ruby
        }
        ".clang-format" | ".clang-tidy" | ".clangd" => Language::Yaml,
        _ => return None,
    })
}

fn by_extension(extension: &str) -> Option<Language> {
    Some(match extension {
        "sh" | "bash" => Language::Bash,
        "c" => Language::C,
        // Headers may be C or C++. Valid C is nearly always valid C++.
        "h" | "cc" | "cpp" | "cxx" | "c++" | "hh" | "hpp" | "hxx" | "h++" => Language::Cpp,
        "go" => Language::Go,
        "java" => Language::Java,
        "js" | "mjs" | "cjs" | "jsx" => Language::JavaScript,
        "json" | "ipynb" | "geojson" | "webmanifest" => Language::Json,
        "jsonc" | "code-workspace" | "code-snippets" => Language::JsonWithComments,
        "py" | "pyi" | "pyw" => Language::Python,
        "rb" | "rake" | "gemspec" | "ru" => Language::Ruby,
        "rs" => Language::Rust,
        "tsx" => Language::Tsx,
        "ts" | "mts" | "cts" => Language::TypeScript,
        "yaml" | "yml" => Language::Yaml,
        _ => return None,
    })
}

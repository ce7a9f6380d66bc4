//! From a file's name to its language.

use super::Language;

/// Endings anywhere in a name that say it is a template for the language that follows or precedes.
const TEMPLATES: &[&str] =
    &["ejs", "erb", "hbs", "in", "j2", "jinja", "jinja2", "mustache", "template", "tmpl", "tpl"];

/// Files whose readers skip comments, although they are called JSON.
const COMMENTED: &[&str] = &[
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

/// Folders of such files.
const COMMENTED_FOLDERS: &[&str] = &[".vscode", ".devcontainer", ".zed"];

pub(super) fn language(path: &str) -> Option<Language> {
    if path.contains("{{") || path.contains("{%") {
        return None;
    }
    let mut parts = path.rsplit(['/', '\\']);
    let name = parts.next()?.to_ascii_lowercase();
    if name.split('.').skip(1).any(|ending| TEMPLATES.contains(&ending)) {
        return None;
    }
    let language = by_name(&name).or_else(|| by_ending(name.rsplit_once('.')?.1))?;
    let commented = language == Language::Json
        && (COMMENTED.contains(&name.as_str())
            || name.starts_with("tsconfig")
            || name.starts_with("jsconfig")
            || parts.any(|folder| COMMENTED_FOLDERS.contains(&folder)));
    Some(if commented { Language::JsonWithComments } else { language })
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

fn by_ending(ending: &str) -> Option<Language> {
    Some(match ending {
        "sh" | "bash" => Language::Bash,
        "c" => Language::C,
        // A header may be either; what is C is nearly always C++ too.
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

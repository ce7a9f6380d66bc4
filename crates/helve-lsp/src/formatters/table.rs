//! The table of known formatters. The configuration can add formatters, and override or disable rows.

use std::collections::BTreeMap;

/// A formatter that may be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatterDefinition {
    pub name: String,
    /// The program and its arguments. `$FILE` stands for the path of the file.
    pub command: Vec<String>,
    /// File name extensions without the dot.
    pub extensions: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub input: FormatterInput,
    /// Names of files, each with a text that the file must contain. Unless the list is empty, the formatter is used
    /// only if one of them exists in the folder of the formatted file or in a parent folder.
    pub markers: Vec<(String, String)>,
    /// How to find out whether an installed program is this formatter, and not another program of the same name.
    pub probe: Option<FormatterProbe>,
    /// The name of another formatter. If that one was used for a file, this one is not.
    pub unless: Option<String>,
}

/// Arguments with which the right program exits successfully and prints a certain text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FormatterProbe {
    pub arguments: Vec<String>,
    /// A text that the output must contain.
    pub text: String,
}

/// How a formatter gets the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FormatterInput {
    /// The formatter reads standard input and writes standard output. It does not open `$FILE`, but may use its name.
    Stream,
    /// The formatter changes a file in place. It gets a copy in the same folder.
    Copy,
}

/// An entry of `formatter` in the configuration. Empty lists keep the values of the table.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FormatterOverride {
    pub name: String,
    pub is_disabled: bool,
    pub command: Vec<String>,
    pub extensions: Vec<String>,
    pub environment: BTreeMap<String, String>,
}

/// Returns the formatters of the table with the overrides of the configuration applied. An entry that is not in the
/// table needs a command and extensions; without them it is ignored.
pub fn formatter_definitions(overrides: &[FormatterOverride]) -> Vec<FormatterDefinition> {
    let mut all: Vec<FormatterDefinition> =
        FORMATTERS.iter().map(FormatterRow::definition).collect();
    for entry in overrides {
        if entry.is_disabled {
            all.retain(|formatter| formatter.name != entry.name);
            continue;
        }
        let without_dot = |it: &String| it.trim_start_matches('.').to_owned();
        let extensions: Vec<String> = entry.extensions.iter().map(without_dot).collect();
        match all.iter_mut().find(|formatter| formatter.name == entry.name) {
            Some(formatter) => {
                if !entry.command.is_empty() {
                    formatter.command = entry.command.clone();
                    formatter.input = FormatterInput::Copy;
                    formatter.markers = Vec::new();
                    formatter.probe = None;
                }
                if !extensions.is_empty() {
                    formatter.extensions = extensions;
                }
                formatter.environment.extend(entry.environment.clone());
            }
            None if entry.command.is_empty() || extensions.is_empty() => {}
            None => all.push(FormatterDefinition {
                name: entry.name.clone(),
                command: entry.command.clone(),
                extensions,
                environment: entry.environment.clone(),
                input: FormatterInput::Copy,
                markers: Vec::new(),
                probe: None,
                unless: None,
            }),
        }
    }
    all
}

/// A row of the table. `command` and `extensions` are space-separated lists.
struct FormatterRow {
    name: &'static str,
    command: &'static str,
    extensions: &'static str,
    /// See [`FormatterDefinition::markers`].
    markers: &'static [(&'static str, &'static str)],
    input: FormatterInput,
    environment: &'static [(&'static str, &'static str)],
    /// The arguments, separated by spaces, and a text that the output must contain.
    probe: Option<(&'static str, &'static str)>,
    unless: Option<&'static str>,
}

impl FormatterRow {
    fn definition(&self) -> FormatterDefinition {
        let pairs = |list: &[(&str, &str)]| -> Vec<(String, String)> {
            list.iter().map(|(name, text)| ((*name).into(), (*text).into())).collect()
        };
        FormatterDefinition {
            name: self.name.into(),
            command: words(self.command),
            extensions: words(self.extensions),
            environment: pairs(self.environment).into_iter().collect(),
            input: self.input,
            markers: pairs(self.markers),
            probe: self.probe.map(|(arguments, text)| FormatterProbe {
                arguments: words(arguments),
                text: text.into(),
            }),
            unless: self.unless.map(Into::into),
        }
    }
}

fn words(text: &str) -> Vec<String> {
    text.split(' ').filter(|it| !it.is_empty()).map(Into::into).collect()
}

const PRETTIER_EXTENSIONS: &str = "js jsx mjs cjs ts tsx mts cts html htm css scss sass less vue svelte json jsonc yaml yml toml xml md mdx graphql gql";
const BIOME_EXTENSIONS: &str =
    "js jsx mjs cjs ts tsx mts cts html css vue svelte json jsonc graphql gql";
const OXFMT_EXTENSIONS: &str = "js jsx mjs cjs ts tsx mts cts";
const RUBY_EXTENSIONS: &str = "rb rake gemspec ru";
const RUFF_MARKERS: &[(&str, &str)] = &[
    ("ruff.toml", ""),
    (".ruff.toml", ""),
    ("pyproject.toml", "ruff"),
    ("requirements.txt", "ruff"),
    ("Pipfile", "ruff"),
];

/// A formatter that reads standard input and is used wherever it is installed.
const fn row(name: &'static str, command: &'static str, extensions: &'static str) -> FormatterRow {
    FormatterRow {
        name,
        command,
        extensions,
        markers: &[],
        input: FormatterInput::Stream,
        environment: &[],
        probe: None,
        unless: None,
    }
}

/// Restricts a row to projects that have one of these files. Each file must contain the text beside its name.
const fn only_with(
    markers: &'static [(&'static str, &'static str)],
    row: FormatterRow,
) -> FormatterRow {
    FormatterRow { markers, ..row }
}

const FORMATTERS: &[FormatterRow] = &[
    only_with(
        &[("package.json", "\"prettier\"")],
        row("prettier", "prettier --stdin-filepath $FILE", PRETTIER_EXTENSIONS),
    ),
    only_with(
        &[("biome.json", ""), ("biome.jsonc", "")],
        row("biome", "biome format --stdin-file-path=$FILE", BIOME_EXTENSIONS),
    ),
    only_with(
        &[("package.json", "\"oxfmt\"")],
        row("oxfmt", "oxfmt --stdin-filepath=$FILE", OXFMT_EXTENSIONS),
    ),
    row("gofmt", "gofmt", "go"),
    row("rustfmt", "rustfmt --edition 2024 --emit stdout", "rs"),
    only_with(RUFF_MARKERS, row("ruff", "ruff format --stdin-filename $FILE -", "py pyi")),
    FormatterRow {
        // `uv format` runs ruff, and would download it without this variable.
        environment: &[("UV_OFFLINE", "1")],
        probe: Some(("format --help", "")),
        unless: Some("ruff"),
        ..row("uv", "uv format --no-project -- --stdin-filename $FILE -", "py pyi")
    },
    only_with(
        &[(".clang-format", "")],
        row("clang-format", "clang-format --assume-filename=$FILE", "c cc cpp cxx h hh hpp hxx m"),
    ),
    row("shfmt", "shfmt --filename $FILE", "sh bash"),
    row("zig", "zig fmt --stdin", "zig zon"),
    row("terraform", "terraform fmt -", "tf tfvars"),
    only_with(
        &[("mix.exs", "")],
        row("mix", "mix format --stdin-filename $FILE -", "ex exs eex heex leex neex sface"),
    ),
    row("gleam", "gleam format --stdin", "gleam"),
    row("nixfmt", "nixfmt --filename=$FILE", "nix"),
    row("ormolu", "ormolu --stdin-input-file $FILE", "hs"),
    only_with(&[(".ocamlformat", "")], row("ocamlformat", "ocamlformat --name=$FILE -", "ml mli")),
    row("cljfmt", "cljfmt fix -", "clj cljs cljc edn"),
    only_with(
        &[(".standard.yml", "")],
        row("standardrb", "standardrb --fix --stdin $FILE --stderr", RUBY_EXTENSIONS),
    ),
    only_with(
        &[(".rubocop.yml", "")],
        row("rubocop", "rubocop --autocorrect --stdin $FILE --stderr", RUBY_EXTENSIONS),
    ),
    row("htmlbeautifier", "htmlbeautifier", "erb"),
    row("ktlint", "ktlint --format --stdin --log-level=none", "kt kts"),
    row("dart", "dart format --stdin-name=$FILE", "dart"),
    row("latexindent", "latexindent -g=/dev/null -", "tex"),
    row("dfmt", "dfmt", "d"),
    FormatterRow {
        // There is another program called `air`, which restarts web servers.
        probe: Some(("--help", "R language")),
        ..row("air", "air format --stdin-file-path $FILE", "R")
    },
    FormatterRow {
        input: FormatterInput::Copy,
        ..only_with(
            &[("composer.json", "\"laravel/pint\"")],
            row("pint", "vendor/bin/pint --quiet $FILE", "php"),
        )
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_complete() {
        let all = formatter_definitions(&[]);
        for formatter in &all {
            let FormatterDefinition { name, command, extensions, input, unless, .. } = formatter;
            assert_eq!(all.iter().filter(|other| other.name == *name).count(), 1, "{name}");
            assert!(!command.is_empty() && !extensions.is_empty(), "{name}");
            assert!(extensions.iter().all(|it| !it.starts_with('.')), "{name}");
            let names_file = command.iter().any(|word| word.contains("$FILE"));
            assert!(*input == FormatterInput::Stream || names_file, "{name}");
            let at = |wanted: &str| all.iter().position(|it| it.name == wanted);
            assert!(unless.as_ref().is_none_or(|other| at(other) < at(name)), "{name}");
        }
    }

    #[test]
    fn configuration_overrides_the_table() {
        let entry = |name: &str| FormatterOverride { name: name.into(), ..Default::default() };
        let disabled = FormatterOverride { is_disabled: true, ..entry("gofmt") };
        let added = FormatterOverride {
            command: vec!["mine".into(), "$FILE".into()],
            extensions: vec![".xyz".into()],
            ..entry("mine")
        };
        let all = formatter_definitions(&[disabled, added, entry("nothing")]);
        let find = |name: &str| all.iter().find(|it| it.name == name);
        assert_eq!(find("gofmt"), None);
        assert_eq!(find("nothing"), None);
        let mine = find("mine").unwrap();
        assert_eq!((mine.input, &mine.extensions[..]), (FormatterInput::Copy, &["xyz".into()][..]));
    }
}

//! The table of known language servers. The configuration can add servers, and override or disable rows. Servers are
//! never downloaded.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// A language server that may be started.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerDefinition {
    pub id: String,
    /// The program and its arguments.
    pub command: Vec<String>,
    /// File name extensions without the dot, or whole file names.
    pub extensions: Vec<String>,
    /// Names of files that mark the root of a project. A `*` at the start stands for any text.
    pub markers: Vec<String>,
    /// Which folder the server is started for, if several contain a marker.
    pub root_rule: RootRule,
    /// Whether the server is used only if a marker exists. Otherwise the root of the workspace is used without one.
    pub needs_marker: bool,
    /// Names of files that mark a project as meant for another server.
    pub excluded_by: Vec<String>,
    pub environment: BTreeMap<String, String>,
    /// `initializationOptions` of the protocol.
    pub initialization: Value,
    /// The settings from which `workspace/configuration` is answered.
    pub settings: Value,
    /// Whether the server reports with `experimental/serverStatus` when it has loaded the project.
    pub reports_readiness: bool,
    /// How to install the server.
    pub install: String,
}

/// Which of the folders around a file is the root of its project.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RootRule {
    /// The nearest folder with a marker.
    Nearest,
    /// The outermost folder with a marker, for workspaces that contain several packages.
    Outermost,
}

/// An entry of `lsp` in the configuration.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerOverride {
    pub id: String,
    pub is_disabled: bool,
    /// Empty to keep the command of the table.
    pub command: Vec<String>,
    /// Empty to keep the extensions of the table.
    pub extensions: Vec<String>,
    pub environment: BTreeMap<String, String>,
    pub initialization: Option<Value>,
}

/// Returns the servers of the table with the overrides of the configuration applied. An entry that is not in the table
/// needs a command and extensions; without them it is ignored.
pub fn server_definitions(overrides: &[ServerOverride]) -> Vec<ServerDefinition> {
    let mut servers: Vec<ServerDefinition> = SERVERS.iter().map(ServerRow::definition).collect();
    for entry in overrides {
        servers.retain(|server| !(entry.is_disabled && server.id == entry.id));
        if entry.is_disabled {
            continue;
        }
        match servers.iter_mut().find(|server| server.id == entry.id) {
            Some(server) => entry.apply(server),
            None if entry.command.is_empty() || entry.extensions.is_empty() => {}
            None => {
                let mut server = ServerDefinition {
                    id: entry.id.clone(),
                    command: Vec::new(),
                    extensions: Vec::new(),
                    markers: Vec::new(),
                    root_rule: RootRule::Nearest,
                    needs_marker: false,
                    excluded_by: Vec::new(),
                    environment: BTreeMap::new(),
                    initialization: Value::Null,
                    settings: Value::Null,
                    reports_readiness: false,
                    install: String::new(),
                };
                entry.apply(&mut server);
                servers.push(server);
            }
        }
    }
    servers
}

impl ServerOverride {
    fn apply(&self, server: &mut ServerDefinition) {
        if !self.command.is_empty() {
            server.command = self.command.clone();
            // A person who configures the command wants the server to be used, with or without a marker.
            server.needs_marker = false;
        }
        if !self.extensions.is_empty() {
            let without_dot = |extension: &String| extension.trim_start_matches('.').to_owned();
            server.extensions = self.extensions.iter().map(without_dot).collect();
        }
        server.environment.extend(self.environment.clone());
        if let Some(initialization) = &self.initialization {
            server.initialization = initialization.clone();
            server.settings = initialization.clone();
        }
    }
}

/// Returns the `languageId` of a file by its extension or name.
pub(crate) fn language_id(extension: &str) -> &'static str {
    let found = LANGUAGES.iter().find(|(_, extensions)| {
        extensions.split(' ').any(|listed| listed.eq_ignore_ascii_case(extension))
    });
    found.map_or("plaintext", |(language, _)| language)
}

/// Language ids, each with the extensions of its files.
const LANGUAGES: &[(&str, &str)] = &[
    ("typescript", "ts mts cts"),
    ("typescriptreact", "tsx"),
    ("javascript", "js mjs cjs"),
    ("javascriptreact", "jsx"),
    ("python", "py pyi"),
    ("rust", "rs"),
    ("go", "go"),
    ("c", "c h"),
    ("cpp", "cpp cc cxx hpp hh hxx c++ h++"),
    ("objective-c", "m objc"),
    ("shellscript", "sh bash zsh ksh"),
    ("yaml", "yaml yml"),
    ("json", "json"),
    ("jsonc", "jsonc"),
    ("css", "css"),
    ("scss", "scss"),
    ("less", "less"),
    ("html", "html htm"),
    ("vue", "vue"),
    ("svelte", "svelte"),
    ("astro", "astro"),
    ("ruby", "rb rake gemspec ru"),
    ("elixir", "ex exs"),
    ("zig", "zig zon"),
    ("csharp", "cs csx"),
    ("razor", "razor cshtml"),
    ("fsharp", "fs fsi fsx fsscript"),
    ("swift", "swift"),
    ("java", "java"),
    ("kotlin", "kt kts"),
    ("dockerfile", "dockerfile Dockerfile"),
    ("lua", "lua"),
    ("php", "php"),
    ("prisma", "prisma"),
    ("dart", "dart"),
    ("ocaml", "ml mli"),
    ("terraform", "tf tfvars"),
    ("latex", "tex"),
    ("bibtex", "bib"),
    ("gleam", "gleam"),
    ("clojure", "clj cljs cljc edn"),
    ("nix", "nix"),
    ("typst", "typ typc"),
    ("haskell", "hs lhs"),
    ("julia", "jl"),
    ("graphql", "graphql gql"),
    ("toml", "toml"),
    ("markdown", "md mdx"),
];

/// One row of the table. All fields but `id`, `needs_marker` and `install` are space-separated lists.
struct ServerRow {
    id: &'static str,
    command: &'static str,
    extensions: &'static str,
    markers: &'static str,
    needs_marker: bool,
    excluded_by: &'static str,
    install: &'static str,
}

impl ServerRow {
    fn definition(&self) -> ServerDefinition {
        let words =
            |text: &str| text.split(' ').filter(|it| !it.is_empty()).map(Into::into).collect();
        let (initialization, settings) = options(self.id);
        ServerDefinition {
            id: self.id.into(),
            command: words(self.command),
            extensions: words(self.extensions),
            markers: words(self.markers),
            root_rule: match self.id {
                "rust" | "gopls" => RootRule::Outermost,
                _ => RootRule::Nearest,
            },
            needs_marker: self.needs_marker,
            excluded_by: words(self.excluded_by),
            environment: BTreeMap::new(),
            initialization,
            settings,
            reports_readiness: self.id == "rust",
            install: self.install.into(),
        }
    }
}

/// Returns the initialization options and the settings of a server; `null` if it needs none.
fn options(id: &str) -> (Value, Value) {
    match id {
        // Automatic type acquisition would download packages.
        "typescript" => {
            // The separate syntax server would answer questions before the project is loaded.
            let tsserver = json!({"useSyntaxServer": "never"});
            let options = json!({"disableAutomaticTypingAcquisition": true, "tsserver": tsserver});
            (options, Value::Null)
        }
        "pyright" => {
            let analysis = json!({"diagnosticMode": "openFilesOnly", "autoSearchPaths": true});
            (Value::Null, json!({"python": {"analysis": analysis}}))
        }
        "yaml-ls" => (
            Value::Null,
            // Schemas of the schema store would be downloaded.
            json!({"yaml": {"validate": true, "schemaStore": {"enable": false, "url": ""}}}),
        ),
        "json" => (
            json!({"provideFormatter": true, "handledSchemaProtocols": ["file"]}),
            json!({"json": {"validate": {"enable": true}}}),
        ),
        "css" => (
            Value::Null,
            json!({"css": {"validate": true}, "scss": {"validate": true}, "less": {"validate": true}}),
        ),
        "eslint" => {
            let settings = json!({
                "validate": "on", "run": "onType", "problems": {}, "quiet": false, "rulesCustomizations": [],
                "nodePath": null, "experimental": {}, "workingDirectory": {"mode": "auto"},
                "codeAction": {"disableRuleComment": {"enable": false}, "showDocumentation": {"enable": false}},
            });
            (Value::Null, settings)
        }
        // `cargo check` holds a lock that the user's own builds wait for.
        "rust" => (json!({"checkOnSave": false, "cachePriming": {"enable": false}}), Value::Null),
        "bash" => (Value::Null, json!({"bashIde": {"enableSourceErrorDiagnostics": false}})),
        _ => (Value::Null, Value::Null),
    }
}

const JS: &str = "ts tsx js jsx mjs cjs mts cts";
const JS_LOCKS: &str = "package-lock.json bun.lockb bun.lock pnpm-lock.yaml yarn.lock";

/// A row for a server that is used wherever it is installed.
const fn row(
    id: &'static str,
    command: &'static str,
    extensions: &'static str,
    markers: &'static str,
    install: &'static str,
) -> ServerRow {
    ServerRow { id, command, extensions, markers, needs_marker: false, excluded_by: "", install }
}

/// Restricts a row to projects that have one of its markers.
const fn only_with_marker(row: ServerRow) -> ServerRow {
    ServerRow { needs_marker: true, ..row }
}

/// Excludes projects that have one of these files.
const fn not_with(row: ServerRow, excluded_by: &'static str) -> ServerRow {
    ServerRow { excluded_by, ..row }
}

const SERVERS: &[ServerRow] = &[
    only_with_marker(row("deno", "deno lsp", JS, "deno.json deno.jsonc", "see https://deno.com")),
    not_with(
        row(
            "typescript",
            "typescript-language-server --stdio",
            JS,
            JS_LOCKS,
            "npm install -g typescript-language-server typescript",
        ),
        "deno.json deno.jsonc",
    ),
    row(
        "vue",
        "vue-language-server --stdio",
        "vue",
        JS_LOCKS,
        "npm install -g @vue/language-server",
    ),
    only_with_marker(row(
        "eslint",
        "vscode-eslint-language-server --stdio",
        "ts tsx js jsx mjs cjs mts cts vue",
        "eslint.config.js eslint.config.mjs eslint.config.cjs eslint.config.ts .eslintrc .eslintrc.js .eslintrc.cjs .eslintrc.json .eslintrc.yml",
        "npm install -g vscode-langservers-extracted",
    )),
    only_with_marker(row(
        "oxlint",
        "oxlint --lsp",
        "ts tsx js jsx mjs cjs mts cts vue astro svelte",
        ".oxlintrc.json oxlint.config.ts",
        "npm install -g oxlint",
    )),
    only_with_marker(row(
        "biome",
        "biome lsp-proxy",
        "ts tsx js jsx mjs cjs mts cts json jsonc vue astro svelte css graphql gql html",
        "biome.json biome.jsonc",
        "npm install -D @biomejs/biome",
    )),
    row("gopls", "gopls", "go", "go.work go.mod", "go install golang.org/x/tools/gopls@latest"),
    row("ruby-lsp", "ruby-lsp", "rb rake gemspec ru", "Gemfile", "gem install ruby-lsp"),
    only_with_marker(row("ty", "ty server", "py pyi", "ty.toml", "pip install ty")),
    not_with(
        row(
            "pyright",
            "pyright-langserver --stdio",
            "py pyi",
            "pyrightconfig.json pyproject.toml setup.py setup.cfg requirements.txt Pipfile",
            "npm install -g pyright",
        ),
        "ty.toml",
    ),
    only_with_marker(row(
        "ruff",
        "ruff server",
        "py pyi",
        "ruff.toml .ruff.toml",
        "pip install ruff",
    )),
    row(
        "elixir-ls",
        "elixir-ls",
        "ex exs",
        "mix.exs mix.lock",
        "see https://github.com/elixir-lsp/elixir-ls",
    ),
    row("zls", "zls", "zig zon", "build.zig", "see https://zigtools.org/zls"),
    row(
        "csharp",
        "roslyn-language-server --stdio --autoLoadProjects",
        "cs csx",
        "*.slnx *.sln *.csproj global.json",
        "dotnet tool install -g roslyn-language-server",
    ),
    row(
        "razor",
        "roslyn-language-server --stdio --autoLoadProjects",
        "razor cshtml",
        "*.slnx *.sln *.csproj global.json",
        "dotnet tool install -g roslyn-language-server",
    ),
    row(
        "fsharp",
        "fsautocomplete",
        "fs fsi fsx fsscript",
        "*.slnx *.sln *.fsproj global.json",
        "dotnet tool install -g fsautocomplete",
    ),
    row(
        "sourcekit-lsp",
        "sourcekit-lsp",
        "swift objc objcpp",
        "Package.swift *.xcodeproj *.xcworkspace",
        "install Swift from https://swift.org",
    ),
    row(
        "rust",
        "rust-analyzer",
        "rs",
        "Cargo.lock Cargo.toml",
        "rustup component add rust-analyzer",
    ),
    row(
        "clangd",
        "clangd --background-index=false --clang-tidy=false",
        "c cpp cc cxx c++ h hpp hh hxx h++",
        "compile_commands.json compile_flags.txt .clangd",
        "apt install clangd",
    ),
    row(
        "svelte",
        "svelteserver --stdio",
        "svelte",
        JS_LOCKS,
        "npm install -g svelte-language-server",
    ),
    row("astro", "astro-ls --stdio", "astro", JS_LOCKS, "npm install -g @astrojs/language-server"),
    only_with_marker(row(
        "jdtls",
        "jdtls",
        "java",
        "settings.gradle settings.gradle.kts gradlew build.gradle build.gradle.kts pom.xml .project .classpath",
        "see https://github.com/eclipse-jdtls/eclipse.jdt.ls",
    )),
    row(
        "kotlin-ls",
        "kotlin-lsp --stdio",
        "kt kts",
        "settings.gradle settings.gradle.kts gradlew build.gradle build.gradle.kts pom.xml",
        "see https://github.com/Kotlin/kotlin-lsp",
    ),
    row(
        "yaml-ls",
        "yaml-language-server --stdio",
        "yaml yml",
        JS_LOCKS,
        "npm install -g yaml-language-server",
    ),
    row(
        "json",
        "vscode-json-language-server --stdio",
        "json jsonc",
        "",
        "npm install -g vscode-langservers-extracted",
    ),
    row(
        "css",
        "vscode-css-language-server --stdio",
        "css scss less",
        "",
        "npm install -g vscode-langservers-extracted",
    ),
    row(
        "lua-ls",
        "lua-language-server",
        "lua",
        ".luarc.json .luarc.jsonc .luacheckrc .stylua.toml stylua.toml selene.toml selene.yml",
        "see https://luals.github.io",
    ),
    row(
        "php intelephense",
        "intelephense --stdio",
        "php",
        "composer.json composer.lock .php-version",
        "npm install -g intelephense",
    ),
    row(
        "prisma",
        "prisma-language-server --stdio",
        "prisma",
        "schema.prisma",
        "npm install -g @prisma/language-server",
    ),
    row(
        "dart",
        "dart language-server --lsp",
        "dart",
        "pubspec.yaml analysis_options.yaml",
        "install the Dart SDK",
    ),
    row(
        "ocaml-lsp",
        "ocamllsp",
        "ml mli",
        "dune-project dune-workspace .merlin opam",
        "opam install ocaml-lsp-server",
    ),
    row(
        "bash",
        "bash-language-server start",
        "sh bash zsh ksh",
        "",
        "npm install -g bash-language-server",
    ),
    row(
        "terraform",
        "terraform-ls serve",
        "tf tfvars",
        ".terraform.lock.hcl terraform.tfstate *.tf",
        "see https://github.com/hashicorp/terraform-ls",
    ),
    row(
        "texlab",
        "texlab",
        "tex bib",
        ".latexmkrc latexmkrc .texlabroot texlabroot",
        "cargo install texlab",
    ),
    row(
        "dockerfile",
        "docker-langserver --stdio",
        "dockerfile Dockerfile",
        "",
        "npm install -g dockerfile-language-server-nodejs",
    ),
    row("gleam", "gleam lsp", "gleam", "gleam.toml", "see https://gleam.run"),
    row(
        "clojure-lsp",
        "clojure-lsp listen",
        "clj cljs cljc edn",
        "deps.edn project.clj shadow-cljs.edn bb.edn build.boot",
        "see https://clojure-lsp.io",
    ),
    row("nixd", "nixd", "nix", "flake.nix", "see https://github.com/nix-community/nixd"),
    row("tinymist", "tinymist lsp", "typ typc", "typst.toml", "cargo install tinymist"),
    row(
        "haskell-language-server",
        "haskell-language-server-wrapper --lsp",
        "hs lhs",
        "stack.yaml cabal.project hie.yaml *.cabal",
        "ghcup install hls",
    ),
    row(
        "julials",
        // A tab, because the command is split at spaces.
        "julia --startup-file=no --history-file=no -e import\tLanguageServer;LanguageServer.runserver()",
        "jl",
        "Project.toml Manifest.toml",
        "julia -e 'using Pkg; Pkg.add(\"LanguageServer\")'",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_complete() {
        let servers = server_definitions(&[]);
        for server in &servers {
            assert!(!server.command.is_empty() && !server.install.is_empty(), "{}", server.id);
            assert!(!server.needs_marker || !server.markers.is_empty(), "{}", server.id);
            let count = servers.iter().filter(|other| other.id == server.id).count();
            assert_eq!(count, 1, "{}", server.id);
            for extension in &server.extensions {
                assert!(!extension.starts_with('.'), "{}", server.id);
                let has_no_language_id = ["objc", "objcpp"].contains(&extension.as_str());
                assert!(has_no_language_id || language_id(extension) != "plaintext", "{extension}");
            }
        }
    }

    #[test]
    fn configuration_overrides_the_table() {
        let entry = |id: &str| ServerOverride { id: id.into(), ..ServerOverride::default() };
        let disabled = ServerOverride { is_disabled: true, ..entry("typescript") };
        let changed = ServerOverride { command: vec!["my-pyright".into()], ..entry("pyright") };
        let added = ServerOverride {
            command: vec!["mine".into()],
            extensions: vec![".xyz".into()],
            ..entry("mine")
        };
        let servers = server_definitions(&[disabled, changed, added, entry("nothing")]);
        let find = |id: &str| servers.iter().find(|server| server.id == id);
        assert_eq!(find("typescript"), None);
        assert_eq!(find("nothing"), None);
        let pyright = find("pyright").unwrap();
        assert_eq!(
            (&pyright.command[..], &pyright.extensions[0][..]),
            (&["my-pyright".into()][..], "py")
        );
        assert_eq!(find("mine").unwrap().extensions, ["xyz"]);
    }
}

//! Resolves import specifiers, such as `./util` or `yaml`, as bun does: the extension may be missing, `.js` may mean
//! `.ts`, and a folder stands for its index file.

use std::path::{Component, Path, PathBuf};

use helve_text::file_uri;
use serde_json::Value;

/// What a specifier refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ImportTarget {
    /// A source file or a data file, which becomes part of the bundle.
    File(PathBuf),
    /// A file of another installed package, which the runtime loads itself.
    InstalledFile(PathBuf),
    /// A module that is built into the runtime, such as `node:fs`.
    Builtin(String),
    /// A module that Helve provides.
    Provided(ProvidedModule),
    /// An installed package: its name and its folder.
    Package { name: String, folder: PathBuf },
    /// A package that is not installed.
    MissingPackage(String),
    /// A file that does not exist.
    MissingFile,
}

/// Modules that Helve provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProvidedModule {
    Plugin,
    Zod,
    Bun,
    Sqlite,
    Ffi,
    FsPromises,
}

impl ProvidedModule {
    pub(crate) fn file_name(self) -> &'static str {
        match self {
            ProvidedModule::Plugin => "tool.mjs",
            ProvidedModule::Zod => "zod.mjs",
            ProvidedModule::Bun => "bun.mjs",
            ProvidedModule::Sqlite => "sqlite.mjs",
            ProvidedModule::Ffi => "ffi.mjs",
            ProvidedModule::FsPromises => "fs_promises.mjs",
        }
    }
}

/// The file system operations that resolving needs.
pub(crate) trait ImportFiles {
    fn is_file(&self, path: &Path) -> bool;
    fn is_folder(&self, path: &Path) -> bool;
    /// The text of a small file, such as `tsconfig.json`.
    fn read_text(&self, path: &Path) -> Option<String>;
}

/// Modules of node that may be imported without `node:`.
const BUILTINS: &[&str] = &[
    "assert",
    "async_hooks",
    "buffer",
    "child_process",
    "cluster",
    "console",
    "constants",
    "crypto",
    "dgram",
    "diagnostics_channel",
    "dns",
    "domain",
    "events",
    "fs",
    "http",
    "http2",
    "https",
    "inspector",
    "module",
    "net",
    "os",
    "path",
    "perf_hooks",
    "process",
    "punycode",
    "querystring",
    "readline",
    "repl",
    "stream",
    "string_decoder",
    "timers",
    "tls",
    "trace_events",
    "tty",
    "url",
    "util",
    "v8",
    "vm",
    "wasi",
    "worker_threads",
    "zlib",
];

/// Extensions that may be left out, in order of precedence.
const EXTENSIONS: &[&str] = &["ts", "tsx", "mts", "cts", "js", "jsx", "mjs", "cjs", "json"];

/// Maximum number of folders above a file that are searched.
const MAX_LEVELS: usize = 32;

/// Resolves a specifier in the file `importer`.
pub(crate) fn resolve(files: &dyn ImportFiles, importer: &Path, specifier: &str) -> ImportTarget {
    let folder = importer.parent().unwrap_or(Path::new("/"));
    match specifier {
        "bun" => return ImportTarget::Provided(ProvidedModule::Bun),
        "bun:sqlite" => return ImportTarget::Provided(ProvidedModule::Sqlite),
        "bun:ffi" => return ImportTarget::Provided(ProvidedModule::Ffi),
        "fs/promises" | "node:fs/promises" => {
            return ImportTarget::Provided(ProvidedModule::FsPromises);
        }
        "@opencode-ai/plugin" | "@opencode-ai/plugin/tool" => {
            return ImportTarget::Provided(ProvidedModule::Plugin);
        }
        _ => {}
    }
    if specifier.starts_with("node:") || specifier.starts_with("bun:") {
        return ImportTarget::Builtin(specifier.into());
    }
    if let Some(path) = file_uri::to_path(specifier) {
        return file_target(files, importer, &path);
    }
    if specifier.starts_with('#') {
        return match subpath_import(files, folder, specifier) {
            Some(path) => file_target(files, importer, &path),
            None => ImportTarget::MissingFile,
        };
    }
    let is_path = specifier.starts_with('/')
        || specifier == "."
        || specifier == ".."
        || specifier.starts_with("./")
        || specifier.starts_with("../");
    if is_path {
        return file_target(files, importer, &normalize(&folder.join(specifier)));
    }
    let first_part = specifier.split('/').next().unwrap_or_default();
    if BUILTINS.contains(&first_part) {
        return ImportTarget::Builtin(format!("node:{specifier}"));
    }
    if let Some(path) = tsconfig_target(files, folder, specifier) {
        return ImportTarget::File(path);
    }
    package_target(files, folder, specifier)
}

fn file_target(files: &dyn ImportFiles, importer: &Path, path: &Path) -> ImportTarget {
    let Some(path) = find_file(files, path) else { return ImportTarget::MissingFile };
    // A plugin may be an installed package. Its own files are sources like any other: they may be TypeScript.
    match installed_package(&path) {
        Some(package) if installed_package(importer) != Some(package) => {
            ImportTarget::InstalledFile(path)
        }
        _ => ImportTarget::File(path),
    }
}

/// Returns the folder of the installed package that a file belongs to, such as `/p/node_modules/yaml`.
pub(crate) fn installed_package(file: &Path) -> Option<&Path> {
    let is_modules = |folder: &&Path| folder.file_name().is_some_and(|it| it == "node_modules");
    let modules_folder = file.ancestors().skip(1).find(is_modules)?;
    let mut path_in_modules = file.strip_prefix(modules_folder).ok()?.components();
    let is_scoped = path_in_modules.next()?.as_os_str().as_encoded_bytes().starts_with(b"@");
    let depth = modules_folder.components().count() + if is_scoped { 2 } else { 1 };
    file.ancestors().find(|folder| folder.components().count() == depth)
}

/// Looks up a specifier such as `#lib/x` in `imports` of the nearest `package.json`.
fn subpath_import(files: &dyn ImportFiles, folder: &Path, specifier: &str) -> Option<PathBuf> {
    let mut folders = folder.ancestors().take(MAX_LEVELS);
    let folder = folders.find(|folder| files.is_file(&folder.join("package.json")))?;
    let package = package_json(files, folder)?;
    let imports = package.get("imports")?.as_object()?;
    imports.iter().find_map(|(pattern, target)| {
        let matched = match_star(pattern, specifier)?;
        let paths = conditional_paths(target).into_iter();
        let mut paths = paths.map(|path| normalize(&folder.join(path.replace('*', matched))));
        paths.find_map(|path| find_file(files, &path))
    })
}

/// Returns the text that `*` in a pattern stands for; empty if there is no `*`, `None` if the pattern does not match.
fn match_star<'a>(pattern: &str, text: &'a str) -> Option<&'a str> {
    match pattern.split_once('*') {
        Some((start, end)) => text.strip_prefix(start)?.strip_suffix(end),
        None => (pattern == text).then_some(""),
    }
}

/// Lists the paths in a target of `exports` or `imports` of a `package.json`, those of preferred conditions first.
pub(crate) fn conditional_paths(target: &Value) -> Vec<&str> {
    const CONDITIONS: [&str; 5] = ["bun", "import", "node", "module", "default"];
    fn collect<'a>(target: &'a Value, depth: usize, paths: &mut Vec<&'a str>) {
        match target {
            Value::String(path) => paths.push(path),
            Value::Array(targets) if depth > 0 => {
                targets.iter().for_each(|target| collect(target, depth - 1, paths));
            }
            Value::Object(conditions) if depth > 0 => {
                let preferred = CONDITIONS.iter().filter_map(|name| conditions.get(*name));
                preferred.for_each(|target| collect(target, depth - 1, paths));
            }
            _ => {}
        }
    }
    let mut paths = Vec::new();
    collect(target, 5, &mut paths);
    paths
}

/// Finds the file of an import path. The extension may be missing, or be that of the compiled file (`.js` for `.ts`).
fn find_file(files: &dyn ImportFiles, path: &Path) -> Option<PathBuf> {
    if files.is_file(path) {
        return Some(path.into());
    }
    let with_suffix = |suffix: &str| {
        let mut name = path.as_os_str().to_owned();
        name.push(suffix);
        PathBuf::from(name)
    };
    let source_extensions: &[&str] = match path.extension().and_then(|it| it.to_str()) {
        Some("js") => &["ts", "tsx"],
        Some("jsx") => &["tsx"],
        Some("mjs") => &["mts"],
        Some("cjs") => &["cts"],
        _ => &[],
    };
    let sources = source_extensions.iter().map(|it| path.with_extension(it));
    let appended = EXTENSIONS.iter().map(|it| with_suffix(&format!(".{it}")));
    let indexes = EXTENSIONS.iter().map(|it| path.join(format!("index.{it}")));
    let declarations = [with_suffix(".d.ts")];
    sources.chain(appended).chain(indexes).chain(declarations).find(|file| files.is_file(file))
}

/// Removes `.` and `..` from a path, without following links.
pub(crate) fn normalize(path: &Path) -> PathBuf {
    let mut clean = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                clean.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => clean.push(part),
        }
    }
    clean
}

/// Looks a specifier up in `compilerOptions.paths` of the nearest `tsconfig.json`.
fn tsconfig_target(files: &dyn ImportFiles, folder: &Path, specifier: &str) -> Option<PathBuf> {
    let config_folder = nearest_tsconfig(files, folder)?;
    let text = files.read_text(&config_folder.join(TSCONFIG))?;
    let config: Value = jsonc_parser::parse_to_serde_value(&text, &Default::default()).ok()?;
    let options = config.get("compilerOptions")?;
    let base = options.get("baseUrl").and_then(Value::as_str).unwrap_or(".");
    let base = normalize(&config_folder.join(base));
    for (pattern, targets) in options.get("paths")?.as_object()? {
        let Some(matched) = match_star(pattern, specifier) else { continue };
        for target in targets.as_array()?.iter().filter_map(Value::as_str) {
            let path = normalize(&base.join(target.replacen('*', matched, 1)));
            if let Some(found) = find_file(files, &path) {
                return Some(found);
            }
        }
    }
    None
}

pub(crate) const TSCONFIG: &str = "tsconfig.json";

/// Returns the nearest folder with a `tsconfig.json`.
pub(crate) fn nearest_tsconfig<'a>(files: &dyn ImportFiles, folder: &'a Path) -> Option<&'a Path> {
    folder.ancestors().take(MAX_LEVELS).find(|folder| files.is_file(&folder.join(TSCONFIG)))
}

fn package_target(files: &dyn ImportFiles, folder: &Path, specifier: &str) -> ImportTarget {
    let name = package_name(specifier);
    let folders = folder.ancestors().take(MAX_LEVELS);
    let mut candidates = folders.map(|folder| folder.join("node_modules").join(&name));
    match candidates.find(|candidate| files.is_folder(candidate)) {
        Some(folder) => {
            let candidates = package_files(files, &folder, &specifier[name.len()..]);
            match candidates.first() {
                // A package without compiled files, as in a workspace whose packages are links to sources.
                Some(file) if candidates.iter().all(|file| is_typescript(file)) => {
                    ImportTarget::File(file.clone())
                }
                // Unlike bun, node wants the whole file name.
                Some(file) if is_shortened(files, &folder, &specifier[name.len()..], file) => {
                    ImportTarget::InstalledFile(file.clone())
                }
                _ => ImportTarget::Package { name, folder },
            }
        }
        None if matches!(specifier, "zod" | "zod/v4") => {
            ImportTarget::Provided(ProvidedModule::Zod)
        }
        None => ImportTarget::MissingPackage(name),
    }
}

/// Whether `subpath` leaves out the extension of `file`, or names the folder of an index file. Never for packages with
/// `exports`, which map such names themselves.
fn is_shortened(files: &dyn ImportFiles, folder: &Path, subpath: &str, file: &Path) -> bool {
    let named = normalize(&folder.join(subpath.trim_start_matches('/')));
    let has_exports = || package_json(files, folder).is_some_and(|it| it.get("exports").is_some());
    !subpath.is_empty() && named != file && !has_exports()
}

fn is_typescript(file: &Path) -> bool {
    file.extension().is_some_and(|it| ["ts", "tsx", "mts", "cts"].iter().any(|ts| it == *ts))
}

/// Lists the files that an import of a package may load, by the conditions in its `exports`, preferred ones first.
/// `subpath` is what follows the package's name, such as `/lib/x`, or empty.
fn package_files(files: &dyn ImportFiles, folder: &Path, subpath: &str) -> Vec<PathBuf> {
    let Some(package) = package_json(files, folder) else { return Vec::new() };
    let name = format!(".{subpath}");
    let exported = match package.get("exports") {
        Some(Value::Object(exports)) if exports.keys().any(|key| key.starts_with('.')) => {
            exports.iter().find_map(|(pattern, target)| {
                Some((match_star(pattern, &name)?, conditional_paths(target)))
            })
        }
        Some(target) if subpath.is_empty() => Some(("", conditional_paths(target))),
        _ => None,
    };
    let paths: Vec<String> = match exported {
        Some((matched, paths)) => paths.iter().map(|path| path.replace('*', matched)).collect(),
        None if subpath.is_empty() => {
            let main = ["module", "main"].iter().filter_map(|key| package.get(*key)?.as_str());
            main.chain(["index.js"]).map(str::to_owned).collect()
        }
        None => vec![name],
    };
    let paths = paths.iter().map(|path| normalize(&folder.join(path)));
    paths.filter_map(|path| find_file(files, &path)).collect()
}

fn package_json(files: &dyn ImportFiles, folder: &Path) -> Option<Value> {
    serde_json::from_str(&files.read_text(&folder.join("package.json"))?).ok()
}

/// Finds which file of an installed plugin to load: the first one that exists, because published packages often lack
/// the source files that they name for bun.
pub(crate) fn plugin_entry(files: &dyn ImportFiles, folder: &Path) -> Option<PathBuf> {
    // Packages with parts for opencode's server and for its TUI export them separately.
    let server = package_files(files, folder, "/server").into_iter().next();
    server.or_else(|| package_files(files, folder, "").into_iter().next())
}

/// Returns the package name of a specifier, such as `@scope/name` for `@scope/name/part`.
fn package_name(specifier: &str) -> String {
    let parts = if specifier.starts_with('@') { 2 } else { 1 };
    let name: Vec<&str> = specifier.split('/').take(parts).collect();
    name.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FixedFiles(&'static [(&'static str, &'static str)]);

    impl ImportFiles for FixedFiles {
        fn is_file(&self, path: &Path) -> bool {
            self.0.iter().any(|(name, _)| Path::new(name) == path)
        }

        fn is_folder(&self, path: &Path) -> bool {
            self.0.iter().any(|(name, _)| Path::new(name).starts_with(path)) && !self.is_file(path)
        }

        fn read_text(&self, path: &Path) -> Option<String> {
            let found = self.0.iter().find(|(name, _)| Path::new(name) == path);
            found.map(|(_, text)| (*text).to_owned())
        }
    }

    const FILES: FixedFiles = FixedFiles(&[
        ("/p/tool/a.ts", ""),
        ("/p/tool/b.js", ""),
        ("/p/tool/dir/index.ts", ""),
        ("/p/tool/types.d.ts", ""),
        ("/p/tool/text.md", ""),
        ("/p/lib/c.ts", ""),
        ("/p/node_modules/yaml/package.json", ""),
        (
            "/p/node_modules/@a/b/package.json",
            r##"{"imports": {"#lib/*": {"bun": "./none/*", "default": "./src/lib/*"}, "#x": "./src/x.ts"}}"##,
        ),
        (
            "/p/node_modules/linked/package.json",
            r##"{"exports": {".": "./src/index.ts", "./parts/*": "./src/parts/*.ts"}}"##,
        ),
        ("/p/node_modules/linked/src/index.ts", ""),
        ("/p/node_modules/linked/src/parts/x.ts", ""),
        (
            "/p/node_modules/both/package.json",
            r##"{"exports": {"bun": "./x.ts", "import": "./x.js"}}"##,
        ),
        ("/p/node_modules/plain/package.json", r#"{"main": "x.js"}"#),
        ("/p/node_modules/plain/x.js", ""),
        ("/p/node_modules/plain/lib/index.js", ""),
        ("/p/node_modules/both/x.ts", ""),
        ("/p/node_modules/both/x.js", ""),
        ("/p/node_modules/@a/b/src/x.ts", ""),
        ("/p/node_modules/@a/b/src/lib/y.js", ""),
        (
            "/p/tsconfig.json",
            "{ // paths\n \"compilerOptions\": {\"paths\": {\"~/*\": [\"./lib/*\"], \"one\": [\"tool/b.js\"]}},}",
        ),
    ]);

    #[track_caller]
    fn check(specifier: &str, expected: &str) {
        check_from("/p/tool/x.ts", specifier, expected);
    }

    #[track_caller]
    fn check_from(importer: &str, specifier: &str, expected: &str) {
        let found = match resolve(&FILES, Path::new(importer), specifier) {
            ImportTarget::File(path) => format!("file {}", path.display()),
            ImportTarget::InstalledFile(path) => format!("installed {}", path.display()),
            ImportTarget::Builtin(name) => name,
            ImportTarget::Provided(module) => format!("provided {}", module.file_name()),
            ImportTarget::Package { name, folder } => format!("{name} in {}", folder.display()),
            ImportTarget::MissingPackage(name) => format!("no package {name}"),
            ImportTarget::MissingFile => "no file".into(),
        };
        assert_eq!(found, expected, "{specifier}");
    }

    #[test]
    fn specifiers_are_resolved() {
        check("./a", "file /p/tool/a.ts");
        check("./a.ts", "file /p/tool/a.ts");
        check("./a.js", "file /p/tool/a.ts");
        check("./b.js", "file /p/tool/b.js");
        check("./dir", "file /p/tool/dir/index.ts");
        check("./types", "file /p/tool/types.d.ts");
        check("./text.md", "file /p/tool/text.md");
        check("../lib/c", "file /p/lib/c.ts");
        check("/p/lib/c", "file /p/lib/c.ts");
        check("~/c", "file /p/lib/c.ts");
        check("one", "file /p/tool/b.js");
        check("./none", "no file");
        check("../node_modules/yaml/package.json", "installed /p/node_modules/yaml/package.json");
        check("yaml", "yaml in /p/node_modules/yaml");
        check("@a/b/part", "@a/b in /p/node_modules/@a/b");
        check("left-pad", "no package left-pad");
        check("fs", "node:fs");
        check("fs/promises", "provided fs_promises.mjs");
        check("node:path", "node:path");
        check("bun", "provided bun.mjs");
        check("bun:sqlite", "provided sqlite.mjs");
        check("bun:ffi", "provided ffi.mjs");
        check("bun:jsc", "bun:jsc");
        check("zod", "provided zod.mjs");
        check("@opencode-ai/plugin/tool", "provided tool.mjs");
        check("#lib/y.js", "no file");
        check("linked", "file /p/node_modules/linked/src/index.ts");
        check("linked/parts/x", "file /p/node_modules/linked/src/parts/x.ts");
        check("both", "both in /p/node_modules/both");
        check("plain", "plain in /p/node_modules/plain");
        check("plain/x.js", "plain in /p/node_modules/plain");
        check("plain/x", "installed /p/node_modules/plain/x.js");
        check("plain/lib", "installed /p/node_modules/plain/lib/index.js");
    }

    #[test]
    fn files_of_a_package_are_sources_of_that_package() {
        let importer = "/p/node_modules/@a/b/src/index.ts";
        check_from(importer, "./x", "file /p/node_modules/@a/b/src/x.ts");
        check_from(importer, "#x", "file /p/node_modules/@a/b/src/x.ts");
        check_from(importer, "#lib/y.js", "file /p/node_modules/@a/b/src/lib/y.js");
        check_from(importer, "#none", "no file");
        check_from(
            importer,
            "../../../yaml/package.json",
            "installed /p/node_modules/yaml/package.json",
        );
        check_from(importer, "yaml", "yaml in /p/node_modules/yaml");
    }
}

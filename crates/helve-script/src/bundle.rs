//! Turns the sources of a tool or plugin into JavaScript modules that bun and node can load.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use helve_text::file_uri;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::resolve::{ImportTarget, ProvidedModule, installed_package};
use crate::sources::{ScriptSources, is_module};
use crate::strip::{self, ImportForm, META, SourceProblem, StrippedModule};

/// Why a tool or plugin cannot be loaded, with the location in its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error)]
#[error("{}{message}", self.location())]
pub struct ScriptError {
    pub file: PathBuf,
    /// From 1; 0 if the line is not known.
    pub line: usize,
    pub message: String,
}

impl ScriptError {
    pub(crate) fn of_file(file: &Path, message: impl Into<String>) -> Self {
        Self { file: file.into(), line: 0, message: message.into() }
    }

    fn location(&self) -> String {
        match self.line {
            0 => format!("{}: ", self.file.display()),
            line => format!("{}:{line}: ", self.file.display()),
        }
    }
}

/// Generated modules, ready to be written into the cache.
#[derive(Clone, Debug)]
pub(crate) struct Bundle {
    /// Hash of the modules and links.
    pub(crate) hash: String,
    /// Name of the module to load, relative to the bundle's folder.
    pub(crate) entry: String,
    pub(crate) modules: Vec<GeneratedModule>,
    /// Symbolic links to installed packages, from a path relative to the bundle's folder to the target.
    pub(crate) links: BTreeMap<String, PathBuf>,
}

/// A JavaScript module that was generated from a source file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct GeneratedModule {
    /// Relative to the bundle's folder.
    pub(crate) name: String,
    /// The source file that the module was generated from.
    pub(crate) source: PathBuf,
    pub(crate) code: String,
    /// The source line of each line of `code`, from 1; 0 for a generated line. Generated lines at the end are left out.
    pub(crate) lines: Vec<u32>,
}

/// Generates the modules. `provided` is the folder of the modules that Helve provides.
pub(crate) fn bundle(sources: &ScriptSources, provided: &Path) -> Result<Bundle, ScriptError> {
    let mut bundler =
        Bundler { sources, provided, names: module_names(sources), links: BTreeMap::new() };
    let mut modules = Vec::new();
    for (path, bytes) in &sources.files {
        modules.push(bundler.generate(path, bytes)?);
    }
    let entry = bundler.names.get(&sources.entry).cloned().unwrap_or_default();
    let links = bundler.links;
    let mut hasher = blake3::Hasher::new();
    let parts = modules.iter().flat_map(|module| [module.name.as_str(), module.code.as_str()]);
    for part in parts.chain(links.keys().map(String::as_str)) {
        hasher.update(&(part.len() as u64).to_le_bytes());
        hasher.update(part.as_bytes());
    }
    for target in links.values() {
        hasher.update(target.as_os_str().as_encoded_bytes());
    }
    let hash = hasher.finalize().to_hex()[..32].to_owned();
    Ok(Bundle { hash, entry, modules, links })
}

/// Chooses the names of the generated modules. Modules of one source folder share a folder, because they share
/// packages.
fn module_names(sources: &ScriptSources) -> BTreeMap<PathBuf, String> {
    let mut folders: Vec<&Path> = sources.files.keys().filter_map(|file| file.parent()).collect();
    folders.dedup();
    let name = |file: &PathBuf| {
        let folder = folders.iter().position(|folder| Some(*folder) == file.parent());
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let safe: String = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() || "._-".contains(c) { c } else { '_' })
            .collect();
        let hash = blake3::hash(file.as_os_str().as_encoded_bytes()).to_hex();
        // The hash distinguishes files whose names differ only in characters that were replaced.
        format!("{}/{safe}.{}.mjs", folder.unwrap_or_default(), &hash[..8])
    };
    sources.files.keys().map(|file| (file.clone(), name(file))).collect()
}

/// Generates modules, and collects the links that they need.
struct Bundler<'a> {
    sources: &'a ScriptSources,
    provided: &'a Path,
    names: BTreeMap<PathBuf, String>,
    links: BTreeMap<String, PathBuf>,
}

impl Bundler<'_> {
    /// Generates the module of one source or data file.
    fn generate(&mut self, path: &Path, bytes: &[u8]) -> Result<GeneratedModule, ScriptError> {
        let text = String::from_utf8_lossy(bytes);
        let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
        let (code, lines) = if path.to_str().is_some_and(|path| path.ends_with(".d.ts")) {
            ("export {};\n".into(), Vec::new())
        } else if is_module(path) {
            self.generate_code(path, text)?
        } else {
            (data_module(path, text)?, Vec::new())
        };
        let name = self.names.get(path).cloned().unwrap_or_default();
        Ok(GeneratedModule { name, source: path.into(), code, lines })
    }

    fn generate_code(
        &mut self,
        path: &Path,
        text: &str,
    ) -> Result<(String, Vec<u32>), ScriptError> {
        let (mut problem, mut required) = (None, Vec::new());
        let mut rewrite = |specifier: &str, form: ImportForm, line: usize| match self
            .rewrite_specifier(path, specifier, form)
        {
            Ok(new) => {
                if form == ImportForm::Require {
                    required.extend(new.map(|new| (specifier.to_owned(), new)));
                    return None;
                }
                new
            }
            Err(message) => {
                problem.get_or_insert(SourceProblem { line, message });
                None
            }
        };
        let stripped = strip::strip(path, text, &mut rewrite);
        let to_error = |problem: SourceProblem| ScriptError {
            file: path.into(),
            line: problem.line,
            message: problem.message,
        };
        let stripped = stripped.map_err(to_error)?;
        match problem {
            Some(problem) => Err(to_error(problem)),
            None => Ok(assemble(path, stripped, &required, &self.provided_packages())),
        }
    }

    /// Returns the specifier to write into the generated module in place of `specifier`; `None` leaves it unchanged.
    /// Fails if a static import cannot be loaded.
    fn rewrite_specifier(
        &mut self,
        importer: &Path,
        specifier: &str,
        form: ImportForm,
    ) -> Result<Option<String>, String> {
        let target = self.sources.targets.get(&(importer.into(), specifier.to_owned()));
        let must_exist = form == ImportForm::Static;
        match target {
            Some(ImportTarget::File(file)) => Ok(match form {
                // Only the runtime itself supports CommonJS files that require each other in a circle.
                ImportForm::Require if installed_package(file).is_some() => None,
                _ => self.relative_specifier(importer, file),
            }),
            Some(ImportTarget::InstalledFile(file)) => Ok(match form {
                ImportForm::Require => None,
                ImportForm::Static | ImportForm::Dynamic => Some(file_uri::from_path(file)),
            }),
            Some(ImportTarget::Builtin(name)) => Ok(match form {
                // `require` finds built-in modules itself.
                ImportForm::Require => None,
                ImportForm::Static | ImportForm::Dynamic => Some(name.clone()),
            }),
            Some(ImportTarget::Provided(module)) => Ok(Some(self.provided_url(*module))),
            Some(ImportTarget::Package { name, folder }) => {
                let name_parts = self.names.get(importer).and_then(|name| name.split_once('/'));
                let importer_folder = name_parts.map_or("0", |(folder, _)| folder);
                self.links.insert(format!("{importer_folder}/node_modules/{name}"), folder.clone());
                Ok(None)
            }
            Some(ImportTarget::MissingPackage(name)) if must_exist => {
                Err(missing_package(name, importer))
            }
            Some(ImportTarget::MissingFile) if must_exist => {
                Err(format!("\"{specifier}\" does not exist"))
            }
            Some(ImportTarget::MissingPackage(_) | ImportTarget::MissingFile) => Ok(None),
            // The scan did not find this import, so the trusted digest does not cover the imported file.
            None if must_exist => {
                Err(format!("the import of {specifier:?} must be written as a plain string"))
            }
            None => Ok(None),
        }
    }

    fn relative_specifier(&self, importer: &Path, file: &Path) -> Option<String> {
        let (from, to) = (self.names.get(importer)?, self.names.get(file)?);
        let (importer_folder, _) = from.split_once('/')?;
        Some(match to.strip_prefix(importer_folder).and_then(|rest| rest.strip_prefix('/')) {
            Some(name) => format!("./{name}"),
            None => format!("../{to}"),
        })
    }

    /// The npm packages that Helve provides: a JavaScript object with the name and URL of each.
    fn provided_packages(&self) -> String {
        let packages = PROVIDED_PACKAGES.iter().map(|(name, module)| {
            format!(
                "{}: {}",
                literal(&Value::from(*name)),
                literal(&Value::from(self.provided_url(*module)))
            )
        });
        format!("{{ {} }}", packages.collect::<Vec<_>>().join(", "))
    }

    fn provided_url(&self, module: ProvidedModule) -> String {
        file_uri::from_path(&self.provided.join(module.file_name()))
    }
}

/// Packages that `import.meta.resolve` finds although they are not installed.
const PROVIDED_PACKAGES: &[(&str, ProvidedModule)] = &[
    ("@opencode-ai/plugin", ProvidedModule::Plugin),
    ("@opencode-ai/plugin/tool", ProvidedModule::Plugin),
    ("zod", ProvidedModule::Zod),
    ("zod/v4", ProvidedModule::Zod),
];

fn missing_package(name: &str, importer: &Path) -> String {
    let folder = importer.parent().unwrap_or(importer);
    // Packages are installed in the configuration folder, next to `tool` and `plugin`.
    let is_script_folder = |folder: &Path| {
        let name = folder.file_name().and_then(|name| name.to_str());
        matches!(name, Some("tool" | "tools" | "plugin" | "plugins"))
    };
    let folder = if is_script_folder(folder) { folder.parent().unwrap_or(folder) } else { folder };
    format!(
        "the npm package \"{name}\" is not installed; run `npm install {name}` in {}",
        folder.display()
    )
}

/// Generates a module that exports the content of a data file.
fn data_module(path: &Path, text: &str) -> Result<String, ScriptError> {
    let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
    match extension {
        "json" | "jsonc" => {
            let value: Value = jsonc_parser::parse_to_serde_value(text, &Default::default())
                .map_err(|error| ScriptError::of_file(path, error.to_string()))?;
            let mut code = format!("const value = {};\nexport default value;\n", literal(&value));
            let names = value.as_object().into_iter().flat_map(|object| object.keys());
            for (index, name) in names.filter(|name| is_identifier(name)).enumerate() {
                let key = literal(&Value::from(name.as_str()));
                writeln!(code, "const v{index} = value[{key}];\nexport {{ v{index} as {name} }};")
                    .ok();
            }
            Ok(code)
        }
        "md" | "mdx" | "txt" | "html" | "css" | "sql" | "graphql" | "prompt" | "yaml" | "yml" => {
            Ok(format!("export default {};\n", literal(&Value::from(text))))
        }
        _ => Err(ScriptError::of_file(path, format!(".{extension} files cannot be imported"))),
    }
}

/// Whether a key of a JSON file can be exported under its own name.
fn is_identifier(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && name != "default"
        && !name.starts_with("__")
}

/// Writes a value as a JavaScript expression.
fn literal(value: &Value) -> String {
    // U+2028 and U+2029 are line terminators in JavaScript, but not in JSON.
    value.to_string().replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Prepends definitions of the globals that a module uses, such as `require` and `__dirname`, and wraps CommonJS as an
/// ES module. `required` contains the specifier of each `require` call, with the module that it loads;
/// `provided_packages` is a JavaScript object.
fn assemble(
    path: &Path,
    stripped: StrippedModule,
    required: &[(String, String)],
    provided_packages: &str,
) -> (String, Vec<u32>) {
    let uses = |name: &str| stripped.undeclared_names.iter().any(|it| it == name);
    let text = |value: &str| literal(&Value::from(value));
    let file = text(&path.to_string_lossy());
    let folder = text(&path.parent().unwrap_or(Path::new("/")).to_string_lossy());
    let url = text(&file_uri::from_path(path));
    let is_common_js =
        !stripped.is_module && ["module", "exports", "require"].into_iter().any(uses);
    let mut preamble = String::new();
    let uses_require = is_common_js || uses("require") || stripped.uses_meta;
    if uses_require {
        preamble
            .push_str("import { createRequire as __helveCreateRequire } from \"node:module\";\n");
        for (index, (_, target)) in required.iter().enumerate() {
            writeln!(preamble, "import * as __helveRequired{index} from {};", text(target)).ok();
        }
        writeln!(preamble, "const __helveRequire = __helveCreateRequire({url});").ok();
    }
    if stripped.uses_meta {
        let name = text(&path.file_name().unwrap_or_default().to_string_lossy());
        writeln!(preamble, "const __helveProvided = {provided_packages};").ok();
        writeln!(preamble, "const __helveResolve = (name) => {{ try {{ return __helveRequire.resolve(name); }} catch (error) {{ if (Object.hasOwn(__helveProvided, name)) return __helveProvided[name]; throw error; }} }};").ok();
        writeln!(preamble, "const {META} = {{ url: {url}, filename: {file}, dirname: {folder}, path: {file}, dir: {folder}, file: {name}, main: false, env: process.env, require: __helveRequire, resolve: (name) => /^[./]/.test(name) ? new URL(name, {url}).href : __helveResolve(name) }};").ok();
    }
    if uses("require") || is_common_js {
        let entries = required
            .iter()
            .enumerate()
            .map(|(index, (specifier, _))| format!("{}: __helveRequired{index}", text(specifier)));
        let entries: Vec<String> = entries.collect();
        writeln!(preamble, "const __helveModules = {{ {} }};", entries.join(", ")).ok();
        writeln!(preamble, "const __helveFind = Object.assign((name) => {{ const found = Object.hasOwn(__helveModules, name) ? __helveModules[name] : undefined; return found ? (found.__helveCommonJs ? found.default : found) : __helveRequire(name); }}, {{ resolve: __helveRequire.resolve, cache: __helveRequire.cache }});").ok();
    }
    let mut epilogue = String::new();
    if is_common_js {
        preamble.push_str("const __helveModule = { exports: {} };\n");
        preamble.push_str("(function (module, exports, require, __filename, __dirname) {\n");
        writeln!(epilogue, "}}).call(__helveModule.exports, __helveModule, __helveModule.exports, __helveFind, {file}, {folder});").ok();
        epilogue.push_str(
            "export const __helveCommonJs = true;\nexport default __helveModule.exports;\n",
        );
        for (index, name) in stripped.common_js_exports.iter().enumerate() {
            writeln!(epilogue, "const __helveExport{index} = __helveModule.exports[{}];\nexport {{ __helveExport{index} as {name} }};", text(name)).ok();
        }
    } else {
        if uses("require") {
            preamble.push_str("const require = __helveFind;\n");
        }
        if uses("__filename") {
            writeln!(preamble, "const __filename = {file};").ok();
        }
        if uses("__dirname") {
            writeln!(preamble, "const __dirname = {folder};").ok();
        }
    }
    let mut lines = vec![0; preamble.lines().count()];
    lines.extend(&stripped.lines);
    let code = stripped.code.strip_suffix('\n').unwrap_or(&stripped.code);
    (format!("{preamble}{code}\n{epilogue}"), lines)
}

//! Finds and reads the configuration files, in order. Each is read once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::includes::{IncludedFiles, read_includes};
use super::instructions::{InstructionFile, read_instructions};
use super::interpret::interpret;
use super::jsonc::{self, ParsedJson};
use super::load::{
    ConfigHost, ConfigReadError, FileContents, FolderFiles, LinkPolicy, MAX_DEPTH,
    MAX_MARKDOWN_FILES,
};
use super::messages::{self, ProblemText};
use super::problem::{ConfigProblem, Severity};
use super::scripts::HOOK_EVENTS;
use super::skill_folders::SkillFolders;
use super::skills;
use super::tree::ConfigValue;
use super::{Config, ConfigLayer, Trust};

/// Where configuration files are looked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConfigPaths {
    /// Helve's folder in the user's configuration (`~/.config/helve`).
    pub user: Option<PathBuf>,
    /// opencode's folder in the user's configuration (`~/.config/opencode`).
    pub opencode: Option<PathBuf>,
    /// Files and folders given with `--config`, in order.
    pub given: Vec<PathBuf>,
    /// The root of the workspace.
    pub root: PathBuf,
    /// The home folder, for `~`.
    pub home: Option<PathBuf>,
}

impl ConfigPaths {
    /// The standard locations: `$XDG_CONFIG_HOME/helve` or `~/.config/helve`.
    pub fn standard(host: &dyn ConfigHost, root: PathBuf, given: Vec<PathBuf>) -> Self {
        let folder = |name: &str| {
            host.variable(name).map(PathBuf::from).filter(|folder| folder.is_absolute())
        };
        let home = folder("HOME");
        let config =
            folder("XDG_CONFIG_HOME").or_else(|| home.as_ref().map(|home| home.join(".config")));
        let opencode = config.as_ref().map(|folder| folder.join("opencode"));
        Self { user: config.map(|folder| folder.join("helve")), opencode, given, root, home }
    }
}

/// The configuration files as they were when read, so that exactly the trusted contents are used.
#[derive(Clone, Debug)]
pub struct ConfigFiles {
    pub(super) items: Vec<GatheredFile>,
    pub(super) problems: Vec<ConfigProblem>,
    pub(super) home: Option<PathBuf>,
    pub(super) root: PathBuf,
    /// The files that the project's files include.
    pub(super) included: IncludedFiles,
    pub(super) instructions: Vec<InstructionFile>,
    pub(super) skills: Vec<GatheredFile>,
    pub(super) skill_folders: SkillFolders,
    /// The user's folders that were read, in order.
    pub(super) user_folders: Vec<PathBuf>,
    /// Names of files with custom tools, without their endings.
    pub(super) tool_files: Vec<String>,
    digest: String,
    /// The files that the digest covers, each with a hash of its content.
    pub(super) digested_files: Vec<(PathBuf, String)>,
}

impl ConfigFiles {
    /// Returns a hash of the names and contents of the project's files and of those that they include, and of the
    /// project's instruction files and skills.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    pub fn interpret(&self, host: &dyn ConfigHost, trust: Trust) -> Config {
        interpret(self, host, trust)
    }
}

/// A configuration file, readable or not.
#[derive(Clone, Debug)]
pub(super) struct GatheredFile {
    pub(super) path: Arc<Path>,
    pub(super) layer: ConfigLayer,
    pub(super) kind: ConfigFileKind,
    pub(super) content: Result<FileContents, ConfigReadError>,
}

impl GatheredFile {
    /// Returns the text of a file that was read, or as `Err` the part before the first invalid UTF-8.
    pub(super) fn text(&self) -> Option<Result<&str, &str>> {
        let bytes = self.content.as_ref().ok()?.bytes.as_slice();
        let bytes = bytes.strip_prefix("\u{feff}".as_bytes()).unwrap_or(bytes);
        Some(match std::str::from_utf8(bytes) {
            Ok(text) => Ok(text),
            Err(error) => {
                let valid = bytes.get(..error.valid_up_to()).unwrap_or_default();
                Err(std::str::from_utf8(valid).unwrap_or_default())
            }
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ConfigFileKind {
    /// Settings. Also used for a folder that could not be read.
    Json,
    /// MCP servers only.
    McpJson,
    /// Claude Code's settings, of which only the hooks are read.
    ClaudeSettings,
    /// Markdown for an agent. Files in a `modes` folder define primary agents.
    Agent { name: String, primary: bool },
    /// Markdown for a command.
    Command { name: String },
    /// A `SKILL.md`.
    Skill,
}

/// Whether a file may be missing.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Presence {
    Optional,
    Required,
}

const HELVE_JSON: &[&str] = &["helve.json", "helve.jsonc"];

/// Folders of Markdown files, and what these define.
const AGENTS: &[(&str, MarkdownKind)] =
    &[("agent", MarkdownKind::Agent), ("agents", MarkdownKind::Agent)];
const MODES: &[(&str, MarkdownKind)] =
    &[("mode", MarkdownKind::PrimaryAgent), ("modes", MarkdownKind::PrimaryAgent)];
const COMMANDS: &[(&str, MarkdownKind)] =
    &[("command", MarkdownKind::Command), ("commands", MarkdownKind::Command)];

/// What a Markdown file defines.
#[derive(Clone, Copy)]
enum MarkdownKind {
    Agent,
    PrimaryAgent,
    Command,
}

impl MarkdownKind {
    fn file_kind(self, name: String) -> ConfigFileKind {
        match self {
            MarkdownKind::Agent => ConfigFileKind::Agent { name, primary: false },
            MarkdownKind::PrimaryAgent => ConfigFileKind::Agent { name, primary: true },
            MarkdownKind::Command => ConfigFileKind::Command { name },
        }
    }
}

/// Settings that plugins made, as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PluginSettings {
    /// Those of the user's plugins. They count like a file of the user, after the others.
    pub user: Option<String>,
    /// Those of the project's plugins, which a person trusted with the project.
    pub project: Option<String>,
}

/// Reads all configuration files.
pub fn gather(host: &dyn ConfigHost, paths: &ConfigPaths) -> ConfigFiles {
    gather_with_plugins(host, paths, PluginSettings::default())
}

/// Reads all configuration files, and adds the settings of plugins. The digest does not cover these.
pub fn gather_with_plugins(
    host: &dyn ConfigHost,
    paths: &ConfigPaths,
    plugins: PluginSettings,
) -> ConfigFiles {
    let mut gatherer = Gatherer { host, items: Vec::new(), problems: Vec::new() };
    let user_folders = gatherer.add_user_files(paths);
    gatherer.items.extend(plugins.user.map(|text| plugin_file(ConfigLayer::User, text)));
    let root = &paths.root;
    let project = (ConfigLayer::Project, LinkPolicy::Beneath(root));
    gatherer.add_file(
        &root.join(".mcp.json"),
        ConfigFileKind::McpJson,
        Presence::Optional,
        project,
    );
    if is_on(&gatherer.items, "claude") {
        gatherer.add_claude_settings(&root.join(".claude"), project);
    }
    gatherer.add_json_files(root, &["opencode.json", "opencode.jsonc"], project);
    gatherer.add_json_files(&root.join(".opencode"), &["opencode.json", "opencode.jsonc"], project);
    gatherer.add_markdown(&root.join(".opencode"), AGENTS, project);
    gatherer.add_markdown(&root.join(".opencode"), MODES, project);
    gatherer.add_markdown(&root.join(".opencode"), COMMANDS, project);
    gatherer.add_json_files(root, HELVE_JSON, project);
    gatherer.add_json_files(&root.join(".helve"), HELVE_JSON, project);
    gatherer.add_markdown(&root.join(".helve"), AGENTS, project);
    gatherer.add_markdown(&root.join(".helve"), COMMANDS, project);
    let Gatherer { mut items, mut problems, .. } = gatherer;
    let included = read_includes(host, &items, paths.home.as_deref());
    let instructions = read_instructions(host, &items, paths, &user_folders);
    let folders = skills::folders(&items, paths, &user_folders);
    let (skills, skill_problems) = skills::read_folders(host, &folders, root);
    let skill_folders = SkillFolders::new(folders, root, &skills);
    let tool_files = tool_files(host, root, &user_folders);
    problems.extend(skill_problems);
    let (digest, digested_files) =
        digest(root, items.iter().chain(&skills), &included, &instructions);
    items.extend(plugins.project.map(|text| plugin_file(ConfigLayer::Project, text)));
    let (home, root) = (paths.home.clone(), root.clone());
    ConfigFiles {
        items,
        problems,
        home,
        root,
        included,
        instructions,
        skills,
        skill_folders,
        user_folders,
        tool_files,
        digest,
        digested_files,
    }
}

/// Returns the settings of plugins as if they were read from a file.
fn plugin_file(layer: ConfigLayer, text: String) -> GatheredFile {
    let path = Path::new(match layer {
        ConfigLayer::User => "(your plugins)",
        ConfigLayer::Project => "(plugins of the project)",
    });
    let content = FileContents { real: path.into(), bytes: text.into_bytes() };
    GatheredFile { path: path.into(), layer, kind: ConfigFileKind::Json, content: Ok(content) }
}

/// Whether the user's own files leave `opencode` or `claude` switched on.
fn is_on(items: &[GatheredFile], key: &str) -> bool {
    let switch = |item: &GatheredFile| {
        let ParsedJson::Complete(node) = jsonc::parse(item.text()?.ok()?) else { return None };
        let ConfigValue::Map(entries) = node.data else { return None };
        let entry = entries.into_iter().rev().find(|entry| entry.key == key)?;
        Some(entry.value.data != ConfigValue::Bool(false))
    };
    let json = items.iter().filter(|item| item.kind == ConfigFileKind::Json);
    json.filter_map(switch).next_back().unwrap_or(true)
}

/// Returns the names of the files with custom tools. They are not opened.
fn tool_files(host: &dyn ConfigHost, root: &Path, user_folders: &[PathBuf]) -> Vec<String> {
    let user = user_folders.iter().map(|folder| (folder.clone(), LinkPolicy::Anywhere));
    let project = [".opencode", ".helve"].map(|it| (root.join(it), LinkPolicy::Beneath(root)));
    let mut names = Vec::new();
    for (folder, links) in user.chain(project) {
        for files in ["tool", "tools"].map(|name| host.files(&folder.join(name), links)) {
            let direct = files.unwrap_or_default();
            let direct = direct.iter().filter(|file| file.components().count() == 1);
            names.extend(direct.filter_map(|file| Some(file.file_stem()?.to_str()?.to_owned())));
        }
    }
    names
}

struct Gatherer<'a> {
    host: &'a dyn ConfigHost,
    items: Vec<GatheredFile>,
    problems: Vec<ConfigProblem>,
}

impl Gatherer<'_> {
    /// Adds the user's files. Returns the folders that were read.
    fn add_user_files(&mut self, paths: &ConfigPaths) -> Vec<PathBuf> {
        let user = (ConfigLayer::User, LinkPolicy::Anywhere);
        let mut folders = Vec::new();
        if let Some(folder) = &paths.user {
            self.add_json_files(folder, HELVE_JSON, user);
            self.add_markdown(folder, AGENTS, user);
            self.add_markdown(folder, COMMANDS, user);
            folders.push(folder.clone());
        }
        if let Some(folder) = &paths.opencode
            && is_on(&self.items, "opencode")
        {
            let own = std::mem::take(&mut self.items);
            self.add_opencode_folder(folder, user);
            self.items.extend(own);
            folders.insert(0, folder.clone());
        }
        if let Some(home) = &paths.home
            && is_on(&self.items, "claude")
        {
            self.add_claude_settings(&home.join(".claude"), user);
        }
        for path in &paths.given {
            if matches!(self.host.read(path, user.1), Err(ConfigReadError::NotAFile("a folder"))) {
                self.add_opencode_folder(path, user);
                self.add_json_files(path, HELVE_JSON, user);
                folders.push(path.clone());
            } else {
                self.add_json_file(path, Presence::Required, user);
            }
        }
        folders
    }

    /// Adds Claude Code's settings, if they contain hooks that are run. Most contain nothing else of interest, and a
    /// person should not have to trust them.
    fn add_claude_settings(&mut self, folder: &Path, origin: (ConfigLayer, LinkPolicy<'_>)) {
        for name in ["settings.json", "settings.local.json"] {
            let before = self.items.len();
            let kind = ConfigFileKind::ClaudeSettings;
            self.add_file(&folder.join(name), kind, Presence::Optional, origin);
            let added = self.items.get(before).and_then(GatheredFile::text).and_then(Result::ok);
            if !HOOK_EVENTS.iter().any(|event| added.is_some_and(|text| text.contains(event))) {
                self.items.truncate(before);
            }
        }
    }

    /// Adds the files of a folder that is laid out like opencode's.
    fn add_opencode_folder(&mut self, folder: &Path, origin: (ConfigLayer, LinkPolicy<'_>)) {
        self.add_json_files(folder, &["config.json", "opencode.json", "opencode.jsonc"], origin);
        self.add_markdown(folder, AGENTS, origin);
        self.add_markdown(folder, MODES, origin);
        self.add_markdown(folder, COMMANDS, origin);
    }

    fn add_json_files(
        &mut self,
        folder: &Path,
        names: &[&str],
        origin: (ConfigLayer, LinkPolicy<'_>),
    ) {
        for name in names {
            self.add_json_file(&folder.join(name), Presence::Optional, origin);
        }
    }

    fn add_json_file(
        &mut self,
        path: &Path,
        presence: Presence,
        origin: (ConfigLayer, LinkPolicy<'_>),
    ) {
        self.add_file(path, ConfigFileKind::Json, presence, origin);
    }

    fn add_file(
        &mut self,
        path: &Path,
        kind: ConfigFileKind,
        presence: Presence,
        origin: (ConfigLayer, LinkPolicy<'_>),
    ) {
        let (layer, links) = origin;
        let content = self.host.read(path, links);
        if presence == Presence::Required || content != Err(ConfigReadError::Missing) {
            self.items.push(GatheredFile { path: path.into(), layer, kind, content });
        }
    }

    fn add_markdown(
        &mut self,
        folder: &Path,
        names: &[(&str, MarkdownKind)],
        (layer, links): (ConfigLayer, LinkPolicy<'_>),
    ) {
        for (name, kind) in names {
            let folder = folder.join(name);
            let FolderFiles { files, skipped_links, truncated } =
                match self.host.markdown_files(&folder, links) {
                    Ok(found) => found,
                    Err(ConfigReadError::Missing) => continue,
                    Err(why) => {
                        // Its files may restrict any agent. The folder is recorded as an unreadable file, which makes
                        // everything in this layer ask.
                        let (path, kind) = (folder.into(), ConfigFileKind::Json);
                        self.items.push(GatheredFile { path, layer, kind, content: Err(why) });
                        continue;
                    }
                };
            if truncated {
                self.add_problem(
                    &folder,
                    messages::too_many_agent_files(MAX_MARKDOWN_FILES, MAX_DEPTH),
                );
            }
            for link in skipped_links {
                self.add_problem(&folder.join(link), messages::linked_folder());
            }
            for file in files {
                let Some(name) = entry_name(&file) else {
                    self.add_problem(&folder.join(file), messages::name_is_not_text());
                    continue;
                };
                let path = folder.join(file);
                let content = self.host.read(&path, links);
                let kind = kind.file_kind(name);
                self.items.push(GatheredFile { path: path.into(), layer, kind, content });
            }
        }
    }

    fn add_problem(&mut self, path: &Path, text: ProblemText) {
        self.problems.push(ConfigProblem::of_file(path.into(), Severity::Error, text));
    }
}

/// Returns the name of what a file defines: `sub/review.md` defines `sub/review`.
fn entry_name(file: &Path) -> Option<String> {
    let parts = file.with_extension("");
    let parts: Option<Vec<_>> = parts.iter().map(|part| part.to_str()).collect();
    parts.map(|parts| parts.join("/"))
}

/// Hashes each part with its length, so that no content can pass for another file's name.
fn digest<'a>(
    root: &Path,
    items: impl Iterator<Item = &'a GatheredFile>,
    included: &IncludedFiles,
    instructions: &[InstructionFile],
) -> (String, Vec<(PathBuf, String)>) {
    let mut digested_files = Vec::new();
    let mut hasher = blake3::Hasher::new();
    let mut part = |bytes: &[u8]| {
        hasher.update(&(bytes.len() as u64).to_le_bytes());
        hasher.update(bytes);
    };
    let files = items.filter(|item| item.layer == ConfigLayer::Project);
    let files = files.map(|item| (&*item.path, &item.content));
    let included = included.iter().map(|(path, content)| (path.as_path(), content));
    let instructions = instructions.iter().filter(|file| file.layer == ConfigLayer::Project);
    let instructions = instructions.map(|file| (file.path.as_path(), &file.content));
    for (path, content) in files.chain(included).chain(instructions) {
        part(path.strip_prefix(root).unwrap_or(path).as_os_str().as_encoded_bytes());
        let bytes = match content {
            Ok(content) => content.bytes.as_slice(),
            Err(why) => error_name(why),
        };
        let hash = blake3::hash(bytes).to_hex()[..16].to_owned();
        digested_files.push((path.to_path_buf(), hash));
        match content {
            Ok(content) => {
                part(b"content");
                part(&content.bytes);
            }
            Err(why) => part(error_name(why)),
        }
    }
    (hasher.finalize().to_hex().to_string(), digested_files)
}

/// Returns a stable name for an error, independent of its message.
fn error_name(error: &ConfigReadError) -> &'static [u8] {
    match error {
        ConfigReadError::Missing => b"missing",
        ConfigReadError::DeadLink => b"dead link",
        ConfigReadError::OutsideProject(_) => b"outside",
        ConfigReadError::NotAFile(_) => b"not a file",
        ConfigReadError::TooLarge => b"too large",
        ConfigReadError::Failed(_) => b"failed",
    }
}

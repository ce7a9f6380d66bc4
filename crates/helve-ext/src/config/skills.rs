//! Skills: folders with a `SKILL.md`, which tells a model how to do one kind of work. Those of a project are among the
//! files that a person trusts.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::config_file::ConfigFile;
use super::explain::SettingLine;
use super::gather::{ConfigFileKind, ConfigPaths, GatheredFile};
use super::jsonc::{self, ParsedJson};
use super::load::{ConfigHost, FolderFiles, LinkPolicy, MAX_DEPTH};
use super::messages;
use super::problem::{ConfigProblem, Severity};
use super::tree::{ConfigEntry, ConfigValue, Position};
use super::yaml::{self, FrontMatter};
use super::{ConfigLayer, WithSource};

/// The name of the file that describes a skill.
pub const SKILL_FILE: &str = "SKILL.md";
/// Maximum length of a skill's name in bytes.
const MAX_NAME: usize = 100;
/// Maximum length of a description in characters. Longer ones are cut.
const MAX_DESCRIPTION: usize = 1_024;
/// Maximum number of skills of one layer.
const MAX_SKILLS: usize = 500;
/// Maximum number of entries of `skills.paths`.
const MAX_PATHS: usize = 50;

/// A skill, without the other files of its folder.
#[derive(Clone, Debug, PartialEq)]
pub struct Skill {
    pub name: String,
    pub description: String,
    /// The text of `SKILL.md` after the front matter.
    pub body: String,
    /// The folder of `SKILL.md`, with links resolved. Its other files belong to the skill.
    pub folder: PathBuf,
    pub path: Arc<Path>,
    pub layer: ConfigLayer,
    /// Whether only a person may use the skill: `disable-model-invocation: true`.
    pub is_for_people_only: bool,
}

impl Skill {
    /// Returns the line that shows a person what trusting the project would enable.
    pub(super) fn into_trust_line(self, file: &ConfigFile<'_>) -> SettingLine {
        let description = WithSource::new(self.description, file.source(Position::START));
        SettingLine::text_needing_trust(&["skill", &self.name], &description)
    }
}

/// Folders of skills in the home folder and in the project.
const SHARED_FOLDERS: &[&str] = &[".claude/skills", ".agents/skills"];
/// Folders of skills in the project only.
const PROJECT_FOLDERS: &[&str] =
    &[".opencode/skill", ".opencode/skills", ".helve/skill", ".helve/skills"];

/// Returns the folders in which skills are looked for: the user's, then the project's.
pub(super) fn folders(
    items: &[GatheredFile],
    paths: &ConfigPaths,
    user_folders: &[PathBuf],
) -> Vec<(ConfigLayer, PathBuf)> {
    let shared =
        |base: &Path| SHARED_FOLDERS.iter().map(|name| base.join(name)).collect::<Vec<_>>();
    let mut user = paths.home.as_deref().map(shared).unwrap_or_default();
    user.extend(user_folders.iter().flat_map(|it| [it.join("skill"), it.join("skills")]));
    let mut project = shared(&paths.root);
    project.extend(PROJECT_FOLDERS.iter().map(|name| paths.root.join(name)));
    let mut all = Vec::new();
    for (layer, mut folders) in [(ConfigLayer::User, user), (ConfigLayer::Project, project)] {
        let named = items.iter().filter(|item| item.layer == layer);
        folders.extend(named.flat_map(|item| configured_folders(item, paths)));
        all.extend(folders.into_iter().map(|folder| (layer, folder)));
    }
    all
}

/// Reads every `SKILL.md` in the folders.
pub(super) fn read_folders(
    host: &dyn ConfigHost,
    folders: &[(ConfigLayer, PathBuf)],
    root: &Path,
) -> (Vec<GatheredFile>, Vec<ConfigProblem>) {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for layer in [ConfigLayer::User, ConfigLayer::Project] {
        let mut reader = Reader { host, layer, root, items: Vec::new() };
        for (_, folder) in folders.iter().filter(|(folder_layer, _)| *folder_layer == layer) {
            problems.extend(reader.add_folder(folder));
        }
        found.extend(reader.items);
    }
    (found, problems)
}

/// Links of a project may not lead out of it.
pub(super) fn link_policy(layer: ConfigLayer, root: &Path) -> LinkPolicy<'_> {
    match layer {
        ConfigLayer::User => LinkPolicy::Anywhere,
        ConfigLayer::Project => LinkPolicy::Beneath(root),
    }
}

/// Returns the folders in `skills.paths` of a configuration file. Those of a project are relative to its root, those of
/// the user to the file.
fn configured_folders(item: &GatheredFile, paths: &ConfigPaths) -> Vec<PathBuf> {
    let (ConfigFileKind::Json, Some(Ok(text))) = (&item.kind, item.text()) else {
        return Vec::new();
    };
    let ParsedJson::Complete(node) = jsonc::parse(text) else { return Vec::new() };
    let base = match item.layer {
        ConfigLayer::User => item.path.parent().unwrap_or(&item.path),
        ConfigLayer::Project => &paths.root,
    };
    let resolve = |text: &String| match (text.strip_prefix("~/"), &paths.home) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => base.join(text),
    };
    let section = field(&node.data, "skills").and_then(|skills| field(skills, "paths"));
    let Some(ConfigValue::List(list)) = section else { return Vec::new() };
    let texts = list.iter().filter_map(|node| match &node.data {
        ConfigValue::Text(text) if !text.is_empty() => Some(text),
        _ => None,
    });
    texts.take(MAX_PATHS).map(resolve).collect()
}

fn field<'v>(value: &'v ConfigValue, key: &str) -> Option<&'v ConfigValue> {
    let ConfigValue::Map(entries) = value else { return None };
    entries.iter().find(|entry| entry.key == key).map(|entry| &entry.value.data)
}

struct Reader<'a> {
    host: &'a dyn ConfigHost,
    layer: ConfigLayer,
    root: &'a Path,
    items: Vec<GatheredFile>,
}

impl Reader<'_> {
    fn add_folder(&mut self, folder: &Path) -> Vec<ConfigProblem> {
        let links = link_policy(self.layer, self.root);
        // Skills restrict nothing, unlike rules. So a folder that cannot be read is skipped.
        let Ok(found) = self.host.skill_files(folder, links) else { return Vec::new() };
        let FolderFiles { files, skipped_links, truncated } = found;
        let problem = |path: PathBuf, text| {
            ConfigProblem::of_file(path.as_path().into(), Severity::Warning, text)
        };
        let mut problems: Vec<ConfigProblem> = skipped_links
            .into_iter()
            .map(|link| problem(folder.join(link), messages::linked_folder()))
            .collect();
        if truncated || self.items.len() + files.len() > MAX_SKILLS {
            let text = messages::too_many_skills(MAX_SKILLS, MAX_DEPTH);
            problems.push(problem(folder.to_path_buf(), text));
        }
        for file in files.into_iter().take(MAX_SKILLS.saturating_sub(self.items.len())) {
            let path: Arc<Path> = folder.join(file).into();
            let content = self.host.read(&path, links);
            let kind = ConfigFileKind::Skill;
            self.items.push(GatheredFile { path, layer: self.layer, kind, content });
        }
        problems
    }
}

/// Reads one `SKILL.md`. If the front matter is missing or broken, the name of the folder and the first paragraph are
/// used instead.
pub(super) fn read_skill(file: &mut ConfigFile<'_>, text: &str) -> Option<Skill> {
    let markdown = yaml::parse(text);
    let mut given = Given::default();
    let mut body = markdown.body;
    match &markdown.front_matter {
        FrontMatter::Fields(node) => match &node.data {
            ConfigValue::Map(fields) => given.read(file, fields),
            other => {
                file.warn(node.at, || messages::wrong_type("the front matter", "an object", other));
            }
        },
        FrontMatter::None => {
            // Some files have the fields, but not the dashes around them.
            let (fields, rest) = plain_fields(body);
            given.fill(&fields);
            body = rest;
        }
        FrontMatter::Broken { at, why } => {
            file.warn(*at, || why.clone());
            let (fields, _) = plain_fields(yaml::front_matter_text(text));
            given.fill(&fields);
        }
    }
    let folder_name = file.path.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    let name = given.name.as_deref().map(str::trim).filter(|name| is_usable_name(name));
    let Some(name) = name.or(folder_name.filter(|name| is_usable_name(name))) else {
        file.error(Position::START, || messages::skill_without_name(MAX_NAME));
        return None;
    };
    let description = given.description.unwrap_or_default();
    let description = match description.trim() {
        "" => first_paragraph(body),
        written => written.to_string(),
    };
    let is_text = |c: &char| !c.is_control() || c.is_whitespace();
    let description: String = description.chars().filter(is_text).collect();
    if description.is_empty() {
        file.error(Position::START, messages::skill_without_description);
        return None;
    }
    Some(Skill {
        name: name.to_string(),
        description: description.chars().take(MAX_DESCRIPTION).collect(),
        body: body.trim().to_string(),
        folder: file.real.parent().unwrap_or(file.real).to_path_buf(),
        path: file.path.clone(),
        layer: file.layer,
        is_for_people_only: given.is_for_people_only,
    })
}

/// What the front matter says.
#[derive(Default)]
struct Given {
    name: Option<String>,
    description: Option<String>,
    is_for_people_only: bool,
}

impl Given {
    fn read(&mut self, file: &mut ConfigFile<'_>, fields: &[ConfigEntry]) {
        for field in fields {
            let text = match &field.value.data {
                ConfigValue::Text(text) => Some(text.clone()),
                ConfigValue::Number(number) => Some(number.to_string()),
                _ => None,
            };
            match (field.key.as_str(), &field.value.data, text) {
                ("name", _, Some(text)) => self.name = Some(text),
                ("description", _, Some(text)) => self.description = Some(text),
                ("name" | "description", _, None) => {
                    file.warn(field.at, || {
                        messages::wrong_type(&field.key, "a string", &field.value.data)
                    });
                }
                ("disable-model-invocation", ConfigValue::Bool(flag), _) => {
                    self.is_for_people_only = *flag;
                }
                // Other programs have keys of their own.
                _ => {}
            }
        }
    }

    fn fill(&mut self, fields: &[(&str, &str)]) {
        for (key, value) in fields {
            let value = value.trim().trim_matches(['"', '\'']).to_string();
            match *key {
                "name" => self.name = Some(value),
                "description" => self.description = Some(value),
                "disable-model-invocation" => self.is_for_people_only = value == "true",
                _ => {}
            }
        }
    }
}

/// Returns the leading lines of the form `key: value`, and the text after them.
fn plain_fields(text: &str) -> (Vec<(&str, &str)>, &str) {
    let mut fields = Vec::new();
    let mut rest = text.trim_start();
    while let Some((line, after)) =
        rest.split_once('\n').or((!rest.is_empty()).then_some((rest, "")))
    {
        let field = line.split_once(": ").filter(|(key, _)| {
            !key.is_empty() && key.chars().all(|c| c.is_ascii_lowercase() || c == '-')
        });
        match field {
            Some(field) => fields.push(field),
            None => break,
        }
        rest = after;
    }
    // Lines with a colon but without these keys are more likely sentences.
    if fields.iter().any(|(key, _)| matches!(*key, "name" | "description")) {
        (fields, rest)
    } else {
        (Vec::new(), text)
    }
}

fn is_usable_name(name: &str) -> bool {
    (1..=MAX_NAME).contains(&name.len()) && !name.contains(char::is_control)
}

/// Returns the first paragraph of plain text on one line, or else the first heading.
fn first_paragraph(body: &str) -> String {
    let paragraphs = body.split("\n\n").map(str::trim);
    let is_text = |it: &&str| !it.is_empty() && !it.starts_with(['#', '<', '`', '-', '|']);
    let plain = paragraphs.clone().find(is_text);
    let heading = paragraphs
        .filter_map(|it| it.lines().next())
        .find(|line| line.starts_with('#'))
        .map(|line| line.trim_start_matches('#').trim());
    let text = plain.or(heading).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Keeps the last skill of each name, and reports the others.
pub(super) fn without_repeated(
    skills: Vec<Skill>,
    problems: &mut Vec<ConfigProblem>,
) -> Vec<Skill> {
    let mut kept: Vec<Skill> = Vec::new();
    for skill in skills {
        match kept.iter_mut().find(|known| known.name == skill.name) {
            Some(known) => {
                let text = messages::skill_is_replaced(&skill.path);
                problems.push(ConfigProblem::of_file(known.path.clone(), Severity::Note, text));
                *known = skill;
            }
            None => kept.push(skill),
        }
    }
    kept
}

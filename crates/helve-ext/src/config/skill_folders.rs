//! Reads the skills again while a session runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::config_file::{Authority, ConfigFile, FileContext};
use super::gather::GatheredFile;
use super::includes::IncludedFiles;
use super::load::{ConfigHost, FileStamp, LinkPolicy};
use super::skills::{self, Skill};
use super::{ConfigLayer, Trust};

/// The folders in which skills are looked for, in order, and the project's files as they were when the configuration
/// was read.
#[derive(Clone, Debug, Default)]
pub struct SkillFolders {
    folders: Vec<(ConfigLayer, PathBuf)>,
    root: PathBuf,
    /// The project's files, each with a hash of its content.
    project_files: Vec<(Arc<Path>, blake3::Hash)>,
}

/// The skills as they are now.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CurrentSkills {
    /// Each name once.
    pub skills: Vec<Skill>,
    /// Files of the project that were added or changed since the configuration was read. A person must trust them
    /// first.
    pub untrusted: Vec<Arc<Path>>,
}

impl SkillFolders {
    pub(super) fn new(
        folders: Vec<(ConfigLayer, PathBuf)>,
        root: &Path,
        files: &[GatheredFile],
    ) -> Self {
        let project = files.iter().filter(|file| file.layer == ConfigLayer::Project);
        let project_files =
            project.filter_map(|file| Some((file.path.clone(), content_hash(file)?))).collect();
        Self { folders, root: root.to_path_buf(), project_files }
    }

    /// Returns the files with their stamps. Opens no file.
    pub fn stamps(&self, host: &dyn ConfigHost) -> Vec<(PathBuf, Option<FileStamp>)> {
        let mut stamps = Vec::new();
        for (layer, folder) in &self.folders {
            let files = host.skill_files(folder, self.links(*layer)).unwrap_or_default().files;
            let paths = files.into_iter().map(|file| folder.join(file));
            stamps.extend(paths.map(|path| {
                let stamp = host.stamp(&path);
                (path, stamp)
            }));
        }
        stamps
    }

    /// Reads the skills. Those of an untrusted project are left out.
    pub fn read(&self, host: &dyn ConfigHost, trust: Trust) -> CurrentSkills {
        let (files, _) = skills::read_folders(host, &self.folders, &self.root);
        let included = IncludedFiles::default();
        let context = FileContext { host, home: None, included: &included, tool_files: &[] };
        let mut found = Vec::new();
        let mut untrusted = Vec::new();
        for file in files {
            match (file.layer, trust) {
                (ConfigLayer::Project, Trust::Untrusted) => {}
                (ConfigLayer::Project, Trust::Trusted) if !self.is_unchanged(&file) => {
                    untrusted.push(file.path);
                }
                (ConfigLayer::User | ConfigLayer::Project, _) => {
                    found.extend(skill(&file, &context));
                }
            }
        }
        CurrentSkills { skills: skills::without_repeated(found, &mut Vec::new()), untrusted }
    }

    fn is_unchanged(&self, file: &GatheredFile) -> bool {
        let known = self.project_files.iter().find(|(path, _)| *path == file.path);
        known.is_some_and(|(_, hash)| content_hash(file) == Some(*hash))
    }

    fn links(&self, layer: ConfigLayer) -> LinkPolicy<'_> {
        skills::link_policy(layer, &self.root)
    }
}

fn content_hash(file: &GatheredFile) -> Option<blake3::Hash> {
    file.content.as_ref().ok().map(|content| blake3::hash(&content.bytes))
}

/// Interprets a file. Its problems were reported when the configuration was read, or will be then.
fn skill(file: &GatheredFile, context: &FileContext<'_>) -> Option<Skill> {
    let text = file.text()?.ok()?;
    let real = &file.content.as_ref().ok()?.real;
    let access = (file.layer, Authority::Full);
    skills::read_skill(&mut ConfigFile::new(file.path.clone(), real, text, access, context), text)
}

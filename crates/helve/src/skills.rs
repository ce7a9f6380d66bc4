//! The skills that a model may load. They can appear, change and disappear while it works.

use std::path::{Path, PathBuf};

use helve_core::{Action, Part, Policy};
use helve_ext::config::{Config, Disk, FileStamp, Skill, SkillFolders, Trust};
use helve_tools::{LoadableSkills, SkillChange, SkillInfo, SkillSource};
use parking_lot::Mutex;

use crate::trust::TrustState;

/// The permission key of skills, which is also the name of the tool that loads them.
pub(crate) const SKILL: &str = "skill";

/// The skills of a folder.
pub(crate) struct Skills {
    folders: SkillFolders,
    trust: Trust,
    policy: Policy,
    /// The skills that existed when the toolbox was built. The description of the tool lists them.
    listed: Vec<Skill>,
    /// The result of the last [`Skills::find`].
    last_read: Mutex<Option<Reading>>,
}

/// The skills that were read from disk, and the stamps of the files at that time.
struct Reading {
    stamps: Vec<(PathBuf, Option<FileStamp>)>,
    found: FoundSkills,
}

/// The skills that a model may load, and the files that need trust first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FoundSkills {
    skills: Vec<SkillInfo>,
    /// Files of skills that need trust before they can be loaded.
    untrusted: Vec<PathBuf>,
    /// Names of skills that could be loaded until their files changed, which need trust again.
    suspended: Vec<String>,
}

impl Skills {
    pub(crate) fn new(config: &Config, trust: TrustState, policy: &Policy) -> Self {
        // Even with `Trust::Trusted`, a project's file counts as untrusted if it is new or changed. So in a folder that
        // had nothing to trust, every new file needs trust.
        let trust = match trust {
            TrustState::Trusted | TrustState::NothingToTrust => Trust::Trusted,
            TrustState::Untrusted | TrustState::Changed => Trust::Untrusted,
        };
        Self {
            folders: config.skill_folders.clone(),
            trust,
            policy: policy.clone(),
            listed: config.skills.clone(),
            last_read: Mutex::default(),
        }
    }

    /// Returns the skills that a model could load when the toolbox was built.
    pub(crate) fn listed(&self) -> Vec<SkillInfo> {
        self.loadable(&self.listed)
    }

    /// Returns the skills that a model may load. Leaves out those that are for people only, and those that a rule
    /// denies.
    fn loadable(&self, skills: &[Skill]) -> Vec<SkillInfo> {
        let is_offered = |skill: &&Skill| {
            let part = Part::new(SKILL, skill.name.clone());
            !skill.is_for_people_only && self.policy.judge(&[], &part).action != Action::Deny
        };
        skills.iter().filter(is_offered).map(info).collect()
    }

    /// Returns the current skills. Reads the files only if one has changed since the last time.
    pub(crate) fn find(&self) -> FoundSkills {
        let mut last = self.last_read.lock();
        let stamps = self.folders.stamps(&Disk);
        if let Some(reading) = last.as_ref().filter(|reading| reading.stamps == stamps) {
            return reading.found.clone();
        }
        let current = self.folders.read(&Disk, self.trust);
        let skills = self.loadable(&current.skills);
        let is_gone = |name: &str| skills.iter().all(|skill| skill.name != name);
        let changed = self.listed.iter().filter(|skill| current.untrusted.contains(&skill.path));
        let suspended = changed.map(|skill| skill.name.clone()).filter(|name| is_gone(name));
        let found = FoundSkills {
            suspended: suspended.collect(),
            skills,
            untrusted: current.untrusted.iter().map(|path| path.to_path_buf()).collect(),
        };
        *last = Some(Reading { stamps, found: found.clone() });
        found
    }
}

impl SkillSource for Skills {
    fn current(&self) -> LoadableSkills {
        let FoundSkills { skills, suspended, .. } = self.find();
        LoadableSkills { skills, suspended }
    }
}

fn info(skill: &Skill) -> SkillInfo {
    SkillInfo {
        name: skill.name.clone(),
        description: skill.description.clone(),
        body: skill.body.clone(),
        folder: skill.folder.clone(),
    }
}

impl FoundSkills {
    /// Returns a value with only these skills, such as those in the description of the tool.
    pub(crate) fn listed(skills: Vec<SkillInfo>) -> Self {
        Self { skills, ..Self::default() }
    }

    /// Returns how these skills differ from `earlier` ones. Paths below the root are relative to it.
    pub(crate) fn changes_since(&self, earlier: &FoundSkills, root: &Path) -> Vec<SkillChange> {
        let find = |name: &str| earlier.skills.iter().find(|skill| skill.name == name);
        let changed = self.skills.iter().filter_map(|skill| match find(&skill.name) {
            None => Some(SkillChange::Added(skill.clone())),
            Some(earlier) if earlier != skill => Some(SkillChange::Changed(skill.clone())),
            Some(_) => None,
        });
        // Suspended skills do not count as removed, because their files are reported as untrusted.
        let is_gone = |name: &&String| {
            self.skills.iter().all(|skill| skill.name != **name) && !self.suspended.contains(name)
        };
        let removed = earlier.skills.iter().map(|skill| &skill.name).filter(is_gone);
        let removed = removed.cloned().map(SkillChange::Removed);
        let is_new = |path: &&PathBuf| !earlier.untrusted.contains(path);
        let untrusted = self.untrusted.iter().filter(is_new).map(|path| {
            let shown = path.strip_prefix(root).unwrap_or(path);
            SkillChange::NeedsTrust(shown.to_path_buf())
        });
        changed.chain(removed).chain(untrusted).collect()
    }
}

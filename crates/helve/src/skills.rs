//! The skills that a model may load. They can appear, change and disappear while it works.

use std::path::PathBuf;

use helve_core::{Action, Part, Policy};
use helve_ext::config::{Config, Disk, FileStamp, Skill, SkillFolders, Trust};
use helve_tools::{LoadableSkills, SkillAccess, SkillChange, SkillInfo, SkillSource};
use parking_lot::Mutex;

use crate::toolbox::Toolbox;
use crate::trust::TrustState;

/// The permission key of skills, which is also the name of the tool.
const SKILL: &str = "skill";

/// The skills of a folder.
pub(crate) struct Skills {
    folders: SkillFolders,
    trust: Trust,
    policy: Policy,
    /// The skills when the toolbox was built.
    listed: Vec<Skill>,
    last_read: Mutex<Option<Reading>>,
}

/// What was read from the disk, and the state of the files then.
struct Reading {
    stamps: Vec<(PathBuf, Option<FileStamp>)>,
    found: FoundSkills,
}

/// The skills that a model may load, and the files that need trust first.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct FoundSkills {
    skills: Vec<SkillInfo>,
    untrusted: Vec<PathBuf>,
    /// Names of skills that could be loaded before their files changed.
    suspended: Vec<String>,
}

impl Skills {
    pub(crate) fn new(config: &Config, trust: TrustState, policy: &Policy) -> Self {
        // Where there was nothing to trust, everything that appears needs trust.
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

    /// The skills that a model could load when the toolbox was built.
    pub(crate) fn listed(&self) -> Vec<SkillInfo> {
        self.loadable(&self.listed)
    }

    /// Leaves out skills for people only, and those that a rule denies.
    fn loadable(&self, skills: &[Skill]) -> Vec<SkillInfo> {
        let is_offered = |skill: &&Skill| {
            let part = Part::new(SKILL, skill.name.clone());
            !skill.is_for_people_only && self.policy.judge(&[], &part).action != Action::Deny
        };
        skills.iter().filter(is_offered).map(info).collect()
    }

    /// The skills as they are now. Reads them only if a file has changed since the last time.
    fn find(&self) -> FoundSkills {
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

impl Toolbox {
    /// Returns a note about the skills that changed since the model was last told. `known` is what it knows, or `None`
    /// if it knows only the description of the tool.
    pub(crate) fn note_on_skills(&self, known: &mut Option<FoundSkills>) -> Option<String> {
        let now = self.skills.find();
        if known.as_ref() == Some(&now) {
            return None;
        }
        let listed = self.skills.listed();
        let access = if listed.is_empty() { SkillAccess::Reading } else { SkillAccess::Tool };
        let as_listed = || FoundSkills { skills: listed, ..FoundSkills::default() };
        let before = known.replace(now.clone()).unwrap_or_else(as_listed);
        let changes = self.changes(&before, &now);
        // Without the tool, a rule keeps the model from skills.
        let is_kept_away = || access == SkillAccess::Tool && self.tools().find(SKILL).is_none();
        if changes.is_empty() || is_kept_away() {
            return None;
        }
        Some(helve_tools::skills_changed(&changes, access))
    }

    fn changes(&self, before: &FoundSkills, now: &FoundSkills) -> Vec<SkillChange> {
        let known = |name: &str| before.skills.iter().find(|skill| skill.name == name);
        let changed = now.skills.iter().filter_map(|skill| match known(&skill.name) {
            None => Some(SkillChange::Added(skill.clone())),
            Some(before) if before != skill => Some(SkillChange::Changed(skill.clone())),
            Some(_) => None,
        });
        // Suspended skills are reported with their files.
        let is_gone = |name: &&String| {
            now.skills.iter().all(|skill| skill.name != **name) && !now.suspended.contains(name)
        };
        let removed = before.skills.iter().map(|skill| &skill.name).filter(is_gone);
        let is_new = |path: &&PathBuf| !before.untrusted.contains(path);
        let untrusted = now.untrusted.iter().filter(is_new).map(|path| {
            let shown = path.strip_prefix(self.root()).unwrap_or(path);
            SkillChange::NeedsTrust(shown.to_path_buf())
        });
        let removed = removed.cloned().map(SkillChange::Removed);
        changed.chain(removed).chain(untrusted).collect()
    }
}

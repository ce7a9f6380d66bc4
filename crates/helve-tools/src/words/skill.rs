//! Reports skills that appear, change or disappear while a model works.

use std::path::{Path, PathBuf};

use helve_core::paths;

use crate::ops::skill::SkillInfo;

/// Maximum number of changes that are listed.
const MAX_LISTED: usize = 20;

/// How the skills differ from those that a model knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SkillChange {
    Added(SkillInfo),
    Changed(SkillInfo),
    /// The name of a skill that is gone.
    Removed(String),
    /// A file of the project was added or changed, so a person must trust it before it is used.
    NeedsTrust(PathBuf),
}

/// How a model can use a skill.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SkillAccess {
    /// With the tool `skill`.
    Tool,
    /// By reading its file. The tool is not offered to a session that began without skills.
    Reading,
}

/// Returns a note for a model about changed skills.
pub fn skills_changed(changes: &[SkillChange], access: SkillAccess) -> String {
    let mut text = String::from("The available skills have changed:");
    for change in changes.iter().take(MAX_LISTED) {
        text += "\n- ";
        text += &line(change, access);
    }
    match changes.len().saturating_sub(MAX_LISTED) {
        0 => {}
        more => text += &format!("\n- and {more} more"),
    }
    text
}

fn line(change: &SkillChange, access: SkillAccess) -> String {
    match change {
        SkillChange::Added(skill) => {
            format!("added: {}: {}{}", skill.name, skill.description, hint(skill, access))
        }
        SkillChange::Changed(skill) => format!(
            "changed: {}: {}{} What you loaded before is out of date.",
            skill.name,
            skill.description,
            hint(skill, access)
        ),
        SkillChange::Removed(name) => format!("removed: {name}"),
        SkillChange::NeedsTrust(path) => format!(
            "{}: added or changed; it cannot be loaded until a person trusts this folder again",
            paths::display(path)
        ),
    }
}

/// Says which file to read, if the tool is not offered.
fn hint(skill: &SkillInfo, access: SkillAccess) -> String {
    match access {
        SkillAccess::Tool => String::new(),
        SkillAccess::Reading => {
            let file = skill.folder.join(Path::new("SKILL.md"));
            format!(" (to use it, read {})", paths::display(&file))
        }
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use super::*;

    fn skill(name: &str) -> SkillInfo {
        SkillInfo {
            name: name.into(),
            description: format!("Does {name}."),
            body: "Text".into(),
            folder: format!("/s/{name}").into(),
        }
    }

    #[test]
    fn each_change_has_a_line() {
        let changes = [
            SkillChange::Added(skill("tables")),
            SkillChange::Changed(skill("release")),
            SkillChange::Removed("old".into()),
            SkillChange::NeedsTrust(".helve/skills/x/SKILL.md".into()),
        ];
        expect![[r#"
            The available skills have changed:
            - added: tables: Does tables.
            - changed: release: Does release. What you loaded before is out of date.
            - removed: old
            - .helve/skills/x/SKILL.md: added or changed; it cannot be loaded until a person trusts this folder again"#]]
        .assert_eq(&skills_changed(&changes, SkillAccess::Tool));
        expect![[r#"
            The available skills have changed:
            - added: tables: Does tables. (to use it, read /s/tables/SKILL.md)"#]]
        .assert_eq(&skills_changed(&changes[..1], SkillAccess::Reading));
    }

    #[test]
    fn long_lists_are_cut() {
        let changes: Vec<_> =
            (0..25).map(|number| SkillChange::Removed(format!("s{number}"))).collect();
        let text = skills_changed(&changes, SkillAccess::Tool);
        assert_eq!(text.lines().count(), 22);
        assert!(text.ends_with("- removed: s19\n- and 5 more"), "{text}");
    }
}

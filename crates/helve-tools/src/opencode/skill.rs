//! `skill`: loads instructions for a particular kind of work.

use std::borrow::Cow;
use std::sync::Arc;

use helve_core::paths;
use helve_core::{Caller, ErrorKind, Tool, ToolContext, ToolError, ToolOutput};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::ops::skill::{self, LoadableSkills, SkillFiles, SkillInfo, SkillSource};

#[derive(Deserialize, JsonSchema)]
pub(super) struct Args {
    /// The name of the skill, from the list
    #[schemars(length(min = 1))]
    name: String,
}

/// Maximum length of the list of skills in the tool's description, in characters.
const MAX_LIST: usize = 8_000;
/// Room for the note about skills that are not listed.
const NOTE_CHARS: usize = 100;
/// Maximum number of files that are listed with a skill.
const MAX_FILES: usize = 10;

pub(super) struct SkillTool {
    /// The skills that the tool's description lists. The list never changes, so that the provider's cache stays valid.
    pub(super) listed: Vec<SkillInfo>,
    pub(super) source: Arc<dyn SkillSource>,
}

impl Tool for SkillTool {
    type Args = Args;
    const NAME: &'static str = "skill";
    const ABOUT: &'static str = include_str!("skill.txt");

    fn about(&self, _caller: &Caller) -> Cow<'static, str> {
        Cow::Owned(format!("{}\n{}", Self::ABOUT.trim_end(), list(&self.listed)))
    }

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let name = args.name.trim();
        let current = self.source.current();
        let Some(found) = current.skills.iter().find(|skill| skill.name == name) else {
            return Err(missing(name, &current));
        };
        let files = skill::load(ctx, Self::NAME, found, MAX_FILES).await?;
        Ok(answer(found, &files))
    }
}

fn missing(name: &str, current: &LoadableSkills) -> ToolError {
    if current.suspended.iter().any(|suspended| suspended == name) {
        let message = format!(
            "The skill {name:?} has changed since a person trusted this folder. It can be loaded in a new session, once they trust the folder again with: helve trust"
        );
        return ToolError::new(ErrorKind::Denied, message);
    }
    let names: Vec<&str> = current.skills.iter().map(|skill| skill.name.as_str()).collect();
    let message = match names.is_empty() {
        true => format!("There is no skill {name:?}. No skills are available now."),
        false => format!("There is no skill {name:?}. Available skills: {}", names.join(", ")),
    };
    ToolError::new(ErrorKind::NotFound, message)
}

fn answer(skill: &SkillInfo, files: &SkillFiles) -> ToolOutput {
    let SkillInfo { name, body, folder, .. } = skill;
    let folder = paths::display(folder);
    let mut text = format!(
        "<skill_content name=\"{name}\">\n# Skill: {name}\n\n{body}\n\nBase directory for this skill: {folder}\nRelative paths in this skill are relative to this directory.\n"
    );
    if !files.paths.is_empty() {
        let listed: String = files
            .paths
            .iter()
            .map(|path| format!("<file>{}</file>\n", paths::display(path)))
            .collect();
        let more = if files.has_more { "There are more files.\n" } else { "" };
        text += &format!("\n<skill_files>\n{listed}{more}</skill_files>\n");
    }
    text += "</skill_content>";
    ToolOutput::text(format!("Loaded skill: {name}"), text)
        .with_metadata("name", name.clone())
        .with_metadata("dir", folder.into_owned())
}

/// Lists the skills with their descriptions. If the list is too long, all descriptions are cut to the same length, and
/// if even the names do not fit, the last skills are left out.
fn list(skills: &[SkillInfo]) -> String {
    // Each line also has `- `, `: ` and a line feed.
    let name_chars: usize = skills.iter().map(|skill| skill.name.chars().count() + 5).sum();
    let length = |skill: &SkillInfo| skill.description.chars().count();
    let total: usize = skills.iter().map(length).sum();
    let max_description = match MAX_LIST.checked_sub(name_chars) {
        Some(left) if total <= left => usize::MAX,
        Some(left) => max_description_length(skills.iter().map(length).collect(), left),
        None => 0,
    };
    let mut list = String::new();
    for (index, skill) in skills.iter().enumerate() {
        let description: String = skill.description.chars().take(max_description).collect();
        let cut = if length(skill) > max_description { "…" } else { "" };
        let line = format!("- {}: {description}{cut}\n", skill.name);
        if list.chars().count() + line.chars().count() > MAX_LIST + NOTE_CHARS {
            list += &format!("{} more skills are not listed.\n", skills.len() - index);
            break;
        }
        list += &line;
    }
    list
}

/// Returns the greatest length of a description at which the list fits.
fn max_description_length(mut lengths: Vec<usize>, mut left: usize) -> usize {
    lengths.sort_unstable();
    for (index, length) in lengths.iter().enumerate() {
        let share = left / (lengths.len() - index);
        if *length > share {
            return share;
        }
        left -= length;
    }
    usize::MAX
}

#[cfg(test)]
mod tests {
    use expect_test::expect;
    use helve_core::AnyTool;

    use super::*;
    use crate::opencode::DIALECT;

    fn skill(name: &str, description: &str) -> SkillInfo {
        SkillInfo {
            name: name.into(),
            description: description.into(),
            body: "Do it.".into(),
            folder: "/w/skills/tables".into(),
        }
    }

    struct Source(LoadableSkills);

    impl SkillSource for Source {
        fn current(&self) -> LoadableSkills {
            self.0.clone()
        }
    }

    fn check(fixture: &str, expected: expect_test::Expect) {
        let skills = vec![skill("tables", "Reads tables"), skill("b", "B")];
        let current = LoadableSkills { skills: skills.clone(), suspended: vec!["c".into()] };
        let source = Arc::new(Source(current));
        let tool: Arc<dyn AnyTool> = Arc::new(SkillTool { listed: skills, source });
        helve_testkit::check(&DIALECT, vec![tool], fixture, expected);
    }

    #[test]
    fn the_instructions_and_files_are_shown() {
        check(
            r#"
--- file skills/tables/SKILL.md
x
--- file skills/tables/scripts/run.py
x
--- file skills/tables/notes.md
x
--- call skill {"name": "tables"}
--- call skill {"name": "nope"}
--- call skill {"name": "c"}
"#,
            expect![[r#"
                == Loaded skill: tables
                <skill_content name="tables">
                # Skill: tables

                Do it.

                Base directory for this skill: /w/skills/tables
                Relative paths in this skill are relative to this directory.

                <skill_files>
                <file>/w/skills/tables/notes.md</file>
                <file>/w/skills/tables/scripts/run.py</file>
                </skill_files>
                </skill_content>
                !! NotFound
                There is no skill "nope". Available skills: tables, b
                !! Denied
                The skill "c" has changed since a person trusted this folder. It can be loaded in a new session, once they trust the folder again with: helve trust
            "#]],
        );
    }

    #[test]
    fn long_lists_are_cut_evenly() {
        assert_eq!(list(&[skill("a", "first"), skill("b", "second")]), "- a: first\n- b: second\n");
        let long = list(&[skill("short", "few words"), skill("long", &"x".repeat(20_000))]);
        assert!(long.starts_with("- short: few words\n- long: xxx") && long.ends_with("x…\n"));
        assert!(long.chars().count() <= MAX_LIST + 10, "{}", long.chars().count());
        let many: Vec<SkillInfo> =
            (0..5_000).map(|index| skill(&format!("skill-{index}"), "text")).collect();
        let many = list(&many);
        assert!(many.chars().count() <= MAX_LIST + 200, "{}", many.chars().count());
        assert!(many.ends_with("more skills are not listed.\n"));
    }
}

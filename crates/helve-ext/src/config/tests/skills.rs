//! Skills and commands.

use expect_test::{Expect, expect};

use super::{MemoryHost, load, paths, short};
use crate::config::{Config, Trust, gather};

fn render(config: &Config) -> String {
    let mut all = String::new();
    for skill in &config.skills {
        let for_people = if skill.is_for_people_only { " (for people only)" } else { "" };
        all += &format!("{}: {}{for_people}\n", skill.name, skill.description);
        all += &format!("  {} {:?}\n", short(&skill.folder), skill.body);
    }
    for command in &config.commands {
        all += &format!("/{} {:?}", command.name, command.template.value);
        let texts = [&command.description, &command.agent, &command.model];
        all += &texts
            .into_iter()
            .flatten()
            .map(|text| format!(" {:?}", text.value))
            .collect::<String>();
        all +=
            &command.subtask.as_ref().map_or(String::new(), |it| format!(" subtask={}", it.value));
        all += "\n";
    }
    for problem in &config.problems {
        all += &format!("! {}\n", problem.to_string().replace("/project", "project"));
    }
    all
}

#[track_caller]
fn check(fixture: &str, expect: Expect) {
    expect.assert_eq(&render(&load(fixture, Trust::Trusted)));
}

/// Checks a single `SKILL.md` in the folder `tables`.
#[track_caller]
fn check_skill(text: &str, expect: Expect) {
    check(&format!("-- project/.claude/skills/tables/SKILL.md\n{text}"), expect);
}

#[test]
fn skills_are_found_in_every_folder() {
    let skill = |path: &str, name: &str| {
        format!("-- {path}/SKILL.md\n---\nname: {name}\ndescription: D\n---\nB\n")
    };
    let fixture = [
        skill("/home/user/.claude/skills/a", "a"),
        skill("/home/user/.agents/skills/sub/b", "b"),
        skill("user/skills/c", "c"),
        skill("project/.claude/skills/d", "d"),
        skill("project/.agents/skills/e", "e"),
        skill("project/.opencode/skill/f", "f"),
        skill("project/.opencode/skills/g", "g"),
        skill("project/.helve/skills/h", "h"),
        skill("project/tools/extra/i", "i"),
        "-- project/helve.json\n{\"skills\": {\"paths\": [\"tools/extra\"]}}\n".into(),
    ];
    let config = load(&fixture.concat(), Trust::Trusted);
    let names: String = config.skills.iter().map(|skill| skill.name.as_str()).collect();
    assert_eq!(names, "abcdefghi");
}

#[test]
fn the_last_skill_of_a_name_is_used() {
    check(
        "-- user/skills/a/SKILL.md\n---\nname: x\ndescription: first\n---\n\
         -- project/.helve/skills/b/SKILL.md\n---\nname: x\ndescription: second\n---\nText\n",
        expect![[r#"
            x: second
              project/.helve/skills/b "Text"
            ! /home/user/.config/helve/skills/a/SKILL.md: note: a skill of the same name is used instead: project/.helve/skills/b/SKILL.md
        "#]],
    );
}

#[test]
fn skills_without_a_usable_name_are_named_after_their_folder() {
    check_skill(
        "# Tables\n\nReads tables\nfrom files.\n\nMore.\n",
        expect![[r##"
        tables: Reads tables from files.
          project/.claude/skills/tables "# Tables\n\nReads tables\nfrom files.\n\nMore."
    "##]],
    );
    check_skill(
        "# Only a heading\n",
        expect![[r##"
        tables: Only a heading
          project/.claude/skills/tables "# Only a heading"
    "##]],
    );
    check_skill(
        "---\ndescription: D\n---\n",
        expect![[r#"
        tables: D
          project/.claude/skills/tables ""
    "#]],
    );
}

#[test]
fn incomplete_and_misplaced_front_matter_is_read() {
    check_skill(
        "<!-- made by hand -->\n\n---\nname: x\ndescription: D\n---\nBody\n",
        expect![[r#"
        x: D
          project/.claude/skills/tables "Body"
    "#]],
    );
    check_skill(
        "# comment\n---\nname: x\ndescription: D\n---\nBody\n",
        expect![[r#"
        x: D
          project/.claude/skills/tables "Body"
    "#]],
    );
    check_skill(
        "name: x\ndescription: without dashes: really\n\n# Title\n",
        expect![[r##"
        x: without dashes: really
          project/.claude/skills/tables "# Title"
    "##]],
    );
    check_skill(
        "---\nname: x\n---\n\nFirst paragraph.\n",
        expect![[r#"
        x: First paragraph.
          project/.claude/skills/tables "First paragraph."
    "#]],
    );
}

#[test]
fn broken_front_matter_is_reported_and_the_rest_is_used() {
    check_skill(
        "---\nname: x\nallowed-tools: [*]\ndescription: D\n---\nBody\n",
        expect![[r#"
            x: D
              project/.claude/skills/tables "Body"
            ! project/.claude/skills/tables/SKILL.md:3:17: warning: the front matter is not valid YAML: while scanning an anchor or alias, did not find expected alphabetic or numeric character
              allowed-tools: [*]
                              ^
        "#]],
    );
    check_skill(
        "---\nname: x\ndescription: Use this: for tables\n---\nBody\n",
        expect![[r#"
        x: Use this: for tables
          project/.claude/skills/tables "Body"
    "#]],
    );
    check_skill(
        "---\nname: [a]\ndescription: {b: c}\n---\nBody\n",
        expect![[r#"
        tables: Body
          project/.claude/skills/tables "Body"
        ! project/.claude/skills/tables/SKILL.md:2:1: warning: name must be a string, not a list
          name: [a]
          ^
        ! project/.claude/skills/tables/SKILL.md:3:1: warning: description must be a string, not an object
          description: {b: c}
          ^
    "#]],
    );
    check_skill(
        "---\n- a\n- b\n---\nBody\n",
        expect![[r#"
            tables: Body
              project/.claude/skills/tables "Body"
            ! project/.claude/skills/tables/SKILL.md:2:1: warning: the front matter must be an object, not a list
              - a
              ^
        "#]],
    );
    check_skill(
        "---\nname: x\n",
        expect![[r#"
            ! project/.claude/skills/tables/SKILL.md:1:1: warning: the front matter is never closed
              ---
              ^
              end it with a `---` line
            ! project/.claude/skills/tables/SKILL.md:1:1: error: the skill has neither a description nor a body
              ---
              ^
              add front matter: ---, name: …, description: …, ---
        "#]],
    );
    check_skill(
        "",
        expect![[r#"
            ! project/.claude/skills/tables/SKILL.md:1:1: error: the skill has neither a description nor a body
              add front matter: ---, name: …, description: …, ---
        "#]],
    );
    check_skill(
        "---\n---\n",
        expect![[r#"
            ! project/.claude/skills/tables/SKILL.md:1:1: error: the skill has neither a description nor a body
              ---
              ^
              add front matter: ---, name: …, description: …, ---
        "#]],
    );
}

#[test]
fn keys_of_other_programs_are_accepted() {
    check_skill(
        "---\nname: x\ndescription: D\nlicense: MIT\nmetadata:\n  a: 1\nallowed-tools: Read, Bash\ndisable-model-invocation: true\n---\nBody\n",
        expect![[r#"
            x: D (for people only)
              project/.claude/skills/tables "Body"
        "#]],
    );
}

#[test]
fn commands_come_from_json_and_markdown() {
    check(
        r#"
-- user/helve.json
{"command": {"test": {"template": "Run $ARGUMENTS", "description": "D", "agent": "plan", "subtask": true}}}
-- user/commands/sub/review.md
---
description: Review
model: a/b
argument-hint: "[file]"
---
Review @$1
-- project/.opencode/command/plain.md
No front matter
-- project/.helve/commands/given.md
---
name: other
---
Body
-- project/helve.json
{"command": {"empty": {"description": "x"}, "wrong": "text", "typo": {"templat": "x", "template": "y"}}}
-- project/.opencode/commands/broken.md
---
description: [
---
Body
"#,
        expect![[r#"
            /test "Run $ARGUMENTS" "D" "plan" subtask=true
            /sub/review "Review @$1" "Review" "a/b"
            /plain "No front matter"
            /typo "y"
            /other "Body"
            ! project/.opencode/commands/broken.md:2:14: error: the front matter is not valid YAML: unclosed bracket '['
              description: [
                           ^
            ! project/helve.json:1:14: error: the command `empty` has no template
              {"command": {"empty": {"description": "x"}, "wrong": "text", "typo": {"templat": "x", "template": "y…
                           ^
              set "template", or write the prompt below the front matter
            ! project/helve.json:1:54: error: command.wrong must be an object, not "text"
              {"command": {"empty": {"description": "x"}, "wrong": "text", "typo": {"templat": "x", "template": "y…
                                                                   ^
            ! project/helve.json:1:71: warning: unknown key "templat"; it has no effect
              …: {"empty": {"description": "x"}, "wrong": "text", "typo": {"templat": "x", "template": "y"}}}
                                                                           ^
              did you mean "template"?
        "#]],
    );
}

#[test]
fn an_untrusted_project_brings_neither_skills_nor_commands() {
    let fixture = "-- project/.claude/skills/a/SKILL.md\n---\nname: a\ndescription: D\n---\nBody\n\
                   -- project/.opencode/command/c.md\nText\n\
                   -- project/helve.json\n{\"command\": {\"d\": {\"template\": \"T\"}}}\n";
    expect![""].assert_eq(&render(&load(fixture, Trust::Untrusted)));
}

#[test]
fn too_many_skills_are_reported_with_the_limit() {
    let skill = |at: usize| format!("-- project/.helve/skills/{at}/SKILL.md\nText\n");
    let config = load(&(0..=500).map(skill).collect::<String>(), Trust::Trusted);
    assert_eq!(config.skills.len(), 500);
    expect![[r#"
        not all skills here are read: the limits are 500 skills and 8 folder levels
    "#]]
    .assert_eq(&config.problems.iter().map(|it| format!("{}\n", it.what)).collect::<String>());
}

#[test]
fn a_changed_skill_changes_the_digest() {
    let digest = |body: &str| {
        let host = MemoryHost::new(&format!("-- project/.claude/skills/a/SKILL.md\n{body}\n"));
        gather(&host, &paths()).digest().to_string()
    };
    assert_eq!(digest("a"), digest("a"));
    assert_ne!(digest("a"), digest("b"));
}

#[test]
fn skills_are_read_again() {
    let user = |text: &str| format!("-- user/skills/mine/SKILL.md\n{text}\n");
    let project = |text: &str| format!("-- project/.helve/skills/ours/SKILL.md\n{text}\n");
    let before = MemoryHost::new(&(user("One.") + &project("Two.")));
    let folders = gather(&before, &paths()).interpret(&before, Trust::Trusted).skill_folders;
    let check = |fixture: String, trust, expected: &str| {
        let now = folders.read(&MemoryHost::new(&fixture), trust);
        let skills = now.skills.iter().map(|skill| format!("{}: {}", skill.name, skill.body));
        let untrusted = now.untrusted.iter().map(|path| format!("! {}", short(path)));
        assert_eq!(skills.chain(untrusted).collect::<Vec<_>>().join(", "), expected);
    };
    check(user("One.") + &project("Two."), Trust::Trusted, "mine: One., ours: Two.");
    check(user("One.") + &project("Two."), Trust::Untrusted, "mine: One.");
    check(user("New."), Trust::Trusted, "mine: New.");
    check(
        user("One.") + &project("Evil."),
        Trust::Trusted,
        "mine: One., ! project/.helve/skills/ours/SKILL.md",
    );
    check(String::new(), Trust::Trusted, "");
    let stamps = |fixture: String| folders.stamps(&MemoryHost::new(&fixture));
    assert_eq!(stamps(user("One.")), stamps(user("One.")));
    assert_ne!(stamps(user("One.")), stamps(user("Three.")));
    assert_ne!(stamps(user("One.")), stamps(user("One.") + &project("Two.")));
}

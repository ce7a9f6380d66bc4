//! Skills, agents and commands in every shape in which people write them. Each loads, or is refused with its file, its
//! line and a reason.

use expect_test::{Expect, expect};

use super::{MemoryHost, full, paths};
use crate::config::{Config, Trust, gather};

/// Files of all three kinds with the same content.
const FILES: [&str; 3] =
    ["user/skills/folder/SKILL.md", "user/agents/folder.md", "user/command/folder.md"];

fn load(path: &str, bytes: &[u8]) -> Config {
    let mut host = MemoryHost::default();
    host.files.insert(full(path), bytes.to_vec());
    gather(&host, &paths()).interpret(&host, Trust::Trusted)
}

/// Shows what is read from a file of each kind: its name, its description, its text, and the first line of each
/// problem.
fn render(bytes: &[u8]) -> String {
    let mut all = String::new();
    for (path, kind) in FILES.into_iter().zip(["skill", "agent", "command"]) {
        let config = load(path, bytes);
        let skills = config
            .skills
            .iter()
            .map(|skill| format!("{}: {:?} {:?}", skill.name, skill.description, skill.body));
        let builtin = ["build", "plan", "general", "explore"];
        let agents = config.agents.iter().filter(|agent| !builtin.contains(&agent.name.as_str()));
        let agents = agents.map(|agent| {
            let prompt = agent.prompt.as_ref().map_or("", |prompt| prompt.value.as_str());
            let description = agent.description.as_ref().map(|text| text.value.as_str());
            format!("{}: {:?} {prompt:?}", agent.name, description.unwrap_or_default())
        });
        let commands = config.commands.iter().map(|command| {
            let description = command.description.as_ref().map(|text| text.value.as_str());
            let template = &command.template.value;
            format!("{}: {:?} {template:?}", command.name, description.unwrap_or_default())
        });
        for line in skills.chain(agents).chain(commands) {
            all += &format!("{kind} {line}\n");
        }
        for problem in &config.problems {
            let text = problem.to_string();
            let first = text.lines().next().unwrap_or_default();
            let short = first.replace("/home/user/.config/helve/", "");
            all += &format!("{kind} ! {short}\n");
        }
    }
    all
}

#[track_caller]
fn check(text: &str, expect: Expect) {
    expect.assert_eq(&render(text.as_bytes()));
}

#[test]
fn line_endings_byte_order_marks_and_tabs() {
    let plain = render(b"---\ndescription: D\nname: folder\n---\nBody\n");
    assert_eq!(render(b"---\r\ndescription: D\r\nname: folder\r\n---\r\nBody\r\n"), plain);
    assert_eq!(render("\u{feff}---\ndescription: D\nname: folder\n---\nBody\n".as_bytes()), plain);
    assert_eq!(render(b"---  \ndescription: D\t\nname: folder  \n---\t\nBody\n"), plain);
    check(
        "---\n\tdescription: D\n---\nBody\n",
        expect![[r#"
        skill folder: "D" "Body"
        agent folder: "D" "Body"
        command folder: "D" "Body"
    "#]],
    );
    check(
        "---\ndescription:\tD\nmetadata:\n\ta: 1\n---\nBody\n",
        expect![[r#"
        skill folder: "Body" "Body"
        skill ! skills/folder/SKILL.md:4:2: warning: the front matter is not valid YAML: tabs disallowed within this context (block indentation)
        agent folder: "" "Body"
        agent ! agents/folder.md:4:2: error: the front matter is not valid YAML: tabs disallowed within this context (block indentation)
        command ! command/folder.md:4:2: error: the front matter is not valid YAML: tabs disallowed within this context (block indentation)
    "#]],
    );
}

#[test]
fn missing_and_broken_front_matter() {
    check(
        "Do it.\n",
        expect![[r#"
        skill folder: "Do it." "Do it."
        agent folder: "" "Do it."
        command folder: "" "Do it."
    "#]],
    );
    check(
        "# comment\n<!-- more -->\n\n---\ndescription: D\n---\nBody\n",
        expect![[r#"
            skill folder: "D" "Body"
            agent folder: "D" "Body"
            command folder: "D" "Body"
        "#]],
    );
    check(
        "# comment\n\n---\ndescription: D\nx: [*]\n---\nBody\n",
        expect![[r#"
        skill folder: "D" "Body"
        skill ! skills/folder/SKILL.md:5:5: warning: the front matter is not valid YAML: while scanning an anchor or alias, did not find expected alphabetic or numeric character
        agent folder: "" "Body"
        agent ! agents/folder.md:5:5: error: the front matter is not valid YAML: while scanning an anchor or alias, did not find expected alphabetic or numeric character
        command ! command/folder.md:5:5: error: the front matter is not valid YAML: while scanning an anchor or alias, did not find expected alphabetic or numeric character
    "#]],
    );
    check(
        "# Title\n---\nA line across the page.\n---\nBody\n",
        expect![[r##"
        skill folder: "Title" "# Title\n---\nA line across the page.\n---\nBody"
        agent folder: "" "# Title\n---\nA line across the page.\n---\nBody"
        command folder: "" "# Title\n---\nA line across the page.\n---\nBody"
    "##]],
    );
    check(
        "---\ndescription: Use this: for tables\n---\nBody\n",
        expect![[r#"
        skill folder: "Use this: for tables" "Body"
        agent folder: "Use this: for tables" "Body"
        command folder: "Use this: for tables" "Body"
    "#]],
    );
    check(
        "---\ndescription: D\nallowed-tools: [*]\n---\nBody\n",
        expect![[r#"
        skill folder: "D" "Body"
        skill ! skills/folder/SKILL.md:3:17: warning: the front matter is not valid YAML: while scanning an anchor or alias, did not find expected alphabetic or numeric character
        agent folder: "" "Body"
        agent ! agents/folder.md:3:17: error: the front matter is not valid YAML: while scanning an anchor or alias, did not find expected alphabetic or numeric character
        command ! command/folder.md:3:17: error: the front matter is not valid YAML: while scanning an anchor or alias, did not find expected alphabetic or numeric character
    "#]],
    );
    check(
        "---\ndescription: D\nlicense: MIT\nargument-hint: [file]\n---\nBody\n",
        expect![[r#"
        skill folder: "D" "Body"
        agent folder: "D" "Body"
        command folder: "D" "Body"
    "#]],
    );
    check(
        "---\nname: other\n---\nBody\n",
        expect![[r#"
        skill other: "Body" "Body"
        agent other: "" "Body"
        command other: "" "Body"
    "#]],
    );
    check(
        "---\ndescription: D\n",
        expect![[r#"
            skill ! skills/folder/SKILL.md:1:1: warning: the front matter is never closed
            skill ! skills/folder/SKILL.md:1:1: error: the skill has neither a description nor a body
            agent folder: "" ""
            agent ! agents/folder.md:1:1: error: the front matter is never closed
            command ! command/folder.md:1:1: error: the front matter is never closed
        "#]],
    );
    check(
        "---\ndescription: |\n  Two\n  lines\n---\nBody\n",
        expect![[r#"
        skill folder: "Two\nlines" "Body"
        agent folder: "Two\nlines\n" "Body"
        command folder: "Two\nlines\n" "Body"
    "#]],
    );
    check(
        "---\ndescription: D\n---\n",
        expect![[r#"
        skill folder: "D" ""
        agent folder: "D" ""
        command ! command/folder.md:1:1: error: the command `folder` has no template
    "#]],
    );
}

#[test]
fn empty_and_binary_files() {
    check(
        "",
        expect![[r#"
            skill ! skills/folder/SKILL.md:1:1: error: the skill has neither a description nor a body
            agent folder: "" ""
            command ! command/folder.md:1:1: error: the command `folder` has no template
        "#]],
    );
    check(
        "\n\n",
        expect![[r#"
            skill ! skills/folder/SKILL.md:1:1: error: the skill has neither a description nor a body
            agent folder: "" ""
            command ! command/folder.md:1:1: error: the command `folder` has no template
        "#]],
    );
    check(
        "---\n---\n",
        expect![[r#"
            skill ! skills/folder/SKILL.md:1:1: error: the skill has neither a description nor a body
            agent folder: "" ""
            command ! command/folder.md:1:1: error: the command `folder` has no template
        "#]],
    );
    expect![[r#"
        skill ! skills/folder/SKILL.md:4:6: error: invalid UTF-8 from here on
        agent ! agents/folder.md:4:6: error: invalid UTF-8 from here on
        command ! command/folder.md:4:6: error: invalid UTF-8 from here on
    "#]]
    .assert_eq(&render(b"---\ndescription: D\n---\nBody \xff\xfe\n"));
    expect![[r#"
        skill ! skills/folder/SKILL.md:1:1: error: invalid UTF-8 from here on
        agent ! agents/folder.md:1:1: error: invalid UTF-8 from here on
        command ! command/folder.md:1:1: error: invalid UTF-8 from here on
    "#]]
    .assert_eq(&render(b"\xff\xfe-\0-\0-\0\n\0"));
    expect![[r#"
        skill folder: "ab" "Body"
        skill ! skills/folder/SKILL.md:2:15: warning: the front matter is not valid YAML: unexpected character: `\u{0}'
        agent folder: "" "Body"
        agent ! agents/folder.md:2:15: error: the front matter is not valid YAML: unexpected character: `\u{0}'
        command ! command/folder.md:2:15: error: the front matter is not valid YAML: unexpected character: `\u{0}'
    "#]].assert_eq(&render(b"---\ndescription: a\0b\n---\nBody\n"));
}

#[test]
fn long_files() {
    let long =
        format!("---\ndescription: {}\n---\n{}", "d".repeat(5_000), "line\n".repeat(100_000));
    for path in FILES {
        let config = load(path, long.as_bytes());
        assert!(config.problems.is_empty(), "{:?}", config.problems);
    }
    let skill = &load(FILES[0], long.as_bytes()).skills[0];
    assert_eq!((skill.description.len(), skill.body.len()), (1_024, 499_999));
}

//! Agents from JSON and Markdown, and the built-in ones.

use expect_test::expect;

use super::{check, check_trusted, load, render_rules};
use crate::config::{Agent, AgentOrigin, Trust};

fn agent(fixture: &str, trust: Trust, name: &str) -> Option<Agent> {
    load(fixture, trust).agents.into_iter().find(|agent| agent.name == name)
}

#[test]
fn built_in_agents_have_their_rules() {
    let describe = |agent: &Agent| {
        format!(
            "{} {:?} {:?}\n{}",
            agent.name,
            agent.origin,
            *agent.mode,
            render_rules(&agent.rules)
        )
    };
    let all: String = load("", Trust::Untrusted).agents.iter().map(describe).collect();
    expect![[r#"
        build Builtin Primary
        plan_exit * Deny
        plan Builtin Primary
        plan_enter * Deny
        task general Deny
        edit * Deny
        edit .helve/plans/*.md Allow
        edit .opencode/plans/*.md Allow
        general Builtin Subagent
        question * Deny
        plan_enter * Deny
        plan_exit * Deny
        todowrite * Deny
        explore Builtin Subagent
        * * Deny
        read * Allow
        list * Allow
        glob * Allow
        grep * Allow
        skill * Allow
        bash * Allow
        webfetch * Allow
        websearch * Allow
        codesearch * Allow
        external_directory * Allow
        doom_loop * Allow
    "#]]
    .assert_eq(&all);
}

#[test]
fn agents_are_read_from_json() {
    check(
        r#"
-- user/helve.json
{
  "agent": {
    "review": {
      "description": "Looks over changes",
      "mode": "subagent",
      "model": "acme/large",
      "prompt": "Be kind.",
      "temperature": 0.2,
      "top_p": 1,
      "steps": 5,
      "hidden": true,
      "tools": {"bash": false},
      "permission": {"edit": "deny"},
      "reasoningEffort": "high",
      "permision": {}
    }
  },
  "mode": {"solo": {"prompt": "Alone."}}
}
-- user/helve.jsonc
{"agent": {"review": {"model": "acme/small", "permission": {"edit": {"docs/*": "ask"}}}}}
"#,
        expect![[r#"
            user/helve.json:5:15 agent.review.mode = subagent
            user/helve.json:4:22 agent.review.description = Looks over changes
            user/helve.jsonc:1:32 agent.review.model = acme/small
            user/helve.json:7:17 agent.review.prompt = Be kind.
            user/helve.json:11:17 agent.review.hidden = true
            user/helve.json:8:22 agent.review.temperature = 0.2
            user/helve.json:9:16 agent.review.top_p = 1
            user/helve.json:10:16 agent.review.steps = 5
            user/helve.json:12:17 agent.review.permission.bash."*" = deny
            user/helve.json:13:22 agent.review.permission.edit."*" = deny
            user/helve.jsonc:1:70 agent.review.permission.edit."docs/*" = ask
            user/helve.json:12:17 agent.review.tools.bash = false
            user/helve.json:18:12 agent.solo.mode = primary
            user/helve.json:18:31 agent.solo.prompt = Alone.
            ! user/helve.json:15:7: warning: unknown key "permision"; it has no effect
              "permision": {}
              ^
              did you mean "permission"?
        "#]],
    );
}

#[test]
fn invalid_fields_are_dropped_and_the_rest_is_kept() {
    check(
        r#"
-- user/helve.json
{
  "agent": {
    "a": {"mode": "boss", "temperature": "hot", "steps": 0, "hidden": 1, "model": 3, "prompt": "p"},
    "b": "nothing",
    "plan": 5
  },
  "mode": []
}
"#,
        expect![[r#"
            user/helve.json:5:5 agent.plan.permission."*"."*" = ask
            user/helve.json:5:5 agent.plan.permission.edit.".helve/plans/*.md" = ask
            user/helve.json:5:5 agent.plan.permission.edit.".opencode/plans/*.md" = ask
            user/helve.json:3:5 agent.a.mode = all
            user/helve.json:3:96 agent.a.prompt = p
            ! user/helve.json:3:19: error: an agent's mode must be "primary", "subagent" or "all", not "boss"
              "a": {"mode": "boss", "temperature": "hot", "steps": 0, "hidden": 1, "model": 3, "prompt": "p"},
                            ^
            ! user/helve.json:3:42: error: agent.a.temperature must be a number from 0 to 10, not "hot"
              "a": {"mode": "boss", "temperature": "hot", "steps": 0, "hidden": 1, "model": 3, "prompt": "p"},
                                                   ^
            ! user/helve.json:3:58: error: agent.a.steps must be a whole number from 1 to 1000000, not 0
              "a": {"mode": "boss", "temperature": "hot", "steps": 0, "hidden": 1, "model": 3, "prompt": "p"},
                                                                   ^
            ! user/helve.json:3:71: error: agent.a.hidden must be true or false, not 1
              …"mode": "boss", "temperature": "hot", "steps": 0, "hidden": 1, "model": 3, "prompt": "p"},
                                                                           ^
            ! user/helve.json:3:83: error: agent.a.model must be a string, not 3
              …s", "temperature": "hot", "steps": 0, "hidden": 1, "model": 3, "prompt": "p"},
                                                                           ^
            ! user/helve.json:4:10: error: agent.b must be an object, not "nothing"
              "b": "nothing",
                   ^
            ! user/helve.json:5:13: error: agent.plan must be an object, not 5
              "plan": 5
                      ^
            ! user/helve.json:7:11: error: mode must be an object, not an empty list
              "mode": []
                      ^
        "#]],
    );
}

#[test]
fn agents_are_read_from_markdown() {
    check_trusted(
        r#"
-- user/agents/docs/writer.md
---
description: Writes: and rewrites
mode: subagent
permission:
  "*": ask
  bash:
    "git *": allow
    "git push *": deny
tools:
  webfetch: false
temperature: 0.5
---

You write.
Well.
-- project/.opencode/agent/plain.md
Just a prompt.
-- project/.opencode/mode/solo.md
---
model: acme/large
---
Alone.
-- project/.helve/agents/empty.md
"#,
        expect![[r#"
            user/agents/docs/writer.md:3:7 agent.docs/writer.mode = subagent
            user/agents/docs/writer.md:2:14 agent.docs/writer.description = Writes: and rewrites
            user/agents/docs/writer.md:14:1 agent.docs/writer.prompt = You write.\nWell.
            user/agents/docs/writer.md:11:14 agent.docs/writer.temperature = 0.5
            user/agents/docs/writer.md:10:3 agent.docs/writer.permission.webfetch."*" = deny
            user/agents/docs/writer.md:5:3 agent.docs/writer.permission."*"."*" = ask
            user/agents/docs/writer.md:7:5 agent.docs/writer.permission.bash."git *" = allow
            user/agents/docs/writer.md:8:5 agent.docs/writer.permission.bash."git push *" = deny
            user/agents/docs/writer.md:10:3 agent.docs/writer.tools.webfetch = false
            project/.opencode/agent/plain.md:1:1 agent.plain.mode = all
            project/.opencode/agent/plain.md:1:1 agent.plain.prompt = Just a prompt.
            project/.opencode/mode/solo.md:2:1 agent.solo.mode = primary
            project/.opencode/mode/solo.md:2:8 agent.solo.model = acme/large
            project/.opencode/mode/solo.md:4:1 agent.solo.prompt = Alone.
            project/.helve/agents/empty.md:1:1 agent.empty.mode = all
        "#]],
    );
}

#[test]
fn broken_front_matter_makes_the_agent_ask() {
    check(
        r#"
-- user/agents/a.md
---
permission:
  bash: deny
 edit: [
---
A.
-- user/agents/b.md
---
description: never closed
-- user/agents/c.md
---
- a list
---
C.
-- user/agents/d.md
---
permission:
  bash: deny
  edit: alow
  read: allow
---
D.
"#,
        expect![[r#"
            user/agents/a.md:4:2 agent.a.mode = all
            user/agents/a.md:6:1 agent.a.prompt = A.
            user/agents/a.md:4:2 agent.a.permission."*"."*" = ask
            user/agents/b.md:1:1 agent.b.mode = all
            user/agents/b.md:1:1 agent.b.permission."*"."*" = ask
            user/agents/c.md:2:1 agent.c.mode = all
            user/agents/c.md:4:1 agent.c.prompt = C.
            user/agents/c.md:2:1 agent.c.permission."*"."*" = ask
            user/agents/d.md:2:1 agent.d.mode = all
            user/agents/d.md:7:1 agent.d.prompt = D.
            user/agents/d.md:4:9 agent.d.permission."*"."*" = ask
            user/agents/d.md:3:3 agent.d.permission.bash."*" = deny
            user/agents/d.md:4:9 agent.d.permission.read."*" = ask
            ! user/agents/a.md:4:2: error: the front matter is not valid YAML: while parsing a block mapping, did not find expected key
              edit: [
              ^
              until this is fixed, every tool call of the agent needs approval
            ! user/agents/b.md:1:1: error: the front matter is never closed
              ---
              ^
              end it with a `---` line
            ! user/agents/c.md:2:1: error: settings must be an object, not a list
              - a list
              ^
              until this is fixed, this file allows nothing without asking; denies still apply
            ! user/agents/d.md:4:9: error: an action must be "allow", "ask" or "deny", not "alow"
              edit: alow
                    ^
              did you mean "allow"? until this is fixed, this file allows nothing without asking; denies still apply
        "#]],
    );
}

#[test]
fn an_untrusted_project_only_restricts_existing_agents() {
    const FIXTURE: &str = r#"
-- user/helve.json
{"agent": {"mine": {"prompt": "Mine.", "permission": {"bash": "deny"}}}}
-- project/opencode.json
{
  "agent": {
    "mine": {"prompt": "Theirs.", "disable": true, "permission": {"bash": "allow", "edit": "deny"}},
    "plan": {"permission": {"edit": "allow"}},
    "theirs": {"prompt": "Hello."}
  }
}
-- project/.helve/agents/general.md
Be general.
"#;
    check(
        FIXTURE,
        expect![[r#"
            project/opencode.json:4:29 agent.plan.permission.edit."*" = allow (needs trust)
            user/helve.json:1:12 agent.mine.mode = all
            user/helve.json:1:31 agent.mine.prompt = Mine.
            user/helve.json:1:55 agent.mine.permission.bash."*" = deny
            project/opencode.json:3:67 agent.mine.permission.bash."*" = allow (needs trust)
            project/opencode.json:3:84 agent.mine.permission.edit."*" = deny
            project/opencode.json:5:5 agent.theirs.mode = all
            project/opencode.json:5:26 agent.theirs.prompt = Hello.
            project/opencode.json:3:14 agent.mine.prompt = Theirs. (needs trust)
            project/opencode.json:3:35 agent.mine.disable = true (needs trust)
            project/.helve/agents/general.md:1:1 agent.general.prompt = Be general. (needs trust)
        "#]],
    );
    check_trusted(
        FIXTURE,
        expect![[r#"
            project/opencode.json:4:29 agent.plan.permission.edit."*" = allow
            project/.helve/agents/general.md:1:1 agent.general.prompt = Be general.
            project/opencode.json:5:5 agent.theirs.mode = all
            project/opencode.json:5:26 agent.theirs.prompt = Hello.
        "#]],
    );
    let plan = agent(FIXTURE, Trust::Trusted, "plan").unwrap();
    assert!(plan.rules.iter().all(|rule| rule.source == helve_core::Source::Builtin));
    expect![[r#"
        edit * Allow
    "#]]
    .assert_eq(&render_rules(&plan.project_rules));
    assert_eq!(agent(FIXTURE, Trust::Untrusted, "theirs").unwrap().origin, AgentOrigin::Project);
}

#[test]
fn disabled_agents_are_omitted() {
    let fixture = "-- user/helve.json\n{\"agent\": {\"general\": {\"disable\": true}}}";
    assert_eq!(agent(fixture, Trust::Untrusted, "general"), None);
    let back = format!(
        "{fixture}\n-- user/helve.jsonc\n{{\"agent\": {{\"general\": {{\"disable\": false}}}}}}"
    );
    assert!(agent(&back, Trust::Untrusted, "general").is_some());
}

#[test]
fn names_and_front_matter_have_limits() {
    let problems = |fixture: &str| {
        let all = load(fixture, Trust::Untrusted).problems;
        all.iter().map(|problem| problem.what.clone()).collect::<Vec<_>>().join("\n")
    };
    let long = "x".repeat(201);
    let names = format!("-- user/helve.json\n{{\"agent\": {{\"\": {{}}, \"{long}\": {{}}}}}}");
    expect![[r#"
        there may be at most 500 agents, with names of 1 to 200 bytes
        there may be at most 500 agents, with names of 1 to 200 bytes"#]]
    .assert_eq(&problems(&names));
    let front_matter =
        format!("-- user/agent/a.md\n---\ndescription: {}\n---\nA.", "x".repeat(40_000));
    expect!["front matter may have at most 32 KiB"].assert_eq(&problems(&front_matter));
    let values = format!("-- user/agent/a.md\n---\na: [{}]\n---\nA.", "1,".repeat(12_000));
    expect!["the front matter is not valid YAML: it is too large or nested too deeply"]
        .assert_eq(&problems(&values));
}

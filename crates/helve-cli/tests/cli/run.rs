//! `helve run` and `helve sessions` against a scripted provider.

use expect_test::{Expect, expect};
use helve_testkit::{ScriptedAnswer, ScriptedProvider};
use serde_json::{Value, json};

use crate::stage::{RunOutput, Stage};

/// A reply of the chat protocol: text, or a call of `read`.
fn reply(text: &str, call: Option<Value>) -> ScriptedAnswer {
    let delta = match call {
        Some(arguments) => json!({"content": text, "tool_calls": [{
            "index": 0, "id": "c1", "type": "function",
            "function": {"name": "read", "arguments": arguments.to_string()},
        }]}),
        None => json!({"content": text}),
    };
    let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "stop"}]});
    ScriptedAnswer::events(&[&chunk.to_string(), "[DONE]"])
}

/// Runs `helve run` with a key in the environment.
fn run(stage: &Stage, provider: &ScriptedProvider, args: &[&str]) -> RunOutput {
    let mut command = stage.command();
    command.args(["run", "--base-url", &provider.url, "--model", "m", "--api-key-env", "KEY"]);
    command.args(args).env("KEY", "sk-very-secret");
    stage.finish(&mut command)
}

#[track_caller]
fn check(script: Vec<ScriptedAnswer>, args: &[&str], expected: Expect) {
    let (stage, provider) = (Stage::new(), ScriptedProvider::start(script).unwrap());
    expected.assert_eq(&run(&stage, &provider, args).transcript());
}

#[test]
fn the_answer_is_printed_and_calls_are_noted() {
    check(
        vec![
            reply("I look.", Some(json!({"filePath": "README.md"}))),
            reply("It says hello.", None),
        ],
        &["what", "does", "it", "say?"],
        expect![[r#"
            0
            It says hello.
            • read README.md 0.0 s
        "#]],
    );
}

#[test]
fn errors_name_the_next_step_and_no_key() {
    let failed =
        |status, body: &str| vec![ScriptedAnswer::document(status, "application/json", body)];
    check(
        failed(401, r#"{"error":{"message":"the key sk-very-secret is not valid"}}"#),
        &["hello"],
        expect![[r#"
            1
            error: the provider answered with status 401: the key [redacted] is not valid; check the key
        "#]],
    );
    check(
        failed(404, r#"{"error":{"message":"no model m"}}"#),
        &["hello"],
        expect![[r#"
        1
        error: the provider answered with status 404: no model m; check the name of the model, m
    "#]],
    );
    check(
        vec![reply("", None)],
        &["hello"],
        expect![[r#"
        5
        error: the model gave an empty answer
    "#]],
    );
    check(
        vec![],
        &[" "],
        expect![[r#"
        2
        error: the prompt is empty; pass it as an argument or on standard input
    "#]],
    );
    let stage = Stage::new();
    expect![[r#"
        2
        error: no model is configured; pass --model PROVIDER/MODEL, or set "model": "PROVIDER/MODEL" in helve.json
    "#]].assert_eq(&stage.run(&["run", "hello"]).transcript());
    expect![[r#"
        2
        error: unknown provider "acme"; known: anthropic, openai, openrouter, groq, deepseek, mistral, xai, google, ollama; others need a baseURL in the configuration
    "#]].assert_eq(&stage.run(&["run", "--model", "acme/x", "hello"]).transcript());
    expect![[r#"
        2
        error: there is no key for the provider "openai"; set OPENAI_API_KEY, or save one with `helve auth login openai`
    "#]]
    .assert_eq(&stage.run(&["run", "--model", "openai/x", "hello"]).transcript());
    expect![[r#"
        2
        error: there is no session to continue in {base}/app
    "#]]
    .assert_eq(
        &stage
            .run(&["run", "-c", "--base-url", "http://127.0.0.1:1", "--model", "x", "hello"])
            .transcript(),
    );
}

#[test]
fn a_model_is_configured_once() {
    let (stage, provider) =
        (Stage::new(), ScriptedProvider::start(vec![reply("configured", None)]).unwrap());
    let config = json!({
        "model": "local/small",
        "provider": {"local": {
            "options": {"baseURL": provider.url, "apiKey": "{env:KEY}"},
            "models": {"small": {"id": "small-v2", "limit": {"context": 9000, "output": 700}}},
        }},
    });
    stage.write("home/.config/helve/helve.json", &config.to_string());
    let output = stage.finish(stage.command().args(["run", "hello"]).env("KEY", "sk-very-secret"));
    assert_eq!(output.transcript(), "0\nconfigured\n");
    let request = &provider.requests()[0];
    assert_eq!((&request["model"], &request["max_tokens"]), (&json!("small-v2"), &json!(700)));
}

#[test]
fn sessions_are_listed_shown_continued_and_deleted() {
    let script = vec![
        reply("I look.", Some(json!({"filePath": "README.md"}))),
        reply("It says hello.", None),
        reply("Yes.", None),
    ];
    let (stage, provider) = (Stage::new(), ScriptedProvider::start(script).unwrap());
    run(&stage, &provider, &["what does it say?"]);
    let second = run(&stage, &provider, &["-c", "really?"]);
    assert_eq!(second.out, "Yes.\n");
    let listed: Value = serde_json::from_str(&stage.run(&["--json", "sessions"]).out).unwrap();
    assert_eq!(listed.as_array().map(Vec::len), Some(1));
    assert_eq!(listed[0]["title"], "what does it say?");
    let shown = stage.run(&["sessions", "show"]).out;
    let root = stage.path("app").display().to_string();
    let shown: String = shown
        .replace(&root, "ROOT")
        .lines()
        .filter(|line| !line.starts_with("Platform:") && !line.starts_with("Date:"))
        .map(|line| format!("{}\n", line.trim_end()))
        .collect();
    expect![[r#"
        note: Working folder: {base}/app
        Git repository: no
        you: what does it say?
        model: I look.
        → read {"filePath":"README.md"}
          <file>
          00001| # app
          00002|
          00003| Hello.

          (End of file, 3 lines)
          </file>
        model: It says hello.
        you: really?
        model: Yes.
    "#]]
    .assert_eq(&shown);
    let id = listed[0]["id"].as_str().unwrap();
    let exported = stage.run(&["--json", "sessions", "show", id]).out;
    assert!(!exported.contains("sk-very-secret"));
    assert_eq!(stage.run(&["sessions", "delete", id]).code, 0);
    expect![[r#"
        1
        error: there is no session gone; `helve sessions` lists the sessions
    "#]]
    .assert_eq(&stage.run(&["sessions", "delete", "gone"]).transcript());
    expect![[r#"
        0
        There is no session in this folder yet; `helve run PROMPT` begins one.
    "#]]
    .assert_eq(&stage.run(&["sessions"]).transcript());
}

#[test]
fn events_are_json_lines() {
    let script = vec![
        reply("I look.", Some(json!({"filePath": "README.md"}))),
        reply("It says hello.", None),
    ];
    let (stage, provider) = (Stage::new(), ScriptedProvider::start(script).unwrap());
    let output = run(&stage, &provider, &["--json", "--stream", "hello"]);
    let events: Vec<Value> =
        output.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["type"].as_str()).collect();
    expect!["session turn_start request text usage call result request text usage turn_end"]
        .assert_eq(&kinds.join(" "));
    let end = events.last().unwrap();
    assert_eq!((&end["reason"], &end["text"]), (&json!("answered"), &json!("It says hello.")));
}

/// The messages of a request as text.
fn sent(provider: &ScriptedProvider, number: usize) -> String {
    provider.requests()[number]["messages"].to_string()
}

#[test]
fn instruction_files_take_effect_after_trust() {
    let stage = Stage::new();
    let outside = stage.path("outside.md");
    std::fs::write(&outside, "From outside.").unwrap();
    std::os::unix::fs::symlink(&outside, stage.path("app/docs-link.md")).unwrap();
    stage.write("home/.config/helve/AGENTS.md", "The user's own.");
    stage.write("app/CLAUDE.md", "Of the project.");
    stage.write("app/docs/style.md", "Of the glob.");
    stage.write("app/docs/deep/other.md", "Too deep.");
    stage.write(
        "app/helve.json",
        r#"{"instructions": ["docs/*.md", "docs-link.md", "../outside.md", "https://example.org/x.md"]}"#,
    );
    stage.write("app/src/AGENTS.md", "Of the subfolder.");
    let call = || reply("I look.", Some(json!({"filePath": "src/main.rs"})));
    let script =
        vec![call(), reply("Done.", None), call(), reply("Done.", None), reply("Done.", None)];
    let provider = ScriptedProvider::start(script).unwrap();
    let untrusted = run(&stage, &provider, &["hello"]);
    assert!(untrusted.err.contains("not used, because the folder is not trusted: CLAUDE.md"));
    let first = sent(&provider, 0) + &sent(&provider, 1);
    assert!(first.contains("The user's own."));
    assert!(!first.contains("Of the project.") && !first.contains("Of the subfolder."), "{first}");

    assert_eq!(stage.run(&["trust"]).code, 0);
    run(&stage, &provider, &["hello"]);
    let trusted = sent(&provider, 2);
    for text in ["Instructions from: CLAUDE.md\\nOf the project.", "docs/style.md\\nOf the glob."] {
        assert!(trusted.contains(text), "{trusted}");
    }
    for text in ["From outside.", "Too deep.", "Of the subfolder."] {
        assert!(!trusted.contains(text), "{trusted}");
    }
    assert!(sent(&provider, 3).contains("Instructions from: src/AGENTS.md\\nOf the subfolder."));

    // A file that the glob matches is part of what is trusted.
    stage.write("app/docs/style.md", "Changed.");
    run(&stage, &provider, &["hello"]);
    assert!(!sent(&provider, 4).contains("Of the project."));
}

#[test]
fn instruction_files_of_subfolders_are_bounded() {
    let stage = Stage::new();
    stage.write("app/node_modules/pkg/AGENTS.md", "Of a package.");
    stage.write("app/node_modules/pkg/index.js", "x\n");
    stage.write("app/large/CONTEXT.md", &"Long. ".repeat(5_000));
    stage.write("app/large/a.txt", "x\n");
    stage.write("app/denied/AGENTS.md", "Denied.");
    stage.write("app/denied/a.txt", "x\n");
    let rules = r#"{"permission": {"read": {"denied/AGENTS.md": "deny"}}}"#;
    stage.write("home/.config/helve/helve.json", rules);
    let read = |path: &str| reply("", Some(json!({"filePath": path})));
    let script = vec![
        read("node_modules/pkg/index.js"),
        read("large/a.txt"),
        read("denied/a.txt"),
        reply("Done.", None),
    ];
    let provider = ScriptedProvider::start(script).unwrap();
    // Nothing in the root needs trust, but the subfolders do.
    assert_eq!(stage.run(&["trust"]).code, 0);
    run(&stage, &provider, &["hello"]);
    let last = sent(&provider, 3);
    assert!(!last.contains("Of a package.") && !last.contains("Denied."), "{last}");
    assert!(last.contains("Instructions from: large/CONTEXT.md\\nLong. Long."), "{last}");
    assert!(last.contains("bytes were left out]") && last.len() < 20_000);
}

#[test]
fn files_are_attached() {
    let stage = Stage::new();
    stage.write("other/note.txt", "Outside of the folder.\n");
    let provider = ScriptedProvider::start(vec![reply("Seen.", None)]).unwrap();
    let note = stage.path("other/note.txt").display().to_string();
    let output = run(&stage, &provider, &["-f", "README.md", "-f", &note, "what is this?"]);
    assert_eq!(output.code, 0, "{output:?}");
    let sent = sent(&provider, 0);
    assert!(sent.contains("Attached file: README.md") && sent.contains("Outside of the folder."));
    for (file, expected) in [("gone.txt", "cannot attach"), ("src", "it is a folder")] {
        let output = run(&stage, &provider, &["-f", file, "what is this?"]);
        assert_eq!(output.code, 2);
        assert!(output.err.contains(expected), "{}", output.err);
    }
    stage.write("home/.config/helve/helve.json", r#"{"permission": {"read": {"*.md": "deny"}}}"#);
    let output = run(&stage, &provider, &["-f", "README.md", "what is this?"]);
    assert_eq!(output.code, 2, "a rule that denies a file counts: {output:?}");
}

#[test]
fn a_fork_leaves_the_session_as_it_is() {
    let script = vec![reply("One.", None), reply("Two.", None)];
    let (stage, provider) = (Stage::new(), ScriptedProvider::start(script).unwrap());
    run(&stage, &provider, &["first"]);
    run(&stage, &provider, &["-c", "--fork", "second"]);
    assert!(sent(&provider, 1).contains("first"));
    let listed: Value = serde_json::from_str(&stage.run(&["--json", "sessions"]).out).unwrap();
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    let output = run(&stage, &provider, &["--fork", "third"]);
    assert_eq!(
        output.transcript(),
        "2\nerror: --fork needs a session to fork: add -c or --session ID\n"
    );
}

#[test]
fn the_last_message_is_written_to_a_file() {
    let (stage, provider) =
        (Stage::new(), ScriptedProvider::start(vec![reply("The answer.", None)]).unwrap());
    let file = stage.path("answer.txt").display().to_string();
    run(&stage, &provider, &["--last-message", &file, "hello"]);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "The answer.");
}

#[test]
fn a_long_command_moves_to_the_background_and_its_end_is_reported() {
    let stage = Stage::new();
    stage.write(
        "home/.config/helve/helve.json",
        r#"{"bash": {"timeout": 300}, "permission": {"bash": "allow"}}"#,
    );
    let bash = |id: &str, command: &str| {
        let arguments = json!({"command": command}).to_string();
        let call = json!({"index": 0, "id": id, "type": "function",
            "function": {"name": "bash", "arguments": arguments}});
        let chunk = json!({"choices": [{"index": 0, "delta": {"tool_calls": [call]},
            "finish_reason": "tool_calls"}]});
        ScriptedAnswer::events(&[&chunk.to_string(), "[DONE]"])
    };
    let script = vec![
        bash("c1", "sleep 1; echo finished; touch done.txt"),
        // Ends after the first command, but before its own timeout.
        bash("c2", "until test -f done.txt; do sleep 0.02; done; sleep 0.1"),
        bash("c3", "until test -f done.txt; do sleep 0.02; done; sleep 0.1"),
        bash("c4", "sleep 0.2"),
        bash("c5", "sleep 0.25"),
        bash("c6", "sleep 0.26"),
        reply("Done.", None),
    ];
    let provider = ScriptedProvider::start(script).unwrap();
    let output = run(&stage, &provider, &["hello"]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(sent(&provider, 1).contains("it continues in the background as"));
    let last = sent(&provider, provider.requests().len() - 1);
    assert!(last.contains("The background command") && last.contains("exit code 0"), "{last}");
}

#[test]
fn a_command_can_be_given_to_a_sub_agent() {
    let stage = Stage::new();
    let commands = json!({"command": {
        "look": {"template": "LOOK $1", "agent": "explore"},
        "nobody": {"template": "x", "agent": "nobody", "subtask": true},
    }});
    stage.write("home/.config/helve/helve.json", &commands.to_string());
    let script = vec![reply("CHILD-FOUND", None), reply("Done.", None)];
    let provider = ScriptedProvider::start(script).unwrap();
    let output = run(&stage, &provider, &["--command", "look", "here"]);
    assert_eq!((output.code, output.out.as_str()), (0, "Done.\n"), "{output:?}");
    assert!(sent(&provider, 0).contains("LOOK here"));
    assert!(!sent(&provider, 0).contains("\"name\":\"write\""), "explore only reads");
    assert!(sent(&provider, 1).contains("CHILD-FOUND"));
    let output = run(&stage, &provider, &["--command", "nobody", "x"]);
    assert_eq!(output.code, 1, "{output:?}");
    assert!(output.err.contains("There is no agent nobody"), "{output:?}");
}

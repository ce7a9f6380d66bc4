//! `helve run` with providers that fail, and keys that must not be shown.

use std::path::Path;

use helve_testkit::{ScriptedAnswer, ScriptedProvider};
use serde_json::{Value, json};

use crate::stage::{RunOutput, Stage};

/// A key that is easy to find.
const KEY: &str = "acme-needle-0123456789abcdef";
/// The prompt for providers that never send anything.
const SILENT: &str = "are you there?";

fn chunk(delta: &Value, finish: Option<&str>) -> String {
    json!({"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}).to_string()
}

fn bash(id: &str, command: &str) -> String {
    let function = json!({"name": "bash", "arguments": json!({"command": command}).to_string()});
    let call = json!({"index": 0, "id": id, "type": "function", "function": function});
    chunk(&json!({"tool_calls": [call]}), Some("tool_calls"))
}

fn answer(text: &str) -> ScriptedAnswer {
    ScriptedAnswer::events(&[&chunk(&json!({"content": text}), Some("stop")), "[DONE]"])
}

fn run(stage: &Stage, provider: &ScriptedProvider, args: &[&str]) -> RunOutput {
    let mut command = stage.command();
    command.args(["run", "--base-url", &provider.url, "--model", "m"]);
    // The name does not say that the value is a secret.
    command.args(["--api-key-env", "ACME_LOGIN"]).args(args).env("ACME_LOGIN", KEY);
    // Only providers that never send anything are not waited for.
    if args.contains(&SILENT) {
        command.env("HELVE_IDLE_TIMEOUT_MS", "50");
    }
    stage.finish(&mut command)
}

#[track_caller]
fn check(script: Vec<ScriptedAnswer>, args: &[&str], code: i32, message: &str) {
    let (stage, provider) = (Stage::new(), ScriptedProvider::start(script).unwrap());
    let output = run(&stage, &provider, &[args, &["hello"]].concat());
    assert_eq!(output.code, code, "{output:?}");
    let last = output.err.lines().last().unwrap_or_default();
    assert!(last.starts_with("error: ") && last.contains(message), "{output:?}");
}

#[test]
fn every_failure_has_its_exit_code_and_a_sentence() {
    let long = format!("data: {}", "x".repeat(5 << 20));
    check(
        vec![ScriptedAnswer::silence()],
        &[SILENT],
        1,
        "did not send an answer within 0.05 seconds",
    );
    check(vec![ScriptedAnswer::stream(&[]).hang()], &[SILENT], 1, "the provider did not send");
    check(vec![ScriptedAnswer::stream(&[long.as_bytes()])], &[], 1, "a line that is too long");
    check(vec![ScriptedAnswer::events(&["no JSON"])], &[], 1, "an event that is not valid");
    let page = "<html><title>Sign in</title></html>";
    check(vec![ScriptedAnswer::document(200, "text/html", page)], &[], 1, "\"Sign in\"");
    check(vec![answer("")], &[], 5, "the model gave an empty answer");
    let refused = chunk(&json!({"refusal": "no"}), Some("stop"));
    check(vec![ScriptedAnswer::events(&[&refused])], &[], 5, "refused");
}

#[test]
fn limits_have_their_own_exit_code() {
    let step = |n: usize| {
        let function = json!({"name": "read", "arguments": json!({"filePath": "README.md", "limit": n}).to_string()});
        let call =
            json!({"index": 0, "id": format!("c{n}"), "type": "function", "function": function});
        let delta = json!({"tool_calls": [call]});
        let chunk = json!({"choices": [{"delta": delta, "finish_reason": "tool_calls"}],
            "usage": {"prompt_tokens": 1_000, "completion_tokens": 1}});
        ScriptedAnswer::events(&[&chunk.to_string(), "[DONE]"])
    };
    let steps = || (1..9).map(step).collect::<Vec<_>>();
    check(steps(), &["--max-steps", "2"], 4, "raise it with --max-steps");
    check(steps(), &["--max-tokens", "2500"], 4, "raise it with --max-tokens");
    check(steps(), &["--max-cost", "0.5"], 1, "the price of m is not known");
    // The provider is patient enough to be interrupted: it asks for a wait.
    let wait = ScriptedAnswer::document(429, "text/plain", "").header("retry-after", "100");
    check(vec![wait], &["--timeout", "1"], 4, "raise it with --timeout");
    let sleep = ScriptedAnswer::events(&[&bash("b", "sleep 500"), "[DONE]"]);
    check(vec![sleep], &["--timeout", "1", "--yes"], 4, "raise it with --timeout");

    let (stage, provider) = (Stage::new(), ScriptedProvider::start(steps()).unwrap());
    let config = json!({"provider": {"acme": {
        "options": {"baseURL": provider.url},
        "models": {"m": {"cost": {"input": 1.0, "output": 1.0}}},
    }}});
    stage.write("home/.config/helve/helve.json", &config.to_string());
    let output = stage.run(&["run", "--model", "acme/m", "--max-cost", "0.0025", "hello"]);
    assert_eq!(output.code, 4, "{output:?}");
    assert!(output.err.contains("raise it with --max-cost"), "{output:?}");
    assert_eq!(provider.requests().len(), 3);
}

/// Fails if a file below a folder contains the key.
fn assert_no_key_in_files(folder: &Path) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            assert_no_key_in_files(&path);
        } else if path.is_file() {
            let bytes = std::fs::read(&path).unwrap();
            let has_key = bytes.windows(KEY.len()).any(|window| window == KEY.as_bytes());
            assert!(!has_key, "{} contains the key", path.display());
        }
    }
}

#[test]
fn a_key_is_shown_nowhere() {
    let (first, second) = KEY.split_at(9);
    let echoed = ScriptedAnswer::events(&[
        &chunk(&json!({"reasoning_content": format!("The key is {KEY}.")}), None),
        &chunk(&json!({"content": format!("Your key is {first}")}), None),
        &chunk(&json!({"content": second}), None),
        &bash("c1", &format!("echo {KEY}; env; cat /proc/self/environ | tr '\\0' '\\n'")),
        "[DONE]",
    ]);
    // Everything that a command sees of the process list.
    let listed = ScriptedAnswer::events(&[
        &bash(&format!("id-{KEY}"), "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"),
        "[DONE]",
    ]);
    let failed =
        |status: u16, body: &str| ScriptedAnswer::document(status, "application/json", body);
    let error =
        json!({"error": {"message": format!("the key {KEY} is wrong"), "type": "x", "code": 401}})
            .to_string();
    for last in [
        failed(401, &error),
        failed(400, &format!("not JSON but {KEY}")),
        ScriptedAnswer::events(&[&error]),
        ScriptedAnswer::events(&[&format!("{KEY} is no event")]),
        ScriptedAnswer::document(200, "text/html", &format!("<title>{KEY}</title>")),
        failed(302, "").header("location", &format!("http://127.0.0.1:1/{KEY}")),
        ScriptedAnswer::stream(&[]).header("content-encoding", KEY),
    ] {
        let stage = Stage::new();
        let script = vec![echoed.clone(), listed.clone(), last];
        let provider = ScriptedProvider::start(script).unwrap();
        let output = run(&stage, &provider, &["--yes", "--json", "--stream", "what is my key?"]);
        assert_eq!(output.code, 1, "{output:?}");
        assert!(output.out.contains("\"text\":\"[redacted]\""), "{output:?}");
        let mut shown = format!("{}{}", output.out, output.err);
        let kinds =
            ["json", "markdown", "html"].map(|kind| vec!["sessions", "export", "--format", kind]);
        let others = [
            vec!["sessions"],
            vec!["--json", "sessions"],
            vec!["sessions", "show"],
            vec!["--json", "sessions", "show"],
            vec!["sessions", "search", "key"],
            vec!["history"],
            vec!["doctor"],
        ];
        for args in kinds.into_iter().chain(others) {
            let output = stage.run(&args);
            assert_eq!(output.code, 0, "{args:?} {output:?}");
            shown.push_str(&output.transcript());
        }
        assert!(!shown.contains(KEY), "{shown}");
        assert_no_key_in_files(&stage.path("home"));
        // The provider itself was asked with the key, and nothing else in the requests has it.
        let requests = provider.requests().iter().map(Value::to_string).collect::<String>();
        assert!(!requests.contains(KEY), "{requests}");
    }
}

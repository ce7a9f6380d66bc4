//! `helve run` at a terminal, against a scripted provider.

use helve_testkit::{ScriptedAnswer, ScriptedProvider};
use serde_json::{Value, json};

use crate::pty::at_terminal;
use crate::stage::Stage;

/// A reply of the chat protocol with text only.
fn says(text: &str) -> ScriptedAnswer {
    let chunk =
        json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": "stop"}]});
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 1200, "completion_tokens": 34}});
    ScriptedAnswer::events(&[&chunk.to_string(), &usage.to_string(), "[DONE]"])
}

/// A reply with one call.
fn calls(id: &str, tool: &str, arguments: Value) -> ScriptedAnswer {
    let delta = json!({"tool_calls": [{
        "index": 0, "id": id, "type": "function",
        "function": {"name": tool, "arguments": arguments.to_string()},
    }]});
    let chunk = json!({"choices": [{"index": 0, "delta": delta, "finish_reason": "tool_calls"}]});
    ScriptedAnswer::events(&[&chunk.to_string(), "[DONE]"])
}

fn writes(id: &str, text: &str) -> ScriptedAnswer {
    calls(id, "write", json!({"filePath": "new.txt", "content": text}))
}

/// Talks with a scripted model. Each step is the text to wait for, and the keys to type then. Returns what the terminal
/// showed, and the requests.
fn talk(
    stage: &Stage,
    script: Vec<ScriptedAnswer>,
    args: &[&str],
    steps: &[(&str, &str)],
) -> (String, Vec<Value>) {
    let provider = ScriptedProvider::start(script).unwrap();
    let mut all = vec!["run", "--base-url", &provider.url, "--model", "m"];
    all.extend(args);
    let shown = at_terminal(stage, &all, steps);
    // Printed by `at_terminal` if a text to wait for did not appear.
    assert!(!shown.contains("never shown"), "{shown}");
    (shown, provider.requests())
}

fn last_user_text(request: &Value) -> String {
    let messages = request["messages"].as_array().unwrap();
    let user = messages.iter().rfind(|message| message["role"] == "user").unwrap();
    user["content"].to_string()
}

#[test]
fn a_conversation_has_several_turns_and_commands() {
    let stage = Stage::new();
    let script = vec![says("First answer."), says("Second answer.")];
    let steps = [
        ("build · m", "hello\r"),
        ("34 out", "/nonsense\r"),
        ("no command /nonsense", "/context\r"),
        ("1 request", "two\\\rlines\r"),
        ("Second answer.", "/exit\r"),
    ];
    let (shown, requests) = talk(&stage, script, &[], &steps);
    assert!(shown.contains("1,200 tokens in, 34 out"), "{shown}");
    assert!(shown.ends_with("exit 0\n"), "{shown}");
    assert!(last_user_text(&requests[1]).contains(r"two\nlines"));
}

#[test]
fn a_question_is_answered_in_place_and_an_undo_takes_the_edit_back() {
    let stage = Stage::new();
    let script = vec![writes("c1", "one\n"), says("Written."), says("Again.")];
    let steps = [
        ("build · m", "write it\r"),
        ("with a note: ", "y"),
        ("Written.", "/undo\r"),
        ("taken back", "\u{3}"),
        ("Ctrl-C again", "\u{3}"),
    ];
    let (shown, _) = talk(&stage, script, &[], &steps);
    assert!(shown.contains("+one") && shown.contains("• write new.txt"), "{shown}");
    assert!(!stage.path("app/new.txt").exists(), "{shown}");
    assert!(shown.ends_with("exit 0\n"), "{shown}");
}

#[test]
fn shift_tab_accepts_edits_except_of_protected_files() {
    let stage = Stage::new();
    let protected = calls("c2", "write", json!({"filePath": "helve.json", "content": "{}"}));
    let script = vec![writes("c1", "one\n"), protected, says("Done.")];
    let steps = [
        ("build · m", "\u{1b}[Z"),
        ("accepts edits", "write both\r"),
        ("with a note: ", "n"),
        ("a call was refused", "\u{4}"),
    ];
    let (shown, _) = talk(&stage, script, &[], &steps);
    assert!(
        stage.path("app/new.txt").exists() && !stage.path("app/helve.json").exists(),
        "{shown}"
    );
    assert!(shown.contains("edit helve.json"), "{shown}");
}

#[test]
fn text_typed_during_a_turn_reaches_the_model() {
    let stage = Stage::new();
    let slow = calls("c1", "bash", json!({"command": "sleep 2"}));
    let steps = [("build · m", "wait\r"), ("sleep 2", "be quick\r"), ("Understood.", "\u{4}")];
    let (shown, requests) = talk(&stage, vec![slow, says("Understood.")], &[], &steps);
    assert!(last_user_text(&requests[1]).contains("be quick"), "{shown}");
}

#[test]
fn ctrl_c_aborts_the_turn_and_the_session_goes_on() {
    let stage = Stage::new();
    let slow = calls("c1", "bash", json!({"command": "sleep 60"}));
    let steps = [
        ("build · m", "wait\r"),
        ("sleep 60", "\u{3}"),
        ("aborted", "go on\r"),
        ("Back.", "\u{4}"),
    ];
    let (shown, requests) = talk(&stage, vec![slow, says("Back.")], &[], &steps);
    assert_eq!(requests.len(), 2, "{shown}");
    assert!(requests[1].to_string().contains("The user aborted the previous turn."));
}

#[test]
fn a_repeated_call_is_asked_about() {
    let stage = Stage::new();
    let again = |id| calls(id, "read", json!({"filePath": "README.md"}));
    let script = vec![again("c1"), again("c2"), again("c3"), says("Enough.")];
    let steps = [("build · m", "loop\r"), ("doom_loop read", "y"), ("Enough.", "\u{4}")];
    let (shown, requests) = talk(&stage, script, &[], &steps);
    assert_eq!(requests.len(), 4, "{shown}");
}

#[test]
fn the_first_run_asks_about_trust() {
    let stage = Stage::new();
    stage.write("app/AGENTS.md", "Use tabs.\n");
    let (shown, requests) = talk(
        &stage,
        vec![says("One."), says("Two.")],
        &["hello"],
        &[("instructions for the model in AGENTS.md", ""), ("trusts it later): ", "n")],
    );
    assert!(shown.contains("is not trusted yet"), "{shown}");
    assert!(!requests[0].to_string().contains("Use tabs."));
    // The answer counts until something changes.
    let (shown, _) = talk(&stage, vec![says("One.")], &["hello"], &[]);
    assert!(!shown.contains("Trusting it would enable"), "{shown}");
    stage.write("app/helve.json", r#"{"permission": {"bash": "allow"}}"#);
    let steps = [("permission.bash.\"*\" = allow", ""), ("trusts it later): ", "y")];
    let (_, requests) = talk(&stage, vec![says("One.")], &["hello"], &steps);
    assert!(requests[0].to_string().contains("Instructions from: AGENTS.md\\nUse tabs."));
    let (shown, _) = talk(&stage, vec![says("One.")], &["hello"], &[]);
    assert!(!shown.contains("not trusted"), "{shown}");
}

#[test]
fn a_continued_session_shows_where_it_ended() {
    let stage = Stage::new();
    let steps = [("build · m", "what now?\r"), ("First answer.", "\u{4}")];
    talk(&stage, vec![says("First answer.")], &[], &steps);
    let (shown, _) = talk(&stage, vec![says("x")], &["-c"], &[("build · m", "/exit\r")]);
    let (before, _) = shown.split_once("build · m").unwrap();
    assert!(before.contains("› what now?") && before.contains("First answer."), "{shown}");
}

#[test]
fn ctrl_c_ends_a_run_started_with_a_prompt_argument() {
    let stage = Stage::new();
    let slow = calls("c1", "bash", json!({"command": "sleep 60"}));
    let (shown, requests) = talk(&stage, vec![slow], &["wait"], &[("sleep 60", "\u{3}")]);
    assert!(shown.contains("aborted") && shown.ends_with("exit 130\n"), "{shown}");
    assert_eq!(requests.len(), 1);
}

#[test]
fn questions_of_a_run_started_with_a_prompt_argument_are_answered_in_place() {
    let stage = Stage::new();
    let script = vec![writes("c1", "one\n"), says("Written.")];
    let (shown, _) = talk(&stage, script, &["write it"], &[("with a note: ", "y")]);
    assert!(shown.ends_with("exit 0\n") && stage.path("app/new.txt").exists(), "{shown}");
    assert_eq!(shown.matches("+one").count(), 1, "the diff is shown once: {shown}");
}

#[test]
fn files_are_completed_and_attached() {
    let stage = Stage::new();
    stage.write("app/.ignore", "hidden.txt\n");
    stage.write("app/hidden.txt", "x\n");
    let steps = [("build · m", "see @src/ma\t"), ("main.rs", "\r"), ("Seen.", "\u{4}")];
    let (shown, requests) = talk(&stage, vec![says("Seen.")], &[], &steps);
    assert!(last_user_text(&requests[0]).contains("fn main() {}"), "{shown}");
    let steps = [("build · m", "see @hidd\t?"), ("@hidd?", "\u{3}"), ("Ctrl-C again", "\u{3}")];
    talk(&stage, vec![says("x")], &[], &steps);
}

#[test]
fn models_and_sessions_can_be_changed() {
    let stage = Stage::new();
    let steps = [
        ("build · m", "one\r"),
        ("First.", "/model other\r"),
        ("build · other", "/agent plan\r"),
        ("plan · other", "two\r"),
        ("Second.", "/new\r"),
        ("session run-", "/sessions\r"),
        ("  one", "/sessions nothing\r"),
        ("no session nothing", "/agent nobody\r"),
        ("nobody", "\u{4}"),
    ];
    let (shown, requests) = talk(&stage, vec![says("First."), says("Second.")], &[], &steps);
    assert_eq!(requests[0]["model"], "m");
    assert_eq!(requests[1]["model"], "other", "{shown}");
}

#[test]
fn a_commands_model_and_agent_apply_only_to_its_turn() {
    let stage = Stage::new();
    let commands = json!({"command": {
        "other": {"template": "OTHER $1", "model": "n", "agent": "plan"},
        "look": {"template": "LOOK $1", "subtask": true},
    }});
    stage.write("home/.config/helve/helve.json", &commands.to_string());
    let script = vec![says("First."), says("Second."), says("Found."), says("Third.")];
    let steps = [
        ("build · m", "/other x\r"),
        ("First.", ""),
        ("build · m", "again\r"),
        ("Second.", "/look y\r"),
        ("Third.", "\u{4}"),
    ];
    let (shown, requests) = talk(&stage, script, &[], &steps);
    let models: Vec<&Value> = requests.iter().map(|request| &request["model"]).collect();
    assert_eq!(models, ["n", "m", "m", "m"], "{shown}");
    assert!(requests[0].to_string().contains("OTHER x"));
    assert!(requests[0].to_string().contains("plan_exit"), "the agent is plan: {shown}");
    // The sub-agent has a conversation of its own, and the model gets its report.
    assert!(last_user_text(&requests[2]).contains("LOOK y"), "{shown}");
    assert!(!requests[2].to_string().contains("OTHER x"));
    assert!(last_user_text(&requests[3]).contains("Found."), "{shown}");
}

#[test]
fn calls_that_wait_at_the_same_time_are_asked_about_together() {
    let stage = Stage::new();
    stage.write("other/a.txt", "AAA\n");
    stage.write("other/b.txt", "BBB\n");
    let read = |name: &str| {
        let path = stage.path(&format!("other/{name}")).display().to_string();
        json!({"tool": "read", "parameters": {"filePath": path}})
    };
    let batch = || calls("c1", "batch", json!({"tool_calls": [read("a.txt"), read("b.txt")]}));
    for (keys, title, count) in [
        (&[("2 calls are waiting for permission:", ""), ("[n] none: ", "y")][..], "2 calls ", 2),
        // A no ends the turn.
        (
            &[("[n] none: ", "o"), ("with a note: ", "y"), ("with a note: ", "n")][..],
            "2 calls, 1 failed",
            1,
        ),
        (&[("[n] none: ", "n")][..], "2 calls, 2 failed", 1),
    ] {
        let (shown, requests) = talk(&stage, vec![batch(), says("Done.")], &["go"], keys);
        assert!(shown.contains(&format!("• batch {title}")), "{shown}");
        assert_eq!(requests.len(), count, "{shown}");
        let last = requests[count - 1].to_string();
        assert_eq!(last.contains("AAA") && last.contains("BBB"), count == 2, "{shown}");
    }
}

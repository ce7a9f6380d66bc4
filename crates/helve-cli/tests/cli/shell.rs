//! `bash` and `process` through the program: nothing hangs, nothing is left behind, everything is reported.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

use crate::mcp::McpClient;
use crate::stage::{RunOutput, Stage};

/// Far more than any command here takes, and far less than a hang.
const LIMIT: Duration = Duration::from_secs(20);

/// `helve call bash` with everything allowed.
fn bash(stage: &Stage, command: &str, extra_args: &[&str]) -> RunOutput {
    let command = format!("command={command}");
    let mut args = vec!["--yes", "call", "bash", &command];
    args.extend(extra_args);
    let start = Instant::now();
    let output = stage.run(&args);
    assert!(start.elapsed() < LIMIT, "{command} took {:?}", start.elapsed());
    output
}

pub(crate) fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().next());
    state.is_some_and(|state| state != "Z" && state != "X")
}

pub(crate) fn wait_until(what: &str, is_true: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_true() {
        assert!(start.elapsed() < LIMIT, "timed out waiting for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_small_limit_shows_that_many_lines() {
    let stage = Stage::new();
    stage.write("home/.config/helve/helve.json", r#"{"tool_output": {"max_lines": 6}}"#);
    let output = bash(&stage, "seq 100", &[]).out;
    let numbers: Vec<&str> = output.lines().filter(|line| line.parse::<u8>().is_ok()).collect();
    assert_eq!(numbers, ["1", "2", "3", "98", "99", "100"], "{output}");
    assert!(output.contains("94 lines") && output.contains("[exit code 0"), "{output}");
}

/// Returns the number after `pid ` in an answer.
fn pid_in(text: &str) -> String {
    let after = text.split("pid ").nth(1).unwrap_or_else(|| panic!("no pid in {text}"));
    after.chars().take_while(char::is_ascii_digit).collect()
}

/// Returns the handle after `as ` in an answer.
fn handle_in(text: &str) -> String {
    let after = text.split(" as ").nth(1).unwrap_or_else(|| panic!("no handle in {text}"));
    after.chars().take_while(char::is_ascii_alphanumeric).collect()
}

#[test]
fn a_background_child_does_not_block_a_call() {
    let stage = Stage::new();
    let mut client = McpClient::start(&stage, &["--yes"]);
    let start = Instant::now();
    let (failed, text) = client.call("bash", json!({"command": "sleep 300 & echo hi"}));
    assert!(start.elapsed() < LIMIT);
    assert!(!failed && text.starts_with("hi\n\n[exit code 0, "), "{text}");
    let (pid, handle) = (pid_in(&text), handle_in(&text));
    assert!(is_alive(&pid));
    let (_, listed) = client.call("process", json!({"action": "list"}));
    assert!(listed.contains(&handle) && listed.contains("sleep 300"), "{listed}");
    let (failed, text) = client.call("process", json!({"action": "kill", "id": handle}));
    assert!(!failed && text.contains("none is left"), "{text}");
    assert!(!is_alive(&pid));
}

#[test]
fn commands_that_wait_for_input_do_not_hang() {
    let stage = Stage::new();
    stage.run(&["--yes", "call", "bash", "command=git init -q ."]);
    for (command, expected) in [
        ("cat", "standard input is closed"),
        ("python3", "standard input is closed"),
        ("bash", "standard input is closed"),
        ("read answer; echo \"got [$answer]\"", "got []"),
        ("read answer", "nobody can answer"),
        ("bash -i; exit 3", "nobody can answer"),
        ("python3 -c 'input(\"name? \")'", "nobody can answer"),
        ("git -c user.name=x -c user.email=x@x commit --allow-empty", "no editor can be opened"),
        ("git log", "exit code"),
    ] {
        let output = bash(&stage, command, &[]);
        assert!(output.out.contains(expected), "{command}: {output:?}");
    }
}

#[test]
fn a_command_that_reads_the_keyboard_through_stdout_or_stderr_is_ended_unless_it_is_busy() {
    let stage = Stage::new();
    // As vim does when its input is not a terminal.
    for command in ["exec sleep 300 0>&2", "sleep 300 0>&2", "sleep 300 0>&1 | cat"] {
        let output = bash(&stage, command, &[]);
        assert!(
            output.out.contains("sleep 300 waited for keyboard input"),
            "{command}: {output:?}"
        );
    }
    for command in [
        "for n in 1 2 3 4; do sleep 0.5; echo $n; done 0>&2; echo did it",
        "sleep 300 0>&2 & timeout 2 sh -c 'while :; do :; done'; echo did it",
    ] {
        let output = bash(&stage, command, &[]);
        assert!(output.out.contains("did it"), "{command}: {output:?}");
    }
}

#[test]
fn a_timeout_ends_everything_and_is_reported() {
    let stage = Stage::new();
    let script = "trap '' TERM; (setsid sleep 300 & echo $! > pid); echo started; sleep 300";
    let output = bash(&stage, script, &["timeout:=500"]);
    assert!(
        output.out.contains("started") && output.out.contains("timeout of 500 ms"),
        "{output:?}"
    );
    let pid = std::fs::read_to_string(stage.path("app/pid")).unwrap();
    assert!(!is_alive(pid.trim()));
}

#[test]
fn invalid_timeouts_are_refused_or_clamped() {
    let stage = Stage::new();
    for timeout in ["0", "-1", "\"soon\"", "1.5", "1e18", "NaN", "Infinity"] {
        let output = bash(&stage, "echo ran", &[&format!("timeout:={timeout}")]);
        assert!(output.code == 2 && !output.out.contains("ran"), "{timeout}: {output:?}");
    }
    let output = bash(&stage, "echo ran", &["timeout:=1000000000000000000"]);
    assert!(output.out.contains("ran"), "{output:?}");
}

#[test]
fn one_shot_calls_end_leftovers_except_background_commands() {
    let stage = Stage::new();
    let output = bash(&stage, "sleep 300 & echo hi", &[]);
    assert!(output.out.contains("ended with this call"), "{output:?}");
    assert!(!is_alive(&pid_in(&output.out)));
    let output = bash(&stage, "echo started; exec sleep 300", &["run_in_background:=true"]);
    let handle = handle_in(&output.out);
    let listed = stage.run(&["--yes", "call", "process", "action=list"]);
    assert!(listed.out.contains(&handle) && listed.out.contains("running"), "{listed:?}");
    let id = format!("id={handle}");
    let read = stage.run(&["--yes", "call", "process", "action=wait", "text=started", &id]);
    assert!(read.out.starts_with("started"), "{read:?}");
    let control = |args: &[&str]| {
        let output = stage.run(&[&["--yes", "call", "process", &id], args].concat());
        format!("{}{}", output.out, output.err)
    };
    for (args, expected) in [
        (&["action=signal", "signal=STOP"][..], "Sent STOP to"),
        (&["action=signal"], "Action \"signal\" needs signal: INT, TERM"),
        (&["action=write", "input=x"], "has no terminal, so it takes no input"),
        (&["action=write"], "Action \"write\" needs input: what to type"),
        (&["action=kill"], "none is left"),
        (&["action=kill"], "has ended, so nothing was done"),
    ] {
        assert!(control(args).contains(expected), "{args:?}: {}", control(args));
    }
}

#[test]
fn killing_helve_leaves_no_orphans() {
    let stage = Stage::new();
    let mut client = McpClient::start(&stage, &["--yes"]);
    let script = "sleep 300 & (setsid nohup sleep 300 >/dev/null 2>&1 & echo pid $!); wait";
    let call = json!({"name": "bash", "arguments": {"command": script, "run_in_background": true}});
    let text = client.request("tools/call", call).to_string();
    let pid = pid_in(&text);
    assert!(is_alive(&pid));
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    wait_until("the end of the orphan", || !is_alive(&pid));
}

#[test]
fn an_abort_ends_the_process_tree() {
    let stage = Stage::new();
    let mut client = McpClient::start(&stage, &["--yes"]);
    let script = "(setsid sleep 300 & echo $! > pid.new && mv pid.new pid); sleep 300";
    let call = json!({"name": "bash", "arguments": {"command": script}});
    client.send(json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": call}));
    let path = stage.path("app/pid");
    wait_until("the command", || path.exists());
    let pid = std::fs::read_to_string(&path).unwrap();
    client.send(json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}
    }));
    wait_until("the end of the tree", || !is_alive(pid.trim()));
    assert!(!client.call("bash", json!({"command": "true"})).0);
}

#[test]
fn an_abort_at_any_moment_leaves_no_processes() {
    let stage = Stage::new();
    let mut client = McpClient::start(&stage, &["--yes"]);
    let script = "echo $$ >> pids; (setsid sleep 300 & echo $! >> pids); seq 20000; exec sleep 300";
    for delay in (0..160).step_by(4) {
        let call = json!({"name": "bash", "arguments": {"command": script}});
        let id = format!("call {delay}");
        client.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": call}));
        // Each call is aborted at a different moment.
        std::thread::sleep(Duration::from_millis(delay));
        client.send(json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}
        }));
    }
    assert!(!client.call("bash", json!({"command": "echo last >> pids"})).0);
    let pids = || std::fs::read_to_string(stage.path("app/pids")).unwrap_or_default();
    wait_until("the end of all", || !pids().lines().any(is_alive));
    assert!(pids().lines().count() > 1, "no command started");
    let (_, listed) = client.call("process", json!({"action": "list"}));
    assert!(!listed.contains("running"), "{listed}");
}

#[test]
fn a_thousand_concurrent_calls_succeed_and_leak_no_descriptors() {
    let stage = Stage::new();
    let mut client = McpClient::start(&stage, &["--yes"]);
    client.call("bash", json!({"command": "true"}));
    let files = format!("/proc/{}/fd", client.child.id());
    // Helve's own records are opened once, when the first command takes long.
    let records = stage.path("home/.local/share/helve");
    let is_record = |entry: &std::fs::DirEntry| {
        std::fs::read_link(entry.path()).is_ok_and(|target| target.starts_with(&records))
    };
    let count_open = || {
        let all = std::fs::read_dir(&files).unwrap();
        all.filter_map(Result::ok).filter(|entry| !is_record(entry)).count()
    };
    // A few wardens are kept. A descriptor leaked per call would be far more.
    let limit = count_open() + 4;
    let calls = [
        ("bash", json!({"command": "echo hello"})),
        ("read", json!({"filePath": "README.md"})),
        ("grep", json!({"pattern": "Hello"})),
        ("glob", json!({"pattern": "**/*.rs"})),
        ("list", json!({})),
    ];
    let requests = (0..1000).map(|n| {
        let (name, arguments) = &calls[n % calls.len()];
        ("tools/call", json!({"name": name, "arguments": arguments}))
    });
    // A connection accepts 256 requests at once.
    for chunk in requests.collect::<Vec<_>>().chunks(250) {
        for answer in client.requests(chunk.to_vec()) {
            assert_ne!(answer["isError"], true, "{answer}");
        }
    }
    wait_until("the number of open files to fall back to what it was", || count_open() <= limit);
}

#[test]
fn a_program_ends_when_all_helve_processes_are_killed_at_once() {
    let stage = Stage::new();
    let mut client = McpClient::start(&stage, &["--yes"]);
    let command = "echo $$ $PPID $(ps -o ppid= -p $PPID); exec sleep 300";
    let (_, text) = client.call("bash", json!({"command": command, "run_in_background": true}));
    let id = handle_in(&text);
    let wait = json!({"action": "wait", "id": id, "text": "\n", "timeout": 20000});
    let (_, text) = client.call("process", wait);
    let pids: Vec<&str> = text.lines().next().unwrap().split_whitespace().collect();
    let [program, warden, keeper] = pids[..] else { panic!("{text}") };
    let helve = client.child.id().to_string();
    let killed = Command::new("kill").args(["-KILL", keeper, warden, &helve]).status();
    assert!(killed.unwrap().success());
    wait_until("the end of the program", || !is_alive(program));
}

#[test]
fn all_output_of_a_program_can_be_read_in_pieces() {
    let stage = Stage::new();
    let mut client = McpClient::start(&stage, &["--yes"]);
    let command = "seq 1 20000; echo end; sleep 300";
    let (_, text) = client.call("bash", json!({"command": command, "run_in_background": true}));
    let id = handle_in(&text);
    let (_, waited) = client
        .call("process", json!({"action": "wait", "id": id, "text": "end", "timeout": 20000}));
    assert!(waited.starts_with('[') && waited.contains("\n20000\nend\n\n["), "{waited}");
    assert!(waited.ends_with("[the text end appeared]"), "{waited}");
    let (mut all, mut cursor) = (String::new(), 0);
    while cursor < 108_898 {
        let read = json!({"action": "read", "id": id, "cursor": cursor});
        let (failed, text) = client.call("process", read);
        let (output, rest) = text.rsplit_once("\n\n[").unwrap();
        assert!(!failed && !output.contains("omitted"), "{text}");
        all.push_str(output);
        all.push('\n');
        let next = rest.split("next cursor ").nth(1).unwrap();
        let next: String = next.chars().take_while(char::is_ascii_digit).collect();
        let next = next.parse().unwrap();
        assert!(next > cursor, "{text}");
        cursor = next;
    }
    let expected: String = (1..=20_000).map(|n| format!("{n}\n")).collect();
    assert_eq!(all, expected + "end\n");
}

#[test]
fn shells_that_cannot_be_judged_are_replaced_by_bash() {
    let stage = Stage::new();
    let run_with = |shell: &str| {
        stage.write("home/.config/helve/helve.json", &format!("{{\"shell\": \"{shell}\"}}"));
        bash(&stage, "echo ran $((1 + 1))", &[])
    };
    assert!(run_with("sh").out.starts_with("ran 2"));
    for unreadable in ["fish", "nu", "pwsh"] {
        let output = run_with(unreadable);
        assert!(
            output.out.starts_with("ran 2") && output.err.contains("1 warning"),
            "{unreadable}: {output:?}"
        );
    }
    let output = run_with("zsh");
    assert!(
        output.out.starts_with("ran 2") || output.err.contains("zsh is not installed"),
        "{output:?}"
    );
}

#[test]
fn a_missing_workspace_is_reported() {
    let stage = Stage::new();
    let mut client = McpClient::start(&stage, &["--yes"]);
    std::fs::rename(stage.path("app"), stage.path("moved")).unwrap();
    let (failed, text) = client.call("bash", json!({"command": "echo ran"}));
    assert!(failed && text.contains("does not exist"), "{text}");
    std::fs::rename(stage.path("moved"), stage.path("app")).unwrap();
    assert!(client.call("bash", json!({"command": "echo ran"})).1.starts_with("ran"));
}

#[test]
fn secrets_in_the_environment_are_redacted() {
    let stage = Stage::new();
    let mut command = stage.command();
    command.env("SERVICE_TOKEN", "swordfish-and-more").env("PAGE", "swordfish-two");
    command.args(["--yes", "call", "bash", "command=echo $SERVICE_TOKEN $PAGE"]);
    let output = stage.finish(&mut command);
    assert!(output.out.contains("[redacted] swordfish-two"), "{output:?}");
    assert!(!output.out.contains("swordfish-and-more"), "{output:?}");
    // Secrets are also redacted in names of processes.
    let mut command = stage.command();
    command.env("SERVICE_TOKEN", "swordfish-and-more");
    let script = "command=bash -c 'exec -a \"serve-$SERVICE_TOKEN\" sleep 300' & sleep 0.3";
    let output = stage.finish(command.args(["--yes", "call", "bash", script]));
    assert!(output.out.contains("serve-[redacted] 300"), "{output:?}");
    assert!(!output.out.contains("swordfish"), "{output:?}");
}

#[test]
fn a_missing_shell_and_a_missing_folder_are_reported() {
    let stage = Stage::new();
    let mut command = stage.command();
    command.env("PATH", stage.path("home")).args(["--yes", "call", "bash", "command=true"]);
    let output = stage.finish(command.stderr(Stdio::piped()));
    assert!(output.err.contains("bash is not installed"), "{output:?}");
    let output = bash(&stage, "true", &["workdir=gone"]);
    assert!(output.err.contains("does not exist"), "{output:?}");
}

#[test]
fn a_program_at_a_terminal_accepts_input() {
    let stage = Stage::new();
    let mut client = McpClient::start(&stage, &["--yes"]);
    let script = "read -p 'name? ' name; echo \"hello $name\"";
    let (_, text) = client.call("bash", json!({"command": script, "terminal": true}));
    let handle = handle_in(&text);
    let wait = json!({"action": "wait", "id": handle, "text": "name?"});
    assert!(client.call("process", wait).1.contains("appeared"));
    client.call("process", json!({"action": "write", "id": handle, "input": "world\n"}));
    let wait = json!({"action": "wait", "id": handle, "text": "hello world"});
    let (_, text) = client.call("process", wait);
    assert!(text.contains("appeared"), "{text}");
}

#[test]
fn the_exit_code_of_a_command_can_be_passed_on() {
    let stage = Stage::new();
    for (command, expected) in [("exit 7", 7), ("true", 0), ("kill -9 $$", 1)] {
        assert_eq!(bash(&stage, command, &[]).code, 0, "{command}");
        assert_eq!(bash(&stage, command, &["--exit-code"]).code, expected, "{command}");
    }
}

#[test]
fn a_denied_tool_is_refused_by_name() {
    let stage = Stage::new();
    stage.write("home/.config/helve/helve.json", r#"{"permission": {"bash": "deny"}}"#);
    let output = bash(&stage, "true", &[]);
    assert_eq!(output.code, 3, "{}", output.err);
    assert!(
        output.err.starts_with("error: The tool \"bash\" is denied by a rule"),
        "{}",
        output.err
    );
}

//! Questions at a terminal: Python types the answers through a real pty.

use std::process::Command;

use expect_test::{Expect, expect};

use crate::stage::Stage;

/// A Python script that runs a command in a pty. It types the first key after the question, and the other keys after
/// the request for a note. It prints what the terminal showed, then the exit code.
const TYPE_KEYS: &str = r#"
import os, pty, select, sys
keys, argv = sys.argv[1], sys.argv[2:]
pid, fd = pty.fork()
if pid == 0:
    os.execv(argv[0], argv)
shown, typed = b"", 0
while True:
    ready, _, _ = select.select([fd], [], [], 30)
    if not ready:
        break
    try:
        data = os.read(fd, 65536)
    except OSError:
        break
    if not data:
        break
    shown += data
    if typed == 0 and (b"with a note: " in shown or b"[n] no: " in shown):
        os.write(fd, keys[:1].encode())
        typed = 1
    if typed == 1 and len(keys) > 1 and b"for the model: " in shown:
        os.write(fd, (keys[1:] + "\n").encode())
        typed = 2
_, status = os.waitpid(pid, 0)
sys.stdout.write(shown.decode(errors="replace").replace("\r\n", "\n"))
print("exit", os.waitstatus_to_exitcode(status))
"#;

fn answer_question(stage: &Stage, keys: &str) -> String {
    answer(stage, keys, &["call", "read", "filePath=.env"])
}

/// Runs Helve at a terminal, types the keys, and returns what was shown.
fn answer(stage: &Stage, keys: &str, args: &[&str]) -> String {
    let mut command = Command::new("python3");
    command.args(["-c", TYPE_KEYS, keys, env!("CARGO_BIN_EXE_helve")]).args(args);
    let mut command = stage.isolated(command);
    stage.finish(command.env("TERM", "dumb").env("NO_COLOR", "1")).out
}

fn check(keys: &str, expected: Expect) {
    expected.assert_eq(&answer_question(&Stage::new(), keys));
}

#[test]
fn a_single_key_answers() {
    check(
        "y",
        expect![[r#"

            Allow this?
              read .env (built-in rule read "*.env": ask)
            [y] once  [s] this session  [p] this project  [e] everywhere  [n] no  [w] no, with a note: yes, once
            <file>
            00001| TOKEN=12345678

            (End of file, 1 line)
            </file>
            exit 0
        "#]],
    );
    check(
        "n",
        expect![[r#"

            Allow this?
              read .env (built-in rule read "*.env": ask)
            [y] once  [s] this session  [p] this project  [e] everywhere  [n] no  [w] no, with a note: no
            error: You rejected this call.
            exit 3
        "#]],
    );
}

#[test]
fn trust_shows_what_it_enables_and_asks() {
    let stage = Stage::new();
    stage.write("app/opencode.json", r#"{"permission": {"edit": "allow"}}"#);
    let declined = answer(&stage, "n", &["trust"]);
    assert!(declined.contains("Trusting it would enable:"), "{declined}");
    assert!(
        declined.contains("permission.edit") && declined.contains("Nothing changed."),
        "{declined}"
    );
    let accepted = answer(&stage, "y", &["trust"]);
    assert!(accepted.contains("is now trusted"), "{accepted}");
}

#[test]
fn ctrl_c_interrupts() {
    let shown = answer_question(&Stage::new(), "\u{3}");
    assert!(shown.ends_with("exit 130\n"), "{shown}");
    assert!(!shown.contains("TOKEN"), "{shown}");
}

#[test]
fn a_note_reaches_the_model() {
    let shown = answer_question(&Stage::new(), "wnot that one");
    assert!(shown.contains("The user rejected this call: not that one"), "{shown}");
}

#[test]
fn a_lasting_yes_is_remembered() {
    let stage = Stage::new();
    assert!(answer_question(&stage, "p").contains("yes, for this project"));
    let again = answer_question(&stage, "n");
    assert!(!again.contains("Allow this?") && again.contains("TOKEN"), "{again}");
    // The approval covers only that file.
    stage.write("app/other.env", "X=1\n");
    assert_eq!(stage.run(&["call", "read", "filePath=other.env"]).code, 3);
}

#[test]
fn approvals_are_listed_and_withdrawn() {
    let stage = Stage::new();
    let approvals = |args: &[&str]| {
        let output = stage.run(&[&["approvals"], args].concat());
        let shown = output.out.replace(stage.root().to_str().unwrap(), "ROOT");
        let end = shown.rfind("  ").filter(|_| shown.ends_with(" ago\n")).unwrap_or(shown.len());
        format!("{}{} exit {}", &shown[..end], output.err, output.code)
    };
    assert!(approvals(&[]).starts_with("There are no lasting approvals."));
    assert!(answer_question(&stage, "s").contains("yes, for this session"));
    assert_eq!(approvals(&[]), "1  allow read .env  in this session exit 0");
    assert_eq!(
        approvals(&["revoke", "1", "7"]),
        "error: There is no approval 7. Nothing was withdrawn; `helve approvals` lists all.\n exit 1"
    );
    assert_eq!(approvals(&["revoke", "1"]), "Withdrew 1 approval.\n exit 0");
    assert!(answer_question(&stage, "p").contains("yes, for this project"));
    assert_eq!(approvals(&["list"]), "1  allow read .env  in this project exit 0");
    assert_eq!(approvals(&["revoke", "--all"]), "Withdrew 1 approval.\n exit 0");
    assert!(answer_question(&stage, "n").contains("Allow this?"));
}

#[test]
fn the_session_of_a_folder_can_be_ended() {
    let stage = Stage::new();
    assert!(answer_question(&stage, "s").contains("yes, for this session"));
    let ended = stage.run(&["approvals", "revoke", "--end-session"]);
    assert_eq!(ended.out, "Ended the session of this folder; 1 of its approvals was withdrawn.\n");
    assert!(answer_question(&stage, "n").contains("Allow this?"));
}

//! Recognizes from their output commands that failed because nobody could answer their prompt.

use helve_core::process::{ProcessOutput, ProcessState};

/// The number of last lines searched for a message.
const LAST_LINES: usize = 8;
/// Maximum length of a message. Longer lines are not searched.
const MAX_LINE_BYTES: usize = 500;

/// Lowercase phrases that programs print when they get no terminal, editor, password or answer.
const PHRASES: [&str; 24] = [
    "not a terminal",
    "not a tty",
    "not from a terminal",
    "connected to a terminal",
    "requires a terminal",
    "terminal is required",
    "failed tty get",
    "/dev/tty",
    "no tty present",
    "inappropriate ioctl for device",
    "eof when reading",
    "eoferror",
    "no editor can be opened here",
    "password is required",
    "no password was provided",
    "password:",
    "passphrase",
    "authentication token manipulation error",
    "could not read username",
    "could not read password",
    "host key verification failed",
    "[y/n]",
    "(y/n)",
    "(yes/no",
];

/// Which kind of input a command seems to have been missing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingInput {
    /// The command succeeded without output. Programs without arguments often read standard input, which is closed.
    ClosedStdin,
    /// The command failed after it asked for input.
    Unanswered,
}

/// Returns which kind of input a command that ended seems to have been missing, or `None` if nothing suggests that any
/// was.
pub(crate) fn missing_input(
    command: &str,
    state: ProcessState,
    output: &ProcessOutput,
) -> Option<MissingInput> {
    match state {
        ProcessState::Exited(0) if output.bytes == 0 && is_bare_program(command) => {
            Some(MissingInput::ClosedStdin)
        }
        ProcessState::Exited(0)
        | ProcessState::Running
        | ProcessState::Killed(_)
        | ProcessState::Lost => None,
        ProcessState::Exited(_) => {
            asked_for_input(command, output).then_some(MissingInput::Unanswered)
        }
    }
}

/// Whether the command is one program without arguments.
fn is_bare_program(command: &str) -> bool {
    let is_name = |character: char| character.is_alphanumeric() || "-_./".contains(character);
    let command = command.trim();
    command != "true" && command.chars().all(is_name)
}

fn asked_for_input(command: &str, output: &ProcessOutput) -> bool {
    if output.bytes == 0 {
        return command.split_whitespace().any(|word| word == "read");
    }
    let end = if output.tail.is_empty() { &output.head } else { &output.tail };
    let end = String::from_utf8_lossy(end);
    let is_prompt = |line: &str| [": ", "? ", "> ", ") "].iter().any(|mark| line.ends_with(mark));
    let mut last = end.lines().rev().take(LAST_LINES).filter(|line| line.len() <= MAX_LINE_BYTES);
    last.any(|line| is_message(&line.to_ascii_lowercase()))
        || end.rsplit('\n').next().is_some_and(is_prompt)
}

fn is_message(line: &str) -> bool {
    let by_ssh = line.contains("permission denied (")
        && (line.contains("password") || line.contains("keyboard-interactive"));
    by_ssh || PHRASES.iter().any(|phrase| line.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, code: i32, printed: &str, expected: Option<MissingInput>) {
        let output = ProcessOutput {
            head: printed.as_bytes().to_vec().into(),
            left_out: 0,
            tail: Default::default(),
            lines: 0,
            bytes: printed.len() as u64,
            spooled: None,
            redacted: 0,
        };
        assert_eq!(
            missing_input(command, ProcessState::Exited(code), &output),
            expected,
            "{command}"
        );
    }

    #[test]
    fn unanswered_questions_are_recognized() {
        let unanswered = Some(MissingInput::Unanswered);
        for printed in [
            "top: failed tty get\n",
            "Standard input is not a terminal\n",
            "sudo: a terminal is required to read the password; either use …\nsudo: a password is required\n",
            "New password: Password change has been aborted.\npasswd: Authentication token manipulation error\n",
            "See `npm help init`.\n\nPress ^C at any time to quit.\npackage name: (app) ",
            "gpg: cannot open '/dev/tty': No such device or address\n",
            "Traceback (most recent call last):\n  File \"<string>\", line 1\nEOFError: EOF when reading a line\n",
            "Do you want to continue? [Y/n] Abort.\n",
            "Host key verification failed.\n",
            "me@host: Permission denied (publickey,password).\n",
            "fatal: could not read Username for 'https://host': terminal prompts disabled\n",
        ] {
            check("program with arguments", 1, printed, unanswered);
            check("program with arguments", 0, printed, None);
        }
        check("read x", 1, "", unanswered);
        check("cat", 0, "", Some(MissingInput::ClosedStdin));
    }

    #[test]
    fn ordinary_failures_are_not_questions() {
        for printed in [
            "",
            "error: no such file\n",
            "git@host: Permission denied (publickey).\n",
            "FAILED (errors=1)\n",
        ] {
            check("make test", 2, printed, None);
        }
        check("grep x y", 1, "", None);
        let long_ago = format!("Password:\n{}", "more\n".repeat(20));
        check("deploy now", 1, &long_ago, None);
    }
}

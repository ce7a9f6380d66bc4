//! Whether a command came to nothing for want of somebody who answers, told by what it said.

use helve_core::process::{Output, State};

/// The last lines, where a program says why it gives up.
const LAST_LINES: usize = 8;
/// Longer lines are no messages.
const LONGEST_LINE: usize = 500;

/// What programs say when they find no terminal, no editor, no password or no answer.
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

/// A sentence where a command that ended seems to have missed its input.
pub(super) fn missed(command: &str, state: State, output: &Output) -> Option<String> {
    match state {
        State::Exited(0) if output.bytes == 0 && is_one_word(command) => {
            Some("standard input is closed: a program that waits for input finds its end at once".into())
        }
        State::Exited(0) | State::Running | State::Killed(_) | State::Lost => None,
        State::Exited(_) => is_asking(command, output).then(|| {
            "it seems to have asked for input, and there is nobody to answer: give the answer with an option or through a pipe, or set terminal: true and type with the process tool".into()
        }),
    }
}

/// A program that was given nothing to work on.
fn is_one_word(command: &str) -> bool {
    let is_named_by = |character: char| character.is_alphanumeric() || "-_./".contains(character);
    let command = command.trim();
    command != "true" && command.chars().all(is_named_by)
}

fn is_asking(command: &str, output: &Output) -> bool {
    if output.bytes == 0 {
        return command.split_whitespace().any(|word| word == "read");
    }
    let end = if output.tail.is_empty() { &output.head } else { &output.tail };
    let end = String::from_utf8_lossy(end);
    let is_prompt = |line: &str| [": ", "? ", "> ", ") "].iter().any(|mark| line.ends_with(mark));
    let last = end.lines().rev().take(LAST_LINES).filter(|line| line.len() <= LONGEST_LINE);
    let told = last.map(str::to_ascii_lowercase).any(|line| is_told(&line));
    told || end.rsplit('\n').next().is_some_and(is_prompt)
}

fn is_told(line: &str) -> bool {
    let by_ssh = line.contains("permission denied (")
        && (line.contains("password") || line.contains("keyboard-interactive"));
    by_ssh || PHRASES.iter().any(|phrase| line.contains(phrase))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(command: &str, code: i32, said: &str, expected: Option<&str>) {
        let output = Output {
            head: said.as_bytes().to_vec().into(),
            left_out: 0,
            tail: Default::default(),
            lines: 0,
            bytes: said.len() as u64,
            spooled: None,
            redacted: 0,
        };
        let told = missed(command, State::Exited(code), &output);
        assert_eq!(told.is_some(), expected.is_some(), "{command}: {told:?}");
        assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()), "{command}");
    }

    #[test]
    fn what_programs_say_without_anybody_to_ask() {
        let asked = Some("nobody to answer");
        for said in [
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
            check("program with arguments", 1, said, asked);
            check("program with arguments", 0, said, None);
        }
        check("read x", 1, "", asked);
        check("cat", 0, "", Some("standard input is closed"));
    }

    #[test]
    fn an_ordinary_failure_is_none() {
        for said in [
            "",
            "error: no such file\n",
            "git@host: Permission denied (publickey).\n",
            "FAILED (errors=1)\n",
        ] {
            check("make test", 2, said, None);
        }
        check("grep x y", 1, "", None);
        let long_ago = format!("Password:\n{}", "more\n".repeat(20));
        check("deploy now", 1, &long_ago, None);
    }
}

//! `cargo xtask picture`: runs a short session with `helve` and draws its output as `docs/session.svg`.

mod svg;

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::helve::{CALL_LIMIT, Helve};
use crate::options::Options;
use crate::scratch::Scratch;
use crate::{Outcome, Verdict, process, repository};

const PICTURE: &str = "docs/session.svg";
const TITLE: &str = "A session with helve";

/// The only source file of the project that the session works on.
const SOURCE: &str = r#"fn main() {
    println!("Hello!");
}
"#;

/// The command lines of the session, run by `sh` exactly as shown.
const SESSION: &[&str] = &[
    "helve call read filePath=src/main.rs",
    "helve call read filePath=src/mian.rs",
    "helve --allow 'bash:git *' why bash command='git log -3 && git push --force'",
    "helve --yes call edit filePath=src/main.rs oldString=Hello! newString=Hi!",
    "helve history",
    "helve --yes undo",
];

pub(crate) fn run(options: &Options) -> Outcome {
    let picture = svg::render(TITLE, &run_session(options)?);
    let path = repository::root().join(PICTURE);
    if options.check {
        if fs::read_to_string(&path).is_ok_and(|current| current == picture) {
            return Ok(Verdict::Good);
        }
        println!("{PICTURE} is not current; run `cargo xtask picture`");
        return Ok(Verdict::Bad);
    }
    fs::write(&path, picture).map_err(|error| format!("{PICTURE}: {error}"))?;
    println!("{PICTURE} written");
    Ok(Verdict::Good)
}

/// Runs the session in a new project and returns what a terminal would show, colours included.
fn run_session(options: &Options) -> Result<String, String> {
    let scratch = Scratch::new("picture")?;
    let helve = Helve::prepare(options, &scratch)?;
    let source = helve.workspace.join("src/main.rs");
    write(&source, SOURCE)?;
    let mut shown = String::new();
    for line in SESSION {
        let output = run_in_shell(&helve, line)?;
        shown
            .push_str(&format!("\x1b[32m$\x1b[0m \x1b[1m{line}\x1b[0m\n{}\n\n", output.trim_end()));
    }
    Ok(normalize(shown.trim_end()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    let with_path = |error: std::io::Error| format!("{}: {error}", path.display());
    path.parent().map_or(Ok(()), fs::create_dir_all).map_err(with_path)?;
    fs::write(path, text).map_err(with_path)
}

/// Runs one command line with the folder of the binary first in `PATH`. Returns the output of both streams in order.
fn run_in_shell(helve: &Helve, line: &str) -> Result<String, String> {
    let folder = helve.binary().parent().unwrap_or(Path::new("/"));
    let others = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths([folder.to_path_buf()].into_iter().chain(env::split_paths(&others)))
        .map_err(|error| format!("PATH: {error}"))?;
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("exec 2>&1; {line}")]).current_dir(&helve.workspace);
    shell.envs(helve.environment()).env("PATH", path).env("CLICOLOR_FORCE", "1");
    shell.env_remove("NO_COLOR").env_remove("HELVE_SESSION");
    // Some of the commands are meant to fail, so the exit status does not matter.
    Ok(process::run(&mut shell, CALL_LIMIT)?.stdout)
}

/// Replaces what differs between runs: ids of calls and times.
fn normalize(text: &str) -> String {
    const ID: &str = "call_";
    let mut ids: Vec<&str> = Vec::new();
    let mut stable = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(ID) {
        let end = after.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(after.len());
        let (id, after) = after.split_at(end);
        let number = ids.iter().position(|known| *known == id).unwrap_or_else(|| {
            ids.push(id);
            ids.len() - 1
        });
        stable.push_str(&format!("{before}{ID}{}", number + 1));
        rest = after;
    }
    stable.push_str(rest);
    let lines = stable.lines().map(|line| normalize_age(&normalize_short_id(line)));
    lines.collect::<Vec<_>>().join("\n")
}

/// Replaces the short id of a call: eight hexadecimal digits in parentheses or in a line with an age.
fn normalize_short_id(line: &str) -> String {
    const SHORT_ID: &str = "5f3a9c21";
    let is_id = |run: &&str| {
        run.len() == SHORT_ID.len()
            && (line.contains(" s ago") || line.contains(&format!("({run})")))
    };
    let mut runs = line.split(|c: char| !c.is_ascii_hexdigit());
    runs.find(is_id).map_or_else(|| line.to_owned(), |id| line.replacen(id, SHORT_ID, 1))
}

/// Replaces `12 s ago` by `1 s ago`.
fn normalize_age(line: &str) -> String {
    const AGE: &str = " s ago";
    let Some((before, after)) = line.split_once(AGE) else { return line.to_owned() };
    let before = before.trim_end_matches(|c: char| c.is_ascii_digit());
    format!("{before}1{AGE}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_times_are_replaced() {
        let text = "call_0a1f  14 s ago  undo\ncall_0b2e  0 s ago  edit\nundid (call_0a1f): ok";
        let stable = "call_1  1 s ago  undo\ncall_2  1 s ago  edit\nundid (call_1): ok";
        assert_eq!(normalize(text), stable);
        assert_eq!(normalize(stable), stable);
        assert_eq!(
            normalize("\u{1b}[1m6c3501da\u{1b}[0m  3 s ago"),
            "\u{1b}[1m5f3a9c21\u{1b}[0m  1 s ago"
        );
        assert_eq!(normalize("Undid the edit (71c8557f): ok"), "Undid the edit (5f3a9c21): ok");
    }
}

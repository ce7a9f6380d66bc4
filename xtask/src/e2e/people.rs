//! Programs that want a person at a terminal, run by `bash`: each ends soon, and the answer says what it wanted.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::Said;
use crate::helve::Helve;
use crate::process;

/// An editor takes two seconds to notice that there is no terminal.
const SOON: Duration = Duration::from_secs(20);

const KEYS: &str = "waited for keyboard input";
const ANSWER: &str = "nobody can answer";
const ENDED: &str = "exit code";

/// A command, and what the answer must hold. The first word is what must be installed.
const COMMANDS: &[(&str, &str)] = &[
    ("vim", KEYS),
    ("vim lines.txt", KEYS),
    ("vim lines.txt | tail -n 3", KEYS),
    ("vi lines.txt", KEYS),
    ("nvim lines.txt", ENDED),
    ("nano lines.txt", ANSWER),
    ("less lines.txt", "\n500"),
    ("more lines.txt", "\n500"),
    ("man ls", ENDED),
    ("top", ANSWER),
    ("screen", ANSWER),
    ("tmux", ANSWER),
    ("crontab -e", ANSWER),
    ("passwd nobody", ANSWER),
    ("gpg --gen-key", ANSWER),
    ("ssh-keygen", ANSWER),
    ("openssl req -new", ENDED),
    ("npm init", ANSWER),
    ("node", "standard input is closed"),
    ("sqlite3", "standard input is closed"),
    ("psql", ENDED),
    ("gdb", ENDED),
    ("git commit --allow-empty", "no editor can be opened"),
    ("git rebase -i --root", ENDED),
    ("sudo -k -S -u nobody sudo -k true", "password is required"),
];

pub(super) fn run(helve: &Helve) -> Result<Said, String> {
    let helve = helve.in_folder("people")?;
    let lines: String = (1..=500).map(|n| format!("{n}\n")).collect();
    fs::write(helve.workspace.join("lines.txt"), lines).map_err(|error| error.to_string())?;
    answer(&helve, "git init -q . && git config user.name x && git config user.email x@x", ENDED)?;
    let (mut tried, mut missing) = (0, Vec::new());
    for (command, expected) in COMMANDS {
        let program = command.split(' ').next().unwrap_or_default();
        if !is_there(program) {
            missing.push(program);
            continue;
        }
        answer(&helve, command, expected)?;
        tried += 1;
    }
    match ssh(&helve)? {
        Some(()) => tried += 1,
        None => missing.push("sshd"),
    }
    missing.dedup();
    let missing = if missing.is_empty() { "none".into() } else { missing.join(", ") };
    Ok(Said::Passed(format!("{tried} commands ended soon; not installed: {missing}")))
}

/// A host whose key nobody knows, then one that wants a password.
fn ssh(helve: &Helve) -> Result<Option<()>, String> {
    const SERVER: &str = "/usr/sbin/sshd";
    if !Path::new(SERVER).exists() || !is_there("ssh") {
        return Ok(None);
    }
    let key = helve.workspace.join("host_key");
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key);
    process::finish(&mut keygen, SOON)?.good("ssh-keygen")?;
    let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = free.map_err(|error| format!("a free port: {error}"))?.port();
    let mut server = Command::new(SERVER);
    server.args(["-D", "-o", "ListenAddress=127.0.0.1", "-o", "PidFile=none", "-h"]).arg(&key);
    server.args(["-p", &port.to_string(), "-o", "PasswordAuthentication=yes"]);
    let server = server.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
    let _server = Server(server.map_err(|error| format!("{SERVER}: {error}"))?);
    let ssh = "ssh -F none -o ConnectionAttempts=5 -o UserKnownHostsFile=/dev/null";
    answer(helve, &format!("{ssh} -p {port} 127.0.0.1 true"), "Host key verification failed")?;
    let unchecked = format!("{ssh} -o StrictHostKeyChecking=no -o PubkeyAuthentication=no");
    answer(helve, &format!("{unchecked} -p {port} 127.0.0.1 true"), ANSWER)?;
    Ok(Some(()))
}

struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

fn is_there(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

fn answer(helve: &Helve, command: &str, expected: &str) -> Result<(), String> {
    let argument = format!("command={command}");
    let finished = helve.command_line(&["--yes", "call", "bash", &argument])?;
    if finished.took > SOON {
        return Err(format!("{command} took {} s", finished.took.as_secs()));
    }
    match finished.stdout.contains(expected) {
        true => Ok(()),
        false => Err(format!("{command} answered {}{}", finished.stdout, finished.stderr)),
    }
}

//! Programs that expect a user at a terminal, run by the `bash` tool. Each must end soon, and the answer must say why.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::E2eResult;
use crate::helve::Helve;
use crate::process;

/// Time limit for one command. Editors need two seconds to notice that there is no terminal.
const TIME_LIMIT: Duration = Duration::from_secs(20);

/// Part of the answer if Helve ended the program.
const WAITED_FOR_KEYS: &str = "waited for keyboard input";
/// Part of the answer if the program asked for input.
const NOBODY_ANSWERS: &str = "nobody can answer";
/// Part of the answer if the program ended by itself.
const EXITED: &str = "exit code";

/// A command, and what the answer must contain. The first word is the program that must be installed.
const COMMANDS: &[(&str, &str)] = &[
    ("vim", WAITED_FOR_KEYS),
    ("vim lines.txt", WAITED_FOR_KEYS),
    ("vim lines.txt | tail -n 3", WAITED_FOR_KEYS),
    ("vi lines.txt", WAITED_FOR_KEYS),
    ("nvim lines.txt", EXITED),
    ("nano lines.txt", NOBODY_ANSWERS),
    ("less lines.txt", "\n500"),
    ("more lines.txt", "\n500"),
    ("man ls", EXITED),
    ("top", NOBODY_ANSWERS),
    ("screen", NOBODY_ANSWERS),
    ("tmux", NOBODY_ANSWERS),
    ("crontab -e", NOBODY_ANSWERS),
    ("passwd nobody", NOBODY_ANSWERS),
    ("gpg --gen-key", NOBODY_ANSWERS),
    ("ssh-keygen", NOBODY_ANSWERS),
    ("openssl req -new", EXITED),
    ("npm init", NOBODY_ANSWERS),
    ("node", "standard input is closed"),
    ("sqlite3", "standard input is closed"),
    ("psql", EXITED),
    ("gdb", EXITED),
    ("git commit --allow-empty", "no editor can be opened"),
    ("git rebase -i --root", EXITED),
    ("sudo -k -S -u nobody sudo -k true", "password is required"),
];

pub(super) fn run(helve: &Helve) -> Result<E2eResult, String> {
    let helve = helve.with_workspace("interactive")?;
    let lines: String = (1..=500).map(|n| format!("{n}\n")).collect();
    fs::write(helve.workspace.join("lines.txt"), lines).map_err(|error| error.to_string())?;
    check(&helve, "git init -q . && git config user.name x && git config user.email x@x", EXITED)?;
    let (mut tried, mut missing) = (0, Vec::new());
    for (command, expected) in COMMANDS {
        let program = command.split(' ').next().unwrap_or_default();
        if !is_installed(program) {
            missing.push(program);
            continue;
        }
        check(&helve, command, expected)?;
        tried += 1;
    }
    match ssh(&helve)? {
        Some(()) => tried += 1,
        None => missing.push("sshd"),
    }
    missing.dedup();
    let missing = if missing.is_empty() { "none".into() } else { missing.join(", ") };
    Ok(E2eResult::Passed(format!("{tried} commands ended in time; not installed: {missing}")))
}

/// Connects to a host with an unknown key, then to one that asks for a password. Returns `None` without sshd.
fn ssh(helve: &Helve) -> Result<Option<()>, String> {
    const SERVER: &str = "/usr/sbin/sshd";
    if !Path::new(SERVER).exists() || !is_installed("ssh") {
        return Ok(None);
    }
    let key = helve.workspace.join("host_key");
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key);
    process::run(&mut keygen, TIME_LIMIT)?.success("ssh-keygen")?;
    let address = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
    let port = address.map_err(|error| format!("a free port: {error}"))?.port();
    let mut server = Command::new(SERVER);
    server.args(["-D", "-o", "ListenAddress=127.0.0.1", "-o", "PidFile=none", "-h"]).arg(&key);
    server.args(["-p", &port.to_string(), "-o", "PasswordAuthentication=yes"]);
    let server = server.stdin(Stdio::null()).stderr(Stdio::null()).spawn();
    let _guard = SshServer(server.map_err(|error| format!("{SERVER}: {error}"))?);
    let ssh = "ssh -F none -o ConnectionAttempts=5 -o UserKnownHostsFile=/dev/null";
    check(helve, &format!("{ssh} -p {port} 127.0.0.1 true"), "Host key verification failed")?;
    let unchecked = format!("{ssh} -o StrictHostKeyChecking=no -o PubkeyAuthentication=no");
    check(helve, &format!("{unchecked} -p {port} 127.0.0.1 true"), NOBODY_ANSWERS)?;
    Ok(Some(()))
}

struct SshServer(Child);

impl Drop for SshServer {
    fn drop(&mut self) {
        process::kill(&mut self.0);
    }
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

fn check(helve: &Helve, command: &str, expected: &str) -> Result<(), String> {
    let argument = format!("command={command}");
    let finished = helve.run(&["--yes", "call", "bash", &argument])?;
    if finished.took > TIME_LIMIT {
        return Err(format!("{command} took {} s", finished.took.as_secs()));
    }
    match finished.stdout.contains(expected) {
        true => Ok(()),
        false => Err(format!("{command} printed {}{}", finished.stdout, finished.stderr)),
    }
}

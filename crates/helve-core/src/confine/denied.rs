//! Detects what a sandbox denied, from a command's output and from what the system reported.
//!
//! Programs report denials in their own words. Only what the plan really denies counts: a path that may not be written, or
//! the network if it is off. An unreadable file has nothing to do with the sandbox.

use std::path::{Component, Path, PathBuf};

use super::denies_write;
use crate::process::{DeniedCall, Network, SandboxPlan};

/// Something that the sandbox denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxDenial {
    Write(PathBuf),
    /// With the host, if it is named.
    Network(Option<String>),
    /// Access to other processes.
    Tracing,
}

/// Maximum number of denials reported.
pub const MAX_DENIALS: usize = 10;
/// Maximum length of a line that can be an error message.
const MAX_LINE: usize = 4096;

/// Returns what the plan denied a command that ran in `folder`: first what its output mentions, in order and each once,
/// then what only the system reported.
pub fn find_denials(
    plan: &SandboxPlan,
    folder: &Path,
    output: &str,
    withheld: &[DeniedCall],
) -> Vec<SandboxDenial> {
    let mut all = said(plan, folder, output);
    let network = |one: &SandboxDenial| matches!(one, SandboxDenial::Network(_));
    for what in withheld {
        match what {
            DeniedCall::Network if all.iter().any(network) => {}
            DeniedCall::Network => all.push(SandboxDenial::Network(None)),
            DeniedCall::Tracing => all.push(SandboxDenial::Tracing),
        }
    }
    all
}

fn said(plan: &SandboxPlan, folder: &Path, output: &str) -> Vec<SandboxDenial> {
    let mut all = Vec::new();
    for line in output.lines().filter(|line| line.len() <= MAX_LINE) {
        let write = write(plan, folder, line).map(SandboxDenial::Write);
        for one in write.into_iter().chain(network(plan, line)) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        if all.len() >= MAX_DENIALS {
            all.truncate(MAX_DENIALS);
            break;
        }
    }
    all
}

/// Error text for a read-only path, in C, Go and Node.
const READ_ONLY: &str = "read-only file system";
/// Error text for moving or removing a mount point.
const BUSY: &str = "device or resource busy";
/// Error text for devices.
const NO_PERMISSION: &str = "permission denied";

fn write(plan: &SandboxPlan, folder: &Path, line: &str) -> Option<PathBuf> {
    let low = line.to_ascii_lowercase();
    let is = |path: &Path| match () {
        () if low.contains(READ_ONLY) => {
            denies_write(plan, path) || is_beside_protected(plan, path)
        }
        () if low.contains(BUSY) => holds_protected(plan, path),
        () if low.contains(NO_PERMISSION) => path.starts_with("/dev") && denies_write(plan, path),
        () => false,
    };
    let phrase = [READ_ONLY, BUSY, NO_PERMISSION].into_iter().find_map(|it| low.find(it))?;
    // Of two names the last is mostly the target; the source of a copy is not written.
    let most = if low.contains("copy") { 1 } else { usize::MAX };
    let named = quoted(line).into_iter().rev().take(most);
    let candidates = named.chain(before(line, phrase));
    candidates.map(|text| absolute(folder, text)).find(|path| is(path))
}

/// Whether a protected path is at or below a path inside a writable folder.
fn holds_protected(plan: &SandboxPlan, path: &Path) -> bool {
    let is_writable = plan.writable.iter().any(|folder| path.starts_with(folder));
    let near = |it: &PathBuf| it.starts_with(path) || path.starts_with(it);
    is_writable && plan.protected.iter().any(near)
}

/// Whether a protected path is in the same folder below a writable one. If that folder did not exist, all of it is
/// protected.
fn is_beside_protected(plan: &SandboxPlan, path: &Path) -> bool {
    let is_below =
        |folder: &Path| plan.writable.iter().any(|top| folder.starts_with(top) && folder != top);
    let mut folders = plan.protected.iter().flat_map(|it| it.ancestors().skip(1));
    folders.any(|folder| is_below(folder) && path.starts_with(folder))
}

/// Returns everything in quotes of any kind.
fn quoted(line: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = line;
    while let Some(open) = rest.find(['\'', '"', '`', '‘']) {
        // A quote inside a word is an apostrophe.
        let is_letter = |c: Option<char>| c.is_some_and(char::is_alphanumeric);
        if rest[open..].starts_with('\'') && is_letter(rest[..open].chars().next_back()) {
            rest = &rest[open + 1..];
            continue;
        }
        let mut chars = rest[open..].chars();
        let close = match chars.next() {
            Some('‘') => "’",
            Some('`') => "`",
            Some('"') => "\"",
            Some(_) | None => "'",
        };
        let inside = chars.as_str();
        // A backquote may be closed by a plain quote.
        let end = inside.find(close).or_else(|| inside.find('\''));
        let Some(end) = end else { break };
        all.push(&inside[..end]);
        rest = inside[end..].strip_prefix(['\'', '"', '`', '’']).unwrap_or_default();
    }
    all
}

/// Returns the text between colons before a phrase, nearest first: `bash: /etc/x: Read-only file system`.
fn before(line: &str, phrase: usize) -> Vec<&str> {
    let Some(said) = line.get(..phrase) else { return Vec::new() };
    let said = said.trim_end().trim_end_matches([':', '(']);
    let Some(last) = said.rsplit(": ").next() else { return Vec::new() };
    let word = last.rsplit(' ').next().unwrap_or(last);
    // A path with spaces is rarer than one after a verb: `open /etc/x`.
    if word.contains('/') { vec![word, last] } else { vec![last, word] }
}

fn absolute(folder: &Path, text: &str) -> PathBuf {
    let mut path = PathBuf::new();
    for part in folder.join(text).components() {
        match part {
            Component::ParentDir => {
                path.pop();
            }
            Component::CurDir => {}
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => path.push(part),
        }
    }
    path
}

/// Error texts of a missing network. Some are followed by the host.
const UNREACHABLE: [&str; 10] = [
    "could not resolve host: ",
    "couldn't resolve host name",
    "could not resolve hostname ",
    "temporary failure in name resolution",
    "name or service not known",
    "getaddrinfo eai_again ",
    "network is unreachable",
    "failed to lookup address information",
    "dial tcp",
    "socket: operation not permitted",
];

fn network(plan: &SandboxPlan, line: &str) -> Option<SandboxDenial> {
    match plan.network {
        Network::On => return None,
        Network::Off => {}
    }
    let low = line.to_ascii_lowercase();
    let phrase = UNREACHABLE.into_iter().find(|phrase| low.contains(phrase))?;
    let after = low.find(phrase).and_then(|at| line.get(at + phrase.len()..)).unwrap_or_default();
    let ends = |c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-');
    let host = after.split(ends).next().filter(|it| phrase.ends_with(' ') && it.contains('.'));
    Some(SandboxDenial::Network(host.map(|it| it.trim_end_matches('.').to_owned())))
}

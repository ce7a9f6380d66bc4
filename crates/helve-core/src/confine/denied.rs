//! What a sandbox denied, found in what a program said and in what the system refused it.
//!
//! A program tells of a refusal in its own words. Only what the plan really denies is taken from them: a path that may
//! not be written, or the network where that is off. A file that may not be read is none of the sandbox's doing.

use std::path::{Component, Path, PathBuf};

use super::denies;
use crate::process::{DeniedCall, Network, SandboxPlan};

/// Something that a sandbox denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxDenial {
    Write(PathBuf),
    /// The host, where it was named.
    Network(Option<String>),
    /// Looking into other processes.
    Tracing,
}

/// No more are told.
pub const MOST_DENIED: usize = 10;
/// Longer lines are not messages.
const LONGEST_LINE: usize = 4096;

/// What a plan denied a program that ran in `folder`, in the order it said so, each once; then what the system refused
/// it and it did not speak of.
pub fn denied(
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
    for line in output.lines().filter(|line| line.len() <= LONGEST_LINE) {
        let write = write(plan, folder, line).map(SandboxDenial::Write);
        for one in write.into_iter().chain(network(plan, line)) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
        if all.len() >= MOST_DENIED {
            all.truncate(MOST_DENIED);
            break;
        }
    }
    all
}

/// What systems say of a place where nothing can be written, as C, Go and Node spell it.
const READ_ONLY: &str = "read-only file system";
/// What they say of moving or removing what is mounted on.
const BUSY: &str = "device or resource busy";
/// What they say of devices.
const NO_PERMISSION: &str = "permission denied";

fn write(plan: &SandboxPlan, folder: &Path, line: &str) -> Option<PathBuf> {
    let low = line.to_ascii_lowercase();
    let is = |path: &Path| match () {
        () if low.contains(READ_ONLY) => denies(plan, path) || is_beside_protected(plan, path),
        () if low.contains(BUSY) => holds_protected(plan, path),
        () if low.contains(NO_PERMISSION) => path.starts_with("/dev") && denies(plan, path),
        () => false,
    };
    let phrase = [READ_ONLY, BUSY, NO_PERMISSION].into_iter().find_map(|it| low.find(it))?;
    // Of two names the last is mostly where something was to go, and what is copied stays as it is.
    let most = if low.contains("copy") { 1 } else { usize::MAX };
    let named = quoted(line).into_iter().rev().take(most);
    let candidates = named.chain(before(line, phrase));
    candidates.map(|text| absolute(folder, text)).find(|path| is(path))
}

/// Whether something protected is at or below a path inside a writable folder.
fn holds_protected(plan: &SandboxPlan, path: &Path) -> bool {
    let is_writable = plan.writable.iter().any(|folder| path.starts_with(folder));
    let near = |it: &PathBuf| it.starts_with(path) || path.starts_with(it);
    is_writable && plan.protected.iter().any(near)
}

/// Whether something protected is in the same folder below a writable one, or further down in it. Where that folder was
/// not there, all of it is kept.
fn is_beside_protected(plan: &SandboxPlan, path: &Path) -> bool {
    let is_below =
        |folder: &Path| plan.writable.iter().any(|top| folder.starts_with(top) && folder != top);
    let mut folders = plan.protected.iter().flat_map(|it| it.ancestors().skip(1));
    folders.any(|folder| is_below(folder) && path.starts_with(folder))
}

/// Everything in quotes of any kind.
fn quoted(line: &str) -> Vec<&str> {
    let mut all = Vec::new();
    let mut rest = line;
    while let Some(open) = rest.find(['\'', '"', '`', '‘']) {
        // Within a word it is an apostrophe.
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
        // A word in backquotes may end with a plain quote.
        let end = inside.find(close).or_else(|| inside.find('\''));
        let Some(end) = end else { break };
        all.push(&inside[..end]);
        rest = inside[end..].strip_prefix(['\'', '"', '`', '’']).unwrap_or_default();
    }
    all
}

/// What stands between colons before a phrase, the nearest first: `bash: /etc/x: Read-only file system`.
fn before(line: &str, phrase: usize) -> Vec<&str> {
    let Some(said) = line.get(..phrase) else { return Vec::new() };
    let said = said.trim_end().trim_end_matches([':', '(']);
    let Some(last) = said.rsplit(": ").next() else { return Vec::new() };
    let word = last.rsplit(' ').next().unwrap_or(last);
    // One with blanks is rarer than one after a verb: `open /etc/x`.
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

/// What programs say when there is no network; what follows names the host in some of them.
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

//! Finds out what a sandbox denied a command, from the command's output and the kernel's reports.
//!
//! Programs word their error messages differently. A message counts only if the plan really denies what the message
//! mentions: a path that may not be written, a path that is hidden, or the network if it is off.

use std::path::{Component, Path, PathBuf};

use super::{denies_write, is_hidden};
use crate::process::{DeniedCall, Network, SandboxPlan};

/// Something that the sandbox denied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SandboxDenial {
    Write(PathBuf),
    /// Reading a hidden path.
    Read(PathBuf),
    /// The network, with the host if the output names it.
    Network(Option<String>),
    /// Tracing another process or reading its memory.
    Tracing,
    /// Writing to protected files. The output does not say which.
    Protected,
    /// Writing to a file that is hard-linked to a protected path.
    HardLink,
    /// Writing outside the writable folders. The output does not say where.
    Outside,
    /// Writing to git folders. The system does not let Helve check such writes, so all of them are denied.
    GitFolders,
}

/// Maximum number of denials reported.
pub const MAX_DENIALS: usize = 10;
/// Lines with more bytes than this are not searched for error messages.
const MAX_LINE_BYTES: usize = 4096;

/// Returns what the plan denied a command that ran in `folder`: first what the output mentions, in order and without
/// repetitions, then what only the kernel reported.
pub fn find_denials(
    plan: &SandboxPlan,
    folder: &Path,
    output: &str,
    denied_calls: &[DeniedCall],
) -> Vec<SandboxDenial> {
    let mut all = denials_in_output(plan, folder, output);
    let is_network = |denial: &SandboxDenial| matches!(denial, SandboxDenial::Network(_));
    let is_write = |denial: &SandboxDenial| matches!(denial, SandboxDenial::Write(_));
    for call in denied_calls {
        match call {
            DeniedCall::Network if all.iter().any(is_network) => {}
            DeniedCall::Network => all.push(SandboxDenial::Network(None)),
            DeniedCall::Tracing => all.push(SandboxDenial::Tracing),
            DeniedCall::Protected if all.iter().any(is_write) => {}
            DeniedCall::Protected => all.push(SandboxDenial::Protected),
            DeniedCall::Outside if all.iter().any(is_write) => {}
            DeniedCall::Outside => all.push(SandboxDenial::Outside),
            DeniedCall::HardLink => all.push(SandboxDenial::HardLink),
            DeniedCall::GitFolders => all.push(SandboxDenial::GitFolders),
        }
    }
    all
}

fn denials_in_output(plan: &SandboxPlan, folder: &Path, output: &str) -> Vec<SandboxDenial> {
    let mut all = Vec::new();
    for line in output.lines().filter(|line| line.len() <= MAX_LINE_BYTES) {
        let write = denied_write(plan, folder, line).map(SandboxDenial::Write);
        let read = denied_read(plan, folder, line).map(SandboxDenial::Read);
        for denial in write.into_iter().chain(read).chain(denied_network(plan, line)) {
            if !all.contains(&denial) {
                all.push(denial);
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
/// Error text for a device that may not be written.
const NO_PERMISSION: &str = "permission denied";

/// Error text for a missing path. A hidden path appears to be missing.
const MISSING: &str = "no such file or directory";

/// Returns the path that an error message names, if the plan denies writing to it.
fn denied_write(plan: &SandboxPlan, folder: &Path, line: &str) -> Option<PathBuf> {
    let lowercase = line.to_ascii_lowercase();
    let is_denied = |path: &Path| match () {
        () if lowercase.contains(READ_ONLY) => {
            denies_write(plan, path) || shares_folder_with_protected(plan, path)
        }
        () if lowercase.contains(BUSY) => overlaps_protected(plan, path),
        () if lowercase.contains(NO_PERMISSION) => {
            path.starts_with("/dev") && denies_write(plan, path)
        }
        () => false,
    };
    let phrase = [READ_ONLY, BUSY, NO_PERMISSION].into_iter().find_map(|it| lowercase.find(it))?;
    // If two names are quoted, the last is usually the target. A copy writes only its target.
    let max_names = if lowercase.contains("copy") { 1 } else { usize::MAX };
    let named = quoted(line).into_iter().rev().take(max_names);
    let candidates = named.chain(texts_before(line, phrase));
    let candidates = candidates.filter(|text| may_be_path(text));
    candidates.map(|text| absolute(folder, text)).find(|path| is_denied(path))
}

/// Whether a part of an error message may be a path. A single name with spaces or brackets is more likely a part of a sentence,
/// such as the error text itself.
fn may_be_path(text: &str) -> bool {
    let lowercase = text.to_ascii_lowercase();
    let is_error = [READ_ONLY, BUSY, NO_PERMISSION, MISSING, "errno"];
    let is_sentence = |c: char| c.is_whitespace() || "[](){}<>'\"".contains(c);
    text.contains(char::is_alphanumeric)
        && !is_error.iter().any(|error| lowercase.contains(error))
        && (text.contains('/') || !text.contains(is_sentence))
}

/// Returns the hidden path that an error message names.
fn denied_read(plan: &SandboxPlan, folder: &Path, line: &str) -> Option<PathBuf> {
    if plan.hidden.is_empty() {
        return None;
    }
    let phrase = line.to_ascii_lowercase().find(MISSING)?;
    let candidates = quoted(line).into_iter().rev().chain(texts_before(line, phrase));
    candidates.map(|text| absolute(folder, text)).find(|path| is_hidden(plan, path))
}

/// Whether a path in a writable folder contains a protected path, or is inside one.
fn overlaps_protected(plan: &SandboxPlan, path: &Path) -> bool {
    let is_writable = plan.writable.iter().any(|folder| path.starts_with(folder));
    let overlaps = |protected: &PathBuf| protected.starts_with(path) || path.starts_with(protected);
    is_writable && plan.protected.iter().any(overlaps)
}

/// Whether a path is in a folder that also contains a protected path: `.git/x` is, because of `.git/hooks`. Writing
/// there fails if the folder did not exist when the command started, because the sandbox then shows an empty
/// placeholder for it. The writable folders themselves always exist and do not count.
fn shares_folder_with_protected(plan: &SandboxPlan, path: &Path) -> bool {
    let is_below =
        |folder: &Path| plan.writable.iter().any(|top| folder.starts_with(top) && folder != top);
    let mut folders = plan.protected.iter().flat_map(|it| it.ancestors().skip(1));
    folders.any(|folder| is_below(folder) && path.starts_with(folder))
}

/// Returns all quoted texts of a line, in any kind of quotes.
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

/// Returns texts before an error phrase that may be its path, most likely first. In `bash: /etc/x: Read-only file
/// system`, that is `/etc/x`.
fn texts_before(line: &str, phrase: usize) -> Vec<&str> {
    let Some(text) = line.get(..phrase) else { return Vec::new() };
    let text = text.trim_end().trim_end_matches([':', '(']);
    let Some(last) = text.rsplit(": ").next() else { return Vec::new() };
    let word = last.rsplit(' ').next().unwrap_or(last);
    // A path with spaces is less common than a verb before the path, as in `open /etc/x`.
    if word.contains('/') { vec![word, last] } else { vec![last, word] }
}

/// Makes a path absolute and resolves `.` and `..`.
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

/// Error texts of a missing network. Those that end with a space are followed by the host.
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

/// Returns the denial if a line is an error message of a missing network, and the plan denies the network.
fn denied_network(plan: &SandboxPlan, line: &str) -> Option<SandboxDenial> {
    match plan.network {
        Network::On => return None,
        Network::Off => {}
    }
    let lowercase = line.to_ascii_lowercase();
    let phrase = UNREACHABLE.into_iter().find(|phrase| lowercase.contains(phrase))?;
    let after =
        lowercase.find(phrase).and_then(|at| line.get(at + phrase.len()..)).unwrap_or_default();
    let is_not_host = |c: char| !(c.is_ascii_alphanumeric() || c == '.' || c == '-');
    let host =
        after.split(is_not_host).next().filter(|it| phrase.ends_with(' ') && it.contains('.'));
    Some(SandboxDenial::Network(host.map(|it| it.trim_end_matches('.').to_owned())))
}

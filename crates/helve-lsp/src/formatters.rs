//! Formatters. After a file is written, they get its text as standard input or as a copy, so that they cannot damage
//! the file itself.

mod table;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use helve_core::commit::{AwaitRecorded, CommitChange, ExpectedContent, FileMode, HardLinks};
use helve_core::process::{
    ConnectedProcess, Excerpt, Lifetime, OutputPolicy, ProcessInfo, ProcessState, Processes, Spawn,
    Stdin, WaitCondition, WatchRequest,
};
use helve_core::{AfterWrite, BoxFuture, DiagnosticReport, Place, Resolved, WrittenFile};
use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::after_write::MAX_DOCUMENT;
use crate::servers::{LanguageServers, extension};
pub use table::{
    FormatterDefinition, FormatterInput, FormatterOverride, FormatterProbe, formatter_definitions,
};

/// How long a formatter may take.
const FORMAT_TIME: Duration = Duration::from_secs(8);
/// Placeholder in a formatter's command for the path of the file.
const FILE: &str = "$FILE";

/// Formats files after a write.
pub struct Formatters {
    servers: Arc<LanguageServers>,
    formatters: Vec<FormatterDefinition>,
    /// For each program that was probed, whether it passed.
    probed: Mutex<HashMap<PathBuf, bool>>,
}

/// An installed formatter, and the folder to run it in.
struct LocatedFormatter {
    program: PathBuf,
    folder: PathBuf,
}

impl AfterWrite for Formatters {
    fn format<'a>(&'a self, path: &'a Resolved, bytes: &'a Bytes) -> BoxFuture<'a, Option<Bytes>> {
        Box::pin(self.format_file(path.real(), bytes))
    }

    fn diagnose<'a>(&'a self, _written: &'a [WrittenFile]) -> BoxFuture<'a, DiagnosticReport> {
        Box::pin(async { DiagnosticReport::default() })
    }
}

impl Formatters {
    pub fn new(servers: Arc<LanguageServers>, formatters: Vec<FormatterDefinition>) -> Self {
        Self { servers, formatters, probed: Mutex::default() }
    }

    /// Runs all formatters for a file, one after another. Returns `None` if nothing changed.
    async fn format_file(&self, path: PathBuf, bytes: &Bytes) -> Option<Bytes> {
        let extension = extension(&path);
        let fits = |it: &FormatterDefinition| it.extensions.contains(&extension);
        if !self.formatters.iter().any(fits) {
            return None;
        }
        let is_inside = path.starts_with(&self.servers.setup.root);
        if !is_inside || bytes.len() > MAX_DOCUMENT || !self.servers.is_trusted().await {
            return None;
        }
        let mut current = bytes.clone();
        let mut used: Vec<&str> = Vec::new();
        for formatter in self.formatters.iter().filter(|it| fits(it)) {
            if formatter.unless.as_ref().is_some_and(|other| used.contains(&other.as_str())) {
                continue;
            }
            let Some(located) = self.locate(formatter, &path).await else { continue };
            used.push(&formatter.name);
            let formatting = self.run(formatter, located, &path, &current);
            let Ok(Some(formatted)) = timeout(FORMAT_TIME, formatting).await else { continue };
            if let Some(formatted) = checked_output(&current, formatted) {
                current = formatted;
            }
        }
        (current != *bytes).then_some(current)
    }

    /// Returns the program of a formatter and the folder to run it in, if it is installed and meant for this file.
    ///
    /// The folder is the outermost one that contains a marker, such as a settings file. A deeper folder would be wrong,
    /// because formatters look for their ignore files in the current folder. A folder above it would be wrong too,
    /// because biome refuses to run in a parent folder of its settings file.
    async fn locate(
        &self,
        formatter: &FormatterDefinition,
        path: &Path,
    ) -> Option<LocatedFormatter> {
        let program = self.servers.projects.find_program(formatter.command.first()?).await?;
        if !self.passes_probe(formatter, &program).await {
            return None;
        }
        if formatter.markers.is_empty() {
            return Some(LocatedFormatter { program, folder: self.servers.setup.root.clone() });
        }
        let mut outermost: Option<PathBuf> = None;
        for (file, text) in &formatter.markers {
            for folder in self.servers.projects.folders_with(path, file).await {
                let is_marker = text.is_empty()
                    || self
                        .servers
                        .read_text(&folder.join(file))
                        .await
                        .is_some_and(|content| content.contains(text));
                if is_marker && outermost.as_ref().is_none_or(|other| other.starts_with(&folder)) {
                    outermost = Some(folder);
                }
            }
        }
        Some(LocatedFormatter { program, folder: outermost? })
    }

    /// Whether a program is the expected formatter, and not another program of the same name or an older version.
    async fn passes_probe(&self, formatter: &FormatterDefinition, program: &Path) -> bool {
        let Some(FormatterProbe { arguments, text }) = &formatter.probe else { return true };
        let cached = self.probed.lock().get(program).copied();
        if let Some(passes) = cached {
            return passes;
        }
        let Some(processes) = self.servers.setup.host.processes() else { return false };
        let mut request = self.spawn_request(formatter, program, program);
        request.argv.truncate(1);
        request.argv.extend(arguments.iter().map(OsString::from));
        let output = run_with_input(&*processes, request, &Bytes::new()).await;
        let passes =
            output.is_some_and(|output| String::from_utf8_lossy(&output).contains(text.as_str()));
        self.probed.lock().insert(program.into(), passes);
        passes
    }

    /// Runs a formatter on the text of a file. Returns the formatted text; `None` if the formatter fails.
    async fn run(
        &self,
        formatter: &FormatterDefinition,
        LocatedFormatter { program, folder }: LocatedFormatter,
        path: &Path,
        bytes: &Bytes,
    ) -> Option<Bytes> {
        let processes = self.servers.setup.host.processes()?;
        match formatter.input {
            FormatterInput::Stream => {
                let request = Spawn { folder, ..self.spawn_request(formatter, &program, path) };
                run_with_input(&*processes, request, bytes).await
            }
            FormatterInput::Copy => {
                let copy = FileCopy::create(&self.servers, path, bytes).await?;
                let request = self.spawn_request(formatter, &program, &copy.place.path());
                let request = Spawn { folder, ..request };
                let ran = run_with_input(&*processes, request, &Bytes::new()).await;
                let formatted = copy.read().await.filter(|_| ran.is_some());
                copy.remove().await;
                formatted
            }
        }
    }

    /// Returns the request to start a formatter on a file.
    fn spawn_request(&self, formatter: &FormatterDefinition, program: &Path, file: &Path) -> Spawn {
        let setup = &self.servers.setup;
        let mut command: Vec<OsString> = vec![program.into()];
        let name = file.to_string_lossy();
        command.extend(formatter.command.iter().skip(1).map(|it| it.replace(FILE, &name).into()));
        let mut environment = setup.environment.clone();
        environment.retain(|(name, _)| {
            name.to_str().is_none_or(|name| !formatter.environment.contains_key(name))
        });
        let added = formatter.environment.iter();
        environment.extend(added.map(|(name, value)| (name.into(), value.into())));
        Spawn {
            argv: command,
            folder: setup.root.clone(),
            environment,
            stdin: Stdin::Pipe,
            sandbox: setup.sandbox.clone(),
            output: OutputPolicy {
                head: 1 << 10,
                tail: 4 << 10,
                spool: None,
                secrets: setup.secrets.clone(),
            },
            lifetime: Lifetime::Helve,
            about: ProcessInfo {
                command: formatter.command.join(" "),
                description: format!("formatter {}", formatter.name),
                call: String::new(),
                session: String::new(),
                root: setup.root.clone(),
            },
        }
    }
}

/// Runs a program with this input. Returns its output; `None` if it fails, takes too long or prints too much.
async fn run_with_input(processes: &dyn Processes, request: Spawn, input: &Bytes) -> Option<Bytes> {
    let ConnectedProcess { id, mut stdin, mut stdout } = processes.connect(request).await.ok()?;
    let max = input.len() as u64 * 4 + (1 << 20);
    let mut output = Vec::new();
    let writing = async {
        // A formatter may exit before it has read all its input. Its exit code shows whether that is an error.
        stdin.write_all(input).await.ok();
        stdin.shutdown().await.ok();
        drop(stdin);
    };
    let mut limited = (&mut stdout).take(max + 1);
    let exchange = async { tokio::join!(writing, limited.read_to_end(&mut output)).1 };
    let read_result = timeout(FORMAT_TIME - Duration::from_secs(1), exchange).await;
    let request = WatchRequest {
        from: 0,
        max_bytes: 0,
        excerpt: Excerpt::Newest,
        until: WaitCondition::Ended,
        timeout: Duration::from_millis(500),
    };
    let state = match read_result {
        Ok(Ok(_)) if output.len() as u64 <= max => {
            processes.watch(&id, request).await.ok().map(|watched| watched.process.state)
        }
        Ok(_) | Err(_) => None,
    };
    // This also ends processes that the formatter left behind.
    processes.end(&id).await.ok();
    (state == Some(ProcessState::Exited(0))).then(|| output.into())
}

/// A temporary copy of a file. It is in the same folder, so that a formatter finds its settings.
struct FileCopy {
    servers: Arc<LanguageServers>,
    place: Place,
}

impl FileCopy {
    async fn create(servers: &Arc<LanguageServers>, path: &Path, bytes: &Bytes) -> Option<Self> {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).ok()?;
        let name = format!(".helve-{}.{}", now.as_nanos(), extension(path));
        let root = &servers.setup.root;
        let beneath = path.parent()?.strip_prefix(root).ok()?.join(name);
        let place = Place { anchor: root.clone(), beneath };
        let change = CommitChange::Write {
            at: place.clone(),
            expect: ExpectedContent::Absent,
            bytes: bytes.clone(),
            mode: FileMode::Keep,
            links: HardLinks::Replace,
        };
        let committing =
            servers.setup.host.machine().commit(vec![change], AwaitRecorded::nothing());
        committing.await.ok()?;
        Some(Self { servers: servers.clone(), place })
    }

    async fn read(&self) -> Option<Bytes> {
        let machine = self.servers.setup.host.machine();
        machine.read(&self.place, MAX_DOCUMENT as u64).await.ok().map(|content| content.bytes)
    }

    async fn remove(&self) {
        let machine = self.servers.setup.host.machine();
        let expect = match machine.read(&self.place, u64::MAX).await {
            Ok(content) => ExpectedContent::File(content.bytes),
            Err(_) => match machine.read_link(&self.place).await {
                Ok(Some(target)) => ExpectedContent::Link(target),
                Ok(None) | Err(_) => return,
            },
        };
        let change = CommitChange::Remove { at: self.place.clone(), expect };
        machine.commit(vec![change], AwaitRecorded::nothing()).await.ok();
    }
}

/// Returns the output of a formatter, with a byte order mark if the file had one. Returns `None` if the output does not
/// look like the formatted text.
fn checked_output(before: &[u8], after: Bytes) -> Option<Bytes> {
    const BOM: &[u8] = "\u{feff}".as_bytes();
    let had_text = !before.trim_ascii().is_empty();
    let is_empty = after.trim_ascii().is_empty();
    let was_utf8 = std::str::from_utf8(before).is_ok();
    let is_utf8 = std::str::from_utf8(&after).is_ok();
    let is_binary = after.contains(&0) && !before.contains(&0);
    if (had_text && is_empty) || (was_utf8 && !is_utf8) || is_binary {
        return None;
    }
    // Formatters change white space and punctuation. If most letters and digits are gone, the output is something else.
    let letters = |text: &[u8]| text.iter().filter(|byte| byte.is_ascii_alphanumeric()).count();
    if letters(&after) * 2 < letters(before) {
        return None;
    }
    match (before.starts_with(BOM), after.strip_prefix(BOM)) {
        (true, None) => Some([BOM, &after].concat().into()),
        (false, Some(without_bom)) => Some(Bytes::copy_from_slice(without_bom)),
        (true, Some(_)) | (false, None) => Some(after),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nonsense_is_refused_and_the_byte_order_mark_kept() {
        let check = |before: &[u8], after: &[u8], expected: Option<&[u8]>| {
            let after = checked_output(before, Bytes::copy_from_slice(after));
            assert_eq!(after.as_deref(), expected);
        };
        check(b"a =1", b"a = 1", Some(b"a = 1"));
        check(b"", b"", Some(b""));
        check(b"x", b"", None);
        check(b"x", b" \n", None);
        check(b"x", b"\xff\xfex", None);
        check(b"x", b"x\0", None);
        check(b"abcdef ghi", b"ab", None);
        check("\u{feff}x".as_bytes(), b"x\n", Some("\u{feff}x\n".as_bytes()));
        check(b"x", "\u{feff}x\n".as_bytes(), Some(b"x\n"));
    }
}

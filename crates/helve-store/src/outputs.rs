//! Stores the complete outputs of calls when a model was shown only a part. The files are private, have unguessable
//! names, and expire.

mod sweep;

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use helve_core::BoxFuture;
use helve_core::Saved;
use helve_core::store::{Outputs, StoreError};
use parking_lot::Mutex;
use uuid::Uuid;

use crate::private;

/// How much is stored, and for how long.
#[derive(Clone, Copy, Debug)]
struct OutputLimits {
    /// Maximum size of one output. A longer output is truncated.
    max_output_bytes: usize,
    /// Maximum total size; the oldest outputs are removed first.
    max_total_bytes: u64,
    max_files: usize,
    max_age: Duration,
    /// Minimum time between two sweeps.
    sweep_interval: Duration,
    /// How much this process may add before it sweeps regardless of the time.
    max_unswept_bytes: u64,
}

const LIMITS: OutputLimits = OutputLimits {
    max_output_bytes: 64 << 20,
    max_total_bytes: 512 << 20,
    max_files: 20_000,
    max_age: Duration::from_secs(7 * 24 * 3600),
    sweep_interval: Duration::from_secs(3600),
    max_unswept_bytes: 64 << 20,
};

/// Length of the names of folders for temporary files.
const SCRATCH_NAME_LENGTH: usize = 10;

/// The saved outputs in the folder `outputs` of a data folder.
pub struct OutputFiles(Arc<OutputStore>);

struct OutputStore {
    folder: PathBuf,
    /// Contains a folder for temporary files of each session.
    scratch: PathBuf,
    limits: OutputLimits,
    sweep_state: Mutex<SweepState>,
}

/// What this process knows about the last sweep.
struct SweepState {
    /// Earliest time of the next sweep.
    next: Option<SystemTime>,
    /// Number of bytes added since the last sweep.
    added: u64,
}

impl OutputFiles {
    /// Uses a data folder. Creates nothing on disk until something is saved.
    pub fn at(folder: PathBuf) -> Self {
        Self::with_limits(&folder, LIMITS)
    }

    fn with_limits(data: &Path, limits: OutputLimits) -> Self {
        let sweep_state = Mutex::new(SweepState { next: None, added: 0 });
        let (folder, scratch) = (data.join("outputs"), data.join("tmp"));
        Self(Arc::new(OutputStore { folder, scratch, limits, sweep_state }))
    }
}

impl Outputs for OutputFiles {
    fn save<'a>(
        &'a self,
        session: &'a str,
        text: &'a str,
    ) -> BoxFuture<'a, Result<Saved, StoreError>> {
        let files = self.0.clone();
        let folder = self.folder(session);
        let text = truncate(text, files.limits.max_output_bytes);
        Box::pin(run_blocking(move || {
            let saved = files.save(&folder, &text)?;
            if files.claim_due_sweep(saved.bytes) {
                spawn(move || files.sweep());
            }
            Ok(saved)
        }))
    }

    fn reserve(&self, session: &str) -> Saved {
        if self.0.claim_due_sweep(0) {
            let files = self.0.clone();
            spawn(move || files.sweep());
        }
        let id = Uuid::new_v4().simple().to_string();
        Saved { path: self.folder(session).join(format!("{id}.txt")), id, bytes: 0 }
    }

    fn scratch(&self, session: &str) -> Result<PathBuf, StoreError> {
        // The name is short, because programs create sockets in this folder, and socket paths are limited to about a
        // hundred bytes.
        let name = blake3::hash(session.as_bytes()).to_hex();
        let folder = self.0.scratch.join(&name[..SCRATCH_NAME_LENGTH]);
        private::create_folder(&folder)?;
        // A new modification time keeps the folder from being swept while a session uses it.
        File::open(&folder)?.set_modified(SystemTime::now())?;
        folder.canonicalize()
    }

    fn load<'a>(
        &'a self,
        session: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        // Anything that is not an id is rejected, because it could be a path into another folder.
        let is_valid = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let path = self.folder(session).join(format!("{id}.txt"));
        Box::pin(async move {
            if !is_valid {
                return Ok(None);
            }
            run_blocking(move || match File::open(path) {
                Ok(file) => read_start(&file).map(Some),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
                Err(error) => Err(error),
            })
            .await
        })
    }

    fn folder(&self, session: &str) -> PathBuf {
        self.0.folder.join(safe_name(session))
    }
}

/// Maximum number of bytes loaded. An output that a program wrote to its file directly may be longer.
const MAX_LOADED_BYTES: u64 = 8 << 20;

/// Reads at most the first `MAX_LOADED_BYTES` of a file as text. Replaces invalid UTF-8, since programs may print any
/// bytes.
fn read_start(file: &File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MAX_LOADED_BYTES).read_to_end(&mut bytes)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let size = file.metadata()?.len();
    if size > MAX_LOADED_BYTES {
        text.push_str(&format!(
            "\n[Only the first {MAX_LOADED_BYTES} of {size} bytes are shown.]\n"
        ));
    }
    Ok(text)
}

/// Truncates text longer than `max` bytes, and appends a line that says so.
fn truncate(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(max)];
    let end = if kept.ends_with('\n') { "" } else { "\n" };
    format!("{kept}{end}[Only the first {} of {} bytes were kept.]\n", kept.len(), text.len())
}

/// Returns a file name for a session: its id if the id is safe on every file system, otherwise a hash of the id.
///
/// Upper case is not safe, because some file systems ignore case. Short names are not safe, because some, like `con`
/// and `nul`, are devices on Windows.
fn safe_name(session: &str) -> String {
    let is_safe = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    if (8..=64).contains(&session.len()) && session.bytes().all(is_safe) {
        return session.to_owned();
    }
    format!("={}", &blake3::hash(session.as_bytes()).to_hex()[..32])
}

async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await.map_err(io::Error::other)?,
        Err(_) => work(),
    }
}

/// Runs work in the background. The work is skipped if no thread can be spawned.
fn spawn(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().name("helve-outputs".into()).spawn(work).ok();
}

impl OutputStore {
    fn save(&self, folder: &Path, text: &str) -> io::Result<Saved> {
        let id = Uuid::new_v4().simple().to_string();
        let path = folder.join(format!("{id}.txt"));
        let mut file = match private::create(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_with_folder(folder, &path)?
            }
            result => result?,
        };
        if let Err(error) = file.write_all(text.as_bytes()) {
            // A partial file could be mistaken for the whole output. If it cannot be removed, at least its path is not
            // returned.
            std::fs::remove_file(&path).ok();
            return Err(error);
        }
        Ok(Saved { id, path, bytes: u64::try_from(text.len()).unwrap_or(u64::MAX) })
    }

    fn sweep(&self) {
        sweep::sweep(&self.folder, &self.limits);
        sweep::sweep_scratch(&self.scratch, self.limits.max_age);
    }

    /// Records added bytes. Returns whether a sweep is due. If so, other processes no longer consider it due.
    fn claim_due_sweep(&self, added: u64) -> bool {
        let now = SystemTime::now();
        let mut state = self.sweep_state.lock();
        state.added = state.added.saturating_add(added);
        let is_over_limit = state.added >= self.limits.max_unswept_bytes;
        if !is_over_limit && state.next.is_some_and(|next| now < next) {
            return false;
        }
        state.next = Some(now + self.limits.sweep_interval);
        if !is_over_limit && !sweep::is_due(&self.folder, self.limits.sweep_interval) {
            return false;
        }
        state.added = 0;
        sweep::record_start(&self.folder);
        true
    }
}

/// How many times creating a file is attempted while a concurrent sweep removes its folder.
const MAX_ATTEMPTS: usize = 3;

fn create_with_folder(folder: &Path, path: &Path) -> io::Result<File> {
    for _ in 1..MAX_ATTEMPTS {
        private::create_folder(folder)?;
        match private::create(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            result => return result,
        }
    }
    private::create_folder(folder)?;
    private::create(path)
}

#[cfg(test)]
mod tests;

//! Whole outputs on disk, where a model was shown a part: private, unguessable, and not for ever.

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

/// How much is kept, and for how long.
#[derive(Clone, Copy, Debug)]
struct Limits {
    /// The largest output; of a larger one the beginning is kept.
    one: usize,
    /// All outputs together; the oldest go first.
    all: u64,
    files: usize,
    age: Duration,
    /// How often what is too old or too much is looked for.
    every: Duration,
    /// How much this process may add before it looks again, whatever the time.
    unswept: u64,
}

const LIMITS: Limits = Limits {
    one: 64 << 20,
    all: 512 << 20,
    files: 20_000,
    age: Duration::from_secs(7 * 24 * 3600),
    every: Duration::from_secs(3600),
    unswept: 64 << 20,
};

/// How many digits name a folder for temporary files.
const SCRATCH_NAME: usize = 10;

/// Saved outputs in the folder `outputs` of a data folder.
pub struct OutputFiles(Arc<Files>);

struct Files {
    folder: PathBuf,
    /// Folders for temporary files, one for each session.
    scratch: PathBuf,
    limits: Limits,
    swept: Mutex<Swept>,
}

/// What this process knows about the last look.
struct Swept {
    next: Option<SystemTime>,
    since: u64,
}

impl OutputFiles {
    /// Touches nothing until something is saved.
    pub fn at(folder: PathBuf) -> Self {
        Self::with(&folder, LIMITS)
    }

    fn with(data: &Path, limits: Limits) -> Self {
        let swept = Mutex::new(Swept { next: None, since: 0 });
        let (folder, scratch) = (data.join("outputs"), data.join("tmp"));
        Self(Arc::new(Files { folder, scratch, limits, swept }))
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
        let text = within(text, files.limits.one);
        Box::pin(off_the_hot_path(move || {
            let saved = files.save(&folder, &text)?;
            if files.is_sweep_due(saved.bytes) {
                spawn(move || files.sweep());
            }
            Ok(saved)
        }))
    }

    fn reserve(&self, session: &str) -> Saved {
        if self.0.is_sweep_due(0) {
            let files = self.0.clone();
            spawn(move || files.sweep());
        }
        let id = Uuid::new_v4().simple().to_string();
        Saved { path: self.folder(session).join(format!("{id}.txt")), id, bytes: 0 }
    }

    fn scratch(&self, session: &str) -> Result<PathBuf, StoreError> {
        // Sockets are made in it, whose paths may have a hundred bytes.
        let name = blake3::hash(session.as_bytes()).to_hex();
        let folder = self.0.scratch.join(&name[..SCRATCH_NAME]);
        private::folder(&folder)?;
        // Who uses it again keeps it.
        File::open(&folder)?.set_modified(SystemTime::now())?;
        folder.canonicalize()
    }

    fn load<'a>(
        &'a self,
        session: &'a str,
        id: &'a str,
    ) -> BoxFuture<'a, Result<Option<String>, StoreError>> {
        // What is no id of ours names no file: it might lead elsewhere.
        let is_ours = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        let path = self.folder(session).join(format!("{id}.txt"));
        Box::pin(async move {
            if !is_ours {
                return Ok(None);
            }
            off_the_hot_path(move || match File::open(path) {
                Ok(file) => start_of(&file).map(Some),
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

/// What is loaded at once; a spooled output may be longer.
const MOST_LOADED: u64 = 8 << 20;

/// A file as text, or its beginning. What a program printed need not be UTF-8.
fn start_of(file: &File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(MOST_LOADED).read_to_end(&mut bytes)?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let size = file.metadata()?.len();
    if size > MOST_LOADED {
        text.push_str(&format!("\n[Only the first {MOST_LOADED} of {size} bytes are given.]\n"));
    }
    Ok(text)
}

/// The beginning of a text that is too long, with a line that says so.
fn within(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let kept = &text[..text.floor_char_boundary(most)];
    let end = if kept.ends_with('\n') { "" } else { "\n" };
    format!("{kept}{end}[Only the first {} of {} bytes were kept.]\n", kept.len(), text.len())
}

/// A file name for a session: its id where that is harmless everywhere, otherwise a hash of it.
///
/// Upper case is not: some file systems fold it. Neither are short names: `con` and `nul` are devices somewhere.
fn safe_name(session: &str) -> String {
    let is_harmless = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-' | b'_');
    if (8..=64).contains(&session.len()) && session.bytes().all(is_harmless) {
        return session.to_owned();
    }
    format!("={}", &blake3::hash(session.as_bytes()).to_hex()[..32])
}

async fn off_the_hot_path<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    match tokio::runtime::Handle::try_current() {
        Ok(runtime) => runtime.spawn_blocking(work).await.map_err(io::Error::other)?,
        Err(_) => work(),
    }
}

/// Nobody waits for it. Where there is no thread to be had, another time will do.
fn spawn(work: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().name("helve-outputs".into()).spawn(work).ok();
}

impl Files {
    fn save(&self, folder: &Path, text: &str) -> io::Result<Saved> {
        let id = Uuid::new_v4().simple().to_string();
        let path = folder.join(format!("{id}.txt"));
        let mut file = match private::create(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => create_in(folder, &path)?,
            otherwise => otherwise?,
        };
        if let Err(error) = file.write_all(text.as_bytes()) {
            // A part would pass for the whole. If it cannot be removed, at least nobody is told its name.
            std::fs::remove_file(&path).ok();
            return Err(error);
        }
        Ok(Saved { id, path, bytes: u64::try_from(text.len()).unwrap_or(u64::MAX) })
    }

    fn sweep(&self) {
        sweep::sweep(&self.folder, &self.limits);
        sweep::sweep_scratch(&self.scratch, self.limits.age);
    }

    /// Whether it is this process's turn to look for what is too old or too much.
    fn is_sweep_due(&self, added: u64) -> bool {
        let now = SystemTime::now();
        let mut swept = self.swept.lock();
        swept.since = swept.since.saturating_add(added);
        let is_much = swept.since >= self.limits.unswept;
        if !is_much && swept.next.is_some_and(|next| now < next) {
            return false;
        }
        swept.next = Some(now + self.limits.every);
        if !is_much && !sweep::is_due(&self.folder, self.limits.every) {
            return false;
        }
        swept.since = 0;
        sweep::claim(&self.folder);
        true
    }
}

/// How often a folder is made anew that a sweep finds empty and removes.
const TRIES: usize = 3;

fn create_in(folder: &Path, path: &Path) -> io::Result<File> {
    for _ in 1..TRIES {
        private::folder(folder)?;
        match private::create(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            otherwise => return otherwise,
        }
    }
    private::folder(folder)?;
    private::create(path)
}

#[cfg(test)]
mod tests;

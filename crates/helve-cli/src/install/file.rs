//! Reads and atomically writes files of other programs, and records what they contained before.
#![expect(
    clippy::disallowed_methods,
    reason = "these files belong to other programs and are outside every workspace"
)]

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Value, json};

use super::own_tools::Replaced;

/// Maximum size of a configuration file in bytes.
const MAX_BYTES: u64 = 64 << 20;

/// Resolves links. Returns `None` if the file does not exist.
pub(super) fn resolve(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

pub(super) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::metadata(path) {
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(err).context(path.display().to_string()),
        Ok(metadata) if !metadata.is_file() => bail!("{} is not a file", path.display()),
        Ok(metadata) if metadata.len() > MAX_BYTES => bail!("{} is too large", path.display()),
        Ok(_) => {}
    }
    fs::read_to_string(path).map(Some).with_context(|| path.display().to_string())
}

/// Writes a file atomically. Follows a link and keeps the mode.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let target = resolve(path).unwrap_or_else(|| path.to_path_buf());
    let folder = target.parent().context("the path has no folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mode =
        fs::metadata(&target).map_or(0o600, |metadata| metadata.permissions().mode() & 0o7777);
    let temporary = folder.join(format!(".helve-{}", std::process::id()));
    let write_and_rename = || -> std::io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(&temporary)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&temporary, &target)
    };
    write_and_rename()
        .inspect_err(|_| {
            // The temporary file may not exist.
            fs::remove_file(&temporary).ok();
        })
        .with_context(|| target.display().to_string())
}

pub(super) fn remove(path: &Path) -> anyhow::Result<()> {
    fs::remove_file(path).with_context(|| path.display().to_string())
}

/// A file before and after an install, so that removing the entry can restore it exactly.
pub(super) struct InstallRecord {
    /// The file without Helve; `None` if there was no file.
    pub(super) before: Option<String>,
    pub(super) after: String,
    /// Settings that were replaced to switch the program's own tools off.
    pub(super) replaced: Vec<Replaced>,
}

impl InstallRecord {
    pub(super) fn load(path: &Path, name: &str) -> anyhow::Result<Option<Self>> {
        let Some(text) = read(&record_path(path, name)?)? else { return Ok(None) };
        let Ok(value) = serde_json::from_str::<Value>(&text) else { return Ok(None) };
        let Some(after) = value["after"].as_str().map(str::to_owned) else { return Ok(None) };
        let replaced = value["replaced"].as_array().into_iter().flatten();
        let replaced = replaced.filter_map(Replaced::from_json).collect();
        Ok(Some(Self { before: value["before"].as_str().map(str::to_owned), after, replaced }))
    }

    pub(super) fn save(&self, path: &Path, name: &str) -> anyhow::Result<()> {
        let replaced: Vec<Value> = self.replaced.iter().map(Replaced::to_json).collect();
        let record = json!({"before": self.before, "after": self.after, "replaced": replaced});
        write(&record_path(path, name)?, &record.to_string())
    }

    pub(super) fn delete(path: &Path, name: &str) -> anyhow::Result<()> {
        match fs::remove_file(record_path(path, name)?) {
            Err(err) if err.kind() != ErrorKind::NotFound => Err(err.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// Returns the path of the record in Helve's data folder.
fn record_path(path: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let data =
        std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let data = match data {
        Some(data) => data,
        None => std::env::home_dir()
            .context("the home folder is unknown; set HOME")?
            .join(".local/share"),
    };
    let to_safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = format!("{}-{name}", path.display()).chars().map(to_safe).collect();
    Ok(data.join("helve").join("installs").join(format!("{name}.json")))
}

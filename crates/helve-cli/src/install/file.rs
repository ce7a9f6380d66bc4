//! Other programs' files: read within limits, written whole or not at all; and what they were before.
#![expect(
    clippy::disallowed_methods,
    reason = "the files of other programs, outside every workspace"
)]

use std::fs;
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use serde_json::{Value, json};

/// Configuration is small; what is not is something else.
const MOST: u64 = 64 << 20;

/// Where a file really lies, if it is there.
pub(super) fn real(path: &Path) -> Option<PathBuf> {
    path.canonicalize().ok()
}

pub(super) fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::metadata(path) {
        Err(err) if err.kind() == ErrorKind::NotFound => return Ok(None),
        Err(err) => return Err(err).context(path.display().to_string()),
        Ok(about) if !about.is_file() => bail!("{} is not a file", path.display()),
        Ok(about) if about.len() > MOST => bail!("{} is too large", path.display()),
        Ok(_) => {}
    }
    fs::read_to_string(path).map(Some).with_context(|| path.display().to_string())
}

/// Beside it, then in its place; a link is followed, the mode is kept.
pub(super) fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    let target = real(path).unwrap_or_else(|| path.to_path_buf());
    let folder = target.parent().context("a file lies in a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let mode = fs::metadata(&target).map_or(0o600, |about| about.permissions().mode() & 0o7777);
    let beside = folder.join(format!(".helve-{}", std::process::id()));
    let written = || -> std::io::Result<()> {
        let mut options = fs::OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(mode).open(&beside)?;
        file.set_permissions(fs::Permissions::from_mode(mode))?;
        file.write_all(text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&beside, &target)
    };
    written()
        .inspect_err(|_| {
            // It may never have been made.
            fs::remove_file(&beside).ok();
        })
        .with_context(|| target.display().to_string())
}

pub(super) fn remove(path: &Path) -> anyhow::Result<()> {
    fs::remove_file(path).with_context(|| path.display().to_string())
}

/// What a file was before an entry was put in, so that taking it out can be exact.
pub(super) struct Kept {
    before: Option<String>,
    after: String,
}

impl Kept {
    pub(super) fn of(path: &Path, name: &str) -> anyhow::Result<Option<Self>> {
        let Some(text) = read(&place(path, name)?)? else { return Ok(None) };
        let Ok(value) = serde_json::from_str::<Value>(&text) else { return Ok(None) };
        let Some(after) = value["after"].as_str().map(str::to_owned) else { return Ok(None) };
        Ok(Some(Self { before: value["before"].as_str().map(str::to_owned), after }))
    }

    /// The file as it was, if it is now as the install left it. Empty where there was none.
    pub(super) fn before_if(&self, now: Option<&str>) -> Option<String> {
        (now == Some(self.after.as_str())).then(|| self.before.clone().unwrap_or_default())
    }

    pub(super) fn keep(
        path: &Path,
        name: &str,
        before: Option<&str>,
        after: &str,
    ) -> anyhow::Result<()> {
        // Put in again, with other arguments: the first state is the one to go back to.
        let before = match Self::of(path, name)? {
            Some(kept) if before == Some(kept.after.as_str()) => kept.before,
            Some(_) | None => before.map(str::to_owned),
        };
        write(&place(path, name)?, &json!({"before": before, "after": after}).to_string())
    }

    pub(super) fn forget(path: &Path, name: &str) -> anyhow::Result<()> {
        match fs::remove_file(place(path, name)?) {
            Err(err) if err.kind() != ErrorKind::NotFound => Err(err.into()),
            Ok(()) | Err(_) => Ok(()),
        }
    }
}

/// In Helve's data folder, by a name that says which file it is about.
fn place(path: &Path, name: &str) -> anyhow::Result<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").map(PathBuf::from).filter(|it| it.is_absolute());
    let data = match data {
        Some(data) => data,
        None => std::env::home_dir().context("there is no home folder")?.join(".local/share"),
    };
    let safe = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let about: String = format!("{}-{name}", path.display()).chars().map(safe).collect();
    Ok(data.join("helve").join("installs").join(format!("{about}.json")))
}

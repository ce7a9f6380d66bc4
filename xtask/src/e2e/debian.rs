//! Unpacks packages of Debian in a folder, without installing them.

use std::path::PathBuf;
use std::process::Command;

use super::{DOWNLOAD_LIMIT, download_folder};
use crate::process;

/// Downloads packages and returns the folder with their files, or `None` if this machine's package sources do not have them.
pub(super) fn unpack(packages: &[&str]) -> Result<Option<PathBuf>, String> {
    let folder = download_folder(&format!("debian-{}", packages.join("-")));
    let marker = folder.join("done");
    let files = folder.join("files");
    if marker.exists() {
        return Ok(Some(files));
    }
    std::fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut apt = Command::new("apt-get");
    apt.arg("download").args(packages).current_dir(&folder);
    let downloaded = process::run(&mut apt, DOWNLOAD_LIMIT);
    if !downloaded.is_ok_and(|finished| finished.status.success()) {
        return Ok(None);
    }
    let entries = folder.read_dir().map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            let mut dpkg = Command::new("dpkg-deb");
            process::run(dpkg.arg("-x").arg(&path).arg(&files), DOWNLOAD_LIMIT)?
                .success("dpkg-deb")?;
        }
    }
    std::fs::write(&marker, "").map_err(|error| format!("{}: {error}", marker.display()))?;
    Ok(Some(files))
}

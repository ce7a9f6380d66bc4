//! Unpacks packages of Debian in a folder, without installing them.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{DOWNLOAD_LIMIT, download_folder};
use crate::process;

/// Downloads packages and returns the folder with their files, or `None` if this machine's package sources do not have
/// them.
pub(super) fn unpack(packages: &[&str]) -> Result<Option<PathBuf>, String> {
    let folder = download_folder(&format!("debian-{}", packages.join("-")));
    let marker = folder.join("done");
    let files = folder.join("files");
    if marker.exists() {
        return Ok(Some(files));
    }
    create_folder(&folder)?;
    let mut apt = Command::new("apt-get");
    apt.arg("download").args(packages).current_dir(&folder);
    if !succeeds(&mut apt) {
        return Ok(None);
    }
    unpack_files(&folder, &files)?;
    write(&marker, "")?;
    Ok(Some(files))
}

/// Downloads a package of Debian's newest suite with everything that it depends on, the C library included. Returns a
/// folder with a script that starts `program` with these libraries, or `None` if this is not Debian or the package is
/// not there.
pub(super) fn unpack_newest(package: &str, program: &str) -> Result<Option<PathBuf>, String> {
    const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
    const LIBRARIES: &str = "usr/lib/x86_64-linux-gnu";
    if std::env::consts::ARCH != "x86_64" || !Path::new(KEYS).exists() {
        return Ok(None);
    }
    let folder = download_folder(&format!("debian-sid-{package}"));
    let (marker, scripts) = (folder.join("done"), folder.join("bin"));
    if marker.exists() {
        return Ok(Some(scripts));
    }
    for name in ["bin", "state/lists/partial", "cache/archives/partial"] {
        create_folder(&folder.join(name))?;
    }
    let Some(mirror) = mirror()? else { return Ok(None) };
    let sources = format!("deb [signed-by={KEYS}] {mirror} sid main\n");
    write(&folder.join("sources.list"), &sources)?;
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        // As if nothing were installed, so that all libraries are downloaded.
        command.args(["-o", "Dir::State::status=/dev/null", "-o", "Dir::Etc::sourceparts=-"]);
        for (name, value) in
            [("State", "state"), ("Cache", "cache"), ("Etc::sourcelist", "sources.list")]
        {
            command.arg("-o").arg(format!("Dir::{name}={}", folder.join(value).display()));
        }
        command.args(["-o", "Debug::NoLocking=1"]).args(arguments);
        succeeds(&mut command)
    };
    let install =
        ["--assume-yes", "--no-install-recommends", "--download-only", "install", package];
    if !apt(&["update"]) || !apt(&install) {
        return Ok(None);
    }
    let files = folder.join("files");
    unpack_files(&folder.join("cache/archives"), &files)?;
    let libraries = files.join(LIBRARIES);
    let script = format!(
        "#!/bin/sh\nexec {0}/ld-linux-x86-64.so.2 --library-path {0} {1}/usr/bin/{program} \"$@\"\n",
        libraries.display(),
        files.display()
    );
    let path = scripts.join(program);
    write(&path, &script)?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("{}: {error}", path.display()))?;
    write(&marker, "")?;
    Ok(Some(scripts))
}

/// Returns the URI from which this machine installs Debian's packages.
fn mirror() -> Result<Option<String>, String> {
    let mut apt = Command::new("apt-get");
    apt.args(["indextargets", "--format", "$(REPO_URI)", "Created-By: Packages"]);
    let uris = process::run(&mut apt, DOWNLOAD_LIMIT)?.success("apt-get indextargets")?;
    Ok(uris.lines().find(|uri| uri.trim_end_matches('/').ends_with("/debian")).map(str::to_owned))
}

fn succeeds(command: &mut Command) -> bool {
    process::run(command, DOWNLOAD_LIMIT).is_ok_and(|finished| finished.status.success())
}

/// Unpacks the packages in `folder`.
fn unpack_files(folder: &Path, files: &Path) -> Result<(), String> {
    let entries = folder.read_dir().map_err(|error| format!("{}: {error}", folder.display()))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("{}: {error}", folder.display()))?.path();
        if path.extension().is_some_and(|extension| extension == "deb") {
            let mut dpkg = Command::new("dpkg-deb");
            process::run(dpkg.arg("-x").arg(&path).arg(files), DOWNLOAD_LIMIT)?
                .success("dpkg-deb")?;
        }
    }
    Ok(())
}

fn create_folder(folder: &Path) -> Result<(), String> {
    fs::create_dir_all(folder).map_err(|error| format!("{}: {error}", folder.display()))
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

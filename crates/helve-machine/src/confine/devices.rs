//! Builds the private `/dev` of a confined process: a few harmless devices, its own terminals and its own shared
//! memory.

use std::fs;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::mount::{MountFlags, mount};

use super::mounts::{attach, clone_tree, mount_tmpfs};
use super::with_context;

pub(super) const DEVICES: &str = "/dev";

/// The devices that stay available. They may be written to.
pub(super) const HARMLESS_DEVICES: [&str; 6] =
    ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty"];

/// The terminals of the process and its shared memory, which are mounts of their own.
pub(super) const TERMINALS: &str = "/dev/pts";
pub(super) const SHARED_MEMORY: &str = "/dev/shm";

/// A symbolic link that leads nowhere. Mounted over a file, it makes the file appear missing.
pub(super) const NO_FILE: &str = "/dev/.no-file";

/// A path in which nothing can be created, so that a link to it leads nowhere.
pub(super) const NOWHERE: &str = "/proc/.helve-sandbox";

const LINKS: [(&str, &str); 6] = [
    ("/dev/fd", "/proc/self/fd"),
    ("/dev/stdin", "/proc/self/fd/0"),
    ("/dev/stdout", "/proc/self/fd/1"),
    ("/dev/stderr", "/proc/self/fd/2"),
    ("/dev/ptmx", "pts/ptmx"),
    (NO_FILE, NOWHERE),
];

/// The devices of the system that the private folder shows, before it is mounted.
pub(super) struct DeviceFolder {
    devices: Vec<(PathBuf, OwnedFd)>,
}

impl DeviceFolder {
    pub(super) fn prepare() -> io::Result<Self> {
        let existing = HARMLESS_DEVICES.iter().map(PathBuf::from).filter(|path| path.exists());
        let devices = existing.map(|path| clone_tree(&path).map(|tree| (path, tree)));
        Ok(DeviceFolder { devices: devices.collect::<io::Result<_>>()? })
    }

    /// Mounts the folder over `/dev`. It stays writable until the caller makes it read-only.
    pub(super) fn mount(self) -> io::Result<()> {
        let mount_all = || -> io::Result<()> {
            mount_tmpfs(Path::new(DEVICES), c"mode=0755,size=64k")?;
            for (path, tree) in &self.devices {
                fs::File::create_new(path)?;
                attach(tree, path)?;
            }
            for (link, target) in LINKS {
                symlink(target, link)?;
            }
            for folder in [TERMINALS, SHARED_MEMORY] {
                fs::create_dir(folder)?;
            }
            let flags = MountFlags::NOSUID | MountFlags::NOEXEC;
            mount("devpts", TERMINALS, "devpts", flags, c"newinstance,ptmxmode=0666,mode=0620")?;
            mount_tmpfs(Path::new(SHARED_MEMORY), c"mode=1777,size=50%")
        };
        mount_all().map_err(|err| with_context("mounting a private /dev", err))
    }
}

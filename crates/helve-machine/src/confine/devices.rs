//! Builds the private `/dev` of a confined process: a few harmless devices, its own terminals and its own shared
//! memory.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use rustix::fs::{FileType, Mode, OFlags, fstat, major, minor, open};
use rustix::io::Errno;
use rustix::mount::{MountFlags, mount};
use rustix::stdio::{dup2_stderr, dup2_stdin, dup2_stdout, stderr, stdin, stdout};

use super::mounts::{attach, clone_tree, mount_tmpfs};
use super::{syscalls, with_context};

pub(super) const DEVICES: &str = "/dev";

/// The devices that stay available. They may be written to, but their permissions, owners and times are those of the
/// system's devices and cannot be changed: a read-only mount prevents only that.
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
        let devices = existing.map(|path| {
            let tree = clone_tree(&path)?;
            syscalls::make_read_only(tree.as_fd()).map_err(|err| {
                with_context(&format!("making {} read-only", path.display()), err)
            })?;
            Ok((path, tree))
        });
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

/// The device number of `/dev/null`.
const NULL: (u32, u32) = (1, 3);

/// Opens `/dev/null` again in place of standard handles that refer to it. The old ones belong to the system's device,
/// whose permissions could be changed through them.
pub(super) fn reopen_null_handles() -> io::Result<()> {
    let reopen = || -> Result<(), Errno> {
        let is_null = |handle: BorrowedFd<'_>| {
            let status = fstat(handle);
            status.is_ok_and(|it| {
                FileType::from_raw_mode(it.st_mode) == FileType::CharacterDevice
                    && (major(it.st_rdev), minor(it.st_rdev)) == NULL
            })
        };
        let null = || open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty());
        if is_null(stdin()) {
            dup2_stdin(null()?)?;
        }
        if is_null(stdout()) {
            dup2_stdout(null()?)?;
        }
        if is_null(stderr()) {
            dup2_stderr(null()?)?;
        }
        Ok(())
    };
    reopen().map_err(|err| with_context("opening /dev/null", err))
}

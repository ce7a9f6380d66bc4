//! What a confined program sees of the files: all of them, few of them writable.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use helve_core::process::Confine;
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_change, move_mount, open_tree,
};
use rustix::thread::UnshareFlags;

use super::hold::There;
use super::{calls, hold, named};

/// Whose mount namespace it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The administrator's: capabilities mean what they always mean.
    Administrator,
    /// That of a user namespace, in which capabilities reach no further.
    User,
}

/// Enters a mount namespace of its own.
pub(super) fn enter() -> io::Result<Owner> {
    let ids = Ids::own();
    let owner = ids.enter().map_err(|err| named("making a mount namespace", err))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|err| named("keeping mounts to ourselves", err))?;
    Ok(owner)
}

/// This process's user and group, as a user namespace wants them.
pub(super) struct Ids {
    user: String,
    group: String,
}

impl Ids {
    pub(super) fn own() -> Self {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        Self { user: format!("{user} {user} 1"), group: format!("{group} {group} 1") }
    }

    /// Enters a mount namespace. Allocates nothing, so that it can be tried after a fork.
    pub(super) fn enter(&self) -> io::Result<Owner> {
        if calls::unshare(UnshareFlags::NEWNS).is_ok() {
            return Ok(Owner::Administrator);
        }
        calls::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
        for (path, content) in [
            (c"/proc/self/setgroups", "deny"),
            (c"/proc/self/uid_map", &self.user),
            (c"/proc/self/gid_map", &self.group),
        ] {
            let file =
                rustix::fs::open(path, rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty())?;
            rustix::io::write(file, content.as_bytes())?;
        }
        Ok(Owner::User)
    }
}

/// Makes everything read-only but what the plan says.
pub(super) fn build(plan: &Confine) -> io::Result<()> {
    let mut writable = plan.writable.clone();
    // A folder comes before those inside it, which would be covered otherwise.
    writable.sort();
    // As they are now: a folder that cannot be written today cannot be tomorrow.
    let mut trees = Vec::new();
    for folder in &writable {
        trees.push((folder, tree(folder)?));
    }
    let all = open_tree(CWD, "/", OpenTreeFlags::OPEN_TREE_CLOEXEC)
        .map_err(|err| named("looking at /", err))?;
    calls::make_read_only(all.as_fd()).map_err(|err| named("making / read-only", err))?;
    for (folder, tree) in trees {
        attach(&tree, folder)?;
    }
    protect(plan)?;
    hide_services(&writable)?;
    own_shared_memory()
}

/// A copy of the mounts at and below a path, not attached anywhere.
fn tree(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    open_tree(CWD, path, flags)
        .map_err(|err| named(&format!("taking hold of {}", path.display()), err))
}

fn attach(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .map_err(|err| named(&format!("mounting {}", path.display()), err))
}

/// Mounts each protected path on itself, read-only, and each folder above it up to the writable one, as it is: what is
/// mounted on can be neither renamed nor removed.
fn protect(plan: &Confine) -> io::Result<()> {
    let mut fixed: Vec<PathBuf> = plan.writable.clone();
    let mut protected: Vec<_> = plan.protected.iter().collect();
    protected.sort();
    for path in protected {
        let Some(guard) = hold::guard(plan, path)? else { continue };
        if guard.state == There::Nowhere {
            continue;
        }
        let above = guard.above.iter().map(|folder| (folder, Access::AsItIs));
        for (path, access) in above.chain([(&guard.path, Access::ReadOnly)]) {
            if fixed.contains(path) {
                continue;
            }
            let tree = tree(path)?;
            if access == Access::ReadOnly {
                calls::make_read_only(tree.as_fd())
                    .map_err(|err| named(&format!("protecting {}", path.display()), err))?;
            }
            attach(&tree, path)?;
            fixed.push(path.clone());
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    AsItIs,
    ReadOnly,
}

/// Where services listen that do for anybody who asks what a confined program must not do.
const SERVICES: [&str; 8] = [
    "/run/docker.sock",
    "/run/containerd",
    "/run/crio",
    "/run/podman",
    "/run/dbus",
    "/run/systemd/private",
    "/run/user",
    "/tmp/tmux-",
];

fn hide_services(writable: &[PathBuf]) -> io::Result<()> {
    let user = rustix::process::getuid().as_raw();
    for service in SERVICES {
        let path = match service.strip_suffix('-') {
            Some(_) => PathBuf::from(format!("{service}{user}")),
            None => PathBuf::from(service),
        };
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if writable.iter().any(|folder| folder.starts_with(&path)) {
            continue;
        }
        let hidden = if metadata.is_dir() {
            temporary(&path, c"mode=0555,size=4k")
        } else if metadata.file_type().is_socket() {
            mount_bind("/dev/null", &path).map_err(io::Error::from)
        } else {
            Ok(())
        };
        hidden.map_err(|err| named(&format!("hiding {}", path.display()), err))?;
    }
    Ok(())
}

/// Programs that share memory among themselves need this folder to be writable.
fn own_shared_memory() -> io::Result<()> {
    let folder = Path::new("/dev/shm");
    if !folder.is_dir() {
        return Ok(());
    }
    temporary(folder, c"mode=1777,size=50%")
        .map_err(|err| named("mounting a /dev/shm of its own", err))
}

fn temporary(path: &Path, options: &std::ffi::CStr) -> io::Result<()> {
    Ok(mount("tmpfs", path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options)?)
}

//! Builds the mount namespace of a confined process: all files are visible, few are writable.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};

use helve_core::process::SandboxPlan;
use rustix::fs::CWD;
use rustix::mount::{
    MountFlags, MountPropagationFlags, MoveMountFlags, OpenTreeFlags, mount, mount_bind,
    mount_change, move_mount, open_tree,
};
use rustix::thread::UnshareFlags;

use super::placeholders::PathState;
use super::{placeholders, syscalls, with_context};

/// Who owns the mount namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamespaceOwner {
    /// Root: capabilities have their full effect.
    Root,
    /// A user namespace: capabilities have no effect outside it.
    UserNamespace,
}

/// Enters a new private mount namespace.
pub(super) fn enter_private_namespace() -> io::Result<NamespaceOwner> {
    let ids = IdMaps::of_this_process();
    let owner = ids
        .enter_mount_namespace()
        .map_err(|err| with_context("creating a mount namespace", err))?;
    mount_change("/", MountPropagationFlags::PRIVATE | MountPropagationFlags::REC)
        .map_err(|err| with_context("making mounts private", err))?;
    Ok(owner)
}

/// The user and group mappings for a user namespace.
pub(super) struct IdMaps {
    user: String,
    group: String,
}

impl IdMaps {
    pub(super) fn of_this_process() -> Self {
        let user = rustix::process::geteuid().as_raw();
        let group = rustix::process::getegid().as_raw();
        Self { user: format!("{user} {user} 1"), group: format!("{group} {group} 1") }
    }

    /// Enters a mount namespace. Does not allocate, so that it may be called after a fork.
    pub(super) fn enter_mount_namespace(&self) -> io::Result<NamespaceOwner> {
        if syscalls::unshare(UnshareFlags::NEWNS).is_ok() {
            return Ok(NamespaceOwner::Root);
        }
        syscalls::unshare(UnshareFlags::NEWUSER | UnshareFlags::NEWNS)?;
        for (path, content) in [
            (c"/proc/self/setgroups", "deny"),
            (c"/proc/self/uid_map", &self.user),
            (c"/proc/self/gid_map", &self.group),
        ] {
            let file =
                rustix::fs::open(path, rustix::fs::OFlags::WRONLY, rustix::fs::Mode::empty())?;
            rustix::io::write(file, content.as_bytes())?;
        }
        Ok(NamespaceOwner::UserNamespace)
    }
}

/// Makes everything read-only except the plan's writable folders.
pub(super) fn build(plan: &SandboxPlan) -> io::Result<()> {
    let mut writable = plan.writable.clone();
    // Outer folders come first; mounted later, they would hide the inner mounts.
    writable.sort();
    // The mounts are cloned before everything becomes read-only. A folder that is already read-only stays read-only.
    let mut trees = Vec::new();
    for folder in &writable {
        trees.push((folder, clone_tree(folder)?));
    }
    let root = open_tree(CWD, "/", OpenTreeFlags::OPEN_TREE_CLOEXEC)
        .map_err(|err| with_context("opening /", err))?;
    syscalls::make_read_only(root.as_fd())
        .map_err(|err| with_context("making / read-only", err))?;
    for (folder, tree) in trees {
        attach(&tree, folder)?;
    }
    protect(plan)?;
    hide_services(&writable)?;
    mount_shared_memory()
}

/// Clones the mounts at and below a path, without attaching them.
fn clone_tree(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    open_tree(CWD, path, flags)
        .map_err(|err| with_context(&format!("cloning the mount of {}", path.display()), err))
}

fn attach(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .map_err(|err| with_context(&format!("mounting {}", path.display()), err))
}

/// Mounts each protected path on itself read-only. The folders between it and the writable folder are mounted on
/// themselves too, because a mount point can be neither renamed nor removed.
fn protect(plan: &SandboxPlan) -> io::Result<()> {
    let mut mounted: Vec<PathBuf> = plan.writable.clone();
    let mut protected: Vec<_> = plan.protected.iter().collect();
    protected.sort();
    for path in protected {
        let Some(target) = placeholders::mount_target(plan, path)? else { continue };
        // The path is missing and must stay so: there is nothing to mount.
        if target.state == PathState::NoPlaceholder {
            continue;
        }
        let ancestors = target.ancestors.iter().map(|folder| (folder, MountAccess::Unchanged));
        for (path, access) in ancestors.chain([(&target.path, MountAccess::ReadOnly)]) {
            if mounted.contains(path) {
                continue;
            }
            let tree = clone_tree(path)?;
            if access == MountAccess::ReadOnly {
                syscalls::make_read_only(tree.as_fd())
                    .map_err(|err| with_context(&format!("protecting {}", path.display()), err))?;
            }
            attach(&tree, path)?;
            mounted.push(path.clone());
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MountAccess {
    Unchanged,
    ReadOnly,
}

/// Sockets of services that could act on behalf of a confined process. The user id is appended to a path that ends in `-`.
const SERVICE_SOCKETS: [&str; 8] = [
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
    for service in SERVICE_SOCKETS {
        let path = match service.strip_suffix('-') {
            Some(_) => PathBuf::from(format!("{service}{user}")),
            None => PathBuf::from(service),
        };
        let Ok(metadata) = fs::metadata(&path) else { continue };
        if writable.iter().any(|folder| folder.starts_with(&path)) {
            continue;
        }
        let hidden = if metadata.is_dir() {
            mount_tmpfs(&path, c"mode=0555,size=4k")
        } else if metadata.file_type().is_socket() {
            mount_bind("/dev/null", &path).map_err(io::Error::from)
        } else {
            Ok(())
        };
        hidden.map_err(|err| with_context(&format!("hiding {}", path.display()), err))?;
    }
    Ok(())
}

/// Mounts a private `/dev/shm`, because processes that share memory need it to be writable.
fn mount_shared_memory() -> io::Result<()> {
    let folder = Path::new("/dev/shm");
    if !folder.is_dir() {
        return Ok(());
    }
    mount_tmpfs(folder, c"mode=1777,size=50%")
        .map_err(|err| with_context("mounting a private /dev/shm", err))
}

fn mount_tmpfs(path: &Path, options: &std::ffi::CStr) -> io::Result<()> {
    Ok(mount("tmpfs", path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options)?)
}

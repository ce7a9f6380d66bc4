//! Builds the mount namespace of a confined process: all files are visible, few are writable.

use std::fs;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Path, PathBuf};

use helve_core::process::{CopiedFolder, Network, SandboxPlan};
use rustix::fs::CWD;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, MountFlags, MountPropagationFlags, MoveMountFlags,
    OpenTreeFlags, fsconfig_create, fsconfig_set_flag, fsconfig_set_string, fsmount, fsopen, mount,
    mount_bind, mount_change, move_mount, open_tree,
};
use rustix::thread::UnshareFlags;

use super::devices::{DEVICES, DeviceFolder, NO_FILE};
use super::placeholders::{self, PathState};
use super::{PidNamespace, syscalls, with_context};

/// Who owns the mount namespace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NamespaceOwner {
    /// Root: capabilities have their full effect.
    Root,
    /// A user namespace: capabilities have no effect outside it.
    UserNamespace,
}

/// Enters new private namespaces: for mounts and System V IPC, and for the process ids of children if requested.
pub(super) fn enter_private_namespaces(pids: PidNamespace) -> io::Result<NamespaceOwner> {
    let ids = IdMaps::of_this_process();
    let owner =
        ids.enter_namespaces(pids).map_err(|err| with_context("creating namespaces", err))?;
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

    /// Enters the namespaces. Does not allocate, so that it may be called after a fork.
    pub(super) fn enter_namespaces(&self, pids: PidNamespace) -> io::Result<NamespaceOwner> {
        let flags = UnshareFlags::NEWNS
            | UnshareFlags::NEWIPC
            | match pids {
                PidNamespace::Own => UnshareFlags::NEWPID,
                PidNamespace::Shared => UnshareFlags::empty(),
            };
        if syscalls::unshare(flags).is_ok() {
            return Ok(NamespaceOwner::Root);
        }
        syscalls::unshare(UnshareFlags::NEWUSER | flags)?;
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

/// Makes everything read-only except the plan's writable folders, and hides its hidden paths.
pub(super) fn build(plan: &SandboxPlan) -> io::Result<()> {
    // The mounts are cloned before everything becomes read-only. A folder that is already read-only stays read-only.
    let mut steps = Vec::new();
    for path in &plan.writable {
        steps.push((path.clone(), MountStep::Show(clone_tree(path)?)));
    }
    for path in plan.visible.iter().filter_map(|path| path.canonicalize().ok()) {
        let tree = clone_tree(&path)?;
        syscalls::make_read_only(tree.as_fd())
            .map_err(|err| with_context(&format!("making {} read-only", path.display()), err))?;
        steps.push((path, MountStep::Show(tree)));
    }
    for copied in plan.copied.iter().filter(|copied| copied.folder.is_dir()) {
        // Not every file system can store the changes. If this one cannot, the folder stays read-only.
        if let Ok(tree) = copied_tree(copied) {
            steps.push((copied.folder.clone(), MountStep::Copy(tree)));
        }
    }
    steps.extend(plan.hidden.iter().map(|path| (path.clone(), MountStep::Hide)));
    // Outer folders are mounted first, because they would hide inner mounts that exist already. The sort is stable, so
    // a path that is to be both shown and hidden ends up hidden.
    steps.sort_by(|(one, _), (other, _)| one.cmp(other));
    let devices = DeviceFolder::prepare()?;
    let root = open_tree(CWD, "/", OpenTreeFlags::OPEN_TREE_CLOEXEC)
        .map_err(|err| with_context("opening /", err))?;
    syscalls::make_read_only(root.as_fd())
        .map_err(|err| with_context("making / read-only", err))?;
    devices.mount()?;
    let mut empty_folders = vec![PathBuf::from(DEVICES)];
    for (path, step) in steps {
        match step {
            MountStep::Show(tree) => {
                if fs::symlink_metadata(&path).is_err() {
                    // The folder around it was hidden.
                    fs::create_dir_all(&path).map_err(|err| {
                        with_context(&format!("creating {}", path.display()), err)
                    })?;
                }
                attach(&tree, &path)?;
            }
            MountStep::Copy(tree) => attach(&tree, &path)?,
            MountStep::Hide => {
                if hide(&path)? == HiddenKind::Folder {
                    empty_folders.push(path);
                }
            }
        }
    }
    for folder in empty_folders {
        make_mount_read_only(&folder)?;
    }
    protect(plan)?;
    match plan.network {
        Network::On => hide_services(&plan.writable),
        // No socket can be connected to.
        Network::Off => Ok(()),
    }
}

/// Mounts a copy-on-write view of a folder, without attaching it.
fn copied_tree(copied: &CopiedFolder) -> io::Result<OwnedFd> {
    let mount_copy = || -> io::Result<OwnedFd> {
        let (upper, work) = (copied.changes.join("upper"), copied.changes.join("work"));
        for folder in [&upper, &work] {
            fs::create_dir_all(folder)?;
        }
        let context = fsopen("overlay", FsOpenFlags::FSOPEN_CLOEXEC)?;
        fsconfig_set_string(&context, "source", "overlay")?;
        fsconfig_set_string(&context, "lowerdir", &copied.folder)?;
        fsconfig_set_string(&context, "upperdir", &upper)?;
        fsconfig_set_string(&context, "workdir", &work)?;
        fsconfig_set_flag(&context, "userxattr")?;
        fsconfig_create(&context)?;
        let flags = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        let tree = fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, flags)?;
        // The kernel makes its work folder inaccessible, which would keep Helve from removing it later.
        fs::set_permissions(work.join("work"), fs::Permissions::from_mode(0o700))
            .unwrap_or_default();
        Ok(tree)
    };
    mount_copy().map_err(|err| {
        with_context(&format!("making a private copy of {}", copied.folder.display()), err)
    })
}

enum MountStep {
    /// Mounts a copy-on-write view.
    Copy(OwnedFd),
    /// Mounts a folder, which may be inside a hidden one.
    Show(OwnedFd),
    Hide,
}

/// What a hidden path was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum HiddenKind {
    Missing,
    File,
    Folder,
}

/// Hides a path: a folder appears empty, and a file cannot be opened. A folder stays writable until the caller makes it
/// read-only.
fn hide(path: &Path) -> io::Result<HiddenKind> {
    let result = match fs::symlink_metadata(path) {
        Err(err) if err.kind() == io::ErrorKind::NotFound => return Ok(HiddenKind::Missing),
        // A path that cannot be inspected cannot be read either. But the program might change that in a writable
        // parent.
        Err(err) => Err(err),
        Ok(metadata) if metadata.is_dir() => {
            mount_tmpfs(path, c"mode=0755,size=64k").map(|()| HiddenKind::Folder)
        }
        Ok(_) => clone_tree(Path::new(NO_FILE))
            .and_then(|tree| attach(&tree, path))
            .map(|()| HiddenKind::File),
    };
    result.map_err(|err| with_context(&format!("hiding {}", path.display()), err))
}

fn make_mount_read_only(path: &Path) -> io::Result<()> {
    let mount = open_tree(CWD, path, OpenTreeFlags::OPEN_TREE_CLOEXEC)?;
    syscalls::make_top_read_only(mount.as_fd())
        .map_err(|err| with_context(&format!("making {} read-only", path.display()), err))
}

/// Clones the mounts at and below a path, without attaching them.
pub(super) fn clone_tree(path: &Path) -> io::Result<OwnedFd> {
    let flags = OpenTreeFlags::OPEN_TREE_CLONE
        | OpenTreeFlags::OPEN_TREE_CLOEXEC
        | OpenTreeFlags::AT_RECURSIVE
        | OpenTreeFlags::AT_SYMLINK_NOFOLLOW;
    open_tree(CWD, path, flags)
        .map_err(|err| with_context(&format!("cloning the mount of {}", path.display()), err))
}

/// Attaches a cloned mount. A symbolic link at `path` is not followed.
pub(super) fn attach(tree: &OwnedFd, path: &Path) -> io::Result<()> {
    move_mount(tree, "", CWD, path, MoveMountFlags::MOVE_MOUNT_F_EMPTY_PATH)
        .map_err(|err| with_context(&format!("mounting {}", path.display()), err))
}

/// Mounts each protected path on itself read-only. The folders between it and the writable folder are mounted on
/// themselves too, because a mount point can be neither renamed nor removed.
fn protect(plan: &SandboxPlan) -> io::Result<()> {
    let mut mounted: Vec<PathBuf> = plan.writable.clone();
    let mut protected: Vec<_> = plan.protected.iter().chain(&plan.protected_links).collect();
    protected.sort();
    for path in protected {
        let Some(target) = placeholders::mount_target(plan, path)? else { continue };
        // A missing path without a placeholder: the broker refuses to create it.
        if target.state == PathState::NeedsPlaceholder
            && fs::symlink_metadata(&target.path).is_err()
        {
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
    // In a plan with guarded folders, the broker refuses to move folders around hidden files.
    match plan.guarded.is_empty() {
        true => fix_folders_around_hidden(plan, &mut mounted),
        false => Ok(()),
    }
}

/// Mounts the folders around hidden paths on themselves, so that they can be neither renamed nor removed. Otherwise the
/// next command, whose plan might not hide the new path, could read what was hidden.
fn fix_folders_around_hidden(plan: &SandboxPlan, mounted: &mut Vec<PathBuf>) -> io::Result<()> {
    let copied = plan.copied.iter().map(|copied| &copied.folder);
    let changeable: Vec<_> = plan.writable.iter().chain(copied).collect();
    for path in plan.hidden.iter().filter(|path| fs::symlink_metadata(path).is_ok()) {
        let around = path.ancestors().skip(1);
        let inner = around.take_while(|folder| !changeable.iter().any(|area| area == folder));
        let inner: Vec<_> = inner.collect();
        let is_changeable = changeable.iter().any(|area| path.starts_with(area));
        // Outer folders first: a later mount of an outer folder would hide an inner one.
        for folder in inner.into_iter().rev().filter(|_| is_changeable) {
            if !mounted.iter().any(|it| it == folder) {
                attach(&clone_tree(folder)?, folder)?;
                mounted.push(folder.to_path_buf());
            }
        }
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum MountAccess {
    Unchanged,
    ReadOnly,
}

/// Sockets of services that could act on behalf of a confined process. The user id is appended to a path that ends in
/// `-`.
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

/// Maximum number of sockets that are hidden one by one.
const MAX_SOCKETS: usize = 1_000;

fn hide_services(writable: &[PathBuf]) -> io::Result<()> {
    let user = rustix::process::getuid().as_raw();
    let services = SERVICE_SOCKETS.iter().map(|service| match service.strip_suffix('-') {
        Some(_) => PathBuf::from(format!("{service}{user}")),
        None => PathBuf::from(service),
    });
    // The sockets that exist now, such as those of key agents, desktops and databases.
    let table = fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let sockets = socket_paths(&table).take(MAX_SOCKETS);
    for path in services.chain(sockets) {
        if writable.iter().any(|folder| folder.starts_with(&path) || path.starts_with(folder)) {
            continue;
        }
        let Ok(metadata) = fs::symlink_metadata(&path) else { continue };
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

/// Returns the paths in `/proc/net/unix`.
fn socket_paths(table: &str) -> impl Iterator<Item = PathBuf> {
    let path = |line: &str| line.find(" /").map(|at| PathBuf::from(&line[at + 1..]));
    table.lines().filter_map(path)
}

pub(super) fn mount_tmpfs(path: &Path, options: &std::ffi::CStr) -> io::Result<()> {
    Ok(mount("tmpfs", path, "tmpfs", MountFlags::NOSUID | MountFlags::NODEV, options)?)
}

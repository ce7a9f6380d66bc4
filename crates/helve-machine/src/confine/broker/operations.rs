//! The calls that the broker makes: opening, creating, linking and renaming files.

use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use helve_core::confine::{Area, PathChange};
use helve_core::process::DeniedCall;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{
    AtFlags, CWD, Dev, FileType, Mode, OFlags, RenameFlags, Stat, fcntl_setfl, fstat, ftruncate,
    linkat, mkdirat, mknodat, open, openat, readlinkat, renameat_with, statat, symlinkat,
};
use rustix::io::Errno;

use super::caller::Caller;
use super::git_index::NewIndex;
use super::places::{
    Base, DirectPath, Place, is_in_proc, own_link, own_process_link, real_path, refuse_own,
};
use super::{Arguments, Broker, CallError, CallResult};

/// Maximum number of links that are followed at the end of a path, and of attempts to open a file that others keep
/// creating and removing.
const MAX_ATTEMPTS: usize = 40;

/// The handle number that stands for the current folder.
#[expect(clippy::cast_sign_loss, reason = "arguments of calls are unsigned registers")]
const CURRENT_FOLDER: u64 = libc::AT_FDCWD as u64;

/// `/dev/tty`, the controlling terminal of whoever opens it.
const OWN_TERMINAL: (u32, u32) = (5, 0);

/// A path as an argument: the handle of the folder it starts from, and its address in the caller's memory.
type PathArgument = (u64, u64);

/// A call of one thread.
struct Call<'a> {
    broker: &'a Broker,
    caller: &'a Caller<'a>,
}

/// What a path leads to.
enum Found {
    Existing(ExistingFile),
    Missing(Place),
}

struct ExistingFile {
    /// `None` for what has no name, such as a pipe or a deleted file.
    place: Option<Place>,
    /// A handle that refers to the file without opening it.
    file: OwnedFd,
    status: Stat,
}

impl ExistingFile {
    fn kind(&self) -> FileType {
        FileType::from_raw_mode(self.status.st_mode)
    }
}

/// Whether a link at the end of a path is followed.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LastLink {
    Follow,
    Keep,
}

impl Broker {
    pub(super) fn make_call(
        &self,
        caller: &Caller<'_>,
        number: libc::c_long,
        arguments: &Arguments,
    ) -> Result<CallResult, CallError> {
        let call = Call { broker: self, caller };
        match call.make(number, arguments) {
            Err(CallError::System(Errno::ROFS)) if call.is_notable(number, arguments) => {
                Err(CallError::Refused(DeniedCall::Outside))
            }
            result => result,
        }
    }
}

impl Call<'_> {
    /// Whether a write outside the writable folders is worth reporting. Python tries to save compiled modules next to
    /// their sources, and programs change settings of processes, without needing it.
    fn is_notable(&self, number: libc::c_long, [a, b, c, d, ..]: &Arguments) -> bool {
        let address = match number {
            libc::SYS_openat | libc::SYS_mkdirat | libc::SYS_mknodat => b,
            libc::SYS_symlinkat => c,
            libc::SYS_linkat | libc::SYS_renameat2 => d,
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            libc::SYS_renameat => d,
            #[cfg(target_arch = "x86_64")]
            libc::SYS_symlink | libc::SYS_link | libc::SYS_rename => b,
            _ => a,
        };
        let Ok(path) = self.caller.path(*address) else { return false };
        let mut names = path.split(|byte| *byte == b'/');
        let is_virtual = [&b"/proc/"[..], b"/sys/"].iter().any(|top| path.starts_with(top));
        !is_virtual && !names.any(|name| name == b"__pycache__")
    }

    fn make(&self, number: libc::c_long, arguments: &Arguments) -> Result<CallResult, CallError> {
        let call = self;
        let [a, b, c, d, e, _] = *arguments;
        #[cfg(target_arch = "x86_64")]
        {
            let here = CURRENT_FOLDER;
            let create = (OFlags::CREATE | OFlags::WRONLY | OFlags::TRUNC).bits().into();
            match number {
                libc::SYS_open => return call.open((here, a), b, c),
                libc::SYS_creat => return call.open((here, a), create, b),
                libc::SYS_mkdir => return call.create_folder((here, a), b),
                libc::SYS_mknod => return call.create_node((here, a), b, c),
                libc::SYS_symlink => return call.create_link(a, (here, b)),
                libc::SYS_link => return call.link((here, a), (here, b), 0),
                libc::SYS_rename => return call.rename((here, a), (here, b), 0),
                _ => {}
            }
        }
        match number {
            libc::SYS_openat => call.open((a, b), c, d),
            libc::SYS_mkdirat => call.create_folder((a, b), c),
            libc::SYS_mknodat => call.create_node((a, b), c, d),
            libc::SYS_symlinkat => call.create_link(a, (b, c)),
            libc::SYS_linkat => call.link((a, b), (c, d), e),
            #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
            libc::SYS_renameat => call.rename((a, b), (c, d), 0),
            libc::SYS_renameat2 => call.rename((a, b), (c, d), e),
            libc::SYS_truncate => call.truncate((CURRENT_FOLDER, a), b),
            _ => Err(Errno::NOSYS.into()),
        }
    }

    fn open(
        &self,
        (base, address): PathArgument,
        flags: u64,
        mode: u64,
    ) -> Result<CallResult, CallError> {
        let flags = OFlags::from_bits_retain(low_bits(flags));
        let path = self.caller.path(address)?;
        let base = self.base(base, &path)?;
        if let Some(direct) = DirectPath::new(base.as_fd(), &path)?
            && let Some(handle) = self.open_direct(&direct, flags, mode)?
        {
            return Ok(handle_result(handle, flags));
        }
        let mut place = Place::find(self.caller, base.as_fd(), &path)?;
        for _ in 0..MAX_ATTEMPTS {
            let is_new = flags.contains(OFlags::CREATE | OFlags::EXCL);
            let keeps_link = flags.contains(OFlags::NOFOLLOW) || is_new;
            let last_link = if keeps_link { LastLink::Keep } else { LastLink::Follow };
            let missing = match self.look_up(place, last_link)? {
                Found::Existing(_) if is_new => return Err(Errno::EXIST.into()),
                Found::Existing(existing) => return self.open_existing(&existing, flags, mode),
                Found::Missing(missing) => missing,
            };
            if !flags.contains(OFlags::CREATE) {
                return Err(Errno::NOENT.into());
            }
            match self.create_file(&missing, flags, mode) {
                // Somebody else has created it in the meantime.
                Err(CallError::System(Errno::EXIST)) if !is_new => place = missing,
                Ok(handle) => return Ok(handle_result(handle, flags)),
                Err(error) => return Err(error),
            }
        }
        Err(Errno::LOOP.into())
    }

    /// Opens or creates a regular file in a writable folder, with as few calls as possible. Returns `None` for anything
    /// else, and if the call may have to fail. Then the caller takes a slower way, which finds the right error.
    fn open_direct(
        &self,
        path: &DirectPath<'_>,
        flags: OFlags,
        mode: u64,
    ) -> Result<Option<OwnedFd>, CallError> {
        let truncates = flags.contains(OFlags::TRUNC);
        let is_special =
            flags.intersects(OFlags::PATH | OFlags::DIRECTORY) || truncates && is_reading(flags);
        let Broker { guard, .. } = self.broker;
        // Only the slower way looks up which folders have a `HEAD`. Here, all of them count as having one.
        if is_special
            || guard.area(&path.real) == Area::ReadOnly
            || guard.refuses(&path.real, PathChange::Write, |_| true)
        {
            return Ok(None);
        }
        let creation = OFlags::CREATE | OFlags::EXCL;
        let own = own_flags(flags) - creation - OFlags::TRUNC;
        if flags.contains(OFlags::CREATE) {
            match path.open(own | creation, self.new_mode(mode)?) {
                Err(Errno::EXIST) if !flags.contains(OFlags::EXCL) => {}
                Err(Errno::LOOP | Errno::INVAL) => return Ok(None),
                result => return Ok(Some(result?)),
            }
        }
        // It may be a named pipe, whose opening must not wait.
        let file = match path.open(own | OFlags::NONBLOCK, Mode::empty()) {
            Err(Errno::NOENT) if flags.contains(OFlags::CREATE) => return Ok(None),
            Err(Errno::LOOP | Errno::INVAL | Errno::NXIO | Errno::AGAIN) => return Ok(None),
            result => result?,
        };
        let status = fstat(&file)?;
        let kind = FileType::from_raw_mode(status.st_mode);
        match kind {
            FileType::RegularFile => self.check_links(&path.real, &status)?,
            FileType::Fifo if !is_reading(flags) => {}
            _ => return Ok(None),
        }
        if !flags.contains(OFlags::NONBLOCK) {
            fcntl_setfl(&file, own)?;
        }
        if truncates && kind == FileType::RegularFile {
            ftruncate(&file, 0)?;
        }
        Ok(Some(file))
    }

    fn create_file(&self, place: &Place, flags: OFlags, mode: u64) -> Result<OwnedFd, CallError> {
        if place.ends_with_slash {
            return Err(Errno::ISDIR.into());
        }
        self.check(place, PathChange::Write)?;
        let flags = own_flags(flags) | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW;
        Ok(openat(&place.folder, &place.name, flags, self.new_mode(mode)?)?)
    }

    fn open_existing(
        &self,
        existing: &ExistingFile,
        flags: OFlags,
        mode: u64,
    ) -> Result<CallResult, CallError> {
        let ExistingFile { place, file, status } = existing;
        let must_be_folder = place.as_ref().is_some_and(|place| place.ends_with_slash);
        match existing.kind() {
            FileType::Symlink => return Err(Errno::LOOP.into()),
            FileType::Directory if flags.contains(OFlags::CREATE) => {
                return Err(Errno::ISDIR.into());
            }
            FileType::Directory => {}
            _ if must_be_folder => return Err(Errno::NOTDIR.into()),
            FileType::RegularFile => {
                if let Some(place) = place {
                    self.check(place, PathChange::Write)?;
                    self.check_links(place.path()?, status)?;
                }
            }
            FileType::Fifo if is_waiting(flags) => return open_pipe(file, flags),
            FileType::CharacterDevice if device(status.st_rdev) == OWN_TERMINAL => {
                return Ok(handle_result(self.caller.terminal()?, flags));
            }
            _ => {}
        }
        // Only a temporary file without a name needs permissions.
        let is_unnamed = flags.contains(OFlags::TMPFILE);
        let mode = if is_unnamed { self.new_mode(mode)? } else { Mode::empty() };
        Ok(handle_result(open(own_link(file.as_fd()), reopen_flags(flags), mode)?, flags))
    }

    fn create_folder(&self, path: PathArgument, mode: u64) -> Result<CallResult, CallError> {
        let place = self.place(path)?;
        if let Err(error) = self.check(&place, PathChange::CreateFolder) {
            let exists = statat(&place.folder, &place.name, AtFlags::SYMLINK_NOFOLLOW).is_ok();
            return Err(if exists { Errno::EXIST.into() } else { error });
        }
        mkdirat(&place.folder, place.call_name(), self.new_mode(mode)?)?;
        Ok(CallResult::Done)
    }

    fn create_node(
        &self,
        path: PathArgument,
        mode: u64,
        device: u64,
    ) -> Result<CallResult, CallError> {
        let place = self.place(path)?;
        self.check(&place, PathChange::Write)?;
        let kind = match low_bits(mode) & libc::S_IFMT {
            // No kind means a regular file.
            0 => FileType::RegularFile,
            kind => FileType::from_raw_mode(kind),
        };
        let mode = self.new_mode(mode)?;
        mknodat(&place.folder, place.call_name(), kind, mode, device)?;
        Ok(CallResult::Done)
    }

    fn create_link(&self, target: u64, path: PathArgument) -> Result<CallResult, CallError> {
        let target = self.caller.path(target)?;
        let place = self.place(path)?;
        self.check(&place, PathChange::Write)?;
        self.check_git_entry(&place, FileType::Symlink)?;
        symlinkat(target, &place.folder, place.call_name())?;
        Ok(CallResult::Done)
    }

    fn link(
        &self,
        from: PathArgument,
        to: PathArgument,
        flags: u64,
    ) -> Result<CallResult, CallError> {
        let flags = AtFlags::from_bits_retain(low_bits(flags));
        let follows = flags.contains(AtFlags::SYMLINK_FOLLOW);
        let last_link = if follows { LastLink::Follow } else { LastLink::Keep };
        let is_handle = flags.contains(AtFlags::EMPTY_PATH) && self.caller.path(from.1)?.is_empty();
        let source = if is_handle {
            self.opened_file(self.caller.base(handle_number(from.0))?)?
        } else {
            match self.look_up(self.place(from)?, last_link)? {
                Found::Existing(source) => source,
                Found::Missing(_) => return Err(Errno::NOENT.into()),
            }
        };
        if let Some(place) = &source.place {
            self.check(place, PathChange::Write)?;
        }
        let to = self.place(to)?;
        self.check(&to, PathChange::Write)?;
        self.check_git_entry(&to, source.kind())?;
        let link = own_link(source.file.as_fd());
        linkat(CWD, link, &to.folder, to.call_name(), AtFlags::SYMLINK_FOLLOW)?;
        let old_name = source.place.as_ref().and_then(|place| place.path().ok());
        self.broker.links.add(&source.status, [old_name, to.path().ok()]);
        Ok(CallResult::Done)
    }

    fn rename(
        &self,
        from: PathArgument,
        to: PathArgument,
        flags: u64,
    ) -> Result<CallResult, CallError> {
        let flags = RenameFlags::from_bits_retain(low_bits(flags));
        let (from, to) = (self.place(from)?, self.place(to)?);
        let is_exchange = flags.contains(RenameFlags::EXCHANGE);
        self.check(&from, PathChange::Move)?;
        self.check(&to, PathChange::Arrive)?;
        if is_exchange {
            // This also refuses to exchange an index.
            self.check(&from, PathChange::Write)?;
            self.check(&to, PathChange::Write)?;
            self.check(&to, PathChange::Move)?;
        }
        self.check_moved_entry(&from, &to)?;
        if is_exchange {
            self.check_moved_entry(&to, &from)?;
        }
        let (from_path, to_path) = (from.path()?, to.path()?);
        let guard = &self.broker.guard;
        if guard.leaves_git_folder(from_path, to_path)
            || is_exchange && guard.leaves_git_folder(to_path, from_path)
        {
            return Err(CallError::Refused(DeniedCall::Protected));
        }
        let has_head = |levels_above| to.has_head(levels_above);
        if guard.is_index(to_path, has_head)
            && let Some(index) = NewIndex::read(&from)?
        {
            return index.replace(&from, &to, flags).map(|()| CallResult::Done);
        }
        renameat_with(&from.folder, from.call_name(), &to.folder, to.call_name(), flags)?;
        Ok(CallResult::Done)
    }

    fn truncate(&self, path: PathArgument, length: u64) -> Result<CallResult, CallError> {
        let existing = match self.look_up(self.place(path)?, LastLink::Follow)? {
            Found::Existing(existing) => existing,
            Found::Missing(_) => return Err(Errno::NOENT.into()),
        };
        match existing.kind() {
            FileType::RegularFile => {}
            FileType::Directory => return Err(Errno::ISDIR.into()),
            _ => return Err(Errno::INVAL.into()),
        }
        if let Some(place) = &existing.place {
            self.check(place, PathChange::Write)?;
            self.check_links(place.path()?, &existing.status)?;
        }
        if self.broker.plan.limits.file_size.is_some_and(|limit| length > limit) {
            return Err(Errno::FBIG.into());
        }
        let flags = OFlags::WRONLY | OFlags::CLOEXEC;
        let file = open(own_link(existing.file.as_fd()), flags, Mode::empty())?;
        ftruncate(file, length)?;
        Ok(CallResult::Done)
    }

    /// Finds the place that a path argument names.
    fn place(&self, (base, address): PathArgument) -> Result<Place, CallError> {
        let path = self.caller.path(address)?;
        let base = self.base(base, &path)?;
        Ok(Place::find(self.caller, base.as_fd(), &path)?)
    }

    /// Opens the folder that a path starts from.
    fn base(&self, base: u64, path: &[u8]) -> Result<Base, CallError> {
        if path.starts_with(b"/") {
            return Ok(Base::Unused);
        }
        Ok(Base::Folder(self.caller.base(handle_number(base))?))
    }

    /// Finds the file at a place. If the place is a link, it is followed or kept, as `last_link` says.
    fn look_up(&self, mut place: Place, last_link: LastLink) -> Result<Found, CallError> {
        for _ in 0..MAX_ATTEMPTS {
            let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
            let file = match openat(&place.folder, &place.name, flags, Mode::empty()) {
                Err(Errno::NOENT) => return Ok(Found::Missing(place)),
                result => result?,
            };
            let status = fstat(&file)?;
            let is_link = FileType::from_raw_mode(status.st_mode) == FileType::Symlink;
            if !is_link || last_link == LastLink::Keep && !place.ends_with_slash {
                return Ok(Found::Existing(ExistingFile { place: Some(place), file, status }));
            }
            let folder = place.folder.as_fd();
            let target = match is_in_proc(folder)? {
                false => readlinkat(folder, &place.name, Vec::new())?.into_bytes(),
                true => match own_process_link(self.caller, &place.name)? {
                    Some(target) => target,
                    None => {
                        refuse_own(folder)?;
                        let flags = OFlags::PATH | OFlags::CLOEXEC;
                        let file = openat(folder, &place.name, flags, Mode::empty())?;
                        return Ok(Found::Existing(self.opened_file(file)?));
                    }
                },
            };
            let ends_with_slash = place.ends_with_slash;
            place = Place::find(self.caller, folder, &target)?;
            place.ends_with_slash |= ends_with_slash;
        }
        Err(Errno::LOOP.into())
    }

    /// Finds the name of a file that the caller has open.
    fn opened_file(&self, file: OwnedFd) -> Result<ExistingFile, CallError> {
        let status = fstat(&file)?;
        let kind = FileType::from_raw_mode(status.st_mode);
        if kind != FileType::RegularFile || status.st_nlink == 0 {
            return Ok(ExistingFile { place: None, file, status });
        }
        let path = real_path(file.as_fd())?;
        let place = Place::find(self.caller, CWD, path.as_os_str().as_bytes())?;
        let named = statat(&place.folder, &place.name, AtFlags::SYMLINK_NOFOLLOW)?;
        if (named.st_dev, named.st_ino) != (status.st_dev, status.st_ino) {
            // It was renamed in the meantime.
            return Err(Errno::ACCESS.into());
        }
        Ok(ExistingFile { place: Some(place), file, status })
    }

    /// Refuses a change that the plan refuses.
    fn check(&self, place: &Place, change: PathChange) -> Result<(), CallError> {
        let has_head = |levels_above| place.has_head(levels_above);
        match self.broker.guard.refuses(place.path()?, change, has_head) {
            true => Err(CallError::Refused(DeniedCall::Protected)),
            false => Ok(()),
        }
    }

    /// Refuses to move anything but a file into a git folder.
    fn check_moved_entry(&self, from: &Place, to: &Place) -> Result<(), CallError> {
        let Ok(moved) = statat(&from.folder, &from.name, AtFlags::SYMLINK_NOFOLLOW) else {
            // The entry is missing, so the call will fail.
            return Ok(());
        };
        let kind = FileType::from_raw_mode(moved.st_mode);
        // An entry that is already in a git folder was checked when it was put there.
        match self.check_git_entry(from, kind) {
            Ok(()) => self.check_git_entry(to, kind),
            Err(_) => Ok(()),
        }
    }

    /// Refuses to put a symbolic link, or a folder that may contain one, into a git folder.
    fn check_git_entry(&self, place: &Place, kind: FileType) -> Result<(), CallError> {
        let has_head = |levels_above| place.has_head(levels_above);
        let may_be_link = matches!(kind, FileType::Symlink | FileType::Directory);
        match may_be_link && self.broker.guard.is_in_git_folder(place.path()?, has_head) {
            true => Err(CallError::Refused(DeniedCall::Protected)),
            false => Ok(()),
        }
    }

    /// Refuses to write to a file that may have another name outside the writable folders.
    fn check_links(&self, path: &Path, status: &Stat) -> Result<(), CallError> {
        let Broker { links, guard, plan, .. } = self.broker;
        match status.st_nlink > 1
            && guard.area(path) == Area::Writable
            && !links.are_all_inside(status, guard, plan)
        {
            true => Err(CallError::Refused(DeniedCall::HardLink)),
            false => Ok(()),
        }
    }

    /// Returns the permissions of a new file: those that the caller requests, without those in its umask.
    fn new_mode(&self, mode: u64) -> Result<Mode, CallError> {
        let umask = self.caller.status()?.umask;
        Ok(Mode::from_raw_mode(low_bits(mode) & 0o7777 & !umask))
    }
}

/// Opens a named pipe, if somebody has opened its other end.
fn open_pipe(file: &OwnedFd, flags: OFlags) -> Result<CallResult, CallError> {
    match open_without_waiting(file, flags) {
        // For reading, it can be opened in any case. This lets somebody open it for writing.
        Ok(pipe) if is_reading(flags) => Ok(CallResult::Wait { pipe, flags }),
        Err(Errno::NXIO) => {
            let pipe = rustix::io::fcntl_dupfd_cloexec(file, 3)?;
            Ok(CallResult::Wait { pipe, flags })
        }
        result => Ok(handle_result(result?, flags)),
    }
}

/// Opens a pipe that a call waits for; fails with `NXIO` as long as nobody uses its other end.
pub(super) fn open_waiting_pipe(pipe: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    if !is_reading(flags) {
        return open_without_waiting(pipe, flags);
    }
    let mut state = [PollFd::new(pipe, PollFlags::IN)];
    match poll(&mut state, Some(&Timespec::default()))? {
        0 => Err(Errno::NXIO),
        // A writer has written something, or has closed the pipe.
        _ => {
            fcntl_setfl(pipe, reopen_flags(flags))?;
            rustix::io::fcntl_dupfd_cloexec(pipe, 3)
        }
    }
}

fn open_without_waiting(pipe: &OwnedFd, flags: OFlags) -> Result<OwnedFd, Errno> {
    let reopen_flags = reopen_flags(flags);
    let handle = open(own_link(pipe.as_fd()), reopen_flags | OFlags::NONBLOCK, Mode::empty())?;
    if !is_reading(flags) {
        fcntl_setfl(&handle, reopen_flags)?;
    }
    Ok(handle)
}

/// The flags with which this process opens a file for the caller.
fn own_flags(flags: OFlags) -> OFlags {
    flags | OFlags::CLOEXEC | OFlags::NOCTTY
}

/// The flags with which this process opens a file that it has a handle of.
fn reopen_flags(flags: OFlags) -> OFlags {
    own_flags(flags) - OFlags::CREATE - OFlags::EXCL - OFlags::NOFOLLOW
}

/// Whether a file is opened only for reading.
fn is_reading(flags: OFlags) -> bool {
    flags & OFlags::RWMODE == OFlags::RDONLY
}

/// Whether opening a named pipe waits for the other end.
fn is_waiting(flags: OFlags) -> bool {
    flags & OFlags::RWMODE != OFlags::RDWR && !flags.contains(OFlags::NONBLOCK)
}

fn handle_result(handle: OwnedFd, flags: OFlags) -> CallResult {
    CallResult::Handle { handle, close_on_exec: flags.contains(OFlags::CLOEXEC) }
}

fn device(number: Dev) -> (u32, u32) {
    (rustix::fs::major(number), rustix::fs::minor(number))
}

/// Flags and modes are 32 bits wide; the kernel ignores the rest.
#[expect(clippy::cast_possible_truncation, reason = "the kernel ignores the upper half too")]
fn low_bits(argument: u64) -> u32 {
    argument as u32
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the kernel takes the lower half as a signed number too"
)]
fn handle_number(argument: u64) -> i32 {
    argument as i32
}

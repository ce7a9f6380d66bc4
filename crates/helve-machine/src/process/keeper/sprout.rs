//! A process that is about to become a program: it does what its order says, and executes.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

use helve_core::process::Confine;
use rustix::fs::Access;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};
use rustix::process::{Pid, Signal, WaitOptions};

use crate::confine::{self, DenialListener, DenialReports};
use crate::process::sys::{self, Memory, Texts};
use crate::process::wire::{self, Failure, LISTENER, MOST_FAILURE, Order, Step};

/// Where programs are looked for if the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// A program that has been executed.
pub(super) struct Started {
    pub(super) pid: Pid,
    /// Where the system tells what it is refused, if it is confined.
    pub(super) listener: Option<DenialListener>,
}

/// Starts a program, which has been executed when this returns. Where it could not even say why that failed, its end tells.
pub(super) fn start(order: &Order, output: &OwnedFd) -> Result<Started, Failure> {
    let sprout = Sprout::new(order, output).map_err(|error| Failure::of(Step::Execute, error))?;
    let unprepared = |error| Failure::of(Step::Prepare, error);
    // When it becomes the program its end closes without a word.
    let (said, saying) =
        socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None)
            .map_err(unprepared)?;
    let memory = if order.confine.is_some() { Memory::Own } else { Memory::Shared };
    let pid = sys::start(memory, || {
        let failure = sprout.become_program(&saying);
        // If even this fails, the end of the process tells.
        wire::send(&saying, &failure.encode(), &[]).ok();
    });
    let pid = pid.map_err(unprepared)?;
    drop(saying);
    let (failure, listener) = last_words(&said);
    if failure.is_empty() {
        return Ok(Started { pid, listener });
    }
    rustix::process::waitpid(Some(pid), WaitOptions::empty()).ok();
    Err(Failure::decode(&failure))
}

/// What a process says until it has become the program or ended: why it could not, nothing if it could.
fn last_words(said: &OwnedFd) -> (Vec<u8>, Option<DenialListener>) {
    let (mut failure, mut handles) = (Vec::new(), Vec::new());
    let mut listener = None;
    while failure.len() < MOST_FAILURE {
        let mut buffer = [0; 512];
        match wire::receive(said, &mut buffer, &mut handles) {
            Ok(0) => break,
            Ok(count) => failure.extend(&buffer[..count]),
            // One that there was no room for tells nobody, and what it would have told of fails.
            Err(Errno::INTR | Errno::MFILE) => {}
            Err(_) => break,
        }
        if let Some(handle) = handles.pop() {
            failure.remove(0);
            listener = Some(handle.into());
        }
    }
    (failure, listener)
}

/// All that can be made ready beforehand: who works in the memory of another should leave nothing there.
struct Sprout<'a> {
    /// Where the program may be, in the order of PATH.
    places: Vec<CString>,
    arguments: Texts,
    environment: Texts,
    folder: CString,
    output: &'a OwnedFd,
    is_terminal: bool,
    confine: Option<&'a Confine>,
}

impl<'a> Sprout<'a> {
    fn new(order: &'a Order, output: &'a OwnedFd) -> Result<Self, Errno> {
        let arguments: Vec<_> =
            order.program.iter().map(|word| text(word.as_bytes())).collect::<Result<_, _>>()?;
        let variable = |(name, value): &(OsString, OsString)| {
            text([name.as_bytes(), b"=", value.as_bytes()].concat())
        };
        let environment: Vec<_> =
            order.environment.iter().map(variable).collect::<Result<_, _>>()?;
        Ok(Sprout {
            places: places(order)?,
            arguments: arguments.into(),
            environment: environment.into(),
            folder: text(order.folder.as_os_str().as_bytes())?,
            output,
            is_terminal: order.is_terminal,
            confine: order.confine.as_ref(),
        })
    }

    /// Answers why it could not.
    fn become_program(&self, warden: &OwnedFd) -> Failure {
        if let Err(error) = self.connect() {
            return Failure::of(Step::Prepare, error);
        }
        if let Err(error) = rustix::process::chdir(&self.folder) {
            return Failure::of(Step::Folder, error);
        }
        if let Some(plan) = self.confine
            && let Err(error) = confine(plan, warden)
        {
            return Failure::not_confined(&error);
        }
        // Should its warden be killed together with the keeper, this much is left to end it. It is lost with some changes
        // of identity, so it comes last.
        rustix::process::set_parent_process_death_signal(Some(Signal::KILL)).ok();
        Failure::of(Step::Execute, self.execute())
    }

    fn connect(&self) -> Result<(), Errno> {
        rustix::process::setsid()?;
        sys::unblock_signals()?;
        if self.is_terminal {
            rustix::process::ioctl_tiocsctty(self.output.as_fd())?;
            rustix::stdio::dup2_stdin(self.output)?;
        }
        rustix::stdio::dup2_stdout(self.output)?;
        rustix::stdio::dup2_stderr(self.output)
    }

    /// Tries the places where the program may be.
    fn execute(&self) -> Errno {
        let mut worst = Errno::NOENT;
        for place in &self.places {
            // Looking first costs less than trying, which copies the environment.
            if let Err(Errno::NOENT | Errno::NOTDIR) = rustix::fs::access(place, Access::EXISTS) {
                continue;
            }
            match sys::exec(place, &self.arguments, &self.environment) {
                Errno::NOENT | Errno::NOTDIR => {}
                // One that may not be executed is passed over for one that may.
                Errno::ACCESS => worst = Errno::ACCESS,
                error => return error,
            }
        }
        worst
    }
}

fn confine(plan: &Confine, warden: &OwnedFd) -> io::Result<()> {
    if let Some(listener) = confine::apply(plan, DenialReports::Listener)? {
        wire::send(warden, &[LISTENER], &[listener.as_fd()])?;
    }
    Ok(())
}

/// No text of the system's contains a null.
fn text(bytes: impl Into<Vec<u8>>) -> Result<CString, Errno> {
    CString::new(bytes).map_err(|_| Errno::INVAL)
}

fn places(order: &Order) -> Result<Vec<CString>, Errno> {
    let program = order.program.first().ok_or(Errno::INVAL)?;
    if program.as_bytes().contains(&b'/') {
        return Ok(vec![text(program.as_bytes())?]);
    }
    let path = order.environment.iter().find(|(name, _)| name == "PATH");
    let path = path.map_or(OsStr::new(DEFAULT_PATH), |(_, value)| value).as_bytes();
    let folders = path.split(|byte| *byte == b':').filter(|folder| !folder.is_empty());
    folders.map(|folder| text([folder, b"/", program.as_bytes()].concat())).collect()
}

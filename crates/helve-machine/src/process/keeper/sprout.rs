//! A process that is about to become a program: it waits for its order, does what it says, and executes.

use std::ffi::{CString, OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::fs::Access;
use rustix::io::Errno;

use crate::confine;
use crate::process::sys;
use crate::process::wire::{self, Failure, MOST_ORDER, Order, Step};

/// Where programs are looked for if the environment does not say.
const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Returns only where it did not become the program, or where no order came.
pub(super) fn become_program(helve: &OwnedFd) -> Result<(), Errno> {
    // All that depends on no order comes before it.
    rustix::process::setsid()?;
    sys::default_signals()?;
    let pid = rustix::process::getpid().as_raw_nonzero().get();
    wire::send(helve, &pid.to_le_bytes(), &[])?;
    let failure = match receive(helve) {
        Ok(None) => return Ok(()),
        Ok(Some((order, output))) => obey(&order, &output),
        Err(error) => Failure::of(Step::Order, error),
    };
    wire::send(helve, &failure.encode(), &[]).map(|_| ())
}

/// The order and the handle that its output goes to.
fn receive(helve: &OwnedFd) -> Result<Option<(Order, OwnedFd)>, Errno> {
    let mut handles = Vec::new();
    let mut bytes = vec![0; 4];
    let mut filled = 0;
    while filled < bytes.len() {
        match wire::receive(helve, &mut bytes[filled..], &mut handles) {
            Ok(0) => return Ok(None),
            Ok(count) => filled += count,
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error),
        }
        if filled == 4 && bytes.len() == 4 {
            let length = [bytes[0], bytes[1], bytes[2], bytes[3]];
            let length = usize::try_from(u32::from_le_bytes(length)).unwrap_or(usize::MAX);
            if length > MOST_ORDER {
                return Err(Errno::TOOBIG);
            }
            bytes.resize(4 + length, 0);
        }
    }
    let order = Order::decode(&bytes[4..]).ok_or(Errno::BADMSG)?;
    Ok(Some((order, handles.pop().ok_or(Errno::BADMSG)?)))
}

/// Answers why it could not.
fn obey(order: &Order, output: &OwnedFd) -> Failure {
    if let Err(error) = connect(order, output) {
        return Failure::of(Step::Prepare, error);
    }
    if let Err(error) = rustix::process::chdir(&order.folder) {
        return Failure::of(Step::Folder, error);
    }
    if let Some(plan) = &order.confine
        && let Err(error) = confine::apply(plan)
    {
        let number = Errno::from_io_error(&error).unwrap_or(Errno::NOTSUP);
        return Failure { step: Step::Confine, error: number, words: error.to_string() };
    }
    Failure::of(Step::Execute, execute(order))
}

fn connect(order: &Order, output: &OwnedFd) -> Result<(), Errno> {
    if order.is_terminal {
        rustix::process::ioctl_tiocsctty(output.as_fd())?;
        rustix::stdio::dup2_stdin(output)?;
    }
    rustix::stdio::dup2_stdout(output)?;
    rustix::stdio::dup2_stderr(output)
}

/// Tries the places where the program may be, in the order of PATH.
fn execute(order: &Order) -> Errno {
    let Some(program) = order.program.first() else { return Errno::INVAL };
    let Ok(arguments) = order.program.iter().map(text).collect::<Result<Vec<_>, _>>() else {
        return Errno::INVAL;
    };
    let environment: Result<Vec<_>, _> = order
        .environment
        .iter()
        .map(|(name, value)| CString::new([name.as_bytes(), b"=", value.as_bytes()].concat()))
        .collect();
    let Ok(environment) = environment else { return Errno::INVAL };
    let mut worst = Errno::NOENT;
    for place in places(program, &order.environment) {
        let Ok(place) = text(&place) else { return Errno::INVAL };
        // Looking first costs less than trying, which copies the environment.
        if let Err(Errno::NOENT | Errno::NOTDIR) = rustix::fs::access(&place, Access::EXISTS) {
            continue;
        }
        match sys::exec(&place, &arguments, &environment) {
            Errno::NOENT | Errno::NOTDIR => {}
            // One that may not be executed is passed over for one that may.
            Errno::ACCESS => worst = Errno::ACCESS,
            error => return error,
        }
    }
    worst
}

fn text(word: &OsString) -> Result<CString, std::ffi::NulError> {
    CString::new(word.as_bytes())
}

fn places(program: &OsStr, environment: &[(OsString, OsString)]) -> Vec<OsString> {
    if program.as_bytes().contains(&b'/') {
        return vec![program.into()];
    }
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| &**value);
    let path = path.unwrap_or(OsStr::new(DEFAULT_PATH)).as_bytes();
    let folders = path.split(|byte| *byte == b':').filter(|folder| !folder.is_empty());
    folders.map(|folder| Path::new(OsStr::from_bytes(folder)).join(program).into()).collect()
}

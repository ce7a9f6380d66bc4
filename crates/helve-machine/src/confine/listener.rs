//! Reports which kinds of calls a confined process was denied.
//!
//! Programs report a denial in their own words, or not at all. The kernel reports the call itself to the broker, which
//! denies it and sends one byte for each kind to the process that watches over the program.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use helve_core::process::DeniedCall;

/// The pipe on which denied calls are reported.
#[derive(Debug)]
pub struct DenialListener(OwnedFd);

impl From<OwnedFd> for DenialListener {
    fn from(handle: OwnedFd) -> Self {
        DenialListener(handle)
    }
}

impl AsFd for DenialListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl DenialListener {
    /// Returns the next kind of denied call. Call it when the handle is readable; `None` if nothing more will be
    /// reported.
    pub fn next_denied(&self) -> io::Result<Option<DeniedCall>> {
        let mut byte = [0];
        match rustix::io::retry_on_intr(|| rustix::io::read(&self.0, &mut byte))? {
            0 => Ok(None),
            _ => Ok(decode(byte[0])),
        }
    }
}

/// The byte that stands for each kind.
const KINDS: [(DeniedCall, u8); 5] = [
    (DeniedCall::Network, b'n'),
    (DeniedCall::Tracing, b't'),
    (DeniedCall::Protected, b'p'),
    (DeniedCall::HardLink, b'h'),
    (DeniedCall::Outside, b'o'),
];

pub(super) fn encode(denied: DeniedCall) -> u8 {
    KINDS.iter().find(|(kind, _)| *kind == denied).map_or(0, |(_, byte)| *byte)
}

fn decode(byte: u8) -> Option<DeniedCall> {
    KINDS.iter().find(|(_, encoded)| *encoded == byte).map(|(kind, _)| *kind)
}

/// Returns what is reported for a system call that is always denied; `None` for calls that depend on a path.
pub(super) fn denied_call(number: libc::c_long) -> Option<DeniedCall> {
    match number {
        libc::SYS_socket => Some(DeniedCall::Network),
        libc::SYS_ptrace | libc::SYS_process_vm_readv | libc::SYS_process_vm_writev => {
            Some(DeniedCall::Tracing)
        }
        _ => None,
    }
}

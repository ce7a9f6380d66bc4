//! Receives the system calls that a confined process was denied.
//!
//! Programs report a denial in their own words, or not at all. The kernel reports the call itself: it suspends the call
//! until it is answered, and every call is answered with a denial.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use helve_core::process::DeniedCall;

use super::syscalls;

/// The handle on which the kernel reports denied calls.
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
    /// Denies a suspended call and returns what it was. Call it when the handle is readable; `None` if the calling process
    /// is gone by then.
    pub fn deny_next(&self) -> io::Result<Option<DeniedCall>> {
        let deny_next = || -> io::Result<libc::c_int> {
            let call = syscalls::receive_call(self.as_fd())?;
            syscalls::deny_call(self.as_fd(), call.id, libc::EPERM)?;
            Ok(call.data.nr)
        };
        match deny_next() {
            Ok(number) if libc::c_long::from(number) == libc::SYS_socket => {
                Ok(Some(DeniedCall::Network))
            }
            Ok(_) => Ok(Some(DeniedCall::Tracing)),
            Err(err) => match err.raw_os_error() {
                Some(libc::ENOENT | libc::EINTR) => Ok(None),
                Some(_) | None => Err(err),
            },
        }
    }
}

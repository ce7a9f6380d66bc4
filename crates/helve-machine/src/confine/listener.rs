//! Hearing of what a confined program asks for and does not get.
//!
//! Programs tell of a refusal in words of their own, or not at all. The system tells which it was: the call is held up
//! until it is answered, and it is always answered with a refusal.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use helve_core::process::Withheld;

use super::calls;

#[derive(Debug)]
pub struct Listener(OwnedFd);

impl From<OwnedFd> for Listener {
    fn from(handle: OwnedFd) -> Self {
        Listener(handle)
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Listener {
    /// Refuses a call that is held up, and says what it was. To be called when there is something to read; it may be gone
    /// by then, with who asked.
    pub fn refuse(&self) -> io::Result<Option<Withheld>> {
        let refuse = || -> io::Result<libc::c_int> {
            let call = calls::held_up(self.as_fd())?;
            calls::fail(self.as_fd(), call.id, libc::EPERM)?;
            Ok(call.data.nr)
        };
        match refuse() {
            Ok(number) if libc::c_long::from(number) == libc::SYS_socket => {
                Ok(Some(Withheld::Network))
            }
            Ok(_) => Ok(Some(Withheld::Tracing)),
            Err(err) => match err.raw_os_error() {
                Some(libc::ENOENT | libc::EINTR) => Ok(None),
                Some(_) | None => Err(err),
            },
        }
    }
}

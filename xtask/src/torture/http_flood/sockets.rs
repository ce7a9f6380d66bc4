//! Non-blocking connections from several local addresses, and file handle limits.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Number of local addresses. A single address has too few ports for all connections.
const SOURCE_ADDRESSES: u32 = 16;

/// Limits the open file handles of this process and of processes that it starts from now on.
pub(super) fn limit_handles(limit: u64) -> Result<(), String> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(limit.min(maximum.unwrap_or(u64::MAX)));
    setrlimit(Resource::Nofile, Rlimit { current, maximum })
        .map_err(|error| format!("limit of {limit} file handles: {error}"))
}

/// Starts a non-blocking connection from one of several addresses.
pub(super) fn open(to: SocketAddr) -> io::Result<TcpStream> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let source = NEXT.fetch_add(1, Ordering::Relaxed) % SOURCE_ADDRESSES;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    let from = Ipv4Addr::from_bits(Ipv4Addr::new(127, 0, 1, 1).to_bits() + source);
    bind(&socket, &SocketAddrV4::new(from, 0))?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// Writes as much as possible without blocking. Returns `None` if the connection is closed.
pub(super) fn try_write(stream: &mut TcpStream, bytes: &[u8]) -> Option<usize> {
    match stream.write(bytes) {
        Ok(count) => Some(count),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(0),
        // The connection is not established yet.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Some(0),
        Err(_) => None,
    }
}

/// Reads the status code of the response, or returns 0 if there is none.
pub(super) fn read_status(stream: &mut TcpStream) -> u16 {
    let mut head = [0; 16];
    let mut read = 0;
    while read < 12 {
        match stream.read(&mut head[read..]) {
            Ok(0) | Err(_) => return 0,
            Ok(count) => read += count,
        }
    }
    std::str::from_utf8(&head[9..12]).ok().and_then(|code| code.parse().ok()).unwrap_or(0)
}

//! Connections of an attacker: many, from several addresses, and never waited for.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, connect, socket_with};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// One address of ours has too few ports for all connections.
const SOURCES: u32 = 16;

/// Sets how many handles this process, and those it starts from now on, may have.
pub(super) fn limit_handles(most: u64) -> Result<(), String> {
    let maximum = getrlimit(Resource::Nofile).maximum;
    let current = Some(most.min(maximum.unwrap_or(u64::MAX)));
    setrlimit(Resource::Nofile, Rlimit { current, maximum })
        .map_err(|error| format!("{most} file handles: {error}"))
}

/// A connection that is being made, from one of several addresses; nothing on it waits.
pub(super) fn open(to: SocketAddr) -> io::Result<TcpStream> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let source = NEXT.fetch_add(1, Ordering::Relaxed) % SOURCES;
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::INET, SocketType::STREAM, flags, None)?;
    let from = Ipv4Addr::from_bits(Ipv4Addr::new(127, 0, 1, 1).to_bits() + source);
    bind(&socket, &SocketAddrV4::new(from, 0))?;
    match connect(&socket, &to) {
        Ok(()) | Err(Errno::INPROGRESS) => Ok(TcpStream::from(socket)),
        Err(error) => Err(error.into()),
    }
}

/// Writes what can be written now; `None` when the connection is gone.
pub(super) fn push(stream: &mut TcpStream, bytes: &[u8]) -> Option<usize> {
    match stream.write(bytes) {
        Ok(count) => Some(count),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Some(0),
        // Still being connected.
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Some(0),
        Err(_) => None,
    }
}

/// Sends and reads the status of the answer, waiting for both; 0 where none came.
pub(super) fn status(stream: &mut TcpStream) -> u16 {
    let mut answer = [0; 16];
    let mut read = 0;
    while read < 12 {
        match stream.read(&mut answer[read..]) {
            Ok(0) | Err(_) => return 0,
            Ok(count) => read += count,
        }
    }
    std::str::from_utf8(&answer[9..12]).ok().and_then(|code| code.parse().ok()).unwrap_or(0)
}

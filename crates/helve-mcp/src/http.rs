//! The door for many clients: streamable HTTP on one port, for who has the token.

mod body;
mod front;
mod guard;
mod lobby;
mod reply;
mod sessions;
mod stall;
mod token;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::hall::Hall;
use crate::{Door, PATIENCE, ServeError};
use front::Front;
use guard::Addresses;
use lobby::{Lobby, Room, Seat};
use stall::Stalling;
pub use token::{BadToken, Token};

/// How long a client may take to say what it wants, from the first byte or the last answer on.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a client may leave us waiting to be read.
const STALL_TIME: Duration = Duration::from_secs(30);
const MOST_HEADERS: usize = 64;
const MOST_HEAD: usize = 16 << 10;
/// The most of a connection that is read ahead.
const MOST_AHEAD: usize = 64 << 10;
/// Connections that the system may keep waiting for us; beyond them it keeps their clients waiting, for a second or more.
const MOST_AT_THE_DOOR: u32 = 4096;
/// How long to wait when the system has no more file handles for connections.
const BREATH: Duration = Duration::from_millis(10);

/// What is served over HTTP besides the door.
pub struct Web {
    /// Without it nobody is served anything.
    pub token: Token,
    /// The agents that can be addressed, as `/mcp/NAME`.
    pub agents: Vec<String>,
    /// The folder, for the page that says how things stand.
    pub folder: String,
}

/// A port that is ours.
pub struct Http {
    listener: TcpListener,
    address: SocketAddr,
}

impl Http {
    /// Takes the port; 0 takes any.
    pub async fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let taken = |err: io::Error| match err.kind() {
            io::ErrorKind::AddrInUse => ServeError::PortInUse(address),
            _ => ServeError::NoPort { address, why: err.to_string() },
        };
        let listener = listen(address).map_err(taken)?;
        let address = listener.local_addr().map_err(taken)?;
        Ok(Self { listener, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` fires; then calls are cancelled and waited for, and the store is flushed.
    pub async fn serve(self, door: Door, web: Web, stop: CancellationToken) {
        let calls = stop.child_token();
        let _ends_with_us = calls.clone().drop_guard();
        let hall = Hall::new(door, calls.clone());
        let front = Front::new(hall.clone(), web);
        let sweeping = tokio::spawn(front.clone().sweep(calls.clone()));
        let lobby = Lobby::new(Room::here());
        let tasks = TaskTracker::new();
        while let Some(stream) = self.next(&lobby, &calls).await {
            let seat = lobby.enter().await;
            tasks.spawn(connection(stream, front.clone(), seat, calls.clone()));
        }
        calls.cancel();
        tasks.close();
        // What does not end in time ends with the process.
        timeout(PATIENCE, tasks.wait()).await.ok();
        sweeping.await.ok();
        hall.all_end().await;
    }

    async fn next(&self, lobby: &Lobby, stop: &CancellationToken) -> Option<TcpStream> {
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => return None,
            };
            match accepted {
                Ok((stream, _)) => return Some(stream),
                // The client's own affair.
                Err(err) if err.kind() == io::ErrorKind::ConnectionAborted => {}
                // There is no handle left, which is no reason to end, nor to try in a loop.
                Err(_) => {
                    lobby.make_room();
                    sleep(BREATH).await;
                }
            }
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the server's own port")]
fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // So that the port is free again as soon as we have ended; elsewhere it would let others share it.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    await_words(&socket);
    socket.listen(MOST_AT_THE_DOOR)
}

/// Lets the system wait for the first words of a connection: who says nothing takes no seat, and who says all at once is
/// heard as soon as there is one.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no crate of ours offers this option")]
fn await_words(socket: &TcpSocket) {
    use std::os::fd::AsRawFd;
    let seconds = libc::c_int::try_from(HEAD_TIME.as_secs()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the handle is open while `socket` is borrowed, and the option is read during the call only.
    unsafe {
        // Where it cannot be had, nothing but the time of who is silent changes.
        libc::setsockopt(
            socket.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_DEFER_ACCEPT,
            std::ptr::from_ref(&seconds).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        );
    }
}

#[cfg(not(target_os = "linux"))]
fn await_words(_socket: &TcpSocket) {}

async fn connection(
    stream: TcpStream,
    front: Arc<Front>,
    seat: Arc<Seat>,
    stop: CancellationToken,
) {
    let Ok(local) = stream.local_addr() else { return };
    // Small answers must not wait for more to send. Where that cannot be had, they do.
    stream.set_nodelay(true).ok();
    let addresses = Arc::new(Addresses::of(local));
    let sits = seat.clone();
    let service =
        service_fn(move |request| front.clone().answer(request, addresses.clone(), sits.clone()));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    builder.max_headers(MOST_HEADERS).max_header_size(MOST_HEAD).max_buf_size(MOST_AHEAD);
    let io = TokioIo::new(Stalling::new(stream, STALL_TIME));
    let mut served = std::pin::pin!(builder.serve_connection(io, service));
    tokio::select! {
        // What has arrived is heard first, also of who is to make room.
        biased;
        // However it went, it is the client's affair.
        _ = served.as_mut() => return,
        () = seat.shown_out() => return,
        () = stop.cancelled() => served.as_mut().graceful_shutdown(),
    }
    timeout(PATIENCE, served).await.ok();
}

#[cfg(test)]
mod tests;

//! The door for many clients: streamable HTTP on one port, for who has the token.

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
use tokio::net::{TcpListener, TcpStream};
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::hall::Hall;
use crate::{Door, PATIENCE, ServeError};
use front::Front;
use guard::Addresses;
use lobby::{Lobby, Seat};
use stall::Stalling;
pub use token::{BadToken, Token};

/// How long a client may take to say what it wants, from the first byte or the last answer on.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a client may leave us waiting to be read.
const STALL_TIME: Duration = Duration::from_secs(30);
const MOST_HEADERS: usize = 64;
const MOST_HEAD: usize = 16 << 10;
/// How long to wait when the system has no more file handles for connections.
const BREATH: Duration = Duration::from_millis(50);

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
    #[expect(clippy::disallowed_methods, reason = "this is the server's own port")]
    pub async fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let taken = |err: io::Error| match err.kind() {
            io::ErrorKind::AddrInUse => ServeError::PortInUse(address),
            _ => ServeError::NoPort { address, why: err.to_string() },
        };
        let listener = TcpListener::bind(address).await.map_err(taken)?;
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
        let lobby = Arc::new(Lobby::default());
        let tasks = TaskTracker::new();
        while let Some(stream) = self.next(&calls).await {
            // A connection too many is closed unheard.
            let Some(seat) = lobby.enter() else { continue };
            tasks.spawn(connection(stream, front.clone(), seat, calls.clone()));
        }
        calls.cancel();
        tasks.close();
        // What does not end in time ends with the process.
        timeout(PATIENCE, tasks.wait()).await.ok();
        sweeping.await.ok();
        hall.all_end().await;
    }

    async fn next(&self, stop: &CancellationToken) -> Option<TcpStream> {
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = stop.cancelled() => return None,
            };
            match accepted {
                Ok((stream, _)) => return Some(stream),
                // The client's own, or there is no handle left: neither is a reason to end.
                Err(_) => sleep(BREATH).await,
            }
        }
    }
}

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
    let shown_out = seat.shown_out();
    let service =
        service_fn(move |request| front.clone().answer(request, addresses.clone(), seat.clone()));
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    builder.max_headers(MOST_HEADERS).max_header_size(MOST_HEAD);
    let io = TokioIo::new(Stalling::new(stream, STALL_TIME));
    let mut served = std::pin::pin!(builder.serve_connection(io, service));
    tokio::select! {
        // However it went, it is the client's affair.
        _ = served.as_mut() => return,
        () = shown_out.cancelled() => return,
        () = stop.cancelled() => served.as_mut().graceful_shutdown(),
    }
    timeout(PATIENCE, served).await.ok();
}

#[cfg(test)]
mod tests;

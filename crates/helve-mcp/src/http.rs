//! Serves many clients over streamable HTTP on one port. Every request needs the token.

mod admission;
mod body;
mod guard;
mod reply;
mod router;
mod sessions;
mod token;
mod write_timeout;

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

use crate::state::ServerState;
use crate::{McpConfig, SHUTDOWN_TIME, ServeError};
use admission::{Admission, ConnectionLimits, ConnectionPermit};
use guard::OwnAddresses;
use router::Router;
pub use token::{BadToken, Token};
use write_timeout::WriteTimeout;

/// How long a client may take to send a request's head, counted from its first byte or from the last answer.
const HEAD_TIME: Duration = Duration::from_secs(10);
/// How long a write to a client may make no progress.
const WRITE_TIME: Duration = Duration::from_secs(30);
const MAX_HEADERS: usize = 64;
const MAX_HEAD: usize = 16 << 10;
/// Maximum number of bytes buffered per connection.
const MAX_BUFFERED: usize = 64 << 10;
/// Length of the accept queue. When it is full, clients wait for a second or more.
const ACCEPT_QUEUE: u32 = 4096;
/// How long to wait after `accept` failed, usually for lack of file descriptors.
const ACCEPT_RETRY: Duration = Duration::from_millis(10);

/// Settings of the HTTP server besides those of [`McpConfig`].
pub struct HttpConfig {
    /// Required with every request.
    pub token: Token,
    /// The agents reachable as `/mcp/NAME`.
    pub agents: Vec<String>,
    /// The workspace folder, shown on the status page.
    pub folder: String,
}

/// A server that is bound to a port and not serving yet.
pub struct HttpServer {
    listener: TcpListener,
    address: SocketAddr,
}

impl HttpServer {
    /// Binds the port; 0 picks a free one.
    pub async fn bind(address: SocketAddr) -> Result<Self, ServeError> {
        let failed = |err: io::Error| match err.kind() {
            io::ErrorKind::AddrInUse => ServeError::PortInUse(address),
            _ => ServeError::CannotListen { address, why: err.to_string() },
        };
        let listener = listen(address).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, address })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until `stop` is cancelled. Then calls are cancelled and awaited, and the store is flushed.
    pub async fn serve(self, config: McpConfig, http: HttpConfig, stop: CancellationToken) {
        let cancel_calls = stop.child_token();
        let _cancel_on_drop = cancel_calls.clone().drop_guard();
        let state = ServerState::new(config, cancel_calls.clone());
        let router = Router::new(state.clone(), http);
        let session_sweeper = tokio::spawn(router.clone().sweep(cancel_calls.clone()));
        let admission = Admission::new(ConnectionLimits::of_this_process());
        let tasks = TaskTracker::new();
        while let Some(stream) = self.accept(&admission, &cancel_calls).await {
            let permit = admission.admit().await;
            tasks.spawn(serve_connection(stream, router.clone(), permit, cancel_calls.clone()));
        }
        cancel_calls.cancel();
        tasks.close();
        // Connections that do not end in time end with the process.
        timeout(SHUTDOWN_TIME, tasks.wait()).await.ok();
        session_sweeper.await.ok();
        state.shutdown().await;
    }

    async fn accept(
        &self,
        admission: &Admission,
        cancel_calls: &CancellationToken,
    ) -> Option<TcpStream> {
        loop {
            let accepted = tokio::select! {
                accepted = self.listener.accept() => accepted,
                () = cancel_calls.cancelled() => return None,
            };
            match accepted {
                Ok((stream, _)) => return Some(stream),
                // The client closed the connection before it was accepted.
                Err(err) if err.kind() == io::ErrorKind::ConnectionAborted => {}
                // Usually there are no file descriptors left. Free one and try again soon.
                Err(_) => {
                    admission.evict_one();
                    sleep(ACCEPT_RETRY).await;
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
    // Makes the port available again as soon as the server has ended. On other systems the option would let other
    // processes share the port.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    defer_accept(&socket);
    socket.listen(ACCEPT_QUEUE)
}

/// Makes the system accept a connection only when its first bytes have arrived, so that silent clients do not
/// use up connections.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "no dependency offers this option")]
fn defer_accept(socket: &TcpSocket) {
    use std::os::fd::AsRawFd;
    let seconds = libc::c_int::try_from(HEAD_TIME.as_secs()).unwrap_or(libc::c_int::MAX);
    // SAFETY: the descriptor is open while `socket` is borrowed, and the option is read during the call only.
    unsafe {
        // A failure is harmless: silent clients then use up connections until they time out.
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
fn defer_accept(_socket: &TcpSocket) {}

async fn serve_connection(
    stream: TcpStream,
    router: Arc<Router>,
    permit: Arc<ConnectionPermit>,
    cancel_calls: CancellationToken,
) {
    let Ok(local) = stream.local_addr() else { return };
    // Avoids a delay of small answers. Without the option they are only slower.
    stream.set_nodelay(true).ok();
    let addresses = Arc::new(OwnAddresses::for_socket(local));
    let request_permit = permit.clone();
    let service = service_fn(move |request| {
        router.clone().answer(request, addresses.clone(), request_permit.clone())
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIME);
    builder.max_headers(MAX_HEADERS).max_header_size(MAX_HEAD).max_buf_size(MAX_BUFFERED);
    let io = TokioIo::new(WriteTimeout::new(stream, WRITE_TIME));
    let mut served = std::pin::pin!(builder.serve_connection(io, service));
    tokio::select! {
        // A request that has already arrived is answered, even on a connection that is being evicted.
        biased;
        // Errors concern only this client.
        _ = served.as_mut() => return,
        () = permit.evicted() => return,
        () = cancel_calls.cancelled() => served.as_mut().graceful_shutdown(),
    }
    timeout(SHUTDOWN_TIME, served).await.ok();
}

#[cfg(test)]
mod tests;

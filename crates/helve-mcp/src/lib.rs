//! The MCP server: maps connections to sessions. No other crate sees rmcp's server types.

mod asks;
mod call;
mod client_session;
mod http;
mod in_flight;
mod parked;
mod prompts;
mod render;
mod server;
mod state;
mod transport;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use helve_core::{Engine, Person, Registry, Session};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use crate::http::{BadToken, HttpConfig, HttpServer, Token};
pub use crate::prompts::{PromptPiece, Prompts};

use crate::in_flight::InFlightRequests;
use crate::server::McpServer;
use crate::state::ServerState;
use crate::transport::{LineTransport, MAX_DISCARDED};

/// Configuration of a server: everything its connections share.
pub struct McpConfig {
    pub engine: Arc<Engine>,
    /// The tools of the workspace that all sessions work in.
    pub registry: Arc<Registry>,
    /// Opens the session of a client, once, when the client has identified itself. Returns `None` if the
    /// requested agent does not exist.
    pub open_session: Box<dyn Fn(SessionRequest) -> Option<Arc<Session>> + Send + Sync>,
    /// Name that the server reports to clients.
    pub name: String,
    pub version: String,
    /// Instructions to the model about the server as a whole.
    pub instructions: Option<String>,
    /// The prompts (slash commands) that clients show to the person.
    pub prompts: Arc<dyn Prompts>,
    pub metadata: MetadataMode,
}

/// A client's request for a session.
pub struct SessionRequest {
    pub client: ClientInfo,
    /// The agent named in the URL.
    pub agent: Option<String>,
    /// Answers questions that the client's calls raise.
    pub person: Arc<dyn Person>,
}

/// Name and version that a client reports for itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ClientInfo {
    pub name: String,
    pub version: String,
}

/// Where a result carries the metadata of a tool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MetadataMode {
    /// Only in `_meta`, which models do not see.
    #[default]
    Hidden,
    /// Also as structured content, together with the text, for programs. Most agents show this to the model
    /// instead of the text.
    Structured,
}

/// Why serving ended before the client disconnected.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    #[error("the MCP client cannot be reached: {0}")]
    Unreachable(String),
    #[error("the MCP connection failed: {0}")]
    Failed(String),
    #[error(
        "the MCP client sent a message that did not end within {0} bytes, and the connection was closed"
    )]
    Endless(usize),
    #[error("{0} is in use by another program; choose another port with --port, or 0 for any")]
    PortInUse(SocketAddr),
    #[error("cannot listen on {address}: {why}")]
    CannotListen { address: SocketAddr, why: String },
}

/// How long calls may take to end after they were cancelled.
const SHUTDOWN_TIME: Duration = Duration::from_secs(3);
/// How long the store may take to write its pending data.
const FLUSH_TIME: Duration = Duration::from_secs(5);

/// Serves the client on standard input and output until it disconnects or `stop` is cancelled.
///
/// Must run inside a tokio runtime with I/O and time enabled. Nothing else may write to standard output.
pub async fn serve_stdio(config: McpConfig, stop: CancellationToken) -> Result<(), ServeError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve(config, input, output, stop).await
}

/// Serves a client over any pair of byte streams, one JSON message per line.
///
/// When the input ends, calls that are still running are cancelled and awaited, and the store is flushed.
pub async fn serve<R, W>(
    config: McpConfig,
    input: R,
    output: W,
    stop: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let cancel_calls = stop.child_token();
    let _cancel_on_drop = cancel_calls.clone().drop_guard();
    let requests = InFlightRequests::default();
    let transport = LineTransport::new(input, output, requests.clone(), cancel_calls.clone());
    let endless_line = transport.endless_line();
    let state = ServerState::new(config, cancel_calls.clone());
    let server = McpServer::new(state.clone());
    // rmcp gets no token of its own, because it would not wait long enough for the last answers; it ends when the
    // transport ends.
    let served = match server.serve(transport).await {
        Ok(running) => match running.waiting().await {
            Ok(_) => Ok(()),
            Err(err) => Err(ServeError::Failed(err.to_string())),
        },
        Err(error) => handshake_result(error),
    };
    cancel_calls.cancel();
    // Calls that do not end in time end with the process.
    timeout(SHUTDOWN_TIME, requests.wait_for_all()).await.ok();
    state.shutdown().await;
    if endless_line.is_set() { Err(ServeError::Endless(MAX_DISCARDED)) } else { served }
}

/// Maps a failed handshake to a result. A client that disconnects before `initialize` is not an error.
fn handshake_result(why: ServerInitializeError) -> Result<(), ServeError> {
    match why {
        ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled => Ok(()),
        ServerInitializeError::TransportError { error, .. } => {
            Err(ServeError::Unreachable(error.error.to_string()))
        }
        ServerInitializeError::InitializeFailed(error) => {
            Err(ServeError::Failed(error.message.into_owned()))
        }
        // The other variants contain the whole message, which may be large.
        _ => Err(ServeError::Failed("the first request was not `initialize`".into())),
    }
}

#[cfg(test)]
mod tests;

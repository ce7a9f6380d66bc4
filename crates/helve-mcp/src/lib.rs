//! The MCP server: connections to sessions. The only crate that sees rmcp's server types.

mod asks;
mod call;
mod flight;
mod hall;
mod http;
mod park;
mod render;
mod server;
mod visit;
mod wire;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use helve_core::{Engine, Person, Session};
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

pub use crate::http::{BadToken, Http, Token, Web};

use crate::flight::Flights;
use crate::hall::Hall;
use crate::server::Server;
use crate::wire::{MOST_PASSED, Wire};

/// What clients are served with.
pub struct Door {
    pub engine: Arc<Engine>,
    /// Makes a client's session, once, as soon as the client has said who it is. `None` where there is
    /// no agent of the name it wants.
    pub open: Box<dyn Fn(Visitor) -> Option<Arc<Session>> + Send + Sync>,
    /// What the server calls itself.
    pub name: String,
    pub version: String,
    /// What a model is told about the server as a whole.
    pub instructions: Option<String>,
    pub metadata: Metadata,
}

/// Who wants a session.
pub struct Visitor {
    pub client: Client,
    /// The agent that the address names.
    pub agent: Option<String>,
    /// Whoever sits at the client, for questions that its calls bring up.
    pub person: Arc<dyn Person>,
}

/// Who is at the other end, in its own words.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Client {
    pub name: String,
    pub version: String,
}

/// Where a result carries what tools tell programs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Metadata {
    /// In `_meta`, which models are not shown.
    #[default]
    Aside,
    /// Also as structured content, with the text: for programs. Most agents show a model that instead
    /// of the text itself.
    Structured,
}

/// Why serving ended before the client did.
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
    #[error("{address} cannot be listened at: {why}")]
    NoPort { address: SocketAddr, why: String },
}

/// How long running calls may take to end once they were cancelled.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the store may take to write what it holds.
const FLUSH: Duration = Duration::from_secs(5);

/// Serves the client at standard input and output until it leaves or `stop` fires.
///
/// Must run inside a tokio runtime with I/O and time enabled. Nothing else may write to standard output.
pub async fn serve_stdio(door: Door, stop: CancellationToken) -> Result<(), ServeError> {
    let (input, output) = rmcp::transport::stdio_pipes();
    serve(door, input, output, stop).await
}

/// Serves a client over any pair of byte streams, one JSON message a line.
///
/// When the input ends, calls that are still running are cancelled and waited for, and the store is flushed.
pub async fn serve<R, W>(
    door: Door,
    input: R,
    output: W,
    stop: CancellationToken,
) -> Result<(), ServeError>
where
    R: AsyncRead + Send + Unpin + 'static,
    W: AsyncWrite + Send + Unpin + 'static,
{
    let calls = stop.child_token();
    let _ends_with_us = calls.clone().drop_guard();
    let flights = Flights::default();
    let wire = Wire::new(input, output, flights.clone(), calls.clone());
    let endless = wire.endless();
    let hall = Hall::new(door, calls.clone());
    let server = Server::new(hall.clone());
    // `stop` reaches rmcp as the end of the wire: told by a token, it would wait for last answers
    // less long than a cancelled call may take.
    let served = match server.serve(wire).await {
        Ok(running) => match running.waiting().await {
            Ok(_why) => Ok(()),
            Err(broken) => Err(ServeError::Failed(broken.to_string())),
        },
        Err(unopened) => not_opened(unopened),
    };
    calls.cancel();
    // What does not end in time ends with the process.
    timeout(PATIENCE, flights.all_landed()).await.ok();
    hall.all_end().await;
    if endless.came() { Err(ServeError::Endless(MOST_PASSED)) } else { served }
}

/// A client that leaves before it says who it is has done nothing wrong.
fn not_opened(why: ServerInitializeError) -> Result<(), ServeError> {
    match why {
        ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled => Ok(()),
        ServerInitializeError::TransportError { error, .. } => {
            Err(ServeError::Unreachable(error.error.to_string()))
        }
        ServerInitializeError::InitializeFailed(error) => {
            Err(ServeError::Failed(error.message.into_owned()))
        }
        // The others quote the whole message, which may be large and is not for a terminal.
        _ => Err(ServeError::Failed("it did not begin with `initialize`".into())),
    }
}

#[cfg(test)]
mod tests;

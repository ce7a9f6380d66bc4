//! Opens connections: starts the process or connects to the URL, does the handshake, lists the tools, each within a
//! time limit.

use std::collections::HashMap;
use std::sync::Arc;

use helve_core::ServerError;
use helve_core::server::ServerStep;
use http::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::service::{ClientInitializeError, RunningService, serve_client};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClientTransportConfig,
};
use tokio::time::timeout;

use super::child::{self, LaunchRequest, ProcessHandle, ServerProcess};
use super::events::{EventHandler, ServerEvents};
use super::http::{HttpClient, HttpError};
use super::live_server::LiveServer;
use super::managed::ManagedServer;
use super::pipe::{MAX_MESSAGE, PipeReport, PipeTransport};
use crate::config::{ServerTransport, WithSource};

/// An open connection.
pub(super) struct Connection {
    pub(super) live: Arc<LiveServer>,
    pub(super) service: RunningService<RoleClient, EventHandler>,
    pub(super) endpoint: Endpoint,
}

/// The other end of a connection. Knows why the connection ended.
pub(super) enum Endpoint {
    Local { process: Arc<ProcessHandle>, report: Arc<PipeReport> },
    Remote,
}

impl Endpoint {
    /// Returns why the connection ended. Ends the process if it is still running.
    pub(super) async fn finish(&self, managed: &ManagedServer) -> ServerError {
        match self {
            Endpoint::Remote => ServerError::Ended { why: "the connection was closed".into() },
            Endpoint::Local { process, report } => {
                let why = managed.secrets.hide(&process.describe_end().await);
                process.stop();
                process.wait().await;
                if report.too_large() {
                    ServerError::TooLarge { limit: MAX_MESSAGE }
                } else {
                    ServerError::Ended { why }
                }
            }
        }
    }

    /// Returns a note about output of a local server that is not part of the protocol.
    pub(super) fn connection_note(&self) -> Option<String> {
        match self {
            Endpoint::Local { report, .. } => report.note(),
            Endpoint::Remote => None,
        }
    }
}

pub(super) async fn open(managed: &ManagedServer) -> Result<Connection, ServerError> {
    let limit = managed.start_limit();
    let events = Arc::new(ServerEvents::default());
    let handler = EventHandler(events.clone());
    let (opening, endpoint) = match &managed.config.transport {
        ServerTransport::Local { command, environment, cwd } => {
            let process = start_process(managed, command, environment, cwd.as_ref()).await?;
            let report = Arc::new(PipeReport::default());
            let transport = PipeTransport::new(process.output, process.input, report.clone());
            let opening = timeout(limit, serve_client(handler, transport)).await;
            (opening, Endpoint::Local { process: process.handle, report })
        }
        ServerTransport::Remote { url, headers } => {
            let client =
                HttpClient::new().map_err(|err| unreachable_error(managed, &err.to_string()))?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.value.as_str());
            config.custom_headers = header_map(managed, headers)?;
            let transport = StreamableHttpClientTransport::with_client(client, config);
            (timeout(limit, serve_client(handler, transport)).await, Endpoint::Remote)
        }
    };
    let service = match opening {
        Ok(Ok(service)) => service,
        Ok(Err(error)) => return Err(handshake_failed(managed, &endpoint, &error).await),
        Err(_) => return Err(no_answer(managed, &endpoint, ServerStep::Start).await),
    };
    let live = LiveServer::new(service.peer().clone(), events, endpoint.connection_note());
    match timeout(limit, live.refresh_tools(managed)).await {
        Ok(Ok(())) => Ok(Connection { live: Arc::new(live), service, endpoint }),
        Ok(Err(error)) => match endpoint.finish(managed).await {
            // If the process has ended, the way it ended explains more than the lost connection.
            ended @ (ServerError::Ended { .. } | ServerError::TooLarge { .. })
                if matches!(error, ServerError::Ended { .. }) =>
            {
                Err(ended)
            }
            _ => Err(error),
        },
        Err(_) => Err(no_answer(managed, &endpoint, ServerStep::List).await),
    }
}

async fn start_process(
    managed: &ManagedServer,
    command: &[WithSource<String>],
    environment: &[(String, WithSource<String>)],
    cwd: Option<&WithSource<String>>,
) -> Result<ServerProcess, ServerError> {
    let command: Vec<String> = command.iter().map(|word| word.value.clone()).collect();
    let environment: Vec<(String, String)> =
        environment.iter().map(|(name, given)| (name.clone(), given.value.clone())).collect();
    let folder = cwd.map_or(managed.root.clone(), |cwd| managed.root.join(&cwd.value));
    let launch = LaunchRequest { command: &command, environment: &environment, folder: &folder };
    let process = child::start(&launch, managed.stop.child_token()).await;
    process.map_err(|err| not_started(managed, &err))
}

async fn no_answer(managed: &ManagedServer, endpoint: &Endpoint, step: ServerStep) -> ServerError {
    if let Endpoint::Local { process, .. } = endpoint {
        process.stop();
        process.wait().await;
    }
    ServerError::NoAnswer { step, after: managed.start_limit() }
}

fn not_started(managed: &ManagedServer, err: &std::io::Error) -> ServerError {
    let ServerTransport::Local { command, .. } = &managed.config.transport else {
        return ServerError::NotStarted(err.to_string());
    };
    let program = command.first().map_or("", WithSource::as_written);
    ServerError::NotStarted(match err.kind() {
        std::io::ErrorKind::NotFound => {
            format!("no program {program:?}, or its working directory is missing")
        }
        _ => managed.secrets.hide(&format!("{program:?}: {err}")),
    })
}

fn unreachable_error(managed: &ManagedServer, why: &str) -> ServerError {
    ServerError::Unreachable(managed.secrets.hide(why))
}

async fn handshake_failed(
    managed: &ManagedServer,
    endpoint: &Endpoint,
    error: &ClientInitializeError,
) -> ServerError {
    match error {
        ClientInitializeError::ConnectionClosed(_) => endpoint.finish(managed).await,
        ClientInitializeError::JsonRpcError(error) => {
            endpoint.finish(managed).await;
            ServerError::ErrorReply {
                code: error.code.0.into(),
                message: managed.secrets.hide(&shorten_and_escape(&error.message)),
            }
        }
        ClientInitializeError::TransportError { error, .. } => {
            let cause: &(dyn std::error::Error + 'static) = error.error.as_ref();
            match find_cause::<AuthRequiredError>(cause) {
                Some(auth) => ServerError::NeedsLogin {
                    how: managed.secrets.hide(&shorten_and_escape(&auth.www_authenticate_header)),
                },
                None if matches!(endpoint, Endpoint::Local { .. }) => {
                    endpoint.finish(managed).await
                }
                None => match find_cause::<HttpError>(cause) {
                    Some(error) => {
                        unreachable_error(managed, &shorten_and_escape(&error.to_string()))
                    }
                    None => unreachable_error(managed, &shorten_and_escape(&cause.to_string())),
                },
            }
        }
        // The other variants contain whole messages, which may be long.
        _ => {
            endpoint.finish(managed).await;
            ServerError::InvalidReply
        }
    }
}

/// Returns the first error of a type in the chain of causes.
fn find_cause<'a, E: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        cause = error.source();
    }
    None
}

pub(super) fn shorten_and_escape(text: &str) -> String {
    helve_text::visible::escape_line(&text.chars().take(500).collect::<String>()).into_owned()
}

fn header_map(
    managed: &ManagedServer,
    headers: &[(String, WithSource<String>)],
) -> Result<HashMap<HeaderName, HeaderValue>, ServerError> {
    let pair = |(name, given): &(String, WithSource<String>)| {
        let bad = |what: &str| {
            unreachable_error(managed, &format!("the header {name:?} has an invalid {what}"))
        };
        let key = HeaderName::try_from(name).map_err(|_| bad("name"))?;
        let value = HeaderValue::try_from(&given.value).map_err(|_| bad("value"))?;
        Ok((key, value))
    };
    headers.iter().map(pair).collect()
}

//! How a connection is opened: the process or the address, the handshake, the list of tools, each within its time.

use std::collections::HashMap;
use std::sync::Arc;

use helve_core::ServerTrouble;
use helve_core::server::Step;
use http::{HeaderName, HeaderValue};
use rmcp::RoleClient;
use rmcp::service::{ClientInitializeError, RunningService, serve_client};
use rmcp::transport::StreamableHttpClientTransport;
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, StreamableHttpClientTransportConfig,
};
use tokio::time::timeout;

use super::child::{self, Fate};
use super::http::{Client, Lost};
use super::link::Link;
use super::live::Live;
use super::pipe::{MOST_LINE, Noticed, Pipe};
use super::visit::{Handler, Visit};
use crate::config::{Given, Transport};

/// An open connection.
pub(super) struct Connection {
    pub(super) live: Arc<Live>,
    pub(super) service: RunningService<RoleClient, Handler>,
    pub(super) ends: Ends,
}

/// What is known of the other end, for when it is over.
pub(super) enum Ends {
    Local { fate: Arc<Fate>, noticed: Arc<Noticed> },
    Remote,
}

impl Ends {
    /// Why it is over. Whatever is left of it is ended.
    pub(super) async fn trouble(&self, link: &Link) -> ServerTrouble {
        match self {
            Ends::Remote => ServerTrouble::Ended { why: "the connection was closed".into() },
            Ends::Local { fate, noticed } => {
                let told = link.secrets.hide(&fate.told().await);
                fate.stop();
                fate.over().await;
                if noticed.too_large() {
                    ServerTrouble::TooLarge { most: MOST_LINE }
                } else {
                    ServerTrouble::Ended { why: told }
                }
            }
        }
    }

    pub(super) fn note(&self) -> Option<String> {
        match self {
            Ends::Local { noticed, .. } => noticed.note(),
            Ends::Remote => None,
        }
    }
}

pub(super) async fn open(link: &Link) -> Result<Connection, ServerTrouble> {
    let limit = link.start_limit();
    let visit = Arc::new(Visit::default());
    let handler = Handler(visit.clone());
    let (opening, ends) = match &link.server.transport {
        Transport::Local { command, environment, cwd } => {
            let command: Vec<String> = command.iter().map(|word| word.value.clone()).collect();
            let environment: Vec<(String, String)> = environment
                .iter()
                .map(|(name, given)| (name.clone(), given.value.clone()))
                .collect();
            let folder = cwd.as_ref().map_or(link.root.clone(), |cwd| link.root.join(&cwd.value));
            let start =
                child::Start { command: &command, environment: &environment, folder: &folder };
            let process = child::start(&start, link.stop.child_token()).await;
            let process = process.map_err(|err| not_started(link, &err))?;
            let noticed = Arc::new(Noticed::default());
            let pipe = Pipe::new(process.output, process.input, noticed.clone());
            let opening = timeout(limit, serve_client(handler, pipe)).await;
            (opening, Ends::Local { fate: process.fate, noticed })
        }
        Transport::Remote { url, headers } => {
            let client = Client::new().map_err(|err| unreachable(link, &err.to_string()))?;
            let mut config = StreamableHttpClientTransportConfig::with_uri(url.value.as_str());
            config.custom_headers = given(link, headers)?;
            let transport = StreamableHttpClientTransport::with_client(client, config);
            (timeout(limit, serve_client(handler, transport)).await, Ends::Remote)
        }
    };
    let service = match opening {
        Ok(Ok(service)) => service,
        Ok(Err(error)) => return Err(refused(link, &ends, &error).await),
        Err(_) => return Err(silent(link, &ends, Step::Start).await),
    };
    let live = Live::new(service.peer().clone(), visit, ends.note());
    match timeout(limit, live.list_again(link)).await {
        Ok(Ok(())) => Ok(Connection { live: Arc::new(live), service, ends }),
        Ok(Err(trouble)) => match ends.trouble(link).await {
            // That it is gone says more than that it did not answer.
            ended @ (ServerTrouble::Ended { .. } | ServerTrouble::TooLarge { .. })
                if matches!(trouble, ServerTrouble::Ended { .. }) =>
            {
                Err(ended)
            }
            _ => Err(trouble),
        },
        Err(_) => Err(silent(link, &ends, Step::List).await),
    }
}

async fn silent(link: &Link, ends: &Ends, step: Step) -> ServerTrouble {
    if let Ends::Local { fate, .. } = ends {
        fate.stop();
        fate.over().await;
    }
    ServerTrouble::NoAnswer { step, after: link.start_limit() }
}

fn not_started(link: &Link, err: &std::io::Error) -> ServerTrouble {
    let Transport::Local { command, .. } = &link.server.transport else {
        return ServerTrouble::NotStarted(err.to_string());
    };
    let program = command.first().map_or("", Given::shown);
    ServerTrouble::NotStarted(match err.kind() {
        std::io::ErrorKind::NotFound => {
            format!("there is no program {program:?}, or the folder it is to run in is missing")
        }
        _ => link.secrets.hide(&format!("{program:?}: {err}")),
    })
}

fn unreachable(link: &Link, why: &str) -> ServerTrouble {
    ServerTrouble::Unreachable(link.secrets.hide(why))
}

async fn refused(link: &Link, ends: &Ends, error: &ClientInitializeError) -> ServerTrouble {
    match error {
        ClientInitializeError::ConnectionClosed(_) => ends.trouble(link).await,
        ClientInitializeError::JsonRpcError(error) => {
            ends.trouble(link).await;
            ServerTrouble::Answered {
                code: error.code.0.into(),
                message: link.secrets.hide(&short(&error.message)),
            }
        }
        ClientInitializeError::TransportError { error, .. } => {
            let cause: &(dyn std::error::Error + 'static) = error.error.as_ref();
            match found::<AuthRequiredError>(cause) {
                Some(wants) => ServerTrouble::NeedsLogin {
                    how: link.secrets.hide(&short(&wants.www_authenticate_header)),
                },
                None if matches!(ends, Ends::Local { .. }) => ends.trouble(link).await,
                None => match found::<Lost>(cause) {
                    Some(lost) => unreachable(link, &short(&lost.to_string())),
                    None => unreachable(link, &short(&cause.to_string())),
                },
            }
        }
        // The others quote whole messages.
        _ => {
            ends.trouble(link).await;
            ServerTrouble::Nonsense
        }
    }
}

/// The first cause of a kind.
fn found<'a, E: std::error::Error + 'static>(
    error: &'a (dyn std::error::Error + 'static),
) -> Option<&'a E> {
    let mut cause = Some(error);
    while let Some(this) = cause {
        if let Some(found) = this.downcast_ref() {
            return Some(found);
        }
        cause = this.source();
    }
    None
}

pub(super) fn short(text: &str) -> String {
    helve_text::visible::escape_line(&text.chars().take(500).collect::<String>()).into_owned()
}

fn given(
    link: &Link,
    headers: &[(String, Given<String>)],
) -> Result<HashMap<HeaderName, HeaderValue>, ServerTrouble> {
    let pair = |(name, given): &(String, Given<String>)| {
        let bad = |what: &str| unreachable(link, &format!("the header {name:?} has {what}"));
        let key = HeaderName::try_from(name).map_err(|_| bad("a name that is none"))?;
        let value = HeaderValue::try_from(&given.value)
            .map_err(|_| bad("a value that no header can have"))?;
        Ok((key, value))
    };
    headers.iter().map(pair).collect()
}

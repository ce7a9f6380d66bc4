//! Routes HTTP requests: checks authorization and limits first, then the path.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::request::Parts;
use http::{HeaderMap, Method, Request, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use rmcp::model::{ErrorData, GetExtensions, JsonRpcMessage};
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::time::{Instant, interval};
use tokio_util::sync::CancellationToken;

use super::HttpConfig;
use super::admission::{Activity, ConnectionPermit};
use super::body::{BodyBudget, mark_idle_when_sent};
use super::guard::{OwnAddresses, check_request};
use super::reply::{
    ErrorReply, HttpReply, accepted, busy, closing, method_not_allowed, plain_text, rejected,
    unreadable,
};
use super::sessions::Sessions;
use crate::server::McpServer;
use crate::state::{AgentInUrl, ServerState};
use crate::transport::{MAX_MESSAGE_BYTES, ParsedMessage, RawArguments, parse_message};

/// Time between two searches for abandoned sessions.
const SWEEP_INTERVAL: Duration = Duration::from_secs(10);
/// Time between two keep-alives on a silent stream.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

pub(super) struct Router {
    http: HttpConfig,
    name: String,
    sessions: Arc<Sessions>,
    protocol: StreamableHttpService<McpServer, Sessions>,
    body_budget: BodyBudget,
    started: Instant,
}

impl Router {
    pub(super) fn new(state: Arc<ServerState>, http: HttpConfig) -> Arc<Self> {
        let name = format!("{} {}", state.config.name, state.config.version);
        let stop = state.stop.clone();
        let sessions = Arc::new(Sessions::new(stop.child_token()));
        // `check_request` has already checked hosts and origins, more strictly. Sessions set the retry interval.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_sse_retry(None)
            .with_sse_keep_alive(Some(KEEP_ALIVE))
            .with_json_response(true)
            .with_max_request_body_bytes(MAX_MESSAGE_BYTES)
            .with_cancellation_token(stop);
        let serve = move || Ok(McpServer::new(state.clone()));
        let protocol = StreamableHttpService::new(serve, sessions.clone(), config);
        let (body_budget, started) = (BodyBudget::default(), Instant::now());
        Arc::new(Self { http, name, sessions, protocol, body_budget, started })
    }

    /// Ends abandoned sessions periodically, until `stop` is cancelled.
    pub(super) async fn sweep(self: Arc<Self>, stop: CancellationToken) {
        let mut ticks = interval(SWEEP_INTERVAL);
        loop {
            tokio::select! {
                _ = ticks.tick() => self.sessions.sweep(),
                () = stop.cancelled() => return,
            }
        }
    }

    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        addresses: Arc<OwnAddresses>,
        permit: Arc<ConnectionPermit>,
    ) -> Result<HttpReply, Infallible> {
        let (head, body) = request.into_parts();
        if let Err(why) = check_request(&head, &addresses, &self.http.token) {
            return Ok(closing(rejected(why)));
        }
        if permit.admit_authenticated().is_err() {
            return Ok(closing(busy("There are too many connections, and all of them are busy.")));
        }
        let reply = self.route(head, body, &permit).await;
        Ok(mark_idle_when_sent(reply, permit))
    }

    async fn route(&self, head: Parts, body: Incoming, permit: &ConnectionPermit) -> HttpReply {
        let path = head.uri.path().to_owned();
        let agent = match &*path {
            "/" | "/health" if head.method != Method::GET => return method_not_allowed("GET"),
            "/" => return plain_text(StatusCode::OK, self.status()),
            "/health" => return plain_text(StatusCode::OK, "ok"),
            "/mcp" => None,
            path => match path.strip_prefix("/mcp/") {
                Some(agent) if self.http.agents.iter().any(|known| known == agent) => Some(agent),
                Some(_) => {
                    let known = self.http.agents.join(", ");
                    let text = format!("No such agent; /mcp/NAME takes one of: {known}.");
                    return plain_text(StatusCode::NOT_FOUND, text);
                }
                None => {
                    let text = "No such path; try /mcp, /mcp/AGENT, /health or /.";
                    return plain_text(StatusCode::NOT_FOUND, text);
                }
            },
        };
        self.handle_mcp(head, body, agent, permit).await.unwrap_or_else(|error| *error)
    }

    async fn handle_mcp(
        &self,
        mut head: Parts,
        body: Incoming,
        agent: Option<&str>,
        permit: &ConnectionPermit,
    ) -> Result<HttpReply, ErrorReply> {
        self.check_session(&head, agent)?;
        head.extensions.insert(AgentInUrl(agent.map(String::from)));
        let mut message = Bytes::new();
        // Kept until the request is answered, so that its memory stays reserved.
        let _body = if head.method == Method::POST {
            check_content_type(&head.headers)?;
            let body = self.body_budget.receive(&head.headers, body).await?;
            permit.set_activity(Activity::Working);
            let Some((rewritten, arguments)) = split_arguments(&body.bytes)? else {
                return Ok(accepted());
            };
            message = rewritten;
            if let Some(arguments) = arguments {
                head.extensions.insert(arguments);
            }
            Some(body)
        } else {
            permit.set_activity(Activity::Listening);
            None
        };
        Ok(self.protocol.handle(Request::from_parts(head, Full::new(message))).await)
    }

    /// Checks that the session exists, belongs to the agent, and has at most one standalone listener.
    fn check_session(&self, head: &Parts, agent: Option<&str>) -> Result<(), ErrorReply> {
        let Some(id) = head.headers.get(SESSION).and_then(|id| id.to_str().ok()) else {
            let is_new = head.method == Method::POST;
            return if is_new && self.sessions.is_full() {
                Err(busy("There are too many sessions, and none of them is idle.").into())
            } else {
                Ok(())
            };
        };
        let Some(session) = self.sessions.find(id).filter(|session| session.is_for(agent)) else {
            let text = "No such session; initialize again.";
            return Err(plain_text(StatusCode::NOT_FOUND, text).into());
        };
        let listens = head.method == Method::GET && !head.headers.contains_key(LAST_EVENT);
        if listens && session.has_listener() {
            let text = "This session already has a listener.";
            return Err(plain_text(StatusCode::CONFLICT, text).into());
        }
        Ok(())
    }

    fn status(&self) -> String {
        format!(
            "{}\nfolder    {}\nsessions  {}\nuptime    {} s\nagents    {}",
            self.name,
            self.http.folder,
            self.sessions.count(),
            self.started.elapsed().as_secs(),
            self.http.agents.join(", "),
        )
    }
}

/// Accepts only JSON. Any web page could send some other content types, such as `text/plain`, without a CORS preflight.
fn check_content_type(headers: &HeaderMap) -> Result<(), ErrorReply> {
    let header = headers.get(CONTENT_TYPE).and_then(|header| header.to_str().ok());
    let content_type = header.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if content_type.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let text = "Messages must be JSON: send `Content-Type: application/json`.";
    Err(plain_text(StatusCode::UNSUPPORTED_MEDIA_TYPE, text).into())
}

/// Parses a message within the same limits as on standard input, and serializes it again without its arguments. The
/// arguments are returned unparsed. Returns `None` for a message that needs no answer.
fn split_arguments(bytes: &[u8]) -> Result<Option<(Bytes, Option<RawArguments>)>, ErrorReply> {
    if bytes.trim_ascii().is_empty() {
        return Err(unreadable(None, ErrorData::parse_error("The message is empty.", None)).into());
    }
    let mut message = match parse_message(bytes) {
        ParsedMessage::Ignored => return Ok(None),
        ParsedMessage::Invalid { id, error } => return Err(unreadable(id, error).into()),
        ParsedMessage::Message(message) => message,
    };
    let arguments = match &mut *message {
        JsonRpcMessage::Request(request_message) => {
            request_message.request.extensions_mut().remove::<RawArguments>()
        }
        JsonRpcMessage::Response(_)
        | JsonRpcMessage::Notification(_)
        | JsonRpcMessage::Error(_) => None,
    };
    match serde_json::to_vec(&message) {
        Ok(bytes) => Ok(Some((bytes.into(), arguments))),
        Err(_) => {
            let error = ErrorData::parse_error("The message cannot be processed.", None);
            Err(unreadable(None, error).into())
        }
    }
}

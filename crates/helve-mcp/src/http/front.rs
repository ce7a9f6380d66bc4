//! What every request meets first: the guard, then limits, then the address.

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

use super::Web;
use super::body::{Bodies, until_said};
use super::guard::{Addresses, admit};
use super::lobby::{Doing, Seat};
use super::reply::{Refused, Reply, accepted, busy, last, not_allowed, plain, stopped, unreadable};
use super::sessions::Sessions;
use crate::hall::{Addressed, Hall};
use crate::server::Server;
use crate::wire::{Arguments, Heard, MOST_LINE, read};

/// Who left is looked for this often.
const SWEEP: Duration = Duration::from_secs(10);
/// How often a stream on which nothing is said shows that it is there.
const SIGN_OF_LIFE: Duration = Duration::from_secs(15);
const SESSION: &str = "mcp-session-id";
const LAST_EVENT: &str = "last-event-id";

pub(super) struct Front {
    web: Web,
    name: String,
    sessions: Arc<Sessions>,
    protocol: StreamableHttpService<Server, Sessions>,
    bodies: Bodies,
    since: Instant,
}

impl Front {
    pub(super) fn new(hall: Arc<Hall>, web: Web) -> Arc<Self> {
        let name = format!("{} {}", hall.door.name, hall.door.version);
        let stop = hall.stop.clone();
        let sessions = Arc::new(Sessions::new(stop.child_token()));
        // The guard has looked at hosts and origins, more closely; the sessions name their streams.
        let config = StreamableHttpServerConfig::default()
            .disable_allowed_hosts()
            .with_sse_retry(None)
            .with_sse_keep_alive(Some(SIGN_OF_LIFE))
            .with_json_response(true)
            .with_max_request_body_bytes(MOST_LINE)
            .with_cancellation_token(stop);
        let serve = move || Ok(Server::new(hall.clone()));
        let protocol = StreamableHttpService::new(serve, sessions.clone(), config);
        let (bodies, since) = (Bodies::default(), Instant::now());
        Arc::new(Self { web, name, sessions, protocol, bodies, since })
    }

    /// Lets sessions go whose clients have left, until `stop` fires.
    pub(super) async fn sweep(self: Arc<Self>, stop: CancellationToken) {
        let mut every = interval(SWEEP);
        loop {
            tokio::select! {
                _ = every.tick() => self.sessions.sweep(),
                () = stop.cancelled() => return,
            }
        }
    }

    pub(super) async fn answer(
        self: Arc<Self>,
        request: Request<Incoming>,
        addresses: Arc<Addresses>,
        seat: Arc<Seat>,
    ) -> Result<Reply, Infallible> {
        let (head, body) = request.into_parts();
        if let Err(why) = admit(&head, &addresses, &self.web.token) {
            return Ok(last(stopped(why)));
        }
        if seat.stays().is_err() {
            return Ok(last(busy("There are too many connections, and all of them are at work.")));
        }
        let reply = self.route(head, body, &seat).await;
        Ok(until_said(reply, seat))
    }

    async fn route(&self, head: Parts, body: Incoming, seat: &Seat) -> Reply {
        let path = head.uri.path().to_owned();
        let agent = match &*path {
            "/" | "/health" if head.method != Method::GET => return not_allowed("GET"),
            "/" => return plain(StatusCode::OK, self.status()),
            "/health" => return plain(StatusCode::OK, "ok"),
            "/mcp" => None,
            path => match path.strip_prefix("/mcp/") {
                Some(agent) if self.web.agents.iter().any(|known| known == agent) => Some(agent),
                Some(_) => {
                    let known = self.web.agents.join(", ");
                    let words = format!("There is no such agent; /mcp/NAME takes one of: {known}.");
                    return plain(StatusCode::NOT_FOUND, words);
                }
                None => {
                    return plain(
                        StatusCode::NOT_FOUND,
                        "There are /mcp, /mcp/AGENT, /health and /.",
                    );
                }
            },
        };
        self.mcp(head, body, agent, seat).await.unwrap_or_else(|refused| *refused)
    }

    async fn mcp(
        &self,
        mut head: Parts,
        body: Incoming,
        agent: Option<&str>,
        seat: &Seat,
    ) -> Result<Reply, Refused> {
        self.check_session(&head, agent)?;
        head.extensions.insert(Addressed(agent.map(String::from)));
        let mut sent = Bytes::new();
        let _room = if head.method == Method::POST {
            check_kind(&head.headers)?;
            let whole = self.bodies.take(&head.headers, body).await?;
            seat.does(Doing::Working);
            let Some((message, arguments)) = understood(&whole.bytes)? else {
                return Ok(accepted());
            };
            sent = message;
            if let Some(arguments) = arguments {
                head.extensions.insert(arguments);
            }
            Some(whole)
        } else {
            seat.does(Doing::Listening);
            None
        };
        Ok(self.protocol.handle(Request::from_parts(head, Full::new(sent))).await)
    }

    /// A session is taken up where it began, and heard by one listener at a time.
    fn check_session(&self, head: &Parts, agent: Option<&str>) -> Result<(), Refused> {
        let Some(id) = head.headers.get(SESSION).and_then(|id| id.to_str().ok()) else {
            let begins = head.method == Method::POST;
            return if begins && self.sessions.is_full() {
                Err(busy("There are too many sessions, and none of them is idle.").into())
            } else {
                Ok(())
            };
        };
        let Some(lane) = self.sessions.of(id).filter(|lane| lane.is_for(agent)) else {
            let words = "There is no such session; initialize anew.";
            return Err(plain(StatusCode::NOT_FOUND, words).into());
        };
        let listens = head.method == Method::GET && !head.headers.contains_key(LAST_EVENT);
        if listens && lane.is_listened_to() {
            let words = "This session is being listened to already.";
            return Err(plain(StatusCode::CONFLICT, words).into());
        }
        Ok(())
    }

    fn status(&self) -> String {
        format!(
            "{}\nfolder    {}\nsessions  {}\nuptime    {} s\nagents    {}",
            self.name,
            self.web.folder,
            self.sessions.count(),
            self.since.elapsed().as_secs(),
            self.web.agents.join(", "),
        )
    }
}

/// What a browser may send unasked, without a page of ours, is of another kind.
fn check_kind(headers: &HeaderMap) -> Result<(), Refused> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if kind.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    let words = "Messages are JSON: send `Content-Type: application/json`.";
    Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, words).into())
}

/// A message, read within the same limits as over a pipe, and written anew without its arguments: those go
/// on unread. `None` for what needs no answer.
fn understood(bytes: &[u8]) -> Result<Option<(Bytes, Option<Arguments>)>, Refused> {
    if bytes.trim_ascii().is_empty() {
        return Err(unreadable(None, ErrorData::parse_error("The message is empty.", None)).into());
    }
    let mut message = match read(bytes) {
        Heard::Nothing => return Ok(None),
        Heard::Wrong { id, error } => return Err(unreadable(id, error).into()),
        Heard::Message(message) => message,
    };
    let arguments = match &mut *message {
        JsonRpcMessage::Request(asked) => asked.request.extensions_mut().remove::<Arguments>(),
        JsonRpcMessage::Response(_)
        | JsonRpcMessage::Notification(_)
        | JsonRpcMessage::Error(_) => None,
    };
    match serde_json::to_vec(&message) {
        Ok(bytes) => Ok(Some((bytes.into(), arguments))),
        Err(_) => Err(unreadable(None, ErrorData::parse_error("The message is odd.", None)).into()),
    }
}

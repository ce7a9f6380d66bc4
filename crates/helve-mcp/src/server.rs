//! What the server answers to each request.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use helve_core::{Engine, Input, Session, ToolCall, ToolSet};
use parking_lot::Mutex;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Implementation, InitializeRequestParams, InitializeResult, ListToolsResult,
    PaginatedRequestParams, ProtocolVersion, ServerCapabilities, ServerConfig,
};
use rmcp::service::{NotificationContext, RequestContext};
use rmcp::{Peer, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::wire::Arguments;
use crate::{Client, Door, call, render};

/// The longest name of a tool that is looked up.
const MOST_NAME: usize = 256;
/// The longest name of a client that is kept.
const MOST_CLIENT: usize = 256;

/// The revisions of the protocol that are spoken.
pub(crate) fn revisions() -> &'static [ProtocolVersion] {
    ProtocolVersion::known_up_to(&ProtocolVersion::V_2025_11_25)
}

/// The server's end of one connection.
pub(crate) struct Server {
    door: Door,
    calls: CancellationToken,
    visit: OnceLock<Visit>,
}

/// A connection whose client is known.
struct Visit {
    session: Arc<Session>,
    /// Counts with the registry; moves into the task that watches it.
    versions: Mutex<Option<watch::Receiver<u64>>>,
    offered: Mutex<Option<Offered>>,
}

/// The tools as they were at some version of the registry.
struct Offered {
    version: u64,
    tools: ToolSet,
}

impl Server {
    /// Every call's token is a child of `calls`, never of its request: a request may end before its call.
    pub(crate) fn new(door: Door, calls: CancellationToken) -> Self {
        Self { door, calls, visit: OnceLock::new() }
    }

    fn visit(&self, client: Option<Implementation>) -> &Visit {
        self.visit.get_or_init(|| {
            let client = client.map_or_else(Client::default, |said| Client {
                name: said.name.chars().take(MOST_CLIENT).collect(),
                version: said.version.chars().take(MOST_CLIENT).collect(),
            });
            let session = (self.door.open)(client);
            let versions = session.workspace.registry.changed();
            Visit { session, versions: Mutex::new(Some(versions)), offered: Mutex::default() }
        })
    }

    fn engine(&self) -> &Arc<Engine> {
        &self.door.engine
    }
}

impl Visit {
    /// The tools as they are now; made anew only when the registry has changed.
    fn tools(&self) -> ToolSet {
        let version = *self.session.workspace.registry.changed().borrow();
        let mut offered = self.offered.lock();
        match &*offered {
            Some(known) if known.version == version => known.tools.clone(),
            Some(_) | None => {
                let tools = self.session.offer(&[]);
                *offered = Some(Offered { version, tools: tools.clone() });
                tools
            }
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let capabilities =
            ServerCapabilities::builder().enable_tools().enable_tool_list_changed().build();
        let mut info = InitializeResult::new(capabilities)
            .with_protocol_version(ProtocolVersion::V_2025_11_25)
            .with_server_info(Implementation::new(&self.door.name, &self.door.version));
        info.instructions.clone_from(&self.door.instructions);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(revisions())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let answer = self.negotiate_initialize(&request)?;
        self.visit(Some(request.client_info.clone()));
        context.peer.set_peer_info(request.with_protocol_version(answer.protocol_version.clone()));
        Ok(answer)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let visit = self.visit(context.peer.peer_info().map(|info| info.client_info.clone()));
        if let Some(versions) = visit.versions.lock().take() {
            tokio::spawn(tell_of_changes(context.peer, versions, self.calls.clone()));
        }
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = self.visit(context.client_info()).tools();
        Ok(ListToolsResult::with_all_items(tools.specs().map(render::tool).collect()))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name.len() > MOST_NAME {
            return Err(ErrorData::invalid_params("The name of the tool is too long.", None));
        }
        let visit = self.visit(context.client_info());
        let input = match context.extensions.remove::<Arguments>() {
            Some(Arguments(text)) => Input::Raw(text),
            None => Input::Json(Value::Object(request.arguments.unwrap_or_default())),
        };
        let call = ToolCall::new(request.name, input);
        let tools = visit.tools();
        let cancel = self.calls.child_token();
        let events = context.meta.get_progress_token().map(|_| self.engine().events.subscribe());
        let id = call.id.clone();
        let running = self.engine().call(&visit.session, &tools, call, cancel.clone());
        let result = call::answer(running, &id, events, &context, cancel).await;
        Ok(render::result(result).into())
    }

    async fn on_custom_request(
        &self,
        _request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "There is no such method.", None))
    }
}

/// Tells the client each time that the list of tools has changed.
async fn tell_of_changes(
    peer: Peer<RoleServer>,
    mut versions: watch::Receiver<u64>,
    calls: CancellationToken,
) {
    let telling = async {
        while versions.changed().await.is_ok() {
            if peer.notify_tool_list_changed().await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = telling => {}
        () = calls.cancelled() => {}
    }
}

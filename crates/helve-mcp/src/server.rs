//! What the server answers to each request.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use helve_core::{Input, ToolCall};
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Extensions, Implementation, InitializeRequestParams, InitializeResult,
    ListResourceTemplatesResult, ListResourcesResult, ListToolsResult, PaginatedRequestParams,
    ProtocolVersion, ReadResourceRequestParams, ReadResourceResponse, ReadResourceResult,
    ResourceContents, ServerCapabilities, ServerConfig, ServerNotification, SubscriptionFilter,
    ToolListChangedNotification,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{Peer, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::asks::{Way, shows_forms};
use crate::hall::Hall;
use crate::park::{Resumed, Retry, Running, Turn};
use crate::visit::{Visit, client};
use crate::wire::Arguments;
use crate::{call, render};

/// The longest name of a tool that is looked up.
const MOST_NAME: usize = 256;

/// How long a list waits for tools that are on their way; what comes later is announced.
const SETTLING: Duration = Duration::from_secs(3);

/// The revisions of the protocol that are spoken.
pub(crate) fn revisions() -> &'static [ProtocolVersion] {
    ProtocolVersion::known_up_to(&ProtocolVersion::V_2026_07_28)
}

/// The server's end of one connection, or of one request that is on its own.
pub(crate) struct Server {
    hall: Arc<Hall>,
    visit: OnceLock<Arc<Visit>>,
}

impl Server {
    pub(crate) fn new(hall: Arc<Hall>) -> Self {
        Self { hall, visit: OnceLock::new() }
    }

    fn visit(
        &self,
        who: Option<Implementation>,
        extensions: &Extensions,
    ) -> Result<Arc<Visit>, ErrorData> {
        if let Some(visit) = self.visit.get() {
            return Ok(visit.clone());
        }
        let visit = self.hall.receive(client(who), extensions).ok_or_else(|| {
            ErrorData::invalid_request("There is no agent of the name in the address.", None)
        })?;
        Ok(self.visit.get_or_init(|| visit).clone())
    }

    fn visitor(&self, context: &RequestContext<RoleServer>) -> Result<Arc<Visit>, ErrorData> {
        self.visit(context.client_info(), &context.extensions)
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let door = &self.hall.door;
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .build();
        let mut info = InitializeResult::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(Implementation::new(&door.name, &door.version));
        info.instructions.clone_from(&door.instructions);
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
        self.visit(Some(request.client_info.clone()), &context.extensions)?;
        context.peer.set_peer_info(request.with_protocol_version(answer.protocol_version.clone()));
        Ok(answer)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let who = context.peer.peer_info().map(|info| info.client_info.clone());
        let Ok(visit) = self.visit(who, &context.extensions) else { return };
        if let Some(versions) = visit.changes.lock().take() {
            tokio::spawn(tell_of_changes(context.peer, versions, visit.calls.clone()));
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    /// From 2026-07-28 on, who wants to hear of changes holds a request open.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let visit = self.visitor(context.request_context())?;
        let mut versions = visit.session.workspace.registry.changed();
        let telling = async {
            while versions.changed().await.is_ok() {
                let changed = ToolListChangedNotification::default();
                let changed = ServerNotification::ToolListChangedNotification(changed);
                if context.sink().send(changed).await.is_err() {
                    break;
                }
            }
        };
        tokio::select! {
            () = telling => {}
            () = context.cancelled() => {}
            () = visit.calls.cancelled() => {}
        }
        Ok(())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let visit = self.visitor(&context)?;
        visit.session.workspace.registry.settled(SETTLING).await;
        let tools = visit.tools();
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
        let visit = self.visitor(&context)?;
        let input = match arguments(&mut context) {
            Some(Arguments(text)) => Input::Raw(text),
            None => Input::Json(Value::Object(request.arguments.unwrap_or_default())),
        };
        let retry = Retry::read(request.request_state.as_deref(), request.input_responses.as_ref());
        let call = ToolCall::new(request.name, input);
        let asked = shows_forms(context.client_capabilities().as_ref());
        let newest = context.protocol_version().is_some_and(|version| !version.has_initialize());
        if newest && asked {
            return self.call_and_park(&visit, call, retry, &context).await;
        }
        let _counted = self.hall.running.token();
        let way = asked.then(|| Way::Elicit(context.peer.clone()));
        let _reachable = way.map(|way| visit.asker.reach(&call.id, way));
        let cancel = visit.calls.child_token();
        let watching = self.watching(&call, &context);
        let engine = &self.hall.door.engine;
        let running = engine.call(&visit.session, &visit.tools(), call, cancel.clone());
        let work = call::until_cancelled(running, &context.ct, &cancel);
        let result = call::with_progress(work, watching, &context, &cancel).await;
        Ok(self.rendered(&visit, result))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let saved = self.visitor(&context)?.saved();
        Ok(ListResourcesResult::with_all_items(saved.iter().map(render::resource).collect()))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![render::resources()]))
    }

    /// Saved outputs of the session, whole.
    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.visitor(&context)?.session.clone();
        let unknown = || ErrorData::resource_not_found("There is no such saved output.", None);
        let id = render::output_id(&request.uri).ok_or_else(unknown)?;
        let found = session.outputs.load(&session.id, id).await;
        let text = found.map_err(|err| {
            ErrorData::internal_error(format!("The saved output cannot be read: {err}."), None)
        })?;
        let contents = ResourceContents::text(text.ok_or_else(unknown)?, request.uri);
        Ok(ReadResourceResult::new(vec![contents]).into())
    }

    async fn on_custom_request(
        &self,
        _request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "There is no such method.", None))
    }
}

impl Server {
    /// A call whose questions end the request, and its continuation with the answer.
    async fn call_and_park(
        &self,
        visit: &Visit,
        mut call: ToolCall,
        retry: Option<Retry>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let mark = call::mark(&visit.session.id, &call);
        let resumed = retry.as_ref().map(|retry| self.hall.parked.resume(retry, mark));
        let mut watching = self.watching(&call, context);
        let running = match resumed {
            Some(Resumed::Running(running)) => {
                watching = watching.map(|watching| watching.of(running.call()));
                *running
            }
            afresh @ (Some(Resumed::Afresh | Resumed::Spent) | None) => {
                let counts = matches!(afresh, Some(Resumed::Afresh));
                let retry = retry.filter(|_| counts);
                call.answers.extend(retry.map(Retry::for_a_fresh_call));
                let (id, cancel) = (call.id.clone(), visit.calls.child_token());
                let engine = &self.hall.door.engine;
                let work = engine.call(&visit.session, &visit.tools(), call, cancel.clone());
                let counted = self.hall.running.track_future(work);
                Running::start(&id, Box::pin(counted), &visit.asker, mark, cancel)
            }
        };
        let ends = running.cancel().clone();
        let turn = running.turn(&self.hall.parked, &context.ct);
        match call::with_progress(turn, watching, context, &ends).await {
            Some(Turn::Done(result)) => Ok(self.rendered(visit, *result)),
            Some(Turn::Asks(question)) => Ok(question.into()),
            None => Err(ErrorData::internal_error("The call ended without a result.", None)),
        }
    }

    fn watching(
        &self,
        call: &ToolCall,
        context: &RequestContext<RoleServer>,
    ) -> Option<call::Watching> {
        let token = context.meta.get_progress_token()?;
        Some(call::Watching::new(&call.id, token, self.hall.door.engine.events.subscribe()))
    }

    fn rendered(&self, visit: &Visit, result: helve_core::ToolResult) -> CallToolResponse {
        if let Ok(output) = &result.outcome
            && let Some(saved) = &output.saved
        {
            visit.note(saved);
        }
        render::result(result, self.hall.door.metadata).into()
    }
}

/// The arguments of a call as they came, unread; over HTTP they travel with the request's head.
fn arguments(context: &mut RequestContext<RoleServer>) -> Option<Arguments> {
    context.extensions.remove::<Arguments>().or_else(|| {
        let parts = context.extensions.get_mut::<Parts>()?;
        parts.extensions.remove::<Arguments>()
    })
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

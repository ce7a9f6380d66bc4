//! Handles each kind of MCP request.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use helve_core::{Input, ToolCall};
use http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CustomRequest, CustomResult, ErrorCode, ErrorData,
    Extensions, GetPromptRequestParams, GetPromptResponse, Implementation, InitializeRequestParams,
    InitializeResult, ListPromptsResult, ListResourceTemplatesResult, ListResourcesResult,
    ListToolsResult, PaginatedRequestParams, ProtocolVersion, ReadResourceRequestParams,
    ReadResourceResponse, ReadResourceResult, ResourceContents, ServerCapabilities, ServerConfig,
    ServerNotification, SubscriptionFilter, ToolListChangedNotification,
};
use rmcp::service::{NotificationContext, RequestContext, SubscriptionContext};
use rmcp::{Peer, RoleServer, ServerHandler};
use serde_json::Value;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

use crate::asks::{AskRoute, shows_forms};
use crate::client_session::{ClientSession, client_info};
use crate::parked::{DetachedCall, RequestOutcome, Retry, RetryTarget};
use crate::state::ServerState;
use crate::transport::{RawArguments, supported_revisions};
use crate::{call, prompts, render};

/// Maximum length of a tool name in bytes.
const MAX_NAME: usize = 256;

/// How long `tools/list` waits for tools that are still loading. Later ones are announced as a change.
const TOOLS_WAIT: Duration = Duration::from_secs(3);

/// The server side of one connection, or of one stateless request.
pub(crate) struct McpServer {
    state: Arc<ServerState>,
    session: OnceLock<Arc<ClientSession>>,
}

impl McpServer {
    pub(crate) fn new(state: Arc<ServerState>) -> Self {
        Self { state, session: OnceLock::new() }
    }

    fn session(
        &self,
        info: Option<Implementation>,
        extensions: &Extensions,
    ) -> Result<Arc<ClientSession>, ErrorData> {
        if let Some(session) = self.session.get() {
            return Ok(session.clone());
        }
        let session = self.state.session_for(client_info(info), extensions).ok_or_else(|| {
            ErrorData::invalid_request("The agent named in the URL does not exist.", None)
        })?;
        Ok(self.session.get_or_init(|| session).clone())
    }

    fn session_of_request(
        &self,
        context: &RequestContext<RoleServer>,
    ) -> Result<Arc<ClientSession>, ErrorData> {
        let session = self.session(context.client_info(), &context.extensions)?;
        session.person.set_shows_forms(shows_forms(context.client_capabilities().as_ref()));
        Ok(session)
    }
}

impl ServerHandler for McpServer {
    fn get_info(&self) -> ServerConfig {
        let config = &self.state.config;
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_tool_list_changed()
            .enable_resources()
            .enable_prompts()
            .build();
        let mut info = InitializeResult::new(capabilities)
            .with_protocol_version(ProtocolVersion::LATEST_WITH_INITIALIZE)
            .with_server_info(Implementation::new(&config.name, &config.version));
        info.instructions.clone_from(&config.instructions);
        info
    }

    fn supported_protocol_versions(&self) -> Cow<'static, [ProtocolVersion]> {
        Cow::Borrowed(supported_revisions())
    }

    async fn initialize(
        &self,
        request: InitializeRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<InitializeResult, ErrorData> {
        let answer = self.negotiate_initialize(&request)?;
        self.session(Some(request.client_info.clone()), &context.extensions)?;
        context.peer.set_peer_info(request.with_protocol_version(answer.protocol_version.clone()));
        Ok(answer)
    }

    async fn on_initialized(&self, context: NotificationContext<RoleServer>) {
        let info = context.peer.peer_info().map(|info| info.client_info.clone());
        let Ok(session) = self.session(info, &context.extensions) else { return };
        if let Some(versions) = session.changes.lock().take() {
            tokio::spawn(notify_tool_changes(context.peer, versions, session.cancel_calls.clone()));
        }
    }

    fn accepted_subscription_filter(
        &self,
        requested: &SubscriptionFilter,
    ) -> Option<SubscriptionFilter> {
        Some(requested.clone())
    }

    /// Since protocol revision 2026-07-28, a client that wants change notifications keeps this request open.
    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        let session = self.session_of_request(context.request_context())?;
        let mut versions = session.registry.watch_changes();
        let notifying = async {
            while versions.changed().await.is_ok() {
                let changed = ToolListChangedNotification::default();
                let changed = ServerNotification::ToolListChangedNotification(changed);
                if context.sink().send(changed).await.is_err() {
                    break;
                }
            }
        };
        tokio::select! {
            () = notifying => {}
            () = context.cancelled() => {}
            () = session.cancel_calls.cancelled() => {}
        }
        Ok(())
    }

    async fn list_tools(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let session = self.session_of_request(&context)?;
        session.registry.wait_for_announced(TOOLS_WAIT).await;
        let tools = session.tools();
        Ok(ListToolsResult::with_all_items(tools.specs().map(render::tool).collect()))
    }

    async fn list_prompts(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListPromptsResult, ErrorData> {
        Ok(ListPromptsResult::with_all_items(prompts::list(&*self.state.config.prompts)))
    }

    async fn get_prompt(
        &self,
        request: GetPromptRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<GetPromptResponse, ErrorData> {
        let session = self.session_of_request(&context)?;
        let (prompts, tools) = (&*self.state.config.prompts, session.tools());
        Ok(prompts::get(prompts, &session.session, &tools, &request).await?.into())
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        mut context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        if request.name.len() > MAX_NAME {
            return Err(ErrorData::invalid_params("The name of the tool is too long.", None));
        }
        let session = self.session_of_request(&context)?;
        let input = match take_arguments(&mut context) {
            Some(RawArguments(text)) => Input::Raw(text),
            None => Input::Json(Value::Object(request.arguments.unwrap_or_default())),
        };
        let retry =
            Retry::parse(request.request_state.as_deref(), request.input_responses.as_ref());
        let mode = call::mode(&context.meta);
        let call = ToolCall { mode, ..ToolCall::new(request.name, input) };
        let can_ask = shows_forms(context.client_capabilities().as_ref());
        let needs_no_initialize =
            context.protocol_version().is_some_and(|version| !version.has_initialize());
        if needs_no_initialize && can_ask {
            return self.call_and_park(&session, call, retry, &context).await;
        }
        let _running_call = self.state.running.token();
        let route = can_ask.then(|| AskRoute::Elicit(context.peer.clone()));
        let _route = route.map(|route| session.person.register(&call.id, route));
        let cancel = session.cancel_calls.child_token();
        let watch = self.progress_watch(&call, &context);
        let engine = &self.state.config.engine;
        let running = engine.call(&session.session, &session.tools(), call, cancel.clone());
        let work = call::run_with_cancellation(running, &context.ct, &cancel);
        let result = call::with_progress(work, watch, &context, &cancel).await;
        Ok(self.render(&session, result))
    }

    async fn list_resources(
        &self,
        _page: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        let saved = self.session_of_request(&context)?.saved();
        Ok(ListResourcesResult::with_all_items(saved.iter().map(render::resource).collect()))
    }

    async fn list_resource_templates(
        &self,
        _page: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(ListResourceTemplatesResult::with_all_items(vec![render::output_template()]))
    }

    /// Returns the full text of a saved output of the session.
    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        let session = self.session_of_request(&context)?.session.clone();
        let unknown = || ErrorData::resource_not_found("No such saved output.", None);
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
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, "No such method.", None))
    }
}

impl McpServer {
    /// Runs a call until it ends or asks a question. A question ends the request and parks the call; the client's next
    /// request brings the answer and resumes the call.
    async fn call_and_park(
        &self,
        session: &ClientSession,
        mut call: ToolCall,
        retry: Option<Retry>,
        context: &RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let fingerprint = call::fingerprint(&session.session.id, &call);
        let target = retry.as_ref().map(|retry| self.state.parked.resume(retry, fingerprint));
        let mut watch = self.progress_watch(&call, context);
        let detached = match target {
            Some(RetryTarget::Parked(parked)) => {
                watch = watch.map(|watch| watch.for_call(parked.call()));
                *parked
            }
            target @ (Some(RetryTarget::Gone | RetryTarget::AlreadyUsed) | None) => {
                // A parked call that is gone, for example after a restart: its answer counts for this new call if that
                // asks the same question.
                let accepts_answer = matches!(target, Some(RetryTarget::Gone));
                let retry = retry.filter(|_| accepts_answer);
                call.answers.extend(retry.map(Retry::into_answer));
                let (id, cancel) = (call.id.clone(), session.cancel_calls.child_token());
                let engine = &self.state.config.engine;
                let work = engine.call(&session.session, &session.tools(), call, cancel.clone());
                let tracked = self.state.running.track_future(work);
                DetachedCall::start(&id, Box::pin(tracked), &session.person, fingerprint, cancel)
            }
        };
        let cancel = detached.cancel().clone();
        let outcome = detached.run_until_question(&self.state.parked, &context.ct);
        match call::with_progress(outcome, watch, context, &cancel).await {
            Some(RequestOutcome::Done(result)) => Ok(self.render(session, *result)),
            Some(RequestOutcome::NeedsInput(question)) => Ok(question.into()),
            None => Err(ErrorData::internal_error("The call ended without a result.", None)),
        }
    }

    fn progress_watch(
        &self,
        call: &ToolCall,
        context: &RequestContext<RoleServer>,
    ) -> Option<call::ProgressWatch> {
        let token = context.meta.get_progress_token()?;
        Some(call::ProgressWatch::new(
            &call.id,
            token,
            self.state.config.engine.recorder.events.subscribe(),
        ))
    }

    fn render(&self, session: &ClientSession, result: helve_core::ToolResult) -> CallToolResponse {
        if let Ok(output) = &result.outcome
            && let Some(saved) = &output.saved
        {
            session.record_saved(saved);
        }
        render::result(result, self.state.config.metadata).into()
    }
}

/// Takes the unparsed arguments of a call. Over HTTP they are attached to the request's head.
fn take_arguments(context: &mut RequestContext<RoleServer>) -> Option<RawArguments> {
    context.extensions.remove::<RawArguments>().or_else(|| {
        let parts = context.extensions.get_mut::<Parts>()?;
        parts.extensions.remove::<RawArguments>()
    })
}

/// Notifies the client whenever the list of tools has changed.
async fn notify_tool_changes(
    peer: Peer<RoleServer>,
    mut versions: watch::Receiver<u64>,
    session_end: CancellationToken,
) {
    let notifying = async {
        while versions.changed().await.is_ok() {
            if peer.notify_tool_list_changed().await.is_err() {
                break;
            }
        }
    };
    tokio::select! {
        () = notifying => {}
        () = session_end.cancelled() => {}
    }
}

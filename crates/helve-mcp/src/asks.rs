//! Asks the person at the client: sends a call's question and withdraws it when nobody waits for the answer.

mod form;
mod question;
mod withdraw;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use helve_core::CallRef;
use helve_core::{Answer, Ask, AskKey, BoxFuture, Person, Question, Reply};
use parking_lot::Mutex;
use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ElicitResult,
    ServerRequest,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleServer};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

pub(crate) use form::Form;
use form::FormAnswer;
use withdraw::WithdrawGuard;

/// How long a parked question waits for its answer.
const PARKED_QUESTION_TIME: Duration = Duration::from_secs(10 * 60);

/// The person who answers for one client session. Knows for each running call how its client can be asked.
#[derive(Clone, Default)]
pub(crate) struct ClientPerson {
    routes: Arc<Mutex<HashMap<String, AskRoute>>>,
    shows_forms: Arc<AtomicBool>,
}

/// How the client of a call can be asked.
#[derive(Clone)]
pub(crate) enum AskRoute {
    /// By a request from the server while the client's own request waits: revisions up to 2025-11-25.
    Elicit(Peer<RoleServer>),
    /// By answering the client's request with the question. The client then repeats the request with the person's
    /// reply: revisions from 2026-07-28 on.
    Park(mpsc::Sender<ParkedQuestion>),
}

/// A question for a client that sends the answer with a later request.
pub(crate) struct ParkedQuestion {
    pub(crate) request: ElicitRequestParams,
    pub(crate) key: AskKey,
    /// `None` if there will be no answer.
    pub(crate) answer: oneshot::Sender<Option<ElicitResult>>,
}

/// While it lives, questions of a call take the registered route.
pub(crate) struct RouteGuard {
    person: ClientPerson,
    call: String,
}

impl ClientPerson {
    pub(crate) fn register(&self, call: &str, route: AskRoute) -> RouteGuard {
        self.routes.lock().insert(call.into(), route);
        RouteGuard { person: self.clone(), call: call.into() }
    }

    /// Records whether the client can show forms. Without them, tools that ask questions are not offered.
    pub(crate) fn set_shows_forms(&self, shows_forms: bool) {
        self.shows_forms.store(shows_forms, Ordering::Relaxed);
    }

    /// Sends a form to the client of a call, and waits for the answer.
    async fn ask(
        &self,
        call: &CallRef,
        request: ElicitRequestParams,
        key: AskKey,
    ) -> Option<ElicitResult> {
        let route = self.routes.lock().get(&*call.root_call).cloned()?;
        match route {
            AskRoute::Elicit(peer) => elicit(&peer, request).await,
            AskRoute::Park(client) => park(&client, request, key).await,
        }
    }
}

impl Drop for RouteGuard {
    fn drop(&mut self) {
        self.person.routes.lock().remove(&self.call);
    }
}

impl Person for ClientPerson {
    fn approve<'a>(&'a self, call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        Box::pin(async move {
            let form = Form::of(ask);
            let Some(answer) = self.ask(call, form.request(), ask.key()).await else {
                return Reply::Unanswered;
            };
            match form.answer(&answer) {
                FormAnswer::Final(reply) => reply,
                FormAnswer::NoWithReason => {
                    let reason = self.ask(call, Form::reason_request(), ask.key()).await;
                    Form::reason(reason.as_ref())
                }
            }
        })
    }

    fn takes_questions(&self) -> bool {
        self.shows_forms.load(Ordering::Relaxed)
    }

    fn question<'a>(
        &'a self,
        call: &'a CallRef,
        question: &'a Question,
    ) -> BoxFuture<'a, Option<Answer>> {
        Box::pin(async move {
            let answer = self.ask(call, question::request(question), question::key(question)).await;
            question::answer(question, answer?)
        })
    }
}

/// Whether a client can show forms. Elicitation that is declared without a kind means forms.
pub(crate) fn shows_forms(client: Option<&ClientCapabilities>) -> bool {
    let elicitation = client.and_then(|client| client.elicitation.as_ref());
    elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
}

/// Asks while the client's request waits. Dropping the future withdraws the question.
async fn elicit(peer: &Peer<RoleServer>, request: ElicitRequestParams) -> Option<ElicitResult> {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(request));
    let options = PeerRequestOptions::no_options();
    let sent = peer.send_cancellable_request(request, options).await.ok()?;
    let withdraw = WithdrawGuard::new(peer, &sent.id);
    let answer = sent.rx.await;
    withdraw.disarm();
    match answer {
        Ok(Ok(ClientResult::ElicitResult(answer))) => Some(answer),
        // The client cannot show the question, sent something else, or is gone.
        Ok(Ok(_) | Err(_)) | Err(_) => None,
    }
}

/// Sends the question as the response to the client's pending request, then waits for the reply. The client sends the
/// reply with a later request.
async fn park(
    client: &mpsc::Sender<ParkedQuestion>,
    request: ElicitRequestParams,
    key: AskKey,
) -> Option<ElicitResult> {
    let (answer, reply) = oneshot::channel();
    let ask_and_wait = async {
        client.send(ParkedQuestion { request, key, answer }).await.ok()?;
        reply.await.ok()?
    };
    timeout(PARKED_QUESTION_TIME, ask_and_wait).await.ok().flatten()
}

impl Form {
    pub(crate) fn request(&self) -> ElicitRequestParams {
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.message.clone(),
            requested_schema: self.schema(),
        }
    }

    fn reason_request() -> ElicitRequestParams {
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: "Why not?".into(),
            requested_schema: Self::reason_schema(),
        }
    }
}

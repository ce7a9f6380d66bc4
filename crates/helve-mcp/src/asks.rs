//! Asks the person at the client: sends a call's question and withdraws it when nobody waits for the answer.

mod form;
mod withdraw;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use helve_core::CallRef;
use helve_core::{Ask, AskKey, BoxFuture, Person, Reply};
use parking_lot::Mutex;
use rmcp::model::{
    ClientCapabilities, ClientResult, ElicitRequest, ElicitRequestParams, ServerRequest,
};
use rmcp::service::PeerRequestOptions;
use rmcp::{Peer, RoleServer};
use tokio::sync::{mpsc, oneshot};
use tokio::time::timeout;

pub(crate) use form::Form;
use withdraw::WithdrawGuard;

/// How long a parked question waits for its answer.
const PARKED_QUESTION_TIME: Duration = Duration::from_secs(10 * 60);

/// The person who answers for one client session. Knows for each running call how its client can be asked.
#[derive(Clone, Default)]
pub(crate) struct ClientPerson(Arc<Mutex<HashMap<String, AskRoute>>>);

/// How the client of a call can be asked.
#[derive(Clone)]
pub(crate) enum AskRoute {
    /// By a request from the server while the client's own request waits: revisions up to 2025-11-25.
    Elicit(Peer<RoleServer>),
    /// By answering the client's request with the question. The client then repeats the request with the person's reply:
    /// revisions from 2026-07-28 on.
    Park(mpsc::Sender<ParkedQuestion>),
}

/// A question for a client that sends the answer with a later request.
pub(crate) struct ParkedQuestion {
    pub(crate) form: Form,
    pub(crate) key: AskKey,
    pub(crate) answer: oneshot::Sender<Reply>,
}

/// While it lives, questions of a call take the registered route.
pub(crate) struct RouteGuard {
    person: ClientPerson,
    call: String,
}

impl ClientPerson {
    pub(crate) fn register(&self, call: &str, route: AskRoute) -> RouteGuard {
        self.0.lock().insert(call.into(), route);
        RouteGuard { person: self.clone(), call: call.into() }
    }
}

impl Drop for RouteGuard {
    fn drop(&mut self) {
        self.person.0.lock().remove(&self.call);
    }
}

impl Person for ClientPerson {
    fn approve<'a>(&'a self, call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        let route = self.0.lock().get(&*call.root).cloned();
        Box::pin(async move {
            match route {
                None => Reply::Unanswered,
                Some(AskRoute::Elicit(peer)) => elicit(&peer, &Form::of(ask)).await,
                Some(AskRoute::Park(client)) => park(&client, ask).await,
            }
        })
    }
}

/// Whether a client can show forms. Elicitation that is declared without a kind means forms.
pub(crate) fn shows_forms(client: Option<&ClientCapabilities>) -> bool {
    let elicitation = client.and_then(|client| client.elicitation.as_ref());
    elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
}

/// Asks while the client's request waits. Dropping the future withdraws the question.
async fn elicit(peer: &Peer<RoleServer>, form: &Form) -> Reply {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form.request()));
    let options = PeerRequestOptions::no_options();
    let Ok(sent) = peer.send_cancellable_request(request, options).await else {
        return Reply::Unanswered;
    };
    let withdraw = WithdrawGuard::new(peer, &sent.id);
    let answer = sent.rx.await;
    withdraw.disarm();
    match answer {
        Ok(Ok(ClientResult::ElicitResult(answer))) => form.reply(answer),
        // The client cannot show the question, sent something else, or is gone.
        Ok(Ok(_) | Err(_)) | Err(_) => Reply::Unanswered,
    }
}

/// Sends the question as the response to the client's pending request, then waits for the reply. The client sends the reply
/// with a later request.
async fn park(client: &mpsc::Sender<ParkedQuestion>, ask: &Ask) -> Reply {
    let (answer, reply) = oneshot::channel();
    let question = ParkedQuestion { form: Form::of(ask), key: ask.key(), answer };
    let ask_and_wait = async {
        client.send(question).await.ok()?;
        reply.await.ok()
    };
    timeout(PARKED_QUESTION_TIME, ask_and_wait).await.ok().flatten().unwrap_or(Reply::Unanswered)
}

impl Form {
    pub(crate) fn request(&self) -> ElicitRequestParams {
        ElicitRequestParams::FormElicitationParams {
            meta: None,
            message: self.message.clone(),
            requested_schema: self.schema(),
        }
    }
}

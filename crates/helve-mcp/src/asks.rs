//! The person at the client's end: how a call's one question reaches them, and how it is withdrawn.

mod form;
mod withdraw;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use helve_core::context::CallRef;
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
use withdraw::Withdrawn;

/// How long a question waits for its answer where no request of the client waits with it.
const PARKED: Duration = Duration::from_secs(10 * 60);

/// Whoever answers for one visit. Knows, for each call on its way, how its client can be asked.
#[derive(Clone, Default)]
pub(crate) struct Asker(Arc<Mutex<HashMap<String, Way>>>);

/// How the client of a call can be asked.
#[derive(Clone)]
pub(crate) enum Way {
    /// It takes requests of ours while its own waits: revisions up to 2025-11-25.
    Elicit(Peer<RoleServer>),
    /// Its request ends with the question and another brings the answer: from 2026-07-28 on.
    Park(mpsc::Sender<Question>),
}

/// A question on its way to a client that brings the answer with a later request.
pub(crate) struct Question {
    pub(crate) form: Form,
    pub(crate) key: AskKey,
    pub(crate) answer: oneshot::Sender<Reply>,
}

/// While it lives, what a call asks goes the way it was made with.
pub(crate) struct Reachable {
    asker: Asker,
    call: String,
}

impl Asker {
    pub(crate) fn reach(&self, call: &str, way: Way) -> Reachable {
        self.0.lock().insert(call.into(), way);
        Reachable { asker: self.clone(), call: call.into() }
    }
}

impl Drop for Reachable {
    fn drop(&mut self) {
        self.asker.0.lock().remove(&self.call);
    }
}

impl Person for Asker {
    fn approve<'a>(&'a self, call: &'a CallRef, ask: &'a Ask) -> BoxFuture<'a, Reply> {
        let way = self.0.lock().get(&*call.root).cloned();
        Box::pin(async move {
            match way {
                None => Reply::Unanswered,
                Some(Way::Elicit(peer)) => elicit(&peer, &Form::of(ask)).await,
                Some(Way::Park(client)) => park(&client, ask).await,
            }
        })
    }
}

/// Whether a client shows forms. One that names no kind of elicitation means forms.
pub(crate) fn shows_forms(client: Option<&ClientCapabilities>) -> bool {
    let elicitation = client.and_then(|client| client.elicitation.as_ref());
    elicitation.is_some_and(|kinds| kinds.form.is_some() || kinds.url.is_none())
}

/// Asks while the client's request waits. Dropping the future tells the client that nobody waits any more.
async fn elicit(peer: &Peer<RoleServer>, form: &Form) -> Reply {
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(form.request()));
    let options = PeerRequestOptions::no_options();
    let Ok(sent) = peer.send_cancellable_request(request, options).await else {
        return Reply::Unanswered;
    };
    let withdrawn = Withdrawn::when_dropped(peer, &sent.id);
    let answer = sent.rx.await;
    withdrawn.never();
    match answer {
        Ok(Ok(ClientResult::ElicitResult(answer))) => form.reply(answer),
        // It cannot show the question, answers something else, or is gone.
        Ok(Ok(_) | Err(_)) | Err(_) => Reply::Unanswered,
    }
}

/// Asks by way of the request that waits, whichever that is by then.
async fn park(client: &mpsc::Sender<Question>, ask: &Ask) -> Reply {
    let (answer, answered) = oneshot::channel();
    let question = Question { form: Form::of(ask), key: ask.key(), answer };
    let asked = async {
        client.send(question).await.ok()?;
        answered.await.ok()
    };
    timeout(PARKED, asked).await.ok().flatten().unwrap_or(Reply::Unanswered)
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

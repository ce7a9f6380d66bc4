//! Where all connections of a door meet: who visits, what is parked, what runs.

use std::sync::Arc;

use http::request::Parts;
use rmcp::model::Extensions;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::park::Parked;
use crate::visit::{Guests, Visit};
use crate::{Client, Door, FLUSH, PATIENCE};

/// What all connections of a door share.
pub(crate) struct Hall {
    pub(crate) door: Door,
    pub(crate) stop: CancellationToken,
    /// Calls on their way, so that the end can wait for them.
    pub(crate) running: TaskTracker,
    pub(crate) parked: Parked,
    guests: Guests,
}

impl Hall {
    /// `stop` ends every call.
    pub(crate) fn new(door: Door, stop: CancellationToken) -> Arc<Self> {
        let (running, guests, parked) = (TaskTracker::new(), Guests::default(), Parked::default());
        Arc::new(Self { door, stop, running, guests, parked })
    }

    /// Cancels every call and waits for their ends, for as long as a cancelled call may take.
    pub(crate) async fn all_end(&self) {
        self.stop.cancel();
        self.running.close();
        // What does not end in time ends with the process.
        timeout(PATIENCE, self.running.wait()).await.ok();
        timeout(FLUSH, self.door.engine.flush()).await.ok();
    }

    /// The visit that a request belongs to where its connection has none yet. `None` where there is no
    /// agent of the name in the address.
    pub(crate) fn receive(&self, client: Client, extensions: &Extensions) -> Option<Arc<Visit>> {
        let web = extensions.get::<Parts>().map(|parts| &parts.extensions);
        let agent = web.and_then(|web| web.get::<Addressed>()).and_then(|agent| agent.0.clone());
        let ends = extensions.get::<SessionEnds>().map(|ends| ends.0.child_token());
        let alone = web.is_some() && ends.is_none();
        let calls = ends.unwrap_or_else(|| self.stop.child_token());
        let open = |(client, agent)| Visit::open(&self.door, client, agent, calls);
        if alone {
            self.guests.welcome((client, agent), open)
        } else {
            open((client, agent)).map(Arc::new)
        }
    }
}

/// Travels with the requests of a session over HTTP: fires when the session ends.
#[derive(Clone)]
pub(crate) struct SessionEnds(pub(crate) CancellationToken);

/// Travels with requests over HTTP: the agent that the address names.
#[derive(Clone)]
pub(crate) struct Addressed(pub(crate) Option<String>);

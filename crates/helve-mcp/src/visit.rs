//! Who is at the other end, and what is kept for them while they are.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use helve_core::store::Saved;
use helve_core::{Session, ToolSet};
use parking_lot::Mutex;
use rmcp::model::Implementation;
use tokio::sync::watch;
use tokio::time::Instant;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::asks::Asker;
use crate::{Client, Door, Visitor};

/// The longest name of a client that is kept.
const MOST_CLIENT: usize = 256;
/// The most saved outputs that are listed; older ones can still be read.
const MOST_LISTED: usize = 100;

/// A client that is known, and its session.
pub(crate) struct Visit {
    pub(crate) session: Arc<Session>,
    pub(crate) asker: Asker,
    /// Every call's token is a child of it, never of its request: a request may end before its call.
    pub(crate) calls: CancellationToken,
    _ends_with_us: DropGuard,
    /// Counts with the registry from the beginning; moves into the task that watches it.
    pub(crate) changes: Mutex<Option<watch::Receiver<u64>>>,
    offered: Mutex<Option<Offered>>,
    saved: Mutex<VecDeque<Saved>>,
}

/// The tools as they were at some version of the registry.
struct Offered {
    version: u64,
    tools: ToolSet,
}

impl Visit {
    /// `None` where there is no agent of that name.
    pub(crate) fn open(
        door: &Door,
        client: Client,
        agent: Option<String>,
        calls: CancellationToken,
    ) -> Option<Self> {
        let asker = Asker::default();
        let person = Arc::new(asker.clone());
        let session = (door.open)(Visitor { client, agent, person })?;
        let _ends_with_us = calls.clone().drop_guard();
        let changes = Mutex::new(Some(session.workspace.registry.changed()));
        let (offered, saved) = Default::default();
        Some(Self { session, asker, calls, _ends_with_us, changes, offered, saved })
    }

    /// The tools as they are now; made anew only when the registry has changed.
    pub(crate) fn tools(&self) -> ToolSet {
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

    pub(crate) fn note(&self, saved: &Saved) {
        let mut all = self.saved.lock();
        all.truncate(MOST_LISTED - 1);
        all.push_front(saved.clone());
    }

    /// Saved outputs, newest first.
    pub(crate) fn saved(&self) -> Vec<Saved> {
        self.saved.lock().iter().cloned().collect()
    }
}

/// Who a client says it is, in a length that can be kept.
pub(crate) fn client(said: Option<Implementation>) -> Client {
    said.map_or_else(Client::default, |said| Client {
        name: said.name.chars().take(MOST_CLIENT).collect(),
        version: said.version.chars().take(MOST_CLIENT).collect(),
    })
}

/// Visits of clients that say with every request who they are, and hold no connection.
#[derive(Default)]
pub(crate) struct Guests(Mutex<HashMap<Guest, (Instant, Arc<Visit>)>>);

/// Same name, same agent: same session.
type Guest = (Client, Option<String>);

/// The most guests at once; beyond it the one that was silent longest goes.
const MOST_GUESTS: usize = 64;
/// How long a silent guest is remembered.
const SILENCE: Duration = Duration::from_secs(3600);

impl Guests {
    pub(crate) fn welcome(
        &self,
        guest: Guest,
        open: impl FnOnce(Guest) -> Option<Visit>,
    ) -> Option<Arc<Visit>> {
        let mut guests = self.0.lock();
        guests.retain(|_, (seen, _)| seen.elapsed() < SILENCE);
        if let Some((seen, visit)) = guests.get_mut(&guest) {
            *seen = Instant::now();
            return Some(visit.clone());
        }
        if guests.len() >= MOST_GUESTS
            && let Some(oldest) =
                guests.iter().min_by_key(|(_, (seen, _))| *seen).map(|(guest, _)| guest.clone())
        {
            guests.remove(&oldest);
        }
        let visit = Arc::new(open(guest.clone())?);
        guests.insert(guest, (Instant::now(), visit.clone()));
        Some(visit)
    }
}

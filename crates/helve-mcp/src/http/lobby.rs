//! How many connections there are; who has not shown the token makes room.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

/// The most connections at once.
pub(super) const MOST: usize = 256;

/// All connections.
#[derive(Default)]
pub(super) struct Lobby(Mutex<Seats>);

#[derive(Default)]
struct Seats {
    next: u64,
    /// Who has not shown the token yet, oldest first.
    strangers: BTreeMap<u64, CancellationToken>,
    known: usize,
}

/// One connection's place, until it is dropped.
pub(super) struct Seat {
    lobby: Arc<Lobby>,
    number: u64,
    shown_out: CancellationToken,
}

impl Lobby {
    /// A place; where there is none, that of the oldest stranger. `None` when nobody is one.
    pub(super) fn enter(self: &Arc<Self>) -> Option<Arc<Seat>> {
        let mut seats = self.0.lock();
        if seats.strangers.len() + seats.known >= MOST {
            let (_, oldest) = seats.strangers.pop_first()?;
            oldest.cancel();
        }
        let shown_out = CancellationToken::new();
        let number = seats.next;
        seats.next += 1;
        seats.strangers.insert(number, shown_out.clone());
        Some(Arc::new(Seat { lobby: self.clone(), number, shown_out }))
    }
}

impl Seat {
    /// Fires when the place is needed for somebody else.
    pub(super) fn shown_out(&self) -> CancellationToken {
        self.shown_out.clone()
    }

    /// The token was shown: this connection may stay.
    pub(super) fn stays(&self) {
        let mut seats = self.lobby.0.lock();
        if seats.strangers.remove(&self.number).is_some() {
            seats.known += 1;
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.lobby.0.lock();
        if seats.strangers.remove(&self.number).is_none() && !self.shown_out.is_cancelled() {
            seats.known -= 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_make_room_and_the_known_do_not() {
        let lobby = Arc::new(Lobby::default());
        let known = lobby.enter().unwrap();
        known.stays();
        known.stays();
        let mut strangers: Vec<_> = (1..MOST).map(|_| lobby.enter().unwrap()).collect();
        let one_more = lobby.enter().unwrap();
        assert!(strangers[0].shown_out().is_cancelled() && !known.shown_out().is_cancelled());
        assert!(!strangers[1].shown_out().is_cancelled());
        one_more.stays();
        strangers[1..].iter().for_each(|seat| seat.stays());
        assert!(lobby.enter().is_none());
        strangers.pop();
        assert!(lobby.enter().is_some());
        drop((known, strangers, one_more));
        let seats = lobby.0.lock();
        assert_eq!((seats.known, seats.strangers.len()), (0, 0));
    }
}

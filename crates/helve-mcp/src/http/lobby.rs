//! Who is connected. Whoever comes is let in and heard; others make room: strangers, who have not shown the token, for
//! strangers, and of those who have, whoever was silent longest.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// How many connections there may be at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Room {
    pub(super) strangers: usize,
    pub(super) known: usize,
}

impl Room {
    /// What a process with so many file handles can spare: its work needs some too.
    pub(super) fn with_handles(handles: u64) -> Self {
        let share = usize::try_from(handles / 4).unwrap_or(usize::MAX).max(8);
        Self { strangers: share.min(512), known: share.min(256) }
    }

    /// For this process.
    #[cfg(unix)]
    pub(super) fn here() -> Self {
        use rustix::process::{Resource, getrlimit};
        Self::with_handles(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
    }

    #[cfg(not(unix))]
    pub(super) fn here() -> Self {
        Self::with_handles(u64::MAX)
    }
}

/// All connections.
pub(super) struct Lobby {
    room: Room,
    seats: Mutex<Seats>,
    /// Told when a connection has ended.
    left: Notify,
}

#[derive(Default)]
struct Seats {
    /// Counts what happens, so that what happened earlier has the smaller number.
    next: u64,
    /// Connections that have not ended, also those that were shown out and still have to go.
    present: usize,
    /// Who has not shown the token yet, oldest first.
    strangers: BTreeMap<u64, CancellationToken>,
    known: BTreeMap<u64, Known>,
}

struct Known {
    shown_out: CancellationToken,
    doing: Doing,
    /// When it began to do that.
    since: u64,
}

/// What a connection whose client is known is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Doing {
    /// A request has begun and is not there yet.
    Sending,
    /// Nothing, after an answer.
    Idle,
    /// A stream is open to which something may be said.
    Listening,
    /// A request is being answered. Who waits for it is never shown out.
    Working,
}

/// There is no room, and nobody who could make some.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Full;

/// One connection's place, until it is dropped.
pub(super) struct Seat {
    lobby: Arc<Lobby>,
    number: u64,
    as_stranger: CancellationToken,
    as_known: CancellationToken,
}

impl Lobby {
    pub(super) fn new(room: Room) -> Arc<Self> {
        Arc::new(Self { room, seats: Mutex::default(), left: Notify::new() })
    }

    /// A place; where there is none, that of the oldest stranger, once they have left.
    pub(super) async fn enter(self: &Arc<Self>) -> Arc<Seat> {
        loop {
            let left = self.left.notified();
            if let Some(seat) = self.sit() {
                return seat;
            }
            left.await;
        }
    }

    fn sit(self: &Arc<Self>) -> Option<Arc<Seat>> {
        let mut seats = self.seats.lock();
        if seats.strangers.len() >= self.room.strangers {
            seats.show_stranger_out();
        }
        if seats.present >= self.room.strangers + self.room.known {
            return None;
        }
        seats.present += 1;
        let (number, as_stranger) = (seats.count(), CancellationToken::new());
        seats.strangers.insert(number, as_stranger.clone());
        let as_known = CancellationToken::new();
        Some(Arc::new(Seat { lobby: self.clone(), number, as_stranger, as_known }))
    }

    /// Gets a file handle back, if there are strangers.
    pub(super) fn make_room(&self) {
        self.seats.lock().show_stranger_out();
    }
}

impl Seats {
    fn count(&mut self) -> u64 {
        self.next += 1;
        self.next
    }

    fn show_stranger_out(&mut self) {
        if let Some((_, oldest)) = self.strangers.pop_first() {
            oldest.cancel();
        }
    }

    /// Makes room for one more who is known. Who is slow to send makes room for others like them first, so that however
    /// many they are, they leave half of the seats to those who have been answered.
    fn make_room_among_known(&mut self, most: usize) -> Result<(), Full> {
        let sending = self.known.values().filter(|known| known.doing == Doing::Sending).count();
        let order: &[Doing] = match (sending >= most / 2, self.known.len() >= most) {
            (true, _) => &[Doing::Sending],
            (false, true) => &[Doing::Idle, Doing::Listening, Doing::Sending],
            (false, false) => return Ok(()),
        };
        let of = |doing: &Doing| {
            let those = self.known.iter().filter(|(_, known)| known.doing == *doing);
            those.min_by_key(|(_, known)| known.since).map(|(number, _)| *number)
        };
        let oldest = order.iter().find_map(of).ok_or(Full)?;
        if let Some(known) = self.known.remove(&oldest) {
            known.shown_out.cancel();
        }
        Ok(())
    }
}

impl Seat {
    /// Waits until the place is needed for somebody else.
    pub(super) async fn shown_out(&self) {
        self.as_stranger.cancelled().await;
        // Who shows the token while being shown out may stay.
        if self.lobby.seats.lock().known.contains_key(&self.number) {
            self.as_known.cancelled().await;
        }
    }

    /// The token was shown: this connection may stay. It sends what it wants.
    pub(super) fn stays(&self) -> Result<(), Full> {
        let mut seats = self.lobby.seats.lock();
        let since = seats.count();
        match seats.known.get_mut(&self.number) {
            Some(known) => (known.doing, known.since) = (Doing::Sending, since),
            None if self.as_known.is_cancelled() => return Err(Full),
            None => {
                seats.make_room_among_known(self.lobby.room.known)?;
                seats.strangers.remove(&self.number);
                let shown_out = self.as_known.clone();
                let doing = Doing::Sending;
                seats.known.insert(self.number, Known { shown_out, doing, since });
                drop(seats);
                // From here on only the other counts.
                self.as_stranger.cancel();
            }
        }
        Ok(())
    }

    pub(super) fn does(&self, doing: Doing) {
        let mut seats = self.lobby.seats.lock();
        let since = seats.count();
        if let Some(known) = seats.known.get_mut(&self.number) {
            (known.doing, known.since) = (doing, since);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut seats = self.lobby.seats.lock();
        seats.strangers.remove(&self.number);
        seats.known.remove(&self.number);
        seats.present -= 1;
        drop(seats);
        self.lobby.left.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lobby(strangers: usize, known: usize) -> Arc<Lobby> {
        Lobby::new(Room { strangers, known })
    }

    fn out(seats: &[Arc<Seat>]) -> Vec<usize> {
        let gone = |(_, seat): &(usize, &Arc<Seat>)| {
            futures::FutureExt::now_or_never(seat.shown_out()).is_some()
        };
        seats.iter().enumerate().filter(gone).map(|(at, _)| at).collect()
    }

    fn known(lobby: &Arc<Lobby>, doing: Doing) -> Arc<Seat> {
        let seat = lobby.sit().unwrap();
        seat.stays().unwrap();
        seat.does(doing);
        seat
    }

    #[test]
    fn strangers_make_room_for_strangers_and_the_known_do_not() {
        let lobby = lobby(3, 9);
        let known = [known(&lobby, Doing::Idle)];
        let strangers: Vec<_> = (0..5).map(|_| lobby.sit().unwrap()).collect();
        assert_eq!((out(&known), out(&strangers)), (vec![], vec![0, 1]));
        lobby.make_room();
        assert_eq!(out(&strangers), [0, 1, 2]);
        strangers[1].stays().unwrap();
        assert_eq!(out(&strangers), [0, 2], "the token came just in time");
        drop((known, strangers));
        let seats = lobby.seats.lock();
        assert_eq!((seats.known.len(), seats.strangers.len()), (0, 0));
    }

    #[test]
    fn of_the_known_the_idle_make_room_then_listeners_and_workers_never() {
        let lobby = lobby(9, 4);
        let seats = [Doing::Working, Doing::Listening, Doing::Idle, Doing::Idle]
            .map(|it| known(&lobby, it));
        seats[2].does(Doing::Idle);
        let mut more = Vec::new();
        for gone in [&[3][..], &[2, 3], &[1, 2, 3]] {
            more.push(known(&lobby, Doing::Working));
            assert_eq!(out(&seats), gone);
        }
        let stranger = lobby.sit().unwrap();
        assert_eq!(stranger.stays(), Err(Full));
        seats[0].does(Doing::Idle);
        assert_eq!(stranger.stays(), Ok(()));
        assert_eq!((out(&seats), out(&more)), (vec![0, 1, 2, 3], vec![]));
        assert_eq!(seats[0].stays(), Err(Full), "too late");
    }

    #[test]
    fn who_is_slow_to_send_leaves_half_of_the_seats_to_others() {
        let lobby = lobby(9, 4);
        let idle = [known(&lobby, Doing::Idle), known(&lobby, Doing::Idle)];
        let slow: Vec<_> = (0..10).map(|_| known(&lobby, Doing::Sending)).collect();
        assert_eq!((out(&idle), out(&slow)), (vec![], (0..8).collect()));
    }

    #[test]
    fn nobody_enters_until_who_was_shown_out_has_left() {
        let lobby = lobby(2, 1);
        let mut strangers: Vec<_> = (0..3).map(|_| lobby.sit().unwrap()).collect();
        assert_eq!(out(&strangers), [0]);
        assert!(lobby.sit().is_none());
        drop(strangers.remove(0));
        assert!(lobby.sit().is_some());
    }

    #[test]
    fn there_are_fewer_seats_where_there_are_fewer_handles() {
        for (handles, strangers, known) in
            [(0, 8, 8), (256, 64, 64), (1024, 256, 256), (u64::MAX, 512, 256)]
        {
            assert_eq!(Room::with_handles(handles), Room { strangers, known });
        }
    }
}

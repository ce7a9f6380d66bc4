//! Limits the number of connections. A new connection is always admitted and may evict another: the oldest
//! unauthenticated one, or, once the new one has presented the token, the authenticated one that has been idle longest.

use std::collections::BTreeMap;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

/// Maximum numbers of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ConnectionLimits {
    pub(super) unauthenticated: usize,
    pub(super) authenticated: usize,
}

impl ConnectionLimits {
    /// Limits for a process with this many file descriptors, some of which its other work needs.
    pub(super) fn with_descriptors(descriptors: u64) -> Self {
        let share = usize::try_from(descriptors / 4).unwrap_or(usize::MAX).max(8);
        Self { unauthenticated: share.min(512), authenticated: share.min(256) }
    }

    #[cfg(unix)]
    pub(super) fn of_this_process() -> Self {
        use rustix::process::{Resource, getrlimit};
        Self::with_descriptors(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
    }

    #[cfg(not(unix))]
    pub(super) fn of_this_process() -> Self {
        Self::with_descriptors(u64::MAX)
    }
}

/// Admits connections within limits.
pub(super) struct Admission {
    limits: ConnectionLimits,
    table: Mutex<ConnectionTable>,
    /// Notified when a connection has ended.
    ended: Notify,
}

#[derive(Default)]
struct ConnectionTable {
    /// Counts events, so that earlier ones have smaller numbers.
    clock: u64,
    /// Connections that have not ended, including evicted ones that are still closing.
    open: usize,
    /// Connections that have not presented the token yet, oldest first.
    unauthenticated: BTreeMap<u64, CancellationToken>,
    authenticated: BTreeMap<u64, Authenticated>,
}

struct Authenticated {
    evicted: CancellationToken,
    activity: Activity,
    /// When the activity began.
    since: u64,
}

/// What an authenticated connection is used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Activity {
    /// A request has begun but is not complete.
    Sending,
    /// The last request was answered, and the next has not begun.
    Idle,
    /// An event stream is open.
    Listening,
    /// A request is being answered. The connection is never evicted.
    Working,
}

/// The limit is reached, and no connection can be evicted.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LimitReached;

/// Permission for one connection to exist, returned when dropped.
pub(super) struct ConnectionPermit {
    admission: Arc<Admission>,
    number: u64,
    /// Cancelled when the connection stops being unauthenticated: it presented the token, or was evicted before that.
    left_unauthenticated: CancellationToken,
    /// Cancelled when the connection is evicted after it presented the token.
    evicted: CancellationToken,
}

impl Admission {
    pub(super) fn new(limits: ConnectionLimits) -> Arc<Self> {
        Arc::new(Self { limits, table: Mutex::default(), ended: Notify::new() })
    }

    /// Admits a connection. At the limit, evicts the oldest unauthenticated one and waits for its end.
    pub(super) async fn admit(self: &Arc<Self>) -> Arc<ConnectionPermit> {
        loop {
            let ended = self.ended.notified();
            if let Some(permit) = self.try_admit() {
                return permit;
            }
            ended.await;
        }
    }

    fn try_admit(self: &Arc<Self>) -> Option<Arc<ConnectionPermit>> {
        let mut table = self.table.lock();
        if table.unauthenticated.len() >= self.limits.unauthenticated {
            table.evict_unauthenticated();
        }
        if table.open >= self.limits.unauthenticated + self.limits.authenticated {
            return None;
        }
        table.open += 1;
        let (number, left_unauthenticated) = (table.tick(), CancellationToken::new());
        table.unauthenticated.insert(number, left_unauthenticated.clone());
        let evicted = CancellationToken::new();
        Some(Arc::new(ConnectionPermit {
            admission: self.clone(),
            number,
            left_unauthenticated,
            evicted,
        }))
    }

    /// Frees a file descriptor, if there is an unauthenticated connection.
    pub(super) fn evict_one(&self) {
        self.table.lock().evict_unauthenticated();
    }
}

impl ConnectionTable {
    fn tick(&mut self) -> u64 {
        self.clock += 1;
        self.clock
    }

    fn evict_unauthenticated(&mut self) {
        if let Some((_, oldest)) = self.unauthenticated.pop_first() {
            oldest.cancel();
        }
    }

    /// Makes room for one more authenticated connection. Once half of the allowed connections are still sending
    /// their request, the oldest of those is evicted, so that slow senders never use more than half.
    fn evict_if_full(&mut self, max: usize) -> Result<(), LimitReached> {
        let is_sending = |connection: &&Authenticated| connection.activity == Activity::Sending;
        let sending = self.authenticated.values().filter(is_sending).count();
        let order: &[Activity] = match (sending >= max / 2, self.authenticated.len() >= max) {
            (true, _) => &[Activity::Sending],
            (false, true) => &[Activity::Idle, Activity::Listening, Activity::Sending],
            (false, false) => return Ok(()),
        };
        let oldest_with = |activity: &Activity| {
            let candidates = self
                .authenticated
                .iter()
                .filter(|(_, connection)| connection.activity == *activity);
            candidates.min_by_key(|(_, connection)| connection.since).map(|(number, _)| *number)
        };
        let oldest = order.iter().find_map(oldest_with).ok_or(LimitReached)?;
        if let Some(connection) = self.authenticated.remove(&oldest) {
            connection.evicted.cancel();
        }
        Ok(())
    }
}

impl ConnectionPermit {
    /// Waits until the connection is evicted to make room for another.
    pub(super) async fn evicted(&self) {
        self.left_unauthenticated.cancelled().await;
        // A connection that presents the token while it is being evicted may stay.
        if self.admission.table.lock().authenticated.contains_key(&self.number) {
            self.evicted.cancelled().await;
        }
    }

    /// Records that the token was presented and that a request is being sent.
    pub(super) fn admit_authenticated(&self) -> Result<(), LimitReached> {
        let mut table = self.admission.table.lock();
        let since = table.tick();
        match table.authenticated.get_mut(&self.number) {
            Some(entry) => (entry.activity, entry.since) = (Activity::Sending, since),
            None if self.evicted.is_cancelled() => return Err(LimitReached),
            None => {
                table.evict_if_full(self.admission.limits.authenticated)?;
                table.unauthenticated.remove(&self.number);
                let evicted = self.evicted.clone();
                let activity = Activity::Sending;
                table.authenticated.insert(self.number, Authenticated { evicted, activity, since });
                drop(table);
                // [`ConnectionPermit::evicted`] now waits for `self.evicted` instead.
                self.left_unauthenticated.cancel();
            }
        }
        Ok(())
    }

    pub(super) fn set_activity(&self, activity: Activity) {
        let mut table = self.admission.table.lock();
        let since = table.tick();
        if let Some(entry) = table.authenticated.get_mut(&self.number) {
            (entry.activity, entry.since) = (activity, since);
        }
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut table = self.admission.table.lock();
        table.unauthenticated.remove(&self.number);
        table.authenticated.remove(&self.number);
        table.open -= 1;
        drop(table);
        self.admission.ended.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admission(unauthenticated: usize, authenticated: usize) -> Arc<Admission> {
        Admission::new(ConnectionLimits { unauthenticated, authenticated })
    }

    /// Indices of evicted connections.
    fn evicted(permits: &[Arc<ConnectionPermit>]) -> Vec<usize> {
        let is_evicted = |(_, permit): &(usize, &Arc<ConnectionPermit>)| {
            futures::FutureExt::now_or_never(permit.evicted()).is_some()
        };
        permits.iter().enumerate().filter(is_evicted).map(|(index, _)| index).collect()
    }

    fn authenticated(admission: &Arc<Admission>, activity: Activity) -> Arc<ConnectionPermit> {
        let permit = admission.try_admit().unwrap();
        permit.admit_authenticated().unwrap();
        permit.set_activity(activity);
        permit
    }

    #[test]
    fn new_connections_evict_unauthenticated_ones_only() {
        let admission = admission(3, 9);
        let known = [authenticated(&admission, Activity::Idle)];
        let unknown: Vec<_> = (0..5).map(|_| admission.try_admit().unwrap()).collect();
        assert_eq!((evicted(&known), evicted(&unknown)), (vec![], vec![0, 1]));
        admission.evict_one();
        assert_eq!(evicted(&unknown), [0, 1, 2]);
        unknown[1].admit_authenticated().unwrap();
        assert_eq!(evicted(&unknown), [0, 2], "the token came just in time");
        drop((known, unknown));
        let table = admission.table.lock();
        assert_eq!((table.authenticated.len(), table.unauthenticated.len()), (0, 0));
    }

    #[test]
    fn idle_connections_are_evicted_before_listeners_and_working_ones_never() {
        let admission = admission(9, 4);
        let permits = [Activity::Working, Activity::Listening, Activity::Idle, Activity::Idle]
            .map(|activity| authenticated(&admission, activity));
        permits[2].set_activity(Activity::Idle);
        let mut more = Vec::new();
        for expected in [&[3][..], &[2, 3], &[1, 2, 3]] {
            more.push(authenticated(&admission, Activity::Working));
            assert_eq!(evicted(&permits), expected);
        }
        let unknown = admission.try_admit().unwrap();
        assert_eq!(unknown.admit_authenticated(), Err(LimitReached));
        permits[0].set_activity(Activity::Idle);
        assert_eq!(unknown.admit_authenticated(), Ok(()));
        assert_eq!((evicted(&permits), evicted(&more)), (vec![0, 1, 2, 3], vec![]));
        assert_eq!(permits[0].admit_authenticated(), Err(LimitReached), "too late");
    }

    #[test]
    fn slow_senders_leave_half_of_the_connections_to_others() {
        let admission = admission(9, 4);
        let idle =
            [authenticated(&admission, Activity::Idle), authenticated(&admission, Activity::Idle)];
        let slow: Vec<_> = (0..10).map(|_| authenticated(&admission, Activity::Sending)).collect();
        assert_eq!((evicted(&idle), evicted(&slow)), (vec![], (0..8).collect()));
    }

    #[test]
    fn nobody_is_admitted_until_an_evicted_connection_has_ended() {
        let admission = admission(2, 1);
        let mut unknown: Vec<_> = (0..3).map(|_| admission.try_admit().unwrap()).collect();
        assert_eq!(evicted(&unknown), [0]);
        assert!(admission.try_admit().is_none());
        drop(unknown.remove(0));
        assert!(admission.try_admit().is_some());
    }

    #[test]
    fn limits_depend_on_the_number_of_file_descriptors() {
        for (descriptors, unauthenticated, authenticated) in
            [(0, 8, 8), (256, 64, 64), (1024, 256, 256), (u64::MAX, 512, 256)]
        {
            let limits = ConnectionLimits { unauthenticated, authenticated };
            assert_eq!(ConnectionLimits::with_descriptors(descriptors), limits);
        }
    }
}

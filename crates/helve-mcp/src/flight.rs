//! Requests that are being answered: how many, how large, under which ids.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::RequestId;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// The most requests that are answered at once.
const MOST_REQUESTS: usize = 256;
/// The most bytes that their messages may have together.
const MOST_BYTES: usize = 64 << 20;

/// All requests of a connection that are not answered yet.
#[derive(Clone, Default)]
pub(crate) struct Flights {
    open: Arc<Mutex<HashMap<RequestId, usize>>>,
    landed: Arc<Notify>,
    tracker: TaskTracker,
}

/// One request. It travels with the request and ends when its last copy is dropped.
#[derive(Clone)]
#[expect(dead_code, reason = "held for what dropping it does")]
pub(crate) struct Flight(Arc<Landing>);

/// Why a request is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    IdInUse,
    TooMany,
    TooLarge,
}

impl Flights {
    pub(crate) fn begin(&self, id: &RequestId, bytes: usize) -> Result<Flight, Refused> {
        let mut open = self.open.lock();
        if open.contains_key(id) {
            return Err(Refused::IdInUse);
        }
        if open.len() >= MOST_REQUESTS {
            return Err(Refused::TooMany);
        }
        if !open.is_empty() && open.values().sum::<usize>() + bytes > MOST_BYTES {
            return Err(Refused::TooLarge);
        }
        open.insert(id.clone(), bytes);
        Ok(Flight(Arc::new(Landing {
            id: id.clone(),
            open: self.open.clone(),
            landed: self.landed.clone(),
            _counted: self.tracker.token(),
        })))
    }

    /// Waits until a request has been answered since this was last waited for.
    pub(crate) async fn one_landed(&self) {
        self.landed.notified().await;
    }

    pub(crate) fn any(&self) -> bool {
        !self.tracker.is_empty()
    }

    /// Waits until no request is being answered. For a connection that takes no more.
    pub(crate) async fn all_landed(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

struct Landing {
    id: RequestId,
    open: Arc<Mutex<HashMap<RequestId, usize>>>,
    landed: Arc<Notify>,
    _counted: TaskTrackerToken,
}

impl Drop for Landing {
    fn drop(&mut self) {
        self.open.lock().remove(&self.id);
        self.landed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_free_again_when_its_request_has_landed() {
        let flights = Flights::default();
        let id = RequestId::Number(1);
        let first = flights.begin(&id, 10).ok();
        assert!(first.is_some());
        assert_eq!(flights.begin(&id, 10).err(), Some(Refused::IdInUse));
        drop(first);
        assert!(flights.begin(&id, 10).is_ok());
    }

    #[test]
    fn count_and_bytes_are_bounded() {
        let flights = Flights::default();
        let begin = |id: usize, bytes| flights.begin(&RequestId::Number(id as i64), bytes);
        let large = begin(0, MOST_BYTES + 1).ok();
        assert!(large.is_some(), "one alone always passes");
        assert_eq!(begin(1, 1).err(), Some(Refused::TooLarge));
        drop(large);
        let many: Vec<_> = (0..MOST_REQUESTS).map(|id| begin(id, 1)).collect();
        assert!(many.iter().all(Result::is_ok));
        assert_eq!(begin(MOST_REQUESTS, 1).err(), Some(Refused::TooMany));
    }
}

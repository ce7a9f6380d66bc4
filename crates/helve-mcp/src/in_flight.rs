//! Requests that are being answered: their number, total size and ids.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use rmcp::model::RequestId;
use tokio::sync::Notify;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

/// Maximum number of requests answered at once.
const MAX_REQUESTS: usize = 256;
/// Maximum total size of the messages of these requests, in bytes.
const MAX_BYTES: usize = 64 << 20;

/// All unanswered requests of a connection.
#[derive(Clone, Default)]
pub(crate) struct InFlightRequests {
    in_flight: Arc<Mutex<HashMap<RequestId, usize>>>,
    finished: Arc<Notify>,
    tracker: TaskTracker,
}

/// Marks a request as being answered. The request counts as finished when the last clone is dropped.
#[derive(Clone)]
#[expect(dead_code, reason = "dropping the last clone ends the request")]
pub(crate) struct RequestGuard(Arc<RequestEntry>);

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestRefusal {
    IdInUse,
    TooMany,
    TooLarge,
}

impl InFlightRequests {
    pub(crate) fn begin(
        &self,
        id: &RequestId,
        bytes: usize,
    ) -> Result<RequestGuard, RequestRefusal> {
        let mut in_flight = self.in_flight.lock();
        if in_flight.contains_key(id) {
            return Err(RequestRefusal::IdInUse);
        }
        if in_flight.len() >= MAX_REQUESTS {
            return Err(RequestRefusal::TooMany);
        }
        if !in_flight.is_empty() && in_flight.values().sum::<usize>() + bytes > MAX_BYTES {
            return Err(RequestRefusal::TooLarge);
        }
        in_flight.insert(id.clone(), bytes);
        Ok(RequestGuard(Arc::new(RequestEntry {
            id: id.clone(),
            in_flight: self.in_flight.clone(),
            finished: self.finished.clone(),
            _tracker_token: self.tracker.token(),
        })))
    }

    /// Waits until a request finishes. Returns at once if one has finished since the last call.
    pub(crate) async fn wait_for_one(&self) {
        self.finished.notified().await;
    }

    pub(crate) fn is_any_running(&self) -> bool {
        !self.tracker.is_empty()
    }

    /// Waits until no request is being answered. For a connection that accepts no more requests.
    pub(crate) async fn wait_for_all(&self) {
        self.tracker.close();
        self.tracker.wait().await;
    }
}

struct RequestEntry {
    id: RequestId,
    in_flight: Arc<Mutex<HashMap<RequestId, usize>>>,
    finished: Arc<Notify>,
    _tracker_token: TaskTrackerToken,
}

impl Drop for RequestEntry {
    fn drop(&mut self) {
        self.in_flight.lock().remove(&self.id);
        self.finished.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_free_again_after_its_request_finished() {
        let requests = InFlightRequests::default();
        let id = RequestId::Number(1);
        let first = requests.begin(&id, 10).ok();
        assert!(first.is_some());
        assert_eq!(requests.begin(&id, 10).err(), Some(RequestRefusal::IdInUse));
        drop(first);
        assert!(requests.begin(&id, 10).is_ok());
    }

    #[test]
    fn number_and_total_size_are_bounded() {
        let requests = InFlightRequests::default();
        let begin = |id: usize, bytes| requests.begin(&RequestId::Number(id as i64), bytes);
        let large = begin(0, MAX_BYTES + 1).ok();
        assert!(large.is_some(), "a single request always passes");
        assert_eq!(begin(1, 1).err(), Some(RequestRefusal::TooLarge));
        drop(large);
        let many: Vec<_> = (0..MAX_REQUESTS).map(|id| begin(id, 1)).collect();
        assert!(many.iter().all(Result::is_ok));
        assert_eq!(begin(MAX_REQUESTS, 1).err(), Some(RequestRefusal::TooMany));
    }
}

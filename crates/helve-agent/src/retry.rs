//! Computes the wait before a retry.

use std::time::Duration;

use crate::failure::Failure;

/// Maximum number of retries of one request.
pub const MAX_RETRIES: u32 = 5;
/// Maximum total wait in one turn.
pub const MAX_TURN_WAIT: Duration = Duration::from_secs(15 * 60);
const MAX_WAIT: Duration = Duration::from_secs(30);
/// Maximum wait that a server may ask for. If it asks for more, there is no retry.
const MAX_SERVER_WAIT: Duration = Duration::from_secs(120);

/// Returns the wait before retry number `retry`, counted from 1; `None` if a retry would not help.
///
/// `first` is the wait before the first retry, unless the server asks for a different wait. `jitter` is a random number
/// between 0 and 1, so that many clients do not retry at the same moment.
pub fn wait_before(
    retry: u32,
    failure: &Failure,
    first: Duration,
    jitter: f64,
) -> Option<Duration> {
    if !failure.kind.is_retriable() || retry > MAX_RETRIES {
        return None;
    }
    if let Some(asked) = failure.retry_after {
        return (asked <= MAX_SERVER_WAIT).then_some(asked);
    }
    let doubled = first.saturating_mul(1 << retry.saturating_sub(1).min(16)).min(MAX_WAIT);
    Some(doubled.mul_f64(0.8 + 0.4 * jitter.clamp(0.0, 1.0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureKind;

    #[track_caller]
    fn check(kind: FailureKind, retry_after: Option<u64>, expected: [Option<f64>; 6]) {
        let retry_after = retry_after.map(Duration::from_secs);
        let failure = Failure { retry_after, ..Failure::new(kind, "") };
        let waits = [1, 2, 3, 4, 5, 6]
            .map(|retry| wait_before(retry, &failure, Duration::from_secs(1), 0.5));
        assert_eq!(waits.map(|wait| wait.map(|wait| wait.as_secs_f64())), expected);
    }

    #[test]
    fn waits_double_up_to_a_limit() {
        check(
            FailureKind::Server,
            None,
            [Some(1.0), Some(2.0), Some(4.0), Some(8.0), Some(16.0), None],
        );
        check(
            FailureKind::Cut,
            Some(3),
            [Some(3.0), Some(3.0), Some(3.0), Some(3.0), Some(3.0), None],
        );
        check(FailureKind::RateLimited, Some(121), [None; 6]);
        check(FailureKind::Auth, None, [None; 6]);
    }
}

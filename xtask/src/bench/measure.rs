//! Measures durations.

use std::time::{Duration, Instant};

/// Number of rounds at the start that are not counted.
const WARM_UP_ROUNDS: usize = 3;

/// Medians in milliseconds.
pub(super) struct Medians {
    pub baseline: f64,
    pub ours: f64,
}

/// Runs the baseline and our call in turn, so that both run under the same load. Returns the medians of their times.
pub(super) fn interleaved(
    rounds: usize,
    mut baseline: impl FnMut() -> Result<Duration, String>,
    mut ours: impl FnMut() -> Result<Duration, String>,
) -> Result<Medians, String> {
    let mut baseline_times = Vec::with_capacity(rounds);
    let mut our_times = Vec::with_capacity(rounds);
    for round in 0..rounds + WARM_UP_ROUNDS {
        let (baseline_time, our_time) = (baseline()?, ours()?);
        if round >= WARM_UP_ROUNDS {
            baseline_times.push(baseline_time);
            our_times.push(our_time);
        }
    }
    Ok(Medians { baseline: median(baseline_times), ours: median(our_times) })
}

/// Returns the value of an action and how long it took.
pub(super) fn timed<T>(
    action: impl FnOnce() -> Result<T, String>,
) -> Result<(T, Duration), String> {
    let start = Instant::now();
    let value = action()?;
    Ok((value, start.elapsed()))
}

pub(super) fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    let middle = times.len() / 2;
    let at = |index: usize| times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1000.0);
    if times.len().is_multiple_of(2) {
        f64::midpoint(at(middle.saturating_sub(1)), at(middle))
    } else {
        at(middle)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn median_of(milliseconds: &[u64]) -> f64 {
        median(milliseconds.iter().map(|&ms| Duration::from_millis(ms)).collect())
    }

    #[test]
    fn medians() {
        assert_eq!(
            [median_of(&[9, 1, 5]), median_of(&[4, 1, 2, 9]), median_of(&[7]), median_of(&[])],
            [5.0, 3.0, 7.0, 0.0]
        );
    }

    #[test]
    fn rounds_alternate_and_warm_up_is_not_counted() {
        let order = std::cell::RefCell::new(String::new());
        let round = |name: char, ms: u64| {
            let slow = order.borrow().len() < 2 * WARM_UP_ROUNDS;
            order.borrow_mut().push(name);
            Ok(Duration::from_millis(if slow { 1000 } else { ms }))
        };
        let medians = interleaved(2, || round('b', 2), || round('o', 3)).unwrap();
        assert_eq!((medians.baseline, medians.ours, &**order.borrow()), (2.0, 3.0, "bobobobobo"));
    }
}

//! Medians of interleaved rounds, and what the kernel says about a process.

use std::time::{Duration, Instant};

const WARM_UPS: usize = 3;

/// Medians in milliseconds.
pub(super) struct Pair {
    pub floor: f64,
    pub ours: f64,
}

/// Floor and ours by turns, so that both see the same load; the first rounds are not counted.
pub(super) fn interleaved(
    rounds: usize,
    mut floor: impl FnMut() -> Result<Duration, String>,
    mut ours: impl FnMut() -> Result<Duration, String>,
) -> Result<Pair, String> {
    let mut floors = Vec::with_capacity(rounds);
    let mut calls = Vec::with_capacity(rounds);
    for round in 0..rounds + WARM_UPS {
        let pair = (floor()?, ours()?);
        if round >= WARM_UPS {
            floors.push(pair.0);
            calls.push(pair.1);
        }
    }
    Ok(Pair { floor: median(floors), ours: median(calls) })
}

pub(super) fn timed<T>(act: impl FnOnce() -> Result<T, String>) -> Result<(T, Duration), String> {
    let start = Instant::now();
    let value = act()?;
    Ok((value, start.elapsed()))
}

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort();
    let middle = times.len() / 2;
    let at = |index: usize| times.get(index).map_or(0.0, |time| time.as_secs_f64() * 1000.0);
    if times.len().is_multiple_of(2) {
        f64::midpoint(at(middle.saturating_sub(1)), at(middle))
    } else {
        at(middle)
    }
}

/// The most memory a process ever held, in MiB.
pub(super) fn peak_memory(process: u32) -> Result<f64, String> {
    let path = format!("/proc/{process}/status");
    let status = std::fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
    peak_of(&status).ok_or_else(|| format!("{path} has no VmHWM"))
}

fn peak_of(status: &str) -> Option<f64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes / 1024.0)
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
    fn floor_and_ours_take_turns_and_warm_ups_do_not_count() {
        let order = std::cell::RefCell::new(String::new());
        let round = |name: char, ms: u64| {
            let slow = order.borrow().len() < 2 * WARM_UPS;
            order.borrow_mut().push(name);
            Ok(Duration::from_millis(if slow { 1000 } else { ms }))
        };
        let pair = interleaved(2, || round('f', 2), || round('o', 3)).unwrap();
        assert_eq!((pair.floor, pair.ours, &**order.borrow()), (2.0, 3.0, "fofofofofo"));
    }

    #[test]
    fn the_kernel_says_how_much_memory() {
        assert_eq!(peak_of("Name:\thelve\nVmHWM:\t    2048 kB\n"), Some(2.0));
        assert_eq!(peak_of("Name:\thelve\n"), None);
    }
}

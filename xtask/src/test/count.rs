//! How many tests ran, read from what the test runners print.

use std::fmt;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct Count {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl Count {
    /// `Summary [ 1.2s] 5 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 2 skipped`
    pub(super) fn of_nextest(printed: &str) -> Option<Count> {
        let line = printed
            .lines()
            .rev()
            .find(|line| line.trim_start().starts_with("Summary ") && line.contains(" run: "))?;
        let (_, counts) = line.split_once(" run: ")?;
        let mut count = Count::default();
        for part in counts.split(',') {
            let mut words = part.split_whitespace();
            let (Some(Ok(number)), Some(what)) =
                (words.next().map(str::parse::<usize>), words.next())
            else {
                continue;
            };
            match what {
                "passed" => count.passed += number,
                "skipped" => count.skipped += number,
                _ => count.failed += number,
            }
        }
        Some(count)
    }

    /// `test result: ok. 3 passed; 0 failed; 1 ignored; …`, once for each test binary.
    pub(super) fn of_libtest(printed: &str) -> Option<Count> {
        let results = printed.lines().filter_map(|line| line.strip_prefix("test result: "));
        results.map(of_libtest_line).reduce(|sum, count| sum.plus(&count))
    }

    pub(super) fn plus(self, other: &Count) -> Count {
        Count {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

fn of_libtest_line(line: &str) -> Count {
    let mut count = Count::default();
    for part in line.split([';', '.']) {
        let mut words = part.split_whitespace();
        let (Some(Ok(number)), Some(what)) = (words.next().map(str::parse::<usize>), words.next())
        else {
            continue;
        };
        match what {
            "passed" => count.passed = number,
            "failed" => count.failed = number,
            "ignored" => count.skipped = number,
            _ => {}
        }
    }
    count
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} passed, {} failed", self.passed, self.failed)?;
        if self.skipped > 0 {
            write!(f, ", {} skipped", self.skipped)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nextest_counts_once() {
        let count = |text| Count::of_nextest(text).map(|count| count.to_string());
        assert_eq!(
            count("PASS x\n     Summary [   0.1s] 5 tests run: 5 passed, 0 skipped\n").unwrap(),
            "5 passed, 0 failed"
        );
        let bad = "  Summary [ 9s] 9/10 tests run: 5 passed (1 slow), 2 failed, 1 timed out, 1 exec failed, 3 skipped\nerror: x";
        assert_eq!(count(bad).unwrap(), "5 passed, 4 failed, 3 skipped");
        assert_eq!(count("error: could not compile"), None);
    }

    #[test]
    fn libtest_counts_every_binary() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
                    x\ntest result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured\n";
        assert_eq!(Count::of_libtest(text).unwrap().to_string(), "4 passed, 2 failed, 1 skipped");
        assert_eq!(Count::of_libtest("error: could not compile"), None);
    }
}

//! Parses the number of tests from the output of a test runner.

use std::fmt;

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(super) struct TestCount {
    pub passed: usize,
    pub failed: usize,
    pub skipped: usize,
}

impl TestCount {
    /// Parses `Summary [ 1.2s] 5 tests run: 3 passed (1 slow), 1 failed, 1 timed out, 2 skipped`
    pub(super) fn from_nextest(printed: &str) -> Option<TestCount> {
        let line = printed
            .lines()
            .rev()
            .find(|line| line.trim_start().starts_with("Summary ") && line.contains(" run: "))?;
        let (_, counts) = line.split_once(" run: ")?;
        let mut count = TestCount::default();
        for part in counts.split(',') {
            let mut words = part.split_whitespace();
            let (Some(Ok(number)), Some(kind)) =
                (words.next().map(str::parse::<usize>), words.next())
            else {
                continue;
            };
            match kind {
                "passed" => count.passed += number,
                "skipped" => count.skipped += number,
                _ => count.failed += number,
            }
        }
        Some(count)
    }

    /// Parses `test result: ok. 3 passed; 0 failed; 1 ignored; …`, which each test binary prints.
    pub(super) fn from_libtest(printed: &str) -> Option<TestCount> {
        let results = printed.lines().filter_map(|line| line.strip_prefix("test result: "));
        results.map(parse_libtest_line).reduce(|sum, count| sum.plus(&count))
    }

    pub(super) fn plus(self, other: &TestCount) -> TestCount {
        TestCount {
            passed: self.passed + other.passed,
            failed: self.failed + other.failed,
            skipped: self.skipped + other.skipped,
        }
    }
}

fn parse_libtest_line(line: &str) -> TestCount {
    let mut count = TestCount::default();
    for part in line.split([';', '.']) {
        let mut words = part.split_whitespace();
        let (Some(Ok(number)), Some(kind)) = (words.next().map(str::parse::<usize>), words.next())
        else {
            continue;
        };
        match kind {
            "passed" => count.passed = number,
            "failed" => count.failed = number,
            "ignored" => count.skipped = number,
            _ => {}
        }
    }
    count
}

impl fmt::Display for TestCount {
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
    fn the_summary_of_nextest_is_parsed() {
        let count = |text| TestCount::from_nextest(text).map(|count| count.to_string());
        assert_eq!(
            count("PASS x\n     Summary [   0.1s] 5 tests run: 5 passed, 0 skipped\n").unwrap(),
            "5 passed, 0 failed"
        );
        let bad = "  Summary [ 9s] 9/10 tests run: 5 passed (1 slow), 2 failed, 1 timed out, 1 exec failed, 3 skipped\nerror: x";
        assert_eq!(count(bad).unwrap(), "5 passed, 4 failed, 3 skipped");
        assert_eq!(count("error: could not compile"), None);
    }

    #[test]
    fn libtest_results_of_all_binaries_are_added() {
        let text = "test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.01s\n\
                    x\ntest result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured\n";
        assert_eq!(
            TestCount::from_libtest(text).unwrap().to_string(),
            "4 passed, 2 failed, 1 skipped"
        );
        assert_eq!(TestCount::from_libtest("error: could not compile"), None);
    }
}

//! Finds the diagnostics that a change introduced.

use std::collections::HashMap;

use helve_text::diff;

use crate::wire::ServerDiagnostic;

/// Severity, code, source and message. Two diagnostics with the same key may be the same problem.
type ProblemKey<'a> = (u64, Option<&'a str>, Option<&'a str>, &'a str);

fn key(diagnostic: &ServerDiagnostic) -> ProblemKey<'_> {
    let ServerDiagnostic { severity, code, source, message, .. } = diagnostic;
    (*severity, code.as_deref(), source.as_deref(), message)
}

/// Returns the diagnostics of the new text that the old text did not have.
///
/// First, problems with the same severity, code, source and message on corresponding lines are matched. The remaining
/// ones are matched regardless of their lines, so that a problem that moved with its code does not count as new.
pub(crate) fn introduced(
    old: &[ServerDiagnostic],
    new: &[ServerDiagnostic],
    lines: &LineMap,
) -> Vec<ServerDiagnostic> {
    let mut at_line: HashMap<(ProblemKey<'_>, Option<u64>), usize> = HashMap::new();
    let mut anywhere: HashMap<ProblemKey<'_>, usize> = HashMap::new();
    for diagnostic in old {
        let line = lines.new_line(diagnostic.range.start.line);
        *at_line.entry((key(diagnostic), line)).or_default() += 1;
        *anywhere.entry(key(diagnostic)).or_default() += 1;
    }
    let mut unmatched = Vec::new();
    for diagnostic in new {
        let line = Some(diagnostic.range.start.line);
        match at_line.get_mut(&(key(diagnostic), line)) {
            Some(count @ 1..) => {
                *count -= 1;
                if let Some(count) = anywhere.get_mut(&key(diagnostic)) {
                    *count -= 1;
                }
            }
            Some(0) | None => unmatched.push(diagnostic),
        }
    }
    unmatched.retain(|diagnostic| match anywhere.get_mut(&key(diagnostic)) {
        Some(count @ 1..) => {
            *count -= 1;
            false
        }
        Some(0) | None => true,
    });
    unmatched.into_iter().cloned().collect()
}

/// Maps the line numbers of an old text to those of a new one.
pub(crate) struct LineMap {
    /// For each changed range: the start and end of the old lines, and the end of the new lines that replace them.
    hunks: Vec<(u64, u64, u64)>,
}

impl LineMap {
    pub(crate) fn new(old: &str, new: &str) -> Self {
        let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let hunks = diff::hunks(&old, &new).into_iter();
        let hunks = hunks.map(|it| (it.old.start as u64, it.old.end as u64, it.new.end as u64));
        Self { hunks: hunks.collect() }
    }

    /// Returns the new number of an old line; `None` if the line was changed or removed.
    fn new_line(&self, line: u64) -> Option<u64> {
        let before = self.hunks.partition_point(|(_, end, _)| *end <= line);
        if self.hunks.get(before).is_some_and(|(start, end, _)| (*start..*end).contains(&line)) {
            return None;
        }
        match before.checked_sub(1).and_then(|index| self.hunks.get(index)) {
            Some((_, old_end, new_end)) => Some(line - old_end + new_end),
            None => Some(line),
        }
    }
}

#[cfg(test)]
mod tests {
    use helve_text::position::TextPosition;

    use super::*;
    use crate::wire::WireRange;

    /// Each word of a text that is in capitals is a problem.
    fn problems(text: &str) -> Vec<ServerDiagnostic> {
        let mut problems = Vec::new();
        for (line, text) in (0..).zip(text.lines()) {
            for word in text.split(' ').filter(|it| !it.is_empty() && *it == it.to_uppercase()) {
                let at = TextPosition { line, column: 0 };
                problems.push(ServerDiagnostic {
                    range: WireRange { start: at, end: at },
                    severity: 1,
                    code: None,
                    source: None,
                    message: word.into(),
                });
            }
        }
        problems
    }

    #[track_caller]
    fn check(old: &str, new: &str, expected: &[(u64, &str)]) {
        let found = introduced(&problems(old), &problems(new), &LineMap::new(old, new));
        let found: Vec<(u64, &str)> =
            found.iter().map(|it| (it.range.start.line, it.message.as_str())).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn only_new_problems_are_reported() {
        check("", "", &[]);
        check("a\nb", "a\nB", &[(1, "B")]);
        check("A\nb", "A\nB", &[(1, "B")]);
        check("A\nb", "x\ny\nA\nb", &[]);
        check("A\nb", "x\nA\nB", &[(2, "B")]);
        check("b\nA", "A\nb", &[]);
        check("A\nb", "A\nA", &[(1, "A")]);
        check("b\nA", "A\nA", &[(0, "A")]);
        check("A A\nb", "A\nb", &[]);
        check("A", "", &[]);
        check("A a", "A B", &[(0, "B")]);
    }
}

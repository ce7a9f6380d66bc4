//! Licence expressions: `MIT OR (Apache-2.0 WITH LLVM-exception AND Zlib)`.

/// Whether an allowed choice satisfies the expression. A licence with an exception is asked for as `X WITH Y`.
pub(super) fn permits(expression: &str, allowed: impl Fn(&str) -> bool) -> Result<bool, String> {
    let mut parser = Parser { words: words(expression), at: 0, allowed: &allowed };
    let permitted = parser.any(0)?;
    match parser.peek() {
        None => Ok(permitted),
        Some(word) => Err(format!("`{word}` is not expected")),
    }
}

const DEEPEST: usize = 32;

struct Parser<'a> {
    words: Vec<&'a str>,
    at: usize,
    allowed: &'a dyn Fn(&str) -> bool,
}

impl<'a> Parser<'a> {
    fn any(&mut self, depth: usize) -> Result<bool, String> {
        let mut permitted = self.all(depth)?;
        // Some old crates write `MIT/Apache-2.0`.
        while self.take("OR") || self.take("/") {
            permitted |= self.all(depth)?;
        }
        Ok(permitted)
    }

    fn all(&mut self, depth: usize) -> Result<bool, String> {
        let mut permitted = self.one(depth)?;
        while self.take("AND") {
            permitted &= self.one(depth)?;
        }
        Ok(permitted)
    }

    fn one(&mut self, depth: usize) -> Result<bool, String> {
        if depth > DEEPEST {
            return Err("nested too deeply".into());
        }
        if self.take("(") {
            let permitted = self.any(depth + 1)?;
            return if self.take(")") { Ok(permitted) } else { Err("`)` is missing".into()) };
        }
        let licence = self.licence()?;
        if self.take("WITH") {
            let exception = self.licence()?;
            return Ok((self.allowed)(&format!("{licence} WITH {exception}")));
        }
        Ok((self.allowed)(licence))
    }

    fn licence(&mut self) -> Result<&'a str, String> {
        match self.peek() {
            None => Err("a licence is missing at the end".into()),
            Some(word @ ("OR" | "AND" | "WITH" | "(" | ")" | "/")) => {
                Err(format!("a licence is missing before `{word}`"))
            }
            Some(word) => {
                self.at += 1;
                Ok(word)
            }
        }
    }

    fn take(&mut self, word: &str) -> bool {
        let found = self.peek() == Some(word);
        self.at += usize::from(found);
        found
    }

    fn peek(&self) -> Option<&'a str> {
        self.words.get(self.at).copied()
    }
}

fn words(expression: &str) -> Vec<&str> {
    let is_mark = |c: char| "()/".contains(c);
    let split = expression.split_inclusive(is_mark).flat_map(|piece| {
        let word = piece.trim_end_matches(is_mark);
        word.split_whitespace().chain((word.len() < piece.len()).then(|| &piece[word.len()..]))
    });
    split.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, expected: Result<bool, &str>) {
        let allowed = ["MIT", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "Zlib"];
        let found = permits(expression, |licence| allowed.contains(&licence));
        assert_eq!(found, expected.map_err(str::to_owned), "{expression}");
    }

    #[test]
    fn choices_and_duties() {
        check("MIT", Ok(true));
        check("GPL-3.0", Ok(false));
        check("GPL-3.0 OR MIT", Ok(true));
        check("GPL-3.0/MIT", Ok(true));
        check("MIT AND GPL-3.0", Ok(false));
        check("MIT AND Zlib", Ok(true));
    }

    #[test]
    fn and_binds_before_or() {
        check("MIT OR GPL-3.0 AND GPL-2.0", Ok(true));
        check("(MIT OR GPL-3.0) AND GPL-2.0", Ok(false));
        check("((MIT)) AND (GPL-3.0 OR (Zlib))", Ok(true));
    }

    #[test]
    fn an_exception_is_part_of_the_licence() {
        check("Apache-2.0 WITH LLVM-exception", Ok(true));
        check("Zlib WITH LLVM-exception", Ok(false));
        check("Zlib WITH LLVM-exception OR MIT", Ok(true));
    }

    #[test]
    fn broken_expressions_are_errors() {
        check("", Err("a licence is missing at the end"));
        check("MIT OR", Err("a licence is missing at the end"));
        check("(MIT", Err("`)` is missing"));
        check("MIT)", Err("`)` is not expected"));
        check("MIT Zlib", Err("`Zlib` is not expected"));
        check("AND MIT", Err("a licence is missing before `AND`"));
        check(&"(".repeat(100_000), Err("nested too deeply"));
    }
}

//! Recognizes sed programs that only transform text.

use super::bracket;

/// Returns the files that a sed program reads, or `None` if it may run or write something or is not understood.
pub(super) fn files_read(program: &str) -> Option<Vec<String>> {
    let mut sed = SedParser { rest: program, files: Vec::new() };
    while !sed.rest.is_empty() {
        sed.command()?;
    }
    Some(sed.files)
}

/// Returns everything in a sed program that may be a file name: what follows `r`, `R`, `w` and `W`. Also works for
/// programs that [`files_read`] does not understand.
pub(super) fn possible_file_names(program: &str) -> Vec<&str> {
    const MAX_NAMES: usize = 32;
    const MAX_BYTES: usize = 4096;
    let mut names = Vec::new();
    for line in program.lines() {
        for (at, _) in line.match_indices(['r', 'R', 'w', 'W']) {
            let follows_letter = line[..at].ends_with(|c: char| c.is_alphabetic());
            let rest = &line[at + 1..];
            let name = rest.trim();
            let is_name = !name.is_empty() && name.len() < MAX_BYTES;
            if is_name && (!follows_letter || rest.starts_with([' ', '\t'])) {
                // Some versions end the name at a semicolon or a brace.
                names.extend([name, name.split([';', '}']).next().unwrap_or(name).trim()]);
            }
            if names.len() >= MAX_NAMES {
                return names;
            }
        }
    }
    names
}

/// Parser for a sed program. Its methods return `None` at anything that may be harmful.
struct SedParser<'a> {
    rest: &'a str,
    files: Vec<String>,
}

impl SedParser<'_> {
    fn next(&mut self) -> Option<char> {
        let c = self.rest.chars().next()?;
        self.rest = &self.rest[c.len_utf8()..];
        Some(c)
    }

    fn skip(&mut self, is_skipped: impl Fn(char) -> bool) {
        self.rest = self.rest.trim_start_matches(is_skipped);
    }

    fn command(&mut self) -> Option<()> {
        self.skip(|c| c.is_ascii_whitespace() || c == ';');
        self.address()?;
        self.skip_blanks();
        if self.rest.starts_with(',') {
            self.next();
            self.skip_blanks();
            self.skip(|c| c == '+' || c == '~');
            self.address()?;
        }
        self.skip(|c| c == '!' || c == ' ' || c == '\t');
        let Some(command) = self.next() else { return Some(()) };
        match command {
            '{' | '}' => Some(()),
            '=' | 'd' | 'D' | 'g' | 'G' | 'h' | 'H' | 'n' | 'N' | 'p' | 'P' | 'x' | 'z' | 'F' => {
                self.expect_end()
            }
            'l' | 'q' | 'Q' => {
                self.skip_blanks();
                self.skip(|c| c.is_ascii_digit());
                self.expect_end()
            }
            ':' | 'b' | 't' | 'T' => {
                self.skip_blanks();
                self.skip(|c| c.is_ascii_alphanumeric() || c == '_');
                self.expect_end()
            }
            // Dialects differ on where a text of several lines ends.
            'a' | 'i' | 'c' if !self.rest.contains('\n') => {
                self.rest = "";
                Some(())
            }
            's' => {
                let delimiter = self.delimiter()?;
                self.skip_through(delimiter, Side::Pattern)?;
                self.skip_through(delimiter, Side::Replacement)?;
                self.skip(|c| "gpiImM".contains(c) || c.is_ascii_digit());
                self.expect_end()
            }
            'y' => {
                let delimiter = self.delimiter()?;
                self.skip_through(delimiter, Side::Replacement)?;
                self.skip_through(delimiter, Side::Replacement)?;
                self.expect_end()
            }
            'r' => {
                let (file, rest) = self.rest.split_once('\n').unwrap_or((self.rest, ""));
                self.files.push(file.trim().to_string());
                self.rest = rest;
                Some(())
            }
            '#' => {
                self.rest = self.rest.split_once('\n').map_or("", |(_, rest)| rest);
                Some(())
            }
            _ => None,
        }
    }

    fn skip_blanks(&mut self) {
        self.skip(|c| c == ' ' || c == '\t');
    }

    /// Skips an address: a line number, `$`, a regular expression, or nothing.
    fn address(&mut self) -> Option<()> {
        match self.rest.chars().next() {
            Some('0'..='9') => {
                self.skip(|c| c.is_ascii_digit());
                if self.rest.starts_with('~') {
                    self.next();
                    self.skip(|c| c.is_ascii_digit());
                }
            }
            Some('$') => {
                self.next();
            }
            Some('/') => {
                self.next();
                self.skip_through('/', Side::Pattern)?;
                self.skip(|c| c == 'I' || c == 'M');
            }
            Some('\\') => {
                self.next();
                let delimiter = self.delimiter()?;
                self.skip_through(delimiter, Side::Pattern)?;
                self.skip(|c| c == 'I' || c == 'M');
            }
            _ => {}
        }
        Some(())
    }

    fn delimiter(&mut self) -> Option<char> {
        self.next().filter(|c| !c.is_alphanumeric() && !matches!(c, '\\' | '\n' | '[' | ']' | ';'))
    }

    /// Skips up to and including the delimiter.
    fn skip_through(&mut self, delimiter: char, side: Side) -> Option<()> {
        loop {
            match self.next()? {
                c if c == delimiter => return Some(()),
                '\\' => {
                    self.next()?;
                }
                '\n' => return None,
                '[' if side == Side::Pattern => {
                    let length = bracket::length(self.rest, delimiter);
                    self.rest = &self.rest[length.or_else(|| self.ambiguous_bracket())?..];
                }
                _ => {}
            }
        }
    }

    /// Returns the length of a bracket expression that contains the delimiter. Some versions of sed end the pattern at
    /// that delimiter and parse the rest as flags and commands. So the rest must not contain a letter of a flag or
    /// command that reads a file, writes one or runs a program.
    fn ambiguous_bracket(&self) -> Option<usize> {
        if self.rest.contains(['w', 'W', 'r', 'R', 'e', '\\', '\n']) {
            return None;
        }
        bracket::length(self.rest, '\n')
    }

    /// Checks that a command has ended.
    fn expect_end(&mut self) -> Option<()> {
        self.skip_blanks();
        match self.rest.chars().next() {
            None | Some('\n' | ';' | '}' | '#') => Some(()),
            Some(_) => None,
        }
    }
}

/// The two parts of a substitution. Only a pattern has bracket expressions.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Pattern,
    Replacement,
}

#[cfg(test)]
mod tests {
    use super::files_read;

    #[test]
    fn editing_programs_are_harmless() {
        for program in [
            "p",
            "1,5p",
            "$p",
            "10,20p;30q",
            "/a/,/b/p",
            "s/a/b/",
            "s,/x,/y,g",
            "s/a/b/gI2p",
            "/^#/d",
            "s/[a-z]*/\\U&/",
            "$!N;s/\\n/ /;P;D",
            ":a;N;$!ba;s/\\n/,/g",
            "y/abc/xyz/",
            "1~2d",
            "0,/x/d",
            "/a/{s/b/c/;p}",
            "2q",
            "=",
            "1i header",
            "$a\\ footer",
            "s/[]]/x/",
            "s/[][]//g",
            "s/[^][]//g",
            "s/[[:space:]]*$//",
            "s/[^\\]]*]//",
            "\\,a,d",
            "/a/!d",
            "# no",
            "/start/,+3p",
            "s|a|b|;s#c#d#",
        ] {
            assert_eq!(files_read(program), Some(vec![]), "{program}");
        }
        assert_eq!(files_read("/x/r notes.txt"), Some(vec!["notes.txt".into()]));
    }

    #[test]
    fn other_and_ambiguous_programs_are_refused() {
        for program in [
            "e",
            "1e date",
            "e date",
            "s/x/date/e",
            "s/x/y/ge",
            "w out",
            "1w out",
            "s/x/y/w out",
            "W out",
            "/a/w out",
            "p;w out",
            "{w out",
            "p\nw out",
            "s/a/b/;e",
            "1!e date",
            "R x",
            "s/[/]/e date/",
            "s/[][/]/e date/",
            "s/[][]/x/e",
            "s/[][]/]/w out/",
            "s/[[:alpha:]/]/;/g;1e date #/p",
            "s/[[.a.]/]/;/w out/p",
            "s/[[=a=]/]/;/w out/p",
            "s/a/b",
            "a x\ne date",
            "p e",
            "b x y",
            "s\na\nb\n",
            "$!{e date",
            "y/a/b/w",
            "v e",
            "//e",
            "0~3e date",
            "\\xaxe date",
            "s;a;b;",
        ] {
            assert_eq!(files_read(program), None, "{program}");
        }
    }
}

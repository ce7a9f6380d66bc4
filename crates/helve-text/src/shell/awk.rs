//! Recognizes awk programs that only print.

use super::bracket;

/// Words that access more than the input and output of the program.
const UNSAFE_WORDS: &[&str] =
    &["system", "getline", "ARGV", "ARGC", "SYMTAB", "FUNCTAB", "load", "include", "namespace"];
/// Words after which an operand follows, so that a slash starts a regular expression.
const BEFORE_OPERAND: &[&str] = &[
    "print", "printf", "return", "else", "do", "in", "case", "delete", "exit", "while", "if", "for",
];

/// Whether the awk program certainly starts no program and opens no file.
pub(super) fn is_harmless(program: &str) -> bool {
    let open_brackets = Vec::new();
    AwkParser { rest: program, previous: PreviousToken::Operator, open_brackets, print_depth: None }
        .program()
        .is_some()
}

/// Parser for an awk program. Its methods return `None` at anything that may be harmful.
struct AwkParser<'a> {
    rest: &'a str,
    previous: PreviousToken,
    /// The parentheses and brackets that are open at this point.
    open_brackets: Vec<char>,
    /// The number of open brackets at the start of the current `print` statement.
    print_depth: Option<usize>,
}

/// The kind of the preceding token, which decides what a slash means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PreviousToken {
    Operator,
    Operand,
    /// A slash may be either a division or a regular expression.
    Unclear,
}

impl AwkParser<'_> {
    fn program(&mut self) -> Option<()> {
        while let Some(c) = self.rest.chars().next() {
            self.token(c)?;
        }
        Some(())
    }

    fn skip(&mut self, bytes: usize) {
        self.rest = &self.rest[bytes..];
    }

    fn token(&mut self, c: char) -> Option<()> {
        match c {
            ' ' | '\t' => self.skip(1),
            '\n' => {
                // After an operator, the statement continues in the next line.
                if self.previous != PreviousToken::Operator && self.open_brackets.is_empty() {
                    self.print_depth = None;
                }
                self.skip(1);
                self.previous = PreviousToken::Operator;
            }
            '#' => self.skip(self.rest.find('\n').unwrap_or(self.rest.len())),
            '"' => {
                self.skip_delimited('"')?;
                self.previous = PreviousToken::Operand;
            }
            '/' => self.slash()?,
            '0'..='9' | '.' => {
                self.number()?;
                self.previous = PreviousToken::Operand;
            }
            c if c.is_ascii_alphabetic() || c == '_' => self.word()?,
            ';' | '{' | '}' => {
                self.print_depth = None;
                self.skip(1);
                self.previous = PreviousToken::Operator;
            }
            '(' | '[' => {
                self.open_brackets.push(c);
                self.skip(1);
                self.previous = PreviousToken::Operator;
            }
            ')' | ']' => {
                let opening = if c == ')' { '(' } else { '[' };
                self.open_brackets.pop().filter(|open| *open == opening)?;
                self.skip(1);
                self.previous =
                    if c == ')' { PreviousToken::Unclear } else { PreviousToken::Operand };
            }
            '|' => {
                self.rest = self.rest.strip_prefix("||")?;
                self.previous = PreviousToken::Operator;
            }
            '>' if self.print_depth == Some(self.open_brackets.len()) => self.output_redirect()?,
            '+' | '-' => {
                let is_double = self.rest.starts_with("++") || self.rest.starts_with("--");
                self.skip(if is_double { 2 } else { 1 });
                self.previous =
                    if is_double { PreviousToken::Unclear } else { PreviousToken::Operator };
            }
            '$' | '*' | '%' | '^' | '!' | '~' | '=' | '&' | '?' | ':' | ',' | '<' | '>' => {
                self.skip(1);
                self.previous = PreviousToken::Operator;
            }
            _ => return None,
        }
        Some(())
    }

    /// Accepts a redirect of `print` only to standard output or error.
    fn output_redirect(&mut self) -> Option<()> {
        let target = self.rest[1..].trim_start_matches('>').trim_start();
        let streams = ["\"/dev/stderr\"", "\"/dev/stdout\""];
        self.rest = streams.into_iter().find_map(|it| target.strip_prefix(it))?;
        self.previous = PreviousToken::Operand;
        // Anything else would be appended to the file name.
        let next = self.rest.trim_start_matches([' ', '\t']).chars().next();
        next.is_none_or(|c| matches!(c, ';' | '}' | '\n' | '#')).then_some(())
    }

    /// Skips a number. Letters directly after it would be a separate word, so they are refused.
    fn number(&mut self) -> Option<()> {
        let len_after_digits =
            |text: &str| text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let after_mantissa = self.rest.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
        let exponent = after_mantissa.strip_prefix(['e', 'E']);
        let exponent = exponent.map(|it| it.strip_prefix(['+', '-']).unwrap_or(it));
        let rest = match exponent {
            Some(digits) if len_after_digits(digits) < digits.len() => {
                &digits[digits.len() - len_after_digits(digits)..]
            }
            Some(_) | None => after_mantissa,
        };
        let has_suffix = rest.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        self.rest = rest;
        (!has_suffix).then_some(())
    }

    fn word(&mut self) -> Option<()> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &self.rest[..end.unwrap_or(self.rest.len())];
        if UNSAFE_WORDS.contains(&word) {
            return None;
        }
        if word == "print" || word == "printf" {
            self.print_depth = Some(self.open_brackets.len());
        }
        self.previous = match word {
            word if BEFORE_OPERAND.contains(&word) => PreviousToken::Operator,
            // The argument is optional.
            "length" => PreviousToken::Unclear,
            _ => PreviousToken::Operand,
        };
        self.skip(word.len());
        Some(())
    }

    fn slash(&mut self) -> Option<()> {
        match self.previous {
            PreviousToken::Operator => {
                self.skip_delimited('/')?;
                self.previous = PreviousToken::Operand;
            }
            PreviousToken::Unclear if self.rest[1..].contains('/') => return None,
            PreviousToken::Operand | PreviousToken::Unclear => {
                self.skip(1);
                self.previous = PreviousToken::Operator;
            }
        }
        Some(())
    }

    /// Skips a string or regular expression.
    fn skip_delimited(&mut self, delimiter: char) -> Option<()> {
        self.skip(1);
        loop {
            let c = self.rest.chars().next()?;
            self.skip(c.len_utf8());
            match c {
                c if c == delimiter => return Some(()),
                '\\' => self.skip(self.rest.chars().next()?.len_utf8()),
                '\n' => return None,
                '[' if delimiter == '/' => self.skip(bracket::length(self.rest, delimiter)?),
                _ => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn printing_programs_are_harmless() {
        for program in [
            "{print $1}",
            "NR==3",
            "$1 > 5",
            "/a|b/ {print $2 \"|\" $3}",
            "{s+=$1} END{print s/NR}",
            "BEGIN{FS=\":\"} {printf \"%s\\n\", $1}",
            "{print ($1 > 5)}",
            "length($0) > 80",
            "!seen[$0]++",
            "{print > \"/dev/stderr\"}",
            "$2 ~ /x/ && NF>3 {print NR, $0}",
            "{ gsub(/\\//, \"-\"); print }",
            "{for(i=1;i<=NF;i++) print $i}",
            "NR>1 || /x/",
            "{print (a+b)/2}",
            "# note\n{print}",
            "{print a,\n b}",
            "{print 1.5e3, .5, 2}",
            "/[[:space:]]/ {print $1\nprint $2 }",
            "{print $1 # note\n print ($2 > 3)}",
        ] {
            assert!(is_harmless(program), "{program}");
        }
    }

    #[test]
    fn other_and_ambiguous_programs_are_refused() {
        for program in [
            "BEGIN{system(\"date\")}",
            "{print | \"sh\"}",
            "{print > \"out\"}",
            "{print >> \"out\"}",
            "{printf(\"x\") > \"out\"}",
            "BEGIN{while((getline l < \"f\")>0) print l}",
            "{print $1 > $2}",
            "\"date\" | getline x",
            "{print |& \"sh\"}",
            "@load \"filefuncs\"",
            "BEGIN{ARGV[1]=\"x\"}",
            "{f=\"system\"; @f(\"date\")}",
            "{print a,\n b > \"out\"}",
            "{print a||\nb > \"out\"}",
            "{print ($1) > \"out\"}",
            "{print \"unclosed}",
            "{x=1; print x>y}",
            "{a++ /b/ c}",
            "/[/]/ {print}",
            "`date`",
            "{print > \"/dev/stderr\" \"x\" > \"out\"}",
            "{print > \"/dev/stderr\" \".x\"}",
            "BEGIN{1system(\"date\")}",
            "{x=1getline < \"f\"}",
            "{x=1e5system(\"date\")}",
            "BEGIN{y=(1 ~ /[]/]/ / 1); print \"x\" > \"out\"; z=1 / 1}",
            "BEGIN{y=(1 ~ /[^]/]/ / 1); system(\"date\"); z=1 / 1}",
            "{y=/[[:alpha:]/]/}",
            "{print \"a\", # c\n \"b\" > \"out\"}",
            "{print 1 ?\n \"x\" :\n \"y\" > \"out\"}",
            "{x=(1]}",
        ] {
            assert!(!is_harmless(program), "{program}");
        }
    }
}

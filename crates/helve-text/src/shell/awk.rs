//! Awk programs that only print.

/// Words with which a program reaches beyond its input and output.
const REACHING: &[&str] =
    &["system", "getline", "ARGV", "ARGC", "SYMTAB", "FUNCTAB", "load", "include", "namespace"];
/// Words after which an operand comes, so that a slash starts a pattern.
const LEADING: &[&str] = &[
    "print", "printf", "return", "else", "do", "in", "case", "delete", "exit", "while", "if", "for",
];

/// Whether the program certainly runs, writes and opens nothing.
pub(super) fn is_harmless(program: &str) -> bool {
    Awk { rest: program, before: Before::Operator, last: '\n', depth: 0, printing: None }
        .all()
        .is_some()
}

struct Awk<'a> {
    rest: &'a str,
    before: Before,
    /// The last character that was not a blank.
    last: char,
    depth: usize,
    /// The depth of parentheses at which a `print` stands.
    printing: Option<usize>,
}

/// What stands before, and so what a slash means.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Before {
    Operator,
    Operand,
    /// A slash may be either.
    Unclear,
}

impl Awk<'_> {
    fn all(&mut self) -> Option<()> {
        while let Some(c) = self.rest.chars().next() {
            let here = self.rest;
            self.token(c)?;
            if !matches!(c, ' ' | '\t' | '\n') {
                let taken = &here[..here.len() - self.rest.len()];
                self.last = taken.chars().next_back().unwrap_or(c);
            }
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
                // After these a statement goes on in the next line.
                if !matches!(self.last, ',' | '&' | '|') {
                    self.printing = None;
                }
                self.skip(1);
                self.before = Before::Operator;
            }
            '#' => self.skip(self.rest.find('\n').unwrap_or(self.rest.len())),
            '"' => {
                self.quoted('"')?;
                self.before = Before::Operand;
            }
            '/' => self.slash()?,
            '0'..='9' | '.' => {
                let number = |c: char| !c.is_ascii_alphanumeric() && c != '.';
                self.skip(self.rest.find(number).unwrap_or(self.rest.len()));
                self.before = Before::Operand;
            }
            c if c.is_ascii_alphabetic() || c == '_' => self.word()?,
            ';' | '{' | '}' => {
                self.printing = None;
                self.skip(1);
                self.before = Before::Operator;
            }
            '(' | '[' => {
                self.depth += 1;
                self.skip(1);
                self.before = Before::Operator;
            }
            ')' | ']' => {
                self.depth = self.depth.checked_sub(1)?;
                self.skip(1);
                self.before = if c == ')' { Before::Unclear } else { Before::Operand };
            }
            '|' => {
                self.rest = self.rest.strip_prefix("||")?;
                self.before = Before::Operator;
            }
            '>' if self.printing == Some(self.depth) => {
                let target = self.rest[1..].trim_start_matches('>').trim_start();
                let stream = ["\"/dev/stderr\"", "\"/dev/stdout\""];
                self.rest = stream.into_iter().find_map(|it| target.strip_prefix(it))?;
                self.before = Before::Operand;
            }
            '+' | '-' => {
                let twice = self.rest.starts_with("++") || self.rest.starts_with("--");
                self.skip(if twice { 2 } else { 1 });
                self.before = if twice { Before::Unclear } else { Before::Operator };
            }
            '$' | '*' | '%' | '^' | '!' | '~' | '=' | '&' | '?' | ':' | ',' | '<' | '>' => {
                self.skip(1);
                self.before = Before::Operator;
            }
            _ => return None,
        }
        Some(())
    }

    fn word(&mut self) -> Option<()> {
        let end = self.rest.find(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        let word = &self.rest[..end.unwrap_or(self.rest.len())];
        if REACHING.contains(&word) {
            return None;
        }
        if word == "print" || word == "printf" {
            self.printing = Some(self.depth);
        }
        self.before = if LEADING.contains(&word) { Before::Operator } else { Before::Operand };
        self.skip(word.len());
        Some(())
    }

    fn slash(&mut self) -> Option<()> {
        match self.before {
            Before::Operator => {
                self.quoted('/')?;
                self.before = Before::Operand;
            }
            Before::Unclear if self.rest[1..].contains('/') => return None,
            Before::Operand | Before::Unclear => {
                self.skip(1);
                self.before = Before::Operator;
            }
        }
        Some(())
    }

    /// A string or a pattern, up to and with its second delimiter.
    fn quoted(&mut self, delimiter: char) -> Option<()> {
        let mut bracket = false;
        let mut chars = self.rest[1..].char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                // Inside brackets dialects differ on what a slash means.
                c if c == delimiter && bracket => return None,
                c if c == delimiter => {
                    self.skip(at + 2);
                    return Some(());
                }
                '\\' => {
                    chars.next()?;
                }
                '\n' => return None,
                '[' if delimiter == '/' => bracket = true,
                ']' => bracket = false,
                _ => {}
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn programs_that_only_print() {
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
        ] {
            assert!(is_harmless(program), "{program}");
        }
    }

    #[test]
    fn programs_that_reach_further_or_are_unclear() {
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
        ] {
            assert!(!is_harmless(program), "{program}");
        }
    }
}

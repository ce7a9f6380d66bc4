//! The options that the commands share.

use std::path::PathBuf;

#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Run only the parts with these names; empty means all.
    pub only: Vec<String>,
    /// How many rounds a long run makes, where it counts any.
    pub count: Option<usize>,
    /// Where random choices start, to repeat a run.
    pub seed: Option<u64>,
    /// A `helve` binary to use instead of building one.
    pub helve: Option<PathBuf>,
    pub json: bool,
    pub list: bool,
    pub fail_fast: bool,
}

pub(crate) const HELP: &str = "
  --only NAME    one part (may be repeated)     --list        names of the parts
  --count N      rounds of a long run           --seed N      repeat the choices of a run
  --helve PATH   a binary to use as it is       --json        bench: figures as JSON
  --fail-fast    test: stop at the first step that fails
";

pub(crate) fn parse(mut arguments: impl Iterator<Item = String>) -> Result<Options, String> {
    let mut options = Options::default();
    while let Some(argument) = arguments.next() {
        let mut value = || arguments.next().ok_or_else(|| format!("{argument} needs a value"));
        match &*argument {
            "--only" => options.only.push(value()?),
            "--count" => options.count = Some(number(&value()?)?),
            "--seed" => options.seed = Some(number(&value()?)?),
            "--helve" => options.helve = Some(PathBuf::from(value()?)),
            "--json" => options.json = true,
            "--list" => options.list = true,
            "--fail-fast" => options.fail_fast = true,
            _ => return Err(format!("unknown option {argument}; the options are:\n{HELP}")),
        }
    }
    Ok(options)
}

impl Options {
    /// The chosen ones of `all`, in their order; a name that is none of them is an error.
    pub(crate) fn choose<'a, T>(
        &self,
        all: &'a [T],
        name: fn(&T) -> &'static str,
    ) -> Result<Vec<&'a T>, String> {
        for wanted in &self.only {
            if !all.iter().any(|one| name(one) == wanted) {
                let names: Vec<_> = all.iter().map(name).collect();
                return Err(format!("no part is called {wanted}; there are: {}", names.join(", ")));
            }
        }
        Ok(all
            .iter()
            .filter(|one| {
                self.only.is_empty() || self.only.iter().any(|wanted| wanted == name(one))
            })
            .collect())
    }
}

fn number<T: std::str::FromStr>(text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("`{text}` is not a number that fits"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(line: &str) -> Result<Options, String> {
        parse(line.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn options_are_read() {
        let options = parsed("--only a --only b --count 7 --json").unwrap();
        assert_eq!(
            options,
            Options {
                only: vec!["a".into(), "b".into()],
                count: Some(7),
                json: true,
                ..Options::default()
            }
        );
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(parsed("--count many").unwrap_err(), "`many` is not a number that fits");
        assert_eq!(parsed("--only").unwrap_err(), "--only needs a value");
        assert!(parsed("--fast").unwrap_err().starts_with("unknown option --fast"));
    }

    #[test]
    fn only_chooses_and_refuses_strangers() {
        let all = ["first", "second"];
        let choose =
            |line: &str| parsed(line).unwrap().choose(&all, |name| name).map(|them| them.len());
        assert_eq!(choose(""), Ok(2));
        assert_eq!(choose("--only second"), Ok(1));
        assert_eq!(
            choose("--only third"),
            Err("no part is called third; there are: first, second".into())
        );
    }
}

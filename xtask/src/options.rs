//! The options that the commands share.

use std::path::PathBuf;

#[derive(clap::Args, Debug, Default, PartialEq, Eq)]
pub(crate) struct Options {
    /// Run only this part (may be repeated)
    #[arg(long, value_name = "NAME")]
    pub only: Vec<String>,
    /// Number of rounds of a long run
    #[arg(long, value_name = "N")]
    pub count: Option<usize>,
    /// torture: small counts, about five minutes in all
    #[arg(long)]
    pub short: bool,
    /// Seed of random choices, to repeat a run
    #[arg(long, value_name = "N")]
    pub seed: Option<u64>,
    /// A `helve` binary to use instead of building one
    #[arg(long, value_name = "PATH")]
    pub helve: Option<PathBuf>,
    /// bench: print figures as JSON
    #[arg(long)]
    pub json: bool,
    /// Print the names of the parts and exit
    #[arg(long)]
    pub list: bool,
    /// test: stop at the first step that fails
    #[arg(long)]
    pub fail_fast: bool,
    /// picture: write nothing, and fail if the file is not current
    #[arg(long)]
    pub check: bool,
}

impl Options {
    /// Returns the chosen parts of `all` in their order. An unknown name is an error.
    pub(crate) fn choose<'a, T>(
        &self,
        all: &'a [T],
        name: fn(&T) -> &'static str,
    ) -> Result<Vec<&'a T>, String> {
        for wanted in &self.only {
            if !all.iter().any(|part| name(part) == wanted) {
                let names: Vec<_> = all.iter().map(name).collect();
                return Err(format!(
                    "no part is called {wanted}; the parts are {}",
                    names.join(", ")
                ));
            }
        }
        let is_chosen =
            |part: &&T| self.only.is_empty() || self.only.iter().any(|it| it == name(part));
        Ok(all.iter().filter(is_chosen).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_selects_parts_and_unknown_names_are_errors() {
        let all = ["first", "second"];
        let choose = |only: &[&str]| {
            let only = only.iter().map(ToString::to_string).collect();
            let options = Options { only, ..Options::default() };
            options.choose(&all, |name| name).map(|parts| parts.len())
        };
        assert_eq!(choose(&[]), Ok(2));
        assert_eq!(choose(&["second"]), Ok(1));
        let unknown = "no part is called third; the parts are first, second";
        assert_eq!(choose(&["third"]), Err(unknown.into()));
    }
}

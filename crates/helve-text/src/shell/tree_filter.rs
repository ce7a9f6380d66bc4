//! Which files a recursive access reaches, according to the flags of the program.

use super::args::{Argument, ParsedArgs};
use super::{LinkHandling, TreeFilter, Word, names};

/// Maximum number of globs in a filter. With more, the names are not narrowed.
const MAX_GLOBS: usize = 64;

/// Returns the filter of a recursive access.
pub(super) fn of(args: &ParsedArgs) -> TreeFilter {
    let spec = args.spec;
    let values = |flags: &[&'static str]| -> Vec<&Word> {
        let is_given = |it: &&Argument| it.flag.as_deref().is_some_and(|it| flags.contains(&it));
        args.arguments.iter().filter(is_given).map(|it| &it.value).collect()
    };
    let globs = values(&spec.name_globs);
    let (excluded, included): (Vec<&Word>, Vec<&Word>) =
        globs.into_iter().partition(|it| it.prefix().starts_with('!'));
    // A glob that selects files overrides the rules that skip hidden and ignored ones.
    let selects = !included.is_empty();
    let repeated = args.flags.iter().filter(|it| spec.hidden_if_repeated.contains(&it.as_str()));
    let shows_hidden = args.has_any(&spec.hidden_with) || repeated.count() > 1 || selects;
    let shows_ignored = args.has_any(&spec.ignored_with) || selects;
    let mut filter = TreeFilter {
        names: included_names(&included, &values(&spec.file_types)),
        skips_hidden: spec.traits.skips_hidden && !shows_hidden,
        skips_ignored: spec.traits.skips_ignored && !shows_ignored,
        links: if spec.traits.skips_links && !args.has_any(&spec.links_with) {
            LinkHandling::Skipped
        } else {
            LinkHandling::Followed
        },
        excluded_files: certain_globs(&values(&spec.skipped_files)),
        excluded_dirs: certain_globs(&values(&spec.skipped_dirs)),
    };
    // A later glob may include again what an earlier one excludes.
    if included.is_empty() {
        let excluded: Vec<String> = excluded
            .iter()
            .filter_map(|it| certain_glob(it.known_pattern()?.strip_prefix('!')?))
            .collect();
        filter.excluded_files.extend(excluded.iter().cloned());
        filter.excluded_dirs.extend(excluded);
    }
    filter
}

/// Returns the globs of which a file's name must match one; empty if that is not certain.
fn included_names(globs: &[&Word], types: &[&Word]) -> Vec<String> {
    let all_certain = |words: &[&Word]| -> Option<Vec<String>> {
        words.iter().map(|it| certain_glob(it.known_pattern()?)).collect()
    };
    let of_types = || -> Option<Vec<String>> {
        let lists = types.iter().map(|it| it.literal().and_then(names::file_type));
        let lists: Vec<&[&str]> = lists.collect::<Option<_>>()?;
        Some(lists.concat().into_iter().map(str::to_string).collect())
    };
    let names = if globs.is_empty() { of_types() } else { all_certain(globs) };
    names.filter(|it| it.len() <= MAX_GLOBS).unwrap_or_default()
}

fn certain_globs(words: &[&Word]) -> Vec<String> {
    words.iter().filter_map(|it| certain_glob(it.known_pattern()?)).take(MAX_GLOBS).collect()
}

impl Word {
    /// Returns a word that is fully known, or the glob that all words it may become match.
    fn known_pattern(&self) -> Option<&str> {
        match self {
            Word::Literal(text) | Word::Glob(text) => Some(text),
            Word::Dynamic(_) => None,
        }
    }
}

/// Returns a glob that means the same to every program: a name with `*` and `?`, without folders.
pub(super) fn certain_glob(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '*' | '?' | '+');
    let is_certain = !text.is_empty() && text.chars().all(is_plain) && !text.contains("**");
    is_certain.then(|| text.to_string())
}

//! Determines from the flags of a program which files its recursive accesses reach: `grep -r --include=*.rs`.

use super::args::{Argument, ParsedArgs};
use super::{LinkHandling, TreeFilter, TreeListing, Word, names};

/// Maximum number of globs in a filter. With more, the names are not narrowed.
const MAX_GLOBS: usize = 64;

/// Returns the filter of a recursive access.
pub(super) fn of(args: &ParsedArgs) -> TreeFilter {
    let spec = args.spec;
    let values = |flags: &[&'static str]| -> Vec<&Word> {
        let is_given = |argument: &&Argument| {
            argument.flag.as_deref().is_some_and(|flag| flags.contains(&flag))
        };
        args.arguments.iter().filter(is_given).map(|argument| &argument.value).collect()
    };
    let globs = values(&spec.name_globs);
    let (excluded, included): (Vec<&Word>, Vec<&Word>) =
        globs.into_iter().partition(|it| it.prefix().starts_with('!'));
    // A glob that selects files also selects hidden and ignored files, which would otherwise be skipped.
    let has_including_globs = !included.is_empty();
    let repeated =
        args.flags.iter().filter(|it| spec.flags_showing_hidden_if_repeated.contains(&it.as_str()));
    let shows_hidden =
        args.has_any(&spec.flags_showing_hidden) || repeated.count() > 1 || has_including_globs;
    let shows_ignored = args.has_any(&spec.flags_showing_ignored) || has_including_globs;
    // Some flags redefine the file types.
    let types = if args.has_any(&spec.flags_including_again) {
        Vec::new()
    } else {
        values(&spec.file_types)
    };
    let mut filter = TreeFilter {
        names: included_names(&included, &types),
        skips_hidden: spec.traits.skips_hidden && !shows_hidden,
        skips_ignored: spec.traits.skips_ignored && !shows_ignored,
        links: if spec.traits.skips_links && !args.has_any(&spec.flags_following_links) {
            LinkHandling::Skipped
        } else {
            LinkHandling::Followed
        },
        excluded_files: excluded_globs(args, &spec.skipped_files),
        excluded_dirs: excluded_globs(args, &spec.skipped_dirs),
        paths: Vec::new(),
        splits_names: false,
        listing: TreeListing::Directory,
    };
    if has_including_globs {
        // If several globs match a file, the last one decides. With both including and excluding globs, a file that
        // matches none of them may be included.
        if !values(&spec.skipped_files).is_empty() {
            filter.names.clear();
        }
        filter.excluded_files.clear();
    }
    // With including globs, a later glob may include files that an earlier glob excludes.
    if included.is_empty() {
        let excluded: Vec<String> = excluded
            .iter()
            .filter_map(|it| portable_glob(it.known_pattern()?.strip_prefix('!')?))
            .collect();
        filter.excluded_files.extend(excluded.iter().cloned());
        filter.excluded_dirs.extend(excluded);
    }
    filter
}

/// Returns globs such that only files whose name matches one of them are read. The list is empty if the globs are not
/// certain.
fn included_names(globs: &[&Word], types: &[&Word]) -> Vec<String> {
    let all_certain = |words: &[&Word]| -> Option<Vec<String>> {
        words.iter().map(|it| portable_glob(it.known_pattern()?)).collect()
    };
    let of_types = || -> Option<Vec<String>> {
        let lists = types.iter().map(|it| it.literal().and_then(names::file_type));
        let lists: Vec<&[&str]> = lists.collect::<Option<_>>()?;
        Some(lists.concat().into_iter().map(str::to_string).collect())
    };
    let names = if globs.is_empty() { of_types() } else { all_certain(globs) };
    names.filter(|it| it.len() <= MAX_GLOBS).unwrap_or_default()
}

/// Returns the globs for names that these flags certainly exclude.
fn excluded_globs(args: &ParsedArgs, flags: &[&'static str]) -> Vec<String> {
    let spec = args.spec;
    if args.has_any(&spec.flags_including_again) {
        return Vec::new();
    }
    let first_operand =
        args.arguments.iter().filter(|it| it.flag.is_none()).map(|it| it.word).min();
    let is_counted = |argument: &&Argument| {
        let follows_operand = first_operand.is_some_and(|first| argument.word > first);
        argument.flag.as_deref().is_some_and(|flag| flags.contains(&flag))
            && !(follows_operand && spec.traits.exclusions_first)
    };
    let values = args.arguments.iter().filter(is_counted).map(|it| &it.value);
    values.filter_map(|it| portable_glob(it.known_pattern()?)).take(MAX_GLOBS).collect()
}

impl Word {
    /// Returns the text of a literal word, or the glob that describes everything it may expand to.
    fn known_pattern(&self) -> Option<&str> {
        match self {
            Word::Literal(text) | Word::Glob(text) => Some(text),
            Word::Dynamic(_) => None,
        }
    }
}

/// Returns a glob that means the same to every program: a name with `*` and `?`, without folders.
pub(super) fn portable_glob(text: &str) -> Option<String> {
    let is_plain = |c: char| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '*' | '?' | '+');
    let is_certain = !text.is_empty() && text.chars().all(is_plain) && !text.contains("**");
    is_certain.then(|| text.to_string())
}

#[cfg(test)]
mod tests {
    use crate::shell::{AccessKind, LinkHandling, ShellContext, TreeFilter, analyze};

    /// Returns the filter of the first recursive read of a script.
    fn filter(script: &str) -> TreeFilter {
        let context = ShellContext { cwd: "/w".into(), ..ShellContext::default() };
        let script = analyze(script, &context);
        let mut trees = script.accesses.into_iter().filter(|it| it.kind == AccessKind::ReadTree);
        trees.next().map(|it| it.filter).unwrap_or_else(|| panic!("reads no directory"))
    }

    #[test]
    fn certain_name_globs_narrow_a_recursive_read() {
        for (script, names) in [
            ("grep -r x .", &[][..]),
            ("grep -r --include='*.rs' --include=*.md x", &["*.rs", "*.md"]),
            ("grep -r --include='[ab].rs' x", &[]),
            ("grep -r --include='src/*.rs' x", &[]),
            ("rg -g '*.rs' x", &["*.rs"]),
            ("rg -t rust x", &["*.rs"]),
            ("rg -t other x", &[]),
            ("rg -g '*.rs' -g 'a/*' x", &[]),
            ("find . -name '*.rs' -exec cat {} +", &["*.rs"]),
            ("find . -type f -name 'a*' -print0 | xargs -0 cat", &["a*"]),
            ("find . '(' -name a -o -name b ')' -exec cat {} +", &["a", "b"]),
            ("find . -name a -o -name b -exec cat {} +", &["a", "b"]),
            ("find . -name a -o -type f -exec cat {} +", &[]),
            ("find . -not -name a -exec cat {} +", &[]),
            ("find . ! '(' -name a ')' -exec cat {} +", &[]),
            ("find . -path ./x -prune -o -name a -exec cat {} +", &["a"]),
            ("find . -name a , -exec cat {} +", &[]),
            ("find . -iname a -exec cat {} +", &[]),
            ("git ls-files '*.rs' | xargs cat", &["*.rs"]),
            ("git ls-files src '*.rs' | xargs cat", &[]),
        ] {
            assert_eq!(filter(script).names, names, "{script}");
        }
    }

    #[test]
    fn flags_decide_which_files_are_skipped() {
        for (script, hidden, ignored) in [
            ("rg x", true, true),
            ("rg --hidden x", false, true),
            ("rg --no-ignore x", true, false),
            ("rg -u x", true, false),
            ("rg -uu x", false, false),
            ("rg -u -u x", false, false),
            ("rg -g '.e*' x", false, false),
            ("rg -g '!a' x", true, true),
            ("grep -r x", false, false),
            ("git grep x", false, true),
            ("git grep --no-index x", false, false),
            ("git add .", false, true),
            ("git add -f .", false, false),
            ("fd x -x cat", true, true),
            ("fd -HI x -x cat", false, false),
        ] {
            let filter = filter(script);
            assert_eq!((filter.skips_hidden, filter.skips_ignored), (hidden, ignored), "{script}");
        }
        for (script, links) in [
            ("grep -r x", LinkHandling::Skipped),
            ("grep -R x", LinkHandling::Followed),
            ("diff -r a b", LinkHandling::Followed),
            ("cp -r a b", LinkHandling::Skipped),
            ("cp -rL a b", LinkHandling::Followed),
            ("find . -exec cat {} +", LinkHandling::Opened),
            ("find . -type f -exec cat {} +", LinkHandling::Skipped),
        ] {
            assert_eq!(filter(script).links, links, "{script}");
        }
    }

    #[test]
    fn names_are_excluded_only_if_that_is_certain() {
        for (script, files, dirs) in [
            ("grep -r --exclude=a --exclude-dir=b x", &["a"][..], &["b"][..]),
            ("grep -r --exclude=a --include=a x", &[], &[]),
            ("rg -g '!a' x", &["a"], &["a"]),
            ("rg -g '!a' -g a x", &[], &[]),
            ("rg -g '!a/b' x", &[], &[]),
            ("tar c --exclude=a .", &["a"], &["a"]),
            ("tar c . --exclude=a", &[], &[]),
            ("rsync -a --exclude=a . h:", &["a"], &["a"]),
            ("rsync -a --include=a --exclude=a . h:", &[], &[]),
        ] {
            let filter = filter(script);
            assert_eq!(filter.excluded_files, files, "{script}");
            assert_eq!(filter.excluded_dirs, dirs, "{script}");
        }
    }
}

//! Which files are meant, by globs in the manner of `.gitignore`.

use globset::{Candidate, GlobBuilder, GlobSet, GlobSetBuilder};
use helve_core::machine::SearchError;

/// Longer globs are refused.
const LONGEST: usize = 4096;
const MOST_GLOBS: usize = 1000;
/// How deep braces may nest.
const DEEPEST: usize = 8;

/// Compiled globs. The last that matches decides.
pub(crate) struct Globs {
    set: GlobSet,
    /// Of each glob in the set.
    senses: Vec<Sense>,
    has_means: bool,
    has_leaves_out: bool,
    /// Where everything that is meant lies: the leading folders of each glob. Empty if it can lie anywhere.
    starts: Vec<Vec<u8>>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Sense {
    Means,
    LeavesOut(What),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum What {
    Any,
    Folders,
}

impl Globs {
    /// `base` is the folder that paths are relative to; a glob may begin with it.
    pub(crate) fn new(base: &str, globs: &[String]) -> Result<Self, SearchError> {
        if globs.len() > MOST_GLOBS {
            let why = format!("{MOST_GLOBS} globs are the most");
            return Err(SearchError::Glob { glob: String::new(), why });
        }
        let mut builder = GlobSetBuilder::new();
        let (mut senses, mut starts, mut is_rooted) = (Vec::new(), Vec::new(), true);
        for glob in globs {
            let bad = |why: String| SearchError::Glob { glob: glob.clone(), why };
            for (text, sense) in readings(base, glob).map_err(bad)? {
                let compiled = GlobBuilder::new(&text)
                    .literal_separator(true)
                    .backslash_escape(true)
                    .empty_alternates(true)
                    .allow_unclosed_class(true)
                    .build();
                builder.add(compiled.map_err(|err| bad(err.kind().to_string()))?);
                senses.push(sense);
                if sense == Sense::Means {
                    let start = start(&text);
                    is_rooted &= !start.is_empty();
                    starts.push(start);
                }
            }
        }
        let failed = |err: globset::Error| SearchError::Glob {
            glob: globs.join(" "),
            why: err.kind().to_string(),
        };
        if !is_rooted {
            starts.clear();
        }
        Ok(Self {
            set: builder.build().map_err(failed)?,
            has_means: senses.contains(&Sense::Means),
            has_leaves_out: senses.iter().any(|sense| *sense != Sense::Means),
            senses,
            starts,
        })
    }

    /// Whether a glob names `.git` outright, so that it is entered.
    pub(crate) fn name_git(&self) -> bool {
        let names = |start: &Vec<u8>| start.split(|byte| *byte == b'/').any(|name| name == b".git");
        self.starts.iter().any(names)
    }

    pub(crate) fn file(&self, path: &[u8]) -> Meant {
        if self.senses.is_empty() {
            return Meant::Yes;
        }
        let candidate = Candidate::from_bytes(path);
        if !self.has_leaves_out {
            return if self.set.is_match_candidate(&candidate) { Meant::Yes } else { Meant::No };
        }
        let decides = |sense: &Sense| *sense != Sense::LeavesOut(What::Folders);
        match self.last(&candidate, decides) {
            Some(Sense::Means) => Meant::Yes,
            Some(Sense::LeavesOut(_)) => Meant::LeftOut,
            None if self.has_means => Meant::No,
            None => Meant::Yes,
        }
    }

    /// Whether to go into a folder.
    pub(crate) fn folder(&self, path: &[u8]) -> Meant {
        if !self.starts.is_empty() && !self.starts.iter().any(|start| leads_to(start, path)) {
            return Meant::No;
        }
        if !self.has_leaves_out {
            return Meant::Yes;
        }
        match self.last(&Candidate::from_bytes(path), |_| true) {
            Some(Sense::LeavesOut(_)) => Meant::LeftOut,
            Some(Sense::Means) | None => Meant::Yes,
        }
    }

    fn last(&self, candidate: &Candidate<'_>, decides: impl Fn(&Sense) -> bool) -> Option<Sense> {
        let matching = self.set.matches_candidate(candidate);
        matching.into_iter().rev().map(|at| self.senses[at]).find(decides)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    Yes,
    No,
    /// A glob says that it is not.
    LeftOut,
}

/// What a glob stands for, in the syntax of `globset`.
fn readings(base: &str, glob: &str) -> Result<Vec<(String, Sense)>, String> {
    if glob.len() > LONGEST {
        return Err(format!("{LONGEST} bytes are the most"));
    }
    let (text, leaves_out) = match glob.strip_prefix('!') {
        Some(text) => (text, true),
        None => (glob, false),
    };
    let text = text.strip_prefix(base).filter(|rest| rest.starts_with('/')).unwrap_or(text);
    let is_rooted = text.starts_with('/') || text.starts_with("./");
    let text = text.trim_start_matches("./").trim_start_matches('/');
    let (text, is_folder) = match text.strip_suffix('/') {
        Some(text) => (text.trim_end_matches('/'), true),
        None => (text, false),
    };
    if text.is_empty() {
        return Err("it names nothing".into());
    }
    check_depth(text)?;
    let anywhere = !is_rooted && !text.contains('/') && text != "**";
    let whole = if anywhere { format!("**/{text}") } else { text.to_string() };
    if leaves_out {
        let what = if is_folder { What::Folders } else { What::Any };
        return Ok(vec![(whole, Sense::LeavesOut(what))]);
    }
    let whole = if is_folder { format!("{whole}/**") } else { whole };
    let mut all = Vec::new();
    // `[id]` is a class of letters, and a folder's name to people who write routes as files.
    if whole.contains('[') {
        all.push((whole.replace('[', "\\[").replace(']', "\\]"), Sense::Means));
    }
    all.extend(listed(&whole, anywhere).into_iter().map(|one| (one, Sense::Means)));
    all.push((whole, Sense::Means));
    Ok(all)
}

/// The parts of `*.ts, *.tsx`, which many write for `*.{ts,tsx}`. The whole may be a name, too, so it stays beside them.
fn listed(glob: &str, anywhere: bool) -> Vec<String> {
    if !anywhere || !glob.contains(',') || glob.contains(['{', '[', '\\']) {
        return Vec::new();
    }
    let names = glob.trim_start_matches("**/").split(',').map(str::trim);
    names.filter(|name| !name.is_empty()).map(|name| format!("**/{name}")).collect()
}

/// The compiler of globs goes into braces by calling itself.
fn check_depth(glob: &str) -> Result<(), String> {
    let mut depth = 0usize;
    for byte in glob.bytes() {
        match byte {
            b'{' => depth += 1,
            b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth > DEEPEST {
            return Err(format!("braces nest {DEEPEST} deep at most"));
        }
    }
    Ok(())
}

/// The leading folders of a glob that are no pattern.
fn start(glob: &str) -> Vec<u8> {
    let plain = |part: &&str| !part.contains(['*', '?', '[', ']', '{', '}', '\\']);
    let parts: Vec<&str> = glob.split('/').collect();
    let folders = parts[..parts.len() - 1].iter().copied().take_while(plain);
    folders.collect::<Vec<_>>().join("/").into_bytes()
}

/// Whether one of the paths lies on the way to the other.
fn leads_to(start: &[u8], folder: &[u8]) -> bool {
    let (short, long) = if start.len() < folder.len() { (start, folder) } else { (folder, start) };
    long.starts_with(short) && (long.len() == short.len() || long[short.len()] == b'/')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(globs: &[&str], yes: &[&str], no: &[&str]) {
        let globs: Vec<String> = globs.iter().map(|glob| (*glob).into()).collect();
        let compiled = Globs::new("/w", &globs).unwrap();
        let reached = |path: &str| {
            let ends = path.match_indices('/').map(|(at, _)| &path[..at]);
            ends.into_iter().all(|folder| compiled.folder(folder.as_bytes()) == Meant::Yes)
        };
        let meant = |path: &str| reached(path) && compiled.file(path.as_bytes()) == Meant::Yes;
        for path in yes {
            assert!(meant(path), "{globs:?} means {path}");
        }
        for path in no {
            assert!(!meant(path), "{globs:?} does not mean {path}");
        }
    }

    #[test]
    fn names_and_paths() {
        check(&[], &["a", "a/b", ".x"], &[]);
        check(&["*.rs"], &["a.rs", "x/y/a.rs", ".h/a.rs", ".rs"], &["a.rsx", "a"]);
        check(&["src/*.rs"], &["src/a.rs"], &["a.rs", "x/src/a.rs", "src/x/a.rs"]);
        check(&["/*.rs", "./b/*"], &["a.rs", "b/x"], &["x/a.rs", "b/x/y"]);
        check(&["/w/src/**/*.rs"], &["src/a.rs", "src/x/y/a.rs"], &["a.rs"]);
        check(&["src/**"], &["src/a", "src/x/y"], &["a", "srcx/a"]);
        check(&["src/"], &["src/a", "x/src/y/z"], &["src", "a"]);
        check(&["**"], &["a", "x/y"], &[]);
        check(&["**/test/**/*.ts"], &["test/a.ts", "x/test/y/z.ts"], &["a.ts", "test.ts"]);
    }

    #[test]
    fn braces_classes_and_lists() {
        check(&["*.{ts,tsx}"], &["a.ts", "x/a.tsx"], &["a.js"]);
        check(&["{a,b}{c,}"], &["ac", "b"], &["c"]);
        check(&["[ab].c"], &["a.c", "[ab].c"], &["c.c"]);
        check(&["app/[id]/*.tsx"], &["app/[id]/p.tsx", "app/i/p.tsx"], &["app/x/p.tsx"]);
        check(&["*.ts, *.tsx"], &["a.ts", "x/a.tsx", "*.ts, *.tsx"], &["a.js"]);
        check(&["a\\*"], &["a*"], &["ab"]);
        check(&["[a"], &["[a"], &["a"]);
    }

    #[test]
    fn what_is_left_out() {
        check(&["!*.rs"], &["a"], &["a.rs", "x/a.rs"]);
        check(&["*.rs", "!test/"], &["a.rs", "x/a.rs"], &["test/a.rs", "x/test/a.rs"]);
        check(&["!test/"], &["test", "a"], &["test/a"]);
        check(&["*.rs", "!a.rs", "x/a.rs"], &["x/a.rs", "b.rs"], &["a.rs"]);
    }

    #[test]
    fn bombs_are_only_globs() {
        let many = "{a,b}".repeat(20);
        check(&[&many], &["abababababababababab"], &["a"]);
        check(&[&("**/".repeat(300) + "x")], &["x", "a/b/x"], &["y"]);
        check(&[&("*a".repeat(300) + "b")], &[], &[&"a".repeat(250)]);
        check(&[&"?".repeat(1000)], &[], &["x"]);
    }

    #[test]
    fn bad_globs_say_why() {
        let why = |glob: &str| match Globs::new("/w", &[glob.into()]) {
            Err(SearchError::Glob { why, .. }) => why,
            _ => String::new(),
        };
        assert_eq!(why(&"{".repeat(20_000)), "4096 bytes are the most");
        assert_eq!(why(&"{".repeat(20)), "braces nest 8 deep at most");
        assert!(why("{a").contains("unclosed"), "{}", why("{a"));
        assert_eq!([why(""), why("!"), why("/"), why("./")], ["it names nothing"; 4]);
    }

    #[test]
    fn only_folders_on_the_way_are_entered() {
        let globs = Globs::new("/w", &["a/b/*.rs".into(), "c/**".into()]).unwrap();
        let entered = |path: &&str| globs.folder(path.as_bytes()) == Meant::Yes;
        let all = ["a", "a/b", "a/b/c", "c", "c/d", "b", "ab", "a/c"];
        let seen: Vec<&str> = all.into_iter().filter(entered).collect();
        assert_eq!(seen, ["a", "a/b", "a/b/c", "c", "c/d"]);
        assert!(Globs::new("/w", &[".git/hooks/*".into()]).unwrap().name_git());
        assert!(!Globs::new("/w", &["*.git/*".into()]).unwrap().name_git());
    }
}

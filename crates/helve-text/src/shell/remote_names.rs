//! The names that files of other machines and containers get when they are copied to this machine: `host:a/x` → `x`.

use super::Word;

/// The path in an address like `host:path` or `s3://bucket/path`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RemotePath<'t>(&'t str);

impl<'t> RemotePath<'t> {
    /// Returns the path if a word is an address, and not a file of this machine.
    pub(super) fn of(word: &'t Word) -> Option<Self> {
        let text = match word {
            Word::Literal(text) | Word::Glob(text) => text.as_str(),
            Word::Dynamic(_) => return None,
        };
        if let Some((scheme, rest)) = text.split_once("://") {
            let is_local = scheme.is_empty() || scheme.contains('/') || scheme == "file";
            return (!is_local).then(|| Self(rest.split_once('/').map_or("", |(_, path)| path)));
        }
        let (host, path) = text.split_once(':')?;
        let is_host = !host.is_empty() && !host.contains('/');
        // An rsync daemon is written with two colons.
        is_host.then(|| Self(path.strip_prefix(':').unwrap_or(path)))
    }

    /// The same for programs that also accept `namespace/container:path`.
    pub(super) fn of_container(word: &'t Word) -> Option<Self> {
        let (host, path) = word.literal()?.split_once(':')?;
        let is_host = host.contains('/') && !host.starts_with(['/', '.']) && !path.contains("//");
        Self::of(word).or_else(|| is_host.then_some(Self(path)))
    }

    /// Returns the name of the file; `None` if the address does not tell which names are written. The other side may
    /// expand wildcards, quotes and variables.
    pub(super) fn name(self) -> Option<&'t str> {
        let path = self.path()?;
        let name = path.rsplit('/').next().unwrap_or(path);
        (!matches!(name, "" | "." | "..") && !name.starts_with('~')).then_some(name)
    }

    /// Returns the whole path; `None` if the other side may change it.
    pub(super) fn path(self) -> Option<&'t str> {
        let is_expanded = |c: char| c.is_whitespace() || "*?[]{}$`\\'\"%;&|<>()".contains(c);
        (!self.0.contains(is_expanded)).then_some(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_addresses() {
        let name = |text: &str| {
            let word = Word::Literal(text.into());
            RemotePath::of(&word).map(|it| it.name().map(str::to_string))
        };
        for (text, expected) in [
            ("h:.envrc", Some(".envrc")),
            ("me@h:a/b", Some("b")),
            ("h::module/x", Some("x")),
            ("s3://b/a/x", Some("x")),
            ("scp://me@h:22/x", Some("x")),
            ("h:a/", None),
            ("h:", None),
            ("h:.", None),
            ("h:*", None),
            ("h:.env\\rc", None),
            ("gs://b", None),
        ] {
            assert_eq!(name(text), Some(expected.map(str::to_string)), "{text}");
        }
        for text in ["a", "a/b:c", "./h:x", "file:///x", ":x"] {
            assert_eq!(name(text), None, "{text}");
        }
    }
}

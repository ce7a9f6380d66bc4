//! Compares file names the way some file systems do, which treat several spellings as one name.

/// Whether `name` opens the file `known` on some file system, for example one that ignores case, certain invisible
/// characters, dots and spaces at the end, or what follows a colon, or one that has short names, such as `GIT~1` for
/// `.git`.
pub fn could_refer_to(name: &[u8], known: &str) -> bool {
    let is_plain = |byte: &u8| byte.is_ascii() && !matches!(byte, b'~' | b':' | b' ');
    if name.iter().all(is_plain) && !name.ends_with(b".") {
        return name.eq_ignore_ascii_case(known.as_bytes());
    }
    // On file systems for which a name must be UTF-8, invalid bytes cannot spell `known`.
    let name: String =
        String::from_utf8_lossy(name).chars().filter(|c| !is_ignorable(*c)).map(folded).collect();
    let name = name.split_once(':').map_or(&*name, |(name, _)| name).trim_end_matches(['.', ' ']);
    name.eq_ignore_ascii_case(known) || is_short_name(name, known)
}

/// Characters that HFS+ or a file system with Unicode case folding ignores in names.
fn is_ignorable(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Converts characters that some file systems treat as ASCII: those whose lower case is an ASCII letter, and full-width
/// ones.
fn folded(c: char) -> char {
    match c {
        '\u{17f}' => 's',
        '\u{212a}' => 'k',
        '\u{ff01}'..='\u{ff5e}' => {
            char::from_u32(u32::from(c) - 0xfee0).map_or(c, |ascii| ascii.to_ascii_lowercase())
        }
        _ => c,
    }
}

/// Whether a name is one of the short names that Windows gives to files: the first letters, `~`, and a number.
fn is_short_name(name: &str, known: &str) -> bool {
    let Some((start, rest)) = name.split_once('~') else { return false };
    let (number, _extension) = rest.split_once('.').unwrap_or((rest, ""));
    let mut letters = known.chars().filter(|c| !matches!(c, '.' | ' '));
    let is_start =
        start.chars().all(|c| letters.next().is_some_and(|other| c.eq_ignore_ascii_case(&other)));
    is_start
        && !start.is_empty()
        && !number.is_empty()
        && number.bytes().all(|it| it.is_ascii_digit())
}

#[cfg(test)]
mod tests {
    use super::could_refer_to;

    #[test]
    fn spellings_of_a_name() {
        for (name, known, expected) in [
            (".git", ".git", true),
            (".GIT", ".git", true),
            (".git.", ".git", true),
            (".git . ", ".git", true),
            (".git::$INDEX_ALLOCATION", ".git", true),
            (".g\u{200d}it", ".git", true),
            ("\u{feff}.git", ".git", true),
            ("\u{ff0e}git", ".git", true),
            ("git~1", ".git", true),
            ("GIT~12", ".git", true),
            ("hoo\u{212a}\u{17f}", "hooks", true),
            ("COMMON~1", "commondir", true),
            ("CONFIG~1.WOR", "config.worktree", true),
            ("config:x", "config", true),
            ("git", ".git", false),
            (".gitignore", ".git", false),
            (".git-x", ".git", false),
            ("git~x", ".git", false),
            ("~1", ".git", false),
            ("file~", ".git", false),
            (".gït", ".git", false),
            ("a b", ".git", false),
        ] {
            assert_eq!(could_refer_to(name.as_bytes(), known), expected, "{name:?}");
        }
        assert!(!could_refer_to(b".git\xff", ".git"));
    }
}

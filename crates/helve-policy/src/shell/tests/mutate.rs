//! Makes variants of a script: other white space, quotes, escapes, comments, nesting, wrappers. An attack stays an attack.

/// One change, picked by the seed.
pub(super) fn once(script: &str, seed: u64) -> String {
    let pick = usize::try_from(seed % 1_000_003).unwrap_or(0);
    let (kind, place) = (pick % 10, pick / 10);
    match kind {
        0 => format!(
            "{}{script}",
            [" ", "\t", "\n", " \t ", "true;", "# note\n", "\\\n", ": ;\n"][place % 8]
        ),
        1 if !script.ends_with('\\') => {
            format!("{script}{}", ["\n", "\n# note", "\n:", "\n\n", "\ntrue", "\n \t"][place % 6])
        }
        2 => respell(script, place),
        3 => separators(script, place),
        4..=6 => nest(script, place),
        7 => format!("zz=1\n{script}"),
        8 => wrap(script, place),
        _ => format!(
            "{}\n{script}",
            ["ls", "cd .", "echo a | cat", "cat <<'E'\n$(b)\nE", "zz=a; echo $zz"][place % 5]
        ),
    }
}

/// Whether parts of the text can be changed one by one: nothing in it changes the meaning of what follows.
fn is_plain(script: &str) -> bool {
    !script.contains(['\'', '"', '\\', '`', '$', '#', '[', '{', '(', '<', '\r'])
        && script.is_ascii()
}

/// Spells one word in another way that means the same.
fn respell(script: &str, place: usize) -> String {
    let keywords = [
        "if", "then", "else", "elif", "fi", "for", "while", "until", "do", "done", "case", "in",
        "esac", "time", "select", "coproc", "function",
    ];
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let words: Vec<&str> = script
        .split(|c: char| !is_word(c))
        .filter(|word| !word.is_empty() && !keywords.contains(word) && !word.contains('='))
        .collect();
    if !is_plain(script) || words.is_empty() || script.contains('=') {
        return script.to_string();
    }
    let word = words[place % words.len()];
    let at = word.as_ptr() as usize - script.as_ptr() as usize;
    let (first, rest) = word.split_at(1);
    let number_of_stream = script[at + word.len()..].starts_with('>');
    let respelled = match place / words.len() % 6 {
        _ if number_of_stream => word.to_string(),
        0 => format!("'{word}'"),
        1 => format!("\"{word}\""),
        2 => format!("\\{word}"),
        3 => format!("{first}''{rest}"),
        4 => format!("{first}\\\n{rest}"),
        _ => format!("{first}\"{rest}\""),
    };
    format!("{}{respelled}{}", &script[..at], &script[at + word.len()..])
}

/// Other blanks between words.
fn separators(script: &str, place: usize) -> String {
    if !is_plain(script) {
        return script.to_string();
    }
    script.replace(' ', ["  ", "\t", " \t ", " \\\n "][place % 4])
}

fn nest(script: &str, place: usize) -> String {
    let broken =
        script.contains(['\\', '<']) || script.matches(['"', '\'', '`', '(', ')']).count() % 2 == 1;
    if broken {
        return script.to_string();
    }
    let (before, after) = [
        ("(", "\n)"),
        ("{ ", "\n}"),
        ("if true; then ", "\nfi"),
        ("if ", "\nthen true; fi"),
        ("while true; do ", "\ndone"),
        ("for zz in 1 2; do ", "\ndone"),
        ("true && {\n", "\n}"),
        ("! {\n", "\n}"),
        ("case a in a) ", "\n;; esac"),
        ("echo \"$(", "\n)\""),
        ("echo $(", "\n)"),
        ("{\n", "\n} | cat"),
        ("ls | {\n", "\n}"),
        ("{\n", "\n} 2>/dev/null"),
        ("cat <(", "\n)"),
        ("until ", "\ndo true; done"),
    ][place % 16];
    format!("{before}{script}{after}")
}

/// A program that runs the same words.
fn wrap(script: &str, place: usize) -> String {
    if !is_plain(script)
        || script.contains([';', '&', '|', '\n', '>', '=', '!'])
        || script.starts_with("cd")
    {
        return script.to_string();
    }
    let wrapper =
        ["env", "command", "nice", "nohup", "timeout 9", "xargs", "time", "exec", "stdbuf -oL"]
            [place % 9];
    format!("{wrapper} {script}")
}

//! Makes variants of a script that do the same, by changing white space, quotes, comments or nesting, or by adding
//! wrappers. A variant of an attack is still an attack.

/// Makes one change, chosen by the seed.
pub(super) fn change(script: &str, seed: u64) -> String {
    let pick = usize::try_from(seed % 1_000_003).unwrap_or(0);
    let (kind, choice) = (pick % 10, pick / 10);
    match kind {
        0 => format!(
            "{}{script}",
            [" ", "\t", "\n", " \t ", "true;", "# note\n", "\\\n", ": ;\n"][choice % 8]
        ),
        1 if !script.ends_with('\\') => {
            format!("{script}{}", ["\n", "\n# note", "\n:", "\n\n", "\ntrue", "\n \t"][choice % 6])
        }
        2 => respell(script, choice),
        3 => replace_spaces(script, choice),
        4..=6 => nest(script, choice),
        7 => format!("zz=1\n{script}"),
        8 => wrap(script, choice),
        _ => format!(
            "{}\n{script}",
            ["ls", "cd .", "echo a | cat", "cat <<'E'\n$(b)\nE", "zz=a; echo $zz"][choice % 5]
        ),
    }
}

/// Whether words can be changed one at a time, because the script has no quotes, expansions or other syntax that spans
/// words.
fn is_plain(script: &str) -> bool {
    !script.contains(['\'', '"', '\\', '`', '$', '#', '[', '{', '(', '<', '\r'])
        && script.is_ascii()
}

/// Spells one word in another way that means the same.
fn respell(script: &str, choice: usize) -> String {
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
    let word = words[choice % words.len()];
    let at = word.as_ptr() as usize - script.as_ptr() as usize;
    let (first, rest) = word.split_at(1);
    let is_fd_number = script[at + word.len()..].starts_with('>');
    let respelled = match choice / words.len() % 6 {
        _ if is_fd_number => word.to_string(),
        0 => format!("'{word}'"),
        1 => format!("\"{word}\""),
        2 => format!("\\{word}"),
        3 => format!("{first}''{rest}"),
        4 => format!("{first}\\\n{rest}"),
        _ => format!("{first}\"{rest}\""),
    };
    format!("{}{respelled}{}", &script[..at], &script[at + word.len()..])
}

/// Replaces the spaces between words with other white space.
fn replace_spaces(script: &str, choice: usize) -> String {
    if !is_plain(script) {
        return script.to_string();
    }
    script.replace(' ', ["  ", "\t", " \t ", " \\\n "][choice % 4])
}

/// Puts the script inside another command, such as a loop or a pipe.
fn nest(script: &str, choice: usize) -> String {
    let may_be_unbalanced =
        script.contains(['\\', '<']) || script.matches(['"', '\'', '`', '(', ')']).count() % 2 == 1;
    if may_be_unbalanced {
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
    ][choice % 16];
    format!("{before}{script}{after}")
}

/// Prepends a program that runs the rest of its words, such as `nohup`.
fn wrap(script: &str, choice: usize) -> String {
    if !is_plain(script)
        || script.contains([';', '&', '|', '\n', '>', '=', '!'])
        || script.starts_with("cd")
    {
        return script.to_string();
    }
    let wrapper =
        ["env", "command", "nice", "nohup", "timeout 9", "xargs", "time", "exec", "stdbuf -oL"]
            [choice % 9];
    format!("{wrapper} {script}")
}

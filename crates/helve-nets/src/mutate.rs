//! Makes many scripts of one: other blanks, quotes, escapes, names, nesting, wrappers, look-alikes.
//!
//! Most changes keep what the script does; some do not. Either way a script that is allowed may only do what it lists.

use crate::random::Random;

type Change = fn(&str, &mut Random) -> String;

const CHANGES: &[Change] = &[
    before,
    after,
    blanks,
    nest,
    nest,
    wrap,
    quote_word,
    quote_word,
    dollar_quote,
    split_word,
    continue_line,
    braces,
    hold_in_variable,
    hold_in_pieces,
    alias,
    glob,
    look_alike,
    invisible,
    here_document,
    here_string,
    function,
    in_text,
    in_text,
    drop_char,
    double_char,
    swap_chars,
    insert_sign,
    insert_sign,
    join_with_daily,
    redirect,
    case_of_letters,
    end_of_line,
    positional,
    splice,
];

/// Some changes, one after the other. `other` is a second script, to be joined with.
pub(crate) fn several(script: &str, other: &str, random: &mut Random) -> String {
    let mut text = script.to_string();
    for _ in 0..=random.below(4) {
        let change = CHANGES[random.below(CHANGES.len())];
        text = change(&text, random);
        if random.below(24) == 0 {
            text = join(&text, other, random);
        }
        if text.len() > 4_000 {
            break;
        }
    }
    text
}

fn join(one: &str, other: &str, random: &mut Random) -> String {
    let sign = random.pick(&[";", "\n", " && ", " || ", " | ", " & ", " |& ", "\r\n", " ;; "]);
    if random.below(2) == 0 { format!("{one}{sign}{other}") } else { format!("{other}{sign}{one}") }
}

fn before(text: &str, random: &mut Random) -> String {
    let start = random.pick(&[
        " ",
        "\t",
        "\n",
        "true;",
        "# note\n",
        "\\\n",
        ": ;\n",
        "! ",
        "time ",
        "time -p ",
        "coproc ",
        "{fd}>&1 ",
        "x=1 ",
        "LC_ALL=C ",
        "LANG=C TZ=UTC ",
        "IFS=/;",
        "set -f;",
        "set -- a b;",
        "shopt -s extglob\n",
        "shopt -s expand_aliases\n",
        "cd src;",
        "cd ..;",
        "cd -;",
        "cd odd;",
        "unset x;",
        "x=;",
        "exec 3>&1;",
        "2>/dev/null ",
        "</dev/null ",
        "\u{feff}",
        "eval ",
        "command -- ",
        "builtin ",
        "trap '' INT;",
        "umask 0;",
        "set -o posix;",
        "function f { :; }\n",
        "select x in a; do break; done </dev/null;",
    ]);
    format!("{start}{text}")
}

fn after(text: &str, random: &mut Random) -> String {
    let end = random.pick(&[
        "\n",
        "\n# note",
        "\n:",
        ";",
        " ;",
        " &",
        " || true",
        " && ls",
        " | cat",
        " | head -1",
        " 2>&1",
        " >/dev/null",
        " </dev/null",
        " #x",
        "\n\n",
        "\\\n",
        " \\",
        " &>/dev/null",
        " |& cat",
        " <<<x",
        " 3<&0",
        " >&2",
        "\r",
        "\n}",
        ")",
        " --help",
        " --version",
        " -- a.txt",
        " a.txt",
        " *",
        " ?",
        " .",
        " ..",
        " $x",
        " \"$@\"",
        " $(ls)",
        " `ls`",
        " <(ls)",
    ]);
    format!("{text}{end}")
}

fn blanks(text: &str, random: &mut Random) -> String {
    let blank = random.pick(&[
        "  ", "\t", " \t ", " \\\n ", "\\\n ", "${IFS}", "$IFS", "\u{a0}", "\u{2003}", "\u{b}",
        "\u{c}", "\r",
    ]);
    match random.below(3) {
        0 => text.replace(' ', blank),
        1 => text.replacen(' ', blank, 1),
        _ => at_one(text, ' ', random, |_| blank.to_string()),
    }
}

fn nest(text: &str, random: &mut Random) -> String {
    const AROUND: &[(&str, &str)] = &[
        ("(", ")"),
        ("( ", "\n)"),
        ("{ ", "; }"),
        ("{\n", "\n}"),
        ("if true; then ", "\nfi"),
        ("if ", "\nthen true; fi"),
        ("if false; then :; else ", "; fi"),
        ("while ", "; do break; done"),
        ("while true; do ", "\nbreak; done"),
        ("for zz in 1 2; do ", "\ndone"),
        ("for ((i=0;i<1;i++)); do ", "; done"),
        ("true && {\n", "\n}"),
        ("! {\n", "\n}"),
        ("case a in a) ", "\n;; esac"),
        ("case a in (a) ", ";;& *) :; esac"),
        ("echo \"$(", "\n)\""),
        ("echo $(", ")"),
        ("echo `", "`"),
        ("x=$(", ")"),
        ("x=\"$(", "\n)\"; echo \"$x\""),
        ("{\n", "\n} | cat"),
        ("ls | {\n", "\n}"),
        ("{\n", "\n} 2>/dev/null"),
        ("cat <(", "\n)"),
        ("cat < <(", ")"),
        ("ls > >(", ")"),
        ("until ", "\ndo true; done"),
        ("f() { ", "\n}; f"),
        ("f() ( ", "\n); f"),
        ("[[ -n $(", ") ]]"),
        ("echo $((1+$(", ";echo 1)))"),
        ("echo ${x:-$(", ")}"),
        ("echo \"${x:-`", "`}\""),
        ("ls $(", ")"),
        ("a[$(", ")]=1"),
        ("echo ${a[$(", ")]}"),
        ("(( 1 + $(", ") ))"),
        ("cat <<E\n$(", "\n)\nE"),
        ("cat <<-E\n\t`", "`\nE"),
        ("cat <<<\"$(", ")\""),
        ("time { ", "; }"),
        ("coproc { ", "; }; wait"),
        ("trap '", "' EXIT"),
        ("eval '", "'"),
        ("bash -c '", "'"),
        ("sh -c '", "'"),
        ("bash -c \"", "\""),
        ("eval \"", "\""),
        ("echo '", "'"),
        ("echo \"", "\""),
        ("# ", ""),
        (": '", "'"),
        ("cat <<'E'\n", "\nE"),
        ("cat <<\\E\n", "\nE\n"),
        ("cat <<E\n", "\nE"),
        ("select z in a; do ", "; break; done <<<1"),
        ("export x=$(", ")"),
        ("local x=$(", ")"),
        ("declare x=$(", ")"),
        ("readonly x=`", "`"),
        ("printf -v x %s \"$(", ")\""),
        ("read x < <(", ")"),
        ("mapfile x < <(", ")"),
        ("source <(echo '", "')"),
        ("[ \"$(", ")\" ]"),
        ("test -n \"`", "`\""),
        ("echo a{b,$(", ")}"),
        ("echo ~$(", ")"),
        ("return $(", ")"),
    ];
    let (start, end) = AROUND[random.below(AROUND.len())];
    format!("{start}{text}{end}")
}

fn wrap(text: &str, random: &mut Random) -> String {
    let wrapper = random.pick(&[
        "env",
        "env -i",
        "env -S",
        "env --",
        "env A=b",
        "command",
        "command -p",
        "nice",
        "nice -n 5",
        "nohup",
        "timeout 9",
        "timeout -k 1 9",
        "xargs",
        "xargs -0",
        "xargs -I{}",
        "echo x | xargs",
        "time",
        "exec",
        "exec -a x",
        "stdbuf -oL",
        "setsid",
        "setsid -w",
        "builtin",
        "ionice -c3",
        "find . -maxdepth 0 -exec",
        "find . -name a.txt -exec",
        "flock a.txt",
        "script -qc",
        "watch -n1",
        "sudo",
        "strace",
        "bash -c",
        "sh -c",
        "eval",
        "busybox",
        "chroot .",
        "unshare -r",
        "taskset 1",
        "setarch -R",
        "ls | xargs",
        "printf %s",
        "time -p",
        "git -c alias.x=!",
        "\\",
        "git bisect run",
        "git submodule foreach",
        "awk",
        "sed -n",
        "perl -e",
        "python3 -c",
        "/usr/bin/env",
        "/lib64/ld-linux-x86-64.so.2",
    ]);
    format!("{wrapper} {text}")
}

/// The words of a text by their places: runs of letters that mean nothing to a shell.
fn words(text: &str) -> Vec<(usize, &str)> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    let mut all = Vec::new();
    let mut start = None;
    for (at, c) in text.char_indices().chain([(text.len(), ' ')]) {
        match (start, is_word(c)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                all.push((from, &text[from..at]));
                start = None;
            }
            (None, false) | (Some(_), true) => {}
        }
    }
    all
}

fn with_word(
    text: &str,
    random: &mut Random,
    change: impl FnOnce(&str, &mut Random) -> String,
) -> String {
    let words = words(text);
    if words.is_empty() {
        return text.to_string();
    }
    let (at, word) = words[random.below(words.len())];
    let changed = change(word, random);
    format!("{}{changed}{}", &text[..at], &text[at + word.len()..])
}

/// Words hold ASCII only, so that every place is between characters.
fn cut<'a>(word: &'a str, random: &mut Random) -> (&'a str, &'a str) {
    word.split_at(random.below(word.len() + 1))
}

fn quote_word(text: &str, random: &mut Random) -> String {
    with_word(text, random, |word, random| {
        let (one, two) = cut(word, random);
        match random.below(9) {
            0 => format!("'{word}'"),
            1 => format!("\"{word}\""),
            2 => format!("\\{word}"),
            3 => format!("{one}''{two}"),
            4 => format!("{one}\"\"{two}"),
            5 => format!("{one}\"{two}\""),
            6 => format!("'{one}'\"{two}\""),
            7 => word.chars().flat_map(|c| ['\\', c]).collect(),
            _ => format!("$\"{word}\""),
        }
    })
}

fn dollar_quote(text: &str, random: &mut Random) -> String {
    with_word(text, random, |word, random| {
        let (one, two) = cut(word, random);
        let coded = |form: usize| -> String {
            two.bytes()
                .map(|byte| match form {
                    0 => format!("\\x{byte:02x}"),
                    1 => format!("\\{byte:o}"),
                    2 => format!("\\u{byte:04x}"),
                    _ => format!("\\U{byte:08x}"),
                })
                .collect()
        };
        match random.below(6) {
            form @ 0..=3 => format!("{one}$'{}'", coded(form)),
            4 => format!("{one}$'{two}'"),
            _ => format!("{one}$'{two}\\x00junk'"),
        }
    })
}

fn split_word(text: &str, random: &mut Random) -> String {
    with_word(text, random, |word, random| {
        let (one, two) = cut(word, random);
        let between = random.pick(&[
            "$x", "${x}", "$@", "$*", "${x:-}", "$()", "``", "${x#a}", "${@}", "$((0))", "~",
            "{,}", "$1",
        ]);
        format!("{one}{between}{two}")
    })
}

fn continue_line(text: &str, random: &mut Random) -> String {
    let at = place(text, random);
    format!("{}{}{}", &text[..at], random.pick(&["\\\n", "\n", "\\\r\n", "\\\n\\\n"]), &text[at..])
}

fn braces(text: &str, random: &mut Random) -> String {
    with_word(text, random, |word, random| {
        let (one, two) = cut(word, random);
        match random.below(5) {
            0 => format!("{{{word},}}"),
            1 => format!("{one}{{{two},}}"),
            2 => format!("{{,{word}}}"),
            3 => format!("{{{one},x}}{two}"),
            _ => format!("{one}{{{two},{two}}}"),
        }
    })
}

fn hold_in_variable(text: &str, random: &mut Random) -> String {
    let name = random.pick(&["x", "v", "PATH", "IFS", "HOME", "_", "a[0]"]);
    let used = random.pick(&[
        "$x", "\"$x\"", "${x}", "${x:-ls}", "${x%%z}", "${x@E}", "${!x}", "$v", "${a[0]}",
        "${a[@]}",
    ]);
    match random.below(3) {
        0 => format!("{name}='{text}'; {used}"),
        1 => format!("{name}=\"{text}\"; eval {used}"),
        _ => {
            let mut kept = String::from("ls");
            let changed = with_word(text, random, |word, _| {
                kept = word.to_string();
                used.to_string()
            });
            format!("{name}={kept}; {changed}")
        }
    }
}

fn hold_in_pieces(text: &str, random: &mut Random) -> String {
    let (mut one, mut two) = (String::new(), String::new());
    let changed = with_word(text, random, |word, random| {
        let (first, second) = cut(word, random);
        (one, two) = (first.to_string(), second.to_string());
        "$x$y".to_string()
    });
    match random.below(3) {
        0 => format!("x={one} y={two}; {changed}"),
        1 => format!("x={one}; y={two}\n{changed}"),
        _ => format!("x={one}; x+={two}; y=; {changed}"),
    }
}

fn alias(text: &str, random: &mut Random) -> String {
    let name = random.pick(&["ls", "cat", "zz", "echo"]);
    format!("shopt -s expand_aliases\nalias {name}='{text}'\n{name}")
}

fn glob(text: &str, random: &mut Random) -> String {
    with_word(text, random, |word, random| {
        let (one, two) = cut(word, random);
        let rest = two.get(1..).unwrap_or("");
        match random.below(6) {
            0 => format!("{one}?{rest}"),
            1 => format!("{one}*"),
            2 => format!("{one}[{}]{rest}", two.get(..1).unwrap_or("a")),
            3 => format!("/usr/bin/{one}?{rest}"),
            4 => format!("/*/*/{word}"),
            _ => format!("./{word}*"),
        }
    })
}

fn look_alike(text: &str, random: &mut Random) -> String {
    let pairs = [
        (' ', "\u{2000}"),
        ('-', "\u{2013}"),
        ('-', "\u{2212}"),
        (';', "\u{37e}"),
        ('a', "\u{430}"),
        ('\'', "\u{2019}"),
        ('"', "\u{201d}"),
        ('/', "\u{2044}"),
        ('.', "\u{2024}"),
        ('o', "\u{43e}"),
        ('c', "\u{441}"),
        ('&', "\u{ff06}"),
        ('|', "\u{ff5c}"),
        ('$', "\u{ff04}"),
    ];
    let (c, other) = pairs[random.below(pairs.len())];
    at_one(text, c, random, |_| other.to_string())
}

fn invisible(text: &str, random: &mut Random) -> String {
    let at = place(text, random);
    let sign = random.pick(&[
        "\u{200b}",
        "\u{202e}",
        "\u{ad}",
        "\0",
        "\u{1b}[2K",
        "\u{8}",
        "\r",
        "\u{7f}",
        "\u{2028}",
        "\u{85}",
        "\u{feff}",
    ]);
    format!("{}{sign}{}", &text[..at], &text[at..])
}

fn here_document(text: &str, random: &mut Random) -> String {
    let to = random.pick(&[
        "bash",
        "sh",
        "cat",
        "bash -s",
        "cat | sh",
        "xargs",
        "source /dev/stdin",
        "python3",
        "sh -",
        "tee",
        "read x",
        "sed -f -",
    ]);
    let end = random.pick(&["E", "'E'", "\\E", "\"E\"", "-E", "$E", "E\\\n"]);
    format!("{to} <<{end}\n{text}\nE")
}

fn here_string(text: &str, random: &mut Random) -> String {
    let to = random.pick(&[
        "bash",
        "sh",
        "cat",
        "xargs",
        "bash -s",
        "read x; echo",
        "cat | sh",
        ". /dev/stdin",
        "while read x; do $x; done",
    ]);
    format!("{to} <<<'{text}'")
}

fn function(text: &str, random: &mut Random) -> String {
    let name = random.pick(&["ls", "cat", "f", "git", "cd", "echo", "command_not_found_handle"]);
    match random.below(3) {
        0 => format!("{name}() {{ {text}\n}}; {name}"),
        1 => format!("function {name} {{ {text}; }}; {name} a.txt"),
        _ => format!("{name} () ( {text} )\n{name}"),
    }
}

/// The script as a word of something harmless.
fn in_text(text: &str, random: &mut Random) -> String {
    let quoted = text.replace('\'', "'\\''");
    let (start, end) = [
        ("echo '", "'"),
        ("grep '", "' a.txt"),
        ("printf '%s' '", "'"),
        ("git log --grep='", "'"),
        ("git log --format='", "'"),
        ("rg '", "' src"),
        ("find . -name '", "'"),
        ("sed -n '", "' a.txt"),
        ("sort -t '", "' a.txt"),
        ("awk '", "' a.txt"),
        ("ls '", "'"),
        ("echo a # '", "'"),
        ("date '+", "'"),
        ("tr '", "' b"),
        ("cut -d '", "' -f1 a.txt"),
        ("head -n '", "' a.txt"),
        ("git show '", "'"),
        ("cat <<'E'\n", "\nE"),
        ("jq '", "' package.json"),
        ("git diff --stat -- '", "'"),
        ("[ '", "' ]"),
        ("[[ '", "' ]]"),
        ("[[ x =~ '", "' ]]"),
        ("x='", "'"),
        ("case '", "' in a) ls;; esac"),
        ("for i in '", "'; do echo \"$i\"; done"),
        ("for i in '", "'; do echo $i; done"),
        ("test -f '", "'"),
        ("echo $(( '", "' ))"),
        ("xargs -I '", "' ls < a.txt"),
        ("ls > '", "'"),
        ("find . -printf '", "'"),
        ("uniq -c '", "'"),
        ("git branch --list '", "'"),
        ("git log --pretty='format:", "'"),
        ("wc -l '", "'"),
    ][random.below(36)];
    format!("{start}{quoted}{end}")
}

fn drop_char(text: &str, random: &mut Random) -> String {
    let at = place(text, random);
    let mut rest = text[at..].chars();
    rest.next();
    format!("{}{}", &text[..at], rest.as_str())
}

fn double_char(text: &str, random: &mut Random) -> String {
    let at = place(text, random);
    let c = text[at..].chars().next().map(String::from).unwrap_or_default();
    format!("{}{c}{}", &text[..at], &text[at..])
}

fn swap_chars(text: &str, random: &mut Random) -> String {
    let mut all: Vec<char> = text.chars().collect();
    if all.len() > 1 {
        let at = random.below(all.len() - 1);
        all.swap(at, at + 1);
    }
    all.into_iter().collect()
}

fn insert_sign(text: &str, random: &mut Random) -> String {
    let at = place(text, random);
    let sign = random.pick(&[
        "'", "\"", "`", "\\", "$", ";", "&", "|", "<", ">", "(", ")", "{", "}", "[", "]", "#", "*",
        "?", "~", "!", "=", "\n", " ", "$(", "${", "$((", "<<E\n", "<<<", ">|", "<>", ">&", "&>",
        "&>>", ">>", "<(", ">(", ";;", "&&", "||", "[[", "]]", "((", "))", "$'", "\\\n", "+=",
        "@(", "!(", "\\'", "\\\"", " #", "%",
    ]);
    format!("{}{sign}{}", &text[..at], &text[at..])
}

fn join_with_daily(text: &str, random: &mut Random) -> String {
    let daily = random.pick(&[
        "ls",
        "cat a.txt",
        "git status",
        "echo a | cat",
        "cat <<'E'\n$(b)\nE",
        "zz=a; echo $zz",
        "cd src",
        "git log --oneline | head",
    ]);
    join(text, daily, random)
}

fn redirect(text: &str, random: &mut Random) -> String {
    let to = random.pick(&[
        "made",
        "/w/other/x",
        "link-out/x",
        "link-private",
        ".git/config",
        "~/.bashrc",
        "$x",
        "a.txt",
        "/dev/tcp/h/1",
        "src/../made",
        "'made'",
        "*.txt",
        "/tmp/x",
    ]);
    let sign =
        random.pick(&[">", ">>", ">|", "<>", ">&", "&>", "&>>", "2>", "3>", "1<>", "{fd}>", "<"]);
    format!("{text} {sign}{to}")
}

fn case_of_letters(text: &str, random: &mut Random) -> String {
    with_word(text, random, |word, random| match random.below(3) {
        0 => word.to_uppercase(),
        1 => format!("{word}."),
        _ => format!("./{word}"),
    })
}

fn end_of_line(text: &str, random: &mut Random) -> String {
    text.replace('\n', random.pick(&["\r\n", ";", "\n\n", " \n", "\\\n"]))
}

fn positional(text: &str, random: &mut Random) -> String {
    match random.below(3) {
        0 => format!("set -- {text}; \"$@\""),
        1 => format!("set -- '{text}'; eval \"$1\""),
        _ => format!("a=({text}); \"${{a[@]}}\""),
    }
}

/// Leaves out a stretch, or repeats it elsewhere.
fn splice(text: &str, random: &mut Random) -> String {
    let (one, two) = (place(text, random), place(text, random));
    let (start, end) = (one.min(two), one.max(two));
    let to = place(text, random);
    match random.below(2) {
        0 => format!("{}{}", &text[..start], &text[end..]),
        _ => format!("{}{}{}", &text[..to], &text[start..end], &text[to..]),
    }
}

/// A place between two characters.
fn place(text: &str, random: &mut Random) -> usize {
    let mut at = random.below(text.len() + 1);
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Changes one of the occurrences of a character.
fn at_one(text: &str, c: char, random: &mut Random, change: impl FnOnce(char) -> String) -> String {
    let places: Vec<usize> = text.match_indices(c).map(|(at, _)| at).collect();
    if places.is_empty() {
        return text.to_string();
    }
    let at = places[random.below(places.len())];
    format!("{}{}{}", &text[..at], change(c), &text[at + c.len_utf8()..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_repeats_and_every_change_takes_any_text() {
        for text in ["", "ls", "ü'\n", "touch made; echo \"$(x)\""] {
            for (at, change) in CHANGES.iter().enumerate() {
                for seed in 0..50 {
                    let make = || change(text, &mut Random::new(seed));
                    assert_eq!(make(), make(), "{at} {seed}");
                }
            }
        }
    }
}

//! Mutations that put a script into a larger one: with text before and after it, inside constructs and wrappers, or
//! with its words in variables.

use super::edit::{change_word, split_at_random};
use super::join;
use crate::random::Random;

pub(super) fn prepend(text: &str, random: &mut Random) -> String {
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

pub(super) fn append(text: &str, random: &mut Random) -> String {
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

/// Constructs that contain a script.
const NESTING: &[(&str, &str)] = &[
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

pub(super) fn nest(text: &str, random: &mut Random) -> String {
    let (start, end) = NESTING[random.below(NESTING.len())];
    format!("{start}{text}{end}")
}

/// Commands that run a script or take it as an argument.
const WRAPPERS: &[&str] = &[
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
];

pub(super) fn wrap(text: &str, random: &mut Random) -> String {
    let wrapper = random.pick(WRAPPERS);
    format!("{wrapper} {text}")
}

pub(super) fn run_as_alias(text: &str, random: &mut Random) -> String {
    let name = random.pick(&["ls", "cat", "zz", "echo"]);
    format!("shopt -s expand_aliases\nalias {name}='{text}'\n{name}")
}

pub(super) fn pass_as_here_document(text: &str, random: &mut Random) -> String {
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

pub(super) fn pass_as_here_string(text: &str, random: &mut Random) -> String {
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

pub(super) fn run_as_function(text: &str, random: &mut Random) -> String {
    let name = random.pick(&["ls", "cat", "f", "git", "cd", "echo", "command_not_found_handle"]);
    match random.below(3) {
        0 => format!("{name}() {{ {text}\n}}; {name}"),
        1 => format!("function {name} {{ {text}; }}; {name} a.txt"),
        _ => format!("{name} () ( {text} )\n{name}"),
    }
}

/// Makes the script an argument of a harmless command.
pub(super) fn pass_as_argument(text: &str, random: &mut Random) -> String {
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

pub(super) fn join_with_harmless_command(text: &str, random: &mut Random) -> String {
    let harmless = random.pick(&[
        "ls",
        "cat a.txt",
        "git status",
        "echo a | cat",
        "cat <<'E'\n$(b)\nE",
        "zz=a; echo $zz",
        "cd src",
        "git log --oneline | head",
    ]);
    join(text, harmless, random)
}

pub(super) fn redirect(text: &str, random: &mut Random) -> String {
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
        "/dev/stdin",
        "/dev/fd/0",
        "/dev/fd/3",
        "/dev/stdout",
    ]);
    let operator =
        random.pick(&[">", ">>", ">|", "<>", ">&", "&>", "&>>", "2>", "3>", "1<>", "{fd}>", "<"]);
    let first = random.pick(&["", "", "<a.txt ", "3<a.txt ", "1<a.txt "]);
    format!("{text} {first}{operator}{to}")
}

/// Runs the script from the positional parameters or an array.
pub(super) fn run_from_parameters(text: &str, random: &mut Random) -> String {
    match random.below(3) {
        0 => format!("set -- {text}; \"$@\""),
        1 => format!("set -- '{text}'; eval \"$1\""),
        _ => format!("a=({text}); \"${{a[@]}}\""),
    }
}

pub(super) fn store_in_variable(text: &str, random: &mut Random) -> String {
    let name = random.pick(&["x", "v", "PATH", "IFS", "HOME", "_", "a[0]"]);
    let expansion = random.pick(&[
        "$x", "\"$x\"", "${x}", "${x:-ls}", "${x%%z}", "${x@E}", "${!x}", "$v", "${a[0]}",
        "${a[@]}",
    ]);
    match random.below(3) {
        0 => format!("{name}='{text}'; {expansion}"),
        1 => format!("{name}=\"{text}\"; eval {expansion}"),
        _ => {
            let mut replaced = String::from("ls");
            let changed = change_word(text, random, |word, _| {
                replaced = word.to_string();
                expansion.to_string()
            });
            format!("{name}={replaced}; {changed}")
        }
    }
}

pub(super) fn store_in_two_variables(text: &str, random: &mut Random) -> String {
    let (mut one, mut two) = (String::new(), String::new());
    let changed = change_word(text, random, |word, random| {
        let (first, second) = split_at_random(word, random);
        (one, two) = (first.to_string(), second.to_string());
        "$x$y".to_string()
    });
    match random.below(3) {
        0 => format!("x={one} y={two}; {changed}"),
        1 => format!("x={one}; y={two}\n{changed}"),
        _ => format!("x={one}; x+={two}; y=; {changed}"),
    }
}

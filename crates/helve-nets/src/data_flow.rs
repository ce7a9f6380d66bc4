//! `data-flow`: scripts that set variables and change directories in every way that a shell offers, and then use them.
//! They test whether the analysis tracks values and the working directory correctly.

use std::path::Path;

use crate::cases::ScriptCase;
use crate::random::Random;
use crate::random_scripts;

pub(crate) fn run(sample_folder: &Path, count: usize, seed: u64) -> Result<Vec<String>, String> {
    let generate = |random: &mut Random| {
        let policy = random.pick(&["read", "read", "deny"]).to_string();
        let script = ScriptBuilder { random: &mut *random }.script();
        let quoted = || format!("'{}'", script.replace('\'', "'\\''"));
        // A nested shell may parse the script differently, and `sh` has fewer features.
        let script = match random.below(6) {
            0 => format!("sh -c {}", quoted()),
            1 => format!("bash -c {} x a.txt link-private", quoted()),
            _ => script,
        };
        ScriptCase { policy, script }
    };
    random_scripts::run(sample_folder, "data-flow scripts", count, seed, &generate)
}

/// Values of variables. Some are harmless in every command, others (`-delete`, `rm`) are dangerous in most.
const VALUES: &[&str] = &[
    "a.txt",
    "b.txt",
    "src",
    "1",
    "x",
    "''",
    "link-private",
    "-delete",
    "rm",
    "ls",
    "made",
    "..",
    "'a.txt b.txt'",
    "'a[$(touch made)0]'",
    "../other/private.txt",
    "/w/other/private.txt",
    "'*.txt'",
    "-n",
];
/// Arguments of `cd`.
const FOLDERS: &[&str] =
    &["src", "src", "nope", ".", "..", "-", "\"$f\"", "$g", "/w/app/src", "a.txt", "./src"];
/// Commands that use a variable or the working directory.
const USES: &[&str] = &[
    "cat $f",
    "cat \"$f\"",
    "cat $f a.txt",
    "cat link-private$f",
    "cat \"link-private$g\"",
    "cat $g",
    "ls $f",
    "find . $f",
    "find . -name \"$f\"",
    "echo $((f))",
    "echo $((g+1))",
    "head -n $f a.txt",
    "sed -n -l $f 5 '1w made' a.txt",
    "cat a.txt",
    "cat link-private",
    "cat ../link-private",
    "cat ../other/private.txt",
    "cat private.txt",
    "ls ..",
    "cat $_",
    "$f made",
    "$g",
    "cat < $f",
    "cat < ../link-private",
    "grep -r hello $f",
    "sort $f",
    "[ $f -eq 1 ]",
    "[[ $f -eq 1 ]]",
    "cat \"$1\"",
    "cat $1",
    "echo \"${f}\"",
    "wc -l $f $g",
    "cat $f$g",
    "cat src/$f",
    "cat \"$PWD/$f\"",
];
/// Commands that set the variable `V` to the value `W`, or may set it, or seem to set it.
const SETS: &[&str] = &[
    "V=W",
    "V=W",
    "V=W",
    "V=$f",
    "V=$g",
    "V=\"$f$g\"",
    "declare V=W",
    "typeset V=W",
    "export V=W",
    "readonly V=W",
    "readonly V",
    "declare -r V=W",
    "declare -p V=W",
    "declare -x V",
    "local V=W",
    "unset V",
    "unset -v V",
    "read V <<< W",
    "read V < a.txt",
    "read V < nope",
    "printf -v V W",
    "eval V=W",
    "eval 'V=W'",
    "V=W :",
    "V=W true $V",
    ": {V}< a.txt",
    ": {V}< nope",
    "exec {V}< a.txt",
    "let V=1",
    "((V=1))",
    "((V++))",
    "V=$((V+1))",
    "V=$((1/0))",
    "V=$((08))",
    "V=$(wc -l < a.txt)",
    "V=$(wc -l < nope)",
    "V=$(echo W)",
    "V=$!",
    "V=$?",
    "V=$#",
    "V+=W",
    "V=(W)",
    "V[0]=W",
    "mapfile V < a.txt",
    "set -- W",
    "set -- W W",
    "shift",
    ": ${V:=W}",
    ": ${V=W}",
    "getopts V V",
    "V=W < nope",
    "V=W > /dev/null",
    "declare V=W < nope",
    "eval 'V=W' < nope",
    "V=${f:-W}",
    "V=${f%.txt}",
    "V=${g#*}",
    "IFS=t",
    "V=~",
    "V=$HOME",
    "V=$PWD",
    "V=$OLDPWD",
    "_=W",
    "declare -i V=W",
    "declare -l V=W",
    "declare -n V=g",
    "V=$RANDOM",
    "V=$_",
    "read -r V g <<< 'W W'",
    "V=${#f}",
];
/// Commands that change the directory, exit or fail.
const CONTROL: &[&str] = &[
    "cd D",
    "cd D",
    "cd D",
    "cd",
    "cd -P D",
    "cd D D",
    "cd D < nope",
    "cd D > /dev/null",
    "pushd D",
    "pushd D > /dev/null",
    "pushd -n D",
    "pushd +1",
    "pushd -0",
    "popd",
    "popd > /dev/null",
    "chdir D",
    "CDPATH=.. cd other",
    "OLDPWD=/w/other cd -",
    "true",
    "false",
    "nope",
    ":",
    ": W",
    "echo W",
    "echo $((1/0))",
    ": ${z?}",
    ": ${f:1/0}",
    "break",
    "continue",
    "exit",
    "return",
    "set -e",
    "set -u",
    "set -f",
    "set -n",
    "set +e",
    "exec true",
    "exec < nope",
    "exec 3< a.txt",
    "test -d src",
    "[ -f a.txt ]",
    "[ -z \"$f\" ]",
    "[[ -d src ]]",
    "((0))",
    "((1))",
    "! true",
    "wait",
    "trap - EXIT",
    "umask 022",
    "true W",
    "echo ${!f}",
];
/// Compound statements. `A`, `B` and `C` stand for other statements.
const SHAPES: &[&str] = &[
    "A; B",
    "A; B",
    "A\nB",
    "A\nB",
    "A && B",
    "A && B",
    "A || B",
    "A || B",
    "A && B || C",
    "A || B && C",
    "A && B && C",
    "! A && B",
    "! A || B",
    "{ A; }",
    "{ A; B; }",
    "( A )",
    "( A; B )",
    "{ A; } < nope",
    "{ A; } > /dev/null",
    "{ A; B; } < a.txt",
    "A | B",
    "A & B",
    "A &\nB",
    "echo \"$(A)\"",
    "echo $(A; B)",
    "cat <(A)",
    "if A; then B; fi",
    "if A; then B; else C; fi",
    "if A; then B; elif C; then B; fi",
    "while A; do B; break; done",
    "while A; B; do break; done",
    "until A; do B; break; done",
    "while break; A; do :; done",
    "for f in W; do A; done",
    "for f in W W; do A; B; done",
    "for g in *.txt; do A; done",
    "for f in src/*; do A; done",
    "for f; do A; done",
    "for _ in W; do A; B; done",
    "for ((f=0; f<1; f++)); do A; done",
    "case $f in a*) A;; *) B;; esac",
    "case W in *) A;& x) B;; esac",
    "case x in y) A;; esac",
    "eval 'A'",
    "eval \"A\"",
    "bash -c 'A'",
    "bash -c 'A' _ W",
    "sh -c 'A; B'",
    "time A",
    "A < nope && B",
    "A 2> /dev/null; B",
    "A; break; B",
    "while A; do B; done < a.txt",
    "for f in W; do break; A; done",
    "for f in W; do continue; A; done; B",
    "{ A; exit; } ; B",
    "command A",
    "builtin A",
    "exec A",
    "select f in W; do A; break; done < a.txt",
    "[ -f a.txt ] && A; B",
    "coproc A; B",
];
/// Maximum nesting of compound statements.
const MAX_DEPTH: usize = 4;
/// A statement of this length gets no further nested statements.
const MAX_BYTES: usize = 400;

struct ScriptBuilder<'r> {
    random: &'r mut Random,
}

impl ScriptBuilder<'_> {
    /// Returns a script that sets a variable, runs some statements, and then uses a variable or the working directory.
    fn script(mut self) -> String {
        let mut statements = vec![self.fill(SETS)];
        for _ in 0..=self.random.below(3) {
            statements.push(self.statement(0));
        }
        statements.push(self.fill(USES));
        let separator = self.random.pick(&["; ", "\n", "\n"]);
        statements.join(separator)
    }

    /// Returns a random statement, compound or simple.
    fn statement(&mut self, depth: usize) -> String {
        if depth >= MAX_DEPTH || self.random.below(5) < 2 {
            return match self.random.below(4) {
                0 => self.fill(USES),
                1 => self.fill(CONTROL),
                _ => self.fill(SETS),
            };
        }
        let mut text = String::new();
        for letter in self.random.pick(SHAPES).chars() {
            match letter {
                'A' | 'B' | 'C' if text.len() < MAX_BYTES => text += &self.statement(depth + 1),
                'A' | 'B' | 'C' => text.push(':'),
                'W' => text += self.random.pick(VALUES),
                letter => text.push(letter),
            }
        }
        text
    }

    /// Returns a random template with a variable for `V`, a value for `W` and a directory for `D`.
    fn fill(&mut self, templates: &[&str]) -> String {
        let mut text = String::new();
        let name = self.random.pick(&["f", "f", "g"]);
        let template = self.random.pick(templates);
        for (at, letter) in template.char_indices() {
            let is_boundary =
                |c: Option<char>| !c.is_some_and(|c| c.is_ascii_uppercase() || c == '_');
            let neighbours =
                (template[..at].chars().next_back(), template[at + 1..].chars().next());
            let is_placeholder = is_boundary(neighbours.0) && is_boundary(neighbours.1);
            match letter {
                'V' if is_placeholder => text += name,
                'W' if is_placeholder => text += self.random.pick(VALUES),
                'D' if is_placeholder => text += self.random.pick(FOLDERS),
                letter => text.push(letter),
            }
        }
        text
    }
}

//! Analyses of scripts, rendered as text.
//!
//! A word that is only known at run time is rendered as a mark and, in parentheses, the word as written:
//!
//! - `?` any text
//! - `#` a number
//! - `c` a commit hash
//! - `r` a commit hash inside a revision
//! - `|` the pipe that the shell creates for `<(…)`
//! - `@` a path that `find` printed
//! - `%` file names that a program like `git ls-files` printed
//!
//! `*(…)` is a glob, and `!kind: word` is a risk.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{
    AccessKind, Approval, DynamicKind, FileTarget, RiskKind, Script, ShellContext, ShellLanguage,
    TreeListing, Word, WordRole, analyze,
};

fn context() -> ShellContext {
    ShellContext {
        cwd: "/w/app".into(),
        home: Some("/h".into()),
        language: ShellLanguage::Bash,
        exported: ["PATH", "HOME", "EDITOR"].map(String::from).into(),
        ..ShellContext::default()
    }
}

#[track_caller]
fn check(script: &str, expected: Expect) {
    expected.assert_eq(&render(&analyze(script, &context())));
}

/// Renders one line per run, file access and doubt. A run is indented below the run that starts it.
fn render(script: &Script) -> String {
    let mut text = String::new();
    for run in &script.runs {
        let depth = std::iter::successors(run.parent, |at| script.runs[*at].parent).count();
        text.push_str(&"  ".repeat(depth));
        text.push_str(if run.approval == Approval::Exempt { "exempt" } else { "run" });
        for assignment in &run.assignments {
            text.push_str(&format!(" {assignment}"));
        }
        for word in &run.words {
            text.push_str(&format!(" {}", show(word)));
        }
        for risk in &run.risks {
            let kind = match risk.kind {
                RiskKind::Unlisted => "unlisted",
                RiskKind::Writes => "writes",
                RiskKind::Destroys => "destroys",
                RiskKind::Runs => "runs",
                RiskKind::Code => "code",
            };
            text.push_str(&format!("  !{kind}: {}", risk.spelled));
        }
        text.push('\n');
    }
    for access in &script.accesses {
        let kind = match access.kind {
            AccessKind::Stat => "stat",
            AccessKind::Read => "read",
            AccessKind::MaybeRead => "maybe read",
            AccessKind::PassedToUnknown => "passed",
            AccessKind::NamedInCode => "named",
            AccessKind::NamedInVariable => "named-in-variable",
            AccessKind::MatchedByUnknown => "matched",
            AccessKind::NamedByPackage => "named by package",
            AccessKind::ReadTree => "read tree",
            AccessKind::Write => "write",
            AccessKind::WriteTree => "write tree",
            AccessKind::MaybeWriteTree => "maybe write tree",
            AccessKind::Enter => "enter",
            AccessKind::NameOnly => "name only",
            AccessKind::Expand => "expand",
            AccessKind::ExpandAgain => "expand again",
            AccessKind::MaybeWrite => "maybe write",
            AccessKind::MaybeReadTree => "maybe read tree",
            AccessKind::MaybeChangeBelow => "maybe change below",
            // These are tested by verdicts in helve-policy.
            AccessKind::FlagOutput | AccessKind::Mentioned => continue,
        };
        let target = match &access.target {
            FileTarget::Path(path) => path.clone(),
            FileTarget::Glob(pattern) => format!("*({pattern})"),
            FileTarget::Unknown(shown) => format!("?({shown})"),
        };
        let listing = match access.filter.listing {
            TreeListing::Directory => "",
            TreeListing::Tracked => " (tracked)",
            TreeListing::TrackedAnywhere => " (repository)",
        };
        text.push_str(&format!("{kind} {target}{listing}\n"));
    }
    for doubt in &script.doubts {
        text.push_str(&format!("? {:?} [{}]\n", doubt.kind, doubt.shown));
    }
    text
}

fn show(word: &Word) -> String {
    match word {
        Word::Literal(text) if text.is_empty() || text.contains([' ', '\n', '\t']) => {
            format!("{text:?}")
        }
        Word::Literal(text) => text.clone(),
        Word::Glob(pattern) => format!("*({pattern})"),
        Word::Dynamic(dynamic) => {
            let mark = match dynamic.kind {
                DynamicKind::Anything => "?",
                DynamicKind::Number => "#",
                DynamicKind::Commit => "c",
                DynamicKind::Revision => "r",
                DynamicKind::Pipe => "|",
                DynamicKind::FindResult { .. } => "@",
                DynamicKind::Listed(_) => "%",
            };
            format!("{mark}({})", dynamic.shown)
        }
    }
}

#[test]
fn the_language_of_a_shell_follows_from_its_name() {
    for (shell, language) in [
        ("bash", Some(ShellLanguage::Bash)),
        ("bash-5.2", Some(ShellLanguage::Bash)),
        ("oksh", Some(ShellLanguage::Korn)),
        ("zsh", Some(ShellLanguage::Zsh)),
        ("yash", Some(ShellLanguage::Posix)),
        ("fish", None),
        ("", None),
    ] {
        assert_eq!(ShellLanguage::of(shell), language, "{shell}");
    }
}

#[test]
fn tracked_files_that_git_may_print_are_recorded() {
    for (script, expected) in [
        ("git diff", "maybe read tree . (repository)"),
        ("git diff --stat", ""),
        ("git diff -- d", "maybe read tree d (tracked)"),
        ("git diff d", "maybe read tree d (tracked), maybe read tree . (repository)"),
        ("git show HEAD:a", "maybe read tree HEAD:a (tracked)"),
        ("git show HEAD", "maybe read tree . (repository)"),
        ("git log", ""),
        ("git log -p -- d ':!d/x'", "maybe read tree d (tracked), maybe read tree :!d/x (tracked)"),
        ("git stash show -p", "maybe read tree . (repository)"),
        ("git grep x", "read tree . (tracked)"),
        ("git grep x -- d", "read tree d (tracked)"),
        ("git grep --no-index x", ""),
        ("git diff --no-index a b", ""),
        (
            "while true; do cd d; git diff; done",
            "maybe read tree d (repository), maybe read tree . (repository)",
        ),
    ] {
        let rendered = render(&analyze(script, &context())).replace("/w/app/", "");
        let rendered = rendered.replace("/w/app", ".");
        let is_tracked = |line: &&str| line.ends_with(')') && line.contains(" tree ");
        let accesses: Vec<&str> = rendered.lines().filter(is_tracked).collect();
        assert_eq!(accesses.join(", "), expected, "{script}");
    }
}

#[test]
fn recursive_accesses_are_recorded() {
    let check = |script: &str, expected: &str| {
        let rendered = render(&analyze(script, &context()));
        let kinds = ["read tree", "write", "maybe write tree"];
        let is_tree = |line: &&str| kinds.iter().any(|kind| line.starts_with(kind));
        let is_walked = |line: &&str| !line.ends_with(" (tracked)");
        let accesses: Vec<&str> = rendered.lines().filter(is_tree).filter(is_walked).collect();
        assert_eq!(accesses.join(", ").replace("/w/app/", ""), expected, "{script}");
    };
    for (script, expected) in [
        ("rm a", "write a"),
        ("rm -rf d", "write tree d"),
        ("rm --recursive d", "write tree d"),
        ("rmdir d", "write d"),
        ("mv d e", "read tree d, write tree d, write e"),
        ("mv -t e d", "write e, read tree d, write tree d"),
        ("chmod 600 a", "write a"),
        ("chmod -R 777 d", "write tree d"),
        ("chown -R me d", "write tree d"),
        ("cp a b", "write b"),
        ("cp -r d e", "read tree d, write e"),
        ("cp -at e d", "write e, read tree d"),
        ("rsync -a d/ e", "read tree d/, write e"),
        ("git rm -r d", "write tree d"),
        ("git mv d e", "read tree d, write tree d, write e"),
        ("git checkout -- d", "maybe write tree d"),
        ("git restore d", "maybe write tree d"),
        ("git restore --staged d", ""),
        ("git clean -fd d", "maybe write tree d"),
        ("git clean -fd", "maybe write tree ."),
        ("git clean -n d", ""),
        ("prettier --write d", "maybe write tree d"),
        ("prettier --check d", ""),
        ("ruff format", "maybe write tree ."),
        ("git clone http://h/x", "write tree x"),
        ("git clone . d", "read tree ., write tree d"),
        ("git worktree add d", "write tree d, read tree ."),
        ("git add d", "read tree d"),
        ("git add -A", "read tree ."),
        ("tar cf x.tar d", "write x.tar, read tree d"),
        ("tar tf x.tar d", ""),
        ("zip -r x.zip d", "write x.zip, read tree d"),
        ("ls -R; find .; fd x; tree; du -a", ""),
        ("rg --files", ""),
        ("ls | rg x", ""),
        ("rg x", "read tree ."),
        ("find d -type f -exec cat {} +", "read tree d"),
        ("find d -exec rm {} +", "write tree d, write ?({})"),
        ("find d e | xargs cat", "read tree d, read tree e"),
        ("cat $(find d)", "read tree d"),
        ("find d | while read f; do cat \"$f\"; done", "read tree d"),
    ] {
        check(script, expected);
    }
}

#[test]
fn reopened_streams_are_doubts() {
    check(
        "ls 2<a.txt > /dev/fd/2",
        expect![[r#"
            run ls
            read /w/app/a.txt
            ? Indirect [/dev/fd/2]
        "#]],
    );
}

#[test]
fn quotes_and_escapes_are_removed() {
    check(
        r#"l"s" 'a b' c\ d "e\$f" $'g\th' $'\x69' "" "#,
        expect![[r#"
            run ls "a b" "c d" e$f "g\th" i ""
            stat /w/app/a b
            stat /w/app/c d
            stat /w/app/e$f
            stat /w/app/g	h
            stat /w/app/i
        "#]],
    );
    check(
        "l\\\ns -\\\nl",
        expect![[r#"
        run ls -l
    "#]],
    );
    check(
        "echo \"it's\" 'say \"x\"' \\\" \\\\ \"\\a\"",
        expect![[r#"
            exempt echo it's "say \"x\"" " \ \a
        "#]],
    );
    check(
        "echo $\"hi\" a#b \\#c # comment; rm x",
        expect![[r#"
            exempt echo hi a#b #c # comment
            run rm x
            write /w/app/x
            ? Syntax ["hi" a#b \#c # comment; rm x]
        "#]],
    );
}

#[test]
fn every_command_is_found() {
    check(
        "a; b && c || d | e |& f & g\nh",
        expect![[r#"
        run a
        run b
        run c
        run d
        run e
        run f
        run g
        run h
    "#]],
    );
    check(
        "if a; then b; elif c; then d; else e; fi",
        expect![[r#"
        run a
        run b
        run c
        run d
        run e
    "#]],
    );
    check(
        "while a; do b; done; until c; do d; done",
        expect![[r#"
        run a
        run b
        run c
        run d
    "#]],
    );
    check(
        "case $(a) in x|y) b;; (z) c;& *) d;; esac",
        expect![[r#"
        run a
        run b
        run c
        run d
    "#]],
    );
    check(
        "(a; { b; }) && ! c; time -p d",
        expect![[r#"
            run a
            run b
            run c
            exempt time
              run d
        "#]],
    );
    check(
        "echo $(a $(b)) `c \\`d\\`` \"$(e)\" <(f) ${x:-$(g)} $((`h`))",
        expect![[r#"
            run b
            run a ?($(b))
            run d
            run c ?(`d`)
            run e
            run f
            run g
            run h
            exempt echo ?($(a $(b))) ?(`c \`d\``) ?("$(e)") |(<(f)) ?(${x:-$(g)}) #($((`h`)))
            passed ?($(b))
            passed ?(`d`)
            ? Arithmetic [$((`h`))]
        "#]],
    );
    check(
        "cat <<X <<'Y'; a\n$(b)\nX\n$(no)\nY\nc",
        expect![[r#"
            run b
            exempt cat
            run a
            run c
            ? Disagreement [<]
        "#]],
    );
    check(
        "[[ $(a) = b && -f $(c) ]]",
        expect![[r#"
            run a
            run c
            stat ?($(c))
        "#]],
    );
    check(
        "x=$(a) y=(b $(c)) d >$(e)",
        expect![[r#"
        run a
        run c
        run e
        run x=$(a) y=(b $(c)) d
        write ?($(e))
    "#]],
    );
    check(
        "f() { a; }; function g { b; }",
        expect![[r#"
            run a
            run b
            ? Function [f]
            ? Function [g]
        "#]],
    );
    check(
        "select x in a; do b; done; for ((i=0;i<3;i++)); do c; done",
        expect![[r#"
        run b
        run c
    "#]],
    );
}

#[test]
fn redirects_access_files() {
    check(
        "ls >a >>b 2>c <d <>e >|f &>g &>>h >&i 2>&1 3<&- {fd}>j",
        expect![[r#"
            run ls
            write /w/app/a
            write /w/app/b
            write /w/app/c
            read /w/app/d
            read /w/app/e
            write /w/app/e
            write /w/app/f
            write /w/app/g
            write /w/app/h
            write /w/app/i
            write /w/app/j
            ? Disagreement [<]
        "#]],
    );
    check(
        "ls 2>/dev/null >/dev/stderr </dev/null",
        expect![[r#"
        run ls
    "#]],
    );
    check(
        "{ ls; } >a; (ls) >b; if ls; then ls; fi >c",
        expect![[r#"
        run ls
        run ls
        run ls
        run ls
        write /w/app/a
        write /w/app/b
        write /w/app/c
    "#]],
    );
    check(
        "ls >$x >*.txt >{a,b} > >(cat)",
        expect![[r#"
            run cat
            run ls
            write ?($x)
            expand *(/w/app/*.txt)
            write *(/w/app/*.txt)
            write ?(*.txt)
            write ?({a,b})
        "#]],
    );
    check(
        ">a; : >b; exec 3>c; ls >/dev/tcp/h/80",
        expect![[r#"
            exempt :
            exempt exec
            run ls
            write /w/app/a
            write /w/app/b
            write /w/app/c
            write /dev/tcp/h/80
            ? Network [/dev/tcp/h/80]
        "#]],
    );
}

#[test]
fn known_values_are_expanded() {
    check(
        "x=a y=$x; echo $x \"$y\" ${x}b $HOME ~/c ~ ~bob $PWD",
        expect![[r#"
            exempt echo a a ab /h /h/c /h ?(~bob) /w/app
        "#]],
    );
    check(
        "x='a b'; echo $x \"$x\" $x'c'",
        expect![[r#"
            exempt echo a b "a b" a bc
        "#]],
    );
    check(
        "x=$(a); echo $x \"$x\" $1 \"$@\" $? ${#x} $((1+2)) \"a$x\"",
        expect![[r#"
            run a
            exempt echo ?($x) ?("$x") ?($1) ?("$@") #($?) #(${#x}) #($((1+2))) ?("a$x")
        "#]],
    );
    check(
        "echo {a,b}c {1..3} {c..a} a{,b} '{a,b}' {a} {a,b",
        expect![[r#"
            exempt echo ac bc 1 2 3 c b a a ab {a,b} {a} {a,b
        "#]],
    );
    check(
        "if a; then x=1; fi; echo $x; y=1; y=2; echo $y",
        expect![[r#"
            run a
            exempt echo ?($x)
            exempt echo #($y)
        "#]],
    );
    check(
        "for f in a b; do echo $f; done; echo $f",
        expect![[r#"
            exempt echo a
            exempt echo b
            exempt echo ?($f)
        "#]],
    );
    check(
        "for f in src/*.rs; do cat \"$f\" \"$f.bak\"; done",
        expect![[r#"
            run cat *(src/*.rs) *(src/*.rs.bak)
            expand *(/w/app/src/*.rs)
            expand *(/w/app/src/*.rs.bak)
            expand *(/w/app/src/*.rs)
            read *(/w/app/src/*.rs)
            expand *(/w/app/src/*.rs.bak)
            read *(/w/app/src/*.rs.bak)
        "#]],
    );
    check(
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done",
        expect![[r#"
            exempt [ #($i) -lt 3 ]
            exempt echo #($i)
        "#]],
    );
    check(
        "x='*.c'; echo $x \"$x\"; ls *.rs [ab] a\\*b '*'",
        expect![[r#"
            exempt echo *(*.c) *.c
            run ls *(*.rs) *([ab]) a*b *
            expand *(/w/app/*.c)
            expand *(/w/app/*.c)
            expand *(/w/app/*.rs)
            expand *(/w/app/[ab])
            expand *(/w/app/*.rs)
            stat *(/w/app/*.rs)
            expand *(/w/app/[ab])
            stat *(/w/app/[ab])
            stat /w/app/a*b
            stat /w/app/*
        "#]],
    );
}

#[test]
fn working_directory_is_tracked() {
    check(
        "cd src && cat a; cat b",
        expect![[r#"
            exempt cd src
            run cat a
            run cat b
            enter /w/app/src
            read /w/app/src/a
            read /w/app/b
            read /w/app/src/b
        "#]],
    );
    check(
        "cd src; cat ../a",
        expect![[r#"
            exempt cd src
            run cat ../a
            enter /w/app/src
            read /w/app/../a
            read /w/app/src/../a
        "#]],
    );
    check(
        "(cd src); cat a; cd /etc && cat b",
        expect![[r#"
            exempt cd src
            run cat a
            exempt cd /etc
            run cat b
            enter /w/app/src
            read /w/app/a
            enter /etc
            read /etc/b
        "#]],
    );
    check(
        "pushd src && cat a && popd && cat b",
        expect![[r#"
            exempt pushd src
            run cat a
            exempt popd
            run cat b
            enter /w/app/src
            read /w/app/src/a
            read /w/app/b
        "#]],
    );
    check(
        "cd $x && cat a; cd -; cat b",
        expect![[r#"
            exempt cd ?($x)
            run cat a
            exempt cd -
            run cat b
            enter ?($x)
            read ?(a)
            enter ?(-)
            read ?(b)
        "#]],
    );
    check(
        "cd && cat a; cd .. && cd app && cat b",
        expect![[r#"
            exempt cd
            run cat a
            exempt cd ..
            exempt cd app
            run cat b
            enter /h
            read /h/a
            enter /w/app/..
            enter /h/..
            enter /w/app
            enter /app
            read /w/app/b
            read /app/b
        "#]],
    );
    check(
        "for d in a b; do cd $d; cat c; done",
        expect![[r#"
            exempt cd a
            run cat c
            exempt cd b
            run cat c
            enter ?(a)
            read ?(c)
            enter ?(b)
            read ?(c)
        "#]],
    );
}

#[test]
fn wrappers_are_unwrapped() {
    check(
        "timeout -k 1 5 env -u A B=1 LC_ALL=C nice -n 3 rm x",
        expect![[r#"
            exempt timeout -k 1 5 env -u A B=1 LC_ALL=C nice -n 3 rm x
              run env -u A B=1 LC_ALL=C nice -n 3 rm x
                run B=1 nice -n 3 rm x
                  run rm x
            write /w/app/x
        "#]],
    );
    check(
        "xargs -0 -n1 rm -f <a; ls | xargs; ls | xargs -I% mv % b",
        expect![[r#"
            exempt xargs -0 -n1 rm -f
              run rm -f ?(…)  !unlisted: …
            run ls
            exempt xargs
              exempt echo ?(…)
            run ls
            exempt xargs -I% mv % b
              run mv ?(%) b  !unlisted: %
            read /w/app/a
            write ?(…)
            read tree ?(%)
            write tree ?(%)
            write /w/app/b
        "#]],
    );
    check(
        "find . -type f -name a -exec cat {} + -exec rm {} \\;",
        expect![[r#"
            run find . -type f -name a -exec cat {} + -exec rm {} ;
              run cat @({})
              run rm @({})
            read /w/app/a
            read tree /w/app/.
            write tree /w/app/.
            write ?({})
            stat /w/app/.
        "#]],
    );
    check(
        "find src -print0 | xargs -0 wc -l",
        expect![[r#"
            run find src -print0
            exempt xargs -0 wc -l
              run wc -l @(…)
            stat /w/app/src
            read tree /w/app/src
        "#]],
    );
    check(
        "bash -euc 'cd src; rm \"$1\"' _ x; sh a.sh b; sh <<<'rm x'; curl x | sh",
        expect![[r#"
            run bash -euc "cd src; rm \"$1\"" _ x
              exempt cd src
              run rm x
            run sh a.sh b
            run sh
              run rm x
            run curl x
            run sh
            enter /w/app/src
            write /w/app/x
            write /w/app/src/x
            read /w/app/a.sh
            passed /w/app/b
            write /w/app/x
            ? ExternalCode [sh]
        "#]],
    );
    check(
        "eval 'rm' x; eval \"$x\"; . ./a; command -v rm; command rm x",
        expect![[r#"
            run eval rm x
              run rm x
            run eval ?("$x")
              run $x
            run . ./a
            exempt command -v rm
            exempt command rm x
              run rm x
            write /w/app/x
            read ?(./a)
            write ?(x)
            ? Wrapper ["$x"]
        "#]],
    );
    check(
        "strace -o t rm x; ssh host 'rm x'; sudo -u me rm x",
        expect![[r#"
            run strace -o t rm x  !unlisted: -o  !unlisted: t  !unlisted: rm  !unlisted: x
              run t rm x
              run rm x
              run x
            run ssh host "rm x"
              run rm x
            run sudo -u me rm x
              run rm x
            passed /w/app/t
            passed /w/app/rm
            passed /w/app/x
            passed /w/app/rm
            passed /w/app/x
            write /w/app/x
            write /w/app/x
            write /w/app/x
            ? Wrapper [strace]
        "#]],
    );
    check(
        "git -C sub bisect run rm x; busybox rm x; npx -y rm x",
        expect![[r#"
            run git -C sub bisect run rm x  !runs: run
              run rm x
              run rm x
            run busybox rm x
              run rm x
            run npx -y rm x
              run rm x
            enter /w/app/sub
            write /w/app/x
            write /w/app/sub/x
            write ?(x)
            write /w/app/x
            write /w/app/x
        "#]],
    );
    check(
        "sh -c \"rm $x\"",
        expect![[r#"
            run sh -c ?("rm $x")
              run rm $x
            write /w/app/$x
            ? Wrapper ["rm $x"]
        "#]],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn files_edited_in_place_are_written() {
    check(
        "sed -ni p a; sed --in-place p b; sed -i.bak p c; sed -i'/etc/*' p d; sed --in-place=x p e",
        expect![[r#"
            run sed -ni p a
            run sed --in-place p b
            run sed -i.bak p c
            run sed -i/etc/* p d  !destroys: -i
            run sed --in-place=x p e  !destroys: --in-place
            read /w/app/a
            write /w/app/a
            read /w/app/b
            write /w/app/b
            read /w/app/c
            write /w/app/c
            write /w/app/c.bak
            read /w/app/d
            write /w/app/d
            write /etc/d
            maybe write tree /etc
            read /w/app/e
            write /w/app/e
            write /w/app/ex
        "#]],
    );
}

#[test]
fn here_documents_may_contain_line_continuations() {
    check(
        "cat <<E\na \\\nb $((2*3)) $((x+$y))\nE\nrm c",
        expect![[r#"
            exempt cat
            run rm c
            write /w/app/c
            ? Arithmetic [<<]
        "#]],
    );
    check(
        "cat <<E\na \\\nE\nrm c\nE",
        expect![[r#"
            run cat E
            run a E
            run rm c
            run E
            read /w/app/E
            passed /w/app/E
            write /w/app/c
            ? Syntax [rm c
            E]
        "#]],
    );
    check(
        "cat <<E\n\\\nE\nrm c\nE",
        expect![[r#"
            exempt cat
            run rm c
            run E
            write /w/app/c
        "#]],
    );
    check(
        "cat <<EO\nE\\\nO\nrm c\nEO",
        expect![[r#"
            run cat EO
            run EO
            run rm c
            run EO
            read /w/app/EO
            write /w/app/c
            ? Syntax [rm c
            EO]
        "#]],
    );
    check(
        "cat <<E\na \\\\\nE\nrm c",
        expect![[r#"
            exempt cat
            run rm c
            write /w/app/c
        "#]],
    );
    check(
        "cat <<E\n$((1+$(rm c)))\nE",
        expect![[r#"
            run rm c
            exempt cat
            write /w/app/c
            ? Disagreement [1+$(rm c)]
            ? Arithmetic [<<]
        "#]],
    );
}

#[test]
fn dangerous_arguments_are_risks() {
    check(
        "sort -uo out a; sort --output=out a; sort --outp=out a",
        expect![[r#"
            run sort -uo out a
            run sort --output=out a
            run sort --outp=out a  !unlisted: --outp
            write /w/app/out
            read /w/app/a
            write /w/app/out
            read /w/app/a
            write /w/app/out
            read /w/app/a
            passed /w/app/out
            passed /w/app/a
        "#]],
    );
    check(
        "sed -n 1p a; sed -n 'w out' a; sed -n -f s a; sed 'r notes' a",
        expect![[r#"
            run sed -n 1p a
            run sed -n "w out" a  !code: w out
            run sed -n -f s a  !runs: -f  !code: s
            run sed "r notes" a
            read /w/app/a
            passed /w/app/out
            maybe write /w/app/out
            read /w/app/a
            read /w/app/a
            passed /w/app/s
            read /w/app/notes
            read /w/app/a
        "#]],
    );
    check(
        "awk '{print $1}' a; awk '{print > $1}' a; awk -f p a",
        expect![[r#"
            run awk "{print $1}" a
            run awk "{print > $1}" a  !code: {print > $1}
            run awk -f p a  !runs: -f
            read /w/app/a
            read /w/app/a
            passed /w/app/a
            read /w/app/a
            passed /w/app/p
        "#]],
    );
    check(
        "git --no-pager log -5 --oneline; git log --output=x; git -c a=b log",
        expect![[r#"
            run git --no-pager log -5 --oneline
            run git log --output=x  !writes: --output
            run git -c a=b log  !runs: -c
            passed /w/app/x
            maybe change below /w/app/.
            maybe read tree /w/app (repository)
            passed /w/app/a
            passed /w/app/a=b
            passed /w/app/b
        "#]],
    );
    check(
        "git checkout main; git checkout -b x; git checkout -- .; git checkout HEAD a",
        expect![[r#"
            run git checkout main
            run git checkout -b x
            run git checkout -- .  !destroys: checkout
            run git checkout HEAD a  !unlisted: checkout
            name only /w/app/main
            maybe write tree /w/app/main
            name only /w/app/.
            maybe write tree /w/app/.
            name only /w/app/HEAD
            maybe write tree /w/app/HEAD
            maybe write tree /w/app/a
        "#]],
    );
    check(
        "git stash drop; git nope; git push origin +x; git fetch ext::sh",
        expect![[r#"
            run git stash drop  !destroys: drop
            run git nope  !unlisted: nope
            run git push origin +x  !destroys: +x
            run git fetch ext::sh  !runs: ext::sh
            name only /w/app/origin
            stat /w/app/ext::sh
            passed /w/app/ext
            passed /w/app/ext::sh
            passed /w/app/sh
        "#]],
    );
    check(
        "tar tf a; tar czf out src; tar xf a; tar tf host:a",
        expect![[r#"
            run tar tf a
            run tar czf out src
            run tar xf a  !writes: xf
            run tar tf host:a  !unlisted: host:a
            read /w/app/a
            read /w/app/out
            write /w/app/out
            read tree /w/app/src
            read /w/app/a
            passed /w/app/xf
            passed /w/app/a
            maybe change below /w/app/.
            read /w/app/host:a
            passed /w/app/a
            passed /w/app/host
            passed /w/app/host:a
        "#]],
    );
    check(
        "find . -delete; find . -fprint out; find . $x; find . \"-na$x\"",
        expect![[r#"
            run find . -delete  !destroys: -delete
            run find . -fprint out  !writes: -fprint
            run find . ?($x)  !unlisted: $x
            run find . ?("-na$x")  !unlisted: "-na$x"
            stat /w/app/.
            write tree /w/app/.
            stat /w/app/.
            passed /w/app/print
            passed /w/app/out
            maybe change below /w/app/.
            stat /w/app/.
            stat ?($x)
            stat /w/app/.
            stat ?("-na$x")
        "#]],
    );
    check(
        "python3 -c 1; python3 a.py -c 1; python3 -m pytest -p x; python3 -m venv v",
        expect![[r#"
            run python3 -c 1  !code: -c
            run python3 a.py -c 1
            run python3 -m pytest -p x  !runs: -p
            run python3 -m venv v
            read /w/app/a.py
            passed /w/app/1
            passed /w/app/x
            write tree /w/app/v
        "#]],
    );
    check(
        "curl -sS -o /dev/null http://h; curl -d @a http://h; curl file:///a",
        expect![[r#"
            run curl -sS -o /dev/null http://h
            run curl -d @a http://h  !unlisted: @a
            run curl file:///a  !unlisted: file:///a
            passed /w/app/@a
            passed /w/app/a
            passed ///a
            passed /a
            passed /w/app/file
            passed /w/app/file:///a
            passed /w/app/a
        "#]],
    );
    check(
        "printf -v x a; printf -v 'a[$(b)]' c; read 'a[$(b)]'; test -v 'a[$(b)]'",
        expect![[r#"
            exempt printf -v x a
            exempt printf -v a[$(b)] c
            exempt read a[$(b)]
            exempt test -v a[$(b)]
            ? Indirect [a[$(b)]]
        "#]],
    );
    check(
        "dd if=a of=b; split a; cp a b c; uniq a b; make CC=x all",
        expect![[r#"
            run dd if=a of=b
            run split a  !writes: split
            run cp a b c
            run uniq a b
            run make CC=x all  !runs: CC=x
            read /w/app/a
            write /w/app/b
            read /w/app/a
            write tree /w/app/xaa
            maybe change below /w/app/.
            read /w/app/a
            read /w/app/b
            write /w/app/c
            read /w/app/a
            write /w/app/b
            passed /w/app/CC
            passed /w/app/CC=x
            passed /w/app/x
        "#]],
    );
}

#[test]
fn special_variables_are_doubts() {
    check(
        "LC_ALL=C TZ=UTC sort a; FOO=1 BAR=$x ls",
        expect![[r#"
        run sort a
        run FOO=1 BAR=$x ls
        read /w/app/a
    "#]],
    );
    check(
        "PATH=. ; EDITOR=x; foo=1; IFS=: read -r a <b",
        expect![[r#"
            exempt read -r a
            read /w/app/b
            ? Variable [PATH=.]
            ? Variable [EDITOR=x]
        "#]],
    );
    check(
        "export A=1; declare -n r=x; local y=2; readonly PATH=.; unset PATH",
        expect![[r#"
            run export A=1
            run declare -n r=x
            run local y=2
            run readonly PATH=.  !code: PATH=.
            run unset PATH
            ? Variable [-n]
            ? Variable [PATH=.]
            ? Variable [PATH]
        "#]],
    );
    check(
        "for PATH in a; do ls; done; ((PATH=1)); read PATH <a",
        expect![[r#"
            run ls
            exempt read PATH
            read /w/app/a
            ? Variable [PATH]
            ? Arithmetic [PATH=1))]
        "#]],
    );
}

#[test]
fn unknown_constructs_are_doubts() {
    check(
        "$x a; \"$(b)\" c; /bin/l? d",
        expect![[r#"
            run ?($x) a
            run b
            run ?("$(b)") c
            run *(/bin/l?) d
            passed /w/app/a
            passed /w/app/c
            expand *(/bin/l?)
            passed /w/app/d
            ? Program [$x]
            ? Program ["$(b)"]
            ? Program [/bin/l?]
        "#]],
    );
    check(
        "echo ${!x} ${x@P} ${a[$(b)]} $((a[1])) $[1] ",
        expect![[r#"
            exempt echo ${!x} ${x@P} ${a[$
            run b
            run ]} $
            run a[1]
            run $[1]
            passed /w/app/$
            ? Syntax [[1] ]
        "#]],
    );
    check(
        "x='a[$(b)]'; echo $((x)); [[ $y -eq 0 ]]; let \"a[$(c)]\"",
        expect![[r#"
            exempt echo #($((x)))
            run c
            run let ?("a[$(c)]")
            ? Arithmetic [$((x))]
            ? Arithmetic [$y]
            ? Arithmetic ["a[$(c)]"]
        "#]],
    );
    check(
        "alias a=b; trap 'rm x' EXIT; shopt -s extglob; set -e; set -a; hash -p x ls",
        expect![[r#"
            run alias a=b
            run trap "rm x" EXIT
              run rm x
            run shopt -s extglob
            exempt set -e
            run set -a  !unlisted: -a
            run hash -p x ls
            write /w/app/x
            passed /w/app/x
            passed /w/app/ls
            ? State [alias]
            ? State [trap]
            ? State [shopt]
            ? State [-a]
            ? State [hash]
        "#]],
    );
    check(
        "ls )\nrm x",
        expect![[r#"
            run ls
            run rm x
            write /w/app/x
            ? Syntax [)
            rm x]
        "#]],
    );
    check(
        "echo \"unclosed; rm x",
        expect![[r#"
            exempt echo
            run unclosed
            run rm x
            write /w/app/x
            ? Syntax []
        "#]],
    );
    check(
        "cat <<EOF\nnever closed",
        expect![[r#"
            run cat EOF
            run never closed
            read /w/app/EOF
            passed /w/app/closed
            ? Syntax []
        "#]],
    );
    check(
        "ls\u{a0}; rm x",
        expect![[r#"
            run ls 
            run rm x
            write /w/app/x
            ? Hidden [\u{a0}]
        "#]],
    );
    check(
        "coproc rm x; ls !(a|b)",
        expect![[r#"
            run rm x
            run ls !
            run a
            run b
            write /w/app/x
            stat /w/app/!
            ? Syntax [(a|b)]
        "#]],
    );
    check(
        "((touch x)); echo $~x; echo =(rm x)",
        expect![[r#"
            run touch x
            exempt echo $~x
            exempt echo =
            run rm x
            write /w/app/x
            write /w/app/x
            ? Syntax [~x; echo =(rm x)]
        "#]],
    );
}

#[test]
fn limits_are_enforced() {
    let doubts = |script: &str| {
        let kinds =
            analyze(script, &context()).doubts.into_iter().map(|doubt| format!("{:?}", doubt.kind));
        kinds.collect::<Vec<_>>().join(", ")
    };
    let deep =
        |open: &str, close: &str| format!("{}ls{}", open.repeat(10_000), close.repeat(10_000));
    for (open, close) in [
        ("(", ")"),
        ("$(", ")"),
        ("{ ", "; }"),
        ("\"$(", ")\""),
        ("`", "`"),
        ("<(", ")"),
        ("${x:-", "}"),
        ("$((", "))"),
        ("if ", "; then a; fi"),
        ("[[ ( ", " ) ]]"),
        ("a[", "]"),
        ("{", "}"),
        ("! ", ""),
        ("((", "))"),
    ] {
        assert_ne!(doubts(&deep(open, close)), "", "{open}");
    }
    assert_eq!(doubts(&"a".repeat(1 << 20)), "TooLong");
    assert_ne!(doubts(&"ls;".repeat(40_000)), "");
    assert_ne!(doubts(&format!("{} rm x", "env ".repeat(100))), "");
    assert_ne!(doubts(&format!("echo {}", "{a,b}".repeat(30))), "");
    assert_ne!(doubts(&format!("{} rm x", "at ".repeat(20_000))), "");
    assert_ne!(doubts("ls\0; rm x"), "");
}

#[test]
fn posix_shells_have_no_extensions() {
    let posix = ShellContext { language: ShellLanguage::Posix, ..context() };
    for script in
        ["[[ a || rm x ]]", "((rm x))", "echo $'a\\'; rm x #'", "cat <(rm x)", "[[ a > x ]]"]
    {
        assert!(!analyze(script, &posix).doubts.is_empty(), "{script}");
    }
    check(
        "sh -c '[[ a || rm x ]]'; bash -c '[[ a > b ]]'",
        expect![[r#"
            run sh -c "[[ a || rm x ]]"
              run [[ a
              run rm x ]]
            run bash -c "[[ a > b ]]"
            passed /w/app/a
            write /w/app/x
            write /w/app/]]
            ? Syntax [[[ a || rm x ]]]
        "#]],
    );
}

/// Rules that deny a command see it before and after a syntax error.
#[test]
fn unparsable_scripts_are_still_scanned() {
    for script in ["rm x\nif then", "if then\nrm x", "ls ) ; rm x", "cat <<E\n$(rm x)\n", "'\nrm x"]
    {
        let runs = analyze(script, &context()).runs;
        assert!(runs.iter().any(|run| run.words[0].shown() == "rm"), "{script}");
    }
}

#[test]
fn every_word_has_a_role() {
    for script in
        ["git -C a log -n 5 -- b", "cd a", "bash -c ls x", "nope -a b", "$x y", "if then rm"]
    {
        for run in analyze(script, &context()).runs {
            assert_eq!(run.words.len(), run.roles.len(), "{script}");
            assert_eq!(run.roles[0], WordRole::Program);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_analyzed_without_panic(script in any::<String>()) {
        analyze(&script, &context());
    }

    #[test]
    fn any_mix_of_syntax_is_analyzed_without_panic(script in mixed_syntax()) {
        let script = analyze(&script, &context());
        for run in &script.runs {
            prop_assert_eq!(run.words.len(), run.roles.len());
            prop_assert!(run.parent.is_none_or(|at| at < script.runs.len()));
            prop_assert!(run.risks.iter().all(|risk| risk.word < run.words.len()));
        }
        prop_assert!(script.accesses.iter().all(|access| access.run.is_none_or(|at| at < script.runs.len())));
    }

    /// Text in single quotes is one word of `echo` and runs nothing.
    #[test]
    fn single_quoted_text_is_literal(text in "[ -&(-~é漢🎉]{0,40}") {
        let script = analyze(&format!("echo '{text}'"), &context());
        prop_assert_eq!(script.doubts, vec![]);
        prop_assert_eq!(&script.runs[0].words[1..], &[Word::Literal(text)]);
        prop_assert_eq!(script.runs.len(), 1);
    }
}

fn mixed_syntax() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(vec![
        "ls",
        "rm x",
        " ",
        "\n",
        ";",
        "&&",
        "|",
        "&",
        "(",
        ")",
        "{ ",
        "; }",
        "$(",
        "`",
        "\"",
        "'",
        "\\",
        "${x",
        "}",
        ":-",
        "$((",
        "))",
        "[[ ",
        " ]]",
        "<<E\n",
        "\nE\n",
        "<",
        ">",
        ">&",
        "<(",
        "if ",
        " then ",
        " fi",
        "case x in ",
        "x) ",
        ";;",
        " esac",
        "for x in ",
        " do ",
        " done",
        "while ",
        "f() ",
        "x=",
        "$x",
        "a[",
        "]",
        "#",
        "~",
        "*",
        "{a,b}",
        "{1..3}",
        "$'",
        "\\x41",
        "é",
        "\u{202e}",
        "eval ",
        "sh -c ",
        "env ",
        "xargs ",
        "find . ",
        "-exec ",
        "git ",
        "-c ",
        "cd ",
        "..",
        "sed -n ",
        "tar ",
        "cf ",
        "=",
        "+=",
        "!",
        "time ",
        "\t",
        "\r",
        "@",
        "-",
        "0",
        "9",
    ]);
    prop::collection::vec(pieces, 0..24).prop_map(|pieces| pieces.concat())
}

#[test]
fn non_ascii_text_does_not_crash_tree_sitter() {
    for c in ['é', '中', '\u{ffff}', '\u{10ffff}'] {
        for script in [format!("echo {{{c}..3}}"), format!("{{{c}"), format!("echo {{1..{c}}}")] {
            analyze(&script, &context());
        }
    }
}

/// Whether every command that needs approval only reads.
fn only_reads(script: &str) -> bool {
    let script = analyze(script, &context());
    script.runs.iter().all(|run| run.only_reads || run.approval == Approval::Exempt)
}

#[test]
fn commands_that_only_read_are_recognized() {
    for script in [
        "cat a.txt | head -5",
        "ls -la src; pwd; date +%F",
        "grep -rn TODO src | sort | uniq -c | sort -rn",
        "rg -n 'fn main' -g '*.rs'",
        "find . -name '*.rs' -not -path './target/*'",
        "find src -type f -exec wc -l {} +",
        "sed -n '1,20p' a.txt",
        "awk '{print $1}' a.txt",
        "jq -r '.scripts | keys[]' package.json",
        "jq '.env.name' package.json",
        "diff a.txt b.txt; cmp a.txt b.txt; stat a.txt; file a.txt; du -sh src",
        "git status --short && git diff --stat && git log --oneline -5",
        "git show HEAD~1 --name-only; git blame a.txt; git grep -n main",
        "git branch; git branch -a; git branch --show-current; git branch --list 'f*'",
        "git tag; git tag -l 'v*'; git remote -v; git remote get-url origin",
        "git config --get user.name; git stash list; git rev-parse HEAD; git ls-files",
        "timeout 5 cat a.txt; xargs -n1 echo",
        "for f in a.txt b.txt; do echo \"$f\"; wc -l \"$f\"; done",
        "if [ -f a.txt ]; then head -1 a.txt; else echo none; fi",
        "tar tf a.tar; tar -tzf a.tgz; unzip -l a.zip",
        "node --version; python3 -V; npm -v; git --version",
        "npm ls --depth=0; npm pkg get version",
        "which node; command -v cargo; basename src/a.rs; realpath src",
        "LC_ALL=C sort a.txt",
        "echo \"$HOME $PATH\"",
    ] {
        assert!(only_reads(script), "{script}");
    }
    for script in [
        "cat a.txt | tee b.txt",
        "sort -o a.txt a.txt",
        "find . -name x -delete",
        "find . -exec rm {} +",
        "find . -fprint x",
        "sed -i s/a/b/ a.txt",
        "sed -n 'w out' a.txt",
        "sed 's/a/b/e' a.txt",
        "awk '{print > \"f\"}' a.txt",
        "awk 'BEGIN{system(\"x\")}'",
        "awk 'BEGIN{print ENVIRON[\"A\"]}'",
        "jq -n env",
        "jq -n '$ENV.A'",
        "env; printenv; printenv A",
        "env",
        "set",
        "echo \"$API_TOKEN\"",
        "printf '%s' \"${DB_PASSWORD}\"",
        "./ls",
        "bin/cat a.txt",
        "./true",
        "./echo a",
        "FOO=1 ls",
        "LD_PRELOAD=./x.so ls",
        "git branch new",
        "git branch -d old",
        "git branch -u origin/main",
        "git branch -m new",
        "git branch --unset-upstream",
        "git tag v1",
        "git tag -a v1 -m x",
        "git config user.name me",
        "git config --list",
        "git config --unset user.name",
        "git remote add x y",
        "git stash",
        "git stash pop",
        "git diff --output=x",
        "git log --ext-diff",
        "git add .",
        "git fetch",
        "git checkout main",
        "rg --pre x y",
        "uniq a.txt b.txt",
        "tar xf a.tar",
        "tar -cf a.tar src",
        "unzip a.zip",
        "npm ls -g",
        "npm install",
        "npm run build",
        "node a.js",
        "node -e 1",
        "python3 a.py",
        "make -n",
        "cargo metadata",
        "xargs rm",
        "timeout 5 ./x",
        "ls $flags",
        "unknown-program",
    ] {
        assert!(!only_reads(script), "{script}");
    }
}

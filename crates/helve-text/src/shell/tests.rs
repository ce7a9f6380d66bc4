//! What a reader makes of scripts, written down as text.

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{
    AccessKind, Approval, DynamicKind, FileTarget, RiskKind, Script, ShellContext, ShellLanguage,
    Word, WordRole, analyze,
};

fn around() -> ShellContext {
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
    expected.assert_eq(&render(&analyze(script, &around())));
}

/// One line a run, a touch, a doubt.
fn render(script: &Script) -> String {
    let mut text = String::new();
    for run in &script.runs {
        let depth = std::iter::successors(run.parent, |at| script.runs[*at].parent).count();
        text.push_str(&"  ".repeat(depth));
        text.push_str(if run.approval == Approval::Exempt { "free" } else { "run" });
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
            AccessKind::Stat => "look",
            AccessKind::Read => "read",
            AccessKind::MaybeRead => "perhaps",
            AccessKind::Passed => "handed",
            AccessKind::ReadTree => "read all of",
            AccessKind::Write => "write",
            AccessKind::Enter => "enter",
            AccessKind::NameOnly => "name",
            AccessKind::Expand => "fill",
            AccessKind::ExpandAgain => "refill",
        };
        let at = match &access.target {
            FileTarget::Path(path) => path.clone(),
            FileTarget::Glob(pattern) => format!("*({pattern})"),
            FileTarget::Unknown(shown) => format!("?({shown})"),
        };
        text.push_str(&format!("{kind} {at}\n"));
    }
    for doubt in &script.doubts {
        text.push_str(&format!("? {} [{}]\n", doubt.kind.about(), doubt.shown));
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
            };
            format!("{mark}({})", dynamic.shown)
        }
    }
}

#[test]
fn shells_are_known_by_name() {
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
fn a_stream_that_is_opened_by_name_is_shown_by_it() {
    check(
        "ls 2<a.txt > /dev/fd/2",
        expect![[r#"
        run ls
        read /w/app/a.txt
        ? text that is expanded again [/dev/fd/2]
    "#]],
    );
}

#[test]
fn quotes_and_escapes_are_removed() {
    check(
        r#"l"s" 'a b' c\ d "e\$f" $'g\th' $'\x69' "" "#,
        expect![[r#"
        run ls "a b" "c d" e$f "g\th" i ""
        look /w/app/a b
        look /w/app/c d
        look /w/app/e$f
        look /w/app/g	h
        look /w/app/i
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
        run echo it's "say \"x\"" " \ \a
    "#]],
    );
    check(
        "echo $\"hi\" a#b \\#c # comment; rm x",
        expect![[r#"
        run echo hi a#b #c # comment
        run rm x
        write /w/app/x
        ? syntax that is not understood ["hi" a#b \#c # comment; rm x]
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
        free time
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
            run echo ?($(a $(b))) ?(`c \`d\``) ?("$(e)") |(<(f)) ?(${x:-$(g)}) #($((`h`)))
            handed ?($(b))
            handed ?(`d`)
            ? arithmetic on what may not be a number [$((`h`))]
        "#]],
    );
    check(
        "cat <<X <<'Y'; a\n$(b)\nX\n$(no)\nY\nc",
        expect![[r#"
            run b
            free cat
            run a
            run c
            ? can be read in more than one way [<]
        "#]],
    );
    check(
        "[[ $(a) = b && -f $(c) ]]",
        expect![[r#"
        run a
        run c
        look ?($(c))
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
        ? a function in the place of a program [f]
        ? a function in the place of a program [g]
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
fn redirects_touch_files() {
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
        ? can be read in more than one way [<]
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
            fill *(/w/app/*.txt)
            write ?(*.txt)
            write ?({a,b})
        "#]],
    );
    check(
        ">a; : >b; exec 3>c; ls >/dev/tcp/h/80",
        expect![[r#"
            free :
            free exec
            run ls
            write /w/app/a
            write /w/app/b
            write /w/app/c
            write /dev/tcp/h/80
            ? a network connection [/dev/tcp/h/80]
        "#]],
    );
}

#[test]
fn what_is_known_is_filled_in() {
    check(
        "x=a y=$x; echo $x \"$y\" ${x}b $HOME ~/c ~ ~bob $PWD",
        expect![[r#"
        run echo a a ab /h /h/c /h ?(~bob) /w/app
    "#]],
    );
    check(
        "x='a b'; echo $x \"$x\" $x'c'",
        expect![[r#"
        run echo a b "a b" a bc
    "#]],
    );
    check(
        "x=$(a); echo $x \"$x\" $1 \"$@\" $? ${#x} $((1+2)) \"a$x\"",
        expect![[r#"
        run a
        run echo ?($x) ?("$x") ?($1) ?("$@") #($?) #(${#x}) #($((1+2))) ?("a$x")
    "#]],
    );
    check(
        "echo {a,b}c {1..3} {c..a} a{,b} '{a,b}' {a} {a,b",
        expect![[r#"
        run echo ac bc 1 2 3 c b a a ab {a,b} {a} {a,b
    "#]],
    );
    check(
        "if a; then x=1; fi; echo $x; y=1; y=2; echo $y",
        expect![[r#"
            run a
            run echo ?($x)
            run echo #($y)
        "#]],
    );
    check(
        "for f in a b; do echo $f; done; echo $f",
        expect![[r#"
        run echo a
        run echo b
        run echo ?($f)
    "#]],
    );
    check(
        "for f in src/*.rs; do cat \"$f\" \"$f.bak\"; done",
        expect![[r#"
            run cat *(src/*.rs) *(src/*.rs.bak)
            fill *(/w/app/src/*.rs)
            fill *(/w/app/src/*.rs.bak)
            fill *(/w/app/src/*.rs)
            read *(/w/app/src/*.rs)
            fill *(/w/app/src/*.rs.bak)
            read *(/w/app/src/*.rs.bak)
        "#]],
    );
    check(
        "i=0; while [ $i -lt 3 ]; do i=$((i+1)); echo $i; done",
        expect![[r#"
            free [ #($i) -lt 3 ]
            run echo #($i)
        "#]],
    );
    check(
        "x='*.c'; echo $x \"$x\"; ls *.rs [ab] a\\*b '*'",
        expect![[r#"
            run echo *(*.c) *.c
            run ls *(*.rs) *([ab]) a*b *
            fill *(/w/app/*.c)
            fill *(/w/app/*.c)
            fill *(/w/app/*.rs)
            fill *(/w/app/[ab])
            fill *(/w/app/*.rs)
            look *(/w/app/*.rs)
            fill *(/w/app/[ab])
            look *(/w/app/[ab])
            look /w/app/a*b
            look /w/app/*
        "#]],
    );
}

#[test]
fn the_folder_is_followed() {
    check(
        "cd src && cat a; cat b",
        expect![[r#"
        free cd src
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
        free cd src
        run cat ../a
        enter /w/app/src
        read /w/app/../a
        read /w/app/src/../a
    "#]],
    );
    check(
        "(cd src); cat a; cd /etc && cat b",
        expect![[r#"
        free cd src
        run cat a
        free cd /etc
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
        free pushd src
        run cat a
        free popd
        run cat b
        enter /w/app/src
        read /w/app/src/a
        read /w/app/b
    "#]],
    );
    check(
        "cd $x && cat a; cd -; cat b",
        expect![[r#"
        free cd ?($x)
        run cat a
        free cd -
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
        free cd
        run cat a
        free cd ..
        free cd app
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
        free cd a
        run cat c
        free cd b
        run cat c
        enter ?(a)
        read ?(c)
        enter ?(b)
        read ?(c)
    "#]],
    );
}

#[test]
fn wrappers_are_peeled() {
    check(
        "timeout -k 1 5 env -u A B=1 LC_ALL=C nice -n 3 rm x",
        expect![[r#"
        run timeout -k 1 5 env -u A B=1 LC_ALL=C nice -n 3 rm x
          run env -u A B=1 LC_ALL=C nice -n 3 rm x
            run B=1 nice -n 3 rm x
              run rm x
        write /w/app/x
    "#]],
    );
    check(
        "xargs -0 -n1 rm -f <a; ls | xargs; ls | xargs -I% mv % b",
        expect![[r#"
            run xargs -0 -n1 rm -f
              run rm -f ?(…)  !unlisted: …
            run ls
            run xargs
              run echo ?(…)
            run ls
            run xargs -I% mv % b
              run mv ?(%) b  !unlisted: %
            read /w/app/a
            write ?(…)
            read ?(%)
            write ?(%)
            read /w/app/b
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
            write ?({})
            look /w/app/.
        "#]],
    );
    check(
        "find src -print0 | xargs -0 wc -l",
        expect![[r#"
        run find src -print0
        run xargs -0 wc -l
          run wc -l @(…)
        look /w/app/src
    "#]],
    );
    check(
        "bash -euc 'cd src; rm \"$1\"' _ x; sh a.sh b; sh <<<'rm x'; curl x | sh",
        expect![[r#"
            run bash -euc "cd src; rm \"$1\"" _ x
              free cd src
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
            handed /w/app/b
            write /w/app/x
            ? code that comes in as data [sh]
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
        run command -v rm
        run command rm x
          run rm x
        write /w/app/x
        read ?(./a)
        write ?(x)
        ? a program that runs another ["$x"]
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
            handed /w/app/rm
            handed /w/app/x
            write /w/app/x
            write /w/app/x
            write /w/app/x
            ? a program that runs another [strace]
        "#]],
    );
    check(
        "git -C sub bisect run rm x; busybox rm x; npx -y rm x",
        expect![[r#"
            run git -C sub bisect run rm x  !runs: run
              run rm x
            run busybox rm x
              run rm x
            run npx -y rm x
              run rm x
            enter /w/app/sub
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
        ? a program that runs another ["rm $x"]
    "#]],
    );
}

#[cfg(target_os = "linux")]
#[test]
fn what_is_changed_in_place_is_written() {
    check(
        "sed -ni p a; sed --in-place p b; sed -i.bak p c; sed -i'/etc/*' p d; sed --in-place=x p e",
        expect![[r#"
            run sed -ni p a
            run sed --in-place p b
            run sed -i.bak p c  !destroys: -i
            run sed -i/etc/* p d  !destroys: -i
            run sed --in-place=x p e  !destroys: --in-place
            read /w/app/a
            write /w/app/a
            read /w/app/b
            write /w/app/b
            read /w/app/c
            write /w/app/c
            read /w/app/d
            write /w/app/d
            read /w/app/e
            write /w/app/e
        "#]],
    );
}

#[test]
fn joined_lines_of_a_here_document_are_read_where_they_hide_no_end() {
    check(
        "cat <<E\na \\\nb $((2*3)) $((x+$y))\nE\nrm c",
        expect![[r#"
            free cat
            run rm c
            write /w/app/c
            ? arithmetic on what may not be a number [<<]
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
            handed /w/app/E
            write /w/app/c
            ? syntax that is not understood [rm c
            E]
        "#]],
    );
    check(
        "cat <<E\n\\\nE\nrm c\nE",
        expect![[r#"
            free cat
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
        ? syntax that is not understood [rm c
        EO]
    "#]],
    );
    check(
        "cat <<E\na \\\\\nE\nrm c",
        expect![[r#"
            free cat
            run rm c
            write /w/app/c
        "#]],
    );
    check(
        "cat <<E\n$((1+$(rm c)))\nE",
        expect![[r#"
            run rm c
            free cat
            write /w/app/c
            ? can be read in more than one way [1+$(rm c)]
            ? arithmetic on what may not be a number [<<]
        "#]],
    );
}

#[test]
fn flags_that_reach_further_are_marked() {
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
        read /w/app/a
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
            read /w/app/a
            read /w/app/a
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
        read /w/app/a
    "#]],
    );
    check(
        "git --no-pager log -5 --oneline; git log --output=x; git -c a=b log",
        expect![[r#"
        run git --no-pager log -5 --oneline
        run git log --output=x  !writes: --output
        run git -c a=b log  !runs: -c
    "#]],
    );
    check(
        "git checkout main; git checkout -b x; git checkout -- .; git checkout HEAD a",
        expect![[r#"
        run git checkout main
        run git checkout -b x
        run git checkout -- .  !destroys: checkout
        run git checkout HEAD a  !unlisted: checkout
        name /w/app/main
        name /w/app/.
        name /w/app/HEAD
    "#]],
    );
    check(
        "git stash drop; git nope; git push origin +x; git fetch ext::sh",
        expect![[r#"
            run git stash drop  !destroys: drop
            run git nope  !unlisted: nope
            run git push origin +x  !destroys: +x
            run git fetch ext::sh  !runs: ext::sh
            name /w/app/origin
            look /w/app/ext::sh
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
        write /w/app/out
        read /w/app/src
        read /w/app/a
        read /w/app/host:a
    "#]],
    );
    check(
        "find . -delete; find . -fprint out; find . $x; find . \"-na$x\"",
        expect![[r#"
        run find . -delete  !destroys: -delete
        run find . -fprint out  !writes: -fprint
        run find . ?($x)  !unlisted: $x
        run find . ?("-na$x")  !unlisted: "-na$x"
        look /w/app/.
        look /w/app/.
        look /w/app/out
        look /w/app/.
        look ?($x)
        look /w/app/.
        look ?("-na$x")
    "#]],
    );
    check(
        "python3 -c 1; python3 a.py -c 1; python3 -m pytest -p x; python3 -m venv v",
        expect![[r#"
            run python3 -c 1  !code: 1
            run python3 a.py -c 1
            run python3 -m pytest -p x  !runs: -p
            run python3 -m venv v
            read /w/app/a.py
            handed /w/app/1
            write /w/app/v
        "#]],
    );
    check(
        "curl -sS -o /dev/null http://h; curl -d @a http://h; curl file:///a",
        expect![[r#"
        run curl -sS -o /dev/null http://h
        run curl -d @a http://h  !unlisted: @a
        run curl file:///a  !unlisted: file:///a
    "#]],
    );
    check(
        "printf -v x a; printf -v 'a[$(b)]' c; read 'a[$(b)]'; test -v 'a[$(b)]'",
        expect![[r#"
        run printf -v x a
        run printf -v a[$(b)] c
        free read a[$(b)]
        free test -v a[$(b)]
        ? text that is expanded again [a[$(b)]]
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
            write /w/app/xaa
            read /w/app/a
            read /w/app/b
            write /w/app/c
            read /w/app/a
            write /w/app/b
        "#]],
    );
}

#[test]
fn assignments_are_weighed() {
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
        free read -r a
        read /w/app/b
        ? a variable that steers programs [PATH=.]
        ? a variable that steers programs [EDITOR=x]
    "#]],
    );
    check(
        "export A=1; declare -n r=x; local y=2; readonly PATH=.; unset PATH",
        expect![[r#"
        run export A=1  !code: A=1
        run declare -n r=x
        run local y=2
        run readonly PATH=.  !code: PATH=.
        run unset PATH
        ? a variable that steers programs [-n]
        ? a variable that steers programs [PATH=.]
        ? a variable that steers programs [PATH]
    "#]],
    );
    check(
        "for PATH in a; do ls; done; ((PATH=1)); read PATH <a",
        expect![[r#"
        run ls
        free read PATH
        read /w/app/a
        ? a variable that steers programs [PATH]
        ? arithmetic on what may not be a number [PATH=1))]
    "#]],
    );
}

#[test]
fn what_is_not_understood_is_said() {
    check(
        "$x a; \"$(b)\" c; /bin/l? d",
        expect![[r#"
            run ?($x) a
            run b
            run ?("$(b)") c
            run *(/bin/l?) d
            fill *(/bin/l?)
            ? a program whose name is only known when it runs [$x]
            ? a program whose name is only known when it runs ["$(b)"]
            ? a program whose name is only known when it runs [/bin/l?]
        "#]],
    );
    check(
        "echo ${!x} ${x@P} ${a[$(b)]} $((a[1])) $[1] ",
        expect![[r#"
            run echo ${!x} ${x@P} ${a[$
            run b
            run ]} $
            run a[1]
            run $[1]
            handed /w/app/$
            ? syntax that is not understood [[1] ]
        "#]],
    );
    check(
        "x='a[$(b)]'; echo $((x)); [[ $y -eq 0 ]]; let \"a[$(c)]\"",
        expect![[r#"
        run echo #($((x)))
        run c
        run let ?("a[$(c)]")
        ? arithmetic on what may not be a number [$((x))]
        ? arithmetic on what may not be a number [$y]
        ? arithmetic on what may not be a number ["a[$(c)]"]
    "#]],
    );
    check(
        "alias a=b; trap 'rm x' EXIT; shopt -s extglob; set -e; set -a; hash -p x ls",
        expect![[r#"
            run alias a=b
            run trap "rm x" EXIT
              run rm x
            run shopt -s extglob
            free set -e
            run set -a  !unlisted: -a
            run hash -p x ls
            write /w/app/x
            handed /w/app/x
            handed /w/app/ls
            ? a change to how the shell works [alias]
            ? a change to how the shell works [trap]
            ? a change to how the shell works [shopt]
            ? a change to how the shell works [-a]
            ? a change to how the shell works [hash]
        "#]],
    );
    check(
        "ls )\nrm x",
        expect![[r#"
        run ls
        run rm x
        write /w/app/x
        ? syntax that is not understood [)
        rm x]
    "#]],
    );
    check(
        "echo \"unclosed; rm x",
        expect![[r#"
        run echo
        run unclosed
        run rm x
        write /w/app/x
        ? syntax that is not understood []
    "#]],
    );
    check(
        "cat <<EOF\nnever closed",
        expect![[r#"
            run cat EOF
            run never closed
            read /w/app/EOF
            handed /w/app/closed
            ? syntax that is not understood []
        "#]],
    );
    check(
        "ls\u{a0}; rm x",
        expect![[r#"
        run ls 
        run rm x
        write /w/app/x
        ? hidden characters [\u{a0}]
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
        look /w/app/!
        ? syntax that is not understood [(a|b)]
    "#]],
    );
    check(
        "((touch x)); echo $~x; echo =(rm x)",
        expect![[r#"
        run touch x
        run echo $~x
        run echo =
        run rm x
        write /w/app/x
        write /w/app/x
        ? syntax that is not understood [~x; echo =(rm x)]
    "#]],
    );
}

#[test]
fn limits_close() {
    let doubts = |script: &str| {
        let kinds = analyze(script, &around()).doubts.into_iter().map(|doubt| doubt.kind.about());
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
    assert_eq!(doubts(&"a".repeat(1 << 20)), "too long to be read");
    assert_ne!(doubts(&"ls;".repeat(40_000)), "");
    assert_ne!(doubts(&format!("{} rm x", "env ".repeat(100))), "");
    assert_ne!(doubts(&format!("echo {}", "{a,b}".repeat(30))), "");
    assert_ne!(doubts(&format!("{} rm x", "at ".repeat(20_000))), "");
    assert_ne!(doubts("ls\0; rm x"), "");
}

#[test]
fn a_plain_shell_knows_less() {
    let plain = ShellContext { language: ShellLanguage::Posix, ..around() };
    for script in
        ["[[ a || rm x ]]", "((rm x))", "echo $'a\\'; rm x #'", "cat <(rm x)", "[[ a > x ]]"]
    {
        assert!(!analyze(script, &plain).doubts.is_empty(), "{script}");
    }
    check(
        "sh -c '[[ a || rm x ]]'; bash -c '[[ a > b ]]'",
        expect![[r#"
            run sh -c "[[ a || rm x ]]"
              run [[ a
              run rm x ]]
            run bash -c "[[ a > b ]]"
            handed /w/app/a
            write /w/app/x
            write /w/app/]]
            ? syntax that is not understood [[[ a || rm x ]]]
        "#]],
    );
}

/// Denying rules see what comes before and after a syntax error, and what lies too deep.
#[test]
fn what_cannot_be_read_is_still_searched() {
    for script in ["rm x\nif then", "if then\nrm x", "ls ) ; rm x", "cat <<E\n$(rm x)\n", "'\nrm x"]
    {
        let runs = analyze(script, &around()).runs;
        assert!(runs.iter().any(|run| run.words[0].shown() == "rm"), "{script}");
    }
}

#[test]
fn words_and_their_parts_go_together() {
    for script in
        ["git -C a log -n 5 -- b", "cd a", "bash -c ls x", "nope -a b", "$x y", "if then rm"]
    {
        for run in analyze(script, &around()).runs {
            assert_eq!(run.words.len(), run.roles.len(), "{script}");
            assert_eq!(run.roles[0], WordRole::Program);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_read(script in any::<String>()) {
        analyze(&script, &around());
    }

    #[test]
    fn any_mix_of_syntax_is_read(script in syntax()) {
        let script = analyze(&script, &around());
        for run in &script.runs {
            prop_assert_eq!(run.words.len(), run.roles.len());
            prop_assert!(run.parent.is_none_or(|at| at < script.runs.len()));
            prop_assert!(run.risks.iter().all(|risk| risk.word < run.words.len()));
        }
        prop_assert!(script.accesses.iter().all(|access| access.run.is_none_or(|at| at < script.runs.len())));
    }

    /// Whatever stands in single quotes is one word of `echo` and runs nothing.
    #[test]
    fn single_quotes_hold(text in "[ -&(-~é漢🎉]{0,40}") {
        let script = analyze(&format!("echo '{text}'"), &around());
        prop_assert_eq!(script.doubts, vec![]);
        prop_assert_eq!(&script.runs[0].words[1..], &[Word::Literal(text)]);
        prop_assert_eq!(script.runs.len(), 1);
    }
}

fn syntax() -> impl Strategy<Value = String> {
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
fn the_grammar_is_not_shown_what_its_scanner_cannot_bear() {
    for far in ['é', '中', '\u{ffff}', '\u{10ffff}'] {
        for script in
            [format!("echo {{{far}..3}}"), format!("{{{far}"), format!("echo {{1..{far}}}")]
        {
            analyze(&script, &around());
        }
    }
}

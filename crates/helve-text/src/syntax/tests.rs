//! Tests that check valid and broken texts in each language, and errors introduced by edits.
#![cfg(feature = "syntax")]

use expect_test::{Expect, expect};
use proptest::prelude::*;

use super::{
    Language, MAX_ERRORS, MAX_LENGTH, SyntaxCheck, SyntaxErrorKind, check, introduced_errors,
    language,
};

/// Compares the errors of a file with the expectation.
fn check_file(path: &str, text: &str, expect: Expect) {
    let language = language(path).expect("a supported language");
    let rendered = match check(language, text) {
        SyntaxCheck::Errors(errors) => render(&errors),
        SyntaxCheck::Unchecked => "unchecked".to_string(),
    };
    expect.assert_eq(&rendered);
}

/// Shows one error per line: `2: missing )`.
fn render(errors: &[super::SyntaxError]) -> String {
    let line = |error: &super::SyntaxError| match &error.kind {
        SyntaxErrorKind::Missing(what) => format!("{}: missing {what}", error.line),
        SyntaxErrorKind::Unexpected(what) => format!("{}: unexpected {what}", error.line),
    };
    errors.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Compares the errors that an edit introduces with the expectation.
fn check_edit(path: &str, before: &str, after: &str, expect: Expect) {
    let language = language(path).expect("a supported language");
    expect.assert_eq(&render(&introduced_errors(language, Some(before), after)));
}

const RUST: &str = "use std::fmt;\n\nimpl A {\n    fn a(&self) {\n        b();\n    }\n\n    fn c(&self) {\n        d();\n    }\n}\n";

#[test]
fn rust_is_checked() {
    check_file("a.rs", RUST, expect![[""]]);
    check_file("a.rs", "fn a() {\n    let b = ;\n}\n", expect!["2: unexpected ="]);
    check_file("a.rs", "fn a() {\n    if b {\n        c();\n}\n", expect!["1: missing }"]);
    check_file("a.rs", "fn a() {\n    c(1, 2;\n}\n", expect!["2: missing )"]);
}

#[test]
fn typescript_is_checked() {
    check_file(
        "a.ts",
        "const a = <T,>(b: T): T => b;\nexport type C = { d?: string };\n",
        expect![[""]],
    );
    check_file("a.ts", "function a(b: string {\n  return b;\n}\n", expect!["1: missing )"]);
    check_file("a.tsx", "const A = () => <div className=\"a\">{b}</div>;\n", expect![[""]]);
    check_file("a.tsx", "const A = () => <div>{b}</span>;\n", expect![[""]]);
    check_file("a.ts", "<?xml version=\"1.0\"?>\n<TS></TS>\n", expect!["unchecked"]);
}

#[test]
fn javascript_is_checked() {
    check_file("a.mjs", "export default async () => ({ ...a, b: `c${d}` });\n", expect![[""]]);
    check_file("a.js", "function a() {\n  return [1, 2;\n}\n", expect!["2: missing ]"]);
    check_file("a.js", "const a = {\n  b: 1\n  c: 2,\n};\n", expect!["3: unexpected c: 2"]);
    check_file("a.js", "// @flow\nconst a = (b: ?string) => b;\n", expect!["unchecked"]);
}

#[test]
fn python_is_checked() {
    check_file(
        "a.py",
        "def a(b: int = 1) -> str:\n    match b:\n        case 1:\n            return f\"{b}\"\n",
        expect![[""]],
    );
    check_file("a.py", "def a(b:\n    return b\n", expect!["1: missing )"]);
    check_file("a.py", "def a()\n    return 1\n", expect!["1: unexpected def a()"]);
    check_file("a.py", "x = (1,\n", expect!["1: missing )"]);
}

#[test]
fn go_is_checked() {
    check_file(
        "a.go",
        "package a\n\nfunc b[T any](c T) (T, error) {\n\treturn c, nil\n}\n",
        expect![[""]],
    );
    check_file("a.go", "package a\n\nfunc b() {\n\tif c {\n\t\td()\n}\n", expect!["6: missing }"]);
}

#[test]
fn java_is_checked() {
    check_file(
        "A.java",
        "record A(int b) {\n    int c() { return switch (b) { case 1 -> 2; default -> 3; }; }\n}\n",
        expect![[""]],
    );
    check_file(
        "A.java",
        "class A {\n    int b() {\n        return 1\n    }\n}\n",
        expect!["3: missing ;"],
    );
}

#[test]
fn c_is_checked() {
    check_file("a.c", "#include <stdio.h>\n\nint main(void) {\n    return 0;\n}\n", expect![[""]]);
    check_file("a.c", "int main(void) {\n    return 0\n}\n", expect!["2: missing ;"]);
    check_file(
        "a.c",
        "int main(void) {\n    if (a) {\n        b();\n    return 0;\n}\n",
        expect!["5: missing }"],
    );
    check_file(
        "a.c",
        "static int __init a(void)\n{\n\tlist_for_each_entry(b, c, d) {\n\t\te();\n\t}\n\tFOO(x)\n\treturn 0;\n}\n",
        expect![[""]],
    );
}

#[test]
fn cpp_is_checked() {
    check_file(
        "a.cpp",
        "template <typename T>\nclass A : public B {\n  Q_OBJECT\n public:\n  auto c() const -> T { return [this] { return d_; }(); }\n};\n",
        expect![""],
    );
    check_file("a.hpp", "class A {\n  void b() {\n    c(;\n  }\n};\n", expect!["3: missing )"]);
}

#[test]
fn ruby_is_checked() {
    check_file(
        "a.rb",
        "class A\n  def b(c = 1, *d, e:)\n    puts <<~F\n      #{c}\n    F\n  end\nend\n",
        expect![[""]],
    );
    check_file("a.rb", "class A\n  def b\n    puts 1\nend\n", expect!["1: unexpected class A"]);
}

#[test]
fn json_is_checked() {
    check_file("a.json", "{\"a\": [1, 2, {\"b\": null}]}\n", expect![[""]]);
    check_file("package.json", "{\n  \"a\": 1,\n  \"b\": 2,\n}\n", expect!["3: unexpected ,"]);
    check_file("a.json", "{\n  \"a\": 1\n  \"b\": 2\n}\n", expect![[r#"2: unexpected "a": 1"#]]);
    check_file("a.json", "{\n  \"a\": [1, 2\n}\n", expect!["2: missing ]"]);
    let commented = "// a\n{\n  \"b\": [1, 2,], /* , */\n  \"c\": \"d,]\", // e\n}\n";
    for path in ["a.jsonc", "tsconfig.json", "tsconfig.build.json", "x/.vscode/settings.json"] {
        check_file(path, commented, expect![[""]]);
    }
    check_file("a.jsonc", "{\n  \"a\": 1\n  \"b\": 2,\n}\n", expect![[r#"2: unexpected "a": 1"#]]);
}

#[test]
fn yaml_is_checked() {
    check_file(
        "a.yaml",
        "a:\n  - b: 1\n    c: [d, e]\n  - |\n    f\n---\ng: ${{ h }}\n",
        expect![[""]],
    );
    check_file("a.yml", "a:\n  - b: 1\n   c: 2\n", expect!["3: unexpected c: 2"]);
    check_file("a.yml", "a: [b, c\nd: e\n", expect!["2: unexpected d: e"]);
    check_file("a.yml", "a: \"b\nc: d\n", expect!["2: unexpected c: d"]);
    check_file(
        "chart/templates/a.yaml",
        "a: {{ .Values.a }}\n{{- if .b }}\nc: d\n{{- end }}\n",
        expect!["unchecked"],
    );
}

#[test]
fn bash_is_checked() {
    check_file(
        "a.sh",
        "#!/bin/bash\nset -e\nfor a in \"$@\"; do\n  echo \"${a%%.*}\" | sed 's/a/b/'\ndone\n",
        expect![[""]],
    );
    check_file("a.sh", "if [ -f a ]; then\n  echo b\n", expect!["2: missing fi"]);
    check_file("a.sh", "#!/usr/bin/env fish\nif test -f a\n  echo b\nend\n", expect!["unchecked"]);
}

#[test]
fn languages_are_recognized_by_file_name() {
    let describe = |path: &str| match language(path) {
        Some(language) => format!("{language:?}"),
        None => "-".to_string(),
    };
    for (path, expected) in [
        ("src/lib.rs", "Rust"),
        ("C:\\a\\B.JAVA", "Java"),
        ("Gemfile", "Ruby"),
        (".eslintrc", "JsonWithComments"),
        ("rs", "-"),
        ("", "-"),
        ("a.html", "-"),
        ("a.vue", "-"),
        ("a.yaml.j2", "-"),
        ("a.tmpl.go", "-"),
        ("config.h.in", "-"),
        ("{{cookiecutter.name}}/a.py", "-"),
    ] {
        assert_eq!(describe(path), expected, "{path}");
    }
}

#[test]
fn a_deleted_brace_is_reported_at_its_line() {
    check_edit("a.rs", RUST, &RUST.replacen("    }\n\n", "\n", 1), expect!["6: missing }"]);
    check_edit(
        "a.rs",
        RUST,
        &RUST.replacen("c(&self) {", "c(&self) ", 1),
        expect![[r#"
        8: unexpected (&self)
        11: unexpected }"#]],
    );
    let python = "def a():\n    return b(1)\n\n\ndef c():\n    return 2\n";
    check_edit("a.py", python, &python.replacen("b(1)", "b(1", 1), expect!["2: missing )"]);
}

#[test]
fn an_old_error_is_not_reported() {
    let old = "fn a() {\n    let b = ;\n}\n\nfn c() {\n    d();\n}\n";
    check_edit("a.rs", old, &old.replacen("d();", "e();\n    f();", 1), expect![[""]]);
    check_edit("a.rs", old, &format!("use g;\n\n{old}"), expect![[""]]);
    check_edit("a.rs", old, "fn c() {\n    d();\n}\n\nfn a() {\n    let b = ;\n}\n", expect![[""]]);
    check_edit("a.rs", old, &old.replacen("let b", "let bb", 1), expect![[""]]);
    check_edit("a.rs", old, &old.replacen("= ;", "= 1;", 1), expect![[""]]);
    check_edit("a.rs", old, &old.replacen("d();", "d(1;", 1), expect!["6: missing )"]);
    check_edit("a.yml", "a: [b\nc: d\n", "a: [b\nc: e\n", expect![[""]]);
}

#[test]
fn files_with_many_old_errors_are_not_reported() {
    let broken = "let = ;\n".repeat(5);
    check_edit("a.rs", &broken, &format!("{broken}fn a( {{\n"), expect![[""]]);
    assert_eq!(introduced_errors(Language::Rust, None, &"let = ;\n".repeat(MAX_ERRORS + 1)), []);
    assert_eq!(introduced_errors(Language::Rust, None, "fn a() {").len(), 1);
    assert_eq!(
        introduced_errors(Language::Rust, Some(""), &"let = ;\n".repeat(MAX_ERRORS + 1)).len(),
        MAX_ERRORS
    );
    assert_eq!(check(Language::Rust, &"(".repeat(MAX_LENGTH + 1)), SyntaxCheck::Unchecked);
    assert_eq!(check(Language::Rust, "fn a() {\0"), SyntaxCheck::Unchecked);
}

/// Parsing these texts would overflow the buffer of a scanner, and the process would crash.
#[test]
fn texts_that_overflow_scanners_are_not_parsed() {
    let deep: String = (0..1_000).map(|depth| format!("{}if a:\n", " ".repeat(depth))).collect();
    assert_eq!(check(Language::Python, &deep[..MAX_LENGTH]), SyntaxCheck::Unchecked);
    let long = format!("a(<<{})\n", "b".repeat(300));
    assert_eq!(check(Language::Ruby, &long), SyntaxCheck::Unchecked);
    let many = format!("a({})\n", "<<B, ".repeat(300));
    assert_eq!(check(Language::Ruby, &many), SyntaxCheck::Unchecked);
    let nested = "#{a <<B\n".repeat(100);
    assert_eq!(check(Language::Ruby, &nested), SyntaxCheck::Unchecked);
    let dashes = "- ".repeat(10_000);
    assert_eq!(check(Language::Yaml, &dashes), SyntaxCheck::Unchecked);
}

const ALL: [Language; 14] = [
    Language::Bash,
    Language::C,
    Language::Cpp,
    Language::Go,
    Language::Java,
    Language::JavaScript,
    Language::Json,
    Language::JsonWithComments,
    Language::Python,
    Language::Ruby,
    Language::Rust,
    Language::Tsx,
    Language::TypeScript,
    Language::Yaml,
];

/// Generates fragments that are meaningful to many grammars, and some noise.
fn pieces() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "{", "}", "(", ")", "[", "]", "<", ">", "\"", "'", "`", "#{", "${", "//", "/*", "*/",
        "<<A", "<<~'B'", "A\n", "\n", "\r\n", "\t", "  ", "- ", "? ", ": ", "|", "&", "*", "%w(",
        "r#\"", "f\"{", "\\", "\\\n", ";", ",", "=", "=>", "->", "#", "@", "!", "if", "end",
        "def a", "fn a", "class A", "do", "then", "fi", "case", "esac", "</a>", "<a>", "1", "a",
        "é", "\u{feff}", "\u{2028}", "😀", "\u{c}", "---", "...", "#if", "#else",
    ]);
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn any_text_can_be_checked(before in pieces(), after in pieces(), noise in any::<String>()) {
        for language in ALL {
            for text in [&after, &noise] {
                let lines = text.matches('\n').count() + 1;
                for old in [None, Some(before.as_str())] {
                    let errors = introduced_errors(language, old, text);
                    prop_assert!(errors.len() <= MAX_ERRORS);
                    prop_assert!(errors.iter().all(|error| (1..=lines).contains(&error.line)));
                }
                prop_assert_eq!(introduced_errors(language, Some(text), text), []);
            }
        }
    }
}

#[test]
fn a_shell_script_may_have_non_ascii_letters() {
    check_file("a.sh", "echo {é..3} {1..\u{10ffff}} {\u{10ffff}\n", expect![[""]]);
}

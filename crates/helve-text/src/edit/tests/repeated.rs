//! Edits that were made before, and edits that would repeat a part of a word. Similar edits are applied.

use super::{Edit, MatchPolicy, TextKind, apply};
use crate::edit::EditRefusal;

/// Applies an edit. Returns the new content, `Err("applied")` if the edit was made before, or `Err` with the word that
/// the edit cuts.
fn outcome(file: &str, old: &str, new: &str, all: bool) -> Result<String, String> {
    let edit = Edit { old, new, all, kind: TextKind::Code };
    match apply(file.as_bytes(), &edit, MatchPolicy::Tolerant) {
        Ok(applied) => Ok(String::from_utf8(applied.bytes).unwrap()),
        Err(EditRefusal::AlreadyApplied { .. }) => Err("applied".into()),
        Err(EditRefusal::CutWord { word, .. }) => Err(word),
        Err(refusal) => panic!("{file:?}, {old:?}: {refusal:?}"),
    }
}

fn is_applied_before(file: &str, old: &str, new: &str) {
    assert_eq!(outcome(file, old, new, false), Err("applied".into()), "{old:?} → {new:?}");
}

fn is_made(file: &str, old: &str, new: &str, result: &str) {
    assert_eq!(outcome(file, old, new, false).as_deref(), Ok(result), "{old:?} → {new:?}");
}

#[test]
fn an_edit_within_a_line_is_not_made_twice() {
    for (old, new) in [
        ("image: postgres:16", "image: postgres:16-alpine"),
        ("self.paid = True", "self.paid = True  # set once"),
        ("## Usage", "### ## Usage"),
        ("x", "Some(x)"),
        ("= 10", "= 100"),
        ("../a", "../../a"),
        ("open(path)", "self.open(path)"),
    ] {
        let file = format!("first\n    {old};\nlast\n");
        let changed = file.replace(old, new);
        is_made(&file, old, new, &changed);
        is_applied_before(&changed, old, new);
    }
}

#[test]
fn another_edit_within_a_line_is_made() {
    for (file, old, new, result) in [
        // The file goes on differently.
        ("ab(1)\n", "ab(1)", "ab(1).c()", "ab(1).c()\n"),
        ("x = a.b()\n", "a.b", "a.b.c", "x = a.b.c()\n"),
        // The word goes on.
        ("v = 1600\n", "v = 16", "v = 160", "v = 16000\n"),
        // Another bracket or more indentation may be missing.
        ("f(g(h(x));\n", "h(x)", "h(x))", "f(g(h(x)));\n"),
        ("    x();\n", "x();", "    x();", "        x();\n"),
        // The next line begins like the new one.
        (
            "import a\nimport b.c\n",
            "import a\n",
            "import a\nimport b\n",
            "import a\nimport b\nimport b.c\n",
        ),
        ("if x {\n}\n}\n", "if x {\n}", "if x {\n}\n}", "if x {\n}\n}\n}\n"),
    ] {
        is_made(file, old, new, result);
    }
}

#[test]
fn replacing_all_is_refused_only_if_every_occurrence_was_replaced() {
    let all = |file: &str| outcome(file, "open", "reopen_all", true);
    assert_eq!(all("reopen_all(1)\nreopen_all(2)\n"), Err("applied".into()));
    assert_eq!(all("open(1)\nopen(2)\n"), Ok("reopen_all(1)\nreopen_all(2)\n".into()));
    assert_eq!(outcome("a.b\na.c\n", "a", "x.a", true), Ok("x.a.b\nx.a.c\n".into()));
    assert_eq!(outcome("x.a.b\na.c\n", "a", "x.a", true), Ok("x.x.a.b\nx.a.c\n".into()));
}

#[test]
fn inserted_lines_are_recognized_without_the_blank_lines_around_them() {
    for (file, old, new) in [
        (
            "\treturn nil\n}\n\nfunc b() {\n",
            "\treturn nil\n}\n\n",
            "\treturn nil\n}\n// end of Push\n\n",
        ),
        ("x\n\nimpl Cache {\n}\n", "\nimpl Cache {\n", "\n#[allow(dead_code)]\nimpl Cache {\n"),
        ("a\n\n## Usage\n\nb\n", "\n## Usage\n\n", "\n## Usage\n\nMore words.\n\n"),
        (
            "a\n\nfunc (q *Queue) Close() {\n",
            "\nfunc (q *Queue) Close",
            "\n// Close closes q.\nfunc (q *Queue) Close",
        ),
        (
            "import os\nimport re\n\nx\n",
            "import os\nimport re\n\n",
            "import os\nimport re\nimport sys\n\n",
        ),
    ] {
        let changed = file.replace(old, new);
        is_made(file, old, new, &changed);
        is_applied_before(&changed, old, new);
    }
}

#[test]
fn other_lines_are_inserted_next_to_similar_ones() {
    for (file, old, new, result) in [
        // Only a part of the inserted lines is there.
        (
            "a()\nlog(1)\nb()\n",
            "a()\n\n",
            "a()\nlog(1)\nlog(2)\n\n",
            "a()\nlog(1)\nlog(2)\nlog(1)\nb()\n",
        ),
        // The inserted line has too few letters to tell.
        (
            "if x\n  if y\n    z\n  end\n",
            "    z\n\n",
            "    z\n  end\n\n",
            "if x\n  if y\n    z\n  end\n  end\n",
        ),
    ] {
        is_made(file, old, new, result);
    }
}

#[test]
fn the_rest_of_a_word_is_not_repeated() {
    for (file, old, new, word) in [
        ("p: Promise<Session>\n", "Promise<Sess", "Promise<AuthSession", "Session"),
        (
            "throw new IllegalArgumentException();\n",
            "new IllegalArgumentExc",
            "new NullPointerException",
            "IllegalArgumentException",
        ),
        ("import java.util.ArrayList;\n", "util.ArrayL", "util.LinkedList", "ArrayList"),
        ("LOG_LEVEL: info\n", "LOG_LEVEL: in", "LOG_LEVEL: debug_info", "info"),
        ("VIEW open_orders AS\n", "VIEW open_ord", "VIEW all_open_orders", "open_orders"),
        ("p: SessionManager\n", "p: Sess", "p: AuthSession", "SessionManager"),
        ("class AuthService {\n", "vice {", "Service {", "AuthService"),
        (
            "class AuthService {\n  private a\n",
            "vice {\n  private",
            "Service {\n  protected",
            "AuthService",
        ),
        ("getUser()\n", "get", "getUserById", "getUser"),
        ("use core::time;\n", "core::ti", "core::time as t", "time"),
        ("use core::time;\n", "core::ti", "core::times_more", "time"),
        ("unreadable\n", "readable", "unreadable2", "unreadable"),
    ] {
        assert_eq!(outcome(file, old, new, false), Err(word.into()), "{old:?} → {new:?}");
    }
}

#[test]
fn parts_of_words_are_edited() {
    for (file, old, new, result) in [
        ("getUser()\n", "get", "fetch", "fetchUser()\n"),
        ("getUser()\n", "User", "Account", "getAccount()\n"),
        ("items\n", "item", "itemset", "itemsets\n"),
        ("items\n", "item", "user", "users\n"),
        ("walk()\n", "walk", "walked", "walked()\n"),
        ("walking()\n", "ing", "ed", "walked()\n"),
        ("UserService\n", "User", "UserAuth", "UserAuthService\n"),
        ("UserService\n", "Service", "AuthService", "UserAuthService\n"),
        ("read_all\n", "read", "try_read", "try_read_all\n"),
        ("superuser\n", "user", "account", "superaccount\n"),
        ("100000\n", "1000", "20000", "2000000\n"),
        ("x11\n", "x1", "y2", "y21\n"),
    ] {
        is_made(file, old, new, result);
    }
}

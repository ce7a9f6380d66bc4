//! Tests of the settings of the tools that change files.

use std::sync::Arc;

use expect_test::{Expect, expect};
use helve_core::NoMedia;
use helve_text::edit::MatchPolicy;

use crate::opencode::{DEFAULT_TIMEOUT, DIALECT, tools_with};
use crate::{EditSettings, SyntaxPolicy};

fn check(settings: EditSettings, fixture: &str, expected: Expect) {
    let tools = tools_with(Arc::new(NoMedia), settings, DEFAULT_TIMEOUT);
    helve_testkit::check(&DIALECT, tools, fixture, expected);
}

const BROKEN_EDITS: &str = r#"
--- rule edit * allow
--- file a.rs
fn a() {
    b();
}
--- call edit {"filePath": "a.rs", "oldString": "    b();\n}", "newString": "    c();"}
--- call write {"filePath": "new.json", "content": "{\"a\": }\n"}
--- call apply_patch {"patchText": "*** Begin Patch\n*** Add File: b.py\n+def f(:\n*** Update File: a.rs\n-    b();\n+    b());\n*** End Patch"}
--- call edit {"filePath": "a.rs", "oldString": "b()", "newString": "c()"}
"#;

#[test]
fn the_syntax_check_can_refuse_changes() {
    let refuse = EditSettings { syntax: SyntaxPolicy::Refuse, ..EditSettings::DEFAULT };
    check(
        refuse,
        BROKEN_EDITS,
        expect![[r#"
            !! Failed
            This change would introduce syntax errors. Nothing was written.
            - a.rs:2: missing }
            Fix these lines (numbers refer to the new file) and call again.
            !! Failed
            This change would introduce syntax errors. Nothing was written.
            - new.json:1: missing number
            Fix these lines (numbers refer to the new file) and call again.
            !! Failed
            This change would introduce syntax errors. Nothing was written.
            - b.py:1: missing )
            - a.rs:2: unexpected )
            Fix these lines (numbers refer to the new file) and call again.
            == a.rs
            Edited a.rs: 1 line added, 1 removed.

            --- a.rs
            +++ a.rs
            @@ -1,3 +1,3 @@
             fn a() {
            -    b();
            +    c();
             }
            >> a.rs
            fn a() {
                c();
            }
        "#]],
    );
}

#[test]
fn the_syntax_check_can_be_off() {
    let off = EditSettings { syntax: SyntaxPolicy::Off, ..EditSettings::DEFAULT };
    let fixture = BROKEN_EDITS.lines().take(7).map(|line| format!("{line}\n")).collect::<String>();
    check(
        off,
        &fixture,
        expect![[r#"
        == a.rs
        Edited a.rs: 1 line added, 2 removed.

        --- a.rs
        +++ a.rs
        @@ -1,3 +1,2 @@
         fn a() {
        -    b();
        -}
        +    c();
        >> a.rs
        fn a() {
            c();
    "#]],
    );
}

#[test]
fn exact_matching_refuses_inexact_quotations() {
    let exact = EditSettings { matching: MatchPolicy::Exact, ..EditSettings::DEFAULT };
    check(
        exact,
        r#"
--- rule edit * allow
--- file a.go
	if x {
		y()
	}
--- call edit {"filePath": "a.go", "oldString": "if x {\n    y()\n}", "newString": "if x {\n    z()\n}"}
--- call apply_patch {"patchText": "*** Begin Patch\n*** Update File: a.go\n if x {\n-    y()\n+    z()\n }\n*** End Patch"}
--- call edit {"filePath": "a.go", "oldString": "y()", "newString": "z()"}
"#,
        expect![[r#"
            !! Stale
            oldString was not found in a.go. Nothing was written. The closest match is lines 1-3: the lines match except for tabs and spaces.
            First difference at line 1, column 1 (line 1 of oldString): the file has a tab, oldString has "i" (U+0069).
            00001| 	if x {
            00002| 		y()
            00003| 	}
            Quote these lines exactly, without the line numbers, and call again.
            !! Stale
            The old text of the patch does not match a.go exactly, and the setting `edit.match` requires an exact match. Nothing was written.
            Read the lines again and quote them exactly.
            == a.go
            Edited a.go: 1 line added, 1 removed.

            --- a.go
            +++ a.go
            @@ -1,3 +1,3 @@
             	if x {
            -		y()
            +		z()
             	}
            >> a.go
            	if x {
            		z()
            	}
        "#]],
    );
}

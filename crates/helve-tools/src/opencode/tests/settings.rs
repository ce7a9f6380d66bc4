//! What the settings for changes do.

use std::sync::Arc;

use expect_test::{Expect, expect};
use helve_core::NoMedia;
use helve_text::edit::Match;

use crate::opencode::{DIALECT, tools_with};
use crate::{EditSettings, SyntaxCheck};

fn check(settings: EditSettings, fixture: &str, expected: Expect) {
    let tools = tools_with(Arc::new(NoMedia), settings);
    helve_testkit::check(&DIALECT, tools, fixture, expected);
}

const FAULTS: &str = r#"
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
fn what_would_break_syntax_is_not_written_where_that_is_chosen() {
    let refuse = EditSettings { syntax: SyntaxCheck::Refuse, ..EditSettings::DEFAULT };
    check(
        refuse,
        FAULTS,
        expect![[r#"
        !! Failed
        This change would bring in faults of syntax. Nothing was written.
        - a.rs:2: } is missing
        Mend these lines (numbered as they would be) in the new text, and call again.
        !! Failed
        This change would bring in faults of syntax. Nothing was written.
        - new.json:1: number is missing
        Mend these lines (numbered as they would be) in the new text, and call again.
        !! Failed
        This change would bring in faults of syntax. Nothing was written.
        - b.py:1: ) is missing
        - a.rs:2: unexpected )
        Mend these lines (numbered as they would be) in the new text, and call again.
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
fn nobody_looks_at_syntax_where_that_is_chosen() {
    let off = EditSettings { syntax: SyntaxCheck::Off, ..EditSettings::DEFAULT };
    let fixture = FAULTS.lines().take(7).map(|line| format!("{line}\n")).collect::<String>();
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
fn a_quotation_must_be_exact_where_that_is_chosen() {
    let exact = EditSettings { matching: Match::Exact, ..EditSettings::DEFAULT };
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
            oldString is not in a.go. Nothing was written. The nearest place is lines 1-3: the lines are the same, but for tabs against spaces.
            They part at line 1, column 1 (line 1 of oldString): the file has a tab, oldString has "i" (U+0069).
            00001| 	if x {
            00002| 		y()
            00003| 	}
            Quote these lines as they stand, without their numbers, and call again.
            !! Stale
            The old text of the patch is not exactly that of a.go, and `edit.match` asks for that. Nothing was written.
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

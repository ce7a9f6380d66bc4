//! `multiedit`: makes several replacements in one file. Makes all replacements or none.

use helve_core::ForeignParameters;
use helve_core::{Tool, ToolContext, ToolError, ToolOutput, ToolProperties};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::{answer, error};
use super::foreign;
use crate::EditSettings;
use crate::ops::edit::{EditOrder, EditRequest, Replacement, edit};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The file to change
    #[schemars(length(min = 1))]
    file_path: String,
    /// The replacements, in order
    #[schemars(length(min = 1, max = 500))]
    edits: Vec<EditArgs>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EditArgs {
    /// Optional: the same path as above
    file_path: Option<String>,
    /// The text to replace
    old_string: String,
    /// The replacement
    new_string: String,
    /// Replace every occurrence
    #[serde(default)]
    replace_all: bool,
}

pub(super) struct MultiEdit {
    pub(super) settings: EditSettings,
}

impl Tool for MultiEdit {
    type Args = Args;
    const NAME: &'static str = "multiedit";
    const ABOUT: &'static str = include_str!("multiedit.txt");
    const FOREIGN: ForeignParameters = foreign::MULTIEDIT;
    const GROUP: &'static str = "edit";
    const PROPERTIES: ToolProperties = ToolProperties::CHANGES_FILES;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let replacement = |edit: EditArgs| {
            let EditArgs { file_path: path, old_string: old, new_string: new, replace_all: all } =
                edit;
            Replacement { path, old, new, all }
        };
        let request = EditRequest {
            key: Self::NAME,
            path: &args.file_path,
            replacements: args.edits.into_iter().map(replacement).collect(),
            order: EditOrder::Sequential,
        };
        edit(ctx, self.settings, request).await.map(answer).map_err(error)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn bytes_outside_the_edits_stay_unchanged() {
        check(
            "--- reply once\n--- file a.rs\nfn a() {\r\n    1\n}\n--- call edit {\"filePath\": \"a.rs\", \"oldString\": \"    1\", \"newString\": \"    2\"}\n",
            expect![[r#"
                edit a.rs [lasting approval: exactly this]
                --- a.rs
                +++ a.rs
                @@ -1,3 +1,3 @@
                 fn a() {
                -    1
                +    2
                 }
                -> Yes(Once)
                == a.rs
                Edited a.rs: 1 line added, 1 removed.

                --- a.rs
                +++ a.rs
                @@ -1,3 +1,3 @@
                 fn a() {
                -    1
                +    2
                 }
                >> a.rs
                fn a() {␍
                    2
                }
            "#]],
        );
    }

    #[test]
    fn dollars_and_backslashes_are_literal() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
price
--- call edit {"filePath": "a.txt", "oldString": "price", "newString": "$1 $& \\1 \\n"}
"#,
            expect![[r#"
                == a.txt
                Edited a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -price
                +$1 $& \1 \n
                >> a.txt
                $1 $& \1 \n
            "#]],
        );
    }

    #[test]
    fn a_failed_match_shows_the_closest_lines() {
        check(
            r#"
--- rule edit * allow
--- file a.py
def area(w, h):
    return w * h * 2
--- call edit {"filePath": "a.py", "oldString": "    return w * h * 3", "newString": "    return 0"}
--- call edit {"filePath": "a.py", "oldString": "import os", "newString": "import sys"}
--- call edit {"filePath": "a.py", "oldString": "h", "newString": "x"}
--- call edit {"filePath": "b.py", "oldString": "h", "newString": "x"}
--- call edit {"filePath": "a.py", "oldString": "", "newString": "x"}
--- call edit {"filePath": "a.py", "oldString": "h", "newString": "h"}
"#,
            expect![[r#"
                !! Stale
                oldString was not found in a.py. Nothing was written. The closest match is line 2: a value has changed.
                First difference at line 2, column 20 (line 1 of oldString): the file has "2" (U+0032), oldString has "3" (U+0033).
                00002|     return w * h * 2
                Quote these lines exactly, without the line numbers, and call again.
                !! Stale
                oldString was not found in a.py, and nothing in the file is similar. Nothing was written.
                Read the file: it may be the wrong one, or it may have changed.
                !! Stale
                oldString occurs 2 times in a.py, at lines 1, 2. Nothing was written.
                Quote more lines around the one you mean, or set replaceAll to replace every occurrence.
                !! NotFound
                b.py does not exist.
                Did you mean a.py?
                !! InvalidArgs
                a.py already exists; an empty oldString is only for new files. Nothing was written.
                Quote the text to replace, or use write for the whole file.
                !! InvalidArgs
                oldString and newString are identical. Nothing was written.
            "#]],
        );
    }

    #[test]
    fn inexact_matches_are_reported() {
        check(
            r#"
--- rule edit * allow
--- file a.go
	if x {
		y()
	}
--- call edit {"filePath": "a.go", "oldString": "if x {\n    y()\n}", "newString": "if x {\n    z()\n}"}
"#,
            expect![[r#"
                == a.go
                Edited a.go: 1 line added, 1 removed.
                The quoted text differed from the file in indentation; the replaced lines keep the file's form.

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

    #[test]
    fn edits_apply_in_order_all_or_none() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
two
--- call multiedit {"filePath": "a.txt", "edits": [{"oldString": "one", "newString": "1"}, {"oldString": "1\ntwo", "newString": "1\n2"}]}
--- call multiedit {"filePath": "a.txt", "edits": [{"oldString": "1", "newString": "one"}, {"oldString": "three", "newString": "3"}]}
--- call multiedit {"filePath": "a.txt", "edits": [{"filePath": "b.txt", "oldString": "1", "newString": "one"}]}
--- call multiedit {"filePath": "new.txt", "edits": [{"oldString": "", "newString": "x\n"}, {"oldString": "x", "newString": "y"}]}
"#,
            expect![[r#"
                == a.txt
                Edited a.txt: 2 lines added, 2 removed.
                Edit 1: 1 occurrence replaced.
                Edit 2: 1 occurrence replaced.

                --- a.txt
                +++ a.txt
                @@ -1,2 +1,2 @@
                -one
                -two
                +1
                +2
                >> a.txt
                1
                2
                !! Stale
                Edit 2 of 2: oldString was not found in a.txt, and nothing in the file is similar. Nothing was written.
                Read the file: it may be the wrong one, or it may have changed.
                !! InvalidArgs
                Edit 1 names b.txt, but the call is for a.txt. Nothing was written.
                Make one call per file.
                == new.txt
                Created new.txt: 1 line added, 0 removed.

                --- /dev/null
                +++ new.txt
                @@ -0,0 +1 @@
                +y
                >> new.txt
                y
            "#]],
        );
    }

    #[test]
    fn replace_all_replaces_every_occurrence() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
a b
a
--- call edit {"filePath": "a.txt", "oldString": "a", "newString": "c", "replaceAll": true}
"#,
            expect![[r#"
                == a.txt
                Edited a.txt: 2 lines added, 2 removed.
                2 occurrences replaced.

                --- a.txt
                +++ a.txt
                @@ -1,2 +1,2 @@
                -a b
                -a
                +c b
                +c
                >> a.txt
                c b
                c
            "#]],
        );
    }

    #[test]
    fn a_file_changed_since_reading_can_be_edited_if_the_quote_matches() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
two
--- call read {"filePath": "a.txt"}
--- write a.txt
zero
one
two
--- call edit {"filePath": "a.txt", "oldString": "two", "newString": "2"}
"#,
            expect![[r#"
                == a.txt
                <file>
                00001| one
                00002| two

                (End of file, 2 lines)
                </file>
                == a.txt
                Edited a.txt: 1 line added, 1 removed.
                a.txt had changed since you read it; oldString was still there.

                --- a.txt
                +++ a.txt
                @@ -1,3 +1,3 @@
                 zero
                 one
                -two
                +2
                >> a.txt
                zero
                one
                2
            "#]],
        );
    }

    #[test]
    fn introduced_syntax_errors_are_reported() {
        check(
            r#"
--- rule edit * allow
--- file a.rs
fn a() {
    b();
}
--- call edit {"filePath": "a.rs", "oldString": "    b();\n}", "newString": "    c();"}
--- call edit {"filePath": "a.rs", "oldString": "    c();", "newString": "    c();\n}"}
"#,
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

                This change introduced syntax errors:
                - a.rs:2: missing }
                >> a.rs
                fn a() {
                    c();
                == a.rs
                Edited a.rs: 1 line added, 0 removed.

                --- a.rs
                +++ a.rs
                @@ -1,2 +1,3 @@
                 fn a() {
                     c();
                +}
                >> a.rs
                fn a() {
                    c();
                }
            "#]],
        );
    }

    #[test]
    fn a_rejected_edit_changes_nothing() {
        check(
            r#"
--- reply no: keep it
--- file a.txt
one
--- call edit {"filePath": "a.txt", "oldString": "one", "newString": "two"}
"#,
            expect![[r#"
                edit a.txt [lasting approval: exactly this]
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +two
                -> No { note: Some("keep it") }
                !! Denied
                The user rejected this call: keep it
            "#]],
        );
    }
}

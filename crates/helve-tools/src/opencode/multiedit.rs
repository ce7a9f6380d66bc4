//! `multiedit`: several replacements in one file, all or none.

use helve_core::{Tool, ToolContext, ToolError, ToolOutput, Traits};
use schemars::JsonSchema;
use serde::Deserialize;

use super::edit::{error, said};
use crate::EditSettings;
use crate::ops::edit::{EditOrder, EditRequest, Replacement, edit};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The file to change
    #[schemars(length(min = 1))]
    file_path: String,
    /// What to replace, in order
    #[schemars(length(min = 1, max = 500))]
    edits: Vec<EditArgs>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct EditArgs {
    /// The same file, if it is named at all
    file_path: Option<String>,
    /// The text to replace
    old_string: String,
    /// The text to put in its place
    new_string: String,
    /// Replace every place instead of the only one
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
    const GROUP: &'static str = "edit";
    const TRAITS: Traits = Traits::MUTATES;

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
        edit(ctx, self.settings, request).await.map(said).map_err(error)
    }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn one_place_is_replaced_and_the_rest_keeps_its_bytes() {
        check(
            "--- reply once\n--- file a.rs\nfn a() {\r\n    1\n}\n--- call edit {\"filePath\": \"a.rs\", \"oldString\": \"    1\", \"newString\": \"    2\"}\n",
            expect![[r#"
                edit a.rs [lasting: this]
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
    fn dollars_and_backslashes_are_what_they_are() {
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
    fn what_cannot_be_found_shows_the_nearest_place() {
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
                oldString is not in a.py. Nothing was written. The nearest place is line 2: a value is another one now.
                They part at line 2, column 20 (line 1 of oldString): the file has "2" (U+0032), oldString has "3" (U+0033).
                00002|     return w * h * 2
                Quote these lines as they stand, without their numbers, and call again.
                !! Stale
                oldString is not in a.py, and nothing in it is similar. Nothing was written.
                Read the file; it may be another one, or have changed.
                !! Stale
                oldString is in a.py 2 times, at lines 1, 2. Nothing was written.
                Quote more lines around the one you mean, or set replaceAll to change all of them.
                !! NotFound
                b.py does not exist.
                Did you mean a.py?
                !! InvalidArgs
                a.py exists, and an empty oldString creates a new file. Nothing was written.
                Quote what is to be replaced, or use write for the whole file.
                !! InvalidArgs
                oldString and newString are the same. Nothing was written.
            "#]],
        );
    }

    #[test]
    fn a_lenient_match_is_said() {
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
                The quotation differed from the file in indentation; the file's own form was kept.

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
    fn several_edits_are_made_in_order_or_not_at_all() {
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
                Edit 1: 1 place replaced.
                Edit 2: 1 place replaced.

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
                Edit 2 of 2: oldString is not in a.txt, and nothing in it is similar. Nothing was written.
                Read the file; it may be another one, or have changed.
                !! InvalidArgs
                Edit 1 names b.txt, and the call is about a.txt. Nothing was written.
                Make one call for each file.
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
    fn every_place_is_replaced_when_that_is_asked_for() {
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
                2 places replaced.

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
    fn a_file_that_moved_on_is_edited_where_the_quotation_still_stands() {
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
                a.txt had changed since you read it; the quoted text was still there.

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
    fn faults_of_syntax_that_an_edit_brought_in_are_told() {
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

                This change brought in faults of syntax:
                - a.rs:2: } is missing
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
    fn a_no_changes_nothing() {
        check(
            r#"
--- reply no: keep it
--- file a.txt
one
--- call edit {"filePath": "a.txt", "oldString": "one", "newString": "two"}
"#,
            expect![[r#"
                edit a.txt [lasting: this]
                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +two
                -> No { word: Some("keep it") }
                !! Denied
                The user said no to this call: keep it
            "#]],
        );
    }
}

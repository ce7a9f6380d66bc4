//! Patches that delete or move a symbolic link act on the link, not on what it leads to.

use std::sync::Arc;

use expect_test::{Expect, expect};
use helve_core::NoMedia;

use super::super::{DIALECT, tools};

const FILES: &str = "\
--- rule edit * allow
--- file real.txt
one
--- file folder/a.txt
a
--- link link -> real.txt
--- link dangling -> nowhere
--- link to-folder -> folder
";

fn check(patches: &[&str], undo: bool, expected: Expect) {
    let mut fixture = FILES.to_string();
    for patch in patches {
        let text = format!("*** Begin Patch\n{patch}\n*** End Patch");
        let arguments = serde_json::json!({"patchText": text});
        fixture.push_str(&format!("--- call apply_patch {arguments}\n"));
    }
    if undo {
        fixture.push_str("--- call undo\n");
    }
    let mut all = tools(Arc::new(NoMedia));
    all.push(crate::undo::tool(crate::EditSettings::DEFAULT));
    expected.assert_eq(&helve_testkit::run(&DIALECT, all, &fixture));
}

#[test]
fn deleting_a_link_keeps_its_target() {
    check(
        &["*** Delete File: link", "*** Delete File: dangling", "*** Delete File: to-folder"],
        true,
        expect![[r#"
            == 1 file
            Applied the patch: 0 lines added, 1 removed.
            D link

            --- link
            +++ /dev/null
            @@ -1 +0,0 @@
            -real.txt
            \ No newline at end of file
            >> link is gone
            == 1 file
            Applied the patch: 0 lines added, 1 removed.
            D dangling

            --- dangling
            +++ /dev/null
            @@ -1 +0,0 @@
            -nowhere
            \ No newline at end of file
            >> dangling is gone
            == 1 file
            Applied the patch: 0 lines added, 1 removed.
            D to-folder

            --- to-folder
            +++ /dev/null
            @@ -1 +0,0 @@
            -folder
            \ No newline at end of file
            >> to-folder is gone
            == undo
            Undid the apply_patch of to-folder (call_3): 1 line added, 0 removed.

            --- /dev/null
            +++ to-folder
            @@ -0,0 +1 @@
            +folder
            \ No newline at end of file
            >> to-folder -> folder
        "#]],
    );
}

#[test]
fn moving_a_link_keeps_its_target() {
    check(
        &[
            "*** Update File: link\n*** Move to: renamed",
            "*** Update File: dangling\n*** Move to: sub/dangling",
            "*** Update File: renamed\n*** Move to: again\n@@\n-one\n+two",
        ],
        true,
        expect![[r#"
            == 1 file
            Applied the patch: 0 lines added, 0 removed.
            R link -> renamed
            >> link is gone
            >> renamed -> real.txt
            !! InvalidArgs
            dangling is a symbolic link to nowhere, which leads elsewhere from the folder of sub/dangling. Nothing was written.
            Use a command to make sub/dangling a link to ../nowhere and to remove dangling.
            == 2 files
            Applied the patch: 1 line added, 1 removed.
            R renamed -> again
            M real.txt

            --- real.txt
            +++ real.txt
            @@ -1 +1 @@
            -one
            +two
            >> again -> real.txt
            >> real.txt
            two
            >> renamed is gone
            == undo
            Undid the apply_patch of renamed, again, real.txt (call_3): 2 lines added, 2 removed.

            --- /dev/null
            +++ renamed
            @@ -0,0 +1 @@
            +real.txt
            \ No newline at end of file

            --- again
            +++ /dev/null
            @@ -1 +0,0 @@
            -real.txt
            \ No newline at end of file

            --- real.txt
            +++ real.txt
            @@ -1 +1 @@
            -two
            +one
            >> again is gone
            >> real.txt
            one
            >> renamed -> real.txt
        "#]],
    );
}

#[test]
fn other_changes_follow_the_link() {
    check(
        &["*** Update File: link\n@@\n-one\n+two", "*** Update File: link\n*** Move to: real.txt"],
        false,
        expect![[r#"
            == 1 file
            Applied the patch: 1 line added, 1 removed.
            M real.txt

            --- real.txt
            +++ real.txt
            @@ -1 +1 @@
            -one
            +two
            >> real.txt
            two
            !! Stale
            link cannot be moved to real.txt, because real.txt exists. Nothing was written.
            Delete real.txt in the same patch before the move if it is to be replaced, or choose another path.
        "#]],
    );
}

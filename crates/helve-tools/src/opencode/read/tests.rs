//! Tests of `read` on files in memory.

mod formats;

use expect_test::expect;

use crate::opencode::check;

#[test]
fn a_file_is_found_in_another_spelling_of_its_name() {
    check(
        "
--- rule edit * allow
--- file caf\u{e9}/a\u{a0}b.txt
one
--- file x\u{a0}y
--- file x\u{2009}y
--- call read {\"filePath\": \"cafe\u{301}/a b.txt\"}
--- call edit {\"filePath\": \"cafe\u{301}/a b.txt\", \"oldString\": \"one\", \"newString\": \"two\"}
--- call multiedit {\"filePath\": \"caf\u{e9}/a b.txt\", \"edits\": [{\"filePath\": \"caf\u{e9}/a b.txt\", \"oldString\": \"two\", \"newString\": \"three\"}]}
--- call read {\"filePath\": \"cafe/a b.txt\"}
--- call read {\"filePath\": \"x y\"}
--- call edit {\"filePath\": \"cafe\u{301}/a b.txt\", \"oldString\": \"\", \"newString\": \"two\"}
--- call write {\"filePath\": \"cafe\u{301}/new.txt\", \"content\": \"two\"}
--- call apply_patch {\"patchText\": \"*** Begin Patch\\n*** Add File: cafe\u{301}/deep/new.txt\\n+two\\n*** End Patch\"}
",
        expect![[r#"
            == café/"a\u{a0}b.txt"
            <file>
            00001| one

            (End of file, 1 line)
            </file>
            (There is no café/a b.txt. The only name that looks the same is café/"a\u{a0}b.txt"; it differs in the kind of spaces or quotes, or in how accents are encoded.)
            == café/"a\u{a0}b.txt"
            Edited café/"a\u{a0}b.txt": 1 line added, 1 removed.
            There is no café/a b.txt. The only name that looks the same is café/"a\u{a0}b.txt"; it differs in the kind of spaces or quotes, or in how accents are encoded.

            --- café/"a\u{a0}b.txt"
            +++ café/"a\u{a0}b.txt"
            @@ -1 +1 @@
            -one
            +two
            >> café/a b.txt
            two
            == café/"a\u{a0}b.txt"
            Edited café/"a\u{a0}b.txt": 1 line added, 1 removed.
            There is no café/a b.txt. The only name that looks the same is café/"a\u{a0}b.txt"; it differs in the kind of spaces or quotes, or in how accents are encoded.

            --- café/"a\u{a0}b.txt"
            +++ café/"a\u{a0}b.txt"
            @@ -1 +1 @@
            -two
            +three
            >> café/a b.txt
            three
            !! NotFound
            cafe/a b.txt does not exist.
            !! NotFound
            x y does not exist.
            Did you mean "x\u{a0}y"?
            !! InvalidArgs
            café/a b.txt would create a folder that looks like an existing one but has other characters. Nothing was written.
            Use the path café/a b.txt, or another name for a new folder.
            !! InvalidArgs
            café/new.txt would create a folder that looks like an existing one but has other characters. Nothing was written.
            Use the path café/new.txt, or another name for a new folder.
            !! InvalidArgs
            café/deep/new.txt would create a folder that looks like an existing one but has other characters. Nothing was written.
            Use the path café/deep/new.txt, or another name for a new folder.
        "#]],
    );
}

#[test]
fn rules_hold_for_other_spellings() {
    check(
        "
--- rule read a\u{a0}b.txt deny
--- rule read c?d deny
--- file a\u{a0}b.txt
--- file c\u{a0}d
--- call read {\"filePath\": \"a b.txt\"}
--- call read {\"filePath\": \"c d\"}
",
        expect![[r#"
            !! Denied
            A rule forbids this: read a\u{a0}b.txt (rule read "a\u{a0}b.txt": deny, set by the program). It cannot be approved.
            Continue without it, or tell the user which rule blocks it.
            !! Denied
            A rule forbids this: read c d (rule read "c?d": deny, set by the program). It cannot be approved.
            Continue without it, or tell the user which rule blocks it.
        "#]],
    );
}

#[test]
fn a_negative_offset_counts_from_the_end() {
    check(
        r#"
--- file a.txt
1
2
3
4
--- file d/x
--- file d/y
--- call read {"filePath": "a.txt", "offset": -2}
--- call read {"filePath": "a.txt", "offset": -9, "limit": 1}
--- call read {"filePath": "d", "offset": -1}
"#,
        expect![[r#"
            == a.txt
            <file>
            00003| 3
            00004| 4

            (End of file, 4 lines)
            </file>
            == a.txt
            <file>
            00001| 1

            (Showing lines 1-1 of 4. Use offset=2 to continue.)
            </file>
            == d
            <folder>
            y

            (2 entries)
            </folder>
        "#]],
    );
}

#[test]
fn lines_are_numbered_from_one() {
    check(
        "--- file a.txt\none\n\ttwo\n--- call read {\"filePath\": \"a.txt\"}\n",
        expect![[r#"
            == a.txt
            <file>
            00001| one
            00002| 	two

            (End of file, 2 lines)
            </file>
        "#]],
    );
}

#[test]
fn a_window_says_how_to_continue() {
    check(
        r#"
--- file a.txt
1
2
3
4
--- call read {"filePath": "a.txt", "offset": 2, "limit": "2"}
--- call read {"filePath": "a.txt", "offset": 0, "limit": 1}
--- call read {"filePath": "a.txt", "offset": 5}
"#,
        expect![[r#"
            == a.txt
            <file>
            00002| 2
            00003| 3

            (Showing lines 2-3 of 4. Use offset=4 to continue.)
            </file>
            == a.txt
            <file>
            00001| 1

            (Showing lines 1-1 of 4. Use offset=2 to continue.)
            </file>
            !! InvalidArgs
            a.txt has 4 lines; there is no line 5.
            Use an offset of at most 4.
        "#]],
    );
}

#[test]
fn a_folder_is_listed_by_name() {
    check(
        r#"
--- file src/b.rs
--- file src/a/x.rs
--- link src/dead -> nowhere
--- call read {"filePath": "src"}
--- call read {"filePath": "src", "limit": 1}
"#,
        expect![[r#"
            == src
            <folder>
            a/
            b.rs
            dead

            (3 entries)
            </folder>
            == src
            <folder>
            a/

            (1-1 of 3 entries. Use offset=2 to continue.)
            </folder>
        "#]],
    );
}

#[test]
fn an_empty_file_is_not_an_error() {
    check(
        "--- file e\n--- call read {\"filePath\": \"e\"}\n",
        expect![[r#"
            == e
            <file>

            (End of file, 0 lines)
            </file>
        "#]],
    );
}

#[test]
fn missing_files_get_suggestions() {
    check(
        r#"
--- file src/main.rs
--- file src/mian.py
--- call read {"filePath": "src/mian.rs"}
--- call read {"filePath": "zzz"}
"#,
        expect![[r#"
            !! NotFound
            src/mian.rs does not exist.
            Did you mean src/main.rs, src/mian.py?
            !! NotFound
            zzz does not exist.
        "#]],
    );
}

#[test]
fn binary_special_and_unreadable_files_are_refused() {
    check(
        "--- file a.bin\na\0b\n--- fifo pipe\n--- unreadable secret\n--- call read {\"filePath\": \"a.bin\"}\n--- call read {\"filePath\": \"pipe\"}\n--- call read {\"filePath\": \"secret\"}\n",
        expect![[r#"
            !! Failed
            a.bin is not text but a binary file (4 bytes).
            Use a tool that understands its format.
            !! Failed
            pipe is a FIFO, not a regular file. Reading it could block forever.
            Name a regular file.
            !! Failed
            secret cannot be opened: the system denies access.
            Ask the user to change the permissions of the file, or continue without the file.
        "#]],
    );
}

#[test]
fn secrets_and_outside_files_are_asked_about_once() {
    check(
        r#"
--- file .env
TOKEN=1
--- file /home/u/.ssh/id_rsa
KEY
--- reply once
--- reply session
--- call read {"filePath": ".env"}
--- call read {"filePath": "~/.ssh/id_rsa"}
--- call read {"filePath": "/home/u/.ssh/id_rsa", "limit": 1}
--- call read {"filePath": ".env"}
"#,
        expect![[r#"
            read .env [lasting approval: exactly this]
            -> Yes(Once)
            == .env
            <file>
            00001| TOKEN=1

            (End of file, 1 line)
            </file>
            external_directory /home/u/.ssh/* [lasting approval: /home/u/.ssh/*]
            read /home/u/.ssh/id_rsa [lasting approval: exactly this]
            -> Yes(Session)
            == /home/u/.ssh/id_rsa
            <file>
            00001| KEY

            (End of file, 1 line)
            </file>
            == /home/u/.ssh/id_rsa
            <file>
            00001| KEY

            (End of file, 1 line)
            </file>
            read .env [lasting approval: exactly this]
            -> Unanswered
            !! Unanswered
            This needs permission, and nobody can be asked here: read .env (built-in rule read "*.env": ask).
            The user can allow it with --allow 'read:.env', or {"permission": {"read": {".env": "allow"}}} in their helve.json. --yes approves every such request.
        "#]],
    );
}

#[test]
fn links_are_judged_by_target_and_by_name() {
    check(
        r#"
--- file /etc/secret
S
--- file safe.txt
x
--- link inside.txt -> /etc/secret
--- link .env -> safe.txt
--- call read {"filePath": "inside.txt"}
--- call read {"filePath": ".env"}
"#,
        expect![[r#"
            external_directory /etc/* [lasting approval: /etc/*]
            read /etc/secret = inside.txt [lasting approval: exactly this]
            -> Unanswered
            !! Unanswered
            This needs permission, and nobody can be asked here: external_directory /etc/* (it is outside the folder, and no rule allows it).
            The user can allow it with --allow 'external_directory:/etc/*', or {"permission": {"external_directory": {"/etc/*": "allow"}}} in their helve.json. --yes approves every such request.
            read safe.txt = .env [lasting approval: exactly this]
            -> Unanswered
            !! Unanswered
            This needs permission, and nobody can be asked here: read safe.txt (built-in rule read "*.env": ask).
            The user can allow it with --allow 'read:safe.txt' --allow 'read:.env', or {"permission": {"read": {"safe.txt": "allow", ".env": "allow"}}} in their helve.json. --yes approves every such request.
        "#]],
    );
}

#[test]
fn denials_name_the_rule() {
    check(
        r#"
--- rule read secrets/* deny
--- file secrets/a
x
--- call read {"filePath": "secrets/../secrets/a"}
--- call read {"filePath": "/proc/self/environ"}
"#,
        expect![[r#"
            !! Denied
            A rule forbids this: read secrets/a (rule read "secrets/*": deny, set by the program). It cannot be approved.
            Continue without it, or tell the user which rule blocks it.
            !! Denied
            A rule forbids this: read /proc/self/environ (built-in rule read "/proc/*/environ": deny). It cannot be approved.
            Continue without it, or tell the user which rule blocks it.
        "#]],
    );
}

#[test]
fn all_argument_problems_are_reported_at_once() {
    check(
        r#"
--- call read {"file_path": "a", "limit": "many", "offset": -1}
--- call read {"filePath": "a
--- call read [1]
--- file a
x
--- call read {"filePath": "a", "colour": true}
"#,
        expect![[r#"
            !! InvalidArgs
            Invalid arguments for read:
            - limit: expected an integer, found the string "many"
            Correct the arguments and call again.
            !! InvalidArgs
            The arguments of read are cut off at line 1, column 15: the JSON is incomplete. Nothing was done.
            Send the complete call again; if it was too long, split it.
            !! InvalidArgs
            Invalid arguments for read:
            - the arguments: expected an object, found an array of 1
            Correct the arguments and call again.
            !! InvalidArgs
            read has no parameter colour. Nothing was done.
            Call it again with its own parameters only: filePath, offset, limit, furtherPaths.
        "#]],
    );
}

#[test]
fn several_files_are_read_in_one_call() {
    check(
        r#"
--- file a.txt
one
--- file b.txt
two
--- file .env
KEY=1
--- call read {"filePath": "a.txt", "furtherPaths": ["missing.txt", "b.txt"]}
--- call read {"paths": ["a.txt", "b.txt"], "limit": 1, "offset": 1}
--- call read {"file_paths": "[\"b.txt\"]"}
--- call read {"filePath": "no.txt", "furtherPaths": ["neither.txt"]}
--- call read {"filePath": "a.txt", "furtherPaths": [".env"]}
--- call read {"filePath": "a.txt", "paths": ["b.txt"]}
"#,
        expect![[r#"
            == 3 files
            a.txt:
            <file>
            00001| one

            (End of file, 1 line)
            </file>

            missing.txt:
            (Not read: missing.txt does not exist.)

            b.txt:
            <file>
            00001| two

            (End of file, 1 line)
            </file>
            == 2 files
            a.txt:
            <file>
            00001| one

            (End of file, 1 line)
            </file>

            b.txt:
            <file>
            00001| two

            (End of file, 1 line)
            </file>
            == b.txt
            <file>
            00001| two

            (End of file, 1 line)
            </file>
            !! NotFound
            no.txt:
            (Not read: no.txt does not exist. Did you mean a.txt, b.txt?)

            neither.txt:
            (Not read: neither.txt does not exist.)
            read a.txt [lasting approval: exactly this]
            read .env [lasting approval: exactly this]
            -> Unanswered
            !! Unanswered
            This needs permission, and nobody can be asked here: read .env (built-in rule read "*.env": ask).
            The user can allow it with --allow 'read:.env', or {"permission": {"read": {".env": "allow"}}} in their helve.json. --yes approves every such request.
            !! InvalidArgs
            Give paths or filePath, not both.
        "#]],
    );
}

/// A long file leaves the others their share, and short ones leave theirs to those after them.
#[test]
fn several_files_share_the_lines() {
    let long: String = (0..3000).map(|n| format!("{n}\n")).collect();
    let text = format!(
        "\n--- file long.txt\n{long}--- file short.txt\none\n--- call read {{\"filePath\": \"long.txt\", \"furtherPaths\": [\"short.txt\"]}}\n--- call read {{\"filePath\": \"short.txt\", \"furtherPaths\": [\"long.txt\"]}}\n"
    );
    let tools = crate::opencode::tools(std::sync::Arc::new(helve_core::NoMedia));
    let answers = helve_testkit::run(&crate::opencode::DIALECT, tools, &text);
    assert!(answers.contains("Showing lines 1-1000 of 3000"), "{answers}");
    let limited = text.replace("[\"short.txt\"]", "[\"long.txt\"], \"limit\": 9");
    let tools = crate::opencode::tools(std::sync::Arc::new(helve_core::NoMedia));
    let limited = helve_testkit::run(&crate::opencode::DIALECT, tools, &limited);
    assert_eq!(limited.matches("Showing lines 1-9 of 3000").count(), 2, "{limited}");
    assert!(answers.contains("Showing lines 1-1999 of 3000"), "{answers}");
}

//! Arguments of other agents' tools that mean the same here.

use helve_core::ForeignParameters;
use serde_json::{Map, Value, json};

const NONE: ForeignParameters = ForeignParameters::NONE;

pub(super) const READ: ForeignParameters = ForeignParameters {
    aliases: &[
        ("path", "filePath"),
        ("file", "filePath"),
        ("filename", "filePath"),
        ("absolute_path", "filePath"),
        ("target_file", "filePath"),
        ("start_line", "offset"),
        ("startLine", "offset"),
    ],
    ignored: &["should_read_entire_file"],
    convert: convert_read,
    ..NONE
};

pub(super) const WRITE: ForeignParameters = ForeignParameters {
    aliases: &[
        ("path", "filePath"),
        ("file", "filePath"),
        ("filename", "filePath"),
        ("absolute_path", "filePath"),
        ("target_file", "filePath"),
        ("contents", "content"),
        ("file_text", "content"),
    ],
    ..NONE
};

pub(super) const EDIT: ForeignParameters = ForeignParameters {
    aliases: &[
        ("path", "filePath"),
        ("file", "filePath"),
        ("filename", "filePath"),
        ("absolute_path", "filePath"),
        ("target_file", "filePath"),
        ("old_str", "oldString"),
        ("old_text", "oldString"),
        ("oldText", "oldString"),
        ("new_str", "newString"),
        ("new_text", "newString"),
        ("newText", "newString"),
        ("allow_multiple", "replaceAll"),
    ],
    convert: drop_expected_single,
    ..NONE
};

pub(super) const MULTIEDIT: ForeignParameters = ForeignParameters {
    aliases: &[
        ("path", "filePath"),
        ("file", "filePath"),
        ("absolute_path", "filePath"),
        ("edits[].path", "filePath"),
        ("edits[].old_str", "oldString"),
        ("edits[].old_text", "oldString"),
        ("edits[].oldText", "oldString"),
        ("edits[].new_str", "newString"),
        ("edits[].new_text", "newString"),
        ("edits[].newText", "newString"),
    ],
    ..NONE
};

pub(super) const APPLY_PATCH: ForeignParameters =
    ForeignParameters { aliases: &[("patch", "patchText"), ("input", "patchText")], ..NONE };

pub(super) const BASH: ForeignParameters = ForeignParameters {
    aliases: &[
        ("cmd", "command"),
        ("script", "command"),
        ("timeout_ms", "timeout"),
        ("cwd", "workdir"),
        ("working_directory", "workdir"),
        ("working_dir", "workdir"),
        ("directory", "workdir"),
        ("dir_path", "workdir"),
        ("is_background", "run_in_background"),
        ("background", "run_in_background"),
        ("dangerouslyDisableSandbox", "outside_sandbox"),
        ("with_escalated_permissions", "outside_sandbox"),
        ("justification", "description"),
    ],
    ..NONE
};

pub(super) const GLOB: ForeignParameters = ForeignParameters {
    aliases: &[
        ("glob", "pattern"),
        ("glob_pattern", "pattern"),
        ("directory", "path"),
        ("dir_path", "path"),
        ("folder", "path"),
        ("target_directory", "path"),
    ],
    ..NONE
};

pub(super) const LIST: ForeignParameters = ForeignParameters {
    aliases: &[
        ("directory", "path"),
        ("dir_path", "path"),
        ("folder", "path"),
        ("target_directory", "path"),
        ("ignore_globs", "ignore"),
    ],
    ..NONE
};

pub(super) const GREP: ForeignParameters = ForeignParameters {
    aliases: &[
        ("query", "pattern"),
        ("regex", "pattern"),
        ("directory", "path"),
        ("dir_path", "path"),
        ("glob", "include"),
        ("include_pattern", "include"),
        ("file_pattern", "include"),
        ("-i", "ignoreCase"),
        ("case_insensitive", "ignoreCase"),
        ("-A", "after"),
        ("-B", "before"),
        ("-C", "context"),
        ("context_lines", "context"),
        ("-F", "literal"),
        ("fixed_strings", "literal"),
        ("head_limit", "limit"),
        ("max_results", "limit"),
        ("output_mode", "output"),
    ],
    // Line numbers are always shown.
    ignored: &["-n"],
    unlisted: || {
        json!({
            "after": {"type": "integer", "minimum": 0},
            "before": {"type": "integer", "minimum": 0},
            "limit": {"type": "integer", "minimum": 0},
        })
    },
    convert: convert_grep,
    ..NONE
};

pub(super) const TASK: ForeignParameters = ForeignParameters {
    aliases: &[("agent", "subagent_type"), ("agent_type", "subagent_type")],
    ..NONE
};

pub(super) const QUESTION: ForeignParameters =
    ForeignParameters { aliases: &[("questions[].multiSelect", "multiple")], ..NONE };

/// The page is returned whole, so nothing has to be extracted from it.
pub(super) const WEBFETCH: ForeignParameters = ForeignParameters { ignored: &["prompt"], ..NONE };

pub(super) const WEBSEARCH: ForeignParameters =
    ForeignParameters { aliases: &[("search_term", "query"), ("q", "query")], ..NONE };

/// Converts a last line to a number of lines, and `view_range` to both.
/// Takes a list of paths apart: the first one is `filePath`, the others are `furtherPaths`.
fn convert_read(args: &mut Map<String, Value>) -> Result<(), String> {
    for name in ["paths", "filePaths", "file_paths", "files"] {
        let list = match args.get(name) {
            Some(Value::Array(list)) => Some(list.clone()),
            Some(Value::String(text)) if text.trim_start().starts_with('[') => {
                serde_json::from_str(text).ok()
            }
            _ => None,
        };
        let Some(list) = list else { continue };
        if args.contains_key("filePath") || args.contains_key("furtherPaths") {
            return Err(format!("Give {name} or filePath, not both."));
        }
        let mut paths = list.into_iter();
        let Some(first) = paths.next() else { return Err(format!("{name} is empty.")) };
        args.shift_remove(name);
        args.insert("filePath".into(), first);
        let further: Vec<Value> = paths.collect();
        if !further.is_empty() {
            args.insert("furtherPaths".into(), further.into());
        }
        break;
    }
    convert_line_range(args)
}

fn convert_line_range(args: &mut Map<String, Value>) -> Result<(), String> {
    if let Some(Value::Array(range)) = args.get("view_range") {
        let [first, last] = range.as_slice() else {
            return Err(
                "view_range must be a list of two line numbers. Use offset and limit instead."
                    .into(),
            );
        };
        let (first, last) = (first.clone(), last.clone());
        args.shift_remove("view_range");
        args.insert("offset".into(), first);
        if last != json!(-1) {
            args.insert("end_line".into(), last);
        }
    }
    let Some(last) = args.shift_remove("end_line").or_else(|| args.shift_remove("endLine")) else {
        return Ok(());
    };
    let number = |value: &Value| match value {
        Value::String(text) => text.trim().parse().ok(),
        other => other.as_i64(),
    };
    let first = args.get("offset").map_or(Some(1), &number);
    match (first, number(&last)) {
        (Some(first), Some(last))
            if first >= 0 && last >= first.max(1) && !args.contains_key("limit") =>
        {
            args.insert("limit".into(), (last - first.max(1) + 1).into());
            Ok(())
        }
        _ => Err(format!(
            "The last line {last} does not fit the first. Use offset (first line) and limit (number of lines) instead."
        )),
    }
}

/// Removes `expected_replacements: 1`. Without `replaceAll`, an edit makes exactly one replacement anyway.
fn drop_expected_single(args: &mut Map<String, Value>) -> Result<(), String> {
    if args.get("expected_replacements") == Some(&json!(1))
        && args.get("replaceAll") != Some(&json!(true))
    {
        args.shift_remove("expected_replacements");
    }
    Ok(())
}

fn convert_grep(args: &mut Map<String, Value>) -> Result<(), String> {
    if let Some(Value::String(mode)) = args.get_mut("output") {
        match mode.as_str() {
            "files_with_matches" => *mode = "files".into(),
            "count" => *mode = "counts".into(),
            _ => {}
        }
    }
    if let Some(Value::Bool(is_sensitive)) = args.get("case_sensitive") {
        let ignores_case = !is_sensitive;
        if args.get("ignoreCase").is_some_and(|value| *value != json!(ignores_case)) {
            return Err("case_sensitive contradicts ignoreCase. Send only ignoreCase.".into());
        }
        args.shift_remove("case_sensitive");
        args.insert("ignoreCase".into(), ignores_case.into());
    }
    convert_file_type(args)
}

/// Converts ripgrep's file types to a glob.
fn convert_file_type(args: &mut Map<String, Value>) -> Result<(), String> {
    let Some(Value::String(name)) = args.get("type").filter(|name| **name != json!("")) else {
        return Ok(());
    };
    let Some((_, glob)) =
        FILE_TYPES.iter().find(|(names, _)| names.split(' ').any(|it| it == name))
    else {
        return Err(format!(
            "grep does not know the file type \"{name}\". Nothing was searched.\nUse include with a glob, such as \"*.{name}\"."
        ));
    };
    if args.get("include").is_some_and(|include| !include.is_null() && *include != json!("")) {
        return Err(format!(
            "grep takes a file type or a glob, not both. Nothing was searched.\nUse include alone; the type \"{name}\" is \"{glob}\"."
        ));
    }
    args.insert("include".into(), (*glob).into());
    args.shift_remove("type");
    Ok(())
}

/// Common file types as ripgrep defines them, by their names.
const FILE_TYPES: &[(&str, &str)] = &[
    ("c", "*.{[chH],[chH].in,cats}"),
    ("cpp", "*.{[ChH],cc,[ch]pp,[ch]xx,hh,inl,[ChH].in,cc.in,[ch]pp.in,[ch]xx.in,hh.in}"),
    ("cs csharp", "*.cs"),
    ("css", "*.{css,scss}"),
    ("dart", "*.dart"),
    ("elixir", "*.{ex,eex,exs,heex,leex,livemd}"),
    ("go", "*.go"),
    ("graphql", "*.{graphql,graphqls}"),
    ("haskell", "*.{hs,lhs,cpphs,c2hs,hsc}"),
    ("hs", "*.{hs,lhs}"),
    ("html", "*.{htm,html,ejs}"),
    ("java", "*.{java,jsp,jspx,properties}"),
    ("js", "*.{[cm]js,js,jsx,vue}"),
    ("json", "{*.json,composer.lock,*.sarif}"),
    ("kotlin kt", "*.{kt,kts}"),
    ("lua", "*.lua"),
    ("markdown md", "*.{markdown,md,mdown,mdwn,mdx,mkd,mkdn}"),
    ("php", "*.{php,php3,php4,php5,php7,php8,pht,phtml}"),
    ("protobuf proto", "*.proto"),
    ("py python", "*.{py,pyi}"),
    ("ruby rb", "{*.rb,*.rbw,*.gemspec,config.ru,Gemfile,Rakefile,.irbrc}"),
    ("rust rs", "*.rs"),
    ("scala", "*.{scala,sbt}"),
    ("sql", "*.{sql,psql}"),
    ("svelte", "*.{svelte,svelte.ts}"),
    ("swift", "*.swift"),
    ("toml", "{*.toml,Cargo.lock}"),
    ("ts typescript", "*.{ts,tsx,cts,mts}"),
    ("tsx", "*.tsx"),
    ("vue", "*.vue"),
    ("xml", "*.{xml,xml.dist,dtd,xsl,xslt,xsd,xjb,rng,sch,xhtml}"),
    ("yaml", "*.{yaml,yml}"),
    ("zig", "*.zig"),
];

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    #[test]
    fn names_of_claude_code_and_others_are_understood() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
two
two
--- call read {"file_path": "a.txt", "limit": "1"}
--- call read {"path": "a.txt", "view_range": [2, 2]}
--- call read {"absolute_path": "a.txt", "start_line": 2, "end_line": 3}
--- call edit {"file_path": "a.txt", "old_string": "two", "new_string": "2", "replace_all": true}
--- call edit {"path": "a.txt", "oldText": "one", "newText": "1", "explanation": "shorter"}
--- call multiedit {"file_path": "a.txt", "edits": "[{\"old_string\": \"1\", \"new_string\": \"I\"}]"}
--- call write {"file_path": "b.txt", "contents": "b\n"}
"#,
            expect![[r#"
                == a.txt
                <file>
                00001| one

                (Showing lines 1-1 of 3. Use offset=2 to continue.)
                </file>
                == a.txt
                <file>
                00002| two

                (Showing lines 2-2 of 3. Use offset=3 to continue.)
                </file>
                == a.txt
                <file>
                00002| two
                00003| two

                (End of file, 3 lines)
                </file>
                == a.txt
                Edited a.txt: 2 lines added, 2 removed.
                2 occurrences replaced.

                --- a.txt
                +++ a.txt
                @@ -1,3 +1,3 @@
                 one
                -two
                -two
                +2
                +2
                >> a.txt
                one
                2
                2
                == a.txt
                Edited a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1,3 +1,3 @@
                -one
                +1
                 2
                 2
                >> a.txt
                1
                2
                2
                == a.txt
                Edited a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1,3 +1,3 @@
                -1
                +I
                 2
                 2
                >> a.txt
                I
                2
                2
                == b.txt
                Created b.txt: 1 line added, 0 removed.
                >> b.txt
                b
            "#]],
        );
    }

    #[test]
    fn options_of_grep_change_the_result() {
        check(
            r#"
--- file a.rs
1
Fn x
3
4
--- file a.ts
fn y
--- call grep {"pattern": "fn", "-i": true, "type": "rust", "-A": 1, "-n": true}
--- call grep {"pattern": "fn", "-i": true, "glob": "*.rs", "-B": 1}
--- call grep {"pattern": "fn", "case_sensitive": false, "output_mode": "files_with_matches"}
--- call grep {"pattern": "fn", "-i": "true", "output_mode": "count", "head_limit": 1}
--- call grep {"pattern": "fn", "type": "cobol"}
--- call grep {"pattern": "fn", "type": "rust", "glob": "src/**"}
--- call grep {"pattern": "fn", "-o": true}
--- call grep {"pattern": "fn", "output_mode": "json"}
"#,
            expect![[r#"
                == fn
                Found 1 match

                /w/a.rs:
                  Line 2: Fn x
                  Line 3- 3
                == fn
                Found 1 match

                /w/a.rs:
                  Line 1- 1
                  Line 2: Fn x
                == fn
                Found 2 files

                /w/a.rs
                /w/a.ts
                == fn
                Found 2 matches in 2 files

                /w/a.rs: 1

                (Showing 1 of 2 files, newest first. Narrow path, include or pattern to see others.)
                !! InvalidArgs
                grep does not know the file type "cobol". Nothing was searched.
                Use include with a glob, such as "*.cobol".
                !! InvalidArgs
                grep takes a file type or a glob, not both. Nothing was searched.
                Use include alone; the type "rust" is "*.rs".
                !! InvalidArgs
                grep has no parameter -o. Nothing was done.
                Call it again with its own parameters only: pattern, path, include, literal, ignoreCase, context, multiline, ignored, output.
                !! InvalidArgs
                Invalid arguments for grep:
                - output: expected one of "content", "files", "counts", found the string "json"
                Correct the arguments and call again.
            "#]],
        );
    }

    #[test]
    fn what_is_not_certain_is_refused() {
        check(
            r#"
--- rule edit * allow
--- file a.txt
one
--- call edit {"file_path": "a.txt", "filePath": "b.txt", "oldString": "one", "newString": "1"}
--- call edit {"filePath": "a.txt", "oldString": "one", "newString": "1", "dry_run": true}
--- call edit {"filePath": "a.txt", "oldString": "one", "newString": "1", "expected_replacements": 2}
--- call write {"filePath": "a.txt", "content": "x", "append": true}
--- call read {"filePath": "a.txt", "end_line": 0}
--- call edit {"filePath": "a.txt", "oldString": "one", "newString": "1", "dry_run": false, "expected_replacements": 1}
"#,
            expect![[r#"
                !! InvalidArgs
                edit got file_path and filePath, which are the same parameter, with different values. Nothing was done.
                Send only filePath.
                !! InvalidArgs
                edit has no parameter dry_run. Nothing was done.
                Call it again with its own parameters only: filePath, oldString, newString, replaceAll.
                !! InvalidArgs
                edit has no parameter expected_replacements. Nothing was done.
                Call it again with its own parameters only: filePath, oldString, newString, replaceAll.
                !! InvalidArgs
                write has no parameter append. Nothing was done.
                Call it again with its own parameters only: filePath, content.
                !! InvalidArgs
                The last line 0 does not fit the first. Use offset (first line) and limit (number of lines) instead.
                == a.txt
                Edited a.txt: 1 line added, 1 removed.

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +1
                >> a.txt
                1
            "#]],
        );
    }
}

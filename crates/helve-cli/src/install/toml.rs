//! Appends or removes one table, or sets a flag, in TOML text. The rest stays the same. Does no I/O.

use anyhow::{anyhow, bail};
use toml_edit::{DocumentMut, Item, Value, value};

use super::HelveEntry;
use super::client::starts_helve;

const SECTION: &str = "mcp_servers";
/// Leaves approvals to Helve, which asks by itself. Without it, `codex exec` refuses every tool that may change
/// something.
const APPROVAL_MODE: &str = "approve";
const APPROVAL_KEY: &str = "default_tools_approval_mode";

/// Returns the text with the entry, or `None` if the entry is already there.
pub(super) fn add_entry(text: &str, entry: &HelveEntry) -> anyhow::Result<Option<String>> {
    let mut document = parse(text)?;
    // Another mode is the user's choice.
    let mode = |existing: &Item| existing.get(APPROVAL_KEY)?.as_str().map(str::to_owned);
    let existing = find(&document, &entry.name)?;
    let mode = existing.and_then(mode);
    let text = match existing {
        None => text.to_owned(),
        Some(existing) => {
            let existing = command_of(existing);
            let existing: Vec<&str> = existing.iter().map(String::as_str).collect();
            let wanted = std::iter::once(&entry.program).chain(&entry.args);
            if mode.is_some() && existing.iter().copied().eq(wanted.map(String::as_str)) {
                return Ok(None);
            }
            if !starts_helve(&existing) {
                bail!(
                    "{SECTION}.{} is another server ({}); remove it, or choose another name with --name",
                    entry.name,
                    existing.join(" ")
                );
            }
            remove(&mut document, &entry.name);
            document.to_string()
        }
    };
    Ok(Some(append(&text, &table(entry, mode.as_deref().unwrap_or(APPROVAL_MODE)))))
}

/// Returns the text without the entry, or `None` if it is not there.
pub(super) fn remove_entry(text: &str, name: &str) -> anyhow::Result<Option<String>> {
    let mut document = parse(text)?;
    let Some(existing) = find(&document, name)? else { return Ok(None) };
    let existing = command_of(existing);
    let existing: Vec<&str> = existing.iter().map(String::as_str).collect();
    if !starts_helve(&existing) {
        bail!("{SECTION}.{name} is another server ({}), so it is not removed", existing.join(" "));
    }
    remove(&mut document, name);
    Ok(Some(document.to_string()))
}

pub(super) fn fragment(entry: &HelveEntry) -> String {
    table(entry, APPROVAL_MODE)
}

fn table(entry: &HelveEntry, approval_mode: &str) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let args: Vec<String> = entry.args.iter().map(|arg| text(arg)).collect();
    let name = toml_edit::Key::new(&entry.name);
    format!(
        "[{SECTION}.{name}]\ncommand = {}\nargs = [{}]\n{APPROVAL_KEY} = {}\n",
        text(&entry.program),
        args.join(", "),
        text(approval_mode),
    )
}

/// Returns the flag at a path of a table and a key, if there is one.
pub(super) fn get_flag(text: &str, path: &[&str]) -> anyhow::Result<Option<serde_json::Value>> {
    let (table, key) = table_and_key(path)?;
    let document = parse(text)?;
    let flag = document.get(table).and_then(|table| table.get(key)).and_then(Item::as_bool);
    Ok(flag.map(serde_json::Value::from))
}

/// Returns the text with the flag. A missing table is appended.
pub(super) fn set_flag(text: &str, path: &[&str], flag: bool) -> anyhow::Result<String> {
    let (table, key) = table_and_key(path)?;
    let mut document = parse(text)?;
    match document.get_mut(table) {
        Some(Item::None) | None => Ok(append(text, &format!("[{table}]\n{key} = {flag}\n"))),
        Some(item) => {
            let Some(table) = item.as_table_like_mut() else { bail!("{table} is not a table") };
            table.insert(key, value(flag));
            Ok(document.to_string())
        }
    }
}

/// Returns the text without the key, and without its table if that becomes empty.
pub(super) fn unset(text: &str, path: &[&str]) -> anyhow::Result<String> {
    let (name, key) = table_and_key(path)?;
    let mut document = parse(text)?;
    let Some(table) = document.get_mut(name).and_then(Item::as_table_like_mut) else {
        return Ok(text.into());
    };
    table.remove(key);
    let is_empty = table.is_empty();
    let has_comment = document[name].as_table().is_some_and(|table| {
        let prefix = table.decor().prefix().and_then(|raw| raw.as_str());
        prefix.is_some_and(|text| text.contains('#'))
    });
    if is_empty && !has_comment {
        document.remove(name);
    }
    Ok(document.to_string())
}

fn table_and_key<'a>(path: &[&'a str]) -> anyhow::Result<(&'a str, &'a str)> {
    match path {
        [table, key] => Ok((table, key)),
        _ => bail!("{} is not a key of a table", path.join(".")),
    }
}

/// Appends a table after an empty line.
fn append(text: &str, table: &str) -> String {
    let gap = match text {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    format!("{text}{gap}{table}")
}

fn parse(text: &str) -> anyhow::Result<DocumentMut> {
    text.parse().map_err(|err| anyhow!("the file is not valid TOML: {err}"))
}

fn find<'a>(document: &'a DocumentMut, name: &str) -> anyhow::Result<Option<&'a Item>> {
    match document.get(SECTION) {
        None => Ok(None),
        Some(section) if section.is_table_like() => Ok(section.get(name)),
        Some(_) => bail!("{SECTION} is not a table"),
    }
}

/// Removes a table. Comments above it are the user's and move to the end of the file.
fn remove(document: &mut DocumentMut, name: &str) {
    let Some(section) = document.get_mut(SECTION).and_then(Item::as_table_like_mut) else { return };
    let removed = section.remove(name);
    let prefix = removed.as_ref().and_then(Item::as_table).and_then(|table| table.decor().prefix());
    let comments = prefix.and_then(|raw| raw.as_str()).filter(|text| text.contains('#'));
    // The empty line between the comments and the table was inserted with the table.
    let comments = comments
        .map(|text| text.strip_suffix("\n\n").map_or(text.to_owned(), |text| format!("{text}\n")));
    let is_empty = section.is_empty();
    let table = document.get(SECTION).and_then(Item::as_table);
    if is_empty && table.is_some_and(|table| table.is_implicit()) {
        document.remove(SECTION);
    }
    if let Some(comments) = comments {
        let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing(format!("{comments}{trailing}"));
    }
}

/// Returns the command and its arguments.
fn command_of(entry: &Item) -> Vec<String> {
    let mut command = Vec::new();
    command.extend(entry.get("command").and_then(Item::as_str).map(str::to_owned));
    let args = entry.get("args").and_then(Item::as_array).into_iter().flatten();
    command.extend(args.filter_map(|arg| arg.as_str().map(str::to_owned)));
    command
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn entry() -> HelveEntry {
        HelveEntry { name: "helve".into(), program: "helve".into(), args: vec!["mcp".into()] }
    }

    fn check(text: &str, expected: Expect) {
        let added = add_entry(text, &entry()).unwrap().unwrap();
        expected.assert_eq(&added);
        assert_eq!(add_entry(&added, &entry()).unwrap(), None);
        assert_eq!(remove_entry(&added, "helve").unwrap().unwrap(), text);
    }

    #[test]
    fn a_table_is_appended_and_removed_again() {
        check(
            "",
            expect![[r#"
            [mcp_servers.helve]
            command = "helve"
            args = ["mcp"]
            default_tools_approval_mode = "approve"
        "#]],
        );
        check(
            "model = \"x\" # mine\n\n[mcp_servers.other]\ncommand = 'o'\n# the end\n",
            expect![[r#"
            model = "x" # mine

            [mcp_servers.other]
            command = 'o'
            # the end

            [mcp_servers.helve]
            command = "helve"
            args = ["mcp"]
            default_tools_approval_mode = "approve"
        "#]],
        );
    }

    #[test]
    fn another_approval_mode_is_kept_and_a_missing_one_is_added() {
        let table = "[mcp_servers.helve]\ncommand = \"helve\"\nargs = [\"mcp\"]\n";
        let own = format!("{table}default_tools_approval_mode = \"prompt\"\n");
        assert_eq!(add_entry(&own, &entry()).unwrap(), None);
        let other_level = HelveEntry { args: vec!["--yes".into(), "mcp".into()], ..entry() };
        let changed = add_entry(&own, &other_level).unwrap().unwrap();
        assert_eq!(changed, own.replace("\"mcp\"", "\"--yes\", \"mcp\""));
        assert_eq!(add_entry(table, &entry()).unwrap(), Some(fragment(&entry())));
    }

    #[test]
    fn another_server_is_not_changed() {
        let text = "[mcp_servers.helve]\ncommand = \"rake\"\n";
        assert!(add_entry(text, &entry()).is_err());
        assert!(remove_entry(text, "helve").is_err());
        assert!(add_entry("x = ", &entry()).is_err());
    }

    #[test]
    fn a_flag_is_set_and_removed_again() {
        let path = ["features", "shell_tool"];
        for text in ["", "model = 'x'\n", "[features]\nx = true # mine\n", "# mine\n[a]\nb = 1\n"] {
            let off = set_flag(text, &path, false).unwrap();
            assert_eq!(get_flag(&off, &path).unwrap(), Some(false.into()), "{off}");
            assert_eq!(unset(&off, &path).unwrap(), text);
        }
        assert!(set_flag("features = 1", &path, false).is_err());
    }
}

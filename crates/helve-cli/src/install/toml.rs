//! One table put at the end of, or taken out of, a TOML text; the rest stays as it is. Pure.

use anyhow::{anyhow, bail};
use toml_edit::{DocumentMut, Item, Value};

use super::Entry;
use super::client::starts_helve;

const SECTION: &str = "mcp_servers";

/// The text with the entry; `None` if it is there as it should be.
pub(super) fn with(text: &str, entry: &Entry) -> anyhow::Result<Option<String>> {
    let mut document = parse(text)?;
    let text = match find(&document, &entry.name)? {
        None => text.to_owned(),
        Some(there) => {
            let there = words(there);
            let there: Vec<&str> = there.iter().map(String::as_str).collect();
            if there.iter().copied().eq(std::iter::once(entry.program.as_str())
                .chain(entry.args.iter().map(String::as_str)))
            {
                return Ok(None);
            }
            if !starts_helve(&there) {
                bail!(
                    "{SECTION}.{} is another server ({}); take it out yourself, or choose a name with --name",
                    entry.name,
                    there.join(" ")
                );
            }
            remove(&mut document, &entry.name);
            document.to_string()
        }
    };
    let gap = match text.as_str() {
        "" => "",
        text if text.ends_with("\n\n") => "",
        text if text.ends_with('\n') => "\n",
        _ => "\n\n",
    };
    Ok(Some(format!("{text}{gap}{}", fragment(entry))))
}

/// The text without the entry; `None` if it is not there.
pub(super) fn without(text: &str, name: &str) -> anyhow::Result<Option<String>> {
    let mut document = parse(text)?;
    let Some(there) = find(&document, name)? else { return Ok(None) };
    let there = words(there);
    let there: Vec<&str> = there.iter().map(String::as_str).collect();
    if !starts_helve(&there) {
        bail!("{SECTION}.{name} is another server ({}); it is left alone", there.join(" "));
    }
    remove(&mut document, name);
    Ok(Some(document.to_string()))
}

pub(super) fn fragment(entry: &Entry) -> String {
    let text = |text: &str| Value::from(text).to_string();
    let args: Vec<String> = entry.args.iter().map(|arg| text(arg)).collect();
    let name = toml_edit::Key::new(&entry.name);
    format!(
        "[{SECTION}.{name}]\ncommand = {}\nargs = [{}]\n",
        text(&entry.program),
        args.join(", ")
    )
}

fn parse(text: &str) -> anyhow::Result<DocumentMut> {
    text.parse().map_err(|err| anyhow!("it cannot be read: {err}"))
}

fn find<'a>(document: &'a DocumentMut, name: &str) -> anyhow::Result<Option<&'a Item>> {
    match document.get(SECTION) {
        None => Ok(None),
        Some(section) if section.is_table_like() => Ok(section.get(name)),
        Some(_) => bail!("{SECTION} is not a table"),
    }
}

/// Comments above the table are somebody's, and go to the end of the file.
fn remove(document: &mut DocumentMut, name: &str) {
    let Some(section) = document.get_mut(SECTION).and_then(Item::as_table_like_mut) else { return };
    let gone = section.remove(name);
    let prefix = gone.as_ref().and_then(Item::as_table).and_then(|it| it.decor().prefix());
    let comments = prefix.and_then(|it| it.as_str()).filter(|it| it.contains('#'));
    // The empty line between them and the table came with the table.
    let comments =
        comments.map(|it| it.strip_suffix("\n\n").map_or(it.to_owned(), |it| format!("{it}\n")));
    let empty = section.is_empty();
    if empty && document.get(SECTION).and_then(Item::as_table).is_some_and(|it| it.is_implicit()) {
        document.remove(SECTION);
    }
    if let Some(comments) = comments {
        let trailing = document.trailing().as_str().unwrap_or_default().to_owned();
        document.set_trailing(format!("{comments}{trailing}"));
    }
}

/// The command and its arguments.
fn words(there: &Item) -> Vec<String> {
    let mut words = Vec::new();
    words.extend(there.get("command").and_then(Item::as_str).map(str::to_owned));
    let args = there.get("args").and_then(Item::as_array).into_iter().flatten();
    words.extend(args.filter_map(|arg| arg.as_str().map(str::to_owned)));
    words
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    fn entry() -> Entry {
        Entry { name: "helve".into(), program: "helve".into(), args: vec!["mcp".into()] }
    }

    fn check(text: &str, expected: Expect) {
        let with = with(text, &entry()).unwrap().unwrap();
        expected.assert_eq(&with);
        assert_eq!(super::with(&with, &entry()).unwrap(), None);
        assert_eq!(without(&with, "helve").unwrap().unwrap(), text);
    }

    #[test]
    fn at_the_end_and_out_again() {
        check(
            "",
            expect![[r#"
            [mcp_servers.helve]
            command = "helve"
            args = ["mcp"]
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
        "#]],
        );
    }

    #[test]
    fn another_server_is_left_alone() {
        let text = "[mcp_servers.helve]\ncommand = \"rake\"\n";
        assert!(with(text, &entry()).is_err());
        assert!(without(text, "helve").is_err());
        assert!(with("x = ", &entry()).is_err());
    }
}

//! Keys of model providers: those that `helve auth` saved, in a private file, and those of opencode, which are only
//! read.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::private;

/// Maximum size of a file with keys, in bytes.
const MAX_FILE: u64 = 1 << 20;
/// Maximum length of a key.
const MAX_KEY: usize = 4_096;

/// Keys by provider.
pub type ProviderKeys = BTreeMap<String, String>;

/// Returns the file in which keys are saved.
pub fn key_file(data: &Path) -> PathBuf {
    data.join("auth.json")
}

/// Returns the saved keys; none if there is no file.
pub fn load_keys(data: &Path) -> io::Result<ProviderKeys> {
    let path = key_file(data);
    match read(&path)? {
        Some(text) => parse(&text).ok_or_else(|| damaged(&path)),
        None => Ok(ProviderKeys::new()),
    }
}

/// Returns the API keys in opencode's key file. OAuth logins are skipped; an unreadable file has no keys.
pub fn read_opencode_keys(path: &Path) -> ProviderKeys {
    let text = read(path).ok().flatten();
    text.and_then(|text| parse(&text)).unwrap_or_default()
}

/// Returns the API keys in the text of opencode's key file.
pub fn parse_keys(text: &str) -> ProviderKeys {
    parse(text).unwrap_or_default()
}

/// Saves a key. The file can be read by its owner only.
pub fn save_key(data: &Path, provider: &str, key: &str) -> io::Result<()> {
    let is_printable = key.bytes().all(|byte| byte.is_ascii_graphic());
    if key.is_empty() || key.len() > MAX_KEY || !is_printable {
        let why = format!("a key has 1 to {MAX_KEY} printable characters and no spaces");
        return Err(io::Error::new(io::ErrorKind::InvalidInput, why));
    }
    let mut keys = load_keys(data)?;
    keys.insert(provider.into(), key.into());
    write(data, &keys)
}

/// Removes a saved key. Returns whether there was one.
pub fn remove_key(data: &Path, provider: &str) -> io::Result<bool> {
    let mut keys = load_keys(data)?;
    let was_known = keys.remove(provider).is_some();
    if was_known {
        write(data, &keys)?;
    }
    Ok(was_known)
}

fn read(path: &Path) -> io::Result<Option<String>> {
    let file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut text = String::new();
    file.take(MAX_FILE).read_to_string(&mut text)?;
    Ok(Some(text))
}

/// Reads `{"anthropic": {"type": "api", "key": "…"}}`. Entries of other types are left out.
fn parse(text: &str) -> Option<ProviderKeys> {
    let Ok(Value::Object(entries)) = serde_json::from_str(text) else { return None };
    let key = |(provider, entry): (String, Value)| {
        let is_key = entry["type"] == "api";
        let key = entry["key"].as_str().filter(|key| is_key && !key.trim().is_empty())?;
        Some((provider, key.trim().to_string()))
    };
    Some(entries.into_iter().filter_map(key).collect())
}

/// Writes a temporary file and renames it, so that the key file is never half written.
fn write(data: &Path, keys: &ProviderKeys) -> io::Result<()> {
    private::create_folder(data)?;
    let entry = |(provider, key): (&String, &String)| {
        (provider.clone(), json!({"type": "api", "key": key}))
    };
    let entries: serde_json::Map<String, Value> = keys.iter().map(entry).collect();
    let path = key_file(data);
    let temporary = data.join(format!("auth.{}.new", uuid::Uuid::new_v4().simple()));
    let written = private::create(&temporary).and_then(|mut file| {
        file.write_all(format!("{:#}\n", Value::Object(entries)).as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&temporary, &path)
    });
    if written.is_err() {
        // The error of writing is the one to report.
        std::fs::remove_file(&temporary).ok();
    }
    written
}

fn damaged(path: &Path) -> io::Error {
    let why = format!("{} is not valid JSON; correct it, or remove it", path.display());
    io::Error::new(io::ErrorKind::InvalidData, why)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_saved_privately_and_removed() {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        assert!(load_keys(&data).unwrap().is_empty());
        save_key(&data, "anthropic", "sk-1").unwrap();
        save_key(&data, "openai", "sk-2").unwrap();
        save_key(&data, "anthropic", "sk-3").unwrap();
        let keys = load_keys(&data).unwrap();
        let shown: Vec<_> = keys.iter().map(|(id, key)| format!("{id} {key}")).collect();
        assert_eq!(shown, ["anthropic sk-3", "openai sk-2"]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = key_file(&data).metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
        assert!(remove_key(&data, "openai").unwrap());
        assert!(!remove_key(&data, "openai").unwrap());
        for bad in ["", "two words", "line\nbreak", &"x".repeat(5_000)] {
            let error = save_key(&data, "x", bad).unwrap_err().to_string();
            assert!(error.starts_with("a key has"), "{error}");
        }
        assert_eq!(std::fs::read_dir(&data).unwrap().count(), 1);
    }

    #[test]
    fn other_programs_files_are_read_leniently_and_our_own_is_not() {
        let keys = parse_keys(
            r#"{"a": {"type": "api", "key": " k "}, "b": {"type": "oauth", "access": "t"}, "c": 1, "d": {"type": "api"}}"#,
        );
        assert_eq!(keys.into_iter().collect::<Vec<_>>(), [("a".to_string(), "k".to_string())]);
        assert!(parse_keys("[]").is_empty());
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(key_file(folder.path()), "{").unwrap();
        assert!(save_key(folder.path(), "a", "k").is_err());
        assert_eq!(std::fs::read_to_string(key_file(folder.path())).unwrap(), "{");
        assert!(read_opencode_keys(&key_file(folder.path())).is_empty());
    }
}

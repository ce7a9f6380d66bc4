//! The secret that programs show when they call this user's Helve over a port.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::private;

/// A secret, and where it is kept.
pub struct KeptToken {
    pub secret: String,
    pub path: PathBuf,
    pub age: Age,
}

/// Whether a secret was there before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    New,
    Old,
}

/// More than any secret has.
const MOST: u64 = 4096;

/// The secret of a data folder, made at first use and readable by its owner only.
pub fn kept_token(data: &Path) -> io::Result<KeptToken> {
    let path = data.join("token");
    private::folder(data)?;
    let (secret, age) = match private::create(&path) {
        Ok(mut file) => {
            // Two, since a few bits of each are fixed.
            let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
            file.write_all(format!("{secret}\n").as_bytes())?;
            (secret, Age::New)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (token_in(&path)?, Age::Old),
        Err(error) => return Err(error),
    };
    Ok(KeptToken { secret, path, age })
}

/// The secret in a file, which nobody else may be able to read.
pub fn token_in(path: &Path) -> io::Result<String> {
    let file = std::fs::File::open(path)?;
    let readable_by_others = others_can_read(&file.metadata()?);
    let trouble = |what: &str| Err(io::Error::new(io::ErrorKind::InvalidData, what));
    if readable_by_others {
        return trouble(
            "others can read it, so it is no secret any more: put a new one in its place, with mode 600",
        );
    }
    let mut text = String::new();
    file.take(MOST).read_to_string(&mut text)?;
    match text.trim() {
        "" => trouble("it is empty: remove it, and a new one is made, or put a token into it"),
        token => Ok(token.into()),
    }
}

#[cfg(unix)]
fn others_can_read(file: &std::fs::Metadata) -> bool {
    use std::os::unix::fs::PermissionsExt;
    file.permissions().mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn others_can_read(_file: &std::fs::Metadata) -> bool {
    false
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn it_is_made_once_and_private() {
        let data = tempfile::tempdir().unwrap();
        let data = data.path().join("deep/er");
        let first = kept_token(&data).unwrap();
        let second = kept_token(&data).unwrap();
        assert_eq!((first.age, second.age), (Age::New, Age::Old));
        assert_eq!(first.secret, second.secret);
        assert!(first.secret.len() == 64);
        let mode = std::fs::metadata(&first.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_file(&first.path).unwrap();
        assert_ne!(kept_token(&data).unwrap().secret, first.secret);
    }

    #[test]
    fn what_others_can_read_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("token");
        for (text, mode, expected) in [
            ("secret\n", 0o600, Ok("secret")),
            ("secret", 0o400, Ok("secret")),
            ("secret", 0o640, Err("others can read it")),
            ("secret", 0o604, Err("others can read it")),
            (" \n", 0o600, Err("it is empty")),
        ] {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let found = token_in(&path).map_err(|err| err.to_string());
            match expected {
                Ok(token) => assert_eq!(found.as_deref(), Ok(token)),
                Err(why) => assert!(found.unwrap_err().starts_with(why), "{mode:o}"),
            }
            std::fs::remove_file(&path).unwrap();
        }
        assert!(token_in(&path).is_err());
    }
}

//! The token that clients must present to a Helve server that listens on a port.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use uuid::Uuid;

use crate::private;

/// A token and the file it is stored in.
pub struct SavedToken {
    pub secret: String,
    pub path: PathBuf,
    pub origin: TokenOrigin,
}

/// Whether a token was just created.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenOrigin {
    Created,
    Existing,
}

/// Maximum size of a token file.
const MAX_TOKEN_FILE_BYTES: u64 = 4096;

/// Returns the token of a data folder. The token is created at first use, in a file that only its owner can read.
pub fn load_or_create_token(data: &Path) -> io::Result<SavedToken> {
    let path = data.join("token");
    private::create_folder(data)?;
    let (secret, origin) = match private::create(&path) {
        Ok(mut file) => {
            // Two UUIDs, because a few bits of each are fixed.
            let secret = format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple());
            file.write_all(format!("{secret}\n").as_bytes())?;
            (secret, TokenOrigin::Created)
        }
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            (read_token(&path)?, TokenOrigin::Existing)
        }
        Err(error) => return Err(error),
    };
    Ok(SavedToken { secret, path, origin })
}

/// Reads a token from a file. Fails if other users can read the file.
pub fn read_token(path: &Path) -> io::Result<String> {
    let file = std::fs::File::open(path)?;

    let invalid = |why: &str| Err(io::Error::new(io::ErrorKind::InvalidData, why));
    if others_can_read(&file.metadata()?) {
        return invalid(
            "other users can read it, so it is not secret any more: replace it with a new token, with mode 600",
        );
    }
    let mut text = String::new();
    file.take(MAX_TOKEN_FILE_BYTES).read_to_string(&mut text)?;
    match text.trim() {
        "" => {
            invalid("it is empty: remove it to have a new token created, or write a token into it")
        }
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
    fn the_token_is_created_once_in_a_private_file() {
        let data = tempfile::tempdir().unwrap();
        let data = data.path().join("a/b");
        let first = load_or_create_token(&data).unwrap();
        let second = load_or_create_token(&data).unwrap();
        assert_eq!((first.origin, second.origin), (TokenOrigin::Created, TokenOrigin::Existing));
        assert_eq!(first.secret, second.secret);
        assert!(first.secret.len() == 64);
        let mode = std::fs::metadata(&first.path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        std::fs::remove_file(&first.path).unwrap();
        assert_ne!(load_or_create_token(&data).unwrap().secret, first.secret);
    }

    #[test]
    fn an_empty_file_or_one_that_others_can_read_is_refused() {
        let data = tempfile::tempdir().unwrap();
        let path = data.path().join("token");
        for (text, mode, expected) in [
            ("secret\n", 0o600, Ok("secret")),
            ("secret", 0o400, Ok("secret")),
            ("secret", 0o640, Err("other users can read it")),
            ("secret", 0o604, Err("other users can read it")),
            (" \n", 0o600, Err("it is empty")),
        ] {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let found = read_token(&path).map_err(|err| err.to_string());
            match expected {
                Ok(token) => assert_eq!(found.as_deref(), Ok(token)),
                Err(why) => assert!(found.unwrap_err().starts_with(why), "{mode:o}"),
            }
            std::fs::remove_file(&path).unwrap();
        }
        assert!(read_token(&path).is_err());
    }
}

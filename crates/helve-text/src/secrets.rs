//! Recognizes secrets by name: files that hold secrets, and environment variables whose values are secret.

use std::sync::LazyLock;

use crate::wildcard;

/// A wildcard pattern for names of files that hold secrets, in any directory.
#[derive(Debug)]
pub struct SecretFile {
    pub pattern: &'static str,
    /// A common name that matches the pattern. Search patterns are tested against this name, see
    /// [`secret_file_examples`].
    pub example: Option<&'static str>,
}

/// Files that hold secrets, in the order of the permission rules that are derived from them.
pub const SECRET_FILES: [SecretFile; 24] = [
    SecretFile { pattern: ".env.*", example: Some(".env.local") },
    SecretFile { pattern: "*.env", example: Some(".env") },
    SecretFile { pattern: ".envrc", example: None },
    SecretFile { pattern: "*.pem", example: Some("key.pem") },
    SecretFile { pattern: "*.key", example: None },
    SecretFile { pattern: "*.p12", example: None },
    SecretFile { pattern: "*.pfx", example: None },
    SecretFile { pattern: "*.keystore", example: None },
    SecretFile { pattern: "*.jks", example: None },
    SecretFile { pattern: "id_rsa*", example: Some("id_rsa") },
    SecretFile { pattern: "id_dsa*", example: None },
    SecretFile { pattern: "id_ecdsa*", example: None },
    SecretFile { pattern: "id_ed25519*", example: None },
    SecretFile { pattern: ".netrc", example: None },
    SecretFile { pattern: ".npmrc", example: None },
    SecretFile { pattern: ".pypirc", example: None },
    SecretFile { pattern: ".git-credentials", example: None },
    SecretFile { pattern: "credentials", example: None },
    SecretFile { pattern: "credentials.*", example: None },
    SecretFile { pattern: ".htpasswd", example: None },
    SecretFile { pattern: ".pgpass", example: None },
    SecretFile { pattern: "*.tfvars", example: None },
    SecretFile { pattern: "*.tfstate", example: None },
    SecretFile { pattern: "*.tfstate.backup", example: None },
];

/// Names that match [`SECRET_FILES`] but hold no secrets.
pub const HARMLESS_FILES: [&str; 3] = [".env.example", ".env.sample", ".env.template"];

/// Returns the examples of [`SECRET_FILES`], sorted. A glob that matches one of them selects a secret file.
pub fn secret_file_examples() -> &'static [&'static str] {
    static EXAMPLES: LazyLock<Vec<&str>> = LazyLock::new(|| {
        let mut examples: Vec<_> = SECRET_FILES.iter().filter_map(|file| file.example).collect();
        examples.sort_unstable();
        examples
    });
    &EXAMPLES
}

/// Words in a name that mark its value as a secret.
const SECRET_WORDS: [&str; 22] = [
    "TOKEN",
    "TOKENS",
    "SECRET",
    "SECRETS",
    "PASSWORD",
    "PASSWORDS",
    "PASSWD",
    "PASS",
    "PASSPHRASE",
    "PWD",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDS",
    "KEY",
    "KEYS",
    "APIKEY",
    "AUTH",
    "BEARER",
    "COOKIE",
    "JWT",
    "PAT",
    "DSN",
];
/// Endings of names that run words together: `GITHUBTOKEN`, `PGPASSWORD`.
const SECRET_SUFFIXES: [&str; 6] =
    ["TOKEN", "SECRET", "PASSWORD", "PASSWD", "APIKEY", "PASSPHRASE"];
/// Last words of names whose value is not secret even if another word suggests it: `KEY_PATH`.
const NON_SECRET_LAST_WORDS: [&str; 18] = [
    "PATH", "FILE", "DIR", "HOME", "SOCK", "SOCKET", "ID", "NAME", "URL", "URI", "HOST", "PORT",
    "TYPE", "LAYOUT", "COUNT", "LENGTH", "TTL", "MODE",
];
/// Names that look like secrets but are not.
const NOT_SECRETS: [&str; 4] = ["PWD", "OLDPWD", "GIT_CONFIG_KEY_*", "GIT_ASKPASS"];

/// Whether a variable's name marks its value as a secret.
pub fn is_secret_variable(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    if NOT_SECRETS.iter().any(|pattern| wildcard::matches(pattern, &upper)) {
        return false;
    }
    let name = split_camel_case(name);
    let words: Vec<_> = name.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    if words.last().is_some_and(|last| NON_SECRET_LAST_WORDS.contains(last)) {
        return false;
    }
    let is_secret = |word: &&str| {
        SECRET_WORDS.contains(word) || SECRET_SUFFIXES.iter().any(|end| word.ends_with(end))
    };
    words.iter().any(is_secret)
}

/// Converts a name to upper case, with an underscore between words in camel case: `apiKey` becomes `API_KEY`.
fn split_camel_case(name: &str) -> String {
    let mut upper = String::with_capacity(name.len() + 4);
    let mut previous = '_';
    for c in name.chars() {
        if c.is_ascii_uppercase() && previous.is_ascii_lowercase() {
            upper.push('_');
        }
        upper.push(c.to_ascii_uppercase());
        previous = c;
    }
    upper
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_match_their_patterns() {
        assert_eq!(secret_file_examples(), [".env", ".env.local", "id_rsa", "key.pem"]);
        for SecretFile { pattern, example } in &SECRET_FILES {
            assert!(example.is_none_or(|name| wildcard::matches(pattern, name)), "{pattern}");
        }
    }

    #[test]
    fn secret_variables_are_recognized_by_name() {
        for name in [
            "GITHUB_TOKEN",
            "NPM_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
            "OPENAI_API_KEY",
            "apiKey",
            "DB_PASSWORD",
            "PGPASSWORD",
            "MYSQL_PWD",
            "STRIPE_SECRET",
            "GOOGLE_CREDENTIALS",
            "SSH_PASSPHRASE",
            "GITHUBTOKEN",
            "client-secret",
            "SENTRY_DSN",
            "TWINE_PASSWORD",
            "HTTP_BEARER",
            "KEY",
            "private_key",
        ] {
            assert!(is_secret_variable(name), "{name}");
        }
        for name in [
            "KEYBOARD_LAYOUT",
            "PATH",
            "PWD",
            "OLDPWD",
            "MONKEY",
            "SSH_AUTH_SOCK",
            "GOOGLE_APPLICATION_CREDENTIALS_FILE",
            "AWS_ACCESS_KEY_ID",
            "KEY_PATH",
            "TOKENIZERS_PARALLELISM",
            "PASSENGER_HOME",
            "HOME",
            "COMPASS",
            "AUTHOR",
            "GIT_AUTHOR_NAME",
            "GIT_CONFIG_KEY_0",
            "SECRETARY",
            "",
            "_",
            "KEYTIMEOUT",
            "XAUTHORITY",
        ] {
            assert!(!is_secret_variable(name), "{name}");
        }
    }
}

//! Errors when building a toolbox.

use std::path::PathBuf;

/// Why a toolbox could not be built.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    #[error("{0} is not a folder")]
    NotAFolder(PathBuf),
    #[error("{path} cannot be opened: {why}")]
    Unreachable { path: PathBuf, why: String },
    #[error("{0} is too broad to work in by default; name it with --dir to use it anyway")]
    RootTooBroad(PathBuf),
    #[error("the current folder no longer exists")]
    NoCurrentFolder,
    #[error(
        "the home folder is unknown, so there is no place for Helve's data; set HOME or XDG_DATA_HOME"
    )]
    NoDataFolder,
    #[error("`{0}` is not PERMISSION or PERMISSION:PATTERN, as in `edit` or `edit:docs/*`")]
    BadAllow(String),
    #[error("no such dialect: `{name}`; the dialects are {}", .known.join(", "))]
    NoDialect { name: String, known: Vec<&'static str> },
    #[error("no such agent: `{name}`{}", did_you_mean(.near))]
    NoAgent { name: String, near: Vec<String> },
}

fn did_you_mean(names: &[String]) -> String {
    match names {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

//! How programs are run in a toolbox: by which keeper, in which environment, confined to what.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use helve_core::process::Processes;
use helve_core::programs::{Leftovers, Shell, Timeouts};
use helve_machine::{Keeper, Programs, Settings};
use helve_text::shell::Language;

/// What stands after the program's name when it is to be a keeper.
pub const KEEPER: &str = "keeper";

/// The shell of a toolbox. `keeper` is a `helve` program, or one whose `main` does as [`crate::keeper`] says.
pub(crate) fn shell(keeper: Option<PathBuf>, data: &Path, leftovers: Leftovers) -> Shell {
    let keeper = match keeper.or_else(installed) {
        Some(program) => Ok(Keeper { program, arguments: vec![KEEPER.into()] }),
        None => Err("there is no program `helve` in PATH to look after them".to_string()),
    };
    let records = data.join("run");
    let settings = Settings { keeper, records, most_running: 64, most_remembered: 512 };
    let processes: Arc<dyn Processes> = Arc::new(Programs::new(settings));
    Shell {
        processes,
        program: vec!["bash".into(), "-c".into()],
        language: Language::Bash,
        environment: std::env::vars_os().collect(),
        secrets: Vec::new(),
        confine: None,
        timeouts: Timeouts { usual: Duration::from_secs(120), most: Duration::from_secs(600) },
        leftovers,
    }
}

/// The `helve` that is installed, for programs that embed the library.
fn installed() -> Option<PathBuf> {
    let path: OsString = std::env::var_os("PATH")?;
    let folders = std::env::split_paths(&path).filter(|folder| folder.is_absolute());
    let mut programs = folders.map(|folder| folder.join("helve"));
    programs.find(|program| program.is_file())
}

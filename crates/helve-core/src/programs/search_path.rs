//! Finds the programs that a command runs, in the folders of `PATH`. A program in the workspace is judged by its path,
//! because it may be part of the project; an installed program is judged by its name.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::Arc;

use helve_policy::shell::ProgramPlace;

use super::Programs;
use super::judge::command_environment;
use crate::files;
use crate::hook::PlannedCommand;
use crate::machine::FileKind;
use crate::shell::SearchFolder;

/// Maximum number of folders in `PATH` that are considered.
const MAX_FOLDERS: usize = 256;

impl Programs {
    /// Returns the folders of `PATH`. They are looked up once per workspace, unless a hook sets `PATH` or one of the
    /// folders is relative.
    pub(super) async fn search_path(
        &self,
        planned: &PlannedCommand,
        cwd: &Path,
    ) -> Arc<[SearchFolder]> {
        let Some(shell) = self.shell() else { return Arc::default() };
        let environment = command_environment(shell, planned);
        let path = environment.iter().find(|(name, _)| name == "PATH");
        let Some((_, path)) = path else { return Arc::default() };
        let is_relative = |folder: &[u8]| !folder.starts_with(b"/");
        let depends_on_call = planned.environment.iter().any(|(name, _)| name == "PATH")
            || path.as_bytes().split(|byte| *byte == b':').any(is_relative);
        if depends_on_call {
            return self.look_up_folders(path, cwd).await;
        }
        let cached = self.session.workspace.search_path();
        cached.get_or_init(|| self.look_up_folders(path, cwd)).await.clone()
    }

    /// Finds out which folders of `PATH` are in the workspace.
    async fn look_up_folders(&self, path: &OsStr, cwd: &Path) -> Arc<[SearchFolder]> {
        let root = self.session.workspace.root();
        let mut folders = Vec::new();
        for folder in path.as_bytes().split(|byte| *byte == b':').take(MAX_FOLDERS) {
            // An empty name stands for the working directory.
            let path = cwd.join(OsStr::from_bytes(folder));
            let real = files::look_up(&self.session, &path).await.map(|folder| folder.real());
            let is_inside = path.starts_with(root) || real.is_ok_and(|real| real.starts_with(root));
            folders.push(SearchFolder { path, is_inside });
        }
        folders.into()
    }

    /// Finds out whether a program is in the workspace; `None` if that is unknown.
    pub(super) async fn find_program(
        &self,
        name: &str,
        folders: &[SearchFolder],
    ) -> Option<ProgramPlace> {
        let Some(last_inside) = folders.iter().rposition(|folder| folder.is_inside) else {
            return Some(ProgramPlace::Elsewhere);
        };
        // A program in one of the later folders is certainly outside the workspace.
        for folder in &folders[..=last_inside] {
            let path = files::look_up(&self.session, &folder.path.join(name)).await;
            // A path that cannot be looked up is not a program.
            let Ok(path) = path else { continue };
            match path.kind() {
                Some(FileKind::File) if folder.is_inside => {
                    let subject = path.part("bash").subjects.pop()?;
                    return Some(ProgramPlace::Workspace(subject));
                }
                Some(FileKind::File) => return Some(ProgramPlace::Elsewhere),
                Some(_) | None => {}
            }
        }
        Some(ProgramPlace::Elsewhere)
    }
}

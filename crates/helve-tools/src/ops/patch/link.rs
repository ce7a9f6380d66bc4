//! Moves of symbolic links. A relative target leads somewhere else from another folder.

use helve_core::Resolved;

use super::PatchError;
use super::pending::PendingFile;

/// Refuses to move a link to another folder if its target is relative. Whether the target exists does not matter: it may
/// be a file that must not be read, or outside the workspace.
pub(super) fn refuse_broken_link(link: &PendingFile, to: &Resolved) -> Result<(), PatchError> {
    let Some(base) = link.base.as_ref().filter(|base| base.is_link()) else { return Ok(()) };
    let target = String::from_utf8_lossy(&base.bytes);
    let (old_folder, new_folder) = (folder(link.path.display()), folder(to.display()));
    if target.starts_with('/') || old_folder == new_folder {
        return Ok(());
    }
    let full_target = match old_folder {
        "" => target.to_string(),
        folder => format!("{folder}/{target}"),
    };
    Err(PatchError::LinkWouldBreak {
        display_path: link.path.display().into(),
        to: to.display().into(),
        new_target: relative_path(new_folder, &full_target),
        target: target.into_owned(),
    })
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Returns the path that leads from a folder to a file. Returns the path of the file itself if only one of the two is
/// absolute.
fn relative_path(folder: &str, path: &str) -> String {
    let (from, to) = (names(folder), names(path));
    if folder.starts_with('/') != path.starts_with('/') || from.contains(&"..") {
        return path.to_owned();
    }
    let common = from.iter().zip(&to).take_while(|(from, to)| from == to).count();
    let up = std::iter::repeat_n("..", from.len() - common);
    up.chain(to[common..].iter().copied()).collect::<Vec<_>>().join("/")
}

/// Returns the names in a path, without `.` and, where possible, without `..`.
fn names(path: &str) -> Vec<&str> {
    let mut names: Vec<&str> = Vec::new();
    for name in path.split('/') {
        match name {
            "" | "." => {}
            ".." if names.last().is_some_and(|last| *last != "..") => {
                names.pop();
            }
            name => names.push(name),
        }
    }
    names
}

#[cfg(test)]
mod tests {
    use super::relative_path;

    #[test]
    fn paths_lead_from_a_folder_to_a_file() {
        for (folder, path, expected) in [
            ("", "a", "a"),
            ("sub", "a", "../a"),
            ("sub/deep", "a", "../../a"),
            ("sub", "sub/a", "a"),
            ("sub/deep", "sub/x/a", "../x/a"),
            ("sub", "other/../a", "../a"),
            ("sub", "../a", "../../a"),
            ("/srv/x", "/srv/a", "../a"),
            ("/srv/x", "a", "a"),
            ("../x", "a", "a"),
        ] {
            assert_eq!(relative_path(folder, path), expected, "{folder} {path}");
        }
    }
}

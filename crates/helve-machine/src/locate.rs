//! Following every link of a path, as far as it exists.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Component, Path, PathBuf};

use helve_core::MachineError;
use helve_core::machine::{Kind, Located};
use rustix::fs::{AtFlags, CWD, readlinkat, statat};
use rustix::io::Errno;

use crate::errors::{failed, kind, type_of};

/// As many as the kernel follows.
const MOST_LINKS: usize = 40;
/// The longest path the kernel takes, without its final NUL.
const LONGEST: usize = 4095;

pub(crate) fn locate(path: &Path) -> Result<Located, MachineError> {
    if !path.is_absolute() {
        return Err(MachineError::Other("the path is not absolute".into()));
    }
    if path.as_os_str().as_bytes().contains(&0) {
        return Err(MachineError::Other("the path contains a NUL byte".into()));
    }
    let mut way =
        Way { real: PathBuf::from("/"), kind: Some(Kind::Folder), ahead: Vec::new(), links: 0 };
    way.prepend(path);
    while let Some(step) = way.ahead.pop() {
        way.step(&step)?;
        if way.real.as_os_str().len() > LONGEST {
            return Err(failed(Errno::NAMETOOLONG));
        }
    }
    Ok(Located { real: way.real, kind: way.kind })
}

struct Way {
    /// What was walked, free of links.
    real: PathBuf,
    kind: Option<Kind>,
    /// What is still to be walked, the next step last.
    ahead: Vec<OsString>,
    links: usize,
}

impl Way {
    fn prepend(&mut self, path: &Path) {
        let steps = path.components().filter_map(|step| match step {
            Component::Normal(name) => Some(name),
            Component::ParentDir => Some(OsStr::new("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        self.ahead.extend(steps.rev().map(OsStr::to_owned));
    }

    fn step(&mut self, name: &OsStr) -> Result<(), MachineError> {
        let is_up = name == "..";
        match self.kind {
            Some(Kind::Folder) if is_up => {
                self.real.pop();
                Ok(())
            }
            Some(Kind::Folder) => self.enter(name),
            None if is_up => Err(MachineError::NotFound),
            None => {
                self.real.push(name);
                Ok(())
            }
            Some(_) => Err(MachineError::NotAFolder),
        }
    }

    fn enter(&mut self, name: &OsStr) -> Result<(), MachineError> {
        self.real.push(name);
        match statat(CWD, &self.real, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(stat) => match kind(type_of(&stat)) {
                Some(kind) => {
                    self.kind = Some(kind);
                    Ok(())
                }
                None => self.follow(),
            },
            Err(Errno::NOENT) => {
                self.kind = None;
                Ok(())
            }
            Err(errno) => Err(failed(errno)),
        }
    }

    fn follow(&mut self) -> Result<(), MachineError> {
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(MachineError::LinkLoop);
        }
        let target = match readlinkat(CWD, &self.real, Vec::new()) {
            Ok(target) => PathBuf::from(OsString::from_vec(target.into_bytes())),
            // No link any more.
            Err(Errno::INVAL) => return Err(MachineError::Moved),
            Err(errno) => return Err(failed(errno)),
        };
        if target.is_absolute() {
            self.real = PathBuf::from("/");
        } else {
            self.real.pop();
        }
        self.prepend(&target);
        Ok(())
    }
}

#[cfg(test)]
mod tests;

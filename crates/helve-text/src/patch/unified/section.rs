//! What a diff says about one file.

use super::{super::name, hunk};
use crate::patch::{
    FilePatch, Hunk, Kind, Line, Malformed, Problem, Unsupported,
    name::{BadName, Name},
    rows::{Reader, Row},
};

pub(super) struct Section<'a> {
    head: Row<'a>,
    /// Without the letters that git puts before them.
    names: Option<(Name, Name)>,
    git: Option<(String, String)>,
    rename: (Option<String>, Option<String>),
    is_new: bool,
    is_deleted: bool,
    executable: Option<bool>,
    hunks: Vec<Hunk>,
}

impl<'a> Section<'a> {
    pub(super) fn new(head: Row<'a>) -> Section<'a> {
        let git = head.text().strip_prefix("diff --git ").and_then(name::pair);
        Section {
            head,
            names: None,
            git,
            rename: (None, None),
            is_new: false,
            is_deleted: false,
            executable: None,
            hunks: Vec::new(),
        }
    }

    pub(super) fn has_names(&self) -> bool {
        self.names.is_some()
    }

    pub(super) fn take_names(&mut self, reader: &mut Reader<'_, 'a>) -> Result<(), Malformed> {
        let (Some(old), Some(new)) = (reader.next(), reader.next()) else { return Ok(()) };
        let names = (read_name(old, &old.text()[4..])?, read_name(new, &new.text()[4..])?);
        self.names = Some(match names {
            (Name::File(old), Name::File(new)) => match name::prefixed(&old, &new) {
                Some((old, new)) => (Name::File(old.to_owned()), Name::File(new.to_owned())),
                None => (Name::File(old), Name::File(new)),
            },
            (Name::Nothing, Name::File(new)) => (Name::Nothing, Name::File(self.one_sided(new))),
            (Name::File(old), Name::Nothing) => (Name::File(self.one_sided(old)), Name::Nothing),
            (Name::Nothing, Name::Nothing) => return Err(new.malformed(Problem::NoPath)),
        });
        Ok(())
    }

    /// A name beside `/dev/null`, where only git's own line or custom tells whether it has a letter before it.
    fn one_sided(&self, name: String) -> String {
        let has_prefix = match &self.git {
            Some((old, new)) => name::prefixed(old, new).is_some(),
            None => name.starts_with("a/") || name.starts_with("b/"),
        };
        match name.split_once('/') {
            Some((_, rest)) if has_prefix && !rest.is_empty() => rest.to_owned(),
            Some(_) | None => name,
        }
    }

    pub(super) fn take_hunk(
        &mut self,
        head: Row<'a>,
        reader: &mut Reader<'_, 'a>,
    ) -> Result<(), Malformed> {
        if self.names.is_none() {
            return Err(head.malformed(Problem::NoFileNames));
        }
        self.hunks.push(hunk::read(reader)?);
        Ok(())
    }

    /// Takes one of git's lines between `diff --git` and the names.
    pub(super) fn take_head(&mut self, row: Row<'a>) -> Result<(), Malformed> {
        let text = row.text();
        if text.starts_with("GIT binary patch") || text.starts_with("Binary files ") {
            return Err(row.malformed(Problem::Binary));
        }
        if row.is_blank() {
            return Ok(());
        }
        if self.names.is_some() {
            let expected =
                if self.hunks.is_empty() { Problem::BadHunkHead } else { Problem::NoHunkStart };
            return Err(row.malformed(expected));
        }
        const SAY_NOTHING: [&str; 3] = ["index ", "similarity index ", "dissimilarity index "];
        if let Some(mode) = text.strip_prefix("new file mode ") {
            self.is_new = true;
            self.set_mode(row, mode)?;
        } else if text.starts_with("deleted file mode ") {
            self.is_deleted = true;
        } else if let Some(mode) = text.strip_prefix("new mode ") {
            self.set_mode(row, mode)?;
        } else if let Some(from) = text.strip_prefix("rename from ") {
            self.rename.0 = Some(file_name(row, from)?);
        } else if let Some(to) = text.strip_prefix("rename to ") {
            self.rename.1 = Some(file_name(row, to)?);
        } else if text.starts_with("copy from ") || text.starts_with("copy to ") {
            return Err(row.malformed(Problem::Unsupported(Unsupported::Copy)));
        } else if !text.starts_with("old mode ")
            && !SAY_NOTHING.iter().any(|it| text.starts_with(it))
        {
            return Err(row.malformed(Problem::NoFileNames));
        }
        Ok(())
    }

    fn set_mode(&mut self, row: Row<'_>, mode: &str) -> Result<(), Malformed> {
        match mode.trim() {
            "120000" => Err(row.malformed(Problem::Unsupported(Unsupported::Link))),
            "160000" => Err(row.malformed(Problem::Unsupported(Unsupported::Submodule))),
            mode => {
                self.executable = Some(mode.ends_with("755"));
                Ok(())
            }
        }
    }

    pub(super) fn finish(self) -> Result<FilePatch, Malformed> {
        let head = self.head;
        let (old, new) = self.sides()?;
        match (old, new) {
            (Name::Nothing, Name::File(path)) => {
                let text = one_side(head, &self.hunks, Kind::Add)?;
                Ok(FilePatch::Add { path, text, executable: self.executable })
            }
            (Name::File(path), Name::Nothing) => {
                let was = one_side(head, &self.hunks, Kind::Remove)?;
                Ok(FilePatch::Delete { path, was: (!self.hunks.is_empty()).then_some(was) })
            }
            (Name::File(path), Name::File(new)) => {
                let move_to = Some(new).filter(|new| *new != path);
                if self.hunks.is_empty() && move_to.is_none() && self.executable.is_none() {
                    return Err(head.malformed(Problem::EmptyUpdate { path }));
                }
                Ok(FilePatch::Update {
                    path,
                    move_to,
                    executable: self.executable,
                    hunks: self.hunks,
                })
            }
            (Name::Nothing, Name::Nothing) => Err(head.malformed(Problem::NoPath)),
        }
    }

    /// The names of the two sides, from whichever line says them.
    fn sides(&self) -> Result<(Name, Name), Malformed> {
        let (old, new) = match (&self.names, &self.rename, &self.git) {
            (_, (Some(from), Some(to)), _) => (Name::File(from.clone()), Name::File(to.clone())),
            (Some((Name::File(old), Name::File(new))), _, None) if old != new => {
                return self.two_names(old, new);
            }
            (Some(names), ..) => names.clone(),
            (None, _, Some((old, new))) => {
                let (old, new) = name::prefixed(old, new).unwrap_or((old, new));
                (Name::File(old.to_owned()), Name::File(new.to_owned()))
            }
            (None, _, None) => return Err(self.head.malformed(Problem::NoPath)),
        };
        Ok(match (self.is_new, self.is_deleted) {
            (true, _) => (Name::Nothing, new),
            (false, true) => (old, Name::Nothing),
            (false, false) => (old, new),
        })
    }

    /// Two names without a word about renaming: a copy kept aside, or who knows.
    fn two_names(&self, old: &str, new: &str) -> Result<(Name, Name), Malformed> {
        let is_kept_aside =
            [".orig", ".bak", ".old", "~"].iter().any(|end| old.strip_suffix(end) == Some(new));
        if is_kept_aside {
            return Ok((Name::File(new.to_owned()), Name::File(new.to_owned())));
        }
        Err(self.head.malformed(Problem::TwoNames { old: old.to_owned(), new: new.to_owned() }))
    }
}

fn read_name(row: Row<'_>, text: &str) -> Result<Name, Malformed> {
    name::name(text).map_err(|bad| {
        row.malformed(match bad {
            BadName::Empty => Problem::NoPath,
            BadName::Quoting => Problem::BadQuoting,
        })
    })
}

fn file_name(row: Row<'_>, text: &str) -> Result<String, Malformed> {
    match read_name(row, text)? {
        Name::File(name) => Ok(name),
        Name::Nothing => Err(row.malformed(Problem::NoPath)),
    }
}

/// The whole text of a file that is there on one side only.
fn one_side(head: Row<'_>, hunks: &[Hunk], kind: Kind) -> Result<String, Malformed> {
    let mut text = String::new();
    for Line { kind: found, text: line, is_open } in hunks.iter().flat_map(|hunk| &hunk.lines) {
        if *found != kind {
            return Err(head.malformed(Problem::OneSided));
        }
        text.push_str(line);
        if !is_open {
            text.push('\n');
        }
    }
    Ok(text)
}

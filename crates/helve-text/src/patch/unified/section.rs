//! Parses the section of a diff that describes one file. A row is a line of the diff; a line is a line of the file.

use super::{super::file_name, hunk};
use crate::patch::{
    FilePatch, PatchHunk, PatchLine, PatchLineKind, PatchParseError, PatchProblem,
    UnsupportedChange,
    file_name::{BadDiffName, DiffName},
    source::{PatchRow, RowReader},
};

/// What was parsed of a file section so far.
pub(super) struct FileSection<'a> {
    /// The first row of the section. Errors about the whole section refer to it.
    header: PatchRow<'a>,
    /// The names after `---` and `+++`, without git's prefixes.
    names: Option<(DiffName, DiffName)>,
    /// The names after `diff --git`.
    git_names: Option<(String, String)>,
    /// The names after `rename from` and `rename to`.
    rename: (Option<String>, Option<String>),
    is_new: bool,
    is_deleted: bool,
    executable: Option<bool>,
    hunks: Vec<PatchHunk>,
}

impl<'a> FileSection<'a> {
    pub(super) fn new(header: PatchRow<'a>) -> FileSection<'a> {
        let git_names =
            header.text().strip_prefix("diff --git ").and_then(file_name::split_git_names);
        FileSection {
            header,
            names: None,
            git_names,
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

    pub(super) fn parse_names(
        &mut self,
        reader: &mut RowReader<'_, 'a>,
    ) -> Result<(), PatchParseError> {
        let (Some(old), Some(new)) = (reader.next(), reader.next()) else { return Ok(()) };
        let names = (parse_name(old, &old.text()[4..])?, parse_name(new, &new.text()[4..])?);
        self.names = Some(match names {
            (DiffName::File(old), DiffName::File(new)) => {
                match file_name::strip_prefixes(&old, &new) {
                    Some((old, new)) => {
                        (DiffName::File(old.to_owned()), DiffName::File(new.to_owned()))
                    }
                    None => (DiffName::File(old), DiffName::File(new)),
                }
            }
            (DiffName::DevNull, DiffName::File(new)) => {
                (DiffName::DevNull, DiffName::File(self.strip_single_prefix(new)))
            }
            (DiffName::File(old), DiffName::DevNull) => {
                (DiffName::File(self.strip_single_prefix(old)), DiffName::DevNull)
            }
            (DiffName::DevNull, DiffName::DevNull) => {
                return Err(new.error(PatchProblem::ExpectedPath));
            }
        });
        Ok(())
    }

    /// Removes the prefix from a name whose other side is `/dev/null`. The `diff --git` row says whether there is one.
    /// Without that row, `a/` and `b/` are prefixes.
    fn strip_single_prefix(&self, name: String) -> String {
        let has_prefix = match &self.git_names {
            Some((old, new)) => file_name::strip_prefixes(old, new).is_some(),
            None => name.starts_with("a/") || name.starts_with("b/"),
        };
        match name.split_once('/') {
            Some((_, rest)) if has_prefix && !rest.is_empty() => rest.to_owned(),
            Some(_) | None => name,
        }
    }

    pub(super) fn parse_hunk(
        &mut self,
        header: PatchRow<'a>,
        reader: &mut RowReader<'_, 'a>,
    ) -> Result<(), PatchParseError> {
        if self.names.is_none() {
            return Err(header.error(PatchProblem::ExpectedFileNames));
        }
        self.hunks.push(hunk::parse(reader)?);
        Ok(())
    }

    /// Parses one of the rows between `diff --git` and `---`, such as a mode or a rename.
    pub(super) fn parse_header(&mut self, row: PatchRow<'a>) -> Result<(), PatchParseError> {
        let text = row.text();
        if text.starts_with("GIT binary patch") || text.starts_with("Binary files ") {
            return Err(row.error(PatchProblem::Binary));
        }
        if row.is_blank() {
            return Ok(());
        }
        if self.names.is_some() {
            let expected = if self.hunks.is_empty() {
                PatchProblem::BadHunkHeader
            } else {
                PatchProblem::ExpectedHunkStart
            };
            return Err(row.error(expected));
        }
        const IGNORED: [&str; 3] = ["index ", "similarity index ", "dissimilarity index "];
        if let Some(mode) = text.strip_prefix("new file mode ") {
            self.is_new = true;
            self.set_mode(row, mode)?;
        } else if text.starts_with("deleted file mode ") {
            self.is_deleted = true;
        } else if let Some(mode) = text.strip_prefix("new mode ") {
            self.set_mode(row, mode)?;
        } else if let Some(from) = text.strip_prefix("rename from ") {
            self.rename.0 = Some(parse_file_name(row, from)?);
        } else if let Some(to) = text.strip_prefix("rename to ") {
            self.rename.1 = Some(parse_file_name(row, to)?);
        } else if text.starts_with("copy from ") || text.starts_with("copy to ") {
            return Err(row.error(PatchProblem::Unsupported(UnsupportedChange::Copy)));
        } else if !text.starts_with("old mode ")
            && !IGNORED.iter().any(|prefix| text.starts_with(prefix))
        {
            return Err(row.error(PatchProblem::ExpectedFileNames));
        }
        Ok(())
    }

    fn set_mode(&mut self, row: PatchRow<'_>, mode: &str) -> Result<(), PatchParseError> {
        match mode.trim() {
            "120000" => Err(row.error(PatchProblem::Unsupported(UnsupportedChange::Link))),
            "160000" => Err(row.error(PatchProblem::Unsupported(UnsupportedChange::Submodule))),
            mode => {
                self.executable = Some(mode.ends_with("755"));
                Ok(())
            }
        }
    }

    pub(super) fn finish(self) -> Result<FilePatch, PatchParseError> {
        let header = self.header;
        let (old, new) = self.sides()?;
        match (old, new) {
            (DiffName::DevNull, DiffName::File(path)) => {
                let text = text_on_one_side(header, &self.hunks, PatchLineKind::Add)?;
                Ok(FilePatch::Add { path, text, executable: self.executable })
            }
            (DiffName::File(path), DiffName::DevNull) => {
                let content = text_on_one_side(header, &self.hunks, PatchLineKind::Remove)?;
                Ok(FilePatch::Delete { path, content: (!self.hunks.is_empty()).then_some(content) })
            }
            (DiffName::File(path), DiffName::File(new)) => {
                let move_to = Some(new).filter(|new| *new != path);
                if self.hunks.is_empty() && move_to.is_none() && self.executable.is_none() {
                    return Err(header.error(PatchProblem::EmptyUpdate { path }));
                }
                Ok(FilePatch::Update {
                    path,
                    move_to,
                    executable: self.executable,
                    hunks: self.hunks,
                })
            }
            (DiffName::DevNull, DiffName::DevNull) => Err(header.error(PatchProblem::ExpectedPath)),
        }
    }

    /// Returns the names of the two sides, from the rename rows, the `---` and `+++` rows, or the `diff --git` row.
    fn sides(&self) -> Result<(DiffName, DiffName), PatchParseError> {
        let (old, new) = match (&self.names, &self.rename, &self.git_names) {
            (_, (Some(from), Some(to)), _) => {
                (DiffName::File(from.clone()), DiffName::File(to.clone()))
            }
            (Some((DiffName::File(old), DiffName::File(new))), _, None) if old != new => {
                return self.resolve_two_names(old, new);
            }
            (Some(names), ..) => names.clone(),
            (None, _, Some((old, new))) => {
                let (old, new) = file_name::strip_prefixes(old, new).unwrap_or((old, new));
                (DiffName::File(old.to_owned()), DiffName::File(new.to_owned()))
            }
            (None, _, None) => return Err(self.header.error(PatchProblem::ExpectedPath)),
        };
        Ok(match (self.is_new, self.is_deleted) {
            (true, _) => (DiffName::DevNull, new),
            (false, true) => (old, DiffName::DevNull),
            (false, false) => (old, new),
        })
    }

    /// Handles two different names without a rename. If the old file is a backup copy, like `a.orig`, uses the new
    /// name.
    fn resolve_two_names(
        &self,
        old: &str,
        new: &str,
    ) -> Result<(DiffName, DiffName), PatchParseError> {
        let is_backup =
            [".orig", ".bak", ".old", "~"].iter().any(|end| old.strip_suffix(end) == Some(new));
        if is_backup {
            return Ok((DiffName::File(new.to_owned()), DiffName::File(new.to_owned())));
        }
        Err(self.header.error(PatchProblem::TwoNames { old: old.to_owned(), new: new.to_owned() }))
    }
}

fn parse_name(row: PatchRow<'_>, text: &str) -> Result<DiffName, PatchParseError> {
    file_name::parse_name(text).map_err(|bad| {
        row.error(match bad {
            BadDiffName::Empty => PatchProblem::ExpectedPath,
            BadDiffName::Quoting => PatchProblem::BadQuoting,
        })
    })
}

fn parse_file_name(row: PatchRow<'_>, text: &str) -> Result<String, PatchParseError> {
    match parse_name(row, text)? {
        DiffName::File(name) => Ok(name),
        DiffName::DevNull => Err(row.error(PatchProblem::ExpectedPath)),
    }
}

/// Returns the text of a file that is added or deleted. All its lines must have this kind.
fn text_on_one_side(
    header: PatchRow<'_>,
    hunks: &[PatchHunk],
    kind: PatchLineKind,
) -> Result<String, PatchParseError> {
    let mut text = String::new();
    for PatchLine { kind: line_kind, text: line, no_newline } in
        hunks.iter().flat_map(|hunk| &hunk.lines)
    {
        if *line_kind != kind {
            return Err(header.error(PatchProblem::UnexpectedLineKind));
        }
        text.push_str(line);
        if !no_newline {
            text.push('\n');
        }
    }
    Ok(text)
}

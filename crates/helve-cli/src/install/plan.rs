//! Computes what an install or a removal changes in which files. Writes nothing.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail};

use super::HelveEntry;
use super::client::ConfigTarget;
use super::file::{self, InstallRecord};
use super::own_tools::{self, Setting};
use crate::args::InstallClient;

/// A file that changes.
pub(super) struct PlannedFile {
    pub(super) path: PathBuf,
    pub(super) before: Option<String>,
    /// `None` deletes the file.
    pub(super) after: Option<String>,
    /// What to remember for the removal; `None` for a removal.
    pub(super) record: Option<InstallRecord>,
}

/// Plans an install. `own_tools` are the settings that switch the program's own tools off.
pub(super) fn install(
    client: InstallClient,
    entry: &HelveEntry,
    replace: bool,
) -> anyhow::Result<Vec<PlannedFile>> {
    let target = ConfigTarget::find(client)?;
    let own_tools = match own_tools::of(client, &entry.name)? {
        Ok(own_tools) => Some(own_tools),
        Err(why) if replace => bail!("--replace is not possible here: {why}"),
        Err(_) => None,
    };
    let settings = own_tools.as_ref().map_or(&[][..], |own_tools| &own_tools.settings[..]);
    let separate = own_tools.as_ref().and_then(|own_tools| own_tools.file.as_deref());
    let in_entry_file = if separate.is_some() { &[][..] } else { settings };
    let file = ProgramFile { client, path: &target.path, entry: Some(&target), name: &entry.name };
    let mut planned = vec![file.install(entry, in_entry_file, replace)?];
    if let (Some(path), true) = (separate, replace) {
        let file = ProgramFile { client, path, entry: None, name: &entry.name };
        planned.push(file.install(entry, settings, replace)?);
    }
    Ok(planned.into_iter().flatten().collect())
}

/// Plans a removal.
pub(super) fn remove(client: InstallClient, name: &str) -> anyhow::Result<Vec<PlannedFile>> {
    let target = ConfigTarget::find(client)?;
    let own_tools = own_tools::of(client, name)?.ok();
    let separate = own_tools.and_then(|own_tools| own_tools.file);
    let mut files = vec![ProgramFile { client, path: &target.path, entry: Some(&target), name }];
    files.extend(separate.as_deref().map(|path| ProgramFile { client, path, entry: None, name }));
    let mut planned = Vec::new();
    for file in files {
        let before = file::read(file.path)?;
        let record = InstallRecord::load(file.path, name)?;
        if let Some(after) = file.without_helve(before.as_deref(), record.as_ref())? {
            planned.push(PlannedFile { path: file.path.into(), before, after, record: None });
        }
    }
    Ok(planned)
}

/// A file of a program, with what Helve may have in it.
struct ProgramFile<'a> {
    client: InstallClient,
    path: &'a Path,
    /// Set if the file has the server entry.
    entry: Option<&'a ConfigTarget>,
    name: &'a str,
}

impl ProgramFile<'_> {
    /// Returns `None` if nothing is to be done.
    fn install(
        &self,
        entry: &HelveEntry,
        settings: &[Setting],
        replace: bool,
    ) -> anyhow::Result<Option<PlannedFile>> {
        let before = file::read(self.path)?;
        let text = before.as_deref().unwrap_or_default();
        let record = InstallRecord::load(self.path, self.name)?;
        let in_file = || self.path.display().to_string();
        // What an earlier install switched off stays off.
        let replace = replace || record.as_ref().is_some_and(|record| !record.replaced.is_empty());
        let settings = if replace { settings } else { &[] };
        let lacks_entry = match self.entry {
            Some(target) => {
                target.add_entry(before.as_deref(), entry).with_context(in_file)?.is_some()
            }
            None => false,
        };
        let (_, missing) =
            own_tools::switch_off(self.client, text, settings).with_context(in_file)?;
        if !lacks_entry && missing.is_empty() {
            return Ok(None);
        }
        let base = match self.without_helve(before.as_deref(), record.as_ref())? {
            Some(base) => base,
            None => before.clone(),
        };
        let (mut after, replaced) =
            own_tools::switch_off(self.client, base.as_deref().unwrap_or_default(), settings)?;
        if let Some(target) = self.entry {
            after = target.add_entry(Some(&after), entry)?.unwrap_or(after);
        }
        let record = InstallRecord { before: base, after: after.clone(), replaced };
        Ok(Some(PlannedFile {
            path: self.path.into(),
            before,
            after: Some(after),
            record: Some(record),
        }))
    }

    /// Returns the text without Helve's entry and settings, the inner `None` if there would be no file. If the file is
    /// unchanged since the install, this is exactly what was there before. Returns `None` if nothing of Helve is there.
    fn without_helve(
        &self,
        text: Option<&str>,
        record: Option<&InstallRecord>,
    ) -> anyhow::Result<Option<Option<String>>> {
        let Some(text) = text else { return Ok(None) };
        if let Some(record) = record.filter(|record| record.after == text) {
            return Ok(Some(record.before.clone()));
        }
        let in_file = || self.path.display().to_string();
        let without_entry = match self.entry {
            Some(target) => target.remove_entry(Some(text), self.name).with_context(in_file)?,
            None => None,
        };
        let without_entry = without_entry.unwrap_or_else(|| text.to_owned());
        let replaced = record.map_or(&[][..], |record| &record.replaced[..]);
        let after =
            own_tools::switch_on(self.client, &without_entry, replaced).with_context(in_file)?;
        Ok((after != text).then_some(Some(after)))
    }
}

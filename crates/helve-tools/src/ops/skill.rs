//! Loads a skill: its instructions, and the names of the files that belong to it.

use std::path::{Path, PathBuf};

use helve_core::machine::{FindOrder, FindRequest};
use helve_core::{Ask, FileKind, Part, Pattern, ToolContext, ToolError};

/// A skill that a model may load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkillInfo {
    pub name: String,
    pub description: String,
    /// The instructions.
    pub body: String,
    /// The folder with the skill's other files.
    pub folder: PathBuf,
}

/// The skills that can be loaded now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LoadableSkills {
    pub skills: Vec<SkillInfo>,
    /// Names of skills whose files have changed, so that a person must trust them again.
    pub suspended: Vec<String>,
}

/// Where skills come from. They can change while a model works.
pub trait SkillSource: Send + Sync {
    fn current(&self) -> LoadableSkills;
}

/// The other files of a loaded skill.
pub(crate) struct SkillFiles {
    /// Absolute paths, at most as many as were asked for.
    pub(crate) paths: Vec<PathBuf>,
    pub(crate) has_more: bool,
}

/// Asks to use a skill and lists its files. `key` is the permission key.
pub(crate) async fn load(
    ctx: &ToolContext,
    key: &'static str,
    skill: &SkillInfo,
    max_files: usize,
) -> Result<SkillFiles, ToolError> {
    let folder = ctx.files.resolve_path(&skill.folder).await;
    let part = Part::new(key, skill.name.clone()).remember_as(Pattern::Exact(skill.name.clone()));
    let mut request = folder.search_request("list", folder.display());
    request.parts.insert(0, part);
    let grant = ctx.ask(Ask::for_request(request)).await?;
    // Two more: one for SKILL.md, which is left out, one to know whether there are more.
    let find = FindRequest {
        tree: folder.tree(),
        order: FindOrder::BreadthFirst,
        max_results: max_files.saturating_add(2),
    };
    let finding = ctx.files.find(&grant, &folder, find);
    let Some(answer) = ctx.cancel.run_until_cancelled(finding).await else {
        return Err(ctx.words().aborted());
    };
    // A skill is useful without the list of its files.
    let entries = answer.map(|(entries, _)| entries).unwrap_or_default();
    let mut paths: Vec<PathBuf> = entries
        .into_iter()
        .filter(|entry| entry.kind == FileKind::File && entry.path != Path::new("SKILL.md"))
        .map(|entry| skill.folder.join(entry.path))
        .collect();
    let has_more = paths.len() > max_files;
    paths.truncate(max_files);
    Ok(SkillFiles { paths, has_more })
}

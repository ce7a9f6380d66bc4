//! Questions about code to language servers, and the changes that they propose.

use std::path::PathBuf;

use helve_core::change::{AppliedChanges, ChangeKind, FileChange, Rebase};
use helve_core::commit::{FileMode, HardLinks};
use helve_core::language::{
    CodeAnswer, CodeError, CodeIntelligence, CodeOperation, CodePlace, CodePosition, CodeQuery,
    CodeReply, FileRewrite,
};
use helve_core::{
    Ask, CallMode, FileKind, FileToChange, Part, Pattern, Resolved, ToolContext, ToolError,
};
use helve_text::diff::UnifiedDiff;
use serde_json::Value;

use super::change::diff::{NOT_OPENED_YET, difference};
use super::change::permit_loading;
use super::missing::{MissingFile, describe_missing};

/// A question about a file.
pub(crate) struct LanguageRequest<'a> {
    /// The permission key of the tool.
    pub(crate) key: &'static str,
    pub(crate) path: &'a str,
    pub(crate) operation: CodeOperation,
    pub(crate) position: CodePosition,
    pub(crate) text: String,
}

/// What a language server answered or changed, and the result as the server sent it.
pub(crate) struct LanguageReply {
    pub(crate) outcome: LanguageOutcome,
    pub(crate) raw: Option<Value>,
}

/// What a language server answered or changed.
pub(crate) enum LanguageOutcome {
    Answer {
        display_path: String,
        answer: CodeAnswer,
    },
    /// `applied` is `None` in a preview.
    Changed {
        diffs: Vec<UnifiedDiff>,
        applied: Option<AppliedChanges>,
    },
}

/// Why there is no answer.
pub(crate) enum LanguageFailure {
    Context(ToolError),
    Missing(MissingFile),
    Code {
        display_path: String,
        error: CodeError,
    },
    /// A file changed while the server computed the new content.
    Changed {
        display_path: String,
    },
}

impl From<ToolError> for LanguageFailure {
    fn from(error: ToolError) -> Self {
        LanguageFailure::Context(error)
    }
}

/// Asks a language server about a file. Proposed changes are made to all files or to none.
pub(crate) async fn ask_language(
    ctx: &ToolContext,
    languages: &dyn CodeIntelligence,
    links: HardLinks,
    request: LanguageRequest<'_>,
) -> Result<LanguageReply, LanguageFailure> {
    let LanguageRequest { key, path: given, operation, position, text } = request;
    let path = ctx.files.resolve(given).await?;
    let mut read = path.read_request();
    read.parts.insert(0, Part::new(key, "*").remember_as(Pattern::any()));
    ctx.ask(Ask::for_request(read)).await?;
    if path.kind() != Some(FileKind::File) {
        return Err(LanguageFailure::Missing(describe_missing(ctx, given, &path).await));
    }
    let display_path = path.display().to_string();
    let query = CodeQuery { operation, path: path.real(), position, text };
    let Some(reply) = ctx.cancel.run_until_cancelled(languages.ask(query)).await else {
        return Err(ctx.words().aborted().into());
    };
    let CodeReply { mut answer, raw } = match reply {
        Ok(reply) => reply,
        Err(error) => return Err(LanguageFailure::Code { display_path, error }),
    };
    let outcome = match answer {
        CodeAnswer::Rewrites(rewrites) if !rewrites.is_empty() => {
            rewrite(ctx, key, links, rewrites).await?
        }
        _ => {
            if let CodeAnswer::Places { places, .. } = &mut answer {
                hide_unreadable(ctx, places).await;
            }
            LanguageOutcome::Answer { display_path, answer }
        }
    };
    Ok(LanguageReply { outcome, raw })
}

/// Removes the lines of files that may not be read without an ask.
async fn hide_unreadable(ctx: &ToolContext, places: &mut [CodePlace]) {
    let mut known: Vec<(PathBuf, bool)> = Vec::new();
    for place in places.iter_mut().filter(|place| place.source_line.is_some()) {
        let judged = known.iter().find(|(path, _)| *path == place.path).map(|(_, it)| *it);
        let is_readable = match judged {
            Some(is_readable) => is_readable,
            None => {
                let resolved = ctx.files.resolve_path(&place.path).await;
                let is_readable = ctx.files.is_readable_file(&resolved).await;
                known.push((place.path.clone(), is_readable));
                is_readable
            }
        };
        if !is_readable {
            place.source_line = None;
        }
    }
}

async fn rewrite(
    ctx: &ToolContext,
    key: &'static str,
    links: HardLinks,
    rewrites: Vec<FileRewrite>,
) -> Result<LanguageOutcome, LanguageFailure> {
    let mut paths: Vec<Resolved> = Vec::new();
    for rewrite in &rewrites {
        paths.push(ctx.files.resolve_path(&rewrite.path).await);
    }
    let files: Vec<FileToChange<'_>> =
        paths.iter().map(|path| FileToChange { path, may_be_new: false }).collect();
    let permit = permit_loading(ctx, key, &files, || NOT_OPENED_YET.to_string()).await?;
    let mut changes = Vec::new();
    let mut diffs = Vec::new();
    for (path, rewrite) in paths.iter().zip(rewrites) {
        let base = ctx.files.load(&permit, path).await?;
        if base.as_ref().is_none_or(|base| base.bytes != rewrite.old) {
            return Err(LanguageFailure::Changed { display_path: path.display().into() });
        }
        diffs.push(difference(path.display(), Some(&rewrite.old), Some(&rewrite.new)));
        let kind = ChangeKind::Write { bytes: rewrite.new, mode: FileMode::Keep, links };
        changes.push(FileChange { path: path.clone(), base, kind, rebase: Rebase::Never });
    }
    if ctx.call.mode == CallMode::Preview {
        return Ok(LanguageOutcome::Changed { diffs, applied: None });
    }
    let grant = match permit.grant {
        Some(grant) => grant,
        None => {
            let requests = paths.iter().map(|path| path.edit_request(key));
            let ask = requests.fold(Ask::default(), Ask::add_request);
            let preview: String = diffs.iter().map(|diff| diff.text.as_str()).collect();
            ctx.ask(ask.preview(preview)).await?
        }
    };
    let applied = Some(ctx.files.commit(&grant, changes).await?);
    Ok(LanguageOutcome::Changed { diffs, applied })
}

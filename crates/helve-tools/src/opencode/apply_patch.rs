//! `apply_patch`: changes to several files by one patch, all or none.

use bytes::Bytes;
use helve_core::change::{Rebase, Then, Wanted};
use helve_core::commit::{FileMode, HardLinks};
use helve_core::journal::Image;
use helve_core::{
    Ask, ErrorKind, Kind, Resolved, Tool, ToolContext, ToolError, ToolOutput, Traits,
};
use helve_text::diff::Unified;
use helve_text::edit::Match;
use helve_text::patch::{FilePatch, Hunk, parse, place};
use helve_text::view::View;
use schemars::JsonSchema;
use serde::Deserialize;

use super::change::overwrite::{check_shown, check_unchanged};
use super::change::settings::Settings;
use super::change::syntax::{self, Draft};
use super::words::change::{counts, difference, leniently, made};
use super::words::patch::{inexact, malformed, misplaced};

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Args {
    /// The whole patch
    #[schemars(length(min = 1))]
    patch_text: String,
}

/// How many files one patch may touch.
const MOST_FILES: usize = 1000;
/// What to do instead of adding a file that exists.
const UPDATE_INSTEAD: &str = "Update it instead; or read it first, if it is to be replaced.";
/// The bits that let a file be executed.
const EXECUTABLE: u32 = 0o111;
/// What the system gives a new file, before its mask.
const NEW_MODE: u32 = 0o644;

pub(super) struct ApplyPatch {
    pub(super) settings: Settings,
}

impl Tool for ApplyPatch {
    type Args = Args;
    const NAME: &'static str = "apply_patch";
    const ABOUT: &'static str = include_str!("apply_patch.txt");
    const GROUP: &'static str = "edit";
    const TRAITS: Traits = Traits::MUTATES;

    async fn run(&self, args: Args, ctx: &ToolContext) -> Result<ToolOutput, ToolError> {
        let patch = parse(&args.patch_text).map_err(|err| malformed(&err))?;
        if patch.files.len() > MOST_FILES {
            let message =
                format!("The patch names {} files; {MOST_FILES} are the most.", patch.files.len());
            return Err(ToolError::new(ErrorKind::InvalidArgs, message).hint("Split it."));
        }
        let matching = self.settings.matching;
        let mut desk = Desk { papers: Vec::new(), remarks: Vec::new(), matching };
        for file in patch.files {
            desk.apply(ctx, file).await?;
        }
        let Desk { papers, mut remarks, .. } = desk;
        let papers: Vec<Paper> = papers.into_iter().filter(Paper::is_changed).collect();
        if papers.is_empty() {
            return Err(ToolError::new(
                ErrorKind::Stale,
                "The files are already as the patch wants them. Nothing was written.",
            ));
        }
        let (papers, diffs) = ctx
            .compute(move || {
                let diffs: Vec<Unified> = papers.iter().map(Paper::difference).collect();
                (papers, diffs)
            })
            .await?;
        let drafts: Vec<Draft> = papers.iter().map(Paper::draft).collect();
        syntax::demand(ctx, self.settings.syntax, &drafts).await?;
        let mut ask = Ask::default();
        for paper in &papers {
            ask = ask.also(paper.path.editing(Self::NAME));
            if let Some((to, _)) = &paper.to {
                ask = ask.also(to.editing(Self::NAME));
            }
        }
        let preview: Vec<String> =
            papers.iter().zip(&diffs).map(|(paper, diff)| paper.previewed(diff)).collect();
        let grant = ctx.ask(ask.preview(preview.join("\n"))).await?;
        let looking = syntax::look(ctx, self.settings.syntax, drafts);
        let lines: Vec<String> = papers.iter().map(Paper::told).collect();
        let files = if papers.len() == 1 { "file" } else { "files" };
        let title = format!("{} {files}", papers.len());
        let links = self.settings.links;
        let wanted = papers.into_iter().map(|paper| paper.wanted(links)).collect();
        let done = ctx.files.commit(&grant, wanted).await?;
        let mut first = format!("Applied the patch: {}.\n{}", counts(&diffs), lines.join("\n"));
        remarks.insert(0, String::new());
        first.push_str(&remarks.join("\n"));
        let all: String = diffs.iter().map(|diff| diff.text.as_str()).collect();
        Ok(ToolOutput::text(title, made(first.trim_end(), &done, &diffs) + &looking.await)
            .with("diff", all))
    }
}

/// The files a patch is about, as they would become.
struct Desk {
    papers: Vec<Paper>,
    remarks: Vec<String>,
    matching: Match,
}

/// One file: what it was, and what it is to be.
struct Paper {
    path: Resolved,
    base: Option<Image>,
    now: Option<Bytes>,
    mode: FileMode,
    /// Another name, and what is there.
    to: Option<(Resolved, Option<Image>)>,
}

impl Desk {
    /// Whether an earlier section moves a file away from there.
    fn is_source(&self, path: &Resolved) -> bool {
        self.papers.iter().any(|paper| paper.path.real() == path.real())
    }

    async fn apply(&mut self, ctx: &ToolContext, file: FilePatch) -> Result<(), ToolError> {
        match file {
            FilePatch::Add { path, text, executable } => {
                let paper = self.paper(ctx, &path).await?;
                if let (Some(_), Some(base)) = (&paper.now, &paper.base) {
                    check_shown(ctx, &paper.path, base, UPDATE_INSTEAD).await?;
                }
                paper.now = Some(text.into());
                paper.set_executable(executable);
            }
            FilePatch::Delete { path, was } => {
                let paper = self.paper(ctx, &path).await?;
                let Some(now) = &paper.now else { return Err(missing(ctx, &paper.path).await) };
                if let Some(was) = was
                    && !reads_as(now, &was)
                {
                    let message = format!(
                        "{} does not read as the patch says it does. Nothing was written.",
                        paper.path.shown()
                    );
                    return Err(ToolError::new(ErrorKind::Stale, message)
                        .hint("Read it, then make the patch anew."));
                }
                if let Some(base) = &paper.base {
                    check_unchanged(ctx, &paper.path, base).await?;
                }
                paper.now = None;
            }
            FilePatch::Update { path, move_to, executable, hunks } => {
                let matching = self.matching;
                let to = match move_to {
                    Some(to) => Some(self.destination(ctx, &to).await?),
                    None => None,
                };
                let paper = self.paper(ctx, &path).await?;
                let Some(now) = paper.now.clone() else {
                    return Err(missing(ctx, &paper.path).await);
                };
                let shown = paper.path.shown().to_string();
                let named = shown.clone();
                let patching = ctx.compute(move || patched(&named, now, &hunks, matching));
                let (bytes, how) = patching.await??;
                paper.now = Some(bytes);
                paper.set_executable(executable);
                paper.go_to(to)?;
                self.remarks.extend(how.map(|how| format!("{shown}: {how}")));
            }
        }
        Ok(())
    }

    /// The paper of a file, loaded when it is first named; a later section sees what earlier ones did.
    async fn paper(&mut self, ctx: &ToolContext, named: &str) -> Result<&mut Paper, ToolError> {
        let path = ctx.files.resolve(named).await?;
        let real = path.real();
        let known = self.papers.iter().position(|paper| match &paper.to {
            Some((to, _)) => to.real() == real,
            None => paper.path.real() == real,
        });
        let at = match known {
            Some(at) => at,
            None => {
                if path.kind() == Some(Kind::Folder) {
                    let message = format!("{} is a folder. Nothing was written.", path.shown());
                    return Err(ToolError::new(ErrorKind::InvalidArgs, message));
                }
                let base = ctx.files.load(&path).await?;
                let now = base.as_ref().map(|base| base.bytes.clone());
                self.papers.push(Paper { path, base, now, mode: FileMode::Keep, to: None });
                self.papers.len() - 1
            }
        };
        Ok(&mut self.papers[at])
    }

    /// A new name for a file; what is already there must have been seen.
    async fn destination(
        &mut self,
        ctx: &ToolContext,
        named: &str,
    ) -> Result<(Resolved, Option<Image>), ToolError> {
        let to = ctx.files.resolve(named).await?;
        let over = ctx.files.load(&to).await?;
        if self.papers.iter().any(|paper| paper.path.real() == to.real() && paper.to.is_none()) {
            let message = format!(
                "The patch changes {} and moves another file onto it. Nothing was written.",
                to.shown()
            );
            return Err(
                ToolError::new(ErrorKind::InvalidArgs, message).hint("Make two patches of it.")
            );
        }
        if let Some(over) = &over
            && !self.is_source(&to)
        {
            check_shown(ctx, &to, over, "Read it first, if it is to be replaced.").await?;
        }
        Ok((to, over))
    }
}

impl Paper {
    /// Gives the file another name. A move onto itself is no move.
    fn go_to(&mut self, to: Option<(Resolved, Option<Image>)>) -> Result<(), ToolError> {
        let Some((to, over)) = to.filter(|(to, _)| to.real() != self.path.real()) else {
            return Ok(());
        };
        if self.mode != FileMode::Keep {
            let message = format!(
                "The patch moves {} and changes its mode. Nothing was written.",
                self.path.shown()
            );
            return Err(
                ToolError::new(ErrorKind::InvalidArgs, message).hint("Make two patches of it.")
            );
        }
        self.to = Some((to, over));
        Ok(())
    }

    fn is_changed(&self) -> bool {
        let was = self.base.as_ref().map(|base| &base.bytes[..]);
        self.to.is_some() || was != self.now.as_deref() || self.mode != FileMode::Keep
    }

    fn set_executable(&mut self, executable: Option<bool>) {
        let Some(executable) = executable else { return };
        let mode = self.base.as_ref().map_or(NEW_MODE, |base| base.mode);
        let wanted = if executable { mode | EXECUTABLE } else { mode & !EXECUTABLE };
        if self.base.is_none() && !executable || wanted == mode && self.base.is_some() {
            return;
        }
        self.mode = FileMode::Set(wanted);
    }

    fn difference(&self) -> Unified {
        difference(
            self.path.shown(),
            self.base.as_ref().map(|base| &base.bytes[..]),
            self.now.as_deref(),
        )
    }

    fn draft(&self) -> Draft {
        let target = self.to.as_ref().map_or(&self.path, |(to, _)| to);
        let old = self.base.as_ref().map(|base| base.bytes.clone());
        Draft { shown: target.shown().into(), old, new: self.now.clone() }
    }

    fn previewed(&self, diff: &Unified) -> String {
        let shown = self.path.shown();
        let first = match (&self.to, self.mode) {
            (Some((to, _)), _) => format!("{shown} becomes {}\n", to.shown()),
            (None, FileMode::Set(mode)) if mode & EXECUTABLE != 0 => {
                format!("{shown} becomes executable\n")
            }
            (None, FileMode::Set(_)) => format!("{shown} is no longer executable\n"),
            (None, FileMode::Keep) => String::new(),
        };
        first + &diff.text
    }

    /// `A`dded, `D`eleted, `M`odified, `R`enamed.
    fn told(&self) -> String {
        let shown = self.path.shown();
        match (&self.base, &self.now, &self.to) {
            (_, _, Some((to, _))) => format!("R {shown} -> {}", to.shown()),
            (None, _, None) => format!("A {shown}"),
            (Some(_), None, None) => format!("D {shown}"),
            (Some(_), Some(_), None) => format!("M {shown}"),
        }
    }

    fn wanted(self, links: HardLinks) -> Wanted {
        let Paper { path, base, now, mode, to } = self;
        let then = match (now, to) {
            (None, _) => Then::Remove,
            (Some(bytes), None) => Then::Write { bytes, mode, links },
            (Some(bytes), Some((to, over))) => Then::Move { to: Box::new(to), over, bytes },
        };
        Wanted { path, base, then, rebase: Rebase::Merge }
    }
}

/// A file after its hunks, and how leniently they matched.
fn patched(
    shown: &str,
    now: Bytes,
    hunks: &[Hunk],
    matching: Match,
) -> Result<(Bytes, Option<String>), ToolError> {
    if hunks.is_empty() {
        return Ok((now, None));
    }
    let Ok(view) = View::new(&now) else {
        let message = format!("{shown} is not text, so it cannot be patched. Nothing was written.");
        return Err(ToolError::new(ErrorKind::Failed, message));
    };
    let patched = place::apply(&view, hunks).map_err(|err| misplaced(shown, hunks.len(), &err))?;
    let mut tolerances: Vec<_> = patched.tolerances.concat();
    tolerances.dedup();
    match (leniently(tolerances.into_iter()), matching) {
        (Some(_), Match::Exact) => Err(inexact(shown)),
        (how, Match::Safe | Match::Exact) => Ok((patched.bytes.into(), how)),
    }
}

/// Line endings aside, since a patch cannot carry them.
fn reads_as(now: &[u8], was: &str) -> bool {
    let Ok(view) = View::new(now) else { return false };
    let plain = |text: &str| text.replace("\r\n", "\n").trim_end_matches('\n').to_string();
    plain(view.text()) == plain(was)
}

async fn missing(ctx: &ToolContext, path: &Resolved) -> ToolError {
    let err = super::read::not_found(ctx, path).await;
    ToolError { message: format!("{} Nothing was written.", err.message), ..err }
}

#[cfg(test)]
mod tests {
    use expect_test::expect;

    use crate::opencode::check;

    /// A call with the patch as its argument.
    fn patch(text: &str) -> String {
        format!("--- call apply_patch {}\n", serde_json::json!({"patchText": text}))
    }

    #[test]
    fn files_are_added_updated_deleted_and_moved_in_one_question() {
        let text = "*** Begin Patch\n*** Add File: new.txt\n+hi\n*** Update File: a.txt\n@@\n one\n-two\n+2\n*** Delete File: old.txt\n*** Update File: from.txt\n*** Move to: to.txt\n*** End Patch\n";
        let files = "--- reply once\n--- file a.txt\none\ntwo\nthree\n--- file old.txt\nx\n--- file from.txt\ny\n";
        check(
            &format!("{files}{}", patch(text)),
            expect![[r#"
            edit new.txt by apply_patch [lasting: this]
            edit a.txt by apply_patch [lasting: this]
            edit old.txt by apply_patch [lasting: this]
            edit from.txt by apply_patch [lasting: this]
            edit to.txt by apply_patch [lasting: this]
            --- /dev/null
            +++ new.txt
            @@ -0,0 +1 @@
            +hi

            --- a.txt
            +++ a.txt
            @@ -1,3 +1,3 @@
             one
            -two
            +2
             three

            --- old.txt
            +++ /dev/null
            @@ -1 +0,0 @@
            -x

            from.txt becomes to.txt
            -> Yes(Once)
            == 4 files
            Applied the patch: 2 lines added, 2 removed.
            A new.txt
            M a.txt
            D old.txt
            R from.txt -> to.txt

            --- /dev/null
            +++ new.txt
            @@ -0,0 +1 @@
            +hi

            --- a.txt
            +++ a.txt
            @@ -1,3 +1,3 @@
             one
            -two
            +2
             three

            --- old.txt
            +++ /dev/null
            @@ -1 +0,0 @@
            -x
            >> a.txt
            one
            2
            three
            >> from.txt is gone
            >> new.txt
            hi
            >> old.txt is gone
            >> to.txt
            y
        "#]],
        );
    }

    #[test]
    fn nothing_is_touched_when_one_file_does_not_fit() {
        let text = "*** Begin Patch\n*** Update File: a.txt\n-one\n+1\n*** Update File: b.txt\n-nine\n+9\n*** End Patch\n";
        let files = "--- rule edit * allow\n--- file a.txt\none\n--- file b.txt\ntwo\n";
        check(
            &format!("{files}{}", patch(text)),
            expect![[r#"
                !! Stale
                The hunk for b.txt (line 6 of the patch): its old text is not in b.txt, and nothing in it is similar. Nothing was written.
                Read the file; it may be another one, or have changed.
            "#]],
        );
    }

    #[test]
    fn several_sections_for_one_file_follow_each_other() {
        let text = "*** Begin Patch\n*** Update File: a.txt\n-one\n+1\n*** Update File: a.txt\n 1\n-two\n+2\n*** End Patch\n";
        check(
            &format!("--- rule edit * allow\n--- file a.txt\none\ntwo\n{}", patch(text)),
            expect![[r#"
                == 1 file
                Applied the patch: 2 lines added, 2 removed.
                M a.txt

                --- a.txt
                +++ a.txt
                @@ -1,2 +1,2 @@
                -one
                -two
                +1
                +2
                >> a.txt
                1
                2
            "#]],
        );
    }

    #[test]
    fn a_move_onto_itself_is_no_delete() {
        let text = "*** Begin Patch\n*** Update File: a.txt\n*** Move to: ./a.txt\n-one\n+1\n*** End Patch\n";
        check(
            &format!("--- rule edit * allow\n--- file a.txt\none\n{}", patch(text)),
            expect![[r#"
                !! Stale
                a.txt exists and was not read in this conversation. Nothing was written.
                Read it first, if it is to be replaced.
            "#]],
        );
    }

    #[test]
    fn adding_over_a_file_needs_it_read() {
        let text = "*** Begin Patch\n*** Add File: a.txt\n+new\n*** End Patch\n";
        let call = patch(text);
        check(
            &format!(
                "--- rule edit * allow\n--- file a.txt\none\n{call}--- call read {{\"filePath\": \"a.txt\"}}\n{call}"
            ),
            expect![[r#"
                !! Stale
                a.txt exists and was not read in this conversation. Nothing was written.
                Update it instead; or read it first, if it is to be replaced.
                == a.txt
                <file>
                00001| one

                (End of file, 1 line)
                </file>
                == 1 file
                Applied the patch: 1 line added, 1 removed.
                M a.txt

                --- a.txt
                +++ a.txt
                @@ -1 +1 @@
                -one
                +new
                >> a.txt
                new
            "#]],
        );
    }

    #[test]
    fn a_unified_diff_is_understood() {
        let text = "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n";
        check(
            &format!("--- rule edit * allow\n--- file a.txt\none\ntwo\n{}", patch(text)),
            expect![[r#"
                == 1 file
                Applied the patch: 1 line added, 1 removed.
                M a.txt

                --- a.txt
                +++ a.txt
                @@ -1,2 +1,2 @@
                 one
                -two
                +2
                >> a.txt
                one
                2
            "#]],
        );
    }

    #[test]
    fn what_is_no_patch_and_what_has_no_place() {
        let file = "--- rule edit * allow\n--- file a.txt\nsame\nsame\n";
        let ambiguous = "*** Begin Patch\n*** Update File: a.txt\n-same\n+x\n*** End Patch\n";
        let missing = "*** Begin Patch\n*** Update File: b.txt\n-same\n+x\n*** End Patch\n";
        let calls = [patch("hello"), patch(ambiguous), patch(missing)].concat();
        check(
            &format!("{file}{calls}"),
            expect![[r#"
            !! InvalidArgs
            The patch cannot be read: line 1: expected `*** Begin Patch`, or a unified diff, found "hello". Nothing was written.
            Send the whole patch again, from *** Begin Patch to *** End Patch.
            !! Stale
            The hunk for a.txt (line 3 of the patch): its old text is in the file 2 times, at lines 1, 2. Nothing was written.
            Quote more lines around it, or name the function with @@.
            !! NotFound
            b.txt does not exist. Nothing was written.
            Did you mean a.txt?
        "#]],
        );
    }
}

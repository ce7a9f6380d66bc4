//! Changes a file in one step: the machine loads it, computes its new content and starts to write it on one thread.
//!
//! For a change that the rules allow, so that nobody has to see it before it is made.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use futures::future::maybe_done;
use helve_policy::Act;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::{
    AppliedChanges, ChangeKind, CommitAttempt, CommitJob, CommitOutcome, FileChange, LoadPermit,
    MAX_BYTES, Rebase, to_image,
};
use crate::BoxFuture;
use crate::files::Files;
use crate::gate::Grant;
use crate::journal::FileImage;
use crate::machine::commit::{
    self, CommitChange, CommitError, Committed, ExpectedContent, FileMode, HardLinks,
};
use crate::machine::{FileContent, MachineError};
use crate::output::ToolError;
use crate::resolved::Resolved;
use crate::seen::SeenState;

/// How long loading a file and computing its new content may take, because a file system may never answer.
const LOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// The new content of a file.
pub struct ComputedContent<T> {
    pub bytes: Bytes,
    pub rebase: Rebase,
    /// What else the computation found.
    pub value: T,
}

/// A change whose new content is known, and which is being written. It completes even if this value is dropped.
pub struct DirectChange<T> {
    /// The content that the change was computed from, and whether the session has seen it.
    pub base: Bytes,
    pub seen: SeenState,
    pub bytes: Bytes,
    pub value: T,
    committing: JoinHandle<CommitOutcome>,
    display_path: String,
}

/// The result of the computation; an error if it panicked.
type Computed<T, E> = Result<Result<ComputedContent<T>, E>, Box<dyn Any + Send>>;

impl Files {
    /// Loads a file, computes its new content and starts to write it. The caller needs a grant beforehand.
    pub async fn start_change<T, E>(
        &self,
        (permit, grant): (&LoadPermit<'_>, &Grant<'_>),
        path: Resolved,
        links: HardLinks,
        compute: impl FnOnce(&FileImage) -> Result<ComputedContent<T>, E> + Send + 'static,
    ) -> Result<DirectChange<T>, E>
    where
        T: Send + 'static,
        E: From<ToolError> + Send + 'static,
    {
        let words = self.session.dialect.words;
        let real = path.real();
        if !permit.readable.contains(&real) || !grant.covers(&Act::Edit(real.clone())) {
            return Err(words.not_granted().into());
        }
        let (sender, mut loaded) = oneshot::channel();
        let (recorded, awaited) = commit::record_signal();
        let mut committing = {
            let (machine, at) = (path.machine.clone(), path.place.clone());
            let compute = Box::new(move |content| {
                let loaded = load_and_compute(content, compute);
                let change = loaded.as_ref().ok().and_then(|(base, computed)| {
                    let bytes = computed.as_ref().ok()?.as_ref().ok()?.bytes.clone();
                    let expect = ExpectedContent::File(base.bytes.clone());
                    Some(CommitChange::Write { at, expect, bytes, mode: FileMode::Keep, links })
                });
                // Sending fails if nobody waits any more. Then nothing changes, because nobody confirms the record.
                sender.send(loaded).ok();
                change
            });
            let at = path.place.clone();
            Box::pin(maybe_done(async move {
                machine.read_and_commit(at, MAX_BYTES, compute, awaited).await
            }))
        };
        let loading = async {
            tokio::select! {
                biased;
                loaded = &mut loaded => loaded,
                () = &mut committing => (&mut loaded).await,
            }
        };
        let failed = |err: MachineError| E::from(words.machine_error(path.display(), &err));
        let (base, computed) = match timeout(LOAD_TIMEOUT, loading).await {
            Ok(Ok(loaded)) => loaded.map_err(failed)?,
            Ok(Err(_dropped)) => return Err(words.panicked(&self.call.tool).into()),
            Err(_) => return Err(failed(MachineError::TimedOut(LOAD_TIMEOUT))),
        };
        let ComputedContent { bytes, rebase, value } =
            computed.map_err(|_panic| E::from(words.panicked(&self.call.tool)))??;
        let seen = self.session.seen_state(&real, &base).await;
        let committing: BoxFuture<'static, Result<Vec<Committed>, CommitError>> =
            Box::pin(async move {
                committing.as_mut().await;
                committing.as_mut().take_output().unwrap_or_else(|| Ok(Vec::new()))
            });
        let attempt = CommitAttempt { recorded, committing };
        let display_path = path.display().to_string();
        let old = base.bytes.clone();
        let kind = ChangeKind::Write { bytes: bytes.clone(), mode: FileMode::Keep, links };
        let change = FileChange { path, base: Some(base), kind, rebase };
        let (session, call) = (self.session.clone(), self.call.clone());
        let job = CommitJob { session, call, undoes: Vec::new() };
        let committing = tokio::spawn(async move { job.commit(vec![change], Some(attempt)).await });
        Ok(DirectChange { base: old, seen, bytes, value, committing, display_path })
    }

    /// Waits until a change is written.
    pub async fn finish_change<T>(
        &self,
        change: DirectChange<T>,
    ) -> Result<(T, AppliedChanges), ToolError> {
        let applied = self.await_commit(change.committing, &change.display_path).await?;
        Ok((change.value, applied))
    }
}

fn load_and_compute<T, E>(
    content: Result<FileContent, MachineError>,
    compute: impl FnOnce(&FileImage) -> Result<ComputedContent<T>, E>,
) -> Result<(FileImage, Computed<T, E>), MachineError> {
    let base = to_image(content?);
    let computed = catch_unwind(AssertUnwindSafe(|| compute(&base)));
    Ok((base, computed))
}

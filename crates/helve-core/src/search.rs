//! Finds and searches files for a call, as far as its permissions allow.

use helve_policy::Readable;

use crate::files::Files;
use crate::flow::Flow;
use crate::gate::Grant;
use crate::machine::{
    FileKind, FindRequest, FoundFile, MachineError, MatchedFile, SearchCounts, SearchError,
    SearchRequest,
};
use crate::resolved::Resolved;

impl Files {
    /// Finds files below a path by name. No content is read.
    pub async fn find(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        mut request: FindRequest,
    ) -> Result<(Vec<FoundFile>, SearchCounts), SearchError> {
        self.require_read_grant(grant, path).map_err(|_| SearchError::NotGranted)?;
        request.tree.at = path.place.clone();
        collect(path.machine.find(request)).await
    }

    /// Searches the content of files below a path. Files that may not be read without asking are skipped and counted.
    /// If the path is a single file, the grant covers reading it.
    pub async fn search(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        mut request: SearchRequest,
    ) -> Result<(Vec<MatchedFile>, SearchCounts), SearchError> {
        self.require_read_grant(grant, path).map_err(|_| SearchError::NotGranted)?;
        request.tree.at = path.place.clone();
        let (policy, subagent_walls) = self.session.gate.policy_and_walls().await;
        let root = self.session.workspace.root();
        let readable = Readable::new(&policy, &subagent_walls, root, &path.real());
        // For a single file, the grant covers reading it. For a folder, each file below it is judged.
        let is_granted = path.kind() != Some(FileKind::Folder);
        request.readable = Some(if is_granted { readable.with_base_granted() } else { readable });
        collect(path.machine.search(request)).await
    }
}

/// Collects all items of a flow, and its final value.
async fn collect<T>(
    mut flow: Flow<Vec<T>, Result<SearchCounts, SearchError>>,
) -> Result<(Vec<T>, SearchCounts), SearchError> {
    let mut all = Vec::new();
    while let Some(items) = flow.next().await {
        all.extend(items);
    }
    let incomplete =
        || SearchError::Machine(MachineError::Other("the search ended unexpectedly".into()));
    let counts = flow.end().await.unwrap_or_else(|| Err(incomplete()))?;
    Ok((all, counts))
}

//! One call's view of finding and searching files.

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
        mut want: FindRequest,
    ) -> Result<(Vec<FoundFile>, SearchCounts), SearchError> {
        self.require_read_grant(grant, path).map_err(|_| SearchError::NotGranted)?;
        want.tree.at = path.place.clone();
        gather(path.machine.find(want)).await
    }

    /// Searches files below a path. Files whose reading needs an ask are skipped and counted, unless the call named them.
    pub async fn search(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        mut want: SearchRequest,
    ) -> Result<(Vec<MatchedFile>, SearchCounts), SearchError> {
        self.require_read_grant(grant, path).map_err(|_| SearchError::NotGranted)?;
        want.tree.at = path.place.clone();
        let (policy, agent_walls) = self.session.gate.policy_and_walls().await;
        let root = self.session.workspace.root();
        let readable = Readable::new(&policy, &agent_walls, root, &path.real());
        // The grant covers a file that was named, but not a folder that has been replaced by a file since.
        let is_granted = path.kind() != Some(FileKind::Folder);
        want.readable = Some(if is_granted { readable.with_base_granted() } else { readable });
        gather(path.machine.search(want)).await
    }
}

/// Collects a flow to its end.
async fn gather<T>(
    mut flow: Flow<Vec<T>, Result<SearchCounts, SearchError>>,
) -> Result<(Vec<T>, SearchCounts), SearchError> {
    let mut all = Vec::new();
    while let Some(items) = flow.next().await {
        all.extend(items);
    }
    let broken = || SearchError::Machine(MachineError::Other("the search broke off".into()));
    let counts = flow.end().await.unwrap_or_else(|| Err(broken()))?;
    Ok((all, counts))
}

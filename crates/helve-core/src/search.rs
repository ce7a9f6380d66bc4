//! One call's view of finding and searching: what must be asked, and which of the files met may be told of.

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
    /// The names of files below a path. Their content is not looked at.
    pub async fn find(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        mut want: FindRequest,
    ) -> Result<(Vec<FoundFile>, SearchCounts), SearchError> {
        self.demand(grant, path).map_err(|_| SearchError::NotGranted)?;
        want.tree.at = path.place.clone();
        gather(path.machine.find(want)).await
    }

    /// What a pattern matches in files below a path. Of a file that must be asked for and was not named, nothing is told.
    pub async fn search(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        mut want: SearchRequest,
    ) -> Result<(Vec<MatchedFile>, SearchCounts), SearchError> {
        self.demand(grant, path).map_err(|_| SearchError::NotGranted)?;
        want.tree.at = path.place.clone();
        let (policy, more) = self.session.gate.rules().await;
        let root = self.session.workspace.root();
        let readable = Readable::new(&policy, &more, root, &path.real());
        // A folder that has become a file since was not granted as a file.
        let is_granted = path.kind() != Some(FileKind::Folder);
        want.readable = Some(if is_granted { readable.granted() } else { readable });
        gather(path.machine.search(want)).await
    }
}

/// Reads a flow to its end. The machine holds it to what was wanted.
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

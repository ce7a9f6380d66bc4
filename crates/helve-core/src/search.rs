//! One call's view of finding and searching: what must be asked, and which of the files met may be told of.

mod readable;

use std::time::Duration;

use crate::files::{Files, Resolved};
use crate::flow::Flow;
use crate::machine::{
    Counts, Find, Found, Hidden, Hit, Ignored, Kind, MachineError, Search, SearchError, Tree,
};
use crate::permission::{Ask, Grant, Let, Part};

pub use readable::Readable;

/// How long a walk may take unless the tool says otherwise.
const DEADLINE: Duration = Duration::from_secs(10);
/// How long ignored files are looked at where nothing else was found.
const PEEK: Duration = Duration::from_millis(200);

impl Ask {
    /// Looking for something in a folder, under the tool's own key. A file that is named is also read.
    pub fn search(mut self, permission: &'static str, subject: &str, path: &Resolved) -> Self {
        self.parts.extend(path.outside());
        let part = Part::new(permission, subject).always_exactly();
        let act = Let::Read(path.real());
        if path.kind() == Some(Kind::Folder) {
            return self.and(act, part);
        }
        self.parts.push(part);
        self.and(act, path.part("read"))
    }
}

impl Resolved {
    /// Everything below this path: hidden files too, ignored files not.
    pub fn tree(&self) -> Tree {
        Tree {
            at: self.place.clone(),
            globs: Vec::new(),
            ignored: Ignored::Skip { peek: PEEK },
            hidden: Hidden::Include,
            deadline: DEADLINE,
        }
    }
}

impl Files {
    /// The names of files below a path. Their content is not looked at.
    pub async fn find(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        mut want: Find,
    ) -> Result<(Vec<Found>, Counts), SearchError> {
        self.demand(grant, path).map_err(|_| SearchError::NotGranted)?;
        want.tree.at = path.place.clone();
        gather(path.machine.find(want)).await
    }

    /// What a pattern matches in files below a path. Of a file that must be asked for and was not named, nothing is told.
    pub async fn search(
        &self,
        grant: &Grant<'_>,
        path: &Resolved,
        mut want: Search,
    ) -> Result<(Vec<Hit>, Counts), SearchError> {
        self.demand(grant, path).map_err(|_| SearchError::NotGranted)?;
        want.tree.at = path.place.clone();
        let (policy, more) = self.session.gate.rules().await;
        let root = self.session.workspace.root();
        let mut readable = Readable::new(&policy, &more, root, &path.real());
        // A folder that became a file meanwhile was not asked for as one.
        readable.is_granted = path.kind() != Some(Kind::Folder);
        want.readable = Some(readable);
        gather(path.machine.search(want)).await
    }
}

/// Reads a flow to its end. The machine holds it to what was wanted.
async fn gather<T>(
    mut flow: Flow<Vec<T>, Result<Counts, SearchError>>,
) -> Result<(Vec<T>, Counts), SearchError> {
    let mut all = Vec::new();
    while let Some(items) = flow.next().await {
        all.extend(items);
    }
    let broken = || SearchError::Machine(MachineError::Other("the search broke off".into()));
    let counts = flow.end().await.unwrap_or_else(|| Err(broken()))?;
    Ok((all, counts))
}

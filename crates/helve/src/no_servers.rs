//! Stands in for the MCP servers in a build without them.

pub(crate) struct Servers;

impl Servers {
    pub(crate) fn begin(&self) {}

    pub(crate) async fn all(&self) {}

    pub(crate) async fn bring(&self, _tool: &str) {}

    pub(crate) async fn close(&self) {}
}

//! Replaces `helve_ext::servers` in builds without the feature `servers`. All functions do nothing.

pub(crate) struct Servers;

impl Servers {
    pub(crate) fn start_all(&self) {}

    pub(crate) async fn start_all_and_wait(&self) {}

    pub(crate) async fn start_for_tool(&self, _tool: &str) {}

    pub(crate) async fn close(&self) {}
}

//! What others may do before and after a call: plugins, audit, policy of the embedding program.

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;

use crate::BoxFuture;
use crate::call::{CallRef, ToolCall, ToolResult};
use crate::dialect::HookFault;

/// Sees every call of a workspace. Asynchronous: a plugin lives in another process.
///
/// Permission is judged on the arguments as the hooks left them. A `before` that fails, panics or
/// takes too long refuses the call; an `after` that does is passed over.
pub trait Hook: Send + Sync {
    fn name(&self) -> &str;

    /// May rewrite the arguments, or refuse with a reason.
    fn before<'a>(
        &'a self,
        _who: &'a CallRef,
        _call: &'a mut ToolCall,
    ) -> BoxFuture<'a, Result<(), Arc<str>>> {
        Box::pin(async { Ok(()) })
    }

    /// May change what a shell command will be before it is judged, or refuse with a reason.
    fn spawn<'a>(
        &'a self,
        _who: &'a CallRef,
        _planned: &'a mut PlannedCommand,
    ) -> BoxFuture<'a, Result<(), Arc<str>>> {
        Box::pin(async { Ok(()) })
    }

    /// May change what is given back.
    fn after<'a>(
        &'a self,
        _who: &'a CallRef,
        _call: &'a ToolCall,
        _result: &'a mut ToolResult,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async {})
    }
}

/// A shell command that is about to be judged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedCommand {
    pub command: String,
    pub description: String,
    /// As the call gave it: relative to the root, or absolute.
    pub folder: String,
    /// Variables to set, besides those that every command has.
    pub environment: Vec<(OsString, OsString)>,
}

/// Waits for a hook that may refuse; one that panics or takes too long refuses too.
pub(crate) async fn guarded(
    running: BoxFuture<'_, Result<(), Arc<str>>>,
    patience: Duration,
) -> Result<(), HookFault> {
    match tokio::time::timeout(patience, AssertUnwindSafe(running).catch_unwind()).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(reason))) => Err(HookFault::Refused(reason)),
        Ok(Err(_panic)) => Err(HookFault::Panicked),
        Err(_elapsed) => Err(HookFault::TimedOut(patience)),
    }
}

//! Hooks that run before and after calls, for plugins, auditing, or the policy of an embedding program.

use std::ffi::OsString;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use helve_policy::{Action, Ask};

use crate::BoxFuture;
use crate::call::{CallRef, ToolCall, ToolResult};
use crate::dialect::HookFault;

/// Sees every call of a workspace, and may change or refuse it. The methods are asynchronous because a plugin may be
/// another process.
///
/// Permission is judged after all `before` hooks have run, on the arguments as the hooks left them. If `before` or
/// `spawn` fails, panics or times out, the call is refused; if `after` does, its changes are discarded.
pub trait Hook: Send + Sync {
    fn name(&self) -> &str;

    /// May rewrite the arguments, or refuse with a reason.
    fn before<'a>(
        &'a self,
        _call_ref: &'a CallRef,
        _call: &'a mut ToolCall,
    ) -> BoxFuture<'a, Result<(), Arc<str>>> {
        Box::pin(async { Ok(()) })
    }

    /// May change a shell command before it is judged, or refuse with a reason.
    fn before_spawn<'a>(
        &'a self,
        _call_ref: &'a CallRef,
        _planned: &'a mut PlannedCommand,
    ) -> BoxFuture<'a, Result<(), Arc<str>>> {
        Box::pin(async { Ok(()) })
    }

    /// May make the decision about an ask stricter. The text is the reason. The strictest answer of all hooks and rules
    /// counts, so `Allow` changes nothing. A panic or a timeout counts as `Ask`.
    fn judge<'a>(
        &'a self,
        _call_ref: &'a CallRef,
        _ask: &'a Ask,
    ) -> BoxFuture<'a, (Action, Option<Arc<str>>)> {
        Box::pin(async { (Action::Allow, None) })
    }

    /// How long the hook may take; `None` for the engine's default.
    fn time_limit(&self) -> Option<Duration> {
        None
    }

    /// May change the result.
    fn after<'a>(
        &'a self,
        _call_ref: &'a CallRef,
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
    /// The working directory as the call gave it: relative to the root, or absolute.
    pub folder: String,
    /// Variables to set in addition to those of every command.
    pub environment: Vec<(OsString, OsString)>,
}

/// Awaits the decision of a hook about an ask.
pub(crate) async fn run_judge(
    running: BoxFuture<'_, (Action, Option<Arc<str>>)>,
    timeout: Duration,
) -> (Action, Option<Arc<str>>) {
    match tokio::time::timeout(timeout, AssertUnwindSafe(running).catch_unwind()).await {
        Ok(Ok(decision)) => decision,
        Ok(Err(_)) | Err(_) => (Action::Ask, None),
    }
}

/// Awaits a hook that may refuse the call. A panic or a timeout counts as a refusal.
pub(crate) async fn run_hook(
    running: BoxFuture<'_, Result<(), Arc<str>>>,
    timeout: Duration,
) -> Result<(), HookFault> {
    match tokio::time::timeout(timeout, AssertUnwindSafe(running).catch_unwind()).await {
        Ok(Ok(Ok(()))) => Ok(()),
        Ok(Ok(Err(reason))) => Err(HookFault::Refused(reason)),
        Ok(Err(_panic)) => Err(HookFault::Panicked),
        Err(_elapsed) => Err(HookFault::TimedOut(timeout)),
    }
}

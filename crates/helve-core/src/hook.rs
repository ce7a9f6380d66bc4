//! What others may do before and after a call: plugins, audit, policy of the embedding program.

use std::sync::Arc;

use crate::BoxFuture;
use crate::context::CallRef;
use crate::engine::ToolResult;
use crate::tool::ToolCall;

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

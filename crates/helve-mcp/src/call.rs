//! One tool call: cancellation and progress notifications.

use std::borrow::Cow;

use helve_core::event::{EventDelivery, EventKind, Progress};
use helve_core::{BoxFuture, CallMode, Input, Subscription, ToolCall, ToolResult};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken, RequestMetaObject};
use rmcp::service::RequestContext;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

/// Maximum length of a progress message in bytes.
const MAX_MESSAGE: usize = 2000;

/// Reports progress of a call to the client under its progress token.
pub(crate) struct ProgressWatch {
    call: String,
    token: ProgressToken,
    events: Subscription,
}

impl ProgressWatch {
    /// `events` must be subscribed before the call begins, or the first events are missed.
    pub(crate) fn new(call: &str, token: ProgressToken, events: Subscription) -> Self {
        Self { call: call.into(), token, events }
    }

    /// Watches an earlier call instead, and reports its progress under the same token.
    pub(crate) fn for_call(self, call: &str) -> Self {
        Self { call: call.into(), ..self }
    }
}

/// Runs `work` to its end and reports its progress meanwhile.
pub(crate) async fn with_progress<T>(
    work: impl Future<Output = T>,
    watch: Option<ProgressWatch>,
    context: &RequestContext<RoleServer>,
    cancel: &CancellationToken,
) -> T {
    let Some(watch) = watch else { return work.await };
    let ended = CancellationToken::new();
    let working = async {
        let _ended = ended.clone().drop_guard();
        work.await
    };
    let reporting = async {
        tokio::select! {
            () = report(watch, context, &ended) => {}
            // Nobody reads notifications any more, and sending one might block forever.
            () = cancel.cancelled() => {}
        }
    };
    tokio::join!(working, reporting).0
}

/// Waits for a call, and cancels it if its request is cancelled. A cancelled call is awaited too, because the engine
/// gives it a moment to clean up.
pub(crate) async fn run_with_cancellation(
    mut running: BoxFuture<'static, ToolResult>,
    request: &CancellationToken,
    cancel: &CancellationToken,
) -> ToolResult {
    tokio::select! {
        result = &mut running => return result,
        () = request.cancelled() => cancel.cancel(),
    }
    running.await
}

/// Key in the `_meta` of a request that asks for a preview of the call.
const PREVIEW: &str = "helve/preview";

/// Returns whether a request asks for a preview.
pub(crate) fn mode(meta: &RequestMetaObject) -> CallMode {
    match meta.get(PREVIEW) {
        Some(Value::Bool(true)) => CallMode::Preview,
        Some(_) | None => CallMode::Run,
    }
}

/// Hashes what identifies a call: session, tool, arguments and whether it is a preview.
pub(crate) fn fingerprint(session: &str, call: &ToolCall) -> blake3::Hash {
    let arguments = match &call.input {
        Input::Raw(text) | Input::Text(text) => Cow::Borrowed(text),
        Input::Json(value) => Cow::Owned(value.to_string()),
    };
    let mut hasher = blake3::Hasher::new();
    let mode = match call.mode {
        CallMode::Run => "run",
        CallMode::Preview => "preview",
    };
    for part in [session, &call.name, &arguments, mode] {
        hasher.update(&part.len().to_le_bytes()).update(part.as_bytes());
    }
    hasher.finalize()
}

/// Sends the progress of a call and its nested calls until the call has ended and everything is sent.
async fn report(
    ProgressWatch { call, token, mut events }: ProgressWatch,
    context: &RequestContext<RoleServer>,
    ended: &CancellationToken,
) {
    let mut counter = ProgressCounter::default();
    while let Some(progress) = latest_progress(&mut events, &call, ended).await {
        let (at, total) = counter.advance(progress.units_done);
        let mut notification = ProgressNotificationParam::new(token.clone(), at);
        notification.total = total;
        notification.message = progress.text.or(progress.title).map(|text| tail(text, MAX_MESSAGE));
        if context.peer.notify_progress(notification).await.is_err() {
            return;
        }
    }
}

/// Waits for the next progress update of a call. If several are queued, they are merged into one, because each replaces
/// the one before. Returns `None` when the call has ended.
async fn latest_progress(
    events: &mut Subscription,
    call: &str,
    ended: &CancellationToken,
) -> Option<Progress> {
    let mut latest: Option<Progress> = None;
    loop {
        let has_progress = latest.is_some();
        let delivery = tokio::select! {
            biased;
            delivery = events.next() => delivery?,
            () = std::future::ready(()), if has_progress => return latest,
            () = ended.cancelled() => return latest,
        };
        if let EventDelivery::Event(event) = delivery
            && *event.root_call == *call
            && let EventKind::Progress(progress) = event.kind
        {
            let previous = latest.take().unwrap_or_default();
            latest = Some(Progress {
                title: progress.title.or(previous.title),
                text: progress.text.or(previous.text),
                units_done: progress.units_done.or(previous.units_done),
                metadata: progress.metadata,
            });
        }
    }
}

/// Produces the progress numbers. The protocol requires them to grow with every notification.
#[derive(Default)]
struct ProgressCounter {
    last: f64,
    total: Option<f64>,
}

impl ProgressCounter {
    fn advance(&mut self, units_done: Option<(u64, Option<u64>)>) -> (f64, Option<f64>) {
        if let Some((_, Some(total))) = units_done {
            self.total = Some(total as f64);
        }
        // With a known total, a message without a count must not look like progress.
        let step = if self.total.is_some() { 0.001 } else { 1.0 };
        let counted = units_done.map(|(done, _)| done as f64).filter(|done| *done > self.last);
        self.last = counted.unwrap_or(self.last + step);
        (self.last, self.total)
    }
}

/// Returns the end of a text, at most `max` bytes.
fn tail(text: String, max: usize) -> String {
    match text.len().checked_sub(max) {
        None | Some(0) => text,
        Some(from) => text[text.ceil_char_boundary(from)..].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_always_grows() {
        let mut counter = ProgressCounter::default();
        let mut numbers = Vec::new();
        for done in [
            None,
            None,
            Some((5, None)),
            Some((3, None)),
            Some((8, Some(10))),
            None,
            Some((10, None)),
        ] {
            numbers.push(counter.advance(done).0);
        }
        assert_eq!(numbers, [1.0, 2.0, 5.0, 6.0, 8.0, 8.001, 10.0]);
    }

    #[test]
    fn a_long_message_keeps_its_end() {
        assert_eq!(tail("abc".into(), 5), "abc");
        assert_eq!(tail("aéé".into(), 3), "é");
        assert_eq!(tail("abc".into(), 0), "");
    }
}

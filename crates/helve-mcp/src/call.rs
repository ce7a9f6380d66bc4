//! One tool call on the wire: its end, its cancellation, its progress.

use std::borrow::Cow;

use helve_core::event::{News, Progress, What};
use helve_core::{BoxFuture, Input, Subscription, ToolCall, ToolResult};
use rmcp::RoleServer;
use rmcp::model::{ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use tokio_util::sync::CancellationToken;

/// The longest message of a progress notification, in bytes.
const MOST_MESSAGE: usize = 2000;

/// Whom to tell about a call's progress, and by which token.
pub(crate) struct Watching {
    call: String,
    token: ProgressToken,
    events: Subscription,
}

impl Watching {
    /// Subscribe before the call begins, or its first news is missed.
    pub(crate) fn new(call: &str, token: ProgressToken, events: Subscription) -> Self {
        Self { call: call.into(), token, events }
    }

    /// The same for a call that began earlier.
    pub(crate) fn of(self, call: &str) -> Self {
        Self { call: call.into(), ..self }
    }
}

/// Does the work, and tells whoever watches what is new until it is done.
pub(crate) async fn with_progress<T>(
    work: impl Future<Output = T>,
    watching: Option<Watching>,
    context: &RequestContext<RoleServer>,
    cancel: &CancellationToken,
) -> T {
    let Some(watching) = watching else { return work.await };
    let ended = CancellationToken::new();
    let working = async {
        let _ends = ended.clone().drop_guard();
        work.await
    };
    let reporting = async {
        tokio::select! {
            () = report(watching, context, &ended) => {}
            // Nobody reads what is sent from here on, and sending might wait for ever.
            () = cancel.cancelled() => {}
        }
    };
    tokio::join!(working, reporting).0
}

/// Waits for a call whose request may be cancelled. It is still waited for then: the engine gives it
/// a moment to tidy up.
pub(crate) async fn until_cancelled(
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

/// Tells calls apart: whose, of which tool, with which arguments.
pub(crate) fn mark(session: &str, call: &ToolCall) -> blake3::Hash {
    let arguments = match &call.input {
        Input::Raw(text) | Input::Text(text) => Cow::Borrowed(text),
        Input::Json(value) => Cow::Owned(value.to_string()),
    };
    let mut hasher = blake3::Hasher::new();
    for piece in [session, &call.name, &arguments] {
        hasher.update(&piece.len().to_le_bytes()).update(piece.as_bytes());
    }
    hasher.finalize()
}

/// Sends what the call and its parts tell of themselves, until it has ended and all is sent.
async fn report(
    Watching { call, token, mut events }: Watching,
    context: &RequestContext<RoleServer>,
    ended: &CancellationToken,
) {
    let mut meter = Meter::default();
    while let Some(progress) = newest(&mut events, &call, ended).await {
        let (at, total) = meter.advance(progress.done);
        let mut note = ProgressNotificationParam::new(token.clone(), at);
        note.total = total;
        note.message = progress.text.or(progress.title).map(|text| tail(text, MOST_MESSAGE));
        if context.peer.notify_progress(note).await.is_err() {
            return;
        }
    }
}

/// The next progress of a call, and where several wait, the newest: each replaces the one before.
/// `None` when the call has ended.
async fn newest(
    events: &mut Subscription,
    call: &str,
    ended: &CancellationToken,
) -> Option<Progress> {
    let mut newest: Option<Progress> = None;
    loop {
        let waits = newest.is_some();
        let news = tokio::select! {
            biased;
            news = events.next() => news?,
            () = std::future::ready(()), if waits => return newest,
            () = ended.cancelled() => return newest,
        };
        if let News::Event(event) = news
            && *event.root == *call
            && let What::Progress(progress) = event.what
        {
            let before = newest.take().unwrap_or_default();
            newest = Some(Progress {
                title: progress.title.or(before.title),
                text: progress.text.or(before.text),
                done: progress.done.or(before.done),
                metadata: progress.metadata,
            });
        }
    }
}

/// The protocol wants a number that grows with every notification, whatever the tool counts.
#[derive(Default)]
struct Meter {
    last: f64,
    total: Option<f64>,
}

impl Meter {
    fn advance(&mut self, done: Option<(u64, Option<u64>)>) -> (f64, Option<f64>) {
        if let Some((_, Some(total))) = done {
            self.total = Some(total as f64);
        }
        // Beside a total, news that counts nothing must not look like progress.
        let step = if self.total.is_some() { 0.001 } else { 1.0 };
        let counted = done.map(|(done, _)| done as f64).filter(|done| *done > self.last);
        self.last = counted.unwrap_or(self.last + step);
        (self.last, self.total)
    }
}

/// The end of a text, at most this many bytes of it.
fn tail(text: String, most: usize) -> String {
    match text.len().checked_sub(most) {
        None | Some(0) => text,
        Some(from) => text[text.ceil_char_boundary(from)..].into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn progress_grows_whatever_is_counted() {
        let mut meter = Meter::default();
        let mut seen = Vec::new();
        for done in [
            None,
            None,
            Some((5, None)),
            Some((3, None)),
            Some((8, Some(10))),
            None,
            Some((10, None)),
        ] {
            seen.push(meter.advance(done).0);
        }
        assert_eq!(seen, [1.0, 2.0, 5.0, 6.0, 8.0, 8.001, 10.0]);
    }

    #[test]
    fn a_long_message_keeps_its_end() {
        assert_eq!(tail("abc".into(), 5), "abc");
        assert_eq!(tail("aéé".into(), 3), "é");
        assert_eq!(tail("abc".into(), 0), "");
    }
}

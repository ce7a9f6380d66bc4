//! Request bodies, read within limits, and response bodies that report when they are sent.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, StatusCode};
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, SizeHint};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use super::admission::{Activity, ConnectionPermit};
use super::reply::{ErrorReply, HttpReply, busy, plain_text};
use crate::transport::MAX_MESSAGE_BYTES;

/// How long a client may take to send a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// Number of bytes of each body that need no reservation. Most messages are smaller.
const FREE_BYTES: usize = 64 << 10;
/// Maximum size of all reservations, in KiB.
const MAX_RESERVED_KIB: usize = 64 << 10;

/// Memory for bodies that are being received. Memory is reserved as bytes arrive, so announcing a large
/// `Content-Length` reserves nothing.
pub(super) struct BodyBudget(Arc<Semaphore>);

/// A received body and the memory reserved for it.
pub(super) struct RequestBody {
    pub(super) bytes: Vec<u8>,
    reserved: Option<OwnedSemaphorePermit>,
}

impl Default for BodyBudget {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_RESERVED_KIB)))
    }
}

impl BodyBudget {
    pub(super) async fn receive<B>(
        &self,
        headers: &HeaderMap,
        body: B,
    ) -> Result<RequestBody, ErrorReply>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let header = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let length: Option<u64> = header.and_then(|length| length.parse().ok());
        if length.is_some_and(|length| length > MAX_MESSAGE_BYTES as u64) {
            return Err(too_large());
        }
        match timeout(BODY_TIMEOUT, self.collect(body)).await {
            Ok(received) => received,
            Err(_) => {
                Err(plain_text(StatusCode::REQUEST_TIMEOUT, "Sending the message took too long.")
                    .into())
            }
        }
    }

    async fn collect<B>(&self, mut body: B) -> Result<RequestBody, ErrorReply>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let mut received = RequestBody { bytes: Vec::new(), reserved: None };
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                let text = "The message arrived incomplete.";
                return Err(plain_text(StatusCode::BAD_REQUEST, text).into());
            };
            // Trailers are ignored.
            let Ok(data) = frame.into_data() else { continue };
            if received.bytes.len() + data.len() > MAX_MESSAGE_BYTES {
                return Err(too_large());
            }
            self.reserve(&mut received, data.len())?;
            received.bytes.extend_from_slice(&data);
        }
        Ok(received)
    }

    fn reserve(&self, body: &mut RequestBody, more: usize) -> Result<(), ErrorReply> {
        let needed = (body.bytes.len() + more).saturating_sub(FREE_BYTES).div_ceil(1024);
        let reserved = body.reserved.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let Some(missing) = needed.checked_sub(reserved).filter(|missing| *missing > 0) else {
            return Ok(());
        };
        let missing = u32::try_from(missing).unwrap_or(u32::MAX);
        let Ok(more) = self.0.clone().try_acquire_many_owned(missing) else {
            return Err(busy("The server is receiving too much data at once; retry later.").into());
        };
        match &mut body.reserved {
            Some(reserved) => reserved.merge(more),
            None => body.reserved = Some(more),
        }
        Ok(())
    }
}

fn too_large() -> ErrorReply {
    let text = format!("A message may have at most {MAX_MESSAGE_BYTES} bytes.");
    plain_text(StatusCode::PAYLOAD_TOO_LARGE, text).into()
}

/// Marks the connection as idle once the reply is sent.
pub(super) fn mark_idle_when_sent(reply: HttpReply, permit: Arc<ConnectionPermit>) -> HttpReply {
    reply.map(|body| IdleOnDrop { body, permit }.boxed())
}

struct IdleOnDrop<B> {
    body: B,
    permit: Arc<ConnectionPermit>,
}

impl<B: Body<Data = Bytes, Error = Infallible> + Unpin> Body for IdleOnDrop<B> {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl<B> Drop for IdleOnDrop<B> {
    fn drop(&mut self) {
        self.permit.set_activity(Activity::Idle);
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::StreamBody;

    use super::*;

    async fn receive(
        budget: &BodyBudget,
        piece_bytes: usize,
        pieces: usize,
    ) -> Result<RequestBody, u16> {
        let frame = || Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b' '; piece_bytes])));
        let body = StreamBody::new(stream::iter((0..pieces).map(|_| frame())));
        let received = budget.receive(&HeaderMap::new(), body).await;
        received.map_err(|reply| reply.status().as_u16())
    }

    #[tokio::test]
    async fn small_messages_arrive_while_large_ones_use_up_the_budget() {
        let budget = BodyBudget::default();
        let mut large = Vec::new();
        for _ in 0..4 {
            large.push(receive(&budget, 1 << 20, 16).await.ok().unwrap());
        }
        assert_eq!(receive(&budget, 1 << 20, 16).await.err(), Some(503));
        let small = receive(&budget, 1, FREE_BYTES).await.ok().map(|body| body.bytes.len());
        assert_eq!(small, Some(FREE_BYTES));
        drop(large);
        assert_eq!(receive(&budget, 1 << 20, 17).await.err(), Some(413));
        assert!(receive(&budget, 1 << 20, 16).await.is_ok(), "everything was released");
    }

    #[tokio::test(start_paused = true)]
    async fn an_announced_length_reserves_nothing_and_silence_times_out() {
        let budget = BodyBudget::default();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, MAX_MESSAGE_BYTES.into());
        let silent = || StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let waiting = (0..100).map(|_| budget.receive(&headers, silent()));
        let waited = futures::future::join_all(waiting);
        let (waited, received) = tokio::join!(waited, receive(&budget, 1 << 20, 16));
        assert!(received.is_ok());
        let timed_out = |result: &Result<RequestBody, ErrorReply>| {
            result.as_ref().is_err_and(|reply| reply.status() == 408)
        };
        assert!(waited.iter().all(timed_out));
    }
}

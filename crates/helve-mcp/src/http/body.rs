//! What goes over a connection besides heads: messages coming in, within limits, and answers going out.

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

use super::lobby::{Doing, Seat};
use super::reply::{Refused, Reply, busy, plain};
use crate::wire::MOST_LINE;

/// How long a client may take to send a message.
const TIME: Duration = Duration::from_secs(30);
/// What every connection may send whatever the others do: most messages have less.
const SMALL: usize = 64 << 10;
/// The most that messages may have together beyond that, in KiB.
const MOST_LARGE: usize = 64 << 10;

/// Room for messages on their way in. It is taken as they arrive, so that who only says that much is to come takes none.
pub(super) struct Bodies(Arc<Semaphore>);

/// A message, and the room it takes.
pub(super) struct Whole {
    pub(super) bytes: Vec<u8>,
    room: Option<OwnedSemaphorePermit>,
}

impl Default for Bodies {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MOST_LARGE)))
    }
}

impl Bodies {
    pub(super) async fn take<B>(&self, headers: &HeaderMap, body: B) -> Result<Whole, Refused>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let said = headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok());
        let length: Option<u64> = said.and_then(|length| length.parse().ok());
        if length.is_some_and(|length| length > MOST_LINE as u64) {
            return Err(too_large());
        }
        match timeout(TIME, self.collect(body)).await {
            Ok(taken) => taken,
            Err(_) => Err(plain(StatusCode::REQUEST_TIMEOUT, "The message took too long.").into()),
        }
    }

    async fn collect<B>(&self, mut body: B) -> Result<Whole, Refused>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let mut whole = Whole { bytes: Vec::new(), room: None };
        while let Some(frame) = body.frame().await {
            let Ok(frame) = frame else {
                let words = "The message did not arrive whole.";
                return Err(plain(StatusCode::BAD_REQUEST, words).into());
            };
            // Trailers say nothing that is heard.
            let Ok(data) = frame.into_data() else { continue };
            if whole.bytes.len() + data.len() > MOST_LINE {
                return Err(too_large());
            }
            self.grow(&mut whole, data.len())?;
            whole.bytes.extend_from_slice(&data);
        }
        Ok(whole)
    }

    fn grow(&self, whole: &mut Whole, more: usize) -> Result<(), Refused> {
        let large = (whole.bytes.len() + more).saturating_sub(SMALL).div_ceil(1024);
        let held = whole.room.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let Some(wanted) = large.checked_sub(held).filter(|wanted| *wanted > 0) else {
            return Ok(());
        };
        let wanted = u32::try_from(wanted).unwrap_or(u32::MAX);
        let Ok(more) = self.0.clone().try_acquire_many_owned(wanted) else {
            return Err(busy("Too much is being sent at once.").into());
        };
        match &mut whole.room {
            Some(room) => room.merge(more),
            None => whole.room = Some(more),
        }
        Ok(())
    }
}

fn too_large() -> Refused {
    let words = format!("A message may have {MOST_LINE} bytes at most.");
    plain(StatusCode::PAYLOAD_TOO_LARGE, words).into()
}

/// An answer after which its connection is idle.
pub(super) fn until_said(reply: Reply, seat: Arc<Seat>) -> Reply {
    reply.map(|body| Until { body, seat }.boxed())
}

struct Until<B> {
    body: B,
    seat: Arc<Seat>,
}

impl<B: Body<Data = Bytes, Error = Infallible> + Unpin> Body for Until<B> {
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

impl<B> Drop for Until<B> {
    fn drop(&mut self) {
        self.seat.does(Doing::Idle);
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;
    use http_body_util::StreamBody;

    use super::*;

    type Held = Result<Whole, u16>;

    async fn take(bodies: &Bodies, piece: usize, pieces: usize) -> Held {
        let frame = || Ok::<_, Infallible>(Frame::data(Bytes::from(vec![b' '; piece])));
        let body = StreamBody::new(stream::iter((0..pieces).map(|_| frame())));
        let taken = bodies.take(&HeaderMap::new(), body).await;
        taken.map_err(|refused| refused.status().as_u16())
    }

    #[tokio::test]
    async fn small_messages_get_through_whatever_the_large_take() {
        let bodies = Bodies::default();
        let mut large = Vec::new();
        for _ in 0..4 {
            large.push(take(&bodies, 1 << 20, 16).await.ok().unwrap());
        }
        assert_eq!(take(&bodies, 1 << 20, 16).await.err(), Some(503));
        assert_eq!(take(&bodies, 1, SMALL).await.ok().map(|whole| whole.bytes.len()), Some(SMALL));
        drop(large);
        assert_eq!(take(&bodies, 1 << 20, 17).await.err(), Some(413));
        assert!(take(&bodies, 1 << 20, 16).await.is_ok(), "all room was given back");
    }

    #[tokio::test(start_paused = true)]
    async fn who_only_announces_much_takes_no_room_and_has_an_end() {
        let bodies = Bodies::default();
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_LENGTH, MOST_LINE.into());
        let silent = || StreamBody::new(stream::pending::<Result<Frame<Bytes>, Infallible>>());
        let waiting = (0..100).map(|_| bodies.take(&headers, silent()));
        let waited = futures::future::join_all(waiting);
        let (waited, taken) = tokio::join!(waited, take(&bodies, 1 << 20, 16));
        assert!(taken.is_ok());
        let timed_out = |refused: &Result<Whole, Refused>| {
            refused.as_ref().is_err_and(|refused| refused.status() == 408)
        };
        assert!(waited.iter().all(timed_out));
    }
}

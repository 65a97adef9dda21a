//! The body of a request over HTTP/2: the data of its stream.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use http::StatusCode;
use kirin_http::field_lines::FieldLines;
use kirin_http::pace::Pace;
use kirin_http::request_body::{BodyError, BodySource};
use kirin_http::trailers::Trailers;
use tokio::time::Sleep;

use super::head::has_blanks_around;
use super::responder::Responder;
use crate::http1::sending::{LINGER_BYTES, LINGER_SECONDS, LINGER_SILENCE_SECONDS};
use crate::limits::deadlines::Deadlines;

/// The state that a stream's task and the body of its request share.
#[derive(Default)]
pub(super) struct BodyState {
    /// Whether the response has begun.
    pub(super) is_answered: Cell<bool>,
    /// Number of bytes of the body that have been received.
    pub(super) received_bytes: Cell<u64>,
    /// The rest of a body that is not read any more.
    unread: RefCell<Option<RecvStream>>,
}

impl BodyState {
    /// Drops the rest of the body after the response was handed over.
    pub(super) async fn drop_unread(&self) {
        let unread = self.unread.take();
        if let Some(unread) = unread {
            drop_rest(unread).await;
        }
    }
}

/// Reads a body to its end for a limited time and drops it. Some clients (curl 7.88) report an
/// error if a stream is reset right behind its response, though RFC 9113 section 8.1 allows it.
/// Most clients stop sending when they have the response.
pub(super) async fn drop_rest(mut unread: RecvStream) {
    let silence = Duration::from_secs(LINGER_SILENCE_SECONDS);
    let mut dropped = 0;
    let reading = async {
        while dropped < LINGER_BYTES {
            let data = poll_fn(|context| unread.poll_data(context));
            let Ok(Some(Ok(data))) = tokio::time::timeout(silence, data).await else { return };
            dropped += data.len();
            if unread.flow_control().release_capacity(data.len()).is_err() {
                return;
            }
        }
    };
    let _ = tokio::time::timeout(Duration::from_secs(LINGER_SECONDS), reading).await;
}

/// Reads a body from a stream.
pub(super) struct Http2Source {
    /// The stream. It is taken out when this is dropped.
    stream: Option<RecvStream>,
    deadlines: Rc<Deadlines>,
    pace: Pace,
    /// The time limit of the current wait.
    time_limit: Option<Pin<Box<Sleep>>>,
    /// Sends `100 Continue` as long as that is owed.
    expects_continue: Option<Rc<Responder>>,
    state: Rc<BodyState>,
}

impl Drop for Http2Source {
    fn drop(&mut self) {
        let unread = self.stream.take().filter(|stream| !stream.is_end_stream());
        self.state.unread.replace(unread);
    }
}

impl Http2Source {
    /// Returns the source of a body. With `expects_continue`, the client is told to continue when
    /// the body is wanted. `state` says when the response begins. From then on the client may be
    /// silent, because the two sides talk (a gRPC stream), and the handler sets the limit.
    pub(super) fn new(
        stream: RecvStream,
        deadlines: &Rc<Deadlines>,
        expects_continue: Option<Rc<Responder>>,
        state: &Rc<BodyState>,
    ) -> Self {
        let pace = Pace::new(deadlines.reading);
        Self {
            stream: Some(stream),
            deadlines: Rc::clone(deadlines),
            pace,
            time_limit: None,
            expects_continue,
            state: Rc::clone(state),
        }
    }

    /// Returns ready if the client was silent for too long. Called when it has sent nothing.
    fn poll_silence(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let time_limit = self.time_limit.get_or_insert_with(|| {
            let now = self.deadlines.clock.now();
            let seconds = self.pace.begin(now).saturating_sub(now);
            Box::pin(tokio::time::sleep(Duration::from_secs(seconds)))
        });
        time_limit.as_mut().poll(context)
    }

    /// Ends the wait for the client, if there was one.
    fn end_wait(&mut self) {
        if self.time_limit.take().is_some() {
            self.pace.end(self.deadlines.clock.now());
        }
    }
}

impl BodySource for Http2Source {
    fn begin_wait(&mut self) {
        self.time_limit = None;
    }

    /// Returns the next data. Taking it gives the client room for as many bytes (RFC 9113 section
    /// 5.2).
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        if let Some(responder) = self.expects_continue.take() {
            // If it cannot be sent, the client has disconnected, which the next read finds out.
            let _ = responder.inform(StatusCode::CONTINUE, &FieldLines::new());
        }
        loop {
            let Some(stream) = &mut self.stream else { return Poll::Ready(Ok(None)) };
            let Poll::Ready(received) = stream.poll_data(context) else {
                if !self.state.is_answered.get() && self.poll_silence(context).is_ready() {
                    return Poll::Ready(Err(BodyError::Ended));
                }
                return Poll::Pending;
            };
            let data = match received {
                Some(Ok(data)) => data,
                Some(Err(_)) => return Poll::Ready(Err(BodyError::Ended)),
                None => {
                    self.end_wait();
                    return Poll::Ready(Ok(None));
                }
            };
            let released = stream.flow_control().release_capacity(data.len());
            self.end_wait();
            self.pace.moved(data.len() as u64, self.deadlines.clock.now());
            released.map_err(|error| BodyError::Io(std::io::Error::other(error)))?;
            if !data.is_empty() {
                let received = &self.state.received_bytes;
                received.set(received.get() + data.len() as u64);
                return Poll::Ready(Ok(Some(data)));
            }
        }
    }

    fn poll_trailers(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Trailers>, BodyError>> {
        let Some(stream) = &mut self.stream else { return Poll::Ready(Ok(None)) };
        let Poll::Ready(received) = stream.poll_trailers(context) else {
            if self.poll_silence(context).is_ready() {
                return Poll::Ready(Err(BodyError::Ended));
            }
            return Poll::Pending;
        };
        self.end_wait();
        Poll::Ready(match received {
            Ok(None) => Ok(None),
            Ok(Some(fields))
                if fields.values().any(|value| has_blanks_around(value.as_bytes())) =>
            {
                Err(std::io::Error::other("a trailer begins or ends with a blank").into())
            }
            Ok(Some(fields)) => Ok(Some(Trailers::from_http2(fields)?)),
            Err(_) => Err(BodyError::Ended),
        })
    }

    fn has_ended(&self) -> bool {
        self.stream.as_ref().is_none_or(RecvStream::is_end_stream)
    }

    fn may_have_trailers(&self) -> bool {
        !self.has_ended()
    }

    /// Does nothing: other requests have streams of their own.
    fn refuse_rest(&mut self) {}
}

/// Waits for the client as long as it may be slow. Returns `None` after that. The table of open
/// connections cannot do this, because its entry belongs to all streams together.
pub(super) async fn within<T>(
    deadlines: &Deadlines,
    pace: &mut Pace,
    waiting: impl Future<Output = T>,
) -> Option<T> {
    let now = deadlines.clock.now();
    let seconds = pace.begin(now).saturating_sub(now);
    let result = tokio::time::timeout(Duration::from_secs(seconds), waiting).await;
    pace.end(deadlines.clock.now());
    result.ok()
}

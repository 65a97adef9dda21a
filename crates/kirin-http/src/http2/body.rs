//! The body of a request: the data of its stream.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use h2::RecvStream;
use http::StatusCode;

use super::{Responder, send_informational};
use crate::deadlines::Deadlines;
use crate::field_lines::FieldLines;
use crate::pace::Pace;
use crate::request_body::BodyError;
use crate::sending::{LINGER_BYTES, LINGER_SECONDS, LINGER_SILENCE_SECONDS};
use crate::trailers::Trailers;

/// What a stream's task and the body of its request tell each other.
#[derive(Default)]
pub(super) struct BodyState {
    /// Whether the response has begun.
    pub(super) is_answered: Cell<bool>,
    /// The rest of a body that nobody reads any more.
    unread: RefCell<Option<RecvStream>>,
}

impl BodyState {
    /// Drops the rest of the body, after the response has been handed over.
    pub(super) async fn drop_unread(&self) {
        let unread = self.unread.take();
        if let Some(unread) = unread {
            drop_rest(unread).await;
        }
    }
}

/// Reads a body to its end for a while and drops it. A stream that is reset right behind its
/// response looks like an error to some clients (curl 7.88), though RFC 9113 section 8.1 allows it;
/// most stop sending when they have the response.
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

/// Data as it comes.
pub(crate) struct Http2Source {
    /// Taken out when it is dropped.
    stream: Option<RecvStream>,
    deadlines: Rc<Deadlines>,
    pace: Pace,
    /// By which `100 Continue` is sent while it is owed.
    expects_continue: Option<Responder>,
    state: Rc<BodyState>,
}

impl Drop for Http2Source {
    fn drop(&mut self) {
        let unread = self.stream.take().filter(|stream| !stream.is_end_stream());
        self.state.unread.replace(unread);
    }
}

impl Http2Source {
    /// `expects_continue`: by which the client is told to go on when the body is wanted. `state`
    /// says when the response begins. From then on the client may be silent: the two talk (a gRPC
    /// stream), and who answers says how long.
    pub(super) fn new(
        stream: RecvStream,
        deadlines: &Rc<Deadlines>,
        expects_continue: Option<Responder>,
        state: &Rc<BodyState>,
    ) -> Self {
        let pace = Pace::new(deadlines.reading);
        let (deadlines, state) = (Rc::clone(deadlines), Rc::clone(state));
        Self { stream: Some(stream), deadlines, pace, expects_continue, state }
    }

    /// Whether nothing more comes, as far as is known.
    pub(crate) fn has_ended(&self) -> bool {
        self.stream.as_ref().is_none_or(RecvStream::is_end_stream)
    }

    /// The trailers, when the data has ended.
    pub(crate) async fn trailers(&mut self) -> Result<Option<Trailers>, BodyError> {
        let Some(stream) = &mut self.stream else { return Ok(None) };
        let trailers = poll_fn(|context| stream.poll_trailers(context));
        match within(&self.deadlines, &mut self.pace, trailers).await {
            Some(Ok(None)) => Ok(None),
            Some(Ok(Some(fields))) => Ok(Some(Trailers::from_http2(fields)?)),
            Some(Err(_)) | None => Err(BodyError::Ended),
        }
    }

    /// The next data that is not empty. Taking it makes room for as much to come (RFC 9113 section
    /// 5.2).
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        if let Some(responder) = self.expects_continue.take() {
            // If it cannot be sent the client has gone, which is found out at once.
            let _ = send_informational(&responder, StatusCode::CONTINUE, &FieldLines::new());
        }
        let Some(stream) = &mut self.stream else { return Ok(None) };
        loop {
            let mut data = pin!(poll_fn(|context| stream.poll_data(context)));
            let received = match self.state.is_answered.get() {
                true => Some(data.await),
                false => match within(&self.deadlines, &mut self.pace, data.as_mut()).await {
                    None if self.state.is_answered.get() => Some(data.await),
                    received => received,
                },
            };
            match received {
                Some(Some(Ok(data))) => {
                    self.pace.moved(data.len() as u64, self.deadlines.clock.now());
                    let released = stream.flow_control().release_capacity(data.len());
                    released.map_err(|error| BodyError::Io(std::io::Error::other(error)))?;
                    if !data.is_empty() {
                        return Ok(Some(data));
                    }
                }
                Some(None) => return Ok(None),
                Some(Some(Err(_))) | None => return Err(BodyError::Ended),
            }
        }
    }
}

/// Waits for the client, for as long as it may be slow; none when that is over. A stream has no
/// place in the table of open connections, which belongs to all streams together.
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

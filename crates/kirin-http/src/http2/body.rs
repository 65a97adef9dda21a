//! The body of a request: the data of its stream.

use super::{Responder, send_informational};
use crate::field_lines::FieldLines;
use crate::pace::Pace;
use crate::request_body::BodyError;
use crate::server::Deadlines;
use crate::trailers::Trailers;
use bytes::Bytes;
use h2::RecvStream;
use http::StatusCode;
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::time::Duration;

/// Data as it comes.
pub(crate) struct Http2Source {
    stream: RecvStream,
    deadlines: Rc<Deadlines>,
    pace: Pace,
    /// By which `100 Continue` is sent while it is owed.
    expects_continue: Option<Responder>,
    /// Whether the response has begun.
    is_answered: Rc<Cell<bool>>,
}

impl Http2Source {
    /// `expects_continue`: by which the client is told to go on when the body is wanted. `is_answered`: is set when the response
    /// begins. From then on the client may be silent: the two talk (a gRPC stream), and who answers says how long.
    pub(super) fn new(
        stream: RecvStream,
        deadlines: &Rc<Deadlines>,
        expects_continue: Option<Responder>,
        is_answered: &Rc<Cell<bool>>,
    ) -> Self {
        let pace = Pace::new(deadlines.reading);
        let (deadlines, is_answered) = (Rc::clone(deadlines), Rc::clone(is_answered));
        Self { stream, deadlines, pace, expects_continue, is_answered }
    }

    /// Whether nothing more comes, as far as is known.
    pub(crate) fn has_ended(&self) -> bool {
        self.stream.is_end_stream()
    }

    /// The trailers, when the data has ended.
    pub(crate) async fn trailers(&mut self) -> Result<Option<Trailers>, BodyError> {
        let trailers = poll_fn(|context| self.stream.poll_trailers(context));
        match within(&self.deadlines, &mut self.pace, trailers).await {
            Some(Ok(None)) => Ok(None),
            Some(Ok(Some(fields))) => Ok(Some(Trailers::from_http2(fields)?)),
            Some(Err(_)) | None => Err(BodyError::Ended),
        }
    }

    /// The next data that is not empty. Taking it makes room for as much to come (RFC 9113 section 5.2).
    pub(crate) async fn next(&mut self) -> Result<Option<Bytes>, BodyError> {
        if let Some(responder) = self.expects_continue.take() {
            // If it cannot be sent the client has gone, which is found out at once.
            let _ = send_informational(&responder, StatusCode::CONTINUE, &FieldLines::new());
        }
        loop {
            let mut data = pin!(poll_fn(|context| self.stream.poll_data(context)));
            let received = match self.is_answered.get() {
                true => Some(data.await),
                false => match within(&self.deadlines, &mut self.pace, data.as_mut()).await {
                    None if self.is_answered.get() => Some(data.await),
                    received => received,
                },
            };
            match received {
                Some(Some(Ok(data))) => {
                    self.pace.moved(data.len() as u64, self.deadlines.clock.now());
                    let released = self.stream.flow_control().release_capacity(data.len());
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

/// Waits for the client, for as long as it may be slow; none when that is over. A stream has no place in the table of open
/// connections, which belongs to all streams together.
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

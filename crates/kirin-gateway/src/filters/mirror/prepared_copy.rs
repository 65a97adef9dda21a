//! The copy of a request: waits for the end of the visitor's response, is sent, and compared.

use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use kirin_http::{Body, BodyCopy, Later, RequestBody, Response, StreamError};
use tokio::sync::oneshot;

use super::body_digest::{BodyDigest, is_coded};
use super::comparison::AnswerFacts;
use super::counters::{CopySkip, HeldBytes, MirrorResult};
use super::ignored_parts::IgnoredParts;
use super::route_mirror::RouteMirror;
use super::visitor_answer::VisitorAnswer;

/// A copy whose head is encoded.
pub struct PreparedCopy {
    /// The mirror.
    pub mirror: Rc<RouteMirror>,
    /// Sends the copy.
    pub send: Later,
    /// The body, once the place has read it. `None` if there is none.
    pub body: Option<Rc<BodyCopy>>,
    /// Ends when the response of the visitor has ended.
    pub ended: oneshot::Receiver<()>,
    /// The path of the request, for the log.
    pub path: Box<str>,
    /// Whether the method is HEAD.
    pub is_head: bool,
    /// The memory that the copy takes.
    pub held: HeldBytes,
    /// The most time that it may take.
    pub time_limit: Duration,
}

impl PreparedCopy {
    /// Waits until the response of the visitor has ended, sends the copy, and counts the result.
    pub async fn follow(self, visitor: VisitorAnswer) {
        let Self { mirror, send, body, ended, path, is_head, held: _held, time_limit } = self;
        // The sender is dropped, and sends nothing.
        let _ = ended.await;
        let counters = &mirror.settings.counters;
        let Some(visitor) = visitor.facts().await else { return counters.skip(CopySkip::Cut) };
        let body = match body.as_ref().map(|copy| copy.take()) {
            None => Bytes::new(),
            Some(Some(body)) => body,
            Some(None) => return counters.skip(CopySkip::RequestBody),
        };
        let Some(_in_flight) = mirror.begin() else { return counters.skip(CopySkip::Busy) };
        let ignored = &mirror.settings.ignored;
        let answer =
            async { read(send(RequestBody::from_bytes(body)).await, is_head, ignored).await };
        let copy = match tokio::time::timeout(time_limit, answer).await {
            Ok(Some(copy)) => copy,
            // The upstream has logged why.
            Ok(None) => return counters.count(MirrorResult::Failed),
            Err(_) => {
                counters.count(MirrorResult::Failed);
                return mirror.warnings.warn("late", || {
                    let (mirror, path) = (&*mirror.settings.to, &*path);
                    tracing::warn!(mirror, path, "mirror: no complete answer in {time_limit:?}");
                });
            }
        };
        let result = visitor.compare(&copy);
        counters.count(result);
        if result != MirrorResult::Equal {
            mirror.warnings.warn(result.name(), || {
                tracing::warn!(
                    mirror = mirror.settings.to,
                    path = &*path,
                    status = visitor.status,
                    mirror_status = copy.status,
                    bytes = visitor.length,
                    mirror_bytes = copy.length,
                    "mirror: the answers differ ({})",
                    result.name()
                );
            });
        }
    }
}

/// Reads an answer of the mirror to its end. Returns `None` if the upstream gave none.
async fn read(
    response: Response,
    is_head: bool,
    ignored: &Arc<IgnoredParts>,
) -> Option<AnswerFacts> {
    // Other responses are Kirin's own: no server could be reached.
    if response.answered_by != kirin_proxy::ANSWERED_BY {
        return None;
    }
    let (status, is_coded) = (response.status.as_u16(), is_coded(&response.fields));
    let mut digest = BodyDigest::new(&response.fields, ignored);
    let (length, hash) = if is_head {
        (response.body.length().filter(|_| !digest.cuts()), None)
    } else {
        read_body(response.body, &mut digest).await.ok()?;
        let (length, hash) = digest.finish();
        (Some(length), Some(hash))
    };
    Some(AnswerFacts { status, length, hash, is_coded })
}

/// Adds a body to `digest`, piece by piece.
async fn read_body(body: Body, digest: &mut BodyDigest) -> Result<(), StreamError> {
    match body {
        Body::Empty => {}
        Body::Bytes(bytes) => digest.add(&bytes),
        Body::Segments(segments) => segments.iter().for_each(|segment| digest.add(segment)),
        Body::Stream(mut stream) => {
            while let Some(chunk) = poll_fn(|context| stream.poll_chunk(context)).await {
                digest.add(&chunk?);
            }
        }
        Body::File(_) | Body::Withheld(_) | Body::Tunnel(_) => {
            return Err(StreamError("an upstream has no such body".into()));
        }
    }
    Ok(())
}

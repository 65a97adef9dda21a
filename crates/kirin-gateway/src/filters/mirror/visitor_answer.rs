//! The answer of the place, observed on its way to the visitor.

use std::cell::RefCell;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;

use bytes::Bytes;
use kirin_http::{
    Body, FileRange, ObservedStream, Response, StatusCode, StreamError, StreamObserver,
};

use super::body_digest::{BodyDigest, is_coded};
use super::comparison::AnswerFacts;
use super::counters::CopySkip;
use super::ignored_parts::IgnoredParts;

/// The longest file that is read again to be compared, in bytes. Longer ones are compared by their
/// lengths.
const FILE_LIMIT_BYTES: u64 = 64 << 20;

/// How much of a file is read at a time, in bytes.
const READ_BYTES: u64 = 64 * 1024;

/// The answer of the place, whose body may still be on its way.
pub struct VisitorAnswer {
    status: u16,
    is_coded: bool,
    body: VisitorBody,
}

enum VisitorBody {
    /// The length and the hash, as far as they are known.
    Known(Option<u64>, Option<u64>),
    /// Bytes that come over time.
    Passing(Rc<RefCell<Passing>>),
    /// The kernel sends it. It is read again after that.
    File(FileRange, BodyDigest),
}

/// A body on its way to the visitor.
struct Passing {
    /// The digest of the bytes so far.
    digest: Option<BodyDigest>,
    passed_bytes: u64,
    /// The length in bytes, if it is known in advance.
    length: Option<u64>,
    has_ended: bool,
}

/// Adds the bytes of a stream to the digest.
struct StreamDigest(Rc<RefCell<Passing>>);

/// Observes a response. Returns it, and the answer to which that of the mirror is compared. The
/// error says why there is nothing to compare.
pub fn observe(
    mut response: Response,
    is_head: bool,
    ignored: &Arc<IgnoredParts>,
) -> Result<(Response, VisitorAnswer), (Response, CopySkip)> {
    if response.status == StatusCode::NOT_MODIFIED {
        return Err((response, CopySkip::NotModified));
    }
    if response.status == Response::client_gone_status() {
        return Err((response, CopySkip::Cut));
    }
    let mut digest = BodyDigest::new(&response.fields, ignored);
    let length = response.body.length();
    let body = match response.body {
        Body::Tunnel(_) => return Err((response, CopySkip::Cut)),
        _ if is_head => VisitorBody::Known(length.filter(|_| !digest.cuts()), None),
        Body::Withheld(_) => VisitorBody::Known(length, None),
        Body::File(ref range) => VisitorBody::File(range.clone(), digest),
        Body::Stream(stream) => {
            let digest = Some(digest);
            let passing = Passing { digest, passed_bytes: 0, length, has_ended: length == Some(0) };
            let passing = Rc::new(RefCell::new(passing));
            let observer = StreamDigest(Rc::clone(&passing));
            response.body = Body::Stream(Box::new(ObservedStream::new(stream, observer)));
            VisitorBody::Passing(passing)
        }
        Body::Empty => VisitorBody::known(digest),
        Body::Bytes(ref bytes) => {
            digest.add(bytes);
            VisitorBody::known(digest)
        }
        Body::Segments(ref segments) => {
            segments.iter().for_each(|segment| digest.add(segment));
            VisitorBody::known(digest)
        }
    };
    let (status, is_coded) = (response.status.as_u16(), is_coded(&response.fields));
    Ok((response, VisitorAnswer { status, is_coded, body }))
}

impl VisitorBody {
    fn known(digest: BodyDigest) -> Self {
        let (length, hash) = digest.finish();
        Self::Known(Some(length), Some(hash))
    }
}

impl VisitorAnswer {
    /// Returns what is compared. Call it after the response has ended. Returns `None` if the
    /// visitor has not got all of it.
    pub async fn facts(self) -> Option<AnswerFacts> {
        let Self { status, is_coded, body } = self;
        let (length, hash) = match body {
            VisitorBody::Known(length, hash) => (length, hash),
            VisitorBody::Passing(passing) => {
                let mut passing = passing.borrow_mut();
                let digest = passing.digest.take().filter(|_| passing.has_ended)?;
                let (length, hash) = digest.finish();
                (Some(length), Some(hash))
            }
            VisitorBody::File(range, digest) if range.length > FILE_LIMIT_BYTES => {
                (Some(range.length).filter(|_| !digest.cuts()), None)
            }
            VisitorBody::File(range, digest) => {
                let read = tokio::task::spawn_blocking(move || digest_of(&range, digest));
                let (length, hash) = read.await.ok()?.ok()?;
                (Some(length), Some(hash))
            }
        };
        Some(AnswerFacts { status, length, hash, is_coded })
    }
}

/// Reads a part of a file, and returns the length and the hash.
fn digest_of(range: &FileRange, mut digest: BodyDigest) -> io::Result<(u64, u64)> {
    let mut buffer = vec![0; READ_BYTES as usize];
    let mut at = 0;
    while at < range.length {
        let piece = &mut buffer[..(range.length - at).min(READ_BYTES) as usize];
        range.file.read_exact_at(piece, range.offset + at)?;
        digest.add(piece);
        at += piece.len() as u64;
    }
    Ok(digest.finish())
}

impl StreamObserver for StreamDigest {
    fn note(&mut self, polled: &Poll<Option<Result<Bytes, StreamError>>>) {
        let mut passing = self.0.borrow_mut();
        match polled {
            Poll::Ready(Some(Ok(chunk))) => {
                passing.passed_bytes += chunk.len() as u64;
                // A reader that knows the length does not ask for the end.
                passing.has_ended |= passing.length == Some(passing.passed_bytes);
                if let Some(digest) = &mut passing.digest {
                    digest.add(chunk);
                }
            }
            Poll::Ready(Some(Err(_))) => passing.digest = None,
            Poll::Ready(None) => passing.has_ended = true,
            Poll::Pending => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::future::poll_fn;
    use std::io::Write;
    use std::task::Context;

    use kirin_http::{AnsweredBy, BodyStream};

    use super::*;

    struct Chunks(VecDeque<Result<Bytes, StreamError>>, Option<u64>);

    impl BodyStream for Chunks {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
            Poll::Ready(self.0.pop_front())
        }

        fn length(&self) -> Option<u64> {
            self.1
        }
    }

    fn stream(chunks: &[&'static str], length: Option<u64>) -> Body {
        let chunk = |chunk: &&'static str| match *chunk {
            "cut" => Err(StreamError("gone".into())),
            chunk => Ok(Bytes::from(chunk)),
        };
        Body::Stream(Box::new(Chunks(chunks.iter().map(chunk).collect(), length)))
    }

    /// Returns the facts of a response whose body is read up to `polls` chunks.
    async fn facts(body: Body, is_head: bool, polls: usize) -> Option<AnswerFacts> {
        let response = Response::new(AnsweredBy::SERVER, StatusCode::OK, body);
        let (response, visitor) = observe(response, is_head, &Arc::default()).ok().unwrap();
        if let Body::Stream(mut stream) = response.body {
            for _ in 0..polls {
                let _ = poll_fn(|context| stream.poll_chunk(context)).await;
            }
        }
        visitor.facts().await
    }

    #[tokio::test]
    async fn bodies_of_all_kinds_have_the_same_facts() {
        let mut file = tempfile::tempfile().unwrap();
        file.write_all(b"0hello9").unwrap();
        let range = FileRange { file: Arc::new(file), offset: 1, length: 5 };
        let expected = facts(Body::from("hello"), false, 0).await;
        assert_eq!(expected.as_ref().unwrap().length, Some(5));
        for (body, polls) in [
            (Body::Segments(vec!["he".into(), "llo".into()]), 0),
            (Body::File(range), 0),
            (stream(&["he", "llo"], None), 3),
            (stream(&["he", "llo"], Some(5)), 2),
        ] {
            let kind = format!("{body:?}");
            assert_eq!(facts(body, false, polls).await, expected, "{kind}");
        }
        let empty = facts(Body::Empty, false, 0).await.unwrap();
        assert_eq!((empty.length, empty.hash == expected.unwrap().hash), (Some(0), false));
        assert_eq!(facts(stream(&[], Some(0)), false, 0).await, Some(empty));
    }

    #[tokio::test]
    async fn a_body_that_the_visitor_has_not_got_is_not_compared() {
        for (body, polls) in [
            (stream(&["he", "llo"], None), 2),
            (stream(&["he", "llo"], Some(5)), 1),
            (stream(&["he", "cut"], None), 3),
        ] {
            assert_eq!(facts(body, false, polls).await, None);
        }
    }

    #[tokio::test]
    async fn of_an_answer_to_head_the_length_is_known_if_it_is_announced() {
        for (body, length) in [
            (Body::Withheld(5), Some(5)),
            (Body::from("hello"), Some(5)),
            (stream(&[], None), None),
        ] {
            let facts = facts(body, true, 0).await.unwrap();
            assert_eq!((facts.length, facts.hash), (length, None));
        }
    }
}

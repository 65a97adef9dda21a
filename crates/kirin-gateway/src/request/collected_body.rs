//! Reading the body of a response into memory: of a part of a page, or of an answer to a script.

use std::future::poll_fn;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use kirin_http::{Body, StreamError};

/// The reason why a body is not in memory.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// It is longer than the limit.
    #[error("it is larger than {0} bytes")]
    TooLarge(usize),
    /// It ended before its end.
    #[error(transparent)]
    Cut(#[from] StreamError),
    /// Its file cannot be read.
    #[error("its file cannot be read: {0}")]
    File(#[from] io::Error),
    /// The response has none: it is a tunnel, or to HEAD.
    #[error("it has no body")]
    NoBody,
}

/// Returns the pieces of a body that is in memory. The error is the body if a caller must wait for
/// it.
pub fn collect_now(body: Body) -> Result<Vec<Bytes>, Body> {
    match body {
        Body::Empty => Ok(Vec::new()),
        Body::Bytes(bytes) => Ok(vec![bytes]),
        Body::Segments(pieces) => Ok(pieces),
        Body::File(_) | Body::Stream(_) | Body::Withheld(_) | Body::Tunnel(_) => Err(body),
    }
}

/// Reads a body of at most `limit_bytes` into memory. Call on an event loop.
pub async fn collect(body: Body, limit_bytes: usize) -> Result<Vec<Bytes>, CollectError> {
    let too_large = || CollectError::TooLarge(limit_bytes);
    if body.length().is_some_and(|length| length > limit_bytes as u64) {
        return Err(too_large());
    }
    match collect_now(body) {
        Ok(pieces) => Ok(pieces),
        Err(Body::File(range)) => {
            // Within the limit.
            let mut content = vec![0; range.length as usize];
            let read =
                move || range.file.read_exact_at(&mut content, range.offset).map(|()| content);
            let content = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
            Ok(vec![Bytes::from(content)])
        }
        Err(Body::Stream(mut stream)) => {
            let (mut pieces, mut length) = (Vec::new(), 0);
            while let Some(chunk) = poll_fn(|context| stream.poll_chunk(context)).await {
                let chunk = chunk?;
                length += chunk.len();
                if length > limit_bytes {
                    return Err(too_large());
                }
                pieces.push(chunk);
            }
            Ok(pieces)
        }
        Err(_) => Err(CollectError::NoBody),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::task::{Context, Poll};

    struct Chunks(VecDeque<Result<Bytes, StreamError>>);

    impl kirin_http::BodyStream for Chunks {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
            Poll::Ready(self.0.pop_front())
        }

        fn length(&self) -> Option<u64> {
            None
        }
    }

    #[tokio::test]
    async fn bodies_of_all_kinds_are_read_up_to_a_limit() {
        let stream = |chunks: &[&'static str]| {
            let chunks = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes())));
            Body::Stream(Box::new(Chunks(chunks.collect())))
        };
        let file = || {
            use std::io::Write;
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"0hello9").unwrap();
            Body::File(kirin_http::FileRange {
                file: std::sync::Arc::new(file),
                offset: 1,
                length: 5,
            })
        };
        for make in [|| Body::from("hello"), || Body::Segments(vec!["he".into(), "llo".into()])] {
            assert_eq!(collect(make(), 5).await.unwrap().concat(), b"hello");
            assert!(matches!(collect(make(), 4).await, Err(CollectError::TooLarge(4))));
        }
        assert_eq!(collect(file(), 5).await.unwrap().concat(), b"hello");
        assert!(matches!(collect(file(), 4).await, Err(CollectError::TooLarge(4))));
        assert_eq!(collect(stream(&["he", "llo"]), 5).await.unwrap().concat(), b"hello");
        assert!(matches!(collect(stream(&["he", "llo"]), 4).await, Err(CollectError::TooLarge(4))));
        let cut = Chunks([Ok(Bytes::from_static(b"a")), Err(StreamError("gone".into()))].into());
        assert!(matches!(collect(Body::Stream(Box::new(cut)), 5).await, Err(CollectError::Cut(_))));
        assert!(matches!(collect(Body::Withheld(3), 5).await, Err(CollectError::NoBody)));
    }
}

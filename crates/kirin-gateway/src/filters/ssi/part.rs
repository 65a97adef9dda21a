//! The answer to a request that a page has made, as a part of the page.

use bytes::Bytes;
use http::StatusCode;
use kirin_http::{Answer, Body, FieldLines, Later, RequestBody, Response};

use crate::request::collected_body::{CollectError, collect, collect_now};

/// The largest part, in bytes.
const MAX_PART_BYTES: usize = 4 * 1024 * 1024;

/// The largest sum of all parts of one page, in bytes.
pub const MAX_PARTS_BYTES: usize = 16 * 1024 * 1024;

/// A part that is there. The page takes over what the part says about caching, but no other field,
/// such as `Set-Cookie`.
pub struct PagePart {
    /// The body.
    pub pieces: Vec<Bytes>,
    /// The fields of its own response.
    pub fields: FieldLines,
}

/// Why a part is not there.
#[derive(Debug, thiserror::Error)]
pub enum PartFailure {
    /// It is an error or a redirect.
    #[error("it was answered {0}")]
    Status(StatusCode),
    /// Its bytes are compressed.
    #[error("it is there only in a content coding")]
    Coded,
    /// The task that answered it ended.
    #[error("{0}")]
    Lost(String),
    /// The page would be too large with it.
    #[error("the parts of the page are larger than {MAX_PARTS_BYTES} bytes together")]
    TooMuch,
    /// Its body cannot be read.
    #[error(transparent)]
    Body(#[from] CollectError),
}

/// An answer as a part.
pub enum PartAnswer {
    /// It is there, or will never be.
    Now(Result<PagePart, PartFailure>),
    /// It must be waited for.
    Later(WaitingPart),
}

/// A part that must be waited for. No work is done for it before [`WaitingPart::part`].
pub enum WaitingPart {
    /// The response.
    Response(Later),
    /// The body of a response.
    Body(Response),
}

impl PartAnswer {
    pub fn from_answer(answer: Answer) -> Self {
        let response = match answer {
            Answer::Now(response) => response,
            Answer::Later(later) => return PartAnswer::Later(WaitingPart::Response(later)),
        };
        if let Err(failure) = check(&response) {
            return PartAnswer::Now(Err(failure));
        }
        let Response { status, fields, body, answered_by } = response;
        match collect_now(body) {
            Ok(pieces) => PartAnswer::Now(Ok(PagePart { pieces, fields })),
            Err(body) => {
                PartAnswer::Later(WaitingPart::Body(Response { status, fields, body, answered_by }))
            }
        }
    }
}

impl WaitingPart {
    /// Waits for the part. Call on an event loop.
    pub async fn part(self) -> Result<PagePart, PartFailure> {
        let response = match self {
            WaitingPart::Response(later) => later(RequestBody::empty()).await,
            WaitingPart::Body(response) => response,
        };
        check(&response)?;
        let pieces = collect(response.body, MAX_PART_BYTES).await?;
        Ok(PagePart { pieces, fields: response.fields })
    }
}

fn check(response: &Response) -> Result<(), PartFailure> {
    if !response.status.is_success() {
        return Err(PartFailure::Status(response.status));
    }
    let coding = response.fields.get("content-encoding");
    let is_empty = matches!(response.body, Body::Empty);
    match coding.is_none_or(|coding| coding.eq_ignore_ascii_case(b"identity")) || is_empty {
        true => Ok(()),
        false => Err(PartFailure::Coded),
    }
}

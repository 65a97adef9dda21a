//! The application or the upstream behind the filters of a route.

use kirin_http::Answer;

use crate::request::context::Request;

/// A place that runs code, without the filters of its route. The cache asks it as often as it must,
/// also after the request itself has been answered.
pub trait Backend {
    /// Answers the request.
    fn answer(&self, request: &Request<'_>) -> Answer;
}

/// Returns `answer`, which then reads at most `limit_bytes` of the request's body.
pub fn limit_body(answer: Answer, limit_bytes: Option<u64>) -> Answer {
    match (answer, limit_bytes) {
        (Answer::Later(later), Some(limit)) => Answer::Later(Box::new(move |mut body| {
            body.limit(limit);
            later(body)
        })),
        (answer, _) => answer,
    }
}

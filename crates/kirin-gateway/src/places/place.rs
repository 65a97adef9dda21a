//! A place of a route on one event loop.

use kirin_http::Answer;

use crate::request::context::Request;

/// A place that a route asks for the answer.
pub trait Place {
    /// Answers the request with the filters of the route applied, or passes it to the next place.
    fn answer(&self, request: &Request<'_>) -> Option<Answer>;

    /// Answers a request for an error page from memory or from a file. The code of an application
    /// is not asked for one: it may be what failed.
    fn answer_without_code(&self, _: &Request<'_>) -> Option<Answer> {
        None
    }

    /// Answers a request that no place of the route has answered with the page of `fallback`.
    fn fallback(&self, _: &Request<'_>) -> Option<Answer> {
        None
    }

    /// Returns whether there is something under the path of the request that GET would show. This
    /// is the difference between 404 and 405.
    fn has(&self, _: &Request<'_>) -> bool {
        false
    }
}

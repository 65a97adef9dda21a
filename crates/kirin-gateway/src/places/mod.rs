//! The places that a route asks, one after the other. The first that has the answer gives it.
//!
//! Each place is one file, which implements [`Place`]. [`open`] opens a place from its
//! configuration; a new place is registered there.

pub mod app;
pub mod files;
pub mod hidden_scripts;
pub mod lua;
pub mod open;
pub mod proxy;
pub mod script_turns;
pub mod store;

use kirin_http::Answer;

use crate::request::context::Request;

/// A place of a route on one event loop.
pub trait Place {
    /// Answers the request with the filters of the route applied, or passes it to the next place.
    fn answer(&self, request: &Request<'_>) -> Option<Answer>;

    /// Answers a request for an error page from memory or from a file. The code of an application
    /// is not asked for one: it may be what failed.
    fn answer_without_code(&self, _: &Request<'_>) -> Option<Answer> {
        None
    }

    /// Whether there is something under the path of the request that GET would show. This is the
    /// difference between 404 and 405.
    fn has(&self, _: &Request<'_>) -> bool {
        false
    }

    /// Whether it answers every request, so that no place behind it is ever asked.
    fn answers_all(&self) -> bool {
        false
    }
}

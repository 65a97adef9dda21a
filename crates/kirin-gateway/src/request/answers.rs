//! The interface of the routes to a request: the answer to a subrequest, or the answer of the
//! places behind its own.

use std::rc::Rc;

use http::StatusCode;
use kirin_http::{Answer, Origin, RequestHead, Response};

use super::context::Request;
use super::lineage::Lineage;

/// The routes, as places and filters see them.
pub trait Answers {
    /// Answers a request by the route of its path. `lineage` is its position below the request of
    /// a client.
    fn ask(&self, head: &RequestHead<'_>, origin: Origin<'_>, lineage: &Lineage) -> Answer;

    /// Answers a request by the places behind `place`, which has passed after it has waited.
    fn ask_behind(&self, place: PlaceNumber, request: &Request<'_>) -> Answer;

    /// Answers a request for an error page in the same way. No code is asked for one.
    fn ask_behind_without_code(&self, place: PlaceNumber, request: &Request<'_>) -> Answer;

    /// Returns the routes in a form that outlives the request.
    fn shared(&self) -> Rc<dyn Answers>;
}

/// The position of a place in the configuration of one loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlaceNumber {
    /// The index of the route.
    pub route: usize,
    /// The index of the place in the route.
    pub place: usize,
}

/// Routes that have nothing, for a request that is only looked at.
pub struct NoRoutes;

impl Answers for NoRoutes {
    fn ask(&self, _: &RequestHead<'_>, _: Origin<'_>, _: &Lineage) -> Answer {
        Answer::Now(Response::error(StatusCode::NOT_FOUND))
    }

    fn ask_behind(&self, _: PlaceNumber, _: &Request<'_>) -> Answer {
        Answer::Now(Response::error(StatusCode::NOT_FOUND))
    }

    fn ask_behind_without_code(&self, _: PlaceNumber, _: &Request<'_>) -> Answer {
        Answer::Now(Response::error(StatusCode::NOT_FOUND))
    }

    fn shared(&self) -> Rc<dyn Answers> {
        Rc::new(NoRoutes)
    }
}

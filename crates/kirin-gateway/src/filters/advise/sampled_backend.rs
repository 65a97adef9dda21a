//! A place that runs code, observed while a run of `kirin advise` is on.

use std::sync::Arc;
use std::time::Instant;

use http::{Method, StatusCode};
use kirin_advice::observation::{AdvisedRoute, Observation, ObservedBody};
use kirin_advice::own_values::OwnValues;
use kirin_http::{Answer, Body, ObservedStream, Response};

use super::observed_body::{MAX_BODY_BYTES, Observing, StreamHasher};
use super::request_facts::RequestFacts;
use super::response_facts::statement;
use super::sampling::{ObservedRoute, Run, Sampling};
use crate::filters::backend::Backend;
use crate::request::answers::PlaceNumber;
use crate::request::context::Request;
use crate::routing::settings::RouteConfig;

/// A place whose answers are observed.
pub struct SampledBackend<B> {
    sampling: Arc<Sampling>,
    backend: B,
    /// The number of the route.
    number: u32,
    /// The route without the name of its site, which depends on the request.
    route: Arc<AdvisedRoute>,
}

impl<B: Backend> SampledBackend<B> {
    /// Observes `backend`, which is the place with this number of `route`.
    pub fn new(
        sampling: Arc<Sampling>,
        route: &RouteConfig,
        number: PlaceNumber,
        backend: B,
    ) -> Self {
        let place = route.places.get(number.place).map(ToString::to_string);
        let facts = AdvisedRoute {
            site: String::new(),
            path: route.path.to_string(),
            place: place.unwrap_or_default(),
            has_store: route.reachable().has_store,
            has_rewrite: route.rules.rewrite.is_some(),
        };
        Self { sampling, backend, number: route.number, route: Arc::new(facts) }
    }

    /// Answers a request, and adds the answer to the run.
    #[cold]
    fn answer_observed(&self, run: Arc<Run>, request: &Request<'_>) -> Answer {
        let asked = Instant::now();
        let facts = RequestFacts::from_request(request, self.number, &run.key);
        let is_head = request.head.method == Method::HEAD;
        // A limit on the rate does not decide who may see a page.
        let is_protected = request.protection.words().iter().any(|word| *word != "rate");
        let route = Arc::clone(&self.route);
        let route = ObservedRoute { route, namespace: request.namespace.clone(), is_protected };
        match self.backend.answer(request) {
            // The server itself refuses the request.
            Answer::Now(response) => Answer::Now(response),
            Answer::Later(later) => Answer::later(move |body| async move {
                let response = later(body).await;
                observed(response, run, route, facts, asked, is_head)
            }),
        }
    }
}

impl<B: Backend> Backend for SampledBackend<B> {
    fn answer(&self, request: &Request<'_>) -> Answer {
        if !self.sampling.is_on() {
            return self.backend.answer(request);
        }
        match self.sampling.run().filter(|run| run.observes(&self.route.place, self.number)) {
            Some(run) => self.answer_observed(run, request),
            None => self.backend.answer(request),
        }
    }
}

/// Returns the response, whose body is hashed while it is sent.
fn observed(
    response: Response,
    run: Arc<Run>,
    route: ObservedRoute,
    facts: RequestFacts,
    asked: Instant,
    is_head: bool,
) -> Response {
    let places =
        [kirin_workers::ANSWERED_BY, kirin_proxy::ANSWERED_BY, kirin_cgi_programs::ANSWERED_BY];
    if !places.contains(&response.answered_by) || matches!(response.body, Body::Tunnel(_)) {
        return response;
    }
    let RequestFacts { target, visitor, has_body, own_values } = facts;
    let is_hashed = target.is_read && !is_head && response.status != StatusCode::NOT_MODIFIED;
    let observation = Observation {
        target,
        has_request_body: has_body,
        visitor,
        asked: run.time_of(asked),
        answered: run.elapsed(),
        place_time: asked.elapsed(),
        status: response.status.as_u16(),
        statement: statement(&response.fields),
        body: ObservedBody::Missing,
    };
    let observing = Observing::new(run, route, observation);
    let body = with_body(response.body, observing, own_values, is_hashed);
    Response { body, ..response }
}

fn with_body(body: Body, mut observing: Observing, own_values: OwnValues, is_hashed: bool) -> Body {
    match &body {
        Body::File(_) => observing.set_body(ObservedBody::File),
        _ if !is_hashed => {}
        body if body.length().is_some_and(|length| length > MAX_BODY_BYTES) => {
            observing.set_body(ObservedBody::TooLong);
        }
        _ => observing.hash(own_values),
    }
    match body {
        Body::Stream(source) => {
            Body::Stream(Box::new(ObservedStream::new(source, StreamHasher::new(observing))))
        }
        body => {
            let pieces = match &body {
                Body::Bytes(bytes) => std::slice::from_ref(bytes),
                Body::Segments(segments) => segments,
                _ => &[],
            };
            pieces.iter().for_each(|piece| observing.add(piece));
            if !matches!(body, Body::Withheld(_)) {
                observing.end();
            }
            body
        }
    }
}

//! The rules of a route around its places. They are made when the configuration is checked, and all
//! loops share them.

use std::num::NonZeroU64;
use std::sync::Arc;
use std::time::Instant;

use kirin_http::Response;
use xxhash_rust::xxh3::xxh3_64;

use crate::routing::access::{Access, Refusal};
use crate::routing::auth_request::AuthRequest;
use crate::routing::basic_auth::BasicAuth;
use crate::routing::error_page::ErrorPages;
use crate::routing::given_fields::GivenFields;
use crate::routing::in_flight_limit::InFlightLimit;
use crate::routing::path_pattern::PathPattern;
use crate::routing::rate_limit::RateLimit;
use crate::routing::redirect::Redirect;
use crate::routing::redirect_table::Redirects;
use crate::routing::response_fields::ResponseFields;
use crate::routing::rewrite::Rewrite;
use crate::routing::variables::RequestValues;

/// The rules of a route, in the order in which a request passes them.
#[derive(Debug, Default)]
pub struct Rules {
    /// The clients that are served.
    pub access: Access,
    /// The limits on the rate of requests.
    pub rate_limits: Vec<Arc<RateLimit>>,
    /// The limits on requests in progress.
    pub in_flight_limits: Vec<Arc<InFlightLimit>>,
    /// The table of redirects. No place is asked, and no password.
    pub redirects: Option<Redirects>,
    /// The redirect of all other requests, in the same way.
    pub redirect: Option<Redirect>,
    /// The users that may pass.
    pub basic_auth: Option<BasicAuth>,
    /// The program that decides who may pass.
    pub auth_request: Option<AuthRequest>,
    /// The fields that places get in place of those of the client.
    pub given_fields: GivenFields,
    /// The path below which places look.
    pub rewrite: Option<Rewrite>,
    /// The pages for errors.
    pub error_pages: ErrorPages,
    /// The fields of all responses.
    pub response_fields: ResponseFields,
}

impl Rules {
    /// Returns whether there are no rules.
    pub fn is_empty(&self) -> bool {
        self.access.is_for_all()
            && !self.has_limits()
            && self.redirects.is_none()
            && self.redirect.is_none()
            && self.basic_auth.is_none()
            && self.auth_request.is_none()
            && self.given_fields.is_empty()
            && self.rewrite.is_none()
            && !self.change_responses()
    }

    /// Returns whether there are rules for responses.
    pub fn change_responses(&self) -> bool {
        !self.error_pages.is_empty() || !self.response_fields.is_empty()
    }

    /// Redirects a request of the route `pattern`, if the table has a line for it, or the route a
    /// redirect.
    pub fn redirect(&self, request: &RequestValues<'_>, pattern: &PathPattern) -> Option<Response> {
        let redirects = self.redirects.as_ref();
        let by_table = redirects.and_then(|table| table.respond(request.path, request.head.query));
        by_table.or_else(|| Some(self.redirect.as_ref()?.respond(request, pattern)))
    }

    /// Counts a request of a client that comes at `now`. Returns the refusal if there are too many.
    /// Otherwise the request holds a place in each limit on requests in progress until its notes
    /// are dropped, with the end of its response.
    pub fn refuse_excess(&self, request: &RequestValues<'_>, now: Instant) -> Option<Refusal<'_>> {
        for limit in &self.rate_limits {
            if let Err(too_many) = limit.count(request, now) {
                // The seconds are rounded up, so that a retry then succeeds (RFC 6585 section 4).
                let seconds = too_many.retry_after.as_secs() + 1;
                if let Some(refused) = limit.refusal.refuse(&**limit, seconds, now) {
                    return Some(refused);
                }
            }
        }
        for limit in &self.in_flight_limits {
            match limit.begin(request, now) {
                Ok(Some(permit)) => request.origin.notes.steps().hold(Box::new(permit)),
                Ok(None) => {}
                Err(refused) => return Some(refused),
            }
        }
        None
    }

    /// Returns a number for the values that `rewrite` and `request_headers` give to places, and
    /// that are not of the target: responses to other values are other responses. Returns `None` if
    /// there are no such values.
    pub fn value_digest(&self, request: &RequestValues<'_>) -> Option<NonZeroU64> {
        let of_path = self.rewrite.iter().flat_map(Rewrite::variables);
        let variables = of_path.chain(self.given_fields.variables());
        let mut values = Vec::new();
        for variable in variables.filter(|variable| !variable.is_of_target()) {
            variable.append_key(request, &mut values);
        }
        if values.is_empty() {
            return None;
        }
        Some(NonZeroU64::new(xxh3_64(&values)).unwrap_or(NonZeroU64::MIN))
    }

    /// Returns whether there are limits on requests.
    pub fn has_limits(&self) -> bool {
        !self.rate_limits.is_empty() || !self.in_flight_limits.is_empty()
    }
}

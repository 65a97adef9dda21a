//! The entrance of a listener: what happens to every request before the routes, and to every
//! response after them.

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use kirin_acme::{ChallengeAnswer, ChallengeLookup, Challenges, challenge_token};
use kirin_gateway::request::kept_request::KeptHead;
use kirin_gateway::routing::router::Router;
use kirin_http::host::without_port;
use kirin_http::request::Version;
use kirin_http::{Answer, AnsweredBy, Body, Handler, Origin, RequestHead, Response};
use kirin_server::BlockedAddresses;

/// The handler of a listener, in front of the routes.
pub struct Entrance {
    /// The routes. All listeners of a loop share them.
    pub router: Rc<Router>,
    /// The addresses that an operator has blocked.
    pub blocked: Arc<BlockedAddresses>,
    /// The port of https to which clients are sent.
    pub redirect_to_https: Option<u16>,
    /// The value of Strict-Transport-Security.
    pub hsts: Option<Rc<str>>,
    /// The value of Alt-Svc (RFC 7838), which says where HTTP/3 is.
    pub alt_svc: Option<Rc<str>>,
    /// The answers to authorities that issue certificates.
    pub challenges: Arc<Challenges>,
}

/// The fields that every response of a listener gets.
struct AddedFields {
    hsts: Option<Rc<str>>,
    alt_svc: Option<Rc<str>>,
}

impl Handler for Entrance {
    fn answer(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Answer {
        // The server refuses connections. This is for those that are open, and for clients behind
        // a proxy.
        if self.blocked.has(origin.peer) {
            return Answer::Now(Response::error(StatusCode::FORBIDDEN));
        }
        if let Some(token) = challenge_token(request.path) {
            match self.challenges.answer(request, token) {
                ChallengeAnswer::Known(response) => return Answer::Now(response),
                ChallengeAnswer::Elsewhere(lookup) => return self.ask(lookup, request, origin),
                ChallengeAnswer::Unknown => {}
            }
        // A trusted proxy may have said that its client uses https.
        } else if let Some(port) = self.redirect_to_https
            && !origin.secure
            // Programs that purge do not follow redirects.
            && !self.router.is_purge(request, origin)
        {
            return Answer::Now(to_https(request, port));
        }
        route(&self.router, self.added(request, origin), request, origin)
    }
}

impl Entrance {
    /// Returns the fields that the response gets.
    fn added(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> AddedFields {
        // A proxy in front would take the offer for itself.
        let is_direct = origin.secure && origin.proxy.is_none();
        let alt_svc = match request.version < Version::Http3 && is_direct {
            true => self.alt_svc.clone(),
            false => None,
        };
        AddedFields { hsts: self.hsts.clone(), alt_svc }
    }

    /// Asks the origin of the store for the answer to a challenge, and then the routes.
    #[cold]
    fn ask(&self, lookup: ChallengeLookup, head: &RequestHead<'_>, origin: Origin<'_>) -> Answer {
        let (router, added) = (Rc::clone(&self.router), self.added(head, origin));
        let head = KeptHead::new(head, origin);
        Answer::later(move |body| async move {
            match lookup.response().await {
                Some(response) => response,
                None => {
                    let answer = head.with(|head, origin| route(&router, added, head, origin));
                    answer.response(body).await
                }
            }
        })
    }
}

/// Asks the routes.
fn route(
    router: &Router,
    added: AddedFields,
    request: &RequestHead<'_>,
    origin: Origin<'_>,
) -> Answer {
    let answer = router.answer(request, origin);
    match added {
        AddedFields { hsts: None, alt_svc: None } => answer,
        added => with_fields(answer, added),
    }
}

/// Redirects to https. Status 308 keeps method and body (RFC 9110 section 15.4.9).
fn to_https(request: &RequestHead<'_>, port: u16) -> Response {
    let host = without_port(request.host);
    if host.is_empty() || !request.path.starts_with('/') {
        return Response::error(StatusCode::BAD_REQUEST);
    }
    let port = if port == 443 { String::new() } else { format!(":{port}") };
    let query = request.query.map(|query| format!("?{query}")).unwrap_or_default();
    let mut response =
        Response::new(AnsweredBy::SERVER, StatusCode::PERMANENT_REDIRECT, Body::Empty);
    response.fields.push("Location", format!("https://{host}{port}{}{query}", request.path));
    response
}

fn with_fields(answer: Answer, added: AddedFields) -> Answer {
    let AddedFields { hsts, alt_svc } = added;
    let add = move |mut response: Response| {
        if let Some(value) = hsts {
            response.fields.push("Strict-Transport-Security", &*value);
        }
        // A site that names its own services knows more of what is in front of it.
        if let Some(value) = alt_svc
            && response.fields.get("alt-svc").is_none()
        {
            response.fields.push("Alt-Svc", &*value);
        }
        response
    };
    match answer {
        Answer::Now(response) => Answer::Now(add(response)),
        Answer::Later(later) => Answer::later(move |body| async move { add(later(body).await) }),
    }
}

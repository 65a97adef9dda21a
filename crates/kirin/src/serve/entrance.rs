//! The entrance of a listener: what happens to every request before the routes, and to every
//! response after them.

use std::rc::Rc;
use std::sync::Arc;

use http::StatusCode;
use kirin_acme::{CHALLENGE_PATH, Challenges};
use kirin_gateway::routing::router::Router;
use kirin_http::host::without_port;
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
    /// The answers to authorities that issue certificates.
    pub challenges: Arc<Challenges>,
}

impl Handler for Entrance {
    fn answer(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> Answer {
        // The server refuses connections. This is for those that are open, and for clients behind
        // a proxy.
        if self.blocked.has(origin.peer) {
            return Answer::Now(Response::error(StatusCode::FORBIDDEN));
        }
        if is_challenge(request.path) {
            if let Some(response) = self.challenges.answer(request) {
                return Answer::Now(response);
            }
        // A trusted proxy may have said that its client uses https.
        } else if let Some(port) = self.redirect_to_https
            && !origin.secure
            // Programs that purge do not follow redirects.
            && !self.router.is_purge(request, origin)
        {
            return Answer::Now(to_https(request, port));
        }
        let answer = self.router.answer(request, origin);
        match &self.hsts {
            None => answer,
            Some(value) => with_hsts(answer, Rc::clone(value)),
        }
    }
}

/// Returns whether an authority may ask for this path. A token consists of base64url characters
/// (RFC 8555 section 8.3). A path with `..` or `%2F` would be another page of the site.
fn is_challenge(path: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
    path.strip_prefix(CHALLENGE_PATH)
        .is_some_and(|token| !token.is_empty() && token.bytes().all(is_part))
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

fn with_hsts(answer: Answer, value: Rc<str>) -> Answer {
    let add = move |mut response: Response| {
        response.fields.push("Strict-Transport-Security", &*value);
        response
    };
    match answer {
        Answer::Now(response) => Answer::Now(add(response)),
        Answer::Later(later) => Answer::later(move |body| async move { add(later(body).await) }),
    }
}

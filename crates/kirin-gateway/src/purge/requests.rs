//! The method `PURGE` on ordinary listeners, for the peers that `store.purge_from` names.
//!
//! From other peers it is a method as any other, which goes to the application. The router calls
//! this before it asks places.

use http::StatusCode;
use kirin_http::{Answer, AnsweredBy, Body, Origin, PeerSet, RequestHead, Response, proxy_field};
use kirin_origin::NearStore;
use kirin_store::Now;

use crate::purge::command::{self, Purge, Purged};
use crate::request::context::Request;

/// Answers PURGE on one loop.
pub struct PurgeRequests {
    near: NearStore,
    from: PeerSet,
    is_on: bool,
}

impl PurgeRequests {
    /// Purges items of `near` for these peers.
    pub fn new(near: NearStore, from: PeerSet) -> Self {
        let is_on = !from.is_empty();
        Self { near, from, is_on }
    }

    /// Purges if the request asks for it and comes from a peer that may. The cache of a route knows
    /// the target as the client sent it, the `store` place with its path rewritten. All names are
    /// those of the site that the request is for.
    pub fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        let Request { head: sent, rewritten, origin, .. } = *request;
        if !self.is_purge(sent, origin) {
            return None;
        }
        let purge = named(sent, rewritten).and_then(|purge| purge.within(request.namespace));
        let purge = match purge {
            Ok(purge) => purge,
            Err(message) => {
                return Some(Answer::Now(error_response(StatusCode::BAD_REQUEST, &message)));
            }
        };
        let (near, now) = (self.near.clone(), Now::from_unix_seconds(origin.now));
        Some(Answer::later(move |_| async move {
            match purge.apply(&near, now).await {
                Ok(purged) => response_of(&purged),
                Err(error) => error_response(StatusCode::SERVICE_UNAVAILABLE, &error.to_string()),
            }
        }))
    }

    /// Returns whether the request asks for a purge and may do so.
    pub fn is_purge(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> bool {
        self.is_on && is_purge(&self.from, request, origin)
    }
}

fn response_of(purged: &Purged) -> Response {
    let mut body = serde_json::to_vec(purged).unwrap_or_default();
    body.push(b'\n');
    let mut response = Response::new(AnsweredBy::SERVER, StatusCode::OK, Body::from(body));
    response.fields.push("Content-Type", "application/json");
    response
}

fn error_response(status: StatusCode, message: &str) -> Response {
    let mut response = Response::error(status);
    response.body = Body::from(format!("{message}\n").into_bytes());
    response
}

/// Returns whether the request asks for a purge, and is one of the peers that may. A browser names
/// the page that sends it in `Origin`; no page may purge. Behind a proxy the client is not the
/// peer. Even if the proxy is trusted, a purge must come directly.
pub fn is_purge(from: &PeerSet, request: &RequestHead<'_>, origin: Origin<'_>) -> bool {
    request.method.as_str() == "PURGE"
        && from.contains(origin.peer)
        && request.field("origin").is_none()
        && request.field("via").is_none()
        && request.fields.iter().all(|field| proxy_field(field.name).is_none())
}

/// Returns the purge that `Kirin-Purge` names. Without names it is the target, by its own path and
/// by the rewritten one. A `*` at the end purges all targets with this prefix.
fn named(sent: &RequestHead<'_>, rewritten: &RequestHead<'_>) -> Result<Purge, String> {
    let mut purge = Purge::parse(sent.field("kirin-purge").unwrap_or_default())
        .map_err(|error| format!("Kirin-Purge: {error}; it is written as {}", command::FORM))?;
    if !purge.is_empty() {
        return Ok(purge);
    }
    let mut keys = Vec::new();
    for request in [rewritten, sent] {
        // It may be longer than a key of the store, since the cache has longer ones.
        let key = match request.query {
            Some(query) => [request.path, "?", query].concat(),
            None => request.path.to_owned(),
        };
        if !keys.contains(&key) {
            keys.push(key);
        }
    }
    for key in keys {
        match key.strip_suffix('*') {
            Some(prefix) => purge.prefixes.push(prefix.to_owned()),
            None => purge.keys.push(key),
        }
    }
    Ok(purge)
}

//! The method `PURGE` on ordinary listeners, for those whom `store.purge_from` names.
//!
//! From anybody else it is a method as any other, which goes to the application. Called by the
//! router before the places of a route.

use std::sync::Arc;

use http::StatusCode;
use kirin_http::{AnsweredBy, Body, Origin, RequestHead, Response, TrustedPeers, proxy_field};
use kirin_store::{Now, Store};

use crate::purge::command::{self, Purge};

/// Answers PURGE on one loop.
pub struct PurgeRequests {
    store: Arc<Store>,
    from: TrustedPeers,
    is_on: bool,
}

impl PurgeRequests {
    /// Of pages in `store`.
    pub fn new(store: Arc<Store>, from: TrustedPeers) -> Self {
        let is_on = from.unix || !from.networks.is_empty();
        Self { store, from, is_on }
    }

    /// Purges if this is a request for it from one who may. `sent` is what the client has sent,
    /// which is what the cache of a route knows; `seen` has its path rewritten, as the `store`
    /// place sees it.
    pub fn answer(
        &self,
        sent: &RequestHead<'_>,
        seen: &RequestHead<'_>,
        origin: Origin<'_>,
    ) -> Option<Response> {
        if !self.is_on || sent.method.as_str() != "PURGE" || !self.may(sent, origin) {
            return None;
        }
        let purge = match named(sent, seen) {
            Ok(purge) => purge,
            Err(message) => {
                let mut response = Response::error(StatusCode::BAD_REQUEST);
                response.body = Body::from(format!("{message}\n").into_bytes());
                return Some(response);
            }
        };
        let purged = purge.apply(&self.store, Now::from_unix_seconds(origin.now));
        let mut body = serde_json::to_vec(&purged).unwrap_or_default();
        body.push(b'\n');
        let mut response = Response::new(AnsweredBy::SERVER, StatusCode::OK, Body::from(body));
        response.fields.push("Content-Type", "application/json");
        Some(response)
    }

    /// A browser says in `Origin` which page wants it; none may. Who comes through a proxy is
    /// somebody else than the peer seems, unless the proxy is trusted; and if it is, a purge may
    /// still come directly.
    fn may(&self, request: &RequestHead<'_>, origin: Origin<'_>) -> bool {
        self.from.contains(origin.peer)
            && request.field("origin").is_none()
            && request.field("via").is_none()
            && request.fields.iter().all(|field| proxy_field(field.name).is_none())
    }
}

/// What `Kirin-Purge` names, or if that is nothing the target, by its own path and by the one that
/// it is rewritten to; with `*` at its end all that begins so.
fn named(sent: &RequestHead<'_>, seen: &RequestHead<'_>) -> Result<Purge, String> {
    let mut purge = Purge::parse(sent.field("kirin-purge").unwrap_or_default())
        .map_err(|error| format!("Kirin-Purge: {error}; it is written as {}", command::FORM))?;
    if !purge.is_empty() {
        return Ok(purge);
    }
    let mut keys = Vec::new();
    for request in [seen, sent] {
        // Longer than a key of the store may be, since the cache has longer ones.
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

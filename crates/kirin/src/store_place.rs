//! The `store` place: pages that the application has put into memory, served without it.
//!
//! The key is the request target, path and query as sent. What a page needs to be served (its head, ETag and compiled
//! includes) is made at its first request and kept beside the item. Called by the router for every route that tries
//! `store`.

use crate::page::Page;
use http::{Method, StatusCode};
use kirin_http::{Body, Place, RequestHead, Response, entity_tag};
use kirin_ssi::{Rendered, Source, Template};
use kirin_store::{Now, Store};
use std::sync::Arc;
use xxhash_rust::xxh3::Xxh3;

/// The longest key of memcached; a longer target cannot have been stored.
const MAX_KEY_BYTES: usize = 250;

/// Answers from `store`, or passes. `is_last`: no other place of the route could make the page anew, so that one with a
/// part missing is better than none.
pub fn answer(store: &Store, request: &RequestHead<'_>, now: Now, is_last: bool) -> Option<Response> {
    if !request.is_get_or_head() {
        return None;
    }
    let key = key_of(request)?;
    let item = store.get(key, now)?;
    let page = store.companion::<Page>(&item, now, Page::compile);
    let head = page.head.as_ref()?;
    if !page.template.has_includes() {
        if is_not_modified(request, &head.etag) {
            return Some(respond(StatusCode::NOT_MODIFIED, &head.fields, Body::Empty));
        }
        let body = Body::Bytes(page.body.clone());
        return Some(respond(head.status, &head.fields, body));
    }
    let mut parts = Parts { store, now, digest: Xxh3::new() };
    parts.digest.update(&page.digest.to_le_bytes());
    let pieces = match kirin_ssi::render(&page.template, &mut parts) {
        Rendered::Whole(pieces) => pieces,
        Rendered::Missing(_, missing) if !is_last => {
            tracing::debug!(page = %text(key), missing = %text(&missing), "an include is not in the store; the next place answers");
            return None;
        }
        Rendered::Missing(pieces, missing) => {
            tracing::warn!(page = %text(key), missing = %text(&missing), "an include is not in the store and is left out");
            pieces
        }
        Rendered::Cut(pieces, at) => {
            tracing::error!(page = %text(key), include = %text(&at), "includes go in a circle or too deep; left out here");
            pieces
        }
    };
    let etag = format!("\"{:032x}\"", parts.digest.digest128());
    if is_not_modified(request, etag.as_bytes()) {
        let mut response = respond(StatusCode::NOT_MODIFIED, &head.fields, Body::Empty);
        response.fields.push("ETag", etag);
        return Some(response);
    }
    let mut response = respond(head.status, &head.fields, Body::Segments(pieces));
    response.fields.push("ETag", etag);
    Some(response)
}

/// Whether a GET would be answered with a page. For the difference between 404 and 405.
pub fn has(store: &Store, request: &RequestHead<'_>, now: Now) -> bool {
    let item = key_of(request).and_then(|key| store.get(key, now));
    item.is_some_and(|item| store.companion::<Page>(&item, now, Page::compile).head.is_some())
}

fn respond(status: StatusCode, fields: &kirin_http::FieldLines, body: Body) -> Response {
    Response { status, fields: fields.clone(), body, place: Place::Store }
}

/// The part of the target that can be a key. An absolute target has the path in its middle.
fn key_of<'a>(request: &RequestHead<'a>) -> Option<&'a [u8]> {
    let key = match request.query {
        _ if request.target.starts_with('/') => request.target,
        None => request.path,
        Some(_) => return None,
    };
    (key.len() <= MAX_KEY_BYTES).then_some(key.as_bytes())
}

fn is_not_modified(request: &RequestHead<'_>, etag: &[u8]) -> bool {
    debug_assert!(request.method == Method::GET || request.method == Method::HEAD);
    request.field("if-none-match").is_some_and(|list| entity_tag::weakly_in(etag, list))
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

/// Finds includes in the store and sums up what was found, so that a page with another fragment has another ETag.
struct Parts<'a> {
    store: &'a Store,
    now: Now,
    digest: Xxh3,
}

impl Source for Parts<'_> {
    fn template(&mut self, key: &[u8]) -> Option<Arc<Template>> {
        let item = self.store.get(key, self.now)?;
        let page = self.store.companion::<Page>(&item, self.now, Page::compile);
        self.digest.update(&page.digest.to_le_bytes());
        Some(Arc::clone(&page.template))
    }
}

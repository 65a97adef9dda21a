//! The `push` filter: stores and purges what an application demands with `Kirin-Store` and
//! `Kirin-Purge`.
//!
//! The fields are for Kirin and never reach the client. Purged items are gone before the client has
//! a byte of the response, so that it reads its own writes. A response is stored as the application
//! has sent it, before directives are carried out and before compression. It is stored only if
//! nothing that it could have been made from has been purged since its request came
//! (`kirin_store::Moment`).

pub mod dictionary;
pub mod reach;
pub mod store_field;
mod stored_stream;

use std::borrow::Cow;
use std::rc::Rc;

use bytes::Bytes;
use http::Method;
use kirin_http::media_type::is_html;
use kirin_http::{Answer, Body, FieldLines, Response, SeldomWarnings};
use kirin_origin::{Begun, NearStore, NotStored};
use kirin_ssi::Syntax;
use kirin_store::{Expires, Namespace, NewItem, Now};

use crate::filters::backend::Backend;
use crate::pages::page::may_be_dynamic;
use crate::pages::store_key::key_of;
use crate::purge::command::{self, MAX_KEY_BYTES, Purge};
use crate::request::context::Request;
use crate::routing::protection::Protection;
use reach::Reach;
use store_field::{PushRefusal, STORE, StoreField, stored_head, text_only_line};
use stored_stream::StoredStream;

const PURGE: &str = "kirin-purge";

/// Stores and purges for the applications of a site, on one event loop.
pub struct Push {
    near: NearStore,
    reach: Reach,
    warnings: SeldomWarnings,
}

/// The parts of a request on which it depends how its response is stored.
struct PushRequest {
    method: Method,
    /// The key under which the `store` place looks for its page.
    key: Option<Vec<u8>>,
    /// The part of the store that belongs to its site.
    namespace: Namespace,
    /// The directives that its route carries out.
    syntax: Syntax,
    /// The conditions that it has passed.
    protection: Protection,
}

/// An application whose responses are stored if they say so.
pub struct PushBackend<B> {
    push: Rc<Push>,
    backend: B,
}

impl<B: Backend> PushBackend<B> {
    /// Stores the responses of `backend`.
    pub fn new(push: Rc<Push>, backend: B) -> Self {
        Self { push, backend }
    }
}

impl<B: Backend> Backend for PushBackend<B> {
    fn answer(&self, request: &Request<'_>) -> Answer {
        self.push.around(request, self.backend.answer(request))
    }
}

/// The place in the store where a response goes.
struct Destination {
    push: Rc<Push>,
    key: Vec<u8>,
    namespace: Namespace,
    tags: Vec<Vec<u8>>,
    ttl_seconds: Option<u64>,
    protection: Protection,
    begun: Begun,
    /// The syntaxes whose directives are text in the response, since its route does not carry them
    /// out.
    text_only: Syntax,
    head_bytes: usize,
}

impl Push {
    /// Stores pages in `near`. The routes of `reach` answer from it.
    pub fn new(near: NearStore, reach: Reach) -> Rc<Self> {
        Rc::new(Self { near, reach, warnings: SeldomWarnings::default() })
    }

    /// Returns the answer of an application, and does what it says about the store. The moment
    /// counts since which nothing may have been purged: call it when the application gets the
    /// request.
    fn around(self: &Rc<Self>, request: &Request<'_>, answer: Answer) -> Answer {
        let Answer::Later(later) = answer else { return answer };
        let push = Rc::clone(self);
        let (push_request, begun) = (PushRequest::from_request(request), self.near.begin());
        Answer::later(move |body| async move {
            let response = later(body).await;
            let is_for_us = |(name, _): (&[u8], &[u8])| {
                name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case(b"kirin-"))
            };
            let places = [kirin_workers::ANSWERED_BY, kirin_cgi_programs::ANSWERED_BY];
            let is_of_place = places.contains(&response.answered_by);
            if !is_of_place || !response.fields.iter().any(is_for_us) {
                return response;
            }
            push.carry_out(push_request, begun, response).await
        })
    }

    async fn carry_out(
        self: &Rc<Self>,
        request: PushRequest,
        begun: Begun,
        mut response: Response,
    ) -> Response {
        let (to_store, to_purge) =
            (take(&mut response.fields, STORE), take(&mut response.fields, PURGE));
        if let Some(value) = to_purge {
            match Purge::parse(&value) {
                Ok(purge) => self.purge(&purge, &request).await,
                Err(error) => self.warnings.warn("purge", || {
                    tracing::error!(page = %request.target(), value = %text(&value), "Kirin-Purge has no effect: {error}; it is \
                                    written as {}", command::FORM);
                }),
            }
        }
        let Some(value) = to_store else { return response };
        let field = match StoreField::parse(&value) {
            Ok(field) => field,
            Err(error) => {
                self.warnings.warn("field", || {
                    tracing::warn!(page = %request.target(), value = %text(&value), "a response is not stored, its Kirin-Store \
                                   is malformed: {error}; it is written as {}", store_field::FORM);
                });
                return response;
            }
        };
        if let Err(reason) = self.push(&request, begun, field, &mut response).await {
            self.warn_unstorable(&request.target(), &reason);
        }
        response
    }

    async fn purge(&self, purge: &Purge, request: &PushRequest) {
        let purged = match purge.within(&request.namespace) {
            Ok(purge) => {
                let purged = purge.apply(&self.near, Now::on_steady_clock()).await;
                purged.map_err(|error| error.to_string())
            }
            Err(error) => Err(error),
        };
        if let Err(error) = purged {
            self.warnings.warn("purge", || {
                tracing::error!(page = %request.target(), "Kirin-Purge has no effect: {error}");
            });
        }
    }

    /// Stores the response, or has it stored while it is sent.
    async fn push(
        self: &Rc<Self>,
        request: &PushRequest,
        begun: Begun,
        field: StoreField,
        response: &mut Response,
    ) -> Result<(), PushRefusal> {
        store_field::check(&request.method, &field, response)?;
        let namespace = &request.namespace;
        let full_name = |name: &[u8]| namespace.full_name(name).map(Cow::into_owned);
        let (key, protection) = match &field.key {
            Some(key) => {
                let key = full_name(key.as_bytes()).filter(|key| key.len() <= MAX_KEY_BYTES);
                (key.ok_or(PushRefusal::Target)?, request.protection.without_rate())
            }
            None => (request.key.clone().ok_or(PushRefusal::Target)?, request.protection),
        };
        let tags = field.tags.iter().map(|tag| full_name(tag.as_bytes()));
        let tags = tags.collect::<Option<_>>().ok_or(PushRefusal::ForeignTag)?;
        let ttl_seconds = field.ttl_seconds;
        let head = stored_head(response.status, &response.fields, protection);
        let is_page = response.fields.get("content-type").is_some_and(is_html);
        let syntax = request.syntax;
        let text_only = Syntax { ssi: is_page && !syntax.ssi, esi: is_page && !syntax.esi };
        let (push, head_bytes) = (Rc::clone(self), head.len());
        let namespace = namespace.clone();
        let destination = Destination {
            push,
            key,
            namespace,
            tags,
            ttl_seconds,
            protection,
            begun,
            text_only,
            head_bytes,
        };
        let length = head.len() as u64 + response.body.length().unwrap_or(0);
        if !destination.has_room(length) {
            return Err(PushRefusal::TooLarge);
        }
        match std::mem::replace(&mut response.body, Body::Empty) {
            Body::Stream(source) => {
                response.body =
                    Body::Stream(Box::new(StoredStream::new(source, destination, head)));
            }
            body => {
                let pieces = match &body {
                    Body::Bytes(bytes) => std::slice::from_ref(bytes),
                    Body::Segments(segments) => segments,
                    _ => &[],
                };
                destination.store(head, pieces).await;
                response.body = body;
            }
        }
        Ok(())
    }

    fn warn_unstorable(&self, target: &str, reason: &PushRefusal) {
        let kind = match reason {
            PushRefusal::NotWhole => {
                return tracing::debug!(page = target, %reason, "a response is not stored");
            }
            PushRefusal::Method(_) => "method",
            PushRefusal::Status(_) => "status",
            PushRefusal::SetCookie => "set-cookie",
            PushRefusal::Vary(_) => "vary",
            PushRefusal::File => "file",
            PushRefusal::Target => "target",
            PushRefusal::ForeignTag => "tag",
            PushRefusal::TooLarge => "too large",
        };
        self.warnings
            .warn(kind, || tracing::warn!(page = target, "a response is not stored: {reason}"));
    }
}

impl PushRequest {
    fn from_request(request: &Request<'_>) -> Self {
        Self {
            method: request.head.method.clone(),
            key: key_of(request.rewritten, request.namespace).map(Cow::into_owned),
            namespace: request.namespace.clone(),
            syntax: request.syntax,
            protection: request.protection,
        }
    }

    fn target(&self) -> String {
        self.key.as_deref().map(text).unwrap_or_default()
    }
}

impl Destination {
    /// Returns whether this number of bytes can be stored there.
    fn has_room(&self, bytes: u64) -> bool {
        let tags: Vec<&[u8]> = self.tags.iter().map(Vec::as_slice).collect();
        usize::try_from(bytes)
            .is_ok_and(|bytes| self.push.near.store().is_storable(&self.key, bytes, &tags))
    }

    /// Stores a complete response. Afterwards the server behind the store has it, if there is one.
    async fn store(&self, mut value: Vec<u8>, pieces: &[Bytes]) {
        pieces.iter().for_each(|piece| value.extend_from_slice(piece));
        // Text that looks like a directive in the response stays text when the store serves it.
        let body = &value[self.head_bytes..];
        let has = |syntax| may_be_dynamic(body, syntax);
        let line = text_only_line(
            self.text_only.ssi && has(Syntax::SSI),
            self.text_only.esi && has(Syntax::ESI),
        );
        if !line.is_empty() {
            let end_of_fields = self.head_bytes - b"\r\n".len();
            value.splice(end_of_fields..end_of_fields, line.iter().copied());
        }
        let now = Now::on_steady_clock();
        let tags: Vec<&[u8]> = self.tags.iter().map(Vec::as_slice).collect();
        let expires =
            self.ttl_seconds.map_or(Expires::NEVER, |ttl| Expires::after_seconds(ttl, now));
        let item = NewItem::new(value.as_slice()).expires(expires).tags(&tags);
        let key = text(&self.key);
        match self.push.near.store_page(&self.key, item, &self.begun, now).await {
            Ok(()) if self.is_unreachable() => {
                if self.protection != Protection::default() {
                    return tracing::warn!(
                        key,
                        "a response is stored that no request is answered with: \
                                          it was sent on a route with `basic_auth`, `auth_request`, `rate_limit` or `allow`, and no route that serves \
                                          this key has the same. Give them the same, or write pages for everybody with `set_page` \
                                          of Kirin::Store"
                    );
                }
                tracing::warn!(
                    key,
                    "a response is stored that no request is answered with: the route of its \
                               key has no `store` in its `try`; only pages that include it by its key have it"
                );
            }
            Ok(()) => {}
            Err(reason @ (NotStored::NoRoom | NotStored::Origin(_))) => {
                let kind = if reason == NotStored::NoRoom { "no memory" } else { "origin" };
                self.push
                    .warnings
                    .warn(kind, || tracing::warn!(key, "a response is not stored: {reason}"));
            }
            Err(reason) => tracing::debug!(key, "a response is not stored: {reason}"),
        }
    }

    /// Returns whether the log must warn that no route of the site serves the page.
    fn is_unreachable(&self) -> bool {
        let prefix = self.namespace.prefix().as_bytes();
        let target = self.key.strip_prefix(prefix).unwrap_or(&self.key);
        self.push.reach.warns_of(target, self.protection)
    }

    fn warn_too_large(&self) {
        self.push.warn_unstorable(&text(&self.key), &PushRefusal::TooLarge);
    }
}

/// Removes all lines of a field. Returns their values joined (RFC 9651 section 4.2).
fn take(fields: &mut FieldLines, name: &str) -> Option<Vec<u8>> {
    let lines: Vec<&[u8]> = fields.lines(name).filter(|value| !value.is_empty()).collect();
    let value = lines.join(&b", "[..]);
    let is_there = fields.get(name).is_some();
    fields.remove(name);
    is_there.then_some(value)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

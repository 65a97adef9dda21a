//! The `store` place: pages that the application has put into memory, served without it.
//!
//! The key is the request target, path and query as sent. What a page needs to be served (its head,
//! ETag, compiled includes and coded variants) is made when it is first asked for and kept beside
//! the item. One a loop; called by the router for every route that tries `store`.

use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use kirin_compress::{AcceptEncoding, Coding, Codings, Effort, MIN_BYTES, encode};
use kirin_http::byte_range::{ByteRange, Part, part_of};
use kirin_http::entity_tag::Tag;
use kirin_http::preconditions::{self, Validators, Verdict};
use kirin_http::{Answer, Body, FieldLines, RequestFields, RequestHead, Response, partial_content};
use kirin_ssi::Trouble;
use kirin_store::{ItemRef, Now, Store};

use crate::filters::coded_fields;
use crate::filters::compress::Compress;
use crate::filters::compress_codings::PlaceCodings;
use crate::filters::compress_threads::CompressThreads;
use crate::filters::ssi::assembly::{Assembled, Assembly, KeptSurroundings, Stage};
use crate::filters::ssi::source::Surroundings;
use crate::filters::ssi::streamed;
use crate::pages::page::{Page, PageHead};
use crate::pages::page_variants::{
    KeptAssembly, PageVariants, keep_assembly, last_assembly, variant_fields,
};
use crate::request::answered_by;
use crate::request::subrequest::Parent;
use crate::routing::protection::Protection;

/// The longest key of memcached; a longer target cannot have been stored.
const MAX_KEY_BYTES: usize = 250;

/// The place on one event loop.
pub struct StorePlace {
    store: Arc<Store>,
    variants: PageVariants,
    threads: CompressThreads,
}

/// How a route wants the store asked.
#[derive(Clone, Copy)]
pub struct Terms {
    /// What it compresses in.
    pub codings: PlaceCodings,
    /// No other place of the route could make a page anew, so that one with a part missing is
    /// better than none.
    pub is_last: bool,
    /// Whether a place behind it runs code, which can push a stale page anew.
    pub is_renewable: bool,
    /// Whether directives are carried out.
    pub includes: bool,
}

/// A request to the store.
struct Asked<'a> {
    fields: RequestFields<'a>,
    accept: AcceptEncoding,
    /// What the page may be coded in.
    codings: Codings,
    /// The same, if it is put together for one visitor.
    private_codings: Codings,
    is_head: bool,
    now: Now,
}

impl StorePlace {
    /// The place in `store`.
    pub fn new(store: Arc<Store>, threads: CompressThreads) -> Self {
        Self { store, variants: PageVariants::default(), threads }
    }

    /// Whether a GET that has passed these conditions would be answered with a page. For the
    /// difference between 404 and 405.
    pub fn has(&self, request: &RequestHead<'_>, protection: Protection, now: Now) -> bool {
        let Some(item) = key_of(request).and_then(|key| self.store.get(key, now)) else {
            return false;
        };
        let page = self.store.companion::<Page>(&item, now, Page::compile);
        page.head.is_some() && protection.admits(page.protection)
    }

    /// Answers, or passes. `parent` is the request as it was sent, on whose behalf pages include
    /// others.
    pub fn answer(
        &self,
        request: &RequestHead<'_>,
        now: Now,
        terms: Terms,
        parent: Parent<'_>,
    ) -> Option<Answer> {
        if !request.is_get_or_head() {
            return None;
        }
        let key = key_of(request)?;
        let item = self.store.get(key, now)?;
        let syntax = parent.syntax;
        let page = self.store.companion::<Page>(&item, now, Page::compile);
        if !parent.protection.admits(page.protection) {
            return None;
        }
        let Terms { codings, is_last, is_renewable, includes } = terms;
        if item.is_stale()
            && is_renewable
            && request.method == Method::GET
            && page.renewal.is_due(now)
        {
            return None;
        }
        let page = page.read_with(syntax);
        let head = page.head.as_ref()?;
        let codings = if head.varying.is_some() { codings } else { Codings::NONE.into() };
        let asked = Asked::of(request, codings, now);
        if let Some(coding) = head.stored_coding
            && !coding.is_taken_by(asked.fields.accept_encoding.as_deref())
        {
            return is_last.then(|| Answer::Now(refusal(StatusCode::NOT_ACCEPTABLE)));
        }
        if includes && page.template.is_dynamic() {
            return self.assemble(item, page, &asked, is_last, parent);
        }
        Some(Answer::Now(self.plain(&item, &page, head, &asked)))
    }

    /// The response with `page`, which was compiled from `item`: for what another has found and is
    /// served as pages are.
    pub fn stored_response(
        &self,
        item: &ItemRef,
        page: &Arc<Page>,
        request: &RequestHead<'_>,
        codings: Codings,
        now: Now,
    ) -> Response {
        let Some(head) = page.head.as_ref() else { return refusal(StatusCode::NOT_FOUND) };
        let codings = if head.varying.is_some() { codings } else { Codings::NONE };
        let asked = Asked::of(request, codings.into(), now);
        self.plain(item, page, head, &asked)
    }

    /// A page as it was stored.
    fn plain(
        &self,
        item: &ItemRef,
        page: &Arc<Page>,
        head: &PageHead,
        asked: &Asked<'_>,
    ) -> Response {
        // A range is one of the page itself: its variants may be made anew with other bytes.
        let codings = if asked.fields.range.is_none() || asked.is_head {
            asked.codings
        } else {
            Codings::NONE
        };
        let variant = |coding| {
            self.variants
                .get(&self.store, item, page, coding, asked.now, &self.threads)
                .map(|v| (coding, v))
        };
        let wanted = asked.accept.choose(&Coding::ALL, |coding| codings.has(coding));
        let chosen = wanted.and_then(variant);
        let mut coding = chosen.as_ref().map(|(coding, _)| *coding);
        let verdict = asked.evaluate(head, &head.etag, codings, &mut coding);
        match verdict {
            Verdict::Proceed => {}
            Verdict::Failed => return refusal(StatusCode::PRECONDITION_FAILED),
            Verdict::NotModified => {
                let fields = match (coding, chosen) {
                    (None, _) => asked.uncoded_fields(head).clone(),
                    (Some(coding), Some((same, variant))) if coding == same => variant.fields,
                    (Some(coding), _) => variant_fields(head, coding),
                };
                return respond(StatusCode::NOT_MODIFIED, fields, Body::Empty);
            }
        }
        // A condition may have selected another variant than the first choice.
        let selected = match (coding, chosen) {
            (None, _) => None,
            (Some(coding), Some(chosen)) if coding == chosen.0 => Some(chosen),
            (Some(coding), _) => variant(coding),
        };
        if let Some((_, variant)) = selected {
            return respond(head.status, variant.fields, Body::Bytes(variant.body));
        }
        let fields = asked.uncoded_fields(head).clone();
        let size = page.body.len() as u64;
        let part = match head.status {
            StatusCode::OK => {
                part_of(&asked.fields, asked.is_head, validators(head, &head.etag), size)
            }
            _ => Part::Whole,
        };
        if part == Part::Whole {
            return respond(head.status, fields, Body::Bytes(page.body.clone()));
        }
        partial_content::respond(answered_by::STORE, fields, size, &part, asked.is_head, |range| {
            slice(&page.body, range)
        })
    }

    /// A page that is put together for this request; at once if all of it is in memory.
    fn assemble(
        &self,
        item: ItemRef,
        page: Arc<Page>,
        asked: &Asked<'_>,
        is_last: bool,
        parent: Parent<'_>,
    ) -> Option<Answer> {
        let mut assembly = Assembly::of(&page.template, page.digest, parent.lineage.variables());
        let around = Surroundings { store: &self.store, now: asked.now, parent };
        let stage = assembly.run(around);
        if let Some(Trouble::Missing(missing)) = assembly.trouble()
            && !is_last
        {
            tracing::debug!(page = %text(item.key()), missing = %text(&missing), "an include is not in the store; the next place answers");
            return None;
        }
        if stage == Stage::Whole {
            let assembled = assembly.finish(&text(item.key()));
            return Some(self.assembled(&item, &page, assembled, asked));
        }
        let head = page.head.as_ref()?;
        let around = KeptSurroundings {
            store: Arc::clone(&self.store),
            now: asked.now,
            parent: parent.keep(),
        };
        if streamed::is_wanted(&parent, &head.fields) {
            let fields = streamed::fields(asked.uncoded_fields(head));
            let body = streamed::body(assembly, around, text(item.key()));
            let response = respond(head.status, fields, body);
            return Some(Compress::around(
                parent.request,
                asked.place_codings(),
                &self.threads,
                |_| Answer::Now(response),
            ));
        }
        let (codings, now) = (asked.place_codings(), asked.now);
        Some(Answer::later(move |body| async move {
            assembly.settle_whole(&around, body.client()).await;
            let answer = around.parent.with(|parent| {
                let assembled = assembly.finish(&text(item.key()));
                let asked = Asked::of(parent.request, codings, now);
                parent.routes.store().assembled(&item, &page, assembled, &asked)
            });
            answer.response(body).await
        }))
    }

    /// The response with a page that has been put together.
    fn assembled(
        &self,
        item: &ItemRef,
        page: &Page,
        assembled: Assembled,
        asked: &Asked<'_>,
    ) -> Answer {
        // A page has a head: it has been looked at before.
        let Some(head) = page.head.as_ref() else {
            return Answer::Now(refusal(StatusCode::NOT_FOUND));
        };
        let Assembled { pieces, digest, cacheability } = assembled;
        let length: usize = pieces.iter().map(Bytes::len).sum();
        let mut fields = cacheability.apply(asked.uncoded_fields(head));
        let codings = match length as u64 >= MIN_BYTES {
            true => asked.place_codings().of(&fields),
            false => Codings::NONE,
        };
        let etag = format!("\"{digest:032x}\"");
        let mut coding = asked.accept.choose(&Coding::BY_SPEED, |coding| codings.has(coding));
        let verdict = asked.evaluate(head, etag.as_bytes(), codings, &mut coding);
        fields.push("ETag", &etag);
        let coded = coding.map(|coding| (coding, coded_fields::coded(&fields, coding)));
        match verdict {
            Verdict::Proceed => {}
            Verdict::Failed => return Answer::Now(refusal(StatusCode::PRECONDITION_FAILED)),
            Verdict::NotModified => {
                let fields = coded.map_or(fields, |(_, coded)| coded);
                return Answer::Now(respond(StatusCode::NOT_MODIFIED, fields, Body::Empty));
            }
        }
        let status = head.status;
        let Some((coding, coded_fields)) = coded else {
            return Answer::Now(respond(status, fields, Body::Segments(pieces)));
        };
        if let Some(body) = last_assembly(item, coding, digest) {
            return Answer::Now(respond(status, coded_fields, Body::Bytes(body)));
        }
        let (store, now) = (Arc::clone(&self.store), asked.now);
        let keep = move |item: &ItemRef, encoded: Vec<u8>| {
            let body = Bytes::from(encoded.into_boxed_slice());
            keep_assembly(&store, item, now, coding, KeptAssembly { digest, body: body.clone() });
            Body::Bytes(body)
        };
        if CompressThreads::is_inline(length) {
            let encoded = encode(coding, Effort::Once, &pieces.concat()).ok();
            return Answer::Now(match encoded.filter(|encoded| encoded.len() < length) {
                Some(encoded) => respond(status, coded_fields, keep(item, encoded)),
                None => respond(status, fields, Body::Segments(pieces)),
            });
        }
        let (threads, item) = (self.threads.clone(), item.clone());
        Answer::later(move |_| async move {
            match threads.encode_once(coding, Bytes::from(pieces.concat())).await {
                Ok(encoded) => respond(status, coded_fields, keep(&item, encoded)),
                Err(body) => respond(status, fields, Body::Bytes(body)),
            }
        })
    }
}

impl<'a> Asked<'a> {
    fn of(request: &RequestHead<'a>, codings: PlaceCodings, now: Now) -> Self {
        let PlaceCodings { shared: codings, private: private_codings } = codings;
        let fields = RequestFields::of(request);
        let accept = match codings.is_empty() {
            true => AcceptEncoding::default(),
            false => AcceptEncoding::parse(fields.accept_encoding.as_deref()),
        };
        let is_head = request.method == Method::HEAD;
        Self { fields, accept, codings, private_codings, is_head, now }
    }

    fn place_codings(&self) -> PlaceCodings {
        PlaceCodings { shared: self.codings, private: self.private_codings }
    }

    /// The fields of the page uncoded.
    fn uncoded_fields<'h>(&self, head: &'h PageHead) -> &'h FieldLines {
        match &head.varying {
            Some(varying) if !self.codings.is_empty() => varying,
            _ => &head.fields,
        }
    }

    /// What the conditions come to for a page with this tag, which may be had in `codings`.
    /// `coding` is the one that would be sent; and becomes the one that the conditions are about.
    fn evaluate(
        &self,
        head: &PageHead,
        etag: &[u8],
        codings: Codings,
        coding: &mut Option<Coding>,
    ) -> Verdict {
        // "if the response without the conditions would be other than 2xx" they count for nothing
        // (RFC 9110 section 13.2.1).
        if !head.status.is_success() {
            return Verdict::Proceed;
        }
        if !self.fields.compare_tags() || codings.is_empty() {
            return preconditions::evaluate(&self.fields, validators(head, etag));
        }
        let taken = Coding::ALL
            .into_iter()
            .filter(|coding| codings.has(*coding) && self.accept.takes(*coding));
        let identity = self.accept.takes_identity().then_some(None);
        let others: Vec<(Option<Coding>, Vec<u8>)> = std::iter::once(*coding)
            .chain(taken.map(Some))
            .chain(identity)
            .map(|coding| {
                (coding, coding.map_or_else(|| etag.to_vec(), |c| coded_fields::coded_tag(etag, c)))
            })
            .collect();
        let mut candidates = others.iter().map(|(coding, tag)| (*coding, validators(head, tag)));
        let Some(first) = candidates.next() else { return Verdict::Proceed };
        let (selected, verdict) = preconditions::select(&self.fields, first, candidates);
        *coding = selected;
        verdict
    }
}

fn validators<'a>(head: &PageHead, etag: &'a [u8]) -> Validators<'a> {
    Validators { entity_tag: Tag::of(etag), last_modified: head.last_modified }
}

fn respond(status: StatusCode, fields: FieldLines, body: Body) -> Response {
    Response { status, fields, body, answered_by: answered_by::STORE }
}

fn refusal(status: StatusCode) -> Response {
    Response { answered_by: answered_by::STORE, ..Response::error(status) }
}

/// The bytes of a range, which is inside.
fn slice(body: &Bytes, range: ByteRange) -> Body {
    let at = |byte| usize::try_from(byte).unwrap_or(usize::MAX).min(body.len());
    Body::Bytes(body.slice(at(range.start)..at(range.end())))
}

/// The part of the target that can be a key. An absolute target has the path in its middle.
pub fn key_of<'a>(request: &RequestHead<'a>) -> Option<&'a [u8]> {
    let key = match request.query {
        _ if request.target.starts_with('/') => request.target,
        None => request.path,
        Some(_) => return None,
    };
    (key.len() <= MAX_KEY_BYTES).then_some(key.as_bytes())
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

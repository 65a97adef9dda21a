//! Responses with pages of the store and with responses of the cache: conditions, ranges, coded
//! variants and assembled pages.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use kirin_compress::{AcceptEncoding, Coding, Codings, Effort, MIN_BYTES, encode};
use kirin_http::byte_range::{ByteRange, Part, part_of};
use kirin_http::entity_tag::Tag;
use kirin_http::preconditions::{self, Candidate, Validators, Verdict};
use kirin_http::{Answer, Body, FieldLines, RequestFields, RequestHead, Response, partial_content};
use kirin_origin::NearStore;
use kirin_store::{ItemRef, Now, Store};

use crate::filters::coded_fields;
use crate::filters::compress_codings::PlaceCodings;
use crate::filters::compress_threads::CompressThreads;
use crate::filters::ssi::assembly::Assembled;
use crate::pages::page::{Page, PageHead};
use crate::pages::page_variants::{
    KeptAssembly, PageVariants, keep_assembly, last_assembly, variant_fields,
};
use crate::request::answered_by;

/// Makes the responses of one event loop.
pub struct PageResponses {
    near: NearStore,
    variants: PageVariants,
    threads: CompressThreads,
}

/// A request for a page.
pub struct PageRequest<'a> {
    /// The fields that conditions and ranges are in.
    pub fields: RequestFields<'a>,
    accept: AcceptEncoding,
    /// The codings that the page may have.
    codings: Codings,
    /// The codings of a page that is assembled for one visitor.
    private_codings: Codings,
    is_head: bool,
    now: Now,
}

impl PageResponses {
    /// Makes responses with pages of `near`. `threads` compress large pages.
    pub fn new(near: NearStore, threads: CompressThreads) -> Rc<Self> {
        Rc::new(Self { near, variants: PageVariants::default(), threads })
    }

    /// Returns the store of this machine.
    pub fn store(&self) -> &Arc<Store> {
        self.near.store()
    }

    /// Returns the store with the server behind it.
    pub fn near(&self) -> &NearStore {
        &self.near
    }

    /// Returns the threads that compress.
    pub fn threads(&self) -> &CompressThreads {
        &self.threads
    }

    /// Returns the response with `page`, which was compiled from `item`, for a stored response that
    /// is not a page of the application.
    pub fn cached(
        &self,
        item: &ItemRef,
        page: &Arc<Page>,
        request: &RequestHead<'_>,
        codings: Codings,
        now: Now,
    ) -> Response {
        let Some(head) = page.head.as_ref() else { return refusal(StatusCode::NOT_FOUND) };
        let codings = if head.varying.is_some() { codings } else { Codings::NONE };
        self.plain(item, page, head, &PageRequest::new(request, codings.into(), now))
    }

    /// Returns the response with a page as it was stored.
    pub fn plain(
        &self,
        item: &ItemRef,
        page: &Arc<Page>,
        head: &PageHead,
        request: &PageRequest<'_>,
    ) -> Response {
        // A range is one of the uncoded page: its variants may be made again with other bytes.
        let codings = if request.fields.range.is_none() || request.is_head {
            request.codings
        } else {
            Codings::NONE
        };
        let variant = |coding| {
            self.variants
                .get(self.store(), item, page, coding, request.now, &self.threads)
                .map(|v| (coding, v))
        };
        let wanted = request.accept.choose(&Coding::ALL, |coding| codings.has(coding));
        let chosen = wanted.and_then(variant);
        if request.fields.is_unconditional() {
            return match chosen {
                Some((_, variant)) => {
                    respond(head.status, variant.fields, Body::Bytes(variant.body))
                }
                None => {
                    let fields = request.uncoded_fields(head).clone();
                    respond(head.status, fields, Body::Bytes(page.body.clone()))
                }
            };
        }
        let mut coding = chosen.as_ref().map(|(coding, _)| *coding);
        let verdict = request.evaluate(head, &head.etag, codings, &mut coding);
        match verdict {
            Verdict::Proceed => {}
            Verdict::Failed => return refusal(StatusCode::PRECONDITION_FAILED),
            Verdict::NotModified => {
                let fields = match (coding, chosen) {
                    (None, _) => request.uncoded_fields(head).clone(),
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
        let fields = request.uncoded_fields(head).clone();
        let size = page.body.len() as u64;
        let part = match head.status {
            StatusCode::OK => {
                part_of(&request.fields, request.is_head, validators(head, &head.etag), size)
            }
            _ => Part::Whole,
        };
        if part == Part::Whole {
            return respond(head.status, fields, Body::Bytes(page.body.clone()));
        }
        partial_content::respond(
            answered_by::STORE,
            fields,
            size,
            &part,
            request.is_head,
            |range| slice(&page.body, range),
        )
    }

    /// Returns the response with an assembled page.
    pub fn assembled(
        &self,
        item: &ItemRef,
        page: &Page,
        assembled: Assembled,
        request: &PageRequest<'_>,
    ) -> Answer {
        // The page had a head when it was found.
        let Some(head) = page.head.as_ref() else {
            return Answer::Now(refusal(StatusCode::NOT_FOUND));
        };
        let Assembled { pieces, digest, cacheability } = assembled;
        let length: usize = pieces.iter().map(Bytes::len).sum();
        let mut fields = cacheability.apply(request.uncoded_fields(head));
        let codings = match length as u64 >= MIN_BYTES {
            true => request.place_codings().for_response(&fields),
            false => Codings::NONE,
        };
        let etag = format!("\"{digest:032x}\"");
        let mut coding = request.accept.choose(&Coding::BY_SPEED, |coding| codings.has(coding));
        let verdict = request.evaluate(head, etag.as_bytes(), codings, &mut coding);
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
        let (store, now) = (Arc::clone(self.store()), request.now);
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

impl<'a> PageRequest<'a> {
    /// Reads the request. `codings` are those that the page may have.
    pub fn new(request: &RequestHead<'a>, codings: PlaceCodings, now: Now) -> Self {
        let PlaceCodings { shared: codings, private: private_codings } = codings;
        let fields = RequestFields::from_head(request);
        let accept = match codings.is_empty() {
            true => AcceptEncoding::default(),
            false => AcceptEncoding::parse(fields.accept_encoding.as_deref()),
        };
        let is_head = request.method == Method::HEAD;
        Self { fields, accept, codings, private_codings, is_head, now }
    }

    /// Returns the codings that the page may have.
    pub fn place_codings(&self) -> PlaceCodings {
        PlaceCodings { shared: self.codings, private: self.private_codings }
    }

    /// Returns the fields of the uncoded page.
    pub fn uncoded_fields<'h>(&self, head: &'h PageHead) -> &'h FieldLines {
        match &head.varying {
            Some(varying) if !self.codings.is_empty() => varying,
            _ => &head.fields,
        }
    }

    /// Evaluates the conditions for a page with this tag, which may have one of `codings`. `coding`
    /// is the one that would be sent. It becomes the one that the conditions are about.
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
        let mut candidates = others.iter().map(|(coding, tag)| Candidate {
            representation: *coding,
            validators: validators(head, tag),
        });
        let Some(first) = candidates.next() else { return Verdict::Proceed };
        let (selected, verdict) = preconditions::select(&self.fields, first, candidates);
        *coding = selected;
        verdict
    }
}

fn validators<'a>(head: &PageHead, etag: &'a [u8]) -> Validators<'a> {
    Validators { entity_tag: Tag::parse(etag), last_modified: head.last_modified }
}

/// Returns a response of the store.
pub fn respond(status: StatusCode, fields: FieldLines, body: Body) -> Response {
    Response { fields, ..Response::new(answered_by::STORE, status, body) }
}

/// Returns an error of the store.
pub fn refusal(status: StatusCode) -> Response {
    Response { answered_by: answered_by::STORE, ..Response::error(status) }
}

/// Returns the bytes of a range, which is inside of the body.
fn slice(body: &Bytes, range: ByteRange) -> Body {
    let at = |byte| usize::try_from(byte).unwrap_or(usize::MAX).min(body.len());
    Body::Bytes(body.slice(at(range.start)..at(range.end())))
}

//! The place `store`: pages that the application has put into memory, served without it.
//!
//! The key is the request target: path and query as sent, in the namespace of the site. The
//! response needs a head, an ETag, compiled includes and coded variants. They are made for the
//! first request and kept beside the item.

use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use kirin_compress::Codings;
use kirin_http::Answer;
use kirin_origin::Look;
use kirin_ssi::RenderProblem;
use kirin_store::{ItemRef, Now};

use super::kind::{OpenPlace, PlaceConfig, PlaceKind, STORE};
use super::opening::{Opening, PlaceError};
use super::place::Place;
use crate::filters::compress;
use crate::filters::compress_codings::PlaceCodings;
use crate::filters::ssi::assembly::{Assembly, AssemblyStage, KeptSurroundings};
use crate::filters::ssi::source::{IncludeSources, Surroundings};
use crate::filters::ssi::streamed;
use crate::pages::page::Page;
use crate::pages::page_renewal::is_of_this_machine;
use crate::pages::page_response::{PageRequest, PageResponses, refusal, respond};
use crate::pages::store_key::key_of;
use crate::request::answers::PlaceNumber;
use crate::request::context::Request;

/// The kind `store`.
pub static KIND: PlaceKind = PlaceKind {
    name: STORE,
    argument: None,
    runs_code: false,
    answers_all: false,
    keys: &[],
    read: |_, _| Ok(Arc::new(StorePlaceConfig)),
};

/// The place in `try`.
struct StorePlaceConfig;

impl OpenPlace for StorePlaceConfig {
    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Place>, PlaceError> {
        let (route, resources) = (opening.route, opening.resources);
        let behind = &route.places[opening.number.place + 1..];
        let runs_code = |place: &PlaceConfig| place.kind.runs_code;
        let terms = Terms {
            codings: route.compress.for_pages(),
            is_last: behind.is_empty(),
            may_run_code: true,
            is_renewable: !behind.is_empty() && route.places.iter().any(runs_code),
            includes: route.ssi.unwrap_or(true),
        };
        let (responses, sources) = (Rc::clone(&resources.responses), Rc::clone(&resources.sources));
        Ok(Box::new(StorePlace { responses, sources, number: opening.number, terms }))
    }
}

/// The place of one route.
#[derive(Clone)]
pub struct StorePlace {
    responses: Rc<PageResponses>,
    sources: Rc<IncludeSources>,
    number: PlaceNumber,
    terms: Terms,
}

/// The way in which a route serves pages of the store.
#[derive(Clone, Copy)]
pub struct Terms {
    /// The codings in which it compresses.
    pub codings: PlaceCodings,
    /// Whether no other place of the route could make the page again. A page with a part missing is
    /// better than none then.
    pub is_last: bool,
    /// Whether code may be asked if it has no answer.
    pub may_run_code: bool,
    /// Whether a place behind it runs code, which can renew a stale page.
    pub is_renewable: bool,
    /// Whether directives are carried out.
    pub includes: bool,
}

/// A page of the store.
struct StoredPage {
    item: ItemRef,
    page: Arc<Page>,
}

impl StorePlace {
    fn page_of(&self, item: ItemRef, now: Now) -> StoredPage {
        let page = self.responses.store().companion::<Page>(&item, now, Page::compile);
        StoredPage { item, page }
    }

    fn answer_by(&self, request: &Request<'_>, terms: Terms) -> Option<Answer> {
        let (head, now) = (request.rewritten, Now::from_unix_seconds(request.origin.now));
        if !head.is_get_or_head() {
            return None;
        }
        let key = key_of(head, request.namespace)?;
        match self.responses.near().look(&key, now) {
            Look::Item(item) => self.answer_with(item, request, terms),
            Look::Nothing => None,
            Look::Unknown => Some(self.answer_when_loaded(&key, request, terms)),
        }
    }

    /// Asks the server behind the store for the page. If that has none, the places behind answer.
    #[cold]
    fn answer_when_loaded(&self, key: &[u8], request: &Request<'_>, terms: Terms) -> Answer {
        let (place, kept, key) = (self.clone(), request.keep(), Bytes::copy_from_slice(key));
        Answer::later(move |body| async move {
            let item = place.responses.near().load(&[key]).await.pop().flatten();
            let answer = kept.with(|request| {
                let answer = item.and_then(|item| place.answer_with(item, request, terms));
                answer.unwrap_or_else(|| place.pass_on(request, terms))
            });
            answer.response(body).await
        })
    }

    /// Asks the places behind this one, after it has waited.
    fn pass_on(&self, request: &Request<'_>, terms: Terms) -> Answer {
        if terms.may_run_code {
            request.routes.ask_behind(self.number, request)
        } else {
            request.routes.ask_behind_without_code(self.number, request)
        }
    }

    fn answer_with(&self, item: ItemRef, request: &Request<'_>, terms: Terms) -> Option<Answer> {
        let (head, now) = (request.rewritten, Now::from_unix_seconds(request.origin.now));
        let StoredPage { item, page } = self.page_of(item, now);
        if !request.protection.admits(page.protection) {
            return None;
        }
        let Terms { codings, is_last, is_renewable, includes, .. } = terms;
        if item.is_stale() && is_renewable && head.method == Method::GET && page.renewal.is_due(now)
        {
            return self.renewed(StoredPage { item, page }, request, terms);
        }
        let page = page.read_with(request.syntax);
        let page_head = page.head.as_ref()?;
        let codings = if page_head.varying.is_some() { codings } else { Codings::NONE.into() };
        let page_request = PageRequest::new(head, codings, now);
        if let Some(coding) = page_head.stored_coding
            && !coding.is_taken_by(page_request.fields.accept_encoding.as_deref())
        {
            return is_last.then(|| Answer::Now(refusal(StatusCode::NOT_ACCEPTABLE)));
        }
        if includes && page.template.is_dynamic() {
            return self.assemble(StoredPage { item, page }, &page_request, request, terms);
        }
        Some(Answer::Now(self.responses.plain(&item, &page, page_head, &page_request)))
    }

    /// Leaves a stale page to the places behind, which can make it again. If another machine has it
    /// made, the answer is the stale page.
    fn renewed(&self, stale: StoredPage, request: &Request<'_>, terms: Terms) -> Option<Answer> {
        self.responses.near().origin()?;
        let (place, kept, item) = (self.clone(), request.keep(), stale.item);
        Some(Answer::later(move |body| async move {
            let is_renewed_here = is_of_this_machine(place.responses.near(), &item).await;
            let answer = kept.with(|request| {
                let stale = Terms { is_renewable: false, ..terms };
                let answer =
                    if is_renewed_here { None } else { place.answer_with(item, request, stale) };
                answer.unwrap_or_else(|| place.pass_on(request, terms))
            });
            answer.response(body).await
        }))
    }

    /// Assembles a page for this request: at once if all of it is in memory.
    fn assemble(
        &self,
        stored: StoredPage,
        page_request: &PageRequest<'_>,
        request: &Request<'_>,
        terms: Terms,
    ) -> Option<Answer> {
        let (now, page) = (Now::from_unix_seconds(request.origin.now), &stored.page);
        let mut assembly = Assembly::new(&page.template, page.digest, request.lineage.variables());
        let stage = assembly.run(Surroundings { sources: &self.sources, now, request });
        if stage != AssemblyStage::Unknown {
            return self.assembled(assembly, stage, stored, page_request, request, terms);
        }
        let (place, codings) = (self.clone(), page_request.place_codings());
        let page_is = KeptSurroundings::new(&self.sources, now, request.keep());
        Some(Answer::later(move |body| async move {
            let stage = assembly.know(&page_is).await;
            let answer = page_is.request.with(|request| {
                let asked = PageRequest::new(request.rewritten, codings, now);
                let answer = place.assembled(assembly, stage, stored, &asked, request, terms);
                answer.unwrap_or_else(|| place.pass_on(request, terms))
            });
            answer.response(body).await
        }))
    }

    /// Answers with an assembly whose items are known, at once if all of it is.
    fn assembled(
        &self,
        mut assembly: Assembly,
        stage: AssemblyStage,
        stored: StoredPage,
        page_request: &PageRequest<'_>,
        request: &Request<'_>,
        terms: Terms,
    ) -> Option<Answer> {
        let StoredPage { item, page } = stored;
        let now = Now::from_unix_seconds(request.origin.now);
        if let Some(RenderProblem::Missing(missing)) = assembly.problem()
            && !terms.is_last
        {
            tracing::debug!(page = %text(item.key()), missing = %text(&missing), "an include is not in the store; the next place answers");
            return None;
        }
        if stage == AssemblyStage::Whole {
            let assembled = assembly.finish(&text(item.key()));
            return Some(self.responses.assembled(&item, &page, assembled, page_request));
        }
        let head = page.head.as_ref()?;
        let codings = page_request.place_codings();
        let page_is = KeptSurroundings::new(&self.sources, now, request.keep());
        if streamed::is_wanted(request, &head.fields) {
            let fields = streamed::fields(page_request.uncoded_fields(head));
            let body = streamed::body(assembly, page_is, text(item.key()));
            let response = respond(head.status, fields, body);
            let threads = self.responses.threads();
            return Some(compress::around(request, codings, threads, |_| Answer::Now(response)));
        }
        let responses = Rc::clone(&self.responses);
        Some(Answer::later(move |body| async move {
            assembly.settle_whole(&page_is, body.client()).await;
            let answer = page_is.request.with(|request| {
                let assembled = assembly.finish(&text(item.key()));
                let page_request = PageRequest::new(request.head, codings, now);
                responses.assembled(&item, &page, assembled, &page_request)
            });
            answer.response(body).await
        }))
    }
}

impl Place for StorePlace {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        self.answer_by(request, self.terms)
    }

    /// Answers as if no other place could make the page again: code is not asked for an error page.
    fn answer_without_code(&self, request: &Request<'_>) -> Option<Answer> {
        let terms = Terms { is_last: true, may_run_code: false, is_renewable: false, ..self.terms };
        self.answer_by(request, terms)
    }

    fn has(&self, request: &Request<'_>) -> bool {
        let now = Now::from_unix_seconds(request.origin.now);
        let key = key_of(request.rewritten, request.namespace);
        // What only the server behind the store has makes no difference between 404 and 405.
        let item = key.and_then(|key| self.responses.store().get(&key, now));
        item.is_some_and(|item| {
            let StoredPage { page, .. } = self.page_of(item, now);
            page.head.is_some() && request.protection.admits(page.protection)
        })
    }
}

fn text(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

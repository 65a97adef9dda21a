//! The `ssi` filter of a route: carries out the directives in what files and code answer.
//!
//! It reads responses that are `text/html`, not coded and not too large. All others pass as they
//! are. It is around a place and inside of compression.

use std::borrow::Cow;
use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use kirin_http::entity_tag::Tag;
use kirin_http::media_type::is_html;
use kirin_http::preconditions::{self, Validators, Verdict};
use kirin_http::{Answer, Body, FieldLines, RequestBody, RequestFields, RequestHead, Response};
use kirin_ssi::{Syntax, Template};
use kirin_store::Now;
use xxhash_rust::xxh3::{xxh3_128, xxh3_128_with_seed};

use super::assembly::{Assembled, Assembly, AssemblyStage, KeptSurroundings};
use super::source::{IncludeSources, Surroundings};
use super::streamed;
use super::templates::{Compiled, Templates};
use super::unread::{self, MAX_PAGE_BYTES};
use crate::filters::coded_fields::plain_tags;
use crate::filters::compress::{self, Withheld};
use crate::filters::compress_codings::PlaceCodings;
use crate::filters::compress_threads::CompressThreads;
use crate::pages::page::may_be_dynamic;
use crate::request::collected_body::collect_now;
use crate::request::context::Request;
use crate::request::field_changes::{FieldChange, apply};

/// The changes in a request for which code may answer a page with directives. They must be found,
/// all of them. The last change is for routes with ESI only: it tells the application of it.
static CHANGES: [FieldChange; 5] = [
    FieldChange::Remove("range"),
    FieldChange::Remove("if-range"),
    FieldChange::Remove("accept-encoding"),
    FieldChange::Add("Accept-Encoding", Cow::Borrowed(b"identity")),
    FieldChange::Add("Surrogate-Capability", Cow::Borrowed(b"kirin=\"ESI/1.0\"")),
];

/// The filter on one event loop.
pub struct SsiFilter {
    sources: Rc<IncludeSources>,
    templates: RefCell<Templates>,
}

/// A response after the check for directives.
enum Checked {
    /// A response without directives.
    Other(Response),
    /// A page with directives. Its body is in the template.
    Page(DirectivePage),
    /// A response that may be a page. The check needs its body, which has not arrived.
    Waiting(Response),
}

struct DirectivePage {
    response: Response,
    template: Arc<Template>,
    digest: u128,
}

impl SsiFilter {
    /// Creates the filter, with `sources` for what pages include.
    pub fn new(sources: Rc<IncludeSources>) -> Rc<Self> {
        Rc::new(Self { sources, templates: RefCell::default() })
    }

    /// Returns the answer of a directory. `ask` sends it a request. The first one is the client's
    /// request. If its response does not contain all of a possible page, a second one asks for the
    /// complete page. `directory` is the same number for the same directory only.
    pub fn around_files(
        self: &Rc<Self>,
        request: &Request<'_>,
        directory: u64,
        codings: PlaceCodings,
        threads: &CompressThreads,
        ask: impl Fn(&RequestHead<'_>) -> Option<Response>,
    ) -> Option<Answer> {
        let (head, syntax) = (request.rewritten, request.syntax);
        let as_sent = ask(head)?;
        let state = state_of_file(directory, head.path, &as_sent);
        if !head.is_get_or_head() || shows_other(&as_sent) || self.is_other(state, syntax) {
            return Some(Answer::Now(as_sent));
        }
        let is_whole =
            as_sent.status == StatusCode::OK && head.method == Method::GET && is_page(&as_sent);
        let (whole, as_sent) = if is_whole {
            (as_sent, None)
        } else {
            let is_condition =
                |name: &str| name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("if-"));
            let mut fields = head.fields.to_vec();
            fields.retain(|field| !is_condition(field.name));
            apply(without_capability(), &mut fields);
            let whole = RequestHead { method: Method::GET, fields: &fields, ..head.clone() };
            (ask(&whole)?, Some(as_sent))
        };
        let state = state_of_file(directory, head.path, &whole);
        Some(match self.check(whole, state, syntax) {
            Checked::Other(response) => {
                self.remember_other(state, syntax, &response);
                Answer::Now(as_sent.unwrap_or(response))
            }
            Checked::Page(page) => {
                compress::around(request, codings, threads, |request| self.assemble(page, request))
            }
            Checked::Waiting(whole) => compress::around(request, codings, threads, |request| {
                let (filter, kept) = (Rc::clone(self), request.keep());
                Answer::later(move |body| async move {
                    let answer = match filter.read(whole, state, syntax).await {
                        Checked::Page(page) => kept.with(|request| filter.assemble(page, request)),
                        Checked::Other(response) | Checked::Waiting(response) => {
                            Answer::Now(as_sent.unwrap_or(response))
                        }
                    };
                    answer.response(body).await
                })
            }),
        })
    }

    /// Returns whether a file in this state is known to have no directives.
    fn is_other(&self, state: Option<u128>, syntax: Syntax) -> bool {
        let known =
            state.and_then(|state| self.templates.borrow_mut().get(of_syntax(state, syntax)));
        matches!(known, Some(None))
    }

    /// Remembers a file whose type is not that of a page. A page that is too large is not
    /// remembered, so that the log names it each time.
    fn remember_other(&self, state: Option<u128>, syntax: Syntax, response: &Response) {
        if let Some(state) = state.filter(|_| !is_page(response)) {
            self.templates.borrow_mut().put(of_syntax(state, syntax), None, 0);
        }
    }

    /// Returns the answer of a place that runs code, which `ask` asks.
    pub fn around(
        self: &Rc<Self>,
        request: &Request<'_>,
        ask: impl FnOnce(&Request<'_>) -> Answer,
    ) -> Answer {
        let changes = if request.syntax.esi { &CHANGES } else { without_capability() };
        match request.with_changes(changes, ask) {
            Answer::Now(response) => match self.check_code(request, response) {
                Checked::Other(response) => Answer::Now(response),
                Checked::Page(page) => self.assemble(page, request),
                Checked::Waiting(response) => {
                    let (filter, kept) = (Rc::clone(self), request.keep());
                    let syntax = request.syntax;
                    Answer::later(move |body| async move {
                        let checked = filter.read(response, None, syntax).await;
                        kept.with(|request| filter.answer(checked, request)).response(body).await
                    })
                }
            },
            Answer::Later(later) => {
                let (filter, kept, syntax) = (Rc::clone(self), request.keep(), request.syntax);
                Answer::later(move |body| async move {
                    let response = later(body).await;
                    let checked = match kept.with(|request| filter.check_code(request, response)) {
                        Checked::Waiting(response) => filter.read(response, None, syntax).await,
                        checked => checked,
                    };
                    let answer = kept.with(|request| filter.answer(checked, request));
                    answer.response(RequestBody::empty()).await
                })
            }
        }
    }

    /// Looks for directives in what code has answered.
    fn check_code(&self, request: &Request<'_>, mut response: Response) -> Checked {
        if request.syntax.esi && response.fields.get("surrogate-control").is_some() {
            // The field is for Kirin (Edge Architecture Specification section 2.3).
            response.fields = response.fields.without("surrogate-control");
        }
        if request.head.method != Method::HEAD || !is_page(&response) {
            return self.check(response, None, request.syntax);
        }
        // The fields of the assembled page are not known without making it (RFC 9110 section
        // 9.3.2).
        response.fields = of_assembled(&response.fields);
        response.body = Body::Stream(Box::new(Withheld));
        Checked::Other(response)
    }

    /// Looks for directives in a response. `state` identifies its body, if that is known without
    /// reading it.
    fn check(&self, response: Response, state: Option<u128>, syntax: Syntax) -> Checked {
        if !is_page(&response) {
            return Checked::Other(response);
        }
        let state = state.map(|state| of_syntax(state, syntax));
        let known = state.and_then(|state| self.templates.borrow_mut().get(state));
        if let Some(compiled) = known {
            return checked(response, compiled);
        }
        let Response { status, fields, body, answered_by } = response;
        if body.length().is_some_and(|length| length > MAX_PAGE_BYTES as u64) {
            tracing::warn!(
                limit_bytes = MAX_PAGE_BYTES,
                "a page is too large to be checked at for includes"
            );
            return Checked::Other(Response { status, fields, body, answered_by });
        }
        let content = match collect_now(body) {
            Err(body @ (Body::File(_) | Body::Stream(_))) => {
                return Checked::Waiting(Response { status, fields, body, answered_by });
            }
            Err(body) => {
                return Checked::Other(Response { status, fields, body, answered_by });
            }
            Ok(mut pieces) => match pieces.len() {
                1 => pieces.remove(0),
                _ => Bytes::from(pieces.concat()),
            },
        };
        let compiled = self.compile(&content, state, syntax);
        checked(Response { status, fields, body: Body::Bytes(content), answered_by }, compiled)
    }

    fn compile(&self, content: &Bytes, state: Option<u128>, syntax: Syntax) -> Compiled {
        if !may_be_dynamic(content, syntax) {
            if let Some(state) = state {
                self.templates.borrow_mut().put(state, None, 0);
            }
            return None;
        }
        let digest = xxh3_128(content);
        let key = state.unwrap_or_else(|| of_syntax(digest, syntax));
        if state.is_none()
            && let Some(compiled) = self.templates.borrow_mut().get(key)
        {
            return compiled;
        }
        let template = Template::compile(content, syntax);
        let bytes = template.memory_bytes() + content.len();
        let compiled = template.is_dynamic().then(|| (Arc::new(template), digest));
        self.templates.borrow_mut().put(key, compiled.clone(), bytes);
        compiled
    }

    /// Reads a body that takes waiting, and looks at it.
    async fn read(&self, response: Response, state: Option<u128>, syntax: Syntax) -> Checked {
        match unread::read(response).await {
            Ok(response) => self.check(response, state, syntax),
            Err(response) => Checked::Other(response),
        }
    }

    fn answer(&self, checked: Checked, request: &Request<'_>) -> Answer {
        match checked {
            Checked::Page(page) => self.assemble(page, request),
            Checked::Other(response) | Checked::Waiting(response) => Answer::Now(response),
        }
    }

    /// Assembles a page: at once if all of it is in memory.
    fn assemble(&self, page: DirectivePage, request: &Request<'_>) -> Answer {
        let DirectivePage { mut response, template, digest } = page;
        let now = Now::from_unix_seconds(request.origin.now);
        let mut assembly = Assembly::new(&template, digest, request.lineage.variables());
        let name = request.head.target;
        if assembly.run(Surroundings { sources: &self.sources, now, request })
            == AssemblyStage::Whole
        {
            return Answer::Now(whole(response, assembly.finish(name), request.head));
        }
        let around = KeptSurroundings::new(&self.sources, now, request.keep());
        if streamed::is_wanted(request, &response.fields) {
            response.fields = streamed::fields(&of_assembled(&response.fields));
            response.body = streamed::body(assembly, around, name.to_owned());
            return Answer::Now(response);
        }
        Answer::later(move |body| async move {
            assembly.settle_whole(&around, body.client()).await;
            around
                .request
                .with(|request| whole(response, assembly.finish(request.head.target), request.head))
        })
    }
}

fn checked(response: Response, compiled: Compiled) -> Checked {
    match compiled {
        None => Checked::Other(response),
        Some((template, digest)) => {
            let response = Response { body: Body::Empty, ..response };
            Checked::Page(DirectivePage { response, template, digest })
        }
    }
}

/// Returns the response with a complete page.
fn whole(mut response: Response, assembled: Assembled, request: &RequestHead<'_>) -> Response {
    let Assembled { pieces, digest, cacheability } = assembled;
    response.fields = cacheability.apply(&of_assembled(&response.fields));
    response.body = Body::Segments(pieces);
    // "if the response without the conditions would be other than 2xx" they count for nothing (RFC
    // 9110 section 13.2.1).
    if response.status != StatusCode::OK || !request.is_get_or_head() {
        return response;
    }
    let tag = format!("\"{digest:032x}\"");
    let validators = Validators { entity_tag: Tag::parse(tag.as_bytes()), last_modified: None };
    let verdict = preconditions::evaluate(&RequestFields::from_head(request), validators);
    response.fields.push("ETag", &tag);
    match verdict {
        Verdict::Proceed => response,
        Verdict::NotModified => {
            Response { status: StatusCode::NOT_MODIFIED, body: Body::Empty, ..response }
        }
        Verdict::Failed => Response {
            answered_by: response.answered_by,
            ..Response::error(StatusCode::PRECONDITION_FAILED)
        },
    }
}

/// Returns the fields of a page that is assembled from a response: without those about the bytes of
/// the response.
fn of_assembled(fields: &FieldLines) -> FieldLines {
    let of_bytes = [
        "etag",
        "last-modified",
        "accept-ranges",
        "content-md5",
        "content-digest",
        "repr-digest",
        "digest",
    ];
    let mut kept = FieldLines::new();
    for (name, value) in fields.iter() {
        if !of_bytes.iter().any(|other| name.eq_ignore_ascii_case(other.as_bytes())) {
            // It was a field line before.
            let _ = kept.try_push(name, value);
        }
    }
    kept
}

/// Returns whether there may be directives in a response.
fn is_page(response: &Response) -> bool {
    let coding = response.fields.get("content-encoding");
    !Response::is_bodiless_status(response.status)
        && response.status != StatusCode::PARTIAL_CONTENT
        && response.fields.get("content-type").is_some_and(is_html)
        && coding.is_none_or(|coding| coding.eq_ignore_ascii_case(b"identity"))
}

/// Returns a digest that differs for each syntax: the same bytes are another page where they are
/// read otherwise.
fn of_syntax(digest: u128, syntax: Syntax) -> u128 {
    digest ^ u128::from(syntax.ssi) ^ (u128::from(syntax.esi) << 1)
}

/// Returns a digest that identifies the state of a file, in any coding of it. Files of the same
/// path, time and size in two directories are two files.
fn state_of_file(directory: u64, path: &str, response: &Response) -> Option<u128> {
    let tag = response.fields.get("etag")?;
    let plain = plain_tags(tag);
    // A tag that ends in `~` may also be the tag of the next state.
    let tag = plain.as_deref().unwrap_or(tag);
    let is_settled = !tag.ends_with(b"~\"");
    is_settled.then(|| xxh3_128_with_seed(&[path.as_bytes(), b"\0", tag].concat(), directory))
}

/// Returns whether the response alone shows that the file is not a page. A 304, a 412 and a
/// response with several ranges do not show it.
fn shows_other(response: &Response) -> bool {
    let is_one =
        response.status == StatusCode::OK || response.status == StatusCode::PARTIAL_CONTENT;
    let is_other =
        |media_type: &[u8]| !is_html(media_type) && !media_type.starts_with(b"multipart/");
    is_one && response.fields.get("content-type").is_none_or(is_other)
}

fn without_capability() -> &'static [FieldChange] {
    &CHANGES[..CHANGES.len() - 1]
}

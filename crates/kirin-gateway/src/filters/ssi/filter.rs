//! The `ssi` filter of a route: carries out the directives in what files and applications answer.
//!
//! What is `text/html`, not coded and not too large is looked at; all else passes as it is. Called
//! by the router around a place, inside of compression.

use std::cell::RefCell;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, StatusCode};
use httparse::Header;
use kirin_http::entity_tag::Tag;
use kirin_http::preconditions::{self, Validators, Verdict};
use kirin_http::{Answer, Body, FieldLines, RequestBody, RequestFields, RequestHead, Response};
use kirin_ssi::{Syntax, Template};
use kirin_store::{Now, Store};
use xxhash_rust::xxh3::xxh3_128;

use super::assembly::{Assembled, Assembly, KeptSurroundings, Stage};
use super::source::Surroundings;
use super::streamed;
use super::templates::{Compiled, Templates};
use super::unread;
use crate::filters::coded_fields::plain_tags;
use crate::filters::compress::{Compress, Withheld};
use crate::filters::compress_codings::PlaceCodings;
use crate::filters::compress_threads::CompressThreads;
use crate::pages::page::{is_html, may_be_dynamic};
use crate::request::subrequest::{KeptParent, Parent, collect_now};

/// The largest page that is looked at, in bytes.
pub const MAX_PAGE_BYTES: usize = 4 * 1024 * 1024;

/// What applications are told on routes with ESI.
const CAPABILITY: &[u8] = b"kirin=\"ESI/1.0\"";

/// The filter on one event loop.
pub struct SsiFilter {
    store: Arc<Store>,
    templates: RefCell<Templates>,
}

/// What a response has turned out to be.
enum Looked {
    /// Nothing for us.
    Other(Response),
    /// A page with directives; its body is in the template.
    Page(Page),
    /// It may be one: its body takes waiting.
    Waiting(Response),
}

struct Page {
    response: Response,
    template: Arc<Template>,
    digest: u128,
}

impl SsiFilter {
    /// With `store` for what pages include by key.
    pub fn new(store: Arc<Store>) -> Self {
        Self { store, templates: RefCell::default() }
    }

    /// The answer of a directory, which can be asked twice: as the client has asked, and if that
    /// does not show all of what may be a page, for the whole of it. `seen` is the request of
    /// `parent` with its path rewritten.
    pub fn around_files(
        &self,
        parent: Parent<'_>,
        seen: &RequestHead<'_>,
        (codings, threads): (PlaceCodings, &CompressThreads),
        ask: impl Fn(&RequestHead<'_>) -> Option<Response>,
    ) -> Option<Answer> {
        let as_sent = ask(seen)?;
        let state = state_of_file(seen.path, &as_sent);
        if !seen.is_get_or_head() || shows_other(&as_sent) || self.is_other(state, parent.syntax) {
            return Some(Answer::Now(as_sent));
        }
        let is_whole =
            as_sent.status == StatusCode::OK && seen.method == Method::GET && is_page(&as_sent);
        let (whole, as_sent) = if is_whole {
            (as_sent, None)
        } else {
            let fields = fields_without(seen, |name| {
                let is_condition =
                    name.get(..3).is_some_and(|start| start.eq_ignore_ascii_case("if-"));
                is_condition || is_any(name, &["range"])
            });
            (
                ask(&RequestHead { method: Method::GET, fields: &fields, ..seen.clone() })?,
                Some(as_sent),
            )
        };
        let state = state_of_file(seen.path, &whole);
        match self.look(whole, state, parent.syntax) {
            Looked::Other(response) => {
                self.remember_other(state, parent.syntax, &response);
                Some(Answer::Now(as_sent.unwrap_or(response)))
            }
            Looked::Page(page) => {
                Some(Compress::around(parent.request, codings, threads, |request| {
                    self.assemble(page, Parent { request, ..parent })
                }))
            }
            Looked::Waiting(whole) => {
                Some(Compress::around(parent.request, codings, threads, |request| {
                    let kept = Parent { request, ..parent }.keep();
                    Answer::later(move |body| async move {
                        let answer = match read(whole, state, &kept).await {
                            Looked::Page(page) => {
                                kept.with(|parent| parent.routes.ssi().assemble(page, parent))
                            }
                            Looked::Other(response) | Looked::Waiting(response) => {
                                Answer::Now(as_sent.unwrap_or(response))
                            }
                        };
                        answer.response(body).await
                    })
                }))
            }
        }
    }

    /// Whether a file in this state is known to have nothing to carry out.
    fn is_other(&self, state: Option<u128>, syntax: Syntax) -> bool {
        let known =
            state.and_then(|state| self.templates.borrow_mut().get(of_syntax(state, syntax)));
        matches!(known, Some(None))
    }

    /// Remembers a file that is no page by its type. A page that is too large stays one, so that
    /// the log goes on to say it.
    fn remember_other(&self, state: Option<u128>, syntax: Syntax, response: &Response) {
        if let Some(state) = state.filter(|_| !is_page(response)) {
            self.templates.borrow_mut().put(of_syntax(state, syntax), None, 0);
        }
    }

    /// The answer of a place that runs code.
    pub fn around(
        &self,
        parent: Parent<'_>,
        ask: impl FnOnce(&RequestHead<'_>) -> Answer,
    ) -> Answer {
        // Directives must be found in what it answers, and all of them.
        let mut fields =
            fields_without(parent.request, |name| is_any(name, &["range", "if-range"]));
        if parent.syntax.esi {
            fields.push(Header { name: "Surrogate-Capability", value: CAPABILITY });
        }
        let method = parent.request.method.clone();
        match ask(&RequestHead { fields: &fields, method, ..*parent.request }) {
            Answer::Now(response) => match self.look_for(parent, response) {
                Looked::Other(response) => Answer::Now(response),
                Looked::Page(page) => self.assemble(page, parent),
                Looked::Waiting(response) => {
                    let kept = parent.keep();
                    Answer::later(move |body| async move {
                        let looked = read(response, None, &kept).await;
                        kept.with(|parent| answered(looked, parent)).response(body).await
                    })
                }
            },
            Answer::Later(later) => {
                let kept = parent.keep();
                Answer::later(move |body| async move {
                    let response = later(body).await;
                    let looked = kept.with(|parent| parent.routes.ssi().look_for(parent, response));
                    let looked = match looked {
                        Looked::Waiting(response) => read(response, None, &kept).await,
                        looked => looked,
                    };
                    kept.with(|parent| answered(looked, parent))
                        .response(RequestBody::empty())
                        .await
                })
            }
        }
    }

    /// Looks at what code has answered to the request of `parent`.
    fn look_for(&self, parent: Parent<'_>, mut response: Response) -> Looked {
        if parent.syntax.esi && response.fields.get("surrogate-control").is_some() {
            // It is for us (Edge Architecture Specification section 2.3).
            response.fields = response.fields.without("surrogate-control");
        }
        if parent.request.method != Method::HEAD || !is_page(&response) {
            return self.look(response, None, parent.syntax);
        }
        // What the whole page would be like is not known without making it (RFC 9110 section
        // 9.3.2).
        response.fields = of_assembled(&response.fields);
        response.body = Body::Stream(Box::new(Withheld));
        Looked::Other(response)
    }

    /// Looks at a response. `state` tells its body from others, if that is known without reading
    /// it.
    fn look(&self, response: Response, state: Option<u128>, syntax: Syntax) -> Looked {
        if !is_page(&response) {
            return Looked::Other(response);
        }
        let state = state.map(|state| of_syntax(state, syntax));
        let known = state.and_then(|state| self.templates.borrow_mut().get(state));
        if let Some(compiled) = known {
            return looked(response, compiled);
        }
        let Response { status, fields, body, answered_by } = response;
        if body.length().is_some_and(|length| length > MAX_PAGE_BYTES as u64) {
            tracing::warn!(
                limit_bytes = MAX_PAGE_BYTES,
                "a page is too large to be looked at for includes"
            );
            return Looked::Other(Response { status, fields, body, answered_by });
        }
        let content = match collect_now(body) {
            Err(body @ (Body::File(_) | Body::Stream(_))) => {
                return Looked::Waiting(Response { status, fields, body, answered_by });
            }
            Err(body) => return Looked::Other(Response { status, fields, body, answered_by }),
            Ok(mut pieces) => match pieces.len() {
                1 => pieces.remove(0),
                _ => Bytes::from(pieces.concat()),
            },
        };
        let compiled = self.compile(&content, state, syntax);
        looked(Response { status, fields, body: Body::Bytes(content), answered_by }, compiled)
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

    /// Puts a page together, at once if all of it is in memory.
    fn assemble(&self, page: Page, parent: Parent<'_>) -> Answer {
        let Page { mut response, template, digest } = page;
        let now = Now::from_unix_seconds(parent.origin.now);
        let mut assembly = Assembly::of(&template, digest, parent.lineage.variables());
        let name = parent.request.target;
        if assembly.run(Surroundings { store: &self.store, now, parent }) == Stage::Whole {
            return Answer::Now(whole(response, assembly.finish(name), parent.request));
        }
        let around =
            KeptSurroundings { store: Arc::clone(&self.store), now, parent: parent.keep() };
        if streamed::is_wanted(&parent, &response.fields) {
            response.fields = streamed::fields(&of_assembled(&response.fields));
            response.body = streamed::body(assembly, around, name.to_owned());
            return Answer::Now(response);
        }
        Answer::later(move |body| async move {
            assembly.settle_whole(&around, body.client()).await;
            around.parent.with(|parent| {
                whole(response, assembly.finish(parent.request.target), parent.request)
            })
        })
    }
}

/// Reads what takes waiting, and looks at it.
async fn read(response: Response, state: Option<u128>, kept: &KeptParent) -> Looked {
    match unread::read(response).await {
        Ok(response) => {
            kept.with(|parent| parent.routes.ssi().look(response, state, parent.syntax))
        }
        Err(response) => Looked::Other(response),
    }
}

fn answered(looked: Looked, parent: Parent<'_>) -> Answer {
    match looked {
        Looked::Page(page) => parent.routes.ssi().assemble(page, parent),
        Looked::Other(response) | Looked::Waiting(response) => Answer::Now(response),
    }
}

fn looked(response: Response, compiled: Compiled) -> Looked {
    match compiled {
        None => Looked::Other(response),
        Some((template, digest)) => {
            let response = Response { body: Body::Empty, ..response };
            Looked::Page(Page { response, template, digest })
        }
    }
}

/// The response with a page that is whole.
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
    let validators = Validators { entity_tag: Tag::of(tag.as_bytes()), last_modified: None };
    let verdict = preconditions::evaluate(&RequestFields::of(request), validators);
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

/// The fields of a page that is put together from it: without those that speak of its bytes.
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

/// Whether there may be directives in a response.
fn is_page(response: &Response) -> bool {
    let coding = response.fields.get("content-encoding");
    !Response::is_bodiless_status(response.status)
        && response.status != StatusCode::PARTIAL_CONTENT
        && response.fields.get("content-type").is_some_and(is_html)
        && coding.is_none_or(|coding| coding.eq_ignore_ascii_case(b"identity"))
}

/// A digest that is another for each syntax: a page is not the same page where it is read
/// otherwise.
fn of_syntax(digest: u128, syntax: Syntax) -> u128 {
    digest ^ u128::from(syntax.ssi) ^ (u128::from(syntax.esi) << 1)
}

/// What tells one state of a file from others, in any coding of it.
fn state_of_file(path: &str, response: &Response) -> Option<u128> {
    let tag = response.fields.get("etag")?;
    let plain = plain_tags(tag);
    // `~` marks a state that the next one may look like.
    let tag = plain.as_deref().unwrap_or(tag);
    (!tag.ends_with(b"~\"")).then(|| xxh3_128(&[path.as_bytes(), b"\0", tag].concat()))
}

/// Whether a response shows by itself that what was asked for is no page. One that is not modified,
/// fails a condition or has several parts does not.
fn shows_other(response: &Response) -> bool {
    let is_one =
        response.status == StatusCode::OK || response.status == StatusCode::PARTIAL_CONTENT;
    let is_other =
        |media_type: &[u8]| !is_html(media_type) && !media_type.starts_with(b"multipart/");
    is_one && response.fields.get("content-type").is_none_or(is_other)
}

/// The fields of `request` without some, and with no coding accepted.
fn fields_without<'a>(request: &RequestHead<'a>, is_out: impl Fn(&str) -> bool) -> Vec<Header<'a>> {
    let kept = request
        .fields
        .iter()
        .filter(|field| !is_out(field.name) && !is_any(field.name, &["accept-encoding"]));
    let identity = Header { name: "Accept-Encoding", value: b"identity" };
    kept.copied().chain([identity]).collect()
}

fn is_any(name: &str, names: &[&str]) -> bool {
    names.iter().any(|other| name.eq_ignore_ascii_case(other))
}

//! The mirror of a route on one event loop: chooses requests, and prepares their copies.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::Method;
use kirin_http::{
    Answer, BodyCopy, BodyLength, InRequest, Later, Origin, RequestHead, SeldomWarnings,
};

use super::body_digest::PIECE_BYTES;
use super::counters::{CopySkip, CountedCopy};
use super::prepared_copy::PreparedCopy;
use super::settings::MirrorSettings;
use super::visitor_answer::observe;
use crate::filters::backend::Backend;
use crate::request::context::Request;
use crate::request::field_changes::FieldChange;
use crate::request::given_names::GivenNames;

/// The field that says that a request is a copy.
pub const COPY_FIELD: &str = "Kirin-Mirror";

/// The most copies of a route that wait for their answers on one event loop.
const MAX_IN_FLIGHT: usize = 32;

/// The longest body of a request that is copied, in bytes.
const BODY_LIMIT_BYTES: u64 = 64 * 1024;

/// The most time that a copy may take, from its start to the end of its answer.
const TIME_LIMIT: Duration = Duration::from_secs(30);

/// The memory that a copy takes besides its fields and its body, in bytes, as an estimate.
const COPY_BYTES: u64 = 2 * 1024;

/// The fields of requests that are never copied: copies, so that mirrors in a circle do not send a
/// request round and round, parts of bodies, and tunnels.
const NEVER: [&str; 3] = [COPY_FIELD, "Range", "Upgrade"];

/// The mirror of one route on one event loop.
pub struct RouteMirror {
    /// The settings, which all loops share.
    pub settings: Arc<MirrorSettings>,
    /// The warnings about differences and copies without an answer.
    pub warnings: SeldomWarnings,
    /// The upstream, without filters.
    backend: Rc<dyn Backend>,
    /// The names of the fields that are set in copies.
    names: GivenNames,
    in_flight: Cell<usize>,
}

/// A copy that waits for its answer, until this is dropped.
pub struct CopyInFlight {
    mirror: Rc<RouteMirror>,
    _counted: CountedCopy,
}

impl RouteMirror {
    /// Creates the mirror. `backend` is its upstream.
    pub fn new(settings: Arc<MirrorSettings>, backend: Rc<dyn Backend>) -> Rc<Self> {
        let (names, in_flight) = ([Arc::from(COPY_FIELD)].into_iter().collect(), Cell::default());
        Rc::new(Self { settings, warnings: SeldomWarnings::default(), backend, names, in_flight })
    }

    /// Returns `answer`, the answer of the place to a request, and lets a copy of the request
    /// follow it if the request is chosen. An answer that is there at once is a refusal of Kirin
    /// itself, for which there is no copy.
    pub fn around(self: &Rc<Self>, request: &Request<'_>, answer: Answer) -> Answer {
        let Answer::Later(later) = answer else { return answer };
        if !self.chooses(request) {
            return Answer::Later(later);
        }
        match self.prepare(request) {
            Ok(Some(copy)) => with_copy(later, copy),
            Ok(None) => Answer::Later(later),
            Err(why) => {
                self.settings.counters.skip(why);
                Answer::Later(later)
            }
        }
    }

    fn chooses(&self, request: &Request<'_>) -> bool {
        let (head, notes) = (request.head, request.origin.notes);
        self.settings.has_method(&head.method)
            && self.settings.share.includes(notes.id())
            && !NEVER.iter().any(|name| head.field(name).is_some())
    }

    /// Prepares the copy. Returns `Ok(None)` if the upstream cannot get such a request.
    fn prepare(self: &Rc<Self>, request: &Request<'_>) -> Result<Option<PreparedCopy>, CopySkip> {
        let head = request.head;
        let body_bytes = match head.body {
            BodyLength::None => 0,
            BodyLength::Exact(length) if length > BODY_LIMIT_BYTES => {
                return Err(CopySkip::RequestBody);
            }
            BodyLength::Exact(length) => length,
            BodyLength::Chunked => BODY_LIMIT_BYTES,
        };
        // Each of the two answers may have the beginning of a line.
        let line_bytes = if self.settings.ignored.is_empty() { 0 } else { 2 * PIECE_BYTES };
        let fields = head.fields.iter().map(|field| field.name.len() + field.value.len());
        let bytes = head.target.len() + fields.sum::<usize>() + line_bytes;
        let held = self.settings.counters.hold(bytes as u64 + body_bytes + COPY_BYTES);
        let held = held.ok_or(CopySkip::Memory)?;
        let Answer::Later(send) = self.ask(request) else { return Ok(None) };
        // The notes drop the sender when the response of the visitor has ended.
        let (sender, ended) = tokio::sync::oneshot::channel();
        request.origin.notes.steps().hold(Box::new(sender));
        let body = (head.body != BodyLength::None)
            .then(|| Rc::new(BodyCopy::new(BODY_LIMIT_BYTES as usize)));
        Ok(Some(PreparedCopy {
            mirror: Rc::clone(self),
            send,
            body,
            ended,
            path: head.path.into(),
            is_head: head.method == Method::HEAD,
            held,
            time_limit: TIME_LIMIT,
        }))
    }

    /// Lets the upstream encode the head of the copy, which then needs nothing of the request.
    fn ask(&self, request: &Request<'_>) -> Answer {
        // The notes of the visitor would keep what is held until the response has ended.
        let notes = request.origin.notes.of_part();
        let origin = Origin { notes: &notes, ..request.origin };
        let mut changes = vec![FieldChange::Set(COPY_FIELD.into(), vec![b"1".to_vec()])];
        if request.head.is_get_or_head() {
            // The mirror need not have the tags and times of the place.
            changes.extend(["if-none-match", "if-modified-since"].map(FieldChange::Remove));
        }
        request.with_given(&self.names, &changes, |request| {
            let head = RequestHead { expects_continue: false, ..request.head.clone() };
            self.backend.answer(&Request { head: &head, origin, ..*request })
        })
    }

    /// Counts a copy that is about to be sent. Returns `None` if too many wait for their answers.
    pub fn begin(self: &Rc<Self>) -> Option<CopyInFlight> {
        let in_flight = self.in_flight.get();
        if in_flight >= MAX_IN_FLIGHT {
            return None;
        }
        self.in_flight.set(in_flight + 1);
        Some(CopyInFlight { mirror: Rc::clone(self), _counted: self.settings.counters.begin() })
    }
}

impl Drop for CopyInFlight {
    fn drop(&mut self) {
        self.mirror.in_flight.set(self.mirror.in_flight.get() - 1);
    }
}

/// A copy whose request has no answer yet.
struct Unanswered(Option<PreparedCopy>);

impl Drop for Unanswered {
    /// Counts a copy whose request is given up, because its client has gone.
    fn drop(&mut self) {
        if let Some(copy) = &self.0 {
            copy.mirror.settings.counters.skip(CopySkip::Cut);
        }
    }
}

/// Returns the answer of the place, which the copy follows.
fn with_copy(later: Later, copy: PreparedCopy) -> Answer {
    let mut unanswered = Unanswered(Some(copy));
    Answer::later(move |mut body| async move {
        if let Some(copied) = unanswered.0.as_ref().and_then(|copy| copy.body.as_ref()) {
            body.copy_to(Rc::clone(copied));
        }
        let response = later(body).await;
        let Some(copy) = unanswered.0.take() else { return response };
        match observe(response, copy.is_head, &copy.mirror.settings.ignored) {
            Ok((response, visitor)) => {
                // Lines of the log name the request.
                tokio::task::spawn_local(InRequest::of_current(copy.follow(visitor)));
                response
            }
            Err((response, why)) => {
                copy.mirror.settings.counters.skip(why);
                response
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use std::future::pending;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use kirin_http::{Body, BodyStream, RequestBody, Response, StatusCode, StreamError};

    use super::*;
    use crate::filters::mirror::counters::MirrorCounters;
    use crate::filters::mirror::settings::Share;
    use crate::request::test_requests::with_request;

    /// How the mirror answers.
    #[derive(Clone, Copy, Debug)]
    enum Answering {
        AtOnce,
        Never,
        /// With a part of the body that it announces.
        InPart,
    }

    /// A mirror, and a value that it holds while it works on a request.
    struct Mirror(Answering, Rc<()>);

    /// A body whose end does not come.
    struct Endless {
        chunk: Option<&'static str>,
        _work: Rc<()>,
    }

    impl BodyStream for Endless {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
            match self.chunk.take() {
                Some(chunk) => Poll::Ready(Some(Ok(chunk.into()))),
                None => Poll::Pending,
            }
        }

        fn length(&self) -> Option<u64> {
            Some(6)
        }
    }

    fn page(body: Body) -> Response {
        Response::new(kirin_proxy::ANSWERED_BY, StatusCode::OK, body)
    }

    impl Backend for Mirror {
        fn answer(&self, _: &Request<'_>) -> Answer {
            let (answering, work) = (self.0, Rc::clone(&self.1));
            Answer::later(move |_: RequestBody| async move {
                page(match answering {
                    Answering::AtOnce => Body::from("a page"),
                    Answering::InPart => {
                        Body::Stream(Box::new(Endless { chunk: Some("a "), _work: work }))
                    }
                    Answering::Never => pending().await,
                })
            })
        }
    }

    #[tokio::test]
    async fn a_copy_is_given_up_when_its_time_is_over() {
        for (answering, expected) in [
            // An answer that is there counts, however late it is.
            (Answering::AtOnce, "equal"),
            (Answering::Never, "failed"),
            (Answering::InPart, "failed"),
        ] {
            let counters = Arc::<MirrorCounters>::default();
            let settings = MirrorSettings {
                upstream: 0,
                to: "proxy:next".into(),
                share: Share::ALL,
                methods: vec![Method::GET],
                ignored: Arc::default(),
                counters: Arc::clone(&counters),
            };
            let work = Rc::new(());
            let mirror = Mirror(answering, Rc::clone(&work));
            let mirror = RouteMirror::new(Arc::new(settings), Rc::new(mirror));
            let copy =
                with_request("GET /a HTTP/1.1\r\nHost: a", |request| mirror.prepare(request));
            let mut copy = copy.unwrap().unwrap();
            assert_eq!(copy.time_limit, Duration::from_secs(30));
            assert!(counters.held_bytes() > 0);
            // The time of the test must not run.
            copy.time_limit = Duration::ZERO;
            let (_, visitor) =
                observe(page(Body::from("a page")), false, &Arc::default()).ok().unwrap();
            copy.follow(visitor).await;
            let results: Vec<_> = counters.results().filter(|(_, count)| *count > 0).collect();
            assert_eq!(results, [(expected, 1)], "{answering:?}");
            assert_eq!((counters.in_flight(), counters.held_bytes()), (0, 0), "{answering:?}");
            drop(mirror);
            assert_eq!(Rc::strong_count(&work), 1, "{answering:?}: nothing works on it");
        }
    }
}

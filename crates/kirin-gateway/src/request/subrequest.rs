//! Requests that come of a request: what a page includes and what a script asks for, answered by
//! this server's own routes.
//!
//! A [`Parent`] is the request that asks; its [`Parent::get`] gives the [`Answer`] of the routes,
//! as a client would get it, and
//! [`collect`] reads a response's body. No connection, no task: an answer from memory is there at
//! once. Called by includes (`ssi/`).
//!
//! Pages ask with GET and without a body, scripts as they like. The visitor's cookies and other
//! fields go with it; what is about the parent's own response does not (conditions, ranges,
//! codings). Rate limits count the visitor's request alone, as in nginx. A password is asked of a
//! subrequest, too, as Apache does it: a page may name its parts by what visitors send.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::io;
use std::os::unix::fs::FileExt;
use std::rc::Rc;

use bytes::Bytes;
use http::Method;
use kirin_http::{Answer, Body, BodyLength, Origin, RequestHead, StreamError};
use kirin_ssi::{Scope, Syntax};

use crate::request::kept_request::KeptRequest;
use crate::routing::path_rest;
use crate::routing::protection::Protection;
use crate::routing::router::Routes;

/// Requests inside requests, at most. A page that includes itself ends here.
pub const MAX_DEPTH: u8 = 8;

/// Requests that one request of a client may give rise to, with all that those give rise to.
const MAX_REQUESTS: usize = 1024;

/// The longest target, in bytes; as long as the longest request line by default.
const MAX_TARGET_BYTES: usize = 8 * 1024;

/// Where a request comes from: a client's own, or how far below it.
#[derive(Clone, Default)]
pub struct Lineage {
    depth: u8,
    /// Of the page that includes the answer.
    variables: Option<Rc<Variables>>,
    /// What all requests below the client's own share. Made when there is one.
    family: OnceCell<Rc<Family>>,
}

/// All requests that one of a client's has given rise to.
#[derive(Default)]
struct Family {
    started: Cell<usize>,
    /// Whether one has been refused.
    is_cut: Cell<bool>,
}

/// What a page and a part of it have set: as in nginx and Apache, a part has the variables of the
/// page, and the page has those of a part that it has waited for.
#[derive(Default)]
pub struct Variables {
    /// The page's, when it asked.
    pub given: Scope,
    /// The part's, at its end. Nothing if it has not been put together.
    pub left: RefCell<Option<Scope>>,
}

impl Lineage {
    /// The variables of the page that includes the answer.
    pub fn variables(&self) -> Option<&Rc<Variables>> {
        self.variables.as_ref()
    }

    /// Whether it is no client's own request.
    pub fn is_subrequest(&self) -> bool {
        self.depth > 0
    }

    fn child(&self) -> Result<Self, Refused> {
        let family = self.family.get_or_init(Rc::default);
        let started = family.started.get();
        if self.depth >= MAX_DEPTH || started >= MAX_REQUESTS {
            return Err(Refused::Cut { again: family.is_cut.replace(true) });
        }
        family.started.set(started + 1);
        Ok(Self { depth: self.depth + 1, variables: None, family: Rc::clone(family).into() })
    }
}

/// A request on whose behalf others are answered.
#[derive(Clone, Copy)]
pub struct Parent<'a> {
    /// All that can be asked for.
    pub routes: &'a Rc<Routes>,
    /// As it was sent.
    pub request: &'a RequestHead<'a>,
    /// Who asks.
    pub origin: Origin<'a>,
    /// The name whose password the route has checked.
    pub user: Option<&'a str>,
    /// What its route carries out in pages.
    pub syntax: Syntax,
    /// The conditions that it has passed, on which pages of the store may depend.
    pub protection: Protection,
    /// How deep it is itself.
    pub lineage: &'a Lineage,
}

/// Why there is no subrequest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refused {
    /// Its target is empty or too long.
    #[error("is no target of a request")]
    Target,
    /// Too deep, or too many.
    #[error("requests go in a circle, too deep or are too many")]
    Cut {
        /// Whether this has been said of another request of the same client's request: a page in a
        /// circle is thousands.
        again: bool,
    },
}

impl Parent<'_> {
    /// Asks the routes for `target`, a path and perhaps a query. A relative path is one beside the
    /// parent's; bytes that cannot stand in a target are percent-encoded. The answer is for a page
    /// with these variables.
    pub fn get(&self, target: &[u8], variables: &Rc<Variables>) -> Result<Answer, Refused> {
        let lineage = Lineage { variables: Some(Rc::clone(variables)), ..self.lineage.child()? };
        self.ask_as(lineage, &Method::GET, target, &[], BodyLength::None)
    }

    /// Asks with a method, fields in place of the visitor's of the same name, and a body, which is
    /// for the answer to read.
    pub fn ask(
        &self,
        method: &Method,
        target: &[u8],
        others: &[httparse::Header<'_>],
        body: BodyLength,
    ) -> Result<Answer, Refused> {
        self.ask_as(self.lineage.child()?, method, target, others, body)
    }

    fn ask_as(
        &self,
        lineage: Lineage,
        method: &Method,
        target: &[u8],
        others: &[httparse::Header<'_>],
        body: BodyLength,
    ) -> Result<Answer, Refused> {
        let target = absolute_target(self.request.path, target).ok_or(Refused::Target)?;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&target[..], None),
        };
        let mut fields: Vec<_> =
            self.request.fields.iter().filter(|field| is_kept(field.name)).copied().collect();
        fields.retain(|field| {
            !others.iter().any(|other| other.name.eq_ignore_ascii_case(field.name))
        });
        fields.extend(others.iter().filter(|other| is_own(other.name)));
        // Not left out: one who says nothing takes any coding.
        fields.push(httparse::Header { name: "Accept-Encoding", value: b"identity" });
        let request = RequestHead {
            method: method.clone(),
            target: &target,
            path,
            query,
            version: self.request.version,
            host: self.request.host,
            fields: &fields,
            body,
            persistent: true,
            expects_continue: false,
        };
        Ok(self.routes.answer(&request, self.origin, &lineage))
    }

    /// A copy, for when an answer takes waiting.
    pub fn keep(&self) -> KeptParent {
        // What is started before and after is counted together.
        self.lineage.family.get_or_init(Rc::default);
        KeptParent {
            routes: Rc::clone(self.routes),
            request: KeptRequest::of(self.request, self.origin),
            user: self.user.map(Into::into),
            syntax: self.syntax,
            protection: self.protection,
            lineage: self.lineage.clone(),
        }
    }
}

/// A [`Parent`] that outlives the connection's read buffer.
pub struct KeptParent {
    routes: Rc<Routes>,
    request: KeptRequest,
    user: Option<String>,
    syntax: Syntax,
    protection: Protection,
    lineage: Lineage,
}

impl KeptParent {
    /// Has `work` look at it again.
    pub fn with<R>(&self, work: impl FnOnce(Parent<'_>) -> R) -> R {
        self.request.with(|request, origin| {
            let (routes, lineage, user) = (&self.routes, &self.lineage, self.user.as_deref());
            let (syntax, protection) = (self.syntax, self.protection);
            work(Parent { routes, request, origin, user, syntax, protection, lineage })
        })
    }
}

/// Whether a field of the parent goes with its subrequests.
pub fn is_kept(name: &str) -> bool {
    let about_response = [
        "range",
        "accept-encoding",
        "te",
        "expect",
        "upgrade",
        "connection",
        "keep-alive",
        "trailer",
    ];
    let begins = |prefix: &str| {
        name.get(..prefix.len()).is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    !begins("if-")
        && !begins("content-")
        && !begins("transfer-")
        && !about_response.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// Whether a script may set a field of its subrequest: framing, connection and codings are not its
/// own.
fn is_own(name: &str) -> bool {
    const OTHERS: [&str; 10] = [
        "accept-encoding",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    ];
    !OTHERS.iter().any(|other| name.eq_ignore_ascii_case(other))
}

/// `target` as it stands in a request line, beside `path` if it is relative.
fn absolute_target(path: &str, target: &[u8]) -> Option<String> {
    let directory = match target.first()? {
        b'/' => "",
        _ => &path[..=path.rfind('/')?],
    };
    if target.len() > MAX_TARGET_BYTES {
        return None;
    }
    let mut absolute = String::with_capacity(directory.len() + target.len());
    absolute.push_str(directory);
    for &byte in target {
        match byte {
            b'!'..=b'~' if byte != b'#' => absolute.push(char::from(byte)),
            _ => path_rest::push_encoded(&mut absolute, byte),
        }
    }
    Some(absolute)
}

/// Why a body is not in memory.
#[derive(Debug, thiserror::Error)]
pub enum CollectError {
    /// It is longer than the limit.
    #[error("it is larger than {0} bytes")]
    TooLarge(usize),
    /// It ended before its end.
    #[error(transparent)]
    Cut(#[from] StreamError),
    /// Its file cannot be read.
    #[error("its file cannot be read: {0}")]
    File(#[from] io::Error),
    /// The response has none: it is a tunnel, or to HEAD.
    #[error("it has no body")]
    NoBody,
}

/// The pieces of a body that is in memory; otherwise the body, which takes waiting.
pub fn collect_now(body: Body) -> Result<Vec<Bytes>, Body> {
    match body {
        Body::Empty => Ok(Vec::new()),
        Body::Bytes(bytes) => Ok(vec![bytes]),
        Body::Segments(pieces) => Ok(pieces),
        Body::File(_) | Body::Stream(_) | Body::Withheld(_) | Body::Tunnel(_) => Err(body),
    }
}

/// Reads a body of at most `limit_bytes` into memory. Call on an event loop.
pub async fn collect(body: Body, limit_bytes: usize) -> Result<Vec<Bytes>, CollectError> {
    let too_large = || CollectError::TooLarge(limit_bytes);
    if body.length().is_some_and(|length| length > limit_bytes as u64) {
        return Err(too_large());
    }
    match collect_now(body) {
        Ok(pieces) => Ok(pieces),
        Err(Body::File(range)) => {
            // Within the limit.
            let mut content = vec![0; range.length as usize];
            let read =
                move || range.file.read_exact_at(&mut content, range.offset).map(|()| content);
            let content = tokio::task::spawn_blocking(read).await.map_err(io::Error::other)??;
            Ok(vec![Bytes::from(content)])
        }
        Err(Body::Stream(mut stream)) => {
            let (mut pieces, mut length) = (Vec::new(), 0);
            while let Some(chunk) = poll_fn(|context| stream.poll_chunk(context)).await {
                let chunk = chunk?;
                length += chunk.len();
                if length > limit_bytes {
                    return Err(too_large());
                }
                pieces.push(chunk);
            }
            Ok(pieces)
        }
        Err(_) => Err(CollectError::NoBody),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::VecDeque;
    use std::task::{Context, Poll};

    #[test]
    fn targets_are_made_absolute_and_sendable() {
        for (path, target, absolute) in [
            ("/a/b", "/c?d=e", Some("/c?d=e")),
            ("/a/b", "c", Some("/a/c")),
            ("/a/", "c/d", Some("/a/c/d")),
            ("/a", "../c", Some("/../c")),
            ("/", "c d\r\nX: y#f", Some("/c%20d%0D%0AX:%20y%23f")),
            ("/", "/é%20", Some("/%C3%A9%20")),
            ("/", "http://other/", Some("/http://other/")),
            ("/", "", None),
            ("*", "c", None),
        ] {
            assert_eq!(
                absolute_target(path, target.as_bytes()).as_deref(),
                absolute,
                "{path} {target}"
            );
        }
    }

    #[test]
    fn what_is_about_the_parents_own_response_stays_with_it() {
        for (name, kept) in [
            ("Cookie", true),
            ("Authorization", true),
            ("Host", true),
            ("X-Ifs", true),
            ("If-None-Match", false),
            ("if-match", false),
            ("Range", false),
            ("Accept-Encoding", false),
            ("Content-Length", false),
            ("Transfer-Encoding", false),
            ("Connection", false),
            ("Upgrade", false),
        ] {
            assert_eq!(is_kept(name), kept, "{name}");
        }
    }

    #[test]
    fn a_family_of_requests_has_limits() {
        let mut lineage = Lineage::default();
        assert!(!lineage.is_subrequest());
        for _ in 0..MAX_DEPTH {
            lineage = lineage.child().unwrap();
            assert!(lineage.is_subrequest());
        }
        assert_eq!(lineage.child().err(), Some(Refused::Cut { again: false }));
        assert_eq!(lineage.child().err(), Some(Refused::Cut { again: true }));
        let lineage = Lineage::default();
        for _ in 0..MAX_REQUESTS / 2 {
            lineage.child().unwrap().child().unwrap();
        }
        assert_eq!(lineage.child().err(), Some(Refused::Cut { again: false }));
    }

    struct Chunks(VecDeque<Result<Bytes, StreamError>>);

    impl kirin_http::BodyStream for Chunks {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
            Poll::Ready(self.0.pop_front())
        }

        fn length(&self) -> Option<u64> {
            None
        }
    }

    #[tokio::test]
    async fn bodies_of_all_kinds_are_read_up_to_a_limit() {
        let stream = |chunks: &[&'static str]| {
            let chunks = chunks.iter().map(|chunk| Ok(Bytes::from_static(chunk.as_bytes())));
            Body::Stream(Box::new(Chunks(chunks.collect())))
        };
        let file = || {
            use std::io::Write;
            let mut file = tempfile::tempfile().unwrap();
            file.write_all(b"0hello9").unwrap();
            Body::File(kirin_http::FileRange {
                file: std::sync::Arc::new(file),
                offset: 1,
                length: 5,
            })
        };
        for make in [|| Body::from("hello"), || Body::Segments(vec!["he".into(), "llo".into()])] {
            assert_eq!(collect(make(), 5).await.unwrap().concat(), b"hello");
            assert!(matches!(collect(make(), 4).await, Err(CollectError::TooLarge(4))));
        }
        assert_eq!(collect(file(), 5).await.unwrap().concat(), b"hello");
        assert!(matches!(collect(file(), 4).await, Err(CollectError::TooLarge(4))));
        assert_eq!(collect(stream(&["he", "llo"]), 5).await.unwrap().concat(), b"hello");
        assert!(matches!(collect(stream(&["he", "llo"]), 4).await, Err(CollectError::TooLarge(4))));
        let cut = Chunks([Ok(Bytes::from_static(b"a")), Err(StreamError("gone".into()))].into());
        assert!(matches!(collect(Body::Stream(Box::new(cut)), 5).await, Err(CollectError::Cut(_))));
        assert!(matches!(collect(Body::Withheld(3), 5).await, Err(CollectError::NoBody)));
    }
}

//! Pages that begin before they are complete: what is ready is sent while the rest is waited for.
//!
//! The head is sent before the parts are known. So there is no `ETag`, and the page must not be
//! stored: a part may turn out to forbid it. A page with a lifetime, and a request with a
//! condition, wait for the complete page instead.

use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::Method;
use kirin_http::{Body, BodyStream, FieldLines, RequestFields, RequestHead, StreamError, Version};

use super::assembly::{Assembly, KeptSurroundings};
use crate::request::context::Request;

/// Returns whether the page with these fields is to begin before it is complete.
pub fn is_wanted(request: &Request<'_>, page: &FieldLines) -> bool {
    !request.lineage.is_subrequest() && is_wanted_by(request.head, page)
}

fn is_wanted_by(request: &RequestHead<'_>, page: &FieldLines) -> bool {
    if request.method != Method::GET || request.version == Version::Http10 {
        return false;
    }
    let asked = RequestFields::from_head(request);
    let has_condition = asked.compare_tags()
        || asked.if_modified_since.is_some()
        || asked.if_unmodified_since.is_some();
    let control = page.get("cache-control").unwrap_or_default().to_ascii_lowercase();
    let has_lifetime = page.get("expires").is_some()
        || [&b"max-age"[..], b"s-maxage", b"public"]
            .iter()
            .any(|directive| memchr::memmem::find(&control, directive).is_some());
    !has_condition && !has_lifetime
}

/// Returns the fields of such a page.
pub fn fields(page: &FieldLines) -> FieldLines {
    let mut fields = page.without("cache-control").without("etag");
    fields.push("Cache-Control", "no-store");
    fields
}

/// Returns the body of such a page. `name` is its name for the log.
pub fn body(mut assembly: Assembly, page: KeptSurroundings, name: String) -> Body {
    let ready = Rc::new(RefCell::new(Vec::new()));
    let sink = Rc::clone(&ready);
    let work = async move {
        assembly.settle(&page, |assembly| sink.borrow_mut().extend(assembly.take_ready())).await;
        assembly.log_problem(&name);
    };
    Body::Stream(Box::new(Streamed { ready, work: Some(Box::pin(work)) }))
}

struct Streamed {
    ready: Rc<RefCell<Vec<Bytes>>>,
    /// None after the end.
    work: Option<Pin<Box<dyn Future<Output = ()>>>>,
}

impl BodyStream for Streamed {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        let is_over = match &mut self.work {
            None => true,
            Some(work) => work.as_mut().poll(context).is_ready(),
        };
        if is_over {
            self.work = None;
        }
        let pieces = std::mem::take(&mut *self.ready.borrow_mut());
        match &pieces[..] {
            [] if is_over => Poll::Ready(None),
            [] => Poll::Pending,
            [piece] => Poll::Ready(Some(Ok(piece.clone()))),
            pieces => Poll::Ready(Some(Ok(Bytes::from(pieces.concat())))),
        }
    }

    fn length(&self) -> Option<u64> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_http::request::{self, Parsed};
    use std::mem::MaybeUninit;

    #[test]
    fn a_page_is_streamed_unless_the_request_needs_the_complete_page() {
        for (head, field, wanted) in [
            ("GET / HTTP/1.1\r\nHost: a", "A: b", true),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nRange: bytes=0-1",
                "Cache-Control: private, no-cache",
                true,
            ),
            ("HEAD / HTTP/1.1\r\nHost: a", "A: b", false),
            ("GET / HTTP/1.0\r\nHost: a", "A: b", false),
            ("GET / HTTP/1.1\r\nHost: a\r\nIf-None-Match: \"x\"", "A: b", false),
            ("GET / HTTP/1.1\r\nHost: a\r\nIf-Match: *", "A: b", false),
            ("GET / HTTP/1.1\r\nHost: a\r\nIf-Modified-Since: x", "A: b", false),
            ("GET / HTTP/1.1\r\nHost: a", "Cache-Control: Max-Age=5", false),
            ("GET / HTTP/1.1\r\nHost: a", "Cache-Control: public", false),
            ("GET / HTTP/1.1\r\nHost: a", "Expires: 0", false),
        ] {
            let text = format!("{head}\r\n\r\n");
            let mut storage = [const { MaybeUninit::uninit() }; request::MAX_FIELDS];
            let Ok(Parsed::Complete(request, _)) =
                request::parse(text.as_bytes(), &mut storage, &Default::default())
            else {
                panic!("{head}")
            };
            let (name, value) = field.split_once(": ").unwrap();
            let mut page = FieldLines::new();
            page.try_push(name.as_bytes(), value.as_bytes()).unwrap();
            assert_eq!(is_wanted_by(&request, &page), wanted, "{head} {field}");
        }
    }
}

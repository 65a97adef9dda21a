//! Tests of the filter with made-up applications. crates/kirin/tests/pages/compression.rs has real
//! ones.

use std::collections::VecDeque;
use std::io::Read;
use std::mem::MaybeUninit;
use std::task::Waker;

use httparse::Header;
use kirin_client_bytes::ClientShare;
use kirin_compress::Codings;
use kirin_http::FieldLines;
use kirin_http::request::{self, Parsed};

use super::*;
use crate::request::test_requests::with_request;

struct Chunks(VecDeque<Poll<Option<Result<Bytes, StreamError>>>>);

impl BodyStream for Chunks {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        self.0.pop_front().unwrap_or(Poll::Ready(None))
    }

    fn length(&self) -> Option<u64> {
        None
    }
}

fn stream(chunks: &[&str]) -> Body {
    let chunk = |text: &&str| Poll::Ready(Some(Ok(Bytes::from(text.to_string()))));
    Body::Stream(Box::new(Chunks(chunks.iter().map(chunk).collect())))
}

fn response(status: u16, lines: &str, body: Body) -> Response {
    let mut fields = FieldLines::new();
    for line in lines.lines() {
        let (name, value) = line.split_once(": ").unwrap();
        fields.try_push(name.as_bytes(), value.as_bytes()).unwrap();
    }
    let status = StatusCode::from_u16(status).unwrap();
    Response { fields, ..Response::new(kirin_workers::ANSWERED_BY, status, body) }
}

/// Returns `response` as the filter leaves it, for a request with these lines.
fn filter(head: &str, response: Response) -> Response {
    let text = format!("{head}\r\nHost: x\r\n\r\n");
    let mut storage = [const { MaybeUninit::uninit() }; request::MAX_FIELDS];
    let Ok(Parsed::Complete(head, _)) =
        request::parse(text.as_bytes(), &mut storage, &Default::default())
    else {
        panic!("{text}")
    };
    let threads = CompressThreads::default();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let compression = Compression {
        accept: AcceptEncoding::parse(head.field("accept-encoding")),
        codings: Codings::ALL.into(),
        is_head: head.method == Method::HEAD,
        if_none_match: head.field("if-none-match").map(<[u8]>::to_vec),
        threads,
    };
    runtime.block_on(compression.response(response, &ClientShare::default()))
}

const GZIP: &str = "GET / HTTP/1.1\r\nAccept-Encoding: gzip";

fn gunzip(body: &[u8]) -> Vec<u8> {
    let mut plain = Vec::new();
    flate2::read::GzDecoder::new(body).read_to_end(&mut plain).unwrap();
    plain
}

fn field<'a>(response: &'a Response, name: &str) -> Option<&'a str> {
    response.fields.get(name).map(|value| std::str::from_utf8(value).unwrap())
}

#[test]
fn a_complete_body_is_coded_with_a_length() {
    for length in [1000, 100_000] {
        let page = "hello ".repeat(length / 6);
        let lines = "Content-Type: text/html\nETag: \"a\"\nVary: Cookie";
        let coded = filter(GZIP, response(200, lines, Body::from(page.clone().into_bytes())));
        assert_eq!(field(&coded, "content-encoding"), Some("gzip"));
        assert_eq!(
            (field(&coded, "etag"), field(&coded, "vary")),
            (Some("\"a-gzip\""), Some("Cookie, Accept-Encoding"))
        );
        let Body::Bytes(body) = coded.body else { panic!("{:?}", coded.body) };
        assert!(body.len() < page.len() / 5 && gunzip(&body) == page.as_bytes());
    }
}

#[test]
fn responses_that_must_not_be_coded_stay_as_they_are() {
    let long = || Body::from(vec![b'x'; 1000]);
    for (head, status, lines, body, vary) in [
        (GZIP, 200, "Content-Type: text/html", Body::from(vec![b'x'; 511]), None),
        (GZIP, 200, "Content-Type: image/png", long(), None),
        (GZIP, 200, "Content-Type: text/html\nContent-Encoding: br", long(), None),
        (GZIP, 200, "Content-Type: text/html\nCache-Control: no-transform", long(), None),
        (GZIP, 206, "Content-Type: text/html\nContent-Range: bytes 0-999/2000", long(), None),
        (GZIP, 204, "Content-Type: text/html", Body::Empty, None),
        ("GET / HTTP/1.1", 200, "Content-Type: text/html", long(), Some("Accept-Encoding")),
        (
            "GET / HTTP/1.1\r\nAccept-Encoding: gzip;q=0",
            200,
            "Content-Type: text/html",
            long(),
            Some("Accept-Encoding"),
        ),
        (
            "HEAD / HTTP/1.1",
            200,
            "Content-Type: text/html",
            Body::Withheld(1000),
            Some("Accept-Encoding"),
        ),
    ] {
        let before = body.length();
        let after = filter(head, response(status, lines, body));
        assert_eq!(after.body.length(), before, "{head} {status} {lines}");
        assert_eq!(field(&after, "vary"), vary, "{head} {status} {lines}");
        assert_eq!(
            after.fields.get("content-encoding"),
            response(200, lines, Body::Empty).fields.get("content-encoding")
        );
    }
}

#[test]
fn head_has_the_fields_of_get() {
    let lines = "Content-Type: text/html\nETag: \"a\"";
    let get = filter(GZIP, response(200, lines, Body::from(vec![b'x'; 1000])));
    let head = filter(&GZIP.replace("GET", "HEAD"), response(200, lines, Body::Withheld(1000)));
    let all = |response: &Response| {
        response.fields.iter().map(|(n, v)| (n.to_vec(), v.to_vec())).collect::<Vec<_>>()
    };
    assert_eq!(all(&get), all(&head));
    assert_eq!(head.body.length(), None, "the length of the coded body is not known");
}

#[test]
fn each_chunk_of_a_stream_is_sent_before_the_next_arrives() {
    for (name, coding) in [("gzip", Coding::Gzip), ("br", Coding::Brotli), ("zstd", Coding::Zstd)] {
        let lines = "Content-Type: text/event-stream";
        let Body::Stream(mut coded) = filter(
            &GZIP.replace("gzip", name),
            response(200, lines, stream(&["data: 1\n\n", "data: 2\n\n"])),
        )
        .body
        else {
            panic!("no stream")
        };
        let mut next = || match coded.poll_chunk(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(Some(Ok(bytes))) => bytes,
            other => panic!("{other:?}"),
        };
        let (first, second, end) = (next(), next(), next());
        assert!(matches!(
            coded.poll_chunk(&mut Context::from_waker(Waker::noop())),
            Poll::Ready(None)
        ));
        if coding == Coding::Gzip {
            let mut decoder = flate2::write::GzDecoder::new(Vec::new());
            for (bytes, so_far) in [
                (first, "data: 1\n\n"),
                (second, "data: 1\n\ndata: 2\n\n"),
                (end, "data: 1\n\ndata: 2\n\n"),
            ] {
                std::io::Write::write_all(&mut decoder, &bytes).unwrap();
                std::io::Write::flush(&mut decoder).unwrap();
                assert_eq!(String::from_utf8_lossy(decoder.get_ref()), so_far);
            }
        }
    }
}

#[test]
fn a_cut_stream_is_not_ended_by_the_coding() {
    let chunks = Chunks(VecDeque::from([
        Poll::Ready(Some(Ok(Bytes::from_static(b"hello")))),
        Poll::Pending,
        Poll::Ready(Some(Err(StreamError("cut".into())))),
    ]));
    let body = Body::Stream(Box::new(chunks));
    let Body::Stream(mut coded) =
        filter(GZIP, response(200, "Content-Type: text/plain", body)).body
    else {
        panic!("no stream")
    };
    let mut poll = || coded.poll_chunk(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(poll(), Poll::Ready(Some(Ok(_)))));
    assert!(poll().is_pending());
    assert!(matches!(poll(), Poll::Ready(Some(Err(_)))));
}

#[test]
fn a_large_chunk_is_coded_in_slices() {
    let text = "0123456789".repeat(50_000);
    let Body::Stream(mut coded) =
        filter(GZIP, response(200, "Content-Type: text/plain", stream(&[&text]))).body
    else {
        panic!("no stream")
    };
    let (mut body, mut count) = (Vec::new(), 0);
    while let Poll::Ready(Some(chunk)) = coded.poll_chunk(&mut Context::from_waker(Waker::noop())) {
        body.extend_from_slice(&chunk.unwrap());
        count += 1;
    }
    assert!(gunzip(&body) == text.as_bytes() && count > 1, "{count}");
}

#[test]
fn a_304_names_the_variant_that_the_client_holds() {
    for (held, tag, expected) in [
        ("\"a-gzip\"", "\"a\"", "\"a-gzip\""),
        ("\"b\", W/\"a-br\"", "\"a\"", "\"a-br\""),
        ("\"a-gzip\"", "W/\"a\"", "W/\"a-gzip\""),
        ("\"a\", \"a-gzip\"", "\"a\"", "\"a\""),
        ("\"x-gzip\"", "\"a\"", "\"a\""),
    ] {
        let head = format!("{GZIP}\r\nIf-None-Match: {held}");
        let after = filter(&head, response(304, &format!("ETag: {tag}"), Body::Empty));
        assert_eq!(field(&after, "etag"), Some(expected), "{held}");
    }
}

#[test]
fn the_application_gets_its_own_tags_without_the_coding() {
    let head = "PUT / HTTP/1.1\r\nHost: x\r\nIf-Match: \"a-gzip\"\r\nIf-None-Match: \"b\"\r\nIf-None-Match: \"c-br\"\r\nIf-Range: \"d-gzip\"";
    let mut seen = Vec::new();
    with_request(head, |request| {
        around(request, Codings::ALL, &CompressThreads::default(), |request| {
            let line = |field: &Header<'_>| {
                format!("{}: {}", field.name, String::from_utf8_lossy(field.value))
            };
            seen = request.head.fields.iter().map(line).collect();
            Answer::Now(Response::error(StatusCode::NOT_FOUND))
        })
    });
    assert_eq!(
        seen,
        ["Host: x", "If-Match: \"a\"", "If-None-Match: \"b\", \"c\"", "If-Range: \"d-gzip\""]
    );
}

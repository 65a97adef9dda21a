//! Every parser of this crate costs no more than its input (`kirin-doubling`).

use std::mem::MaybeUninit;

use kirin_doubling::Table;

use crate::basic_credentials::BasicCredentials;
use crate::byte_range::part;
use crate::chunked::{ChunkedDecoder, Event};
use crate::cookies::cookie;
use crate::date::parse_date;
use crate::entity_tag::Tag;
use crate::field_lines::FieldLines;
use crate::field_list::members;
use crate::host::{canonical_host, parse_host};
use crate::request::{self, HeadLimits, MAX_FIELDS, Parsed, RequestHead};
use crate::request_fields::RequestFields;
use crate::request_path::RequestPath;
use crate::trailers::Trailers;
use crate::{form, forwarded_element, percent, response_head};

const UNLIMITED: HeadLimits = HeadLimits { head_bytes: usize::MAX, request_line_bytes: usize::MAX };

/// Parses a head and calls `look` with it.
fn with_head<R>(head: &[u8], look: impl FnOnce(&RequestHead<'_>) -> R) -> Option<R> {
    let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    match request::parse(head, &mut storage, &UNLIMITED) {
        Ok(Parsed::Complete(head, _)) => Some(look(&head)),
        Ok(Parsed::RawTarget) => with_head(&request::escape_target(head).0, look),
        Ok(Parsed::Partial) | Err(_) => None,
    }
}

/// Returns a head with one field, whose value is `count` times the same text.
fn field(name: &'static str, text: &'static str) -> impl Fn(usize) -> Vec<u8> {
    move |count| {
        format!("GET / HTTP/1.1\r\nHost: a\r\n{name}: {}\r\n\r\n", text.repeat(count)).into_bytes()
    }
}

/// Returns a head with `count` lines.
fn lines(line: &'static str) -> impl Fn(usize) -> Vec<u8> {
    move |count| format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", line.repeat(count)).into_bytes()
}

fn text(text: &'static str) -> impl Fn(usize) -> Vec<u8> {
    move |count| text.repeat(count).into_bytes()
}

#[test]
fn request_heads_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    let read = |head: &Vec<u8>| with_head(head, |head| (head.persistent, head.takes_trailers()));
    for (name, part) in
        [("Connection", "close,"), ("Connection", "x, "), ("Connection", ","), ("TE", "a,")]
    {
        table.check(&format!("{name}: {part}"), 500, field(name, part), read);
    }
    for part in ["gzip,", "x, ", ",", "chunked,", "\t "] {
        table.check(
            &format!("Transfer-Encoding: {part}"),
            500,
            field("Transfer-Encoding", part),
            read,
        );
    }
    for line in ["X-A: b\r\n", "Connection: x\r\n", "Connection: close, te, x\r\n", ": \r\n"] {
        table.check(line, 12, lines(line), read);
    }
    let target =
        |count: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "%2e/../?".repeat(count));
    table.check("target", 500, target, |head| with_head(head.as_bytes(), |head| head.path.len()));
    let host = |count: usize| format!("GET / HTTP/1.1\r\nHost: {}\r\n\r\n", "a.".repeat(count));
    table.check("host", 500, host, |head| with_head(head.as_bytes(), |head| head.host.len()));
    let unended = |count: usize| format!("GET / HTTP/1.1\r\nX-A: {}", "\"a, ".repeat(count));
    table.check("unended head", 500, unended, |head| with_head(head.as_bytes(), |_| ()));
    table.finish();
}

#[test]
fn fields_of_requests_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    for part in ["a=b; ", ";", "=", "a", "x=\"", "; ;"] {
        let parse = |head: &Vec<u8>| with_head(head, |head| cookie(head, b"none").is_some());
        table.check(&format!("cookies {part}"), 500, field("Cookie", part), parse);
    }
    for line in ["Range: bytes=0-1\r\n", "If-None-Match: \"a\"\r\n", "Accept-Encoding: gzip\r\n"] {
        let parse =
            |head: &Vec<u8>| with_head(head, |head| RequestFields::from_head(head).compare_tags());
        table.check(line, 12, lines(line), parse);
    }
    for piece in ["0-0,", "5-,", "-1,", ",", " ,", "0-18446744073709551615,", "9", "-", "0-0;"] {
        let value = |count| [b"bytes=".to_vec(), text(piece)(count)].concat();
        table.check(&format!("range {piece}"), 500, value, |value| part(value, 1 << 40));
    }
    for piece in ["\"a\",", "W/\"a\", ", ",", "\"", "W/", "\"a", "*,", "\"a\" ", "\\\""] {
        let parse =
            |list: &Vec<u8>| Tag::Strong(b"\"z\"").weakly_in(list) | Tag::Absent.strongly_in(list);
        table.check(&format!("entity tags {piece}"), 500, text(piece), parse);
    }
    for piece in ["a,", ",", " ", "a ", "\t,"] {
        table.check(&format!("list {piece}"), 500, text(piece), |list| members(list).count());
    }
    for piece in ["for=a,", "for=\"a\";", ",", ";", "for=\"", "for=\"\\\"", "a=", "a=b ", "\"\\"] {
        let parse = |line: &Vec<u8>| forwarded_element::parse(line).map(|elements| elements.len());
        table.check(&format!("forwarded {piece}"), 500, text(piece), parse);
        let quoted = |count| [b"for=\"".to_vec(), text(piece)(count)].concat();
        table.check(&format!("forwarded, quoted {piece}"), 500, quoted, parse);
    }
    for piece in ["QQ==", "Basic ", "=", "a"] {
        let value = |count| [b"Basic ".to_vec(), text(piece)(count)].concat();
        table.check(&format!("credentials {piece}"), 30, value, |value| {
            BasicCredentials::parse(value)
        });
    }
    for piece in ["Sun, ", "S", "06 Nov 1994 "] {
        table.check(&format!("date {piece}"), 500, text(piece), |value| parse_date(value));
    }
    table.finish();
}

#[test]
fn framing_and_responses_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    let decode = |body: &Vec<u8>| {
        let (mut decoder, mut at, mut data) = (ChunkedDecoder::new(), 0, 0);
        while let Ok(event) = decoder.decode(&body[at..]) {
            match event {
                Event::Data { start, end } => (at, data) = (at + end, data + end - start),
                Event::NeedMore | Event::End { .. } => break,
            }
        }
        (data, decoder.take_trailers().is_some())
    };
    for piece in
        ["1\r\na\r\n", "1;a=b\r\na\r\n", "1;a=\"\\\"\"\r\na\r\n", "0", "1;", "1 ;a\r\na\r\n"]
    {
        table.check(&format!("chunks {piece:?}"), 500, text(piece), decode);
    }
    for piece in ["A: b\r\n", "a", "A:\r\n", "Grpc-Status: 0\r\n"] {
        let body = |count| [b"0\r\n".to_vec(), text(piece)(count), b"\r\n".to_vec()].concat();
        table.check(&format!("trailers {piece:?}"), 12, body, decode);
    }
    table.check("trailer lines", 300, text("a: b\n"), |lines| Trailers::of_lines(lines).is_empty());
    let different = |count: usize| (0..count).map(|n| format!("a{n}: b\n")).collect::<String>();
    table.check("trailer names", 300, different, |lines| {
        Trailers::of_lines(lines.as_bytes()).is_empty()
    });
    let read =
        |head: &Vec<u8>| response_head::parse(head, |_, _| response_head::Field::Keep).is_ok();
    for line in ["A: b\r\n", "Connection: x\r\n", "Content-Length: 1\r\n", "Keep-Alive: a\r\n"] {
        let head =
            |count| [b"HTTP/1.1 200 OK\r\n".to_vec(), text(line)(count), b"\r\n".to_vec()].concat();
        table.check(&format!("response {line:?}"), 24, head, read);
    }
    for piece in ["x,", ",", "close, ", " "] {
        let head = |count| {
            [b"HTTP/1.1 200 OK\r\nConnection: ", &text(piece)(count)[..], b"\r\n\r\n"].concat()
        };
        table.check(&format!("response's Connection {piece:?}"), 500, head, read);
    }
    let field_lines = |count: usize| {
        let mut lines = FieldLines::new();
        (0..count).for_each(|_| lines.push("X-A", "b"));
        lines
    };
    table.check("field lines", 300, field_lines, |lines| lines.get("x-b").is_some());
    table.check("field lines without one", 300, field_lines, |lines| {
        lines.without("x-a").len_bytes()
    });
    table.finish();
}

#[test]
fn hosts_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    for piece in
        ["a", "a.", ".", "A.", "%41", "%", "xn--a.", "XN--MNCHEN-3YA.", "\u{fc}.", ":", "1."]
    {
        table.check(&format!("host {piece}"), 500, text(piece), |host| {
            let host = String::from_utf8_lossy(host);
            (canonical_host(&host).len(), parse_host(host.as_bytes()).is_ok())
        });
        let address = |count| [b"[".to_vec(), text(piece)(count), b"]:80".to_vec()].concat();
        table.check(&format!("address {piece}"), 500, address, |host| {
            canonical_host(&String::from_utf8_lossy(host)).len()
        });
    }
    table.finish();
}

#[test]
fn paths_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    for piece in ["/", "/a", "/..", "/a/..", "/.", "%2e", "%2f", "%", "a", "//", "/%2e%2e", "\\"] {
        let path = |count: usize| format!("/{}", piece.repeat(count));
        table.check(&format!("path {piece}"), 300, path, |path| RequestPath::parse(path).is_ok());
        table.check(&format!("dots of {piece}"), 300, path, |path| {
            RequestPath::parse(path).ok().and_then(|path| path.without_dots())
        });
        table.check(&format!("rest of {piece}"), 300, path, |path| {
            RequestPath::parse(path).map_or(0, |path| path.rest_after(1).len())
        });
        let bytes = |count: usize| piece.repeat(count).into_bytes();
        table.check(&format!("decoding {piece}"), 300, bytes, |bytes| percent::decode(bytes).len());
        table.check(&format!("form {piece}"), 300, bytes, |bytes| form::decode_strict(bytes));
        table.check(&format!("normalizing {piece}"), 300, bytes, |bytes| percent::normalize(bytes));
    }
    table.finish();
}

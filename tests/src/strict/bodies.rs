//! Cases about the end of a body (RFC 9112 sections 6 and 7): lengths, transfer codings, chunks,
//! trailers.

use super::{Case, case};

/// Returns a POST with these field lines and the bytes behind them, and then a GET. The server sees
/// the GET only if the body ends where it should.
fn post(name: &'static str, fields: &str, body: &str, outcomes: &[&str]) -> Case {
    let input = format!(
        "POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}GET /next HTTP/1.1\r\nHost: b\r\n\r\n"
    );
    case(name, input, outcomes)
}

/// Returns the same with chunks.
fn chunks(name: &'static str, body: &str, outcomes: &[&str]) -> Case {
    post(name, "Transfer-Encoding: chunked\r\n", body, outcomes)
}

const NEXT: &str = "GET /next HTTP/1.1 host=b";
const HELLO: &str = "POST / HTTP/1.1 host=a body=hello";
const NONE: &str = "POST / HTTP/1.1 host=a";

#[rustfmt::skip]
pub(super) fn cases() -> Vec<Case> {
    vec![
        post("a length", "Content-Length: 5\r\n", "hello", &[HELLO, NEXT]),
        post("a length of nothing", "Content-Length: 0\r\n", "", &[NONE, NEXT]),
        post("no length", "", "", &[NONE, NEXT]),
        post("a length with zeros before it", "Content-Length: 0005\r\n", "hello", &[HELLO, NEXT]),
        post("a length with white space around it", "content-length:\t5 \r\n", "hello", &[HELLO, NEXT]),
        post("a body that looks like a request", "Content-Length: 18\r\n", "GET / HTTP/1.1\r\n\r\n",
            &["POST / HTTP/1.1 host=a body=GET / HTTP/1.1\r\n\r\n", NEXT]),
        case("a body of a GET", "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello", &["GET / HTTP/1.1 host=a body=hello"]),
        case("an unfinished body", "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nhello", &["400"]),
        post("twice the same length", "Content-Length: 5\r\nContent-Length: 5\r\n", "hello", &["400"]),
        post("two lengths", "Content-Length: 5\r\nContent-Length: 6\r\n", "hello", &["400"]),
        post("two lengths in one", "Content-Length: 5, 5\r\n", "hello", &["400"]),
        post("a length with a comma", "Content-Length: 5,\r\n", "hello", &["400"]),
        post("an empty length", "Content-Length:\r\n", "", &["400"]),
        post("a length with a plus", "Content-Length: +5\r\n", "hello", &["400"]),
        post("a length with a minus", "Content-Length: -5\r\n", "hello", &["400"]),
        post("a length of minus nothing", "Content-Length: -0\r\n", "", &["400"]),
        post("a hexadecimal length", "Content-Length: 0x5\r\n", "hello", &["400"]),
        post("a hexadecimal digit", "Content-Length: a\r\n", "hello", &["400"]),
        post("a length with a fraction", "Content-Length: 5.0\r\n", "hello", &["400"]),
        post("a length with an exponent", "Content-Length: 5e0\r\n", "hello", &["400"]),
        post("a length with an underscore", "Content-Length: 0_5\r\n", "hello", &["400"]),
        post("a length with a space in it", "Content-Length: 5 5\r\n", "hello", &["400"]),
        post("a length in quotes", "Content-Length: \"5\"\r\n", "hello", &["400"]),
        post("a length and text", "Content-Length: 5a\r\n", "hello", &["400"]),
        post("a length in wide digits", "Content-Length: \u{ff15}\r\n", "hello", &["400"]),
        post("a length beyond 64 bits", "Content-Length: 18446744073709551621\r\n", "hello", &["400"]),
        post("a length beyond all numbers", "Content-Length: 99999999999999999999999\r\n", "hello", &["400"]),
        post("a length with a NUL", "Content-Length: 5\0\r\n", "hello", &["400"]),
        post("a length with a vertical tab", "Content-Length: \x0b5\r\n", "hello", &["400"]),
        post("a length whose name has a space", "Content-Length : 5\r\n", "hello", &["400"]),
        post("a folded length", "Content-Length:\r\n 5\r\n", "hello", &["400"]),
        post("the largest body", "Content-Length: 64\r\n", &"x".repeat(64), &[&format!("{NONE} body={}", "x".repeat(64)), NEXT]),
        post("a body that is too large", "Content-Length: 65\r\n", &"x".repeat(65), &["413"]),
        post("a body that would be very large", "Content-Length: 9000000000000000000\r\n", "hello", &["413"]),
        post("chunks that are too large", "Transfer-Encoding: chunked\r\n", &format!("41\r\n{}\r\n0\r\n\r\n", "x".repeat(65)), &["413"]),
        post("a length that an expectation goes before", "Expect: 100-continue\r\nContent-Length: 5\r\n", "hello", &[HELLO, NEXT]),

        post("a length and chunks", "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", &["400"]),
        post("chunks and a length", "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n", &["400"]),
        post("chunks and a length of nothing", "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n", "0\r\n\r\n", &["400"]),
        post("twice chunked", "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", &["400"]),
        post("chunked and identity", "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n", "0\r\n\r\n", &["400"]),
        post("twice chunked in one", "Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n", &["400"]),
        post("gzip and chunked", "Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n", &["501"]),
        post("chunked and gzip", "Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n", &["400"]),
        post("gzip", "Transfer-Encoding: gzip\r\n", "", &["400"]),
        post("identity", "Transfer-Encoding: identity\r\n", "", &["400"]),
        post("a coding that nobody knows", "Transfer-Encoding: xchunked\r\n", "0\r\n\r\n", &["400"]),
        post("chunked in upper case", "TRANSFER-ENCODING: CHUNKED\r\n", "0\r\n\r\n", &[NONE, NEXT]),
        post("an empty coding", "Transfer-Encoding:\r\n", "0\r\n\r\n", &["400"]),
        post("a comma before chunked", "Transfer-Encoding: , chunked\r\n", "0\r\n\r\n", &["400"]),
        post("a comma after chunked", "Transfer-Encoding: chunked,\r\n", "0\r\n\r\n", &["400"]),
        post("chunked with a parameter", "Transfer-Encoding: chunked;a=b\r\n", "0\r\n\r\n", &["400"]),
        post("chunked in quotes", "Transfer-Encoding: \"chunked\"\r\n", "0\r\n\r\n", &["400"]),
        post("chunked behind a vertical tab", "Transfer-Encoding: \x0bchunked\r\n", "0\r\n\r\n", &["400"]),
        post("chunked before a form feed", "Transfer-Encoding: chunked\x0c\r\n", "0\r\n\r\n", &["400"]),
        post("chunked before a bare CR", "Transfer-Encoding: chunked\r\r\n", "0\r\n\r\n", &["400"]),
        post("chunked behind a fold", "Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n", &["400"]),
        post("chunked whose name has a space", "Transfer-Encoding : chunked\r\n", "0\r\n\r\n", &["400"]),
        post("chunked behind a wide space", "Transfer-Encoding: \u{a0}chunked\r\n", "0\r\n\r\n", &["400"]),
        post("chunked behind a field that ends in LF", "X: y\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n", &["400"]),
        case("chunks in HTTP/1.0", "POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", &["400"]),
        case("a length in HTTP/1.0", "POST / HTTP/1.0\r\nContent-Length: 5\r\n\r\nhello", &["POST / HTTP/1.0 body=hello"]),
        case("no length in HTTP/1.0", "POST / HTTP/1.0\r\n\r\nhello", &["411"]),
        case("no length in a PUT of HTTP/1.0", "PUT / HTTP/1.0\r\n\r\n", &["411"]),
        case("no length in a DELETE of HTTP/1.0", "DELETE / HTTP/1.0\r\n\r\n", &["DELETE / HTTP/1.0"]),

        chunks("a chunk", "5\r\nhello\r\n0\r\n\r\n", &[HELLO, NEXT]),
        chunks("chunks", "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", &[HELLO, NEXT]),
        chunks("no chunk", "0\r\n\r\n", &[NONE, NEXT]),
        chunks("a size with zeros before it", "0005\r\nhello\r\n000\r\n\r\n", &[HELLO, NEXT]),
        chunks("a size of letters", "A\r\n0123456789\r\n0\r\n\r\n", &["POST / HTTP/1.1 host=a body=0123456789", NEXT]),
        chunks("data that look like a size", "5\r\n5\r\n\r\n\r\n0\r\n\r\n", &["POST / HTTP/1.1 host=a body=5\r\n\r\n", NEXT]),
        chunks("an extension", "5;a\r\nhello\r\n0\r\n\r\n", &[HELLO, NEXT]),
        chunks("an extension with a value", "5;a=b;c\r\nhello\r\n0;d\r\n\r\n", &[HELLO, NEXT]),
        chunks("an extension with white space", "5 ; a = b\r\nhello\r\n0\r\n\r\n", &[HELLO, NEXT]),
        chunks("an extension with a quoted value", "5;a=\"b;\\\"c\"\r\nhello\r\n0\r\n\r\n", &[HELLO, NEXT]),
        chunks("a trailer", "5\r\nhello\r\n0\r\nX-Sum: 1\r\n\r\n", &[HELLO, NEXT]),
        chunks("trailers that would mean something in a head", "5\r\nhello\r\n0\r\nContent-Length: 9\r\nHost: c\r\n\r\n", &[HELLO, NEXT]),
        case("unfinished chunks", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n", &["400"]),
        case("an unfinished chunk", "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel", &["400"]),
        chunks("no size", "\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size that is no number", "g\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size with a prefix", "0x5\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size with a plus", "+5\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size with a minus", "-5\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size with an underscore", "0_5\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size behind a space", " 5\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size before a space", "5 \r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size before a tab", "5\t\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size and text", "5 a\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size that ends in a bare LF", "5\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size that ends in a bare CR", "5\rhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size that ends in two CR", "5\r\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size with a NUL", "5\0\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size beyond 64 bits", "10000000000000005\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size of all ones", "ffffffffffffffff\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a size of many zeros", &format!("{}5\r\nhello\r\n0\r\n\r\n", "0".repeat(300)), &["400"]),
        chunks("an extension that is too long", &format!("5;{}\r\nhello\r\n0\r\n\r\n", "a".repeat(300)), &["400"]),
        chunks("an empty extension", "5;\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("an extension with a bare LF", "5;a\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("an extension with a bare CR", "5;a\rb\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("an extension with a NUL", "5;a\0\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("an extension without a name", "5;=b\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("an extension with an open quote", "5;a=\"b\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("an extension with a line end in quotes", "5;a=\"\r\n\"\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("data that end in a bare LF", "5\r\nhello\n0\r\n\r\n", &["400"]),
        chunks("data that end in two others", "5\r\nhelloXX0\r\n\r\n", &["400"]),
        chunks("data longer than their size", "5\r\nhello!\r\n0\r\n\r\n", &["400"]),
        chunks("data shorter than their size", "6\r\nhello\r\n0\r\n\r\n", &["400"]),
        chunks("a request for the last chunk's line end", "0\r\n", &["400"]),
        chunks("a last line that ends in a bare LF", "0\r\n\n", &["400"]),
        chunks("a last size that ends in a bare LF", "0\n\r\n", &["400"]),
        chunks("a trailer without a colon", "0\r\nX\r\n\r\n", &["400"]),
        chunks("a trailer with a space before the colon", "0\r\nX : y\r\n\r\n", &["400"]),
        chunks("a folded trailer", "0\r\nX: y\r\n z\r\n\r\n", &["400"]),
        chunks("a trailer with a NUL", "0\r\nX: \0\r\n\r\n", &["400"]),
        chunks("a trailer that ends in a bare LF", "0\r\nX: y\n\r\n", &["400"]),
        chunks("chunks for a file", "0\r\n\r\n", &[NONE, NEXT]).to("/files/b"),
        chunks("broken chunks for a file", "x\r\n", &["400"]).to("/files/b"),
    ]
}

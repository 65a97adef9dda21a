//! Tests that read the responses as a client does.

use std::sync::Arc;
use std::task::Waker;

use proptest::prelude::*;

use super::*;

/// Returns all bytes of a body.
fn read(body: Body) -> Result<Vec<u8>, StreamError> {
    match body {
        Body::Bytes(bytes) => Ok(bytes.to_vec()),
        Body::Segments(segments) => Ok(segments.concat()),
        Body::Stream(mut stream) => {
            let mut bytes = Vec::new();
            while let Poll::Ready(Some(chunk)) =
                stream.poll_chunk(&mut Context::from_waker(Waker::noop()))
            {
                let chunk = chunk?;
                assert!(!chunk.is_empty() && chunk.len() as u64 <= READ_BYTES);
                bytes.extend_from_slice(&chunk);
            }
            Ok(bytes)
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the parts of a `multipart/byteranges` body: content type, content range, bytes.
fn parse(body: &[u8], boundary: &str) -> Vec<(String, String, Vec<u8>)> {
    let delimiter = format!("\r\n--{boundary}");
    // The body is read as if a preamble came before it.
    let body = [b"\r\n", body].concat();
    let mut at = 0;
    let mut parts = Vec::new();
    loop {
        assert!(body[at..].starts_with(delimiter.as_bytes()), "at {at}");
        at += delimiter.len();
        if body[at..].starts_with(b"--") {
            assert_eq!(&body[at..], b"--\r\n");
            return parts;
        }
        let head_end = memchr::memmem::find(&body[at..], b"\r\n\r\n").unwrap();
        let head = String::from_utf8(body[at..at + head_end].to_vec()).unwrap();
        let field = |name: &str| {
            head.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
                .unwrap()
                .to_owned()
        };
        at += head_end + 4;
        let length = memchr::memmem::find(&body[at..], delimiter.as_bytes()).unwrap();
        parts.push((field("Content-Type"), field("Content-Range"), body[at..at + length].to_vec()));
        at += length;
    }
}

fn fields() -> FieldLines {
    let mut fields = FieldLines::new();
    fields.push("Content-Type", "text/plain");
    fields.push("ETag", "\"x\"");
    fields
}

fn boundary_of(response: &Response) -> String {
    let value = response.fields.get("content-type").unwrap();
    std::str::from_utf8(value)
        .unwrap()
        .strip_prefix("multipart/byteranges; boundary=")
        .unwrap()
        .to_owned()
}

fn file_of(content: &[u8]) -> Arc<std::fs::File> {
    let file = rustix::fs::memfd_create("content", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = std::fs::File::from(file);
    file.write_all_at(content, 0).unwrap();
    Arc::new(file)
}

#[test]
fn the_status_follows_from_the_part() {
    let content = Bytes::from_static(b"0123456789");
    let piece =
        |range: ByteRange| Body::Bytes(content.slice(range.start as usize..range.end() as usize));
    let answer = |part: Part, is_head| {
        respond(AnsweredBy::new("store"), fields(), 10, &part, is_head, piece)
    };
    let whole = answer(Part::Whole, false);
    assert_eq!((whole.status.as_u16(), whole.body.length()), (200, Some(10)));
    assert_eq!(whole.fields.get("content-range"), None);
    let head = answer(Part::Whole, true);
    assert!(matches!(head.body, Body::Withheld(10)));
    let range = answer(Part::Range(ByteRange { start: 2, length: 3 }), false);
    assert_eq!(range.status, 206);
    assert_eq!(range.fields.get("content-range"), Some(&b"bytes 2-4/10"[..]));
    assert_eq!(range.fields.get("content-type"), Some(&b"text/plain"[..]));
    assert_eq!(read(range.body).unwrap(), b"234");
    let none = answer(Part::Unsatisfiable, false);
    assert_eq!((none.status.as_u16(), none.answered_by), (416, AnsweredBy::new("store")));
    assert_eq!(none.fields.get("content-range"), Some(&b"bytes */10"[..]));
    assert_eq!(none.fields.get("etag"), None);
}

#[test]
fn boundaries_are_never_the_same_and_stay_a_token() {
    let (one, other) = (boundary(), boundary());
    assert_ne!(one, other);
    assert!(one.len() == 32 && one.bytes().all(|byte| byte.is_ascii_hexdigit()), "{one}");
}

#[test]
fn a_file_that_became_shorter_is_an_error_and_no_end() {
    let file = file_of(&[7; 1000]);
    let piece = |range: ByteRange| {
        Body::File(FileRange { file: Arc::clone(&file), offset: range.start, length: range.length })
    };
    let ranges = vec![ByteRange { start: 0, length: 10 }, ByteRange { start: 500, length: 500 }];
    let response =
        respond(AnsweredBy::new("files"), fields(), 1000, &Part::Several(ranges), false, piece);
    file.set_len(600).unwrap();
    assert!(read(response.body).is_err());
}

proptest! {
    #[test]
    fn the_parts_of_an_answer_are_the_bytes_that_were_asked_for(
        content in prop::collection::vec(any::<u8>(), 2..3000),
        cuts in prop::collection::vec((0usize..3000, 1usize..500), 2..8),
        big in any::<bool>(),
        in_file in any::<bool>(),
    ) {
        // The file is larger than one read.
        let content = if big { content.repeat(100) } else { content };
        let size = content.len() as u64;
        let ranges: Vec<ByteRange> = cuts
            .into_iter()
            .map(|(start, length)| {
                let start = start as u64 % size;
                ByteRange { start, length: (length as u64 * if big { 300 } else { 1 }).min(size - start) }
            })
            .collect();
        let (bytes, file) = (Bytes::from(content.clone()), file_of(&content));
        let piece = |range: ByteRange| {
            if in_file {
                Body::File(FileRange { file: Arc::clone(&file), offset: range.start, length: range.length })
            } else {
                Body::Bytes(bytes.slice(range.start as usize..range.end() as usize))
            }
        };
        let response = respond(AnsweredBy::new("files"), fields(), size, &Part::Several(ranges.clone()), false, piece);
        prop_assert_eq!(response.status.as_u16(), 206);
        prop_assert_eq!(response.fields.get("content-range"), None);
        prop_assert_eq!(matches!(response.body, Body::Stream(_)), in_file);
        let boundary = boundary_of(&response);
        let announced = response.body.length().unwrap();
        let body = read(response.body).unwrap();
        prop_assert_eq!(announced, body.len() as u64);
        let parts = parse(&body, &boundary);
        prop_assert_eq!(parts.len(), ranges.len());
        for (range, (content_type, content_range, bytes)) in ranges.iter().zip(parts) {
            prop_assert_eq!(content_type, "text/plain");
            prop_assert_eq!(content_range, range.content_range(size));
            prop_assert_eq!(&bytes[..], &content[range.start as usize..range.end() as usize]);
        }
    }
}

//! The requests of attached readers: heads, parts, variants, codings and visitors.

use kirin_tests::Memcached;

use super::{CHUNKED, MINUTE, is_collapsed, serve};

#[test]
fn the_head_answers_at_once_and_a_part_when_it_has_arrived() {
    let tested = serve();
    let mut first = tested.begin("/a", "");
    let mut call = tested.call();
    let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    call.head(
        "Content-Length: 10",
        &format!("{MINUTE}ETag: \"e\"\r\n{modified}Set-Cookie2: x\r\n"),
    )
    .send("0123");
    first.read_until(b"0123");
    let mut client = tested.kirin.connect();
    let head = client.request("HEAD", "/a", "");
    assert_eq!(
        (head.status, head.field("content-length"), is_collapsed(&head)),
        (200, Some("10"), true)
    );
    for (fields, expected) in [
        ("If-None-Match: W/\"e\"\r\n", 304),
        ("If-None-Match: *\r\n", 304),
        ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 304),
        ("If-Match: \"x\"\r\n", 412),
        ("If-Unmodified-Since: Sat, 05 Nov 1994 08:49:37 GMT\r\n", 412),
        ("Range: bytes=10-\r\n", 416),
    ] {
        let reply = client.request("GET", "/a", fields);
        assert_eq!(
            (reply.status, is_collapsed(&reply)),
            (expected, true),
            "{fields} {}",
            reply.head
        );
        if expected == 304 {
            assert_eq!(
                (reply.field("etag"), reply.field("age")),
                (Some("\"e\""), Some("0")),
                "{}",
                reply.head
            );
        }
    }
    let part = client.request("GET", "/a", "Range: bytes=1-2\r\nIf-Range: \"e\"\r\n");
    assert_eq!(
        (part.status, part.text().as_str(), is_collapsed(&part)),
        (206, "12", true),
        "{}",
        part.head
    );
    assert_eq!(part.field("content-range"), Some("bytes 1-2/10"));
    let mut late_part = tested.begin("/a", "Range: bytes=-3\r\n");
    assert_eq!(late_part.read_head_reply().field("content-length"), Some("3"));
    let mut whole = tested.begin("/a", "If-None-Match: \"x\"\r\n");
    let mut other = tested.begin("/a", "Range: bytes=1-2\r\nIf-Range: \"x\"\r\n");
    for client in [&mut whole, &mut other] {
        assert_eq!(client.read_head_reply().status, 200);
    }
    call.send("456789");
    late_part.read_exactly(b"789");
    whole.read_exactly(b"0123456789");
    other.read_exactly(b"0123456789");
    tested.assert_nobody_else_asked();
}

#[test]
fn facts_known_only_at_the_end_are_not_guessed() {
    let tested = serve();
    let mut first = tested.begin("/a", "");
    let mut call = tested.call();
    call.head(CHUNKED, MINUTE).chunk("0123");
    first.read_until(b"0123\r\n");
    let mut client = tested.kirin.connect();
    let head = client.request("HEAD", "/a", "");
    assert_eq!(
        (head.status, head.field("content-length"), is_collapsed(&head)),
        (200, None, true),
        "{}",
        head.head
    );
    // Its tag is made of its bytes. The length of a part is not known.
    let mut conditional = tested.begin("/a", "If-None-Match: \"x\"\r\n");
    assert_eq!(conditional.read_head_reply().status, 200);
    for fields in ["Range: bytes=1-2\r\n", "If-Match: \"x\"\r\n"] {
        let mut client = tested.begin("/a", fields);
        let mut own = tested.call();
        assert!(own.asked.field(fields.split(':').next().unwrap()).is_some(), "{}", own.asked.head);
        own.head("Content-Length: 3", "").send("own");
        assert_eq!(client.read_reply().text(), "own", "{fields}");
    }
    call.last_chunk();
    assert_eq!(conditional.read_chunks(), b"0123");
}

#[test]
fn requests_for_another_variant_share_one_request_for_it() {
    let tested = serve();
    let vary = format!("{MINUTE}Vary: Accept-Language\r\n");
    let (ja, en) = ("Accept-Language: ja\r\n", "Accept-Language: en\r\n");
    let mut first = tested.begin("/a", ja);
    let mut japanese = tested.call();
    japanese.head(CHUNKED, &vary).chunk("ja");
    first.read_until(b"ja\r\n");
    let mut second = tested.begin("/a", en);
    let mut english = tested.call();
    assert_eq!(english.asked.field("accept-language"), Some("en"));
    english.head(CHUNKED, &vary).chunk("en");
    second.read_until(b"en\r\n");
    let mut others = Vec::new();
    for (fields, begin) in [(ja, "ja\r\n"), (en, "en\r\n"), ("Accept-Language:  en \r\n", "en\r\n")]
    {
        let mut client = tested.begin("/a", fields);
        client.read_until(begin.as_bytes());
        others.push(client);
    }
    english.last_chunk();
    japanese.last_chunk();
    others.extend([first, second]);
    for client in &mut others {
        assert_eq!(client.read_chunks(), b"");
    }
    tested.assert_nobody_else_asked();
}

#[test]
fn an_authenticated_visitor_does_not_share_an_anonymous_response() {
    let tested = serve();
    let cookie = "Cookie: a=b\r\n";
    let mut first = tested.begin("/a", "");
    let mut call = tested.call();
    // Only the first client may get the named field.
    call.head(CHUNKED, "Cache-Control: max-age=60, no-cache=\"X-Own\"\r\nX-Own: 1\r\n")
        .chunk("all");
    assert_eq!(first.read_head_reply().field("x-own"), Some("1"));
    let mut other = tested.begin("/a", "");
    assert_eq!(other.read_head_reply().field("x-own"), None);
    let mut own = tested.begin("/a", cookie);
    tested.call().head("Content-Length: 3", "Cache-Control: private\r\n").send("own");
    assert_eq!(own.read_reply().text(), "own");
    call.last_chunk();
    assert_eq!((first.read_chunks(), other.read_chunks()), (b"all".to_vec(), b"all".to_vec()));
    // With `public` the client may attach.
    let mut first = tested.begin("/b", "");
    let mut call = tested.call();
    call.head(CHUNKED, "Cache-Control: public, max-age=60\r\n").chunk("all");
    first.read_until(b"all\r\n");
    let mut other = tested.begin("/b", cookie);
    other.read_until(b"all\r\n");
    call.last_chunk();
    assert_eq!((first.read_chunks(), other.read_chunks()), (vec![], vec![]));
    tested.assert_nobody_else_asked();
}

#[test]
fn a_response_that_needs_validation_is_waited_for_to_its_end() {
    let tested = serve();
    let mut first = tested.begin("/a", "");
    let mut call = tested.call();
    let fields = "Cache-Control: no-cache\r\nETag: \"e\"\r\n";
    call.head(CHUNKED, fields).chunk("page");
    first.read_until(b"page\r\n");
    let mut second = tested.begin("/a", "");
    call.last_chunk();
    assert_eq!(first.read_chunks(), b"");
    let mut validation = tested.call();
    assert_eq!(validation.asked.field("if-none-match"), Some("\"e\""));
    validation.send(format!("HTTP/1.1 304 Not Modified\r\n{fields}\r\n"));
    let reply = second.read_reply();
    assert_eq!((reply.status, reply.text().as_str()), (200, "page"));
}

#[test]
fn each_reader_has_its_own_coding_and_its_own_page() {
    let tested = serve();
    let text = "0123456789 ".repeat(500);
    let mut clients =
        vec![tested.begin("/zip", ""), tested.begin("/zip", "Accept-Encoding: gzip\r\n")];
    let mut call = tested.call();
    call.head(CHUNKED, MINUTE).chunk(&text);
    clients.push(tested.begin("/zip", "Accept-Encoding: gzip\r\n"));
    clients.push(tested.begin("/zip", ""));
    let mut coded = 0;
    for (index, client) in clients.iter_mut().enumerate() {
        let reply = client.read_head_reply();
        assert!(index == 0 || index == 1 || is_collapsed(&reply), "{}", reply.head);
        match reply.field("content-encoding") {
            Some(_) => {
                coded += 1;
                // The first piece is complete before the second exists, so it has been flushed.
                let mut decoder = flate2::write::GzDecoder::new(Vec::new());
                while decoder.get_ref().len() < text.len() {
                    let line = client.read_until(b"\r\n");
                    let size = usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16)
                        .expect("a size");
                    let mut chunk = Vec::new();
                    while chunk.len() < size + 2 {
                        chunk.append(&mut client.read_until(b"\n"));
                    }
                    std::io::Write::write_all(&mut decoder, &chunk[..size]).expect("gzip");
                    let _ = std::io::Write::flush(&mut decoder);
                }
                assert_eq!(decoder.get_ref().as_slice(), text.as_bytes());
            }
            None => drop(client.read_until(text.as_bytes())),
        }
    }
    assert_eq!(coded, 2);
    call.last_chunk();
    // Directives are carried out for each reader.
    let mut memcached = Memcached::connect(&tested.site.path("m.sock"));
    memcached.set("part", b"text/html\r\npart");
    let mut clients = tested.begin_many(3, "/ssi");
    let mut call = tested.call();
    call.head(CHUNKED, MINUTE).chunk("<p><!--# include ");
    clients.push(tested.begin("/ssi", ""));
    call.chunk("key=\"part\" --></p>").last_chunk();
    for client in &mut clients {
        assert_eq!(client.read_reply().text(), "<p>part</p>");
    }
    tested.assert_nobody_else_asked();
}

//! Attacks on HTTP/2 that have names, and their relatives. Each ends its connection with
//! ENHANCE_YOUR_CALM or takes little memory, and other visitors are served.

use kirin_h2::hpack::{Decoder, FieldBuffer};

use super::*;

/// The requests that an attack on the budget of resets may begin before it is over.
const MOST_REQUESTS: u32 = 300;

/// The memory that an attack may take, in kilobytes.
const MOST_KILOBYTES: u64 = 16 * 1024;

/// The application writes a line for each request to this path, and answers when the file `go` is
/// there.
const COUNTED: &str = "/app/wait";

/// A function of a stream that returns the bytes behind its request.
type Follow<'a> = &'a dyn Fn(u32) -> Vec<u8>;

/// Returns the bytes of many requests, on streams 1, 3, 5 and so on.
fn many(count: u32, bytes: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    (0..count).flat_map(|number| bytes(2 * number + 1)).collect()
}

/// Sees that another visitor is served.
fn assert_serves(kirin: &Kirin, what: &str) {
    let reply = Http2Client::connect(kirin.address()).get("/hello.txt");
    assert_eq!(
        (reply.status, reply.text()),
        (200, "hello\n".to_owned()),
        "another visitor; {what}"
    );
}

#[test]
fn streams_that_the_client_makes_the_server_reset_end_the_connection() {
    // CVE-2025-8671. Each entry makes the server reset a stream with a request in progress.
    let on_itself = |stream: u32| [&stream.to_be_bytes()[..], &[15]].concat();
    let follow: [(&str, Follow<'_>); 6] = [
        ("WINDOW_UPDATE by 0", &|stream| window_update(stream, 0)),
        ("a window of 2^31", &|stream| window_update(stream, MOST_WINDOW)),
        ("DATA behind the end", &|stream| frame(DATA, 0, stream, b"x")),
        ("PRIORITY of 4 bytes", &|stream| frame(PRIORITY, 0, stream, &[0; 4])),
        ("PRIORITY of 6 bytes", &|stream| frame(PRIORITY, 0, stream, &[0; 6])),
        ("a stream that depends on itself", &|stream| {
            frame(PRIORITY, 0, stream, &on_itself(stream))
        }),
    ];
    let (site, kirin) = serve();
    for (what, follow) in follow {
        let unit = |stream| [get(stream, COUNTED), follow(stream)].concat();
        let mut at_once = Connection::open(kirin.address());
        let end = at_once.send(many(2000, unit)).end();
        assert_eq!(end, Outcome::Goaway(ENHANCE_YOUR_CALM), "{what}, at once\n{at_once}");
        let begun = at_once.begun().expect("a GOAWAY");
        assert!(begun <= MOST_REQUESTS, "{what}, at once: {begun} requests\n{at_once}");
        let mut paced = Connection::open(kirin.address());
        let ends = |number: &u32| {
            let stream = 2 * number + 1;
            !matches!(paced.send(unit(stream)).outcome_of(stream), Outcome::Reset(_))
        };
        let last = (0..MOST_REQUESTS).find(ends);
        assert!(last.is_some(), "{what}: {MOST_REQUESTS} resets, one after another\n{paced}");
        let end = paced.end();
        assert_eq!(end, Outcome::Goaway(ENHANCE_YOUR_CALM), "{what}, one after another\n{paced}");
        assert_serves(&kirin, what);
    }
    // The requests that were reset do not wait for a worker any more. Two workers had one each.
    std::fs::write(site.path("go"), "").expect("write");
    assert_eq!(Http2Client::connect(kirin.address()).get(COUNTED).text(), "waited");
    let seen = std::fs::read_to_string(site.path("requests")).expect("requests of the workers");
    assert!(seen.lines().count() <= 2 + 1, "{} requests reached a worker", seen.lines().count());
}

#[test]
fn resets_of_responses_that_cannot_be_sent_end_the_connection() {
    // CVE-2023-44487, with responses that have begun.
    let (_site, kirin) = serve();
    let mut connection = Connection::open(kirin.address());
    let unit = |stream| [get(stream, "/large.bin"), rst_stream(stream)].concat();
    connection.send(settings(&[(INITIAL_WINDOW_SIZE, 0)])).send(many(2000, unit));
    let end = connection.end();
    assert_eq!(end, Outcome::Goaway(ENHANCE_YOUR_CALM), "2000 resets\n{connection}");
    let begun = connection.begun().expect("a GOAWAY");
    assert!(begun <= MOST_REQUESTS, "{begun} requests\n{connection}");
    assert_serves(&kirin, "2000 resets");
}

#[test]
fn blocks_that_do_not_end_are_ended_and_take_no_memory() {
    let (_site, kirin) = serve();
    let block = block(&request("GET", "/hello.txt", &[]));
    let head = frame(HEADERS, END_STREAM, 1, &block);
    let trailers =
        [post(1, "/app/body"), frame(DATA, 0, 1, b"12345"), frame(HEADERS, END_STREAM, 1, b"")]
            .concat();
    let field = b"\0\x01x\x01v";
    let one_by_one: Vec<u8> =
        field.iter().flat_map(|byte| frame(CONTINUATION, 0, 1, &[*byte])).collect();
    let resizes = frame(CONTINUATION, 0, 1, &b"\x20\x3f\xe1\x1f".repeat(4000));
    let before = peak(&kirin);
    for (what, start, more) in [
        ("empty ones", &head, frame(CONTINUATION, 0, 1, b"").repeat(1000)),
        ("one byte in each", &head, one_by_one.repeat(500)),
        ("16 KB in each", &head, frame(CONTINUATION, 0, 1, &field.repeat(3276)).repeat(10)),
        ("empty ones in trailers", &trailers, frame(CONTINUATION, 0, 1, b"").repeat(1000)),
        ("one byte in each, in trailers", &trailers, one_by_one.repeat(500)),
        ("16 KB in each, in trailers", &trailers, {
            frame(CONTINUATION, 0, 1, &field.repeat(3276)).repeat(10)
        }),
        ("one string without an end", &frame(HEADERS, 0, 1, b"\0\x7f\x80\x80\x80\x80\x01"), {
            frame(CONTINUATION, 0, 1, &[b'x'; 16_000]).repeat(10)
        }),
        ("changes of the table's size", &frame(HEADERS, 0, 1, b""), resizes.repeat(10)),
    ] {
        let received = flood(&kirin, start, &more);
        // A block of 16 KB may also be refused as what it is.
        let codes = goaways(&received);
        let is_refused = what.starts_with("changes") || what.starts_with("one string");
        assert!(
            codes.last() == Some(&ENHANCE_YOUR_CALM)
                || is_refused && codes.last() == Some(&COMPRESSION_ERROR),
            "{what}: {codes:?}; came back: {:?}",
            frames(&received)
        );
        let grown = peak(&kirin).saturating_sub(before);
        assert!(grown < MOST_KILOBYTES, "{what}: {grown} KB");
        assert_serves(&kirin, what);
    }
}

#[test]
fn floods_with_content_end_the_connection_and_take_no_memory() {
    let (_site, kirin) = serve();
    let waiting = post(1, "/app/body");
    let closed = [get(1, "/hello.txt"), rst_stream(1)].concat();
    let each_stream = |bytes: &dyn Fn(u32) -> Vec<u8>| many(20_000, bytes);
    let priority_update = |stream: u32, value: &[u8]| {
        frame(PRIORITY_UPDATE, 0, 0, &[&stream.to_be_bytes(), value].concat())
    };
    let sizes = |id, sizes: [u32; 2]| sizes.map(|size| settings(&[(id, size)])).concat();
    let before = peak(&kirin);
    for (what, start, more) in [
        ("windows of streams", &waiting, sizes(INITIAL_WINDOW_SIZE, [0, 65_535]).repeat(2500)),
        ("sizes of the table", &waiting, sizes(1, [0, 4096]).repeat(2500)),
        ("2700 settings in each", &waiting, settings(&[(1, 4096); 2700]).repeat(20)),
        ("answers to no ping", &waiting, frame(PING, ACK, 0, &[0; 8]).repeat(5000)),
        ("WINDOW_UPDATE of a stream", &waiting, window_update(1, 1).repeat(5000)),
        ("WINDOW_UPDATE of an ended stream", &closed, window_update(1, 1).repeat(5000)),
        ("RST_STREAM of an ended stream", &closed, rst_stream(1).repeat(5000)),
        ("PRIORITY of many streams", &waiting, {
            each_stream(&|stream| frame(PRIORITY, 0, stream + 2, &[0, 0, 0, 1, 15]))
        }),
        ("PRIORITY_UPDATE of a stream", &waiting, priority_update(1, b"u=1").repeat(5000)),
        ("PRIORITY_UPDATE of 16 KB", &waiting, priority_update(1, &[b'a'; 16_000]).repeat(20)),
        ("unknown frames of 16 KB", &waiting, frame(0xbe, 0, 0, &[0; 16_384]).repeat(20)),
        ("unknown frames of a stream", &waiting, frame(0xbe, 0, 1, b"x").repeat(5000)),
    ] {
        let received = flood(&kirin, start, &more);
        let codes = goaways(&received);
        let last = codes.last();
        assert_eq!(last, Some(&ENHANCE_YOUR_CALM), "{what}; {:?}", frames(&received).last());
        let grown = peak(&kirin).saturating_sub(before);
        assert!(grown < MOST_KILOBYTES, "{what}: {grown} KB");
        assert_serves(&kirin, what);
    }
    // These are errors as well, so any code will do.
    for (what, start, more) in [
        ("answers to no settings", &waiting, frame(SETTINGS, ACK, 0, b"").repeat(5000)),
        ("PRIORITY_UPDATE of many streams", &waiting, {
            each_stream(&|stream| priority_update(stream + 2, b"u=1"))
        }),
        ("DATA of an ended stream", &closed, frame(DATA, 0, 1, b"x").repeat(5000)),
        ("16 KB of DATA of an ended stream", &closed, frame(DATA, 0, 1, &[0; 16_384]).repeat(20)),
    ] {
        let received = flood(&kirin, start, &more);
        assert!(!goaways(&received).is_empty(), "{what}; {:?}", frames(&received).last());
        let grown = peak(&kirin).saturating_sub(before);
        assert!(grown < MOST_KILOBYTES, "{what}: {grown} KB");
        assert_serves(&kirin, what);
    }
}

#[test]
fn a_field_that_a_block_repeats_by_its_index_takes_no_memory() {
    let (_site, kirin) = serve();
    assert_serves(&kirin, "at the start");
    let before = peak(&kirin);
    let fields = block(&request("GET", "/hello.txt", &[]));
    // The field is entry 62 of the table. Each byte behind it is 4 KB more.
    let entry = [&b"\x40"[..], &text("x"), &text(&"v".repeat(4000))].concat();
    for references in [2000, 12_000] {
        let mut connection = Connection::open(kirin.address());
        let first = [&fields[..], &entry, &vec![0xbe; references]].concat();
        let again = [&fields[..], &vec![0xbe; references]].concat();
        let mut refused = 0;
        for number in 0..500 {
            let block = if number == 0 { &first } else { &again };
            let stream = 2 * number + 1;
            let outcome = connection.send(frame(HEADERS, WHOLE, stream, block)).outcome_of(stream);
            assert!(outcome.ok().is_none(), "request {number} was served\n{connection}");
            refused += 1;
            if !matches!(outcome, Outcome::Answered(..) | Outcome::Reset(_)) {
                assert_eq!(outcome, Outcome::Goaway(ENHANCE_YOUR_CALM), "{connection}");
                break;
            }
        }
        let grown = peak(&kirin).saturating_sub(before);
        assert!(grown < MOST_KILOBYTES, "{grown} KB after {refused} requests of {references}");
        assert_serves(&kirin, "while the client is connected");
    }
}

#[test]
fn a_client_that_allows_a_huge_table_gets_no_huge_table() {
    let (_site, kirin) = serve();
    let before = peak(&kirin);
    let mut connection = Connection::open(kirin.address());
    connection.send(settings(&[(1, u32::MAX)]));
    // It refuses a table that is larger than 4096 bytes, and entries that it has dropped.
    let mut decoder = Decoder::new(4096);
    let mut fields_of_head = FieldBuffer::default();
    for number in 0..2000 {
        let (stream, path) = (2 * number + 1, format!("/app/redirect?{number}"));
        let fields = request("GET", &path, &[("x-request-id", "0123456789abcdef")]);
        connection.send(frame(HEADERS, WHOLE, stream, &block(&fields)));
        let outcome = connection.outcome_of(stream);
        let Outcome::Answered(head, _) = &outcome else { panic!("{outcome:?}\n{connection}") };
        fields_of_head.clear();
        let decoded = decoder.decode(head, 1 << 16, 100, &mut fields_of_head);
        assert_eq!(decoded, Ok(()), "{outcome:?}\n{connection}");
    }
    let grown = peak(&kirin).saturating_sub(before);
    assert!(grown < MOST_KILOBYTES, "{grown} KB");
}

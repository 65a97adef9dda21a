//! Clients that reset, flood or waste: what ends their connection, and what does not.

use super::*;

#[test]
fn many_reset_requests_end_the_connection() {
    let (site, kirin) = serve();
    let mut client = Http2Client::connect(kirin.address());
    let mut begun = 0;
    while begun < 2000 {
        match client.try_begin("GET", "/app/wait", &[], true) {
            Ok(pending) => client.reset(pending),
            Err(_) => break,
        }
        begun += 1;
    }
    assert!(begun < 2000, "2000 resets were taken");
    let error = client.wait_for_end().expect_err("the connection is ended");
    assert_eq!(error.reason(), Some(Reason::ENHANCE_YOUR_CALM), "{error}");
    // The workers are still there for other clients. They have started no more requests than there
    // are workers.
    std::fs::write(site.path("go"), "").expect("write");
    assert_eq!(Http2Client::connect(kirin.address()).get("/app/wait").text(), "waited");
    assert!(!kirin.log().contains("was lost"), "{}", kirin.log());
    let log = std::fs::read_to_string(site.path("requests"))
        .expect("the requests that workers have seen");
    assert!(log.lines().count() <= 2 + 1, "{} requests reached a worker", log.lines().count());
}

#[test]
fn occasional_resets_end_nothing() {
    let (site, kirin) = serve();
    let mut client = Http2Client::connect(kirin.address());
    for _ in 0..300 {
        let pending = client.begin("GET", "/large.bin", &[]);
        client.reset(pending);
        assert_eq!(client.get("/hello.txt").text(), "hello\n");
    }
    let pending = client.begin("GET", "/app/wait?reset", &[]);
    site.wait_for_files("begun.", 1);
    client.reset(pending);
    std::fs::write(site.path("go"), "").expect("write");
    for _ in 0..10 {
        assert_eq!(client.get("/app/wait").text(), "waited");
    }
    assert!(!kirin.log().contains("lost"), "no worker is lost by it: {}", kirin.log());
}

#[test]
fn floods_of_continuations_and_empty_frames_end_the_connection() {
    let (_site, kirin) = serve();
    let get = b"\x82\x86\x84\x41\x01a";
    let headers = frame(1, 0, 1, get);
    // A field that is not indexed, with a value of 100 bytes.
    let field = [&b"\x00\x01x\x64"[..], &[b'v'; 100]].concat();
    let received = flood(&kirin, &headers, &frame(9, 0, 1, &field.repeat(100)).repeat(10));
    assert!(!goaways(&received).is_empty(), "continuations: {received:?}");
    let received = flood(&kirin, &headers, &frame(9, 0, 1, b"").repeat(1000));
    assert!(!goaways(&received).is_empty(), "empty continuations: {received:?}");
    // Empty DATA frames of a request that an application reads.
    let post = frame(1, 4, 1, b"\x83\x86\x04\x09/app/body\x41\x01a");
    let received = flood(&kirin, &post, &frame(0, 0, 1, b"").repeat(1000));
    assert!(!goaways(&received).is_empty(), "empty data: {received:?}");
    assert_eq!(kirin.get("/hello.txt").text(), "hello\n");
}

#[test]
fn a_flood_of_pings_and_settings_takes_no_memory() {
    let (_site, kirin) = serve();
    let before = resident(&kirin);
    for more in [frame(6, 0, 0, b"12345678"), frame(4, 0, 0, b"\0\x04\0\0\x10\0")] {
        // The client does not read the answers. The server stops reading when it cannot write them.
        let most = 256 << 20;
        let taken = Connection::open(kirin.address()).send_until_stuck(&more.repeat(1000), most);
        assert!((1..most).contains(&taken), "{taken} bytes were taken");
    }
    let grown = resident(&kirin).saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KB");
    assert_eq!(kirin.get("/hello.txt").text(), "hello\n");
}

#[test]
fn a_flood_of_frames_without_requests_ends_the_connection() {
    let (_site, kirin) = serve();
    // A stream that waits for its body: POST /app/body, by the static table of HPACK.
    let post = frame(1, 4, 1, b"\x83\x86\x04\x09/app/body\x41\x01a");
    for (what, opening, flood) in [
        ("PING", vec![], frame(6, 0, 0, &[0; 8])),
        ("SETTINGS", vec![], frame(4, 0, 0, &[])),
        ("WINDOW_UPDATE", vec![], frame(8, 0, 0, &[0, 0, 0, 1])),
        ("PRIORITY", vec![], frame(2, 0, 3, &[0, 0, 0, 0, 1])),
        ("an unknown type", vec![], frame(0xbe, 0, 0, b"hello")),
        ("empty DATA", post.clone(), frame(0, 0, 1, &[])),
        ("padding", post, frame(0, 8, 1, &[7, 0, 0, 0, 0, 0, 0, 0])),
    ] {
        let mut client = kirin.connect();
        client.send(PREFACE).send(&opening);
        client.try_send(flood.repeat(5000));
        let received = client.read_to_end();
        assert_eq!(goaways(&received).last(), Some(&0xb), "{what}: {} bytes", received.len());
    }
    assert!(kirin.log().contains("frames that ask for nothing"), "{}", kirin.log());
}

#[test]
fn pings_and_window_updates_beside_requests_are_not_a_flood() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    client.send(PREFACE);
    for number in 0..2000u32 {
        let mut round = frame(1, 5, 2 * number + 1, b"\x82\x86\x04\x0a/hello.txt\x41\x01a");
        round.extend(frame(6, 0, 0, &number.to_be_bytes().repeat(2)));
        round.extend(frame(8, 0, 0, &[0, 0, 0, 1]));
        client.send(round);
        // The answer to the ping is behind that to the request, or before it.
        client.read_until(b"hello\n");
    }
}

#[test]
fn a_connection_of_many_resets_is_logged_with_its_client_and_no_warning() {
    let (_site, kirin) = serve();
    let mut connection = Connection::open(kirin.address());
    let reset = |stream| [get(stream, "/app/wait"), rst_stream(stream)].concat();
    connection.send((0..500).flat_map(|number| reset(2 * number + 1)).collect::<Vec<u8>>());
    connection.end();
    kirin.wait_for_log("HTTP/2 connection is ended");
    let log = kirin.log();
    let line = log.lines().find(|line| line.contains("is ended")).expect("a line");
    assert!(line.contains("peer=127.0.0.1"), "{line}");
    assert!(!log.contains("WARN"), "{log}");
}

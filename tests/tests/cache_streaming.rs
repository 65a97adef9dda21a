//! Requests for what is just being stored, which are answered with it while it comes.
//!
//! Behind Kirin is a server whose every byte the test sends itself, when it has seen what the clients have so far.

use kirin_tests::{
    Asked, Backend, BackendConnection, Client, Http2Client, Kirin, Memcached, PATIENCE, Reply, Site, wait_for,
};
use rustix::process::Signal;
use serde_json::Value;
use std::io::Read;
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};
use std::thread;

const CHUNKED: &str = "Transfer-Encoding: chunked";

const BIG: usize = 4 * 1024 * 1024;
const PIECE: usize = 16 * 1024;

struct Tested {
    site: Site,
    kirin: Kirin,
    arrived: Receiver<(Asked, BackendConnection)>,
    _backend: Backend,
}

/// A request that has come through, and is answered by hand.
struct Call {
    asked: Asked,
    connection: BackendConnection,
}

fn serve() -> Tested {
    let (arrive, arrived) = mpsc::channel();
    let arrive = Mutex::new(arrive);
    let backend = Backend::start(move |mut connection| {
        if let Some(asked) = connection.read_request() {
            let _ = arrive.lock().expect("a channel").send((asked, connection));
        }
    });
    let config = format!(
        "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"32MB\"\nitem_limit = \"2MB\"\n\
         memcached = [\"unix:m.sock\"]\n[admin]\naddress = \"unix:admin.sock\"\n\
         [[upstream]]\nname = \"web\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:web\"]\ncache = true\n\
         [[route]]\npath = \"/small\"\ntry = [\"proxy:web\"]\ncache = {{ item_limit = \"64KB\" }}\n\
         [[route]]\npath = \"/reload\"\ntry = [\"proxy:web\"]\ncache = {{ reload = true }}\n\
         [[route]]\npath = \"/zip\"\ntry = [\"proxy:web\"]\ncache = true\ncompress = true\n\
         [[route]]\npath = \"/ssi\"\ntry = [\"store\", \"proxy:web\"]\ncache = true\nssi = true\n",
        backend.address()
    );
    let site = Site::new();
    let kirin = Kirin::start(&site, &config);
    Tested { site, kirin, arrived, _backend: backend }
}

impl Tested {
    /// The next request that comes through.
    fn call(&self) -> Call {
        let (asked, connection) = self.arrived.recv_timeout(PATIENCE).expect("a request at the server");
        Call { asked, connection }
    }

    /// No other has come. Those who have been answered have asked before.
    fn assert_nobody_else_asked(&self) {
        assert!(self.arrived.try_recv().is_err(), "another request at the server");
    }

    /// A GET on a connection of its own, not waited for.
    fn begin(&self, target: &str, fields: &str) -> Client {
        let mut client = self.kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
        client
    }

    fn begin_many(&self, count: usize, target: &str) -> Vec<Client> {
        (0..count).map(|_| self.begin(target, "")).collect()
    }

    fn counts(&self) -> Value {
        let mut stream =
            std::os::unix::net::UnixStream::connect(self.site.path("admin.sock")).expect("admin");
        std::io::Write::write_all(&mut stream, b"GET /status HTTP/1.0\r\n\r\n").expect("a request");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        let (_, body) = reply.split_once("\r\n\r\n").expect("a body");
        let status: Value = serde_json::from_str(body).unwrap_or_else(|error| panic!("{error}: {body}"));
        status["cache"].clone()
    }
}

impl Call {
    /// Answers 200 with `framing` and these fields.
    fn head(&mut self, framing: &str, fields: &str) -> &mut Self {
        let about = "Content-Type: text/html\r\nConnection: close";
        self.send(format!("HTTP/1.1 200 OK\r\n{about}\r\n{framing}\r\n{fields}\r\n"))
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        assert!(self.connection.send(bytes), "nobody reads from the server");
        self
    }

    fn chunk(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
    }

    fn last_chunk(&mut self) -> &mut Self {
        self.send("0\r\n\r\n")
    }
}

fn status(reply: &Reply) -> &str {
    reply.field("cache-status").unwrap_or_else(|| panic!("no Cache-Status: {}", reply.head))
}

fn is_collapsed(reply: &Reply) -> bool {
    status(reply).starts_with("Kirin; fwd=uri-miss; ttl=") && status(reply).ends_with("; collapsed")
}

const MINUTE: &str = "Cache-Control: max-age=60\r\n";

#[test]
fn those_who_wait_and_those_who_come_later_get_each_piece_when_it_comes() {
    let tested = serve();
    let mut clients = tested.begin_many(16, "/a");
    let mut call = tested.call();
    call.head(CHUNKED, &format!("{MINUTE}Age: 20\r\nX-Answer: 1\r\nSurrogate-Key: k\r\n")).chunk("one ");
    let mut replies = Vec::new();
    for client in &mut clients {
        replies.push(client.read_head_reply());
        client.read_until(b"one \r\n");
    }
    let mut later = tested.begin_many(16, "/a");
    for client in &mut later {
        let reply = client.read_head_reply();
        assert!(is_collapsed(&reply), "{}", reply.head);
        replies.push(reply);
        client.read_until(b"one \r\n");
    }
    clients.append(&mut later);
    call.chunk("two ");
    for client in &mut clients {
        client.read_until(b"two \r\n");
    }
    call.chunk("three").last_chunk();
    for client in &mut clients {
        assert_eq!(client.read_chunks(), b"three");
    }
    let mut stored = 0;
    for reply in &replies {
        assert_eq!((reply.field("x-answer"), reply.field("surrogate-key")), (Some("1"), None));
        let age: u64 = reply.field("age").and_then(|age| age.parse().ok()).expect("an age");
        assert!((20..40).contains(&age), "{}", reply.head);
        stored += usize::from(status(reply).ends_with("; stored"));
        assert!(status(reply).ends_with("; stored") || is_collapsed(reply), "{}", reply.head);
    }
    assert_eq!(stored, 1);
    // The clients' connections stay, and what has come is in memory.
    for client in &mut clients {
        let hit = client.get("/a");
        assert_eq!((hit.text().as_str(), status(&hit).starts_with("Kirin; hit")), ("one two three", true));
    }
    tested.assert_nobody_else_asked();
    let counts = tested.counts();
    for (name, count) in [("misses", 1), ("collapsed", 31), ("stored", 1), ("hits", 32), ("not_stored", 0)] {
        assert_eq!(counts[name], count, "{name}: {counts}");
    }
}

#[test]
fn a_hundred_readers_get_the_same() {
    let tested = serve();
    let mut clients = tested.begin_many(100, "/a");
    let mut call = tested.call();
    call.head(CHUNKED, MINUTE);
    let mut sent = Vec::new();
    for number in 0..200u8 {
        let piece = [number; 5000];
        sent.extend_from_slice(&piece);
        call.chunk(piece);
    }
    call.last_chunk();
    for client in &mut clients {
        assert!(client.read_reply().body == sent);
    }
    tested.assert_nobody_else_asked();
}

#[test]
fn a_reader_that_does_not_read_keeps_nobody() {
    let tested = serve();
    // The first reads nothing, and neither does one of the others.
    let mut slow = vec![tested.begin("/a", "")];
    let mut call = tested.call();
    call.head(CHUNKED, MINUTE).chunk("begin");
    slow.push(tested.begin("/a", ""));
    let mut fast = tested.begin("/a", "");
    fast.read_until(b"begin\r\n");
    let body = vec![b'x'; 1_500_000];
    call.chunk(&body).last_chunk();
    assert_eq!(fast.read_chunks().len(), body.len());
    wait_for("it to be in memory", || {
        status(&tested.kirin.get("/a")).starts_with("Kirin; hit").then_some(())
    });
    for mut client in slow {
        assert_eq!(client.read_reply().body.len(), body.len() + 5);
    }
    tested.assert_nobody_else_asked();
}

#[test]
fn a_body_that_is_cut_is_cut_for_all_and_not_stored() {
    let tested = serve();
    for (target, framing, sent) in [("/a", CHUNKED, "5\r\nbegin\r\n"), ("/b", "Content-Length: 10", "begin")]
    {
        let mut clients = tested.begin_many(4, target);
        let mut h2 = Http2Client::connect(tested.kirin.address());
        let mut call = tested.call();
        call.head(framing, MINUTE).send(sent);
        clients.push(tested.begin(target, ""));
        clients.iter_mut().for_each(|client| drop(client.read_until(b"begin")));
        let pending = h2.begin("GET", target, &[]);
        let (status, body) = h2.head_of(pending);
        assert_eq!(status, 200);
        call.connection.reset();
        for client in &mut clients {
            let rest = client.read_to_end();
            assert!(!rest.ends_with(b"0\r\n\r\n"), "{framing}: {}", String::from_utf8_lossy(&rest));
        }
        assert!(h2.body_of(body).is_err(), "{framing}");
        tested.assert_nobody_else_asked();
        // The next one asks for all of it.
        let mut next = tested.begin(target, "");
        let mut call = tested.call();
        call.head("Content-Length: 5", "").send("whole");
        assert_eq!(next.read_reply().text(), "whole");
    }
    assert_eq!(tested.counts()["stored"], 0);
}

#[test]
fn what_turns_out_too_long_goes_to_all_who_read_it_and_to_nobody_more() {
    let tested = serve();
    let mut clients = tested.begin_many(6, "/small");
    let mut call = tested.call();
    call.head(CHUNKED, MINUTE).chunk("begin");
    clients.iter_mut().for_each(|client| drop(client.read_until(b"begin\r\n")));
    let sent: Vec<u8> = (0..BIG / PIECE).flat_map(|number| [number as u8; PIECE]).collect();
    let pieces = sent.clone();
    let sender = thread::spawn(move || {
        for piece in pieces.chunks(PIECE) {
            call.chunk(piece);
        }
        call.last_chunk();
    });
    // Each reads when it likes.
    let readers = clients.into_iter().map(|mut client| thread::spawn(move || client.read_chunks()));
    for reader in readers.collect::<Vec<_>>() {
        assert!(reader.join().expect("all of it") == sent);
    }
    sender.join().expect("all of it sent");
    tested.assert_nobody_else_asked();
    assert_eq!((&tested.counts()["not_stored"], &tested.counts()["stored"]), (&1.into(), &0.into()));
    // It is known now: nobody waits for anybody.
    let others = tested.begin_many(2, "/small");
    let mut calls = [tested.call(), tested.call()];
    for call in &mut calls {
        call.head("Content-Length: 2", MINUTE).send("ok");
    }
    for mut client in others {
        assert_eq!(client.read_reply().text(), "ok");
    }
}

#[test]
fn what_says_that_it_is_too_long_is_waited_for_by_nobody() {
    let tested = serve();
    let mut first = tested.begin("/small", "");
    let mut call = tested.call();
    call.head("Content-Length: 100000", MINUTE).send("begin");
    first.read_until(b"begin");
    let mut second = tested.begin("/small", "");
    tested.call().head("Content-Length: 2", MINUTE).send("ok");
    assert_eq!(second.read_reply().text(), "ok");
    call.send(vec![b'x'; 100_000 - 5]);
    first.read_until(&[b'x'; 100_000 - 5]);
}

#[test]
fn others_go_on_when_the_first_client_has_gone() {
    let tested = serve();
    let mut first = tested.begin("/a", "");
    let mut call = tested.call();
    call.head(CHUNKED, MINUTE).chunk("one ");
    first.read_until(b"one \r\n");
    let mut second = tested.begin("/a", "");
    second.read_until(b"one \r\n");
    first.reset();
    call.chunk("two ");
    second.read_until(b"two \r\n");
    let mut third = tested.begin("/a", "");
    third.read_until(b"two \r\n");
    second.reset();
    call.chunk("three").last_chunk();
    assert_eq!(third.read_chunks(), b"three");
    assert_eq!(third.get("/a").text(), "one two three");
    tested.assert_nobody_else_asked();
}

#[test]
fn a_graceful_stop_waits_for_readers_on_all_loops() {
    let mut tested = serve();
    let mut reading = Vec::new();
    // One client is left of each eight; some of these are on another loop than the one that reads from the server.
    for target in ["/a", "/b", "/c", "/d"] {
        let mut clients = tested.begin_many(8, target);
        let mut call = tested.call();
        call.head(CHUNKED, MINUTE).chunk("begin");
        clients.iter_mut().for_each(|client| drop(client.read_until(b"begin\r\n")));
        let client = clients.pop().expect("eight");
        clients.iter_mut().for_each(Client::reset);
        reading.push((client, call));
    }
    tested.kirin.signal(Signal::TERM);
    wait_for("the door to close", || TcpStream::connect(tested.kirin.address()).is_err().then_some(()));
    for (client, call) in &mut reading {
        call.chunk("end").last_chunk();
        assert_eq!(client.read_chunks(), b"end");
    }
    assert!(tested.kirin.wait().success());
}

#[test]
fn a_purge_while_it_comes_is_for_those_who_ask_afterwards() {
    let tested = serve();
    let mut memcached = Memcached::connect(&tested.site.path("m.sock"));
    // The last is that of all targets that begin with `/a`.
    let purges = ["md k Ptag\r\n", "md k Ptag I\r\n", "md AGMvYQ== b Pprefix\r\n"];
    for (index, purge) in purges.into_iter().enumerate() {
        let target = format!("/a{index}");
        let mut clients = tested.begin_many(2, &target);
        let mut old = tested.call();
        old.head(CHUNKED, &format!("{MINUTE}Surrogate-Key: k\r\n")).chunk("old ");
        clients.iter_mut().for_each(|client| drop(client.read_until(b"old \r\n")));
        // Nothing may be there yet.
        assert!(["HD", "NF"].contains(&memcached.send(purge).line().as_str()));
        // One of them asks, and what that brings is for the others.
        let mut later = tested.begin_many(4, &target);
        let mut new = tested.call();
        new.head(CHUNKED, MINUTE).chunk("new ");
        later.iter_mut().for_each(|client| drop(client.read_until(b"new \r\n")));
        new.chunk("page").last_chunk();
        for client in &mut later {
            assert_eq!(client.read_chunks(), b"page");
        }
        old.chunk("page").last_chunk();
        for client in &mut clients {
            assert_eq!(client.read_chunks(), b"page", "{purge}");
            let hit = client.get(&target);
            assert_eq!((hit.text().as_str(), status(&hit).starts_with("Kirin; hit")), ("new page", true));
        }
        tested.assert_nobody_else_asked();
    }
}

#[test]
fn a_request_that_wants_it_newer_asks_anew_and_others_read_along_what_that_brings() {
    let tested = serve();
    let no_cache = "Cache-Control: no-cache\r\n";
    let mut first = tested.begin("/reload", "");
    let mut old = tested.call();
    old.head(CHUNKED, MINUTE).chunk("old");
    first.read_until(b"old\r\n");
    let mut second = tested.begin("/reload", no_cache);
    let mut new = tested.call();
    new.head(CHUNKED, MINUTE).chunk("new");
    second.read_until(b"new\r\n");
    let mut third = tested.begin("/reload", "");
    third.read_until(b"new\r\n");
    new.last_chunk();
    assert_eq!((second.read_chunks(), third.read_chunks()), (vec![], vec![]));
    old.last_chunk();
    assert_eq!(first.read_chunks(), b"");
    wait_for("the newer one in memory", || (first.get("/reload").text() == "new").then_some(()));
    tested.assert_nobody_else_asked();
}

#[test]
fn what_the_head_says_is_answered_at_once_and_a_part_when_it_has_come() {
    let tested = serve();
    let mut first = tested.begin("/a", "");
    let mut call = tested.call();
    let modified = "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    call.head("Content-Length: 10", &format!("{MINUTE}ETag: \"e\"\r\n{modified}Set-Cookie2: x\r\n"))
        .send("0123");
    first.read_until(b"0123");
    let mut client = tested.kirin.connect();
    let head = client.request("HEAD", "/a", "");
    assert_eq!((head.status, head.field("content-length"), is_collapsed(&head)), (200, Some("10"), true));
    for (fields, expected) in [
        ("If-None-Match: W/\"e\"\r\n", 304),
        ("If-None-Match: *\r\n", 304),
        ("If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n", 304),
        ("If-Match: \"x\"\r\n", 412),
        ("If-Unmodified-Since: Sat, 05 Nov 1994 08:49:37 GMT\r\n", 412),
        ("Range: bytes=10-\r\n", 416),
    ] {
        let reply = client.request("GET", "/a", fields);
        assert_eq!((reply.status, is_collapsed(&reply)), (expected, true), "{fields} {}", reply.head);
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
    assert_eq!((part.status, part.text().as_str(), is_collapsed(&part)), (206, "12", true), "{}", part.head);
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
fn what_only_the_end_shows_is_not_guessed() {
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
    // Its tag is made of its bytes; the length of a part of it is not known.
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
fn who_gets_another_variant_goes_for_it_and_is_followed_by_those_who_get_the_same() {
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
    for (fields, begin) in [(ja, "ja\r\n"), (en, "en\r\n"), ("Accept-Language:  en \r\n", "en\r\n")] {
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
fn who_shows_who_he_is_does_not_read_along_what_is_for_strangers() {
    let tested = serve();
    let cookie = "Cookie: a=b\r\n";
    let mut first = tested.begin("/a", "");
    let mut call = tested.call();
    // What is in the named field is for the first client alone.
    call.head(CHUNKED, "Cache-Control: max-age=60, no-cache=\"X-Own\"\r\nX-Own: 1\r\n").chunk("all");
    assert_eq!(first.read_head_reply().field("x-own"), Some("1"));
    let mut other = tested.begin("/a", "");
    assert_eq!(other.read_head_reply().field("x-own"), None);
    let mut own = tested.begin("/a", cookie);
    tested.call().head("Content-Length: 3", "Cache-Control: private\r\n").send("own");
    assert_eq!(own.read_reply().text(), "own");
    call.last_chunk();
    assert_eq!((first.read_chunks(), other.read_chunks()), (b"all".to_vec(), b"all".to_vec()));
    // With `public` he does.
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
fn what_has_to_be_validated_is_waited_for_to_its_end() {
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
    let mut clients = vec![tested.begin("/zip", ""), tested.begin("/zip", "Accept-Encoding: gzip\r\n")];
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
                // The first piece is all there before the second is: it has been flushed.
                let mut decoder = flate2::write::GzDecoder::new(Vec::new());
                while decoder.get_ref().len() < text.len() {
                    let line = client.read_until(b"\r\n");
                    let size =
                        usize::from_str_radix(String::from_utf8_lossy(&line).trim(), 16).expect("a size");
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
    // Directives are carried out for each.
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

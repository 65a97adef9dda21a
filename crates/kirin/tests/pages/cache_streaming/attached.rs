//! Attached readers: how the body arrives, how it ends, and when attaching ends.

use std::net::TcpStream;
use std::thread;

use kirin_tests::{Client, Http2Client, Memcached, wait_for};
use rustix::process::Signal;

use super::{CHUNKED, MINUTE, is_collapsed, serve, status};

const BIG: usize = 4 * 1024 * 1024;
const PIECE: usize = 16 * 1024;

#[test]
fn waiting_and_later_requests_get_each_piece_when_it_arrives() {
    let tested = serve();
    let mut clients = tested.begin_many(16, "/a");
    let mut call = tested.call();
    call.head(CHUNKED, &format!("{MINUTE}Age: 20\r\nX-Answer: 1\r\nSurrogate-Key: k\r\n"))
        .chunk("one ");
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
    // The clients' connections stay, and the bytes that have arrived are in memory.
    for client in &mut clients {
        let hit = client.get("/a");
        assert_eq!(
            (hit.text().as_str(), status(&hit).starts_with("Kirin; hit")),
            ("one two three", true)
        );
    }
    tested.assert_nobody_else_asked();
    let counts = tested.counts();
    for (name, count) in
        [("misses", 1), ("collapsed", 31), ("stored", 1), ("hits", 32), ("not_stored", 0)]
    {
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
fn a_stalled_reader_delays_no_other() {
    let tested = serve();
    // The first client reads nothing, and neither does one of the others.
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
    for (target, framing, sent) in
        [("/a", CHUNKED, "5\r\nbegin\r\n"), ("/b", "Content-Length: 10", "begin")]
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
        // The next request is for the complete response.
        let mut next = tested.begin(target, "");
        let mut call = tested.call();
        call.head("Content-Length: 5", "").send("whole");
        assert_eq!(next.read_reply().text(), "whole");
    }
    assert_eq!(tested.counts()["stored"], 0);
}

#[test]
fn a_body_that_turns_out_too_long_goes_only_to_its_present_readers() {
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
    // Each client reads at its own speed.
    let readers = clients.into_iter().map(|mut client| thread::spawn(move || client.read_chunks()));
    for reader in readers.collect::<Vec<_>>() {
        assert!(reader.join().expect("all of it") == sent);
    }
    sender.join().expect("all of it sent");
    tested.assert_nobody_else_asked();
    assert_eq!(
        (&tested.counts()["not_stored"], &tested.counts()["stored"]),
        (&1.into(), &0.into())
    );
    // The length is known now, so no reader waits for another.
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
fn no_request_waits_for_a_body_that_announces_too_great_a_length() {
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
fn other_readers_continue_when_the_first_client_has_gone() {
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
    // One client of each eight is left. Some of these are on another loop than the one that reads
    // from the server.
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
    wait_for("the door to close", || {
        TcpStream::connect(tested.kirin.address()).is_err().then_some(())
    });
    for (client, call) in &mut reading {
        call.chunk("end").last_chunk();
        assert_eq!(client.read_chunks(), b"end");
    }
    assert!(tested.kirin.wait().success());
}

#[test]
fn a_purge_while_a_body_arrives_affects_only_later_requests() {
    let tested = serve();
    let mut memcached = Memcached::connect(&tested.site.path("m.sock"));
    // The last one is the prefix of all targets that start with `/a`.
    let purges = ["md k Ptag\r\n", "md k Ptag I\r\n", "md AGMvYQ== b Pprefix\r\n"];
    for (index, purge) in purges.into_iter().enumerate() {
        let target = format!("/a{index}");
        let mut clients = tested.begin_many(2, &target);
        let mut old = tested.call();
        old.head(CHUNKED, &format!("{MINUTE}Surrogate-Key: k\r\n")).chunk("old ");
        clients.iter_mut().for_each(|client| drop(client.read_until(b"old \r\n")));
        // No response may be there yet.
        assert!(["HD", "NF"].contains(&memcached.send(purge).line().as_str()));
        // One of the requests goes through, and its response is for the others.
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
            assert_eq!(
                (hit.text().as_str(), status(&hit).starts_with("Kirin; hit")),
                ("new page", true)
            );
        }
        tested.assert_nobody_else_asked();
    }
}

#[test]
fn a_reload_is_a_new_request_whose_response_others_share() {
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

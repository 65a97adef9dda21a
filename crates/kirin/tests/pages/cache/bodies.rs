//! Bodies that arrive in pieces, are cut, or are too large.

use super::{at_once, is_hit, serve};

#[test]
fn a_body_is_sent_as_it_arrives_and_completely_to_all_others() {
    let tested = serve();
    let target = "/stream?cc=max-age=60&kind=stream";
    let mut first = tested.kirin.connect();
    first.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
    // The application has not continued.
    first.read_until(b"first ");
    let others = at_once(&tested, 3, target);
    tested.touch("go");
    first.read_until(b"call 1");
    for other in others {
        assert_eq!(other.join().unwrap().text(), "first call 1");
    }
    assert!(is_hit(&tested.kirin.get(target)));
    assert_eq!(tested.count("/stream"), 1);
}

#[test]
fn a_client_that_disconnects_takes_nothing_from_others() {
    let tested = serve();
    let target = "/gone?cc=max-age=60&kind=stream";
    let mut first = tested.kirin.connect();
    first.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
    first.read_until(b"first ");
    first.reset();
    let others = at_once(&tested, 3, target);
    tested.touch("go");
    for other in others {
        assert_eq!(other.join().unwrap().text(), "first call 1");
    }
    assert_eq!(tested.count("/gone"), 1);
}

#[test]
fn a_body_that_is_cut_is_cut_for_the_client_and_never_kept() {
    let tested = serve();
    let target = "/cut?cc=max-age=60&kind=cut";
    tested.touch("go");
    for call in 1..=2 {
        let mut client = tested.kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let received = String::from_utf8_lossy(&client.read_to_end()).into_owned();
        assert!(received.contains("first ") && !received.ends_with("0\r\n\r\n"), "{received}");
        assert_eq!(tested.count("/cut"), call);
    }
}

#[test]
fn a_response_that_is_too_large_passes_and_is_not_kept() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    tested.touch("go");
    for (target, bytes) in [
        ("/some/large?bytes=20000", 20_000),
        ("/some/stream?bytes=5000&kind=stream&times=10", 50_006),
        ("/huge?cc=max-age=60&bytes=1000000&kind=stream&times=5", 5_000_006),
    ] {
        for _ in 0..2 {
            let reply = client.get(target);
            assert_eq!(reply.body.len(), bytes, "{target}");
            assert!(!is_hit(&reply), "{target}");
        }
    }
    assert_eq!(client.get("/some/small?bytes=5000").body.len(), 5000);
    assert!(is_hit(&client.get("/some/small?bytes=5000")));
}

//! Stale responses that are used all the same.

use kirin_tests::wait_for;

use super::{is_hit, serve, status, ttl};

#[test]
fn a_stale_response_is_served_while_one_request_renews_it() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/swr?cc=max-age=60,stale-while-revalidate=1000&Age=100&wait=go";
    tested.touch("go");
    assert_eq!(client.get(target).text(), "call 1");
    std::fs::remove_file(tested.site.path("go")).unwrap();
    // The application hangs in the second call, and no request waits for it.
    for _ in 0..5 {
        let reply = client.get(target);
        assert_eq!(reply.text(), "call 1");
        assert!(is_hit(&reply) && ttl(&reply) < 0, "{}", reply.head);
    }
    wait_for("the second call", || (tested.count("/swr") == 2).then_some(()));
    tested.touch("go");
    wait_for("what it brought", || (client.get(target).text() != "call 1").then_some(()));
}

#[test]
fn a_stale_response_replaces_a_failure_of_the_application() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let covered = "/sie?cc=max-age=60,stale-if-error=1000&Age=100";
    let strict = "/strict?cc=max-age=60,stale-if-error=1000,must-revalidate&Age=100&ETag=%22e%22";
    let short = "/short?cc=max-age=60,stale-if-error=10&Age=100&ETag=%22e%22";
    let configured = "/some/sie?cc=max-age=60&Age=100";
    for target in [covered, strict, short, configured] {
        assert_eq!(client.get(target).text(), "call 1", "{target}");
    }
    tested.touch("fail");
    for target in [covered, configured] {
        let reply = client.get(target);
        assert_eq!((reply.status, reply.text().as_str()), (200, "call 1"), "{}", reply.head);
        assert!(
            status(&reply).starts_with("Kirin; fwd=stale; fwd-status=500; ttl=-"),
            "{}",
            reply.head
        );
    }
    for target in [strict, short] {
        assert_eq!(client.get(target).status, 500, "{target}");
    }
    std::fs::remove_file(tested.site.path("fail")).unwrap();
    assert_eq!(client.get(covered).text(), "call 3");
    assert_eq!(client.get(short).text(), "call 1", "what failed has thrown nothing out");
}

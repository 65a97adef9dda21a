//! Many requests at the same time for a missing response.

use kirin_tests::{Reply, wait_for};

use super::{at_once, serve, status};

#[test]
fn one_request_goes_to_the_application_and_all_get_its_response() {
    let tested = serve();
    let target = "/one?cc=max-age=60&wait=go";
    let clients = at_once(&tested, 30, target);
    wait_for("the call", || (tested.count("/one") == 1).then_some(()));
    let others = at_once(&tested, 30, target);
    tested.touch("go");
    let replies: Vec<Reply> =
        clients.into_iter().chain(others).map(|client| client.join().unwrap()).collect();
    for reply in &replies {
        assert_eq!((reply.status, reply.text().as_str()), (200, "call 1"));
    }
    assert_eq!(tested.count("/one"), 1);
    assert_eq!(replies.iter().filter(|reply| status(reply).contains("stored")).count(), 1);
}

#[test]
fn requests_that_waited_for_a_response_not_for_them_all_go_at_once() {
    let tested = serve();
    // Each call except the first waits until there are four. One after the other they would never
    // end.
    let target = "/each?cc=private&wait=go&all=4";
    let first = at_once(&tested, 1, target);
    wait_for("the call", || (tested.count("/each") == 1).then_some(()));
    let others = at_once(&tested, 3, target);
    tested.touch("go");
    let mut texts: Vec<String> =
        first.into_iter().chain(others).map(|client| client.join().unwrap().text()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["call 1", "call 2", "call 3", "call 4"]);
    // From now on no request waits.
    let target = "/known?cc=private&wait=free";
    tested.touch("free");
    tested.kirin.get(target);
    std::fs::remove_file(tested.site.path("free")).unwrap();
    let clients = at_once(&tested, 5, target);
    wait_for("all of them at the application", || (tested.count("/known") == 6).then_some(()));
    tested.touch("free");
    clients.into_iter().for_each(|client| assert_eq!(client.join().unwrap().status, 200));
}

#[test]
fn waiting_ends_when_the_route_says_so() {
    let tested = serve();
    let target = "/hasty?cc=max-age=60&wait=go";
    let clients = at_once(&tested, 3, target);
    wait_for("all of them at the application", || (tested.count("/hasty") == 3).then_some(()));
    tested.touch("go");
    clients.into_iter().for_each(|client| assert_eq!(client.join().unwrap().status, 200));
}

#[test]
fn a_private_response_does_not_send_all_others_to_the_application() {
    let tested = serve();
    let target = "/herd?cc=max-age=60&wait=go";
    let mut visitor = tested.kirin.connect();
    visitor.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\nCookie: a=b\r\n\r\n"));
    wait_for("the call", || (tested.count("/herd") == 1).then_some(()));
    let others = at_once(&tested, 10, target);
    tested.touch("go");
    assert_eq!(visitor.read_reply().text(), "call 1");
    others.into_iter().for_each(|other| assert_eq!(other.join().unwrap().text(), "call 2"));
    assert_eq!(tested.count("/herd"), 2);
}

//! Cookies and passwords.

use super::{is_hit, serve};

#[test]
fn an_authenticated_visitor_gets_only_responses_for_all_visitors() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    for (index, (field, query, is_shared)) in [
        ("Authorization: Basic eDp5\r\n", "cc=max-age=60", false),
        ("Authorization: Basic eDp5\r\n", "cc=max-age=60,public", true),
        ("Authorization: Basic eDp5\r\n", "cc=max-age=60,must-revalidate", true),
        ("Authorization: Basic eDp5\r\n", "cc=s-maxage=60", true),
        ("Cookie: a=b\r\n", "cc=max-age=60", false),
        ("Cookie: a=b\r\n", "cc=max-age=60,must-revalidate", false),
        ("Cookie: a=b\r\n", "cc=max-age=60,public", true),
        ("Cookie: a=b\r\n", "cc=s-maxage=60", true),
        ("Cookie: a=b\r\n", "cc=no-store&CDN-Cache-Control=max-age=60", true),
    ]
    .into_iter()
    .enumerate()
    {
        // The first request has a cookie. The next anonymous request must not get its response.
        let target = format!("/who/{index}?{query}");
        assert_eq!(client.request("GET", &target, field).text(), "call 1");
        assert_eq!(is_hit(&client.get(&target)), is_shared, "{field} {query}");
        // The first request is anonymous. A request with a cookie must not get its response.
        let target = format!("/anybody/{index}?{query}");
        assert_eq!(client.get(&target).text(), "call 1");
        let reply = client.request("GET", &target, field);
        assert_eq!(is_hit(&reply), is_shared, "{field} {query}: {}", reply.head);
        assert!(is_hit(&client.get(&target)), "and it is still there for others");
    }
    // With `Vary: Cookie` each visitor has an own response.
    let target = "/own?cc=max-age=60&Vary=Cookie";
    for (cookie, text) in
        [("a=1", "call 1"), ("a=2", "call 2"), ("a=1", "call 1"), ("a=2", "call 2")]
    {
        assert_eq!(client.request("GET", target, &format!("Cookie: {cookie}\r\n")).text(), text);
    }
}

#[test]
fn cookies_can_be_kept_from_an_application_that_does_not_need_them() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/anonymous?cc=max-age=60&Set-Cookie=a=b";
    let first = client.request("GET", target, "Cookie: tracking=1\r\n");
    assert_eq!(
        (first.text().as_str(), first.field("set-cookie")),
        ("call 1", None),
        "{}",
        first.head
    );
    assert!(tested.calls()[0].contains(" - - -"), "{:?}", tested.calls());
    assert!(is_hit(&client.request("GET", target, "Cookie: tracking=2\r\n")));
    // Unsafe requests have their cookies, and so have requests whose responses are not kept.
    client.request("DELETE", "/anonymous/x?Set-Cookie=a=b", "Cookie: session=1\r\n");
    assert!(tested.calls().last().unwrap().contains(" session=1 "), "{:?}", tested.calls());
    assert_eq!(client.get("/anonymous/y?Set-Cookie=a=b").field("set-cookie"), Some("a=b"));
}

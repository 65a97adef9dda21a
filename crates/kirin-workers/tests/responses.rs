//! What an application answers arrives at the client as it was meant.

mod support;

use support::Site;

#[test]
fn hello_comes_through_on_a_kept_connection() {
    let site = Site::start("sub { [200, ['Content-Type' => 'text/plain'], [\"hello\\n\"]] }");
    let mut client = site.connect();
    for _ in 0..3 {
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        let reply = client.reply();
        assert_eq!((reply.status, reply.text().as_str()), (200, "hello\n"), "{reply:?}");
        assert_eq!(reply.field("Content-Type"), Some("text/plain"));
    }
}

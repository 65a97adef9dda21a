//! `SERVER_NAME` and `SERVER_PORT`, as applications get them.

use kirin_tests::{Kirin, Site};

const APP: &str = r#"
sub { my $env = shift; [200, ['Content-Type' => 'text/plain'], ["$env->{SERVER_NAME} $env->{SERVER_PORT}"]] };
"#;

#[test]
fn the_server_name_is_the_host_of_the_request_without_its_port() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(
        &site,
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n\
         [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n\
         [[site]]\nhosts = [\"a.test\"]\n[[site.route]]\npath = \"/\"\ntry = [\"app:web\"]\n",
    );
    let port = kirin.address().port();
    for (version, host, name) in [
        ("1.1", "Host: a.test\r\n", "a.test"),
        ("1.1", "Host: a.test:8080\r\n", "a.test"),
        ("1.1", "Host: other.test\r\n", "other.test"),
        ("1.1", "Host: [::1]:8080\r\n", "[::1]"),
        ("1.0", "", "127.0.0.1"),
    ] {
        let mut client = kirin.connect();
        client.send(format!("GET / HTTP/{version}\r\n{host}\r\n"));
        let reply = client.read_reply();
        assert_eq!(reply.text(), format!("{name} {port}"), "{host}: {}", reply.head);
    }
}

//! `proxy:NAME` in front of SCGI and uwsgi servers whose bytes the test controls.

use kirin_tests::{Backend, BackendConnection, Client, Kirin, Site};

/// The CGI variables of a request: names and values.
type Variables = Vec<(String, String)>;

/// Reads the names and values of an SCGI request, which come before its body.
fn read_scgi(connection: &mut BackendConnection) -> Option<Variables> {
    let mut digits = String::new();
    loop {
        match connection.take(1)?[0] {
            b':' => break,
            digit => digits.push(char::from(digit)),
        }
    }
    let block = connection.take(digits.parse().ok()?)?;
    assert_eq!(connection.take(1)?, b",");
    let texts: Vec<_> = block.split(|byte| *byte == 0).map(text).collect();
    assert_eq!(texts[0], "CONTENT_LENGTH", "it comes first");
    Some(texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

/// Reads the same of a uwsgi request.
fn read_uwsgi(connection: &mut BackendConnection) -> Option<Variables> {
    let head = connection.take(4)?;
    assert_eq!((head[0], head[3]), (0, 0));
    let packet = connection.take(usize::from(u16::from_le_bytes([head[1], head[2]])))?;
    let (mut texts, mut rest) = (Vec::new(), &packet[..]);
    while let [low, high, after @ ..] = rest {
        let (value, after) = after.split_at(usize::from(u16::from_le_bytes([*low, *high])));
        texts.push(text(value));
        rest = after;
    }
    Some(texts.chunks_exact(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn of<'a>(variables: &'a [(String, String)], name: &str) -> &'a str {
    variables.iter().find(|(other, _)| other == name).map_or("none", |(_, value)| value)
}

/// Starts Kirin before a server that reads requests with `read`. The query chooses the kind of its
/// response head.
fn simple(
    scheme: &str,
    route: &str,
    read: fn(&mut BackendConnection) -> Option<Variables>,
    is_http: bool,
) -> (Site, Backend, Kirin) {
    let backend = Backend::start(move |mut connection| {
        let Some(variables) = read(&mut connection) else { return };
        let length = of(&variables, "CONTENT_LENGTH").parse().expect("a length");
        let body = text(&connection.take(length).unwrap_or_default());
        let status = |status: &str| match is_http {
            true => format!("HTTP/1.1 {status}\r\n"),
            false => format!("Status: {status}\r\n"),
        };
        let shown = [
            "REQUEST_METHOD",
            "SCRIPT_NAME",
            "PATH_INFO",
            "QUERY_STRING",
            "CONTENT_LENGTH",
            "REMOTE_USER",
        ]
        .map(|name| of(&variables, name))
        .join(" ");
        connection.send(match of(&variables, "QUERY_STRING") {
            "length" => format!("{}Content-Length: 5\r\n\r\nwhole", status("200 OK")),
            "short" => format!("{}Content-Length: 50\r\n\r\nshort", status("200 OK")),
            "nothing" => return,
            "garbage" => "garbage\r\n\r\n".into(),
            "scheme" => format!("{}\r\n{}", status("200 OK"), of(&variables, "REQUEST_SCHEME")),
            _ => format!("{}X-A: b\r\n\r\n{shown} {}", status("201 Made"), body.len()),
        });
    });
    // bob's password is "opensesame".
    let users = "bob:$2y$08$48biTCX6hLFLuo1X9oacu.C9feoeVL5TxFGhMA0T2i1gjC8TRnAwi\n";
    let site = Site::new().with("users", users);
    let address = backend.address();
    let kirin = Kirin::start(
        &site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\ntrusted = [\"127.0.0.1\"]\n[[upstream]]\nname = \"app\"\n\
             servers = [\"{scheme}://{address}\"]\n\
             [[route]]\npath = \"/\"\ntry = [\"proxy:app\"]\n{route}"
        ),
    );
    (site, backend, kirin)
}

fn behaves_as_a_server(kirin: &Kirin, backend: &Backend) {
    let mut client = kirin.connect();
    let reply = client.get("/a%20b?c=d");
    assert_eq!((reply.status, reply.field("x-a")), (201, Some("b")), "{}", reply.text());
    assert_eq!(reply.text(), "GET  /a b c=d 0 none 0");
    assert_eq!(client.post("/", "a/b", &vec![b'x'; 300_000]).text(), "POST  /  300000 none 300000");
    client.send(
        "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
    );
    assert_eq!(client.read_reply().text(), "POST  /  3 none 3");
    assert_eq!(client.get("/?length").text(), "whole");
    assert_eq!(client.request("HEAD", "/?length", "").field("content-length"), Some("5"));
    assert_eq!(client.get("/?scheme").text(), "http");
    assert_eq!(client.request("GET", "/?scheme", "X-Forwarded-Proto: https\r\n").text(), "https");
    assert_eq!(client.get("/?garbage").status, 502);
    assert_eq!(client.request("POST", "/?nothing", "Content-Length: 0\r\n").status, 502);
    // Each request has its own connection.
    assert_eq!(backend.connections(), 9);
    let mut cut: Client = kirin.connect();
    cut.send("GET /?short HTTP/1.1\r\nHost: test\r\n\r\n");
    let got = text(&cut.read_to_end());
    assert!(got.contains("Content-Length: 50") && got.ends_with("short"), "{got}");
    kirin.wait_for_log("response was cut");
}

#[test]
fn scgi_servers_get_requests_and_answer_them() {
    let (_site, backend, kirin) = simple("scgi", "", read_scgi, false);
    behaves_as_a_server(&kirin, &backend);
}

#[test]
fn uwsgi_servers_get_requests_and_answer_them() {
    let (_site, backend, kirin) = simple("uwsgi", "", read_uwsgi, true);
    behaves_as_a_server(&kirin, &backend);
}

#[test]
fn uwsgi_and_scgi_servers_get_the_mount_and_the_user() {
    let route = "[[route]]\npath = \"/mount\"\nrewrite = \"/\"\ntry = [\"proxy:app\"]\nbasic_auth = \"users\"\n";
    let (_site, _backend, kirin) = simple("scgi", route, read_scgi, false);
    let reply =
        kirin.connect().request("GET", "/mount/a", "Authorization: Basic Ym9iOm9wZW5zZXNhbWU=\r\n");
    assert_eq!(reply.text(), "GET /mount /a  0 bob 0");
}

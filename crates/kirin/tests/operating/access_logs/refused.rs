//! Lines about bytes that are not a request, and values that programs could misread.

use kirin_tests::{Http2Client, Kirin, Site, wait_for};

fn serve(format: &str) -> (Site, Kirin) {
    let site = Site::new().with("public/a", "a");
    let kirin = Kirin::start(
        &site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
             access_log = {{ path = \"access.log\", format = {format} }}\n\
             [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n"
        ),
    );
    (site, kirin)
}

/// Returns the lines of the access log when there are `count`.
fn lines(site: &Site, count: usize) -> Vec<String> {
    wait_for("lines in the access log", || {
        let log = std::fs::read_to_string(site.path("access.log")).ok()?;
        let lines: Vec<_> = log.lines().map(str::to_owned).collect();
        (lines.len() == count).then_some(lines)
    })
}

#[test]
fn a_refused_request_is_logged_with_its_first_line_escaped_and_cut() {
    let (site, kirin) = serve("'%s \"%r\" %U'");
    let long = "x".repeat(10_000);
    let table = [
        ("GET /a HTTP/1.1\r\n\r\n".into(), "400 \"GET /a HTTP/1.1\" -".into()),
        ("GET /\"\x1b HTTP/1.1\r\n\r\n".into(), r#"400 "GET /\x22\x1B HTTP/1.1" -"#.into()),
        (
            format!("GET /{long} HTTP/1.1\r\nHost: a\r\n\r\n"),
            format!("414 \"GET /{}\" -", "x".repeat(512 - 5)),
        ),
        (
            format!("GET /b HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", long.repeat(4)),
            "431 \"GET /b HTTP/1.1\" -".into(),
        ),
        ("TRACE /c HTTP/1.1\r\nHost: a\r\n\r\n".into(), "501 \"TRACE /c HTTP/1.1\" -".into()),
        ("GET /d HTTP/2.5\r\nHost: a\r\n\r\n".into(), "505 \"GET /d HTTP/2.5\" -".into()),
        (
            "GET https://a/e HTTP/1.1\r\nHost: a\r\n\r\n".into(),
            "421 \"GET https://a/e HTTP/1.1\" -".into(),
        ),
        ("\x16\x03\x01".into(), r#"400 "\x16\x03\x01" -"#.into()),
    ];
    let table: [(String, String); 8] = table;
    for (sent, _) in &table {
        let mut client = kirin.connect();
        client.try_send(sent);
        client.read_head_reply();
    }
    let reply = Http2Client::connect(kirin.address()).request("GET", "/f", &[("host", "b")]);
    assert_eq!(reply.status, 400, "{}", reply.text());
    let mut lines = lines(&site, table.len() + 1);
    assert_eq!(lines.pop().as_deref(), Some("400 \"GET /f HTTP/2.0\" -"));
    for (line, (sent, expected)) in lines.iter().zip(&table) {
        assert_eq!(line, expected, "{:?}", &sent[..sent.len().min(100)]);
    }
}

#[test]
fn json_escapes_c1_controls_and_line_separators() {
    let (site, kirin) = serve("\"json\"");
    let agent = "a\u{9b}31m\u{85}\u{2028}\u{2029}\u{e9}";
    let reply = kirin.connect().request("GET", "/a", &format!("User-Agent: {agent}\r\n"));
    assert_eq!(reply.status, 200, "{}", reply.head);
    let line = lines(&site, 1).remove(0);
    assert!(line.contains(r#""a\u009B31m\u0085\u2028\u2029"#), "{line}");
    let value: serde_json::Value = serde_json::from_str(&line).expect("JSON");
    assert!(value.to_string().contains(agent), "{line}");
}

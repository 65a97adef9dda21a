//! Cases about field lines (RFC 9112 section 5), `Host`, `Expect`, `Connection`, and the number of
//! fields.

use super::{Case, case};

/// Returns a GET with these field lines behind `Host: a`, and a second GET. The server sees the
/// second only if the first has ended where it should.
fn get(name: &'static str, fields: &str, outcomes: &[&str]) -> Case {
    case(
        name,
        format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\nGET /next HTTP/1.1\r\nHost: b\r\n\r\n"),
        outcomes,
    )
}

/// Returns a GET with only these field lines.
fn bare(name: &'static str, fields: &str, outcomes: &[&str]) -> Case {
    case(name, format!("GET / HTTP/1.1\r\n{fields}\r\n"), outcomes)
}

const PLAIN: &str = "GET / HTTP/1.1 host=a";
const NEXT: &str = "GET /next HTTP/1.1 host=b";

#[rustfmt::skip]
pub(super) fn cases() -> Vec<Case> {
    let seen = |fields: &str| format!("{PLAIN} {fields}");
    let filler = |bytes: usize| format!("X: {}\r\n", "y".repeat(bytes - 5));
    // "GET / HTTP/1.1\r\n", "Host: a\r\n" and the empty line are 27 bytes.
    let room = 512 - 27;
    vec![
        get("a field", "X-A: b\r\n", &[&seen("HTTP_X_A=b"), NEXT]),
        get("a field without white space", "X-A:b\r\n", &[&seen("HTTP_X_A=b"), NEXT]),
        get("a field with white space around its value", "X-A: \t b c\t \r\n", &[&seen("HTTP_X_A=b c"), NEXT]),
        get("an empty field", "X-A:\r\n", &[&seen("HTTP_X_A="), NEXT]),
        get("a field of white space", "X-A: \t \r\n", &[&seen("HTTP_X_A="), NEXT]),
        get("a field with a colon in its value", "X-A: b:c\r\n", &[&seen("HTTP_X_A=b:c"), NEXT]),
        get("fields of one name become a list", "X-A: b\r\nx-a: c\r\n", &[&seen("HTTP_X_A=b, c"), NEXT]),
        get("Latin-1 in a value", "X-A: \u{e9}\r\n", &[&seen("HTTP_X_A=\u{c3}\u{a9}"), NEXT]),
        get("a name of every token character", "X!#$%&'*+.^`|~9: b\r\n", &[PLAIN, NEXT]),
        get("a name of letters and digits", "X9a: b\r\n", &[&seen("HTTP_X9A=b"), NEXT]),
        get("a dot is no hyphen", "X.A: b\r\n", &[PLAIN, NEXT]),
        get("an underscore is no hyphen", "X_A: b\r\n", &[PLAIN, NEXT]),
        get("an underscore in a length", "Content_Length: 5\r\n", &[PLAIN, NEXT]),
        get("a space before the colon", "X-A : b\r\n", &["400"]),
        get("a tab before the colon", "X-A\t: b\r\n", &["400"]),
        get("a space in the name", "X A: b\r\n", &["400"]),
        get("no name", ": b\r\n", &["400"]),
        get("no colon", "X-A\r\n", &["400"]),
        get("a second line without a colon", "X-A: b\r\nc\r\n", &["400"]),
        get("a folded line", "X-A: b\r\n c\r\n", &["400"]),
        get("a line folded with a tab", "X-A: b\r\n\tc\r\n", &["400"]),
        get("a line folded into white space", "X-A: b\r\n \r\n", &["400"]),
        get("a NUL in the name", "X\0A: b\r\n", &["400"]),
        get("a NUL in the value", "X-A: b\0c\r\n", &["400"]),
        get("a control character in the value", "X-A: b\x01c\r\n", &["400"]),
        get("an escape in the value", "X-A: b\x1bc\r\n", &["400"]),
        get("a form feed in the value", "X-A: b\x0cc\r\n", &["400"]),
        get("a DEL in the value", "X-A: b\x7fc\r\n", &["400"]),
        get("a byte beyond ASCII in the name", "X-\u{e9}: b\r\n", &["400"]),
        get("a quote in the name", "X\"A: b\r\n", &["400"]),
        get("a slash in the name", "X/A: b\r\n", &["400"]),
        get("a brace in the name", "{X}: b\r\n", &["400"]),
        get("a bare CR in the value", "X-A: b\rc\r\n", &["400"]),
        get("a bare CR at the end of the value", "X-A: b\r\r\n", &["400"]),
        get("a bare CR in the name", "X\rA: b\r\n", &["400"]),
        get("a bare LF ends a line", "X-A: b\nX-B: c\r\n", &["400"]),
        get("a bare LF in the name", "X\nA: b\r\n", &["400"]),
        get("a bare LF before the empty line", "X-A: b\n", &["400"]),
        case("a bare LF is the empty line", "GET / HTTP/1.1\r\nHost: a\r\n\nGET /next HTTP/1.1\r\nHost: b\r\n\r\n", &["400"]),
        case("an empty line of LF CR", "GET / HTTP/1.1\r\nHost: a\r\n\n\rGET /next HTTP/1.1\r\nHost: b\r\n\r\n", &["400"]),
        case("white space before the first field", "GET / HTTP/1.1\r\n Host: a\r\n\r\n", &["400"]),
        case("an empty line of a space", "GET / HTTP/1.1\r\nHost: a\r\n \r\n\r\n", &["400"]),
        case("a request line among the fields", "GET / HTTP/1.1\r\nHost: a\r\nGET /next HTTP/1.1\r\nHost: b\r\n\r\n", &["400"]),

        bare("no Host", "", &["400"]),
        bare("no Host but another field", "X-A: b\r\n", &["400"]),
        bare("an empty Host", "Host:\r\n", &["400"]),
        bare("a Host of white space", "Host: \t\r\n", &["400"]),
        bare("two Hosts", "Host: a\r\nHost: b\r\n", &["400"]),
        bare("twice the same Host", "Host: a\r\nhost: a\r\n", &["400"]),
        bare("two Hosts in one", "Host: a, b\r\n", &["400"]),
        bare("a Host with a port", "Host: a:8080\r\n", &["GET / HTTP/1.1 host=a:8080"]),
        bare("a Host with an empty port", "Host: a:\r\n", &["GET / HTTP/1.1 host=a:"]),
        bare("a Host that is an IPv6 address", "Host: [::1]:80\r\n", &["GET / HTTP/1.1 host=[::1]:80"]),
        bare("a Host that is an IPv4 address", "HOST: 127.0.0.1\r\n", &["GET / HTTP/1.1 host=127.0.0.1"]),
        bare("a Host with an underscore", "Host: a_b\r\n", &["GET / HTTP/1.1 host=a_b"]),
        bare("a Host with a port that is no number", "Host: a:b\r\n", &["400"]),
        bare("a Host with a port that is too large", "Host: a:65536\r\n", &["400"]),
        bare("a Host with two ports", "Host: a:1:2\r\n", &["400"]),
        bare("a Host of a port alone", "Host: :80\r\n", &["400"]),
        bare("a Host with a path", "Host: a/b\r\n", &["400"]),
        bare("a Host with user information", "Host: u@a\r\n", &["400"]),
        bare("a Host with a space", "Host: a b\r\n", &["400"]),
        bare("a Host with a query", "Host: a?b\r\n", &["400"]),
        bare("a Host with a fragment", "Host: a#b\r\n", &["400"]),
        bare("a Host with a backslash", "Host: a\\b\r\n", &["400"]),
        bare("a Host with a scheme", "Host: http://a\r\n", &["400"]),
        bare("a Host with half an encoding", "Host: a%2\r\n", &["400"]),
        bare("a Host beyond ASCII", "Host: \u{e9}\r\n", &["400"]),
        bare("a Host with an open bracket", "Host: [::1\r\n", &["400"]),
        bare("a Host with something behind a bracket", "Host: [::1]a\r\n", &["400"]),
        bare("a Host of brackets that is no address", "Host: [a]\r\n", &["400"]),
        case("an empty Host in HTTP/1.0", "GET / HTTP/1.0\r\nHost:\r\n\r\n", &["400"]),
        case("two Hosts in HTTP/1.0", "GET / HTTP/1.0\r\nHost: a\r\nHost: b\r\n\r\n", &["400"]),

        get("an expectation without a body", "Expect: 100-continue\r\n", &[PLAIN, NEXT]),
        get("another expectation", "Expect: a-pony\r\n", &["417"]),
        get("two expectations in one", "Expect: 100-continue, a-pony\r\n", &["417"]),
        get("an empty expectation", "Expect:\r\n", &["417"]),
        get("close among other options", "Connection: x, CLOSE ,y\r\n", &[PLAIN]),
        get("close in a second field", "Connection: x\r\nConnection: close\r\n", &[PLAIN]),
        get("close is not a part of a word", "Connection: closed\r\n", &[PLAIN, NEXT]),
        get("an upgrade that nobody takes", "Connection: upgrade\r\nUpgrade: h2c\r\n", &[PLAIN, NEXT]),

        get("as many fields as may be", &"X:\r\n".repeat(99), &[&seen(&format!("HTTP_X={}", ", ".repeat(98))), NEXT]),
        get("a field too many", &"X:\r\n".repeat(100), &["431"]),
        bare("the largest head", &format!("Host: a\r\n{}", filler(room)), &[&seen(&format!("HTTP_X={}", "y".repeat(room - 5)))]),
        bare("a head that is too large", &format!("Host: a\r\n{}", filler(room + 1)), &["431"]),
        case("a head that does not end", format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "y".repeat(600)), &["431"]),
        case("a head that is too large and wrong behind that", format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\0", "y".repeat(600)), &["431"]),
        case("a head that is wrong before it is too large", format!("GET / HTTP/1.1\r\nHost: a\r\nX: \0{}", "y".repeat(600)), &["400"]),
        case("a large head behind a small one",
            format!("GET / HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n{}\r\n", filler(room + 1)), &[PLAIN, "431"]),
    ]
}

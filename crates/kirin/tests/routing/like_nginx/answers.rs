//! What a server answers, and in which parts two answers differ.

use std::collections::BTreeMap;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use flate2::read::GzDecoder;
use kirin_tests::wait_limit;

/// Fields that are not compared: they belong to the connection, name the program, or have another
/// value each time.
const IGNORED: &[&str] = &[
    "connection",
    "content-length",
    "date",
    "keep-alive",
    "server",
    "transfer-encoding",
    "via",
    "x-request-id",
];

/// Fields of which only the presence is compared: each server makes its own values.
const PRESENCE: &[&str] = &["etag", "expires", "retry-after"];

/// Fields that describe a file or a page. They are not compared with a server's own text.
const OF_A_BODY: &[&str] =
    &["accept-ranges", "content-type", "content-language", "etag", "last-modified", "vary"];

/// The part that says that a body is the text of the server, not of the site or a backend.
const OWN_TEXT: &str = "own text";

/// An answer and its parts.
pub struct Answer {
    /// What was sent.
    pub sent: String,
    /// What came back.
    pub received: String,
    /// The status, the body and the fields, by their names.
    pub parts: BTreeMap<String, String>,
}

/// Sends a request and returns the answer. `{etag}` and `{modified}` in the text stand for the
/// fields that the server sends for the same target.
pub fn ask(address: SocketAddr, text: &str) -> Answer {
    let mut sent = request(text);
    if sent.contains("{etag}") || sent.contains("{modified}") {
        let target = sent.split(' ').nth(1).unwrap_or_default();
        let reply = exchange(address, &request(&format!("GET {target}")));
        let fields = fields_of(&head_and_body(&reply).expect("a response").0);
        for (mark, name) in [("{etag}", "etag"), ("{modified}", "last-modified")] {
            sent = sent.replace(mark, fields.get(name).map_or("none", String::as_str));
        }
    }
    let received = exchange(address, &sent);
    let parts = parts(&received, sent.starts_with("HEAD "));
    let short = |text: &[u8]| String::from_utf8_lossy(text).chars().take(2_000).collect();
    Answer { sent: short(sent.as_bytes()), received: short(&received), parts }
}

/// Returns the request that `text` stands for. `{a*N}` becomes N letters.
fn request(text: &str) -> String {
    let text = repeated(text);
    if text.contains("\r\n") {
        return text;
    }
    let (head, body) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let mut request = format!("{} HTTP/1.1\r\n", lines.next().unwrap_or_default());
    if !head.contains("\nHost:") {
        request += "Host: test\r\n";
    }
    for line in lines {
        request += &format!("{line}\r\n");
    }
    if !body.is_empty() {
        request += &format!("Content-Length: {}\r\n", body.len());
    }
    request + "Connection: close\r\n\r\n" + body
}

/// Replaces the first `{a*N}` by N times `a`.
fn repeated(text: &str) -> String {
    let Some((before, rest)) = text.split_once("{a*") else { return text.to_owned() };
    let (count, after) = rest.split_once('}').expect("an end of {a*N}");
    format!("{before}{}{after}", "a".repeat(count.parse().expect("a number")))
}

/// Sends bytes on a connection of its own, and returns everything that comes back.
fn exchange(address: SocketAddr, sent: &str) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(wait_limit())).expect("a read timeout");
    // A server may refuse the request before it has all of it.
    let _ = stream.write_all(sent.as_bytes());
    let (mut reply, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    while !is_complete(&reply, sent.starts_with("HEAD ")) {
        match stream.read(&mut buffer) {
            Ok(0) => break,
            Ok(count) => reply.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::ConnectionReset => break,
            Err(error) => panic!("{error} after {sent:?}: {:?}", String::from_utf8_lossy(&reply)),
        }
    }
    reply
}

/// Returns whether a response has ended. A server that has refused a request may keep the
/// connection open for a while, to read what the client still sends.
fn is_complete(reply: &[u8], head_only: bool) -> bool {
    let Some((head, body)) = head_and_body(reply) else { return false };
    let fields = fields_of(&head);
    let length = fields.get("content-length").and_then(|length| length.parse().ok());
    if head_only || matches!(head.get(9..12), Some("204" | "304")) {
        return true;
    }
    if fields.contains_key("transfer-encoding") {
        return body.ends_with(b"0\r\n\r\n");
    }
    length.is_some_and(|length: usize| body.len() >= length)
}

/// Returns the head and the body of a response, without an informational one before it.
fn head_and_body(reply: &[u8]) -> Option<(String, &[u8])> {
    let end = reply.windows(4).position(|window| window == b"\r\n\r\n")?;
    if reply.starts_with(b"HTTP/1.1 100 ") {
        return head_and_body(&reply[end + 4..]);
    }
    Some((String::from_utf8_lossy(&reply[..end]).into_owned(), &reply[end + 4..]))
}

/// Returns the fields of a response by their names in lower case. Several lines are joined.
fn fields_of(head: &str) -> BTreeMap<String, String> {
    let mut fields: BTreeMap<String, String> = BTreeMap::new();
    for line in head.lines().skip(1) {
        let Some((name, value)) = line.split_once(':') else { continue };
        let lines = fields.entry(name.to_ascii_lowercase()).or_default();
        if !lines.is_empty() {
            lines.push_str(", ");
        }
        lines.push_str(value.trim());
    }
    fields
}

/// Returns the parts of a response that are compared.
fn parts(reply: &[u8], head_only: bool) -> BTreeMap<String, String> {
    let mut parts = BTreeMap::new();
    let with_head = head_and_body(reply).filter(|(head, _)| head.starts_with("HTTP/"));
    let Some((head, body)) = with_head else {
        // A response of HTTP/0.9 has no head.
        let text = if reply.is_empty() { "nothing" } else { "no head" };
        parts.insert("status".into(), text.into());
        return parts;
    };
    let status = head.get(9..12).unwrap_or_default();
    parts.insert("status".into(), status.into());
    let fields = fields_of(&head);
    let body = body_of(body, &fields);
    let own = status >= "300" && (body.is_empty() || is_own_text(&body, status));
    if own {
        parts.insert("body".into(), OWN_TEXT.into());
    } else {
        parts.insert("body".into(), body);
    }
    if head_only && status.starts_with('2') {
        let length = fields.get("content-length");
        parts.insert("length".into(), length.map_or("none", String::as_str).into());
    }
    for (name, value) in fields {
        let of_own_text = own && status != "304" && OF_A_BODY.contains(&name.as_str());
        // `Content-Range` says it already.
        let said_before = status == "206" && name == "accept-ranges";
        if of_own_text || said_before || IGNORED.contains(&name.as_str()) {
            continue;
        }
        let value = match name.as_str() {
            name if PRESENCE.contains(&name) => "present".into(),
            "www-authenticate" => value.split(' ').next().unwrap_or_default().to_owned(),
            "location" => {
                value.strip_prefix("http://test/").map_or(value.clone(), |path| format!("/{path}"))
            }
            "content-type" if value.starts_with("multipart/") => "multipart".into(),
            "allow" => sorted(&value),
            _ => value,
        };
        parts.insert(name, value);
    }
    parts
}

/// Returns a list in the order of its members.
fn sorted(list: &str) -> String {
    let mut members: Vec<_> = list.split(',').map(str::trim).collect();
    members.sort_unstable();
    members.join(", ")
}

/// Returns whether a body is the error text of nginx or Kirin.
fn is_own_text(body: &str, status: &str) -> bool {
    body.contains("<hr><center>nginx</center>") || body.starts_with(&format!("{status} "))
}

/// Returns the body of a response without its framing and its coding. A listing is the list of its
/// entries. A multipart body has a new boundary each time, so the boundary is replaced.
fn body_of(body: &[u8], fields: &BTreeMap<String, String>) -> String {
    let chunked = fields.contains_key("transfer-encoding");
    let mut body = if chunked { unchunked(body) } else { body.to_vec() };
    if fields.get("content-encoding").is_some_and(|coding| coding == "gzip") {
        let mut plain = Vec::new();
        // A variant beside a file may be any text in these tests.
        if GzDecoder::new(body.as_slice()).read_to_end(&mut plain).is_ok() {
            body = plain;
        }
    }
    let body = String::from_utf8_lossy(&body).into_owned();
    if body.contains("<title>Index of ") {
        return format!("entries {}", entries(&body).join(" "));
    }
    let boundary = fields.get("content-type").and_then(|value| value.split_once("boundary="));
    match boundary {
        // The first boundary may follow an empty line.
        Some((_, boundary)) => body.trim_start().replace(boundary.trim_matches('"'), "BOUNDARY"),
        None => body,
    }
}

/// Returns a body without the framing of its chunks.
fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(end) = rest.windows(2).position(|window| window == b"\r\n") {
        let size = String::from_utf8_lossy(&rest[..end]).into_owned();
        let size = usize::from_str_radix(&size, 16).unwrap_or_default();
        let Some(chunk) = rest.get(end + 2..end + 2 + size).filter(|_| size > 0) else { break };
        body.extend_from_slice(chunk);
        rest = rest.get(end + 4 + size..).unwrap_or_default();
    }
    body
}

/// Returns the targets of the links in a listing.
fn entries(page: &str) -> Vec<&str> {
    let targets = page.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
    targets.map(|target| target.trim_start_matches("./")).collect()
}

/// Returns the parts in which two answers differ, as the first and as the second one has them.
pub fn differences(first: &Answer, second: &Answer) -> (String, String) {
    let is_own = |answer: &Answer| answer.parts.get("body").is_none_or(|body| body == OWN_TEXT);
    let one_is_own = is_own(first) != is_own(second);
    let of = |own: &Answer, other: &Answer| {
        let differs = |name: &str| own.parts.get(name) != other.parts.get(name);
        let status = own.parts.get("status").filter(|_| differs("status")).cloned();
        let others = own.parts.iter().filter(|(name, _)| {
            let left_out = one_is_own && OF_A_BODY.contains(&name.as_str());
            *name != "status" && differs(name) && !left_out
        });
        let texts = status
            .into_iter()
            .chain(others.map(|(name, value)| format!("{name}: {}", on_one_line(value))));
        texts.collect::<Vec<_>>().join("; ")
    };
    (of(first, second), of(second, first))
}

/// Returns a value on one line, and the start of a long one.
fn on_one_line(text: &str) -> String {
    let line = text.lines().collect::<Vec<_>>().join(" / ");
    match line.char_indices().nth(160) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

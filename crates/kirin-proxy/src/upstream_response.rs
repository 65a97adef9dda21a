//! Response heads as servers send them. No I/O.

use std::time::Duration;

use http::header::HeaderName;
use kirin_http::field_list::members;
use kirin_http::response_head::{self, BadResponse, Field};
use kirin_http::{FieldLines, ReceivedBody, ReceivedHead, StatusCode, Version};

/// The head of a final response.
#[derive(Debug)]
pub struct UpstreamHead {
    /// The status.
    pub status: StatusCode,
    /// The fields that are forwarded to the client.
    pub fields: FieldLines,
    /// The body that follows.
    pub body: ReceivedBody,
    /// Whether the server closes the connection after this response.
    pub close: bool,
    /// How long the server says that it keeps an idle connection.
    pub keep_alive: Option<Duration>,
    /// The values of `Trailer`. They are forwarded only if the trailers are.
    pub trailer: Vec<Vec<u8>>,
    /// Fields that must not be trailers, because `Connection` names them.
    pub no_trailers: Vec<HeaderName>,
    /// Whether a field names a file for Kirin to send.
    pub names_file: bool,
}

/// The fields that name a file for Kirin to send.
pub const FILE_FIELDS: [&str; 3] = ["x-sendfile", "x-accel-redirect", "x-lighttpd-send-file"];

/// Returns whether a field of this name is about a file that Kirin should send.
pub fn is_about_file(name: &str) -> bool {
    match name.len() {
        10 => name.eq_ignore_ascii_case("x-sendfile"),
        16 => name.eq_ignore_ascii_case("x-accel-redirect"),
        20 => name.eq_ignore_ascii_case("x-lighttpd-send-file"),
        _ => false,
    }
}

/// Parses the head at the start of `input`. Returns it with its length; `None` if it is not
/// complete. `via` is Kirin's name in `Via`.
pub fn read_head(
    input: &[u8],
    is_head: bool,
    via: Option<&str>,
) -> Result<Option<(ReceivedHead<UpstreamHead>, usize)>, BadResponse> {
    let mut keep_alive = None;
    let mut upgrade: Vec<Vec<u8>> = Vec::new();
    let mut trailer: Vec<Vec<u8>> = Vec::new();
    let mut names_file = false;
    let parsed = response_head::parse(input, |name, value| {
        names_file |= is_about_file(name);
        match name.len() {
            7 if name.eq_ignore_ascii_case("upgrade") => upgrade.push(value.to_vec()),
            10 if name.eq_ignore_ascii_case("keep-alive") => keep_alive = timeout(value),
            2 if name.eq_ignore_ascii_case("te") => {}
            7 if name.eq_ignore_ascii_case("trailer") => trailer.push(value.to_vec()),
            16 if name.eq_ignore_ascii_case("proxy-connection") => {}
            18 if name.eq_ignore_ascii_case("proxy-authenticate") => {}
            25 if name.eq_ignore_ascii_case("proxy-authentication-info") => {}
            _ => return Field::Keep,
        }
        Field::Take
    })?;
    let Some((head, length)) = parsed else { return Ok(None) };
    let (status, mut fields) = (head.status, head.fields);
    if names_file && status.is_informational() {
        // No file can be the body of these.
        for name in FILE_FIELDS {
            fields.remove(name);
        }
    }
    // The client needs the protocols of both (RFC 9110 sections 15.2.2 and 15.5.22).
    if matches!(status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::UPGRADE_REQUIRED) {
        for protocols in upgrade {
            fields.try_push(b"Upgrade", &protocols)?;
        }
    }
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Some((ReceivedHead::Switched { fields }, length)));
    }
    if status.is_informational() {
        return Ok(Some((ReceivedHead::Informational { status, fields }, length)));
    }
    if let Some(name) = via {
        let version = if head.version == Version::Http10 { "1.0" } else { "1.1" };
        fields.try_push_parts(b"Via", &[version.as_bytes(), b" ", name.as_bytes()])?;
    }
    let body = ReceivedBody::new(head.framing, status, is_head);
    let (close, no_trailers) = (head.close, head.named_by_connection);
    let head =
        UpstreamHead { status, fields, body, close, keep_alive, trailer, no_trailers, names_file };
    Ok(Some((ReceivedHead::Final(head), length)))
}

/// Parses `timeout` of `Keep-Alive: timeout=5, max=100`, in seconds.
fn timeout(value: &[u8]) -> Option<Duration> {
    members(value).find_map(|parameter| {
        let (name, seconds) = std::str::from_utf8(parameter).ok()?.split_once('=')?;
        let seconds = name
            .trim()
            .eq_ignore_ascii_case("timeout")
            .then(|| seconds.trim().trim_matches('"').parse().ok())??;
        Some(Duration::from_secs(seconds))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_http::response_head::Framing;
    use proptest::prelude::*;

    fn head(text: &str, is_head: bool) -> UpstreamHead {
        match read_head(text.as_bytes(), is_head, Some("kirin")) {
            Ok(Some((ReceivedHead::Final(head), length))) if length == text.len() => head,
            other => panic!("{other:?} of {text}"),
        }
    }

    #[test]
    fn the_body_follows_from_method_status_and_framing() {
        use ReceivedBody::{Framed, Withheld};
        for (lines, is_head, expected) in [
            ("200\r\nContent-Length: 5\r\n", false, Framed(Framing::Length(5))),
            ("200 OK\r\nTransfer-Encoding: chunked\r\n", false, Framed(Framing::Chunked)),
            ("200\r\n", false, Framed(Framing::UntilClose)),
            ("200\r\nContent-Length: 5\r\n", true, Withheld(Some(5))),
            ("200\r\nTransfer-Encoding: chunked\r\n", true, Withheld(None)),
            ("204\r\n", false, Withheld(None)),
            ("304\r\nContent-Length: 7\r\n", false, Withheld(None)),
        ] {
            assert_eq!(head(&format!("HTTP/1.1 {lines}\r\n"), is_head).body, expected, "{lines}");
        }
    }

    #[test]
    fn fields_between_the_server_and_kirin_are_not_passed_on() {
        let head = head(
            "HTTP/1.0 200 OK\r\nServer: x\r\nConnection: keep-alive, x-y\r\nX-Y: 1\r\nKeep-Alive: timeout=5, max=9\r\n\
             Upgrade: h2c\r\nTrailer: z\r\nProxy-Authenticate: Basic\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\
             Content-Length: 0\r\n\r\n",
            false,
        );
        let mut wire = Vec::new();
        head.fields.write_to(&mut wire);
        assert_eq!(
            String::from_utf8_lossy(&wire),
            "Server: x\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nVia: 1.0 kirin\r\n"
        );
        assert_eq!(
            (&head.trailer[..], &head.no_trailers[..]),
            (&[b"z".to_vec()][..], &["x-y".parse().unwrap()][..])
        );
        assert_eq!((head.close, head.keep_alive), (false, Some(Duration::from_secs(5))));
    }

    #[test]
    fn a_101_response_has_the_protocol_of_the_switch() {
        let text =
            b"HTTP/1.1 101 S\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nA: b\r\n\r\nraw";
        let Ok(Some((ReceivedHead::Switched { fields }, length))) = read_head(text, false, None)
        else {
            panic!()
        };
        assert_eq!((fields.get("upgrade"), length), (Some(&b"websocket"[..]), text.len() - 3));
    }

    #[test]
    fn a_426_response_keeps_the_protocols_that_it_requires() {
        let lines = "Connection: Upgrade, close\r\nUpgrade: TLS/1.2, HTTP/1.1\r\n";
        let required = head(&format!("HTTP/1.1 426 U\r\n{lines}\r\n"), false);
        assert_eq!(required.fields.get("upgrade"), Some(&b"TLS/1.2, HTTP/1.1"[..]));
        let offered = head(&format!("HTTP/1.1 400 B\r\n{lines}\r\n"), false);
        assert_eq!(offered.fields.get("upgrade"), None);
    }

    #[test]
    fn malformed_and_ambiguous_responses_are_refused() {
        for text in [
            "garbage\r\n\r\n",
            "HTTP/2 200\r\n\r\n",
            "HTTP/1.1 20\r\n\r\n",
            "HTTP/1.1 200\r\nA: b\r\n folded\r\n\r\n",
            "HTTP/1.1 200\r\nA : b\r\n\r\n",
            "HTTP/1.1 200\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            "HTTP/1.1 200\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
            "HTTP/1.0 200\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert!(read_head(text.as_bytes(), false, None).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_timeout_of_keep_alive_is_read() {
        for (value, seconds) in [
            ("timeout=5", Some(5)),
            ("max=2, Timeout = \"7\"", Some(7)),
            ("max=2", None),
            ("timeout=x", None),
        ] {
            assert_eq!(timeout(value.as_bytes()), seconds.map(Duration::from_secs), "{value}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_a_server_sends_panics(input in prop::collection::vec(any::<u8>(), 0..200), is_head: bool) {
            let _ = read_head(&input, is_head, Some("kirin"));
            let _ = read_head(&[b"HTTP/1.1 200\r\n", &input[..]].concat(), is_head, None);
        }
    }
}

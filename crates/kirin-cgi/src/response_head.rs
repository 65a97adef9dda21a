//! The head of a response as CGI programs write it (RFC 3875 section 6): field lines, one of which
//! is `Status`.

use http::StatusCode;
use httparse::{EMPTY_HEADER, Header};
use kirin_http::request::parse_content_length;
use kirin_http::response_head::{BadResponse, Framing, MAX_FIELDS, ResponseHead};
use kirin_http::{FieldLines, Version};

/// Why a head is not used. The client gets 502.
#[derive(Debug, thiserror::Error)]
pub enum BadHead {
    /// The field lines are malformed or cannot be passed on.
    #[error(transparent)]
    Response(#[from] BadResponse),
    /// `Status` is not the status of a final response.
    #[error("response head: Status is not a number from 200 to 599")]
    Status,
    /// All fields are missing of which a CGI program must send one (RFC 3875 section 6.2).
    #[error("response head: none of Content-Type, Location and Status is there")]
    NothingSaid,
}

/// Parses a head at the start of `input`. Returns it with its length in bytes; `None` if the empty
/// line at its end is missing.
pub fn parse_head(input: &[u8]) -> Result<Option<(ResponseHead, usize)>, BadHead> {
    let mut storage = [EMPTY_HEADER; MAX_FIELDS];
    let (length, headers) = match httparse::parse_headers(input, &mut storage) {
        Ok(httparse::Status::Complete(found)) => found,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(BadResponse::Malformed(error).into()),
    };
    let value = |name: &str| {
        headers
            .iter()
            .find(|Header { name: other, .. }| other.eq_ignore_ascii_case(name))
            .map(|h| h.value)
    };
    let status = match (value("status"), value("location")) {
        (Some(status), _) => status_of(status).ok_or(BadHead::Status)?,
        // A redirect without a status (RFC 3875 section 6.2.3).
        (None, Some(_)) => StatusCode::FOUND,
        (None, None) if value("content-type").is_none() => return Err(BadHead::NothingSaid),
        (None, None) => StatusCode::OK,
    };
    let mut fields = FieldLines::new();
    let mut framing = Framing::UntilClose;
    for Header { name, value } in headers {
        if name.eq_ignore_ascii_case("content-length") {
            let length = parse_content_length(value)
                .map_err(|_| BadResponse::Framing("Content-Length is not a number"))?;
            if framing != Framing::UntilClose && framing != Framing::Length(length) {
                return Err(BadResponse::Framing("two different Content-Length fields").into());
            }
            framing = Framing::Length(length);
        } else if !DROPPED.iter().any(|ours| name.eq_ignore_ascii_case(ours))
            || (status == StatusCode::UPGRADE_REQUIRED && name.eq_ignore_ascii_case("upgrade"))
        {
            fields.try_push(name.as_bytes(), value).map_err(BadResponse::from)?;
        }
    }
    let (version, named_by_connection) = (Version::Http11, Vec::new());
    let head = ResponseHead { status, version, fields, framing, close: false, named_by_connection };
    Ok(Some((head, length)))
}

/// Fields that Kirin writes itself: the status, and the hop-by-hop fields. A response with the
/// status 426 must have `Upgrade` (RFC 9110 section 15.5.22), so it keeps that.
const DROPPED: [&str; 6] =
    ["status", "connection", "keep-alive", "transfer-encoding", "trailer", "upgrade"];

fn status_of(value: &[u8]) -> Option<StatusCode> {
    let digits = value.get(..3).filter(|_| value.get(3).is_none_or(|after| *after == b' '))?;
    StatusCode::from_bytes(digits).ok().filter(|status| (200..600).contains(&status.as_u16()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(text: &str) -> Result<Option<(ResponseHead, usize)>, BadHead> {
        parse_head(text.as_bytes())
    }

    #[test]
    fn the_status_and_the_fields_are_parsed() {
        for (text, status) in [
            ("Content-Type: text/html\r\n\r\n", 200),
            ("Status: 404 Not Found\r\nContent-type: text/html\r\n\r\n", 404),
            ("Status: 404\nX-A: b\n\n", 404),
            ("Location: /x\r\n\r\n", 302),
            ("Status: 303 See Other\r\nLocation: /x\r\n\r\n", 303),
        ] {
            let (head, length) = head(text).unwrap().unwrap();
            assert_eq!((head.status.as_u16(), length), (status, text.len()), "{text:?}");
            assert!(head.fields.get("status").is_none());
        }
    }

    #[test]
    fn parsing_a_head_leaves_the_body_and_returns_its_length() {
        let text = "Content-Type: a/b\r\nContent-Length: 4\r\nConnection: close\r\n\r\nbody";
        let (head, length) = head(text).unwrap().unwrap();
        assert_eq!(&text[length..], "body");
        assert_eq!(head.framing, Framing::Length(4));
        assert!(
            head.fields.get("connection").is_none() && head.fields.get("content-length").is_none()
        );
    }

    #[test]
    fn only_a_426_response_keeps_its_upgrade_field() {
        for (status, kept) in [("426", Some(&b"x/1"[..])), ("200", None)] {
            let (head, _) =
                head(&format!("Status: {status}\r\nUpgrade: x/1\r\n\r\n")).unwrap().unwrap();
            assert_eq!(head.fields.get("upgrade"), kept, "{status}");
        }
    }

    #[test]
    fn an_unfinished_head_needs_more_bytes() {
        let text = "Status: 200 OK\r\nContent-Type: text/plain\r\n\r\n";
        for end in 0..text.len() {
            assert!(head(&text[..end]).unwrap().is_none(), "{end}");
        }
    }

    #[test]
    fn a_malformed_head_is_refused() {
        for text in [
            "\r\n\r\n",
            "X-A: b\r\n\r\n",
            "Status: 99\r\n\r\n",
            "Status: 100 Continue\r\n\r\n",
            "Status: 2000\r\n\r\n",
            "Status: 700\r\n\r\n",
            "Content-Length: 1\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\n",
            "Content-Type: a/b\r\nContent-Length: +1\r\n\r\n",
            "<html>\r\n\r\n",
            "PHP Fatal error\r\n\r\n",
        ] {
            assert!(head(text).is_err(), "{text:?}");
        }
    }
}

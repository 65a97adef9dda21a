//! Response heads of servers that speak FastCGI, SCGI or uwsgi. No I/O.

use kirin_cgi::{BadHead, parse_head};
use kirin_http::{ReceivedBody, ReceivedHead};

use crate::upstream_response::{UpstreamHead, is_about_file};

/// Parses the head at the start of `input`. Returns it with its length; `None` if it is not
/// complete. `is_kept` says whether the connection can take another request.
///
/// The head is that of CGI, or begins with a status line of HTTP. uWSGI always sends a status line,
/// and some SCGI servers do.
pub(crate) fn read_head(
    input: &[u8],
    is_head: bool,
    is_kept: bool,
) -> Result<Option<(ReceivedHead<UpstreamHead>, usize)>, BadHead> {
    if input.starts_with(b"HTTP/") {
        let mut read = crate::upstream_response::read_head(input, is_head, None)?;
        if let Some((ReceivedHead::Final(head), _)) = &mut read {
            head.close = !is_kept;
        }
        return Ok(read);
    }
    let Some((head, length)) = parse_head(input)? else { return Ok(None) };
    let body = ReceivedBody::new(head.framing, head.status, is_head);
    let (status, fields) = (head.status, head.fields);
    let is_about_file = |name: &[u8]| std::str::from_utf8(name).is_ok_and(is_about_file);
    let names_file = fields.iter().any(|(name, _)| is_about_file(name));
    let (trailer, no_trailers) = (Vec::new(), Vec::new());
    let head = UpstreamHead {
        status,
        fields,
        body,
        close: !is_kept,
        keep_alive: None,
        trailer,
        no_trailers,
        names_file,
    };
    Ok(Some((ReceivedHead::Final(head), length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_http::response_head::Framing;

    fn head(text: &str, is_head: bool) -> UpstreamHead {
        match read_head(text.as_bytes(), is_head, false) {
            Ok(Some((ReceivedHead::Final(head), length))) if length == text.len() => head,
            other => panic!("{other:?} of {text}"),
        }
    }

    #[test]
    fn a_cgi_head_decides_the_framing() {
        for (text, is_head, status, body) in [
            ("Content-Type: a/b\r\n\r\n", false, 200, ReceivedBody::Framed(Framing::UntilClose)),
            (
                "Status: 404\r\nContent-Length: 3\r\n\r\n",
                false,
                404,
                ReceivedBody::Framed(Framing::Length(3)),
            ),
            (
                "Status: 200\r\nContent-Length: 3\r\n\r\n",
                true,
                200,
                ReceivedBody::Withheld(Some(3)),
            ),
            ("Status: 304\r\n\r\n", false, 304, ReceivedBody::Withheld(None)),
            ("HTTP/1.1 201 Made\r\n\r\n", false, 201, ReceivedBody::Framed(Framing::UntilClose)),
        ] {
            let head = head(text, is_head);
            assert_eq!(
                (head.status.as_u16(), head.body, head.close),
                (status, body, true),
                "{text}"
            );
        }
    }

    #[test]
    fn an_incomplete_head_waits_and_a_malformed_one_is_refused() {
        for text in ["H", "HTTP", "HTTP/1.1 200", "HTTP/1.1 200 OK\r\n", "Status: 2"] {
            assert!(read_head(text.as_bytes(), false, true).unwrap().is_none(), "{text}");
        }
        for text in ["HTTP/9 200 OK\r\n\r\n", "PHP Fatal\r\n\r\n", "X-A: b\r\n\r\n"] {
            assert!(read_head(text.as_bytes(), false, true).is_err(), "{text}");
        }
    }
}

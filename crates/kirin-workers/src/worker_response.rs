//! Response heads as workers send them. No I/O.

use http::header::HeaderName;
use kirin_client_bytes::NoRoom;
use kirin_http::chunked::ChunkedError;
use kirin_http::response_head::{self, BadResponse, Field, Framing};
use kirin_http::{FieldLines, ReceivedBody, ReceivedHead, StatusCode};

use crate::handed_file::{BadHandedFile, HandedFile};

/// The head of a final response.
#[derive(Debug)]
pub(crate) struct WorkerHead {
    pub(crate) status: StatusCode,
    pub(crate) fields: FieldLines,
    pub(crate) body: ReceivedBody,
    /// What the worker does after this response.
    pub(crate) afterwards: Afterwards,
    /// The file that Kirin sends in place of the body.
    pub(crate) file: Option<HandedFile>,
    /// What it says about trailers, which is seldom anything.
    pub(crate) trailer_names: Option<Box<TrailerNames>>,
}

/// What a head says about the trailers behind its body.
#[derive(Debug)]
pub(crate) struct TrailerNames {
    /// The values of `Trailer`. The client gets them only if it gets the trailers.
    pub(crate) announced: Vec<Vec<u8>>,
    /// Fields that must not be trailers, because `Connection` names them.
    pub(crate) excluded: Vec<HeaderName>,
}

impl WorkerHead {
    /// Returns the fields that must not be trailers.
    pub(crate) fn excluded_trailers(&self) -> &[HeaderName] {
        self.trailer_names.as_ref().map_or(&[], |names| &names.excluded)
    }
}

/// What a worker does after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Afterwards {
    /// The worker waits for the next request.
    Waits,
    /// The worker does work for which the client does not wait. It sends a line end when that is
    /// done.
    CleansUp,
    /// The worker leaves.
    Leaves,
    /// The connection ends, and the worker goes on with its others.
    EndsConnection,
}

impl Afterwards {
    /// Checks the bytes after a response. There must be none, except the line end of a worker that
    /// has cleaned up already.
    pub(crate) fn check_left(self, left: &[u8]) -> Result<(), ProtocolError> {
        match (self, left) {
            (_, []) | (Afterwards::CleansUp, [b'\n']) => Ok(()),
            _ => Err(ProtocolError::Excess(left.len())),
        }
    }
}

/// Why a worker has broken the protocol. Its connection is closed, and the client gets 502.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProtocolError {
    #[error(transparent)]
    Head(#[from] BadResponse),
    #[error(transparent)]
    Chunked(#[from] ChunkedError),
    #[error(transparent)]
    File(#[from] BadHandedFile),
    #[error("response has neither Content-Length nor chunks")]
    NoLength,
    #[error("{0} bytes after the end of the response")]
    Excess(usize),
    #[error("response ended before its end")]
    Truncated,
    #[error(transparent)]
    NoRoom(#[from] NoRoom),
    #[error("through the ring came {0}")]
    Ring(String),
}

/// Parses the head at the start of `input`. Returns it with its length; `None` if it is not
/// complete.
pub(crate) fn read_head(
    input: &[u8],
    is_head: bool,
) -> Result<Option<(ReceivedHead<WorkerHead>, usize)>, ProtocolError> {
    let mut file = None;
    let mut cleans_up = false;
    let mut upgrade: Vec<Vec<u8>> = Vec::new();
    let mut announced: Vec<Vec<u8>> = Vec::new();
    let parsed = response_head::parse(input, |name, value| {
        match name.len() {
            7 if name.eq_ignore_ascii_case("trailer") => announced.push(value.to_vec()),
            7 if name.eq_ignore_ascii_case("upgrade") => upgrade.push(value.to_vec()),
            // What the adapter says takes precedence.
            10 if name.eq_ignore_ascii_case("x-sendfile") => {
                file.get_or_insert_with(|| Ok(HandedFile::named(value)));
            }
            10 if name.eq_ignore_ascii_case("kirin-file") => file = Some(HandedFile::parse(value)),
            13 if name.eq_ignore_ascii_case("kirin-cleanup") => cleans_up = true,
            _ => return Field::Keep,
        }
        Field::Take
    })?;
    let Some((head, length)) = parsed else { return Ok(None) };
    let (status, mut fields) = (head.status, head.fields);
    // The client needs the protocols of both (RFC 9110 sections 15.2.2 and 15.5.22).
    if matches!(status, StatusCode::SWITCHING_PROTOCOLS | StatusCode::UPGRADE_REQUIRED) {
        for protocols in upgrade {
            fields.try_push(b"Upgrade", &protocols).map_err(BadResponse::from)?;
        }
    }
    if status == StatusCode::SWITCHING_PROTOCOLS {
        return Ok(Some((ReceivedHead::Switched { fields }, length)));
    }
    if status.is_informational() {
        return Ok(Some((ReceivedHead::Informational { status, fields }, length)));
    }
    let body = ReceivedBody::new(head.framing, status, is_head);
    if body == ReceivedBody::Framed(Framing::UntilClose) {
        return Err(ProtocolError::NoLength);
    }
    let afterwards = match (cleans_up, head.close) {
        (true, _) => Afterwards::CleansUp,
        (false, true) => Afterwards::Leaves,
        (false, false) => Afterwards::Waits,
    };
    let (file, excluded) = (file.transpose()?, head.named_by_connection);
    let says_nothing = announced.is_empty() && excluded.is_empty();
    let trailer_names = (!says_nothing).then(|| Box::new(TrailerNames { announced, excluded }));
    let head = WorkerHead { status, fields, body, afterwards, file, trailer_names };
    Ok(Some((ReceivedHead::Final(head), length)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::BytesMut;
    use proptest::prelude::*;

    /// Returns a final head.
    fn head(text: &str, is_head: bool) -> Result<Option<(WorkerHead, usize)>, ProtocolError> {
        Ok(read_head(text.as_bytes(), is_head)?.map(|(head, length)| match head {
            ReceivedHead::Final(head) => (head, length),
            other => panic!("{other:?} of {text}"),
        }))
    }

    #[test]
    fn the_body_follows_from_method_status_and_framing() {
        for (lines, is_head, expected) in [
            ("200\r\nContent-Length: 5\r\n", false, ReceivedBody::Framed(Framing::Length(5))),
            (
                "200 OK\r\nTransfer-Encoding: chunked\r\n",
                false,
                ReceivedBody::Framed(Framing::Chunked),
            ),
            ("200\r\nContent-Length: 5\r\n", true, ReceivedBody::Withheld(Some(5))),
            ("200\r\n", true, ReceivedBody::Withheld(None)),
            ("204\r\n", false, ReceivedBody::Withheld(None)),
            ("304\r\nContent-Length: 7\r\n", false, ReceivedBody::Withheld(None)),
        ] {
            let text = format!("HTTP/1.1 {lines}\r\n");
            let (head, length) = head(&text, is_head).unwrap().expect(&text);
            assert_eq!((head.body, length), (expected, text.len()), "{text}");
        }
    }

    #[test]
    fn only_a_426_response_keeps_its_upgrade_field() {
        for (status, kept) in [(426, Some(&b"x/1"[..])), (200, None)] {
            let text = format!("HTTP/1.1 {status}\r\nUpgrade: x/1\r\nContent-Length: 0\r\n\r\n");
            let (head, _) = head(&text, false).unwrap().unwrap();
            assert_eq!(head.fields.get("upgrade"), kept, "{status}");
        }
    }

    #[test]
    fn a_body_that_only_the_end_of_the_connection_ends_is_refused() {
        assert!(matches!(head("HTTP/1.1 200\r\n\r\n", false), Err(ProtocolError::NoLength)));
    }

    #[test]
    fn informational_responses_come_one_by_one_and_101_is_one_of_its_own() {
        let first = "HTTP/1.1 103\r\nLink: </a>\r\n\r\n";
        let text = format!("{first}HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n");
        let (found, length) = read_head(text.as_bytes(), false).unwrap().unwrap();
        let ReceivedHead::Informational { status, fields } = found else { panic!("{found:?}") };
        assert_eq!(
            (status.as_u16(), fields.get("link"), length),
            (103, Some(&b"</a>"[..]), first.len())
        );
        let text = b"HTTP/1.1 101\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nraw";
        let (found, length) = read_head(text, false).unwrap().unwrap();
        let ReceivedHead::Switched { fields } = found else { panic!("{found:?}") };
        assert_eq!((fields.get("upgrade"), length), (Some(&b"x"[..]), text.len() - 3));
    }

    #[test]
    fn the_file_to_send_is_not_told_to_the_client() {
        let text = "HTTP/1.1 200\r\nX-Sendfile: /srv/a b\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        let (head, _) = head(text, false).unwrap().unwrap();
        assert_eq!(head.file, Some(HandedFile::Named("/srv/a b".into())));
        assert_eq!(head.fields.get("x-sendfile"), None);
        assert_eq!(head.afterwards, Afterwards::Leaves);
        for lines in [
            "X-Sendfile: /x\r\nKirin-File: 1 2 3 4 5 /y\r\n",
            "Kirin-File: 1 2 3 4 5 /y\r\nX-Sendfile: /x\r\n",
        ] {
            let (head, _) =
                self::head(&format!("HTTP/1.1 200\r\n{lines}Content-Length: 0\r\n\r\n"), false)
                    .unwrap()
                    .unwrap();
            assert!(matches!(head.file, Some(HandedFile::Opened { .. })), "{:?}", head.file);
            assert_eq!(head.fields.len_bytes(), 0);
        }
        let malformed = head_of_malformed_file();
        assert!(matches!(malformed, Err(ProtocolError::File(_))), "{malformed:?}");
    }

    fn head_of_malformed_file() -> Result<Option<(WorkerHead, usize)>, ProtocolError> {
        head("HTTP/1.1 200\r\nKirin-File: 1 2 /y\r\nContent-Length: 0\r\n\r\n", false)
    }

    #[test]
    fn a_worker_says_that_it_cleans_up_and_the_client_does_not_hear_of_it() {
        let text =
            "HTTP/1.1 200\r\nKirin-Cleanup: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n";
        let (head, _) = head(text, false).unwrap().unwrap();
        assert_eq!(
            (head.afterwards, head.fields.get("kirin-cleanup")),
            (Afterwards::CleansUp, None)
        );
    }

    #[test]
    fn behind_a_response_is_nothing_but_the_word_of_a_worker_that_has_cleaned_up() {
        for (afterwards, left, good) in [
            (Afterwards::Waits, &b""[..], true),
            (Afterwards::Waits, b"\n", false),
            (Afterwards::CleansUp, b"", true),
            (Afterwards::CleansUp, b"\n", true),
            (Afterwards::CleansUp, b"\n\n", false),
            (Afterwards::CleansUp, b"H", false),
            (Afterwards::Leaves, b"\n", false),
        ] {
            assert_eq!(afterwards.check_left(left).is_ok(), good, "{afterwards:?} {left:?}");
        }
    }

    proptest! {
        #[test]
        fn a_response_in_any_pieces_gives_the_same_data(
            body in prop::collection::vec(any::<u8>(), 0..300),
            chunk in 1usize..50,
            chunked: bool,
            cuts in prop::collection::vec(0usize..600, 0..8),
        ) {
            let mut wire = b"HTTP/1.1 103\r\n\r\nHTTP/1.1 200\r\nA: b\r\n".to_vec();
            if chunked {
                wire.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
                for piece in body.chunks(chunk) {
                    wire.extend_from_slice(format!("{:x}\r\n", piece.len()).as_bytes());
                    wire.extend_from_slice(piece);
                    wire.extend_from_slice(b"\r\n");
                }
                wire.extend_from_slice(b"0\r\n\r\n");
            } else {
                wire.extend_from_slice(format!("Content-Length: {}\r\n\r\n", body.len()).as_bytes());
                wire.extend_from_slice(&body);
            }
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(wire.len())).collect();
            cuts.sort_unstable();
            cuts.push(wire.len());

            let (mut buffer, mut from, mut decoder) = (Vec::new(), 0, None);
            let mut data = BytesMut::new();
            for cut in cuts {
                buffer.extend_from_slice(&wire[from..cut]);
                from = cut;
                while decoder.is_none() {
                    let Some((head, length)) = read_head(&buffer, false).unwrap() else { break };
                    buffer.drain(..length);
                    if let ReceivedHead::Final(head) = head {
                        decoder = Some(head.body.decoder());
                    }
                }
                let Some(decoder) = &mut decoder else { continue };
                let used = decoder.decode(&buffer, &mut data).unwrap();
                prop_assert_eq!(used, buffer.len(), "nothing is left over inside a body");
                buffer.clear();
            }
            prop_assert!(decoder.is_some_and(|decoder| decoder.is_done()));
            prop_assert_eq!(&data[..], &body[..]);
        }

        #[test]
        fn nothing_that_a_worker_sends_panics(input in prop::collection::vec(any::<u8>(), 0..200), is_head: bool) {
            let _ = read_head(&input, is_head);
            let _ = read_head(&[b"HTTP/1.1 200\r\n", &input[..]].concat(), is_head);
        }
    }
}

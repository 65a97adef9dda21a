//! An answer that has come through the ring: the bytes that would have come over the connection.
//! No I/O.

use bytes::{Bytes, BytesMut};
use kirin_http::response_head::{BadResponse, Framing};
use kirin_http::{ReceivedBody, ReceivedHead};

use crate::worker_response::{ProtocolError, WorkerHead, read_head};

/// Takes a complete answer apart.
pub(crate) fn parse_answer(
    answer: Vec<u8>,
    is_head: bool,
) -> Result<(WorkerHead, Bytes), ProtocolError> {
    let answer = Bytes::from(answer);
    let (head, length) = match read_head(&answer, is_head)? {
        Some((ReceivedHead::Final(head), length)) => (head, length),
        // These belong on the connection.
        Some(_) => return Err(ProtocolError::Ring("an answer that is not final".into())),
        None => return Err(BadResponse::TooLong.into()),
    };
    let rest = answer.slice(length..);
    let data = match head.body {
        ReceivedBody::Framed(Framing::Chunked) => {
            let (mut decoder, mut data) = (head.body.decoder(), BytesMut::new());
            let used = decoder.decode(&rest, &mut data)?;
            if !decoder.is_done() {
                return Err(ProtocolError::Truncated);
            }
            check_end(rest.len() - used)?;
            data.freeze()
        }
        body => {
            let length = match body {
                ReceivedBody::Framed(_) => body.length().unwrap_or(0),
                _ => 0,
            };
            let Some(left) = (rest.len() as u64).checked_sub(length) else {
                return Err(ProtocolError::Truncated);
            };
            check_end(left as usize)?;
            rest
        }
    };
    Ok((head, data))
}

fn check_end(left: usize) -> Result<(), ProtocolError> {
    match left {
        0 => Ok(()),
        left => Err(ProtocolError::Excess(left)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::worker_response::Afterwards;
    use proptest::prelude::*;

    fn parts(answer: &str, is_head: bool) -> Result<(WorkerHead, Bytes), ProtocolError> {
        parse_answer(answer.as_bytes().to_vec(), is_head)
    }

    #[test]
    fn a_complete_answer_has_a_head_and_exactly_its_body() {
        let (head, data) = parts("HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabc", false).unwrap();
        assert_eq!((head.status.as_u16(), &data[..]), (200, &b"abc"[..]));
        let chunked = "HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
        assert_eq!(&parts(chunked, false).unwrap().1[..], b"abc");
        let (head, data) = parts("HTTP/1.1 200\r\nContent-Length: 3\r\n\r\n", true).unwrap();
        assert_eq!((head.body.length(), &data[..]), (None, &b""[..]));
        let leaving = "HTTP/1.1 204\r\nConnection: close\r\n\r\n";
        assert_eq!(parts(leaving, false).unwrap().0.afterwards, Afterwards::Leaves);
    }

    #[test]
    fn an_answer_that_is_not_complete_or_too_long_is_refused() {
        for (answer, is_head) in [
            ("", false),
            ("HTTP/1.1 200\r\nContent-Length: 3\r\n", false),
            ("HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nab", false),
            ("HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabcd", false),
            ("HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabc", true),
            ("HTTP/1.1 200\r\n\r\nabc", false),
            ("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", false),
            ("HTTP/1.1 200\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nx", false),
            ("HTTP/1.1 103\r\n\r\nHTTP/1.1 200\r\nContent-Length: 0\r\n\r\n", false),
            ("HTTP/1.1 101\r\nUpgrade: x\r\n\r\n", false),
        ] {
            let result = parts(answer, is_head);
            assert!(result.is_err(), "{answer:?}: {result:?}");
        }
    }

    proptest! {
        #[test]
        fn nothing_in_a_slot_panics(bytes in prop::collection::vec(any::<u8>(), 0..200), is_head: bool) {
            let _ = parse_answer(bytes.clone(), is_head);
            let _ = parse_answer([b"HTTP/1.1 200\r\nContent-Length: 9\r\n", &bytes[..]].concat(), is_head);
        }
    }
}

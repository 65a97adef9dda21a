//! An answer that has come through the ring: the bytes that would have come over the connection.
//! No I/O.

use bytes::{Bytes, BytesMut};
use kirin_http::response_head::{BadResponse, Framing};
use kirin_http::{ReceivedBody, ReceivedHead};

use crate::worker_response::{ProtocolError, WorkerHead, read_head};

/// Takes a complete answer apart.
pub(super) fn parse(answer: Vec<u8>, is_head: bool) -> Result<(WorkerHead, Bytes), ProtocolError> {
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

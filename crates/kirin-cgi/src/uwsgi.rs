//! The uwsgi protocol (`Protocol.rst` of uWSGI). A request is one packet of names and values,
//! followed by the body. The response is plain HTTP, up to the end of the connection. No I/O.

use crate::request_block::RequestBlock;

/// The request does not fit into a packet, whose size has 16 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request head has more than 64 KB, which the uwsgi protocol cannot say")]
pub struct TooLong;

/// Encodes the packet of a request with a body of `content_length` bytes.
pub fn encode(block: &RequestBlock, content_length: u64) -> Result<Vec<u8>, TooLong> {
    let mut packet = vec![0; 4];
    let mut number = itoa::Buffer::new();
    let length: (&[u8], &[u8]) = (b"CONTENT_LENGTH", number.format(content_length).as_bytes());
    for (name, value) in block.variables().chain([length]) {
        for text in [name, value] {
            packet
                .extend_from_slice(&u16::try_from(text.len()).map_err(|_| TooLong)?.to_le_bytes());
            packet.extend_from_slice(text);
        }
    }
    let size = u16::try_from(packet.len() - 4).map_err(|_| TooLong)?;
    // Modifiers 0 and 0 stand for a request to the default application.
    packet[1..3].copy_from_slice(&size.to_le_bytes());
    Ok(packet)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta_variables::MetaVariables;
    use kirin_http::request::{HeadLimits, MAX_FIELDS, Parsed, parse};
    use kirin_http::{Client, ListenAddress, Origin, Peer, RequestNotes};
    use std::mem::MaybeUninit;

    fn packet(field_bytes: usize) -> Result<Vec<u8>, TooLong> {
        let request =
            format!("GET /x HTTP/1.1\r\nHost: h\r\nX-Long: {}\r\n\r\n", "y".repeat(field_bytes));
        let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let limits = HeadLimits { head_bytes: 1 << 20, ..HeadLimits::default() };
        let Ok(Parsed::Complete(head, _)) = parse(request.as_bytes(), &mut storage, &limits) else {
            panic!("not a request")
        };
        let (peer, local) = (Peer::Unix, ListenAddress::Unix("/s".into()));
        let origin = Origin {
            peer: &peer,
            local: &local,
            secure: false,
            client: Client::NotRequested,
            proxy: None,
            now: 0,
            notes: &RequestNotes::default(),
        };
        encode(&RequestBlock::encode(&head, origin, &MetaVariables::default()).unwrap(), 7)
    }

    #[test]
    fn a_request_becomes_a_packet() {
        let packet = packet(3).unwrap();
        assert_eq!((packet[0], packet[3]), (0, 0));
        assert_eq!(usize::from(u16::from_le_bytes([packet[1], packet[2]])), packet.len() - 4);
        let mut rest = &packet[4..];
        let mut texts = Vec::new();
        while let [low, high, after @ ..] = rest {
            let (text, after) = after.split_at(usize::from(u16::from_le_bytes([*low, *high])));
            texts.push(std::str::from_utf8(text).unwrap());
            rest = after;
        }
        let has = |name, value| texts.chunks(2).any(|pair| pair == [name, value]);
        assert!(
            has("REQUEST_METHOD", "GET") && has("HTTP_X_LONG", "yyy") && has("CONTENT_LENGTH", "7")
        );
    }

    #[test]
    fn a_request_that_is_too_long_for_uwsgi_is_refused() {
        assert!(packet(60_000).is_ok());
        assert_eq!(packet(65_500), Err(TooLong));
        assert_eq!(packet(100_000), Err(TooLong));
    }
}

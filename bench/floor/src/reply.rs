//! Parses memcached's text replies. There is no I/O: the parser takes bytes and returns the next
//! element with its length.
//!
//! `doc/protocol.txt` of memcached describes the format in "Retrieval command" and "Storage
//! commands".

use memchr::memchr;

/// One line of a reply, with the data block that follows it if the line announces one.
#[derive(Debug, PartialEq, Eq)]
pub enum Element<'a> {
    /// `VALUE key flags bytes` and its data.
    Value {
        /// The key of the item.
        key: &'a [u8],
        /// The length of the data in bytes.
        bytes: usize,
    },
    /// `END`, which ends the reply to a get.
    End,
    /// `STORED`, which is the reply to a set.
    Stored,
}

/// Returns the first element in `received` and its length in bytes, or `None` while it is
/// incomplete. Any other line is an error, because this load sends nothing that a server may
/// refuse.
pub fn next_element(received: &[u8]) -> Result<Option<(Element<'_>, usize)>, String> {
    let Some(line_end) = memchr(b'\n', received) else { return Ok(None) };
    let length = line_end + 1;
    match received[..line_end].trim_ascii_end() {
        b"END" => Ok(Some((Element::End, length))),
        b"STORED" => Ok(Some((Element::Stored, length))),
        line => {
            let (key, bytes) = key_and_length(line)
                .ok_or_else(|| format!("unexpected reply: {}", String::from_utf8_lossy(line)))?;
            let whole = length + bytes + b"\r\n".len();
            Ok((received.len() >= whole).then_some((Element::Value { key, bytes }, whole)))
        }
    }
}

/// Returns the second and the fourth word of `VALUE key flags bytes [cas]`.
fn key_and_length(line: &[u8]) -> Option<(&[u8], usize)> {
    let mut words = line.split(|&byte| byte == b' ');
    if words.next() != Some(b"VALUE".as_slice()) {
        return None;
    }
    let key = words.next()?;
    let bytes = words.nth(1)?.iter().try_fold(0_usize, |number, digit| {
        let digit = digit.is_ascii_digit().then(|| usize::from(digit - b'0'))?;
        number.checked_mul(10)?.checked_add(digit)
    });
    bytes.filter(|&bytes| bytes <= 1024 * 1024 * 1024).map(|bytes| (key, bytes))
}

#[cfg(test)]
mod tests {
    use super::{Element, next_element};
    use proptest::prelude::*;

    #[test]
    fn a_value_is_incomplete_until_its_data_is_there() {
        let reply = b"VALUE bench:00000001 0 5\r\nhello\r\nEND\r\n";
        let whole = reply.len() - b"END\r\n".len();
        for cut in 0..whole {
            assert_eq!(next_element(&reply[..cut]), Ok(None), "cut at {cut}");
        }
        assert_eq!(
            next_element(reply),
            Ok(Some((Element::Value { key: b"bench:00000001", bytes: 5 }, whole)))
        );
        assert_eq!(next_element(&reply[whole..]), Ok(Some((Element::End, 5))));
        assert_eq!(next_element(b"STORED\r\nEND\r\n"), Ok(Some((Element::Stored, 8))));
    }

    #[test]
    fn a_refusal_is_an_error_that_quotes_the_server() {
        for line in
            ["ERROR", "SERVER_ERROR out of memory storing object", "VALUE key 0", "VALUE key 0 -1"]
        {
            let error = next_element(format!("{line}\r\n").as_bytes()).expect_err(line);
            assert!(error.ends_with(line), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_run_past_the_end(received: Vec<u8>) {
            if let Ok(Some((_, length))) = next_element(&received) {
                prop_assert!(length <= received.len());
            }
        }

        #[test]
        fn no_announced_length_makes_it_panic(digits in "[0-9]{0,40}") {
            let _ = next_element(format!("VALUE key 0 {digits}\r\n").as_bytes());
        }
    }
}

//! A cache of response heads in the form that h2 wants. It is for field lines that are prepared
//! once and sent many times (a file, a page of the store). Parsing a head and hashing its names
//! costs more than copying the result.

use std::cell::RefCell;

use bytes::Bytes;
use http::HeaderMap;

/// Heads that an event loop keeps. A page of a site has some ten files.
const HEADS: usize = 64;

thread_local! {
    static PREPARED: RefCell<Vec<Option<Prepared>>> = const { RefCell::new(Vec::new()) };
}

struct Prepared {
    /// The field lines. They are kept so that no other lines can get the same address.
    lines: Bytes,
    fields: HeaderMap,
}

/// Returns the fields of `lines`: those of an earlier call, or those that `make` makes now.
pub(super) fn fields(lines: &Bytes, make: impl FnOnce() -> HeaderMap) -> HeaderMap {
    if lines.is_empty() {
        return make();
    }
    PREPARED.with_borrow_mut(|heads| {
        heads.resize_with(HEADS, || None);
        let Some(place) = heads.get_mut(place(lines)) else { return make() };
        match place {
            Some(prepared) if is_same(&prepared.lines, lines) => prepared.fields.clone(),
            place => {
                let fields = make();
                *place = Some(Prepared { lines: lines.clone(), fields: fields.clone() });
                fields
            }
        }
    })
}

/// Returns the place of a head, by its address. Allocations are at least 16 bytes apart, and
/// usually some hundreds.
fn place(lines: &Bytes) -> usize {
    let address = lines.as_ptr().addr() >> 4;
    (address ^ (address >> 6) ^ (address >> 12)) % HEADS
}

fn is_same(one: &Bytes, other: &Bytes) -> bool {
    one.as_ptr() == other.as_ptr() && one.len() == other.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::HeaderValue;

    fn head(value: &'static str) -> HeaderMap {
        HeaderMap::from_iter([(http::header::SERVER, HeaderValue::from_static(value))])
    }

    #[test]
    fn equal_lines_are_parsed_once() {
        let lines = Bytes::from(b"Server: a\r\n".to_vec());
        assert_eq!(fields(&lines, || head("a")), head("a"));
        assert_eq!(fields(&lines.clone(), || unreachable!()), head("a"));
        assert_eq!(fields(&lines.slice(..0), || head("b")), head("b"));
    }

    #[test]
    fn other_lines_with_the_same_text_are_not_the_same() {
        for index in 0..4 * HEADS {
            let lines = Bytes::from(format!("Server: {index}\r\n"));
            let value: &'static str = if index % 2 == 0 { "even" } else { "odd" };
            assert_eq!(fields(&lines, || head(value)), head(value), "{index}");
        }
    }
}

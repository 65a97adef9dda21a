//! The key under which the store has the page for a request.

use kirin_http::RequestHead;

/// The longest key of memcached, in bytes. A longer target cannot have been stored.
const MAX_KEY_BYTES: usize = 250;

/// Returns the part of the target that can be a key. An absolute target has its path in the middle.
pub fn key_of<'a>(request: &RequestHead<'a>) -> Option<&'a [u8]> {
    let key = match request.query {
        _ if request.target.starts_with('/') => request.target,
        None => request.path,
        Some(_) => return None,
    };
    (key.len() <= MAX_KEY_BYTES).then_some(key.as_bytes())
}

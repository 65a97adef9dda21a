//! The key under which the store has the page for a request.

use std::borrow::Cow;

use kirin_http::RequestHead;
use kirin_store::Namespace;

/// The longest key of memcached, in bytes. A longer target cannot have been stored.
const MAX_KEY_BYTES: usize = 250;

/// Returns the key of the page that `request` asks for on a site with this namespace. An absolute
/// target has its path in the middle.
pub fn key_of<'a>(request: &RequestHead<'a>, namespace: &Namespace) -> Option<Cow<'a, [u8]>> {
    let name = match request.query {
        _ if request.target.starts_with('/') => request.target,
        None => request.path,
        Some(_) => return None,
    };
    let key = namespace.full_name(name.as_bytes())?;
    (key.len() <= MAX_KEY_BYTES).then_some(key)
}

//! Keys in lines for operators. A key may have any bytes, since the meta commands take base64.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_encode};

/// The bytes that memcached encodes: all but the unreserved characters of RFC 3986.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The start of the keys of cached responses (`kirin_cache::key`). No text command can name such a
/// key. The cache is not part of what memcached's clients store, so no list has it.
const CACHED_RESPONSE: &[u8] = b"\0c";

/// Returns the key as it is written in `name=value` lines.
pub(crate) fn uri_encoded(key: &[u8]) -> PercentEncode<'_> {
    percent_encode(key, ENCODED)
}

/// Returns whether a text command can name the key. If not, it needs base64.
pub(crate) fn is_text(key: &[u8]) -> bool {
    !key.iter().any(|byte| byte.is_ascii_control() || *byte == b' ')
}

/// Returns whether the key belongs to a cached response of the web side.
pub(crate) fn is_of_cache(key: &[u8]) -> bool {
    key.starts_with(CACHED_RESPONSE)
}

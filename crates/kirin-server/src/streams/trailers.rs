//! The trailers of requests.

use http::{HeaderMap, HeaderName, HeaderValue};
use kirin_h2::hpack::FieldBuffer;

/// Returns the fields of trailers.
pub(crate) fn header_map(fields: &FieldBuffer) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(fields.len());
    for field in fields.iter() {
        let name = HeaderName::from_bytes(field.name);
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
            let _ = map.try_append(name, value);
        }
    }
    map
}

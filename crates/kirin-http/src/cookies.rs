//! Cookies of a request (RFC 6265 section 4.2.1). For whatever tells visitors apart: rate limits,
//! balancing.

use crate::request::RequestHead;

/// The value of the first cookie of this name.
pub fn cookie<'a>(request: &RequestHead<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let fields = request.fields.iter().filter(|field| field.name.eq_ignore_ascii_case("cookie"));
    fields.flat_map(|field| field.value.split(|byte| *byte == b';')).find_map(|pair| {
        let (pair_name, value) = pair.split_at_checked(memchr::memchr(b'=', pair)?)?;
        (pair_name.trim_ascii() == name).then(|| value[1..].trim_ascii())
    })
}

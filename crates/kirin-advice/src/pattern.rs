//! Groups paths that differ in numbers and ids only: `/memo/17` and `/memo/23` are `/memo/{id}`.

/// The fewest bytes of an id that has letters.
const MIN_ID_BYTES: usize = 16;

/// Returns the path with `{id}` for each segment that is a number, or a long id with digits.
pub fn pattern(path: &str) -> String {
    let segments = path.split('/').map(|segment| if is_id(segment) { "{id}" } else { segment });
    segments.collect::<Vec<_>>().join("/")
}

fn is_id(segment: &str) -> bool {
    let is_number = !segment.is_empty() && segment.bytes().all(|byte| byte.is_ascii_digit());
    let is_hexadecimal = segment.len() >= MIN_ID_BYTES
        && segment.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-')
        && segment.bytes().any(|byte| byte.is_ascii_digit());
    is_number || is_hexadecimal
}

#[cfg(test)]
mod tests {
    use super::pattern;

    #[test]
    fn numbers_and_long_ids_are_one_segment() {
        for (path, expected) in [
            ("/", "/"),
            ("/memo/17", "/memo/{id}"),
            ("/memo/17/neighbours", "/memo/{id}/neighbours"),
            ("/2026/11/22/", "/{id}/{id}/{id}/"),
            ("/u/0189b2c4-7a1e-7c3f-9f00-aabbccddeeff", "/u/{id}"),
            ("/memo/17a", "/memo/17a"),
            ("/deadbeef", "/deadbeef"),
            ("/facefacefacefaceface", "/facefacefacefaceface"),
        ] {
            assert_eq!(pattern(path), expected, "{path}");
        }
    }
}

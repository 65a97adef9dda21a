//! The media types that are worth compressing.

use kirin_http::media_type::essence;

/// Types that are text or not compressed yet. `text/*`, `*+json` and `*+xml` are missing, because
/// they are checked by their pattern.
const COMPRESSIBLE: &[&str] = &[
    "application/javascript",
    "application/json",
    "application/ndjson",
    "application/rtf",
    "application/sql",
    "application/toml",
    "application/vnd.apple.mpegurl",
    "application/vnd.ms-fontobject",
    "application/wasm",
    "application/x-font-ttf",
    "application/x-javascript",
    "application/x-ndjson",
    "application/x-sh",
    "application/x-subrip",
    "application/x-yaml",
    "application/xml",
    "application/xml-dtd",
    "application/yaml",
    "font/collection",
    "font/otf",
    "font/sfnt",
    "font/ttf",
    "image/bmp",
    "image/vnd.microsoft.icon",
    "image/x-icon",
    "message/rfc822",
];

/// Returns whether a body with this `Content-Type` is worth compressing. Unknown types are not:
/// images, films, archives, WOFF fonts and PDFs are compressed already.
pub fn is_compressible(content_type: &[u8]) -> bool {
    let essence = essence(content_type);
    let starts = |start: &[u8]| {
        essence.get(..start.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(start))
    };
    let ends = |end: &[u8]| {
        let at = essence.len().checked_sub(end.len());
        at.and_then(|at| essence.get(at..)).is_some_and(|suffix| suffix.eq_ignore_ascii_case(end))
    };
    starts(b"text/")
        || ends(b"+json")
        || ends(b"+xml")
        || COMPRESSIBLE.iter().any(|known| essence.eq_ignore_ascii_case(known.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_compressed_and_compressed_formats_are_not() {
        for (content_type, expected) in [
            ("text/html", true),
            ("Text/HTML; charset=UTF-8", true),
            ("text/css ; charset=utf-8", true),
            ("text/event-stream", true),
            ("application/json", true),
            ("application/problem+json; a=b", true),
            ("application/atom+xml", true),
            ("image/svg+xml", true),
            ("application/javascript", true),
            ("application/wasm", true),
            ("application/vnd.apple.mpegurl", true),
            ("video/mp2t", false),
            ("font/ttf", true),
            ("font/woff2", false),
            ("font/woff", false),
            ("image/png", false),
            ("image/jpeg", false),
            ("video/mp4", false),
            ("application/zip", false),
            ("application/gzip", false),
            ("application/pdf", false),
            ("application/octet-stream", false),
            ("multipart/byteranges; boundary=x", false),
            ("textile/x", false),
            ("text", false),
            ("+xml", true),
            ("", false),
        ] {
            assert_eq!(is_compressible(content_type.as_bytes()), expected, "{content_type}");
        }
    }
}

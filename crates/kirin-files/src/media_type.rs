//! `Content-Type` by file name.

/// Extensions that mime_guess does not know, or has an outdated type for.
const OVERRIDES: &[(&str, &str)] = &[
    // RFC 9239 made text/javascript the only name.
    ("mjs", "text/javascript"),
    ("cjs", "text/javascript"),
    // Source maps.
    ("map", "application/json"),
    ("zst", "application/zstd"),
];

/// Returns the media type of a file with this name. It has `charset=utf-8` where clients would
/// otherwise guess the encoding of text.
///
/// XML declares its own encoding, and a charset here would overrule that (RFC 7303 section 3). So
/// XML types have no charset.
pub(crate) fn content_type(name: &[u8]) -> String {
    let file_name = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
    let media_type = extension(file_name)
        .and_then(|extension| {
            let overridden =
                OVERRIDES.iter().find(|(known, _)| extension.eq_ignore_ascii_case(known));
            overridden
                .map(|(_, media_type)| *media_type)
                .or_else(|| mime_guess::from_ext(extension).first_raw())
        })
        .unwrap_or("application/octet-stream");
    let is_text = media_type.starts_with("text/") && media_type != "text/xml";
    let is_json = media_type == "application/json" || media_type.ends_with("+json");
    if is_text || is_json || media_type == "application/javascript" {
        format!("{media_type}; charset=utf-8")
    } else {
        media_type.to_owned()
    }
}

fn extension(file_name: &[u8]) -> Option<&str> {
    let dot = file_name.iter().rposition(|byte| *byte == b'.').filter(|at| *at > 0)?;
    std::str::from_utf8(&file_name[dot + 1..]).ok()
}

#[cfg(test)]
mod tests {
    use super::content_type;

    #[test]
    fn the_extension_decides_the_media_type_and_text_is_utf8() {
        for (name, expected) in [
            ("index.html", "text/html; charset=utf-8"),
            ("a/b.CSS", "text/css; charset=utf-8"),
            ("app.js", "text/javascript; charset=utf-8"),
            ("app.mjs", "text/javascript; charset=utf-8"),
            ("app.js.map", "application/json; charset=utf-8"),
            ("data.json", "application/json; charset=utf-8"),
            ("site.webmanifest", "application/manifest+json; charset=utf-8"),
            ("feed.xml", "text/xml"),
            ("icon.svg", "image/svg+xml"),
            ("a.wasm", "application/wasm"),
            ("a.png", "image/png"),
            ("a.woff2", "font/woff2"),
            ("x.css.gz", "application/gzip"),
            ("x.css.zst", "application/zstd"),
            ("x.css.br", "application/octet-stream"),
            ("README", "application/octet-stream"),
            ("a.b/README", "application/octet-stream"),
            (".html", "application/octet-stream"),
            ("a.", "application/octet-stream"),
            ("a.no such type", "application/octet-stream"),
        ] {
            assert_eq!(content_type(name.as_bytes()), expected, "{name}");
        }
        assert_eq!(content_type(b"\xff.\xff"), "application/octet-stream");
    }
}

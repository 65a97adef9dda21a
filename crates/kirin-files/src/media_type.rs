//! `Content-Type` by file name.

use std::collections::HashMap;

use crate::extension_types::of_extension;

/// The charset of text, unless the configuration names another.
const CHARSET: &str = "utf-8";

/// The media types that files get: those of the configuration first, then the common ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MediaTypes {
    own: HashMap<Box<str>, Box<str>>,
    other: Box<str>,
    charset: Option<Box<str>>,
}

impl Default for MediaTypes {
    fn default() -> Self {
        let (own, other) = (HashMap::default(), "application/octet-stream".into());
        Self { own, other, charset: Some(CHARSET.into()) }
    }
}

impl MediaTypes {
    /// Sets the type of all files whose name ends in `.` and `extension`. Upper and lower case are
    /// the same.
    pub fn set(&mut self, extension: &str, media_type: &str) {
        self.own.insert(extension.to_ascii_lowercase().into(), media_type.into());
    }

    /// Sets the type of files whose extension has none. Default: `application/octet-stream`.
    pub fn set_other(&mut self, media_type: &str) {
        self.other = media_type.into();
    }

    /// Sets the charset of text. An empty one stands for no charset. Default: `utf-8`.
    pub fn set_charset(&mut self, charset: &str) {
        self.charset = (!charset.is_empty()).then(|| charset.into());
    }

    /// Returns the media type of a file with this name. It has a charset where clients would
    /// otherwise guess the encoding of text.
    ///
    /// XML declares its own encoding, and a charset here would overrule that (RFC 7303 section 3).
    /// So XML types have no charset. JSON is UTF-8 whatever the charset of text (RFC 8259 section
    /// 8.1).
    pub(crate) fn content_type(&self, name: &[u8]) -> String {
        let file_name = name.rsplit(|byte| *byte == b'/').next().unwrap_or(name);
        let media_type = extension(file_name)
            .and_then(|extension| self.own(extension).or_else(|| of_extension(extension)))
            .unwrap_or(&self.other);
        match &self.charset {
            // The configuration gave the type with its parameters.
            _ if media_type.contains(';') => media_type.to_owned(),
            Some(_) if media_type == "application/json" || media_type.ends_with("+json") => {
                format!("{media_type}; charset={CHARSET}")
            }
            Some(charset)
                if media_type.starts_with("text/") && media_type != "text/xml"
                    || media_type == "application/javascript" =>
            {
                format!("{media_type}; charset={charset}")
            }
            _ => media_type.to_owned(),
        }
    }

    fn own(&self, extension: &str) -> Option<&str> {
        if self.own.is_empty() {
            return None;
        }
        self.own.get(extension.to_ascii_lowercase().as_str()).map(|media_type| &**media_type)
    }
}

fn extension(file_name: &[u8]) -> Option<&str> {
    let dot = file_name.iter().rposition(|byte| *byte == b'.').filter(|at| *at > 0)?;
    std::str::from_utf8(&file_name[dot + 1..]).ok()
}

#[cfg(test)]
mod tests {
    use super::MediaTypes;

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
            let found = MediaTypes::default().content_type(name.as_bytes());
            assert_eq!(found, expected, "{name}");
        }
        let found = MediaTypes::default().content_type(b"\xff.\xff");
        assert_eq!(found, "application/octet-stream");
    }

    #[test]
    fn the_types_and_the_charset_of_the_configuration_come_first() {
        let mut types = MediaTypes::default();
        types.set("HTML", "application/xhtml+xml");
        types.set("md", "text/markdown");
        types.set("old", "text/plain; charset=koi8-r");
        types.set_other("text/plain");
        for (charset, table) in [
            (
                "iso-8859-1",
                [
                    ("a.html", "application/xhtml+xml"),
                    ("a.MD", "text/markdown; charset=iso-8859-1"),
                    ("a.old", "text/plain; charset=koi8-r"),
                    ("README", "text/plain; charset=iso-8859-1"),
                    ("a.css", "text/css; charset=iso-8859-1"),
                    ("a.json", "application/json; charset=utf-8"),
                    ("a.png", "image/png"),
                ],
            ),
            (
                "",
                [
                    ("a.html", "application/xhtml+xml"),
                    ("a.MD", "text/markdown"),
                    ("a.old", "text/plain; charset=koi8-r"),
                    ("README", "text/plain"),
                    ("a.css", "text/css"),
                    ("a.json", "application/json"),
                    ("a.png", "image/png"),
                ],
            ),
        ] {
            types.set_charset(charset);
            for (name, expected) in table {
                assert_eq!(types.content_type(name.as_bytes()), expected, "{name} {charset:?}");
            }
        }
    }
}

//! The segments of a path, and which of them are variable at first sight.

/// The longest segment in bytes that is kept as it is.
const LONGEST_LITERAL: usize = 64;

/// Extensions that stay in a pattern: `/image/{id}.jpg`. The list is fixed, so that a stranger
/// cannot add to it.
const EXTENSIONS: [&str; 40] = [
    "", "atom", "avif", "bin", "bmp", "cgi", "css", "csv", "gif", "gz", "htm", "html", "ico",
    "jpeg", "jpg", "js", "json", "m3u8", "map", "md", "mjs", "mp3", "mp4", "pdf", "php", "pl",
    "png", "rss", "svg", "tar", "ts", "ttf", "txt", "wasm", "webm", "webp", "woff", "woff2", "xml",
    "zip",
];

const DIGIT: u8 = 1;
const HEX: u8 = 2;
const DATE: u8 = 4;
const WORD: u8 = 8;
const VISIBLE: u8 = 16;

/// The classes of each byte.
const CLASSES: [u8; 256] = classes();

const fn classes() -> [u8; 256] {
    let mut classes = [0; 256];
    let mut byte = 0x21;
    while byte < 0x7f {
        let c = byte as u8;
        let mut class = VISIBLE;
        if c.is_ascii_digit() {
            class |= DIGIT | HEX | DATE | WORD;
        } else if c.is_ascii_hexdigit() {
            class |= HEX | WORD;
        } else if c.is_ascii_alphabetic() || c == b'_' {
            class |= WORD;
        }
        if matches!(c, b'-' | b'_' | b':' | b'T' | b'Z') {
            class |= DATE;
        }
        classes[byte] = class;
        byte += 1;
    }
    classes
}

/// The kind of a variable segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum VariableKind {
    /// A number, a hexadecimal string, a UUID, a date or a long random string.
    Id,
    /// One of too many words.
    Name,
    /// All segments beyond the depth of the tree.
    Rest,
    /// The empty segment after a `/` at the end of a path, or an empty value of a parameter.
    Empty,
    /// A parameter that a query does not have.
    Absent,
    /// A configured pattern, in front of the values of its parameters.
    Configured,
}

/// A variable part of a pattern: `{id}`, `{name}.jpg`, `{rest}`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VariableSegment {
    kind: VariableKind,
    /// An index of [`EXTENSIONS`], or that of the configured pattern.
    index: u16,
}

/// A segment as the tree takes it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum PathSegment<'a> {
    /// A word, which may be a part of the site's structure.
    Literal(&'a [u8]),
    /// A segment that is variable at first sight.
    Variable(VariableSegment),
}

impl VariableSegment {
    /// The segments beyond the depth of the tree.
    pub(crate) const REST: Self = Self { kind: VariableKind::Rest, index: 0 };
    /// An empty segment or value.
    pub(crate) const EMPTY: Self = Self { kind: VariableKind::Empty, index: 0 };

    /// A parameter that a query does not have.
    pub(crate) const ABSENT: Self = Self { kind: VariableKind::Absent, index: 0 };

    /// Returns what stands in front of the values of a configured pattern. Returns `None` if the
    /// index is too large.
    pub(crate) fn configured(index: usize) -> Option<Self> {
        Some(Self { kind: VariableKind::Configured, index: u16::try_from(index).ok()? })
    }

    /// Returns the index of the configured pattern for which this stands.
    pub(crate) fn configured_index(self) -> Option<usize> {
        (self.kind == VariableKind::Configured).then_some(self.index.into())
    }

    /// Returns the variable for a word of which there are too many.
    pub(crate) fn for_word(word: &[u8]) -> Self {
        Self { kind: VariableKind::Name, index: split_extension(word).1 }
    }

    /// Returns a number that identifies the variable, for hashing.
    pub(crate) fn code(self) -> u32 {
        (self.kind as u32) << 16 | u32::from(self.index)
    }

    /// Appends the text of the variable, such as `{id}.jpg`.
    pub(crate) fn write(self, out: &mut String) {
        out.push_str(match self.kind {
            VariableKind::Id => "{id}",
            VariableKind::Name => "{name}",
            VariableKind::Rest => "{rest}",
            VariableKind::Empty | VariableKind::Absent | VariableKind::Configured => "",
        });
        let extension = match self.kind {
            VariableKind::Configured => None,
            _ => EXTENSIONS.get(usize::from(self.index)).filter(|known| !known.is_empty()),
        };
        if let Some(extension) = extension {
            out.push('.');
            out.push_str(extension);
        }
    }

    /// Parses the text that [`Self::write`] writes. So the pattern of a pattern is that pattern.
    fn parse(text: &[u8]) -> Option<Self> {
        let (stem, index) = split_extension(text);
        let kind = match stem {
            b"{id}" => VariableKind::Id,
            b"{name}" => VariableKind::Name,
            b"{rest}" => VariableKind::Rest,
            _ => return None,
        };
        Some(Self { kind, index })
    }
}

impl<'a> PathSegment<'a> {
    /// Classifies a segment that is not empty.
    #[inline]
    pub(crate) fn of(text: &'a [u8]) -> Self {
        if text.len() > LONGEST_LITERAL {
            return Self::Variable(VariableSegment { kind: VariableKind::Name, index: 0 });
        }
        let (stem, index) = split_extension(text);
        let mut common = u8::MAX;
        let mut digits = 0;
        for byte in stem {
            let class = CLASSES[usize::from(*byte)];
            common &= class;
            digits += usize::from(class & DIGIT);
        }
        if digits > 0 && is_id(stem, common, digits) {
            return Self::Variable(VariableSegment { kind: VariableKind::Id, index });
        }
        if common & VISIBLE == 0 {
            return Self::Variable(VariableSegment { kind: VariableKind::Name, index });
        }
        if stem.first() == Some(&b'{')
            && let Some(variable) = VariableSegment::parse(text)
        {
            return Self::Variable(variable);
        }
        Self::Literal(text)
    }
}

/// Returns whether a stem with at least one digit is an identifier. `common` has the classes that
/// all of its bytes have.
#[inline]
fn is_id(stem: &[u8], common: u8, digits: usize) -> bool {
    // Numbers, and hexadecimal strings that are no words.
    if common & DIGIT != 0 || (common & HEX != 0 && stem.len() >= 8) {
        return true;
    }
    // Dates and times: 2026-11-22, 2026-11-22T18:40:01Z.
    if common & DATE != 0 && stem.first().is_some_and(u8::is_ascii_digit) {
        return true;
    }
    // ULIDs and other random strings.
    if common & WORD != 0 && stem.len() >= 16 && digits >= 3 {
        return true;
    }
    is_uuid(stem)
}

/// Returns whether a word may be a part of the site's structure, however many words are beside it.
/// Words with digits are mostly identifiers (`user7`, `app-3.css`), but `v2` is a version.
pub(crate) fn may_be_structure(word: &[u8]) -> bool {
    let digits = word.strip_prefix(b"v").unwrap_or(word);
    let is_version = digits.len() < word.len() && digits.iter().all(u8::is_ascii_digit);
    is_version || !word.iter().any(u8::is_ascii_digit)
}

fn is_uuid(text: &[u8]) -> bool {
    text.len() == 36
        && text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
}

/// Splits a known extension off a segment. Returns the stem, and the index of the extension in
/// [`EXTENSIONS`], which is 0 for none.
#[inline]
fn split_extension(text: &[u8]) -> (&[u8], u16) {
    let tail = text.get(text.len().saturating_sub(6)..).unwrap_or_default();
    let Some(at) = tail.iter().rposition(|byte| *byte == b'.') else { return (text, 0) };
    let extension = &tail[at + 1..];
    let stem = &text[..text.len() - extension.len() - 1];
    if stem.is_empty() || extension.is_empty() {
        return (text, 0);
    }
    match EXTENSIONS.binary_search_by(|known| known.as_bytes().cmp(extension)) {
        Ok(index) => (stem, u16::try_from(index).unwrap_or(0)),
        Err(_) => (text, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text_of(segment: &str) -> String {
        match PathSegment::of(segment.as_bytes()) {
            PathSegment::Literal(text) => String::from_utf8_lossy(text).into_owned(),
            PathSegment::Variable(variable) => {
                let mut text = String::new();
                variable.write(&mut text);
                text
            }
        }
    }

    #[test]
    fn words_with_digits_are_variable_except_versions() {
        for (word, expected) in [
            ("login", true),
            ("v1", true),
            ("v12", true),
            ("v", true),
            ("v1x", false),
            ("a7", false),
        ] {
            assert_eq!(may_be_structure(word.as_bytes()), expected, "{word}");
        }
    }

    #[test]
    fn extensions_are_sorted_for_the_search() {
        assert!(EXTENSIONS.is_sorted());
    }

    #[test]
    fn identifiers_are_variable_and_words_are_not() {
        for (segment, expected) in [
            ("7", "{id}"),
            ("0", "{id}"),
            ("18446744073709551616", "{id}"),
            ("7.jpg", "{id}.jpg"),
            ("7.jpx", "7.jpx"),
            ("3f2a9b1c", "{id}"),
            ("3f2a9b1c.js", "{id}.js"),
            ("3f2a", "3f2a"),
            ("deadbeef", "deadbeef"),
            ("facade00", "{id}"),
            ("550e8400-e29b-41d4-a716-446655440000", "{id}"),
            ("550e8400-e29b-41d4-a716-44665544000g", "550e8400-e29b-41d4-a716-44665544000g"),
            ("2026-11-22", "{id}"),
            ("2026-11-22T18:40:01Z", "{id}"),
            ("2026_11.html", "{id}.html"),
            ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "{id}"),
            ("v1", "v1"),
            ("Z", "Z"),
            ("memo", "memo"),
            ("app.css", "app.css"),
            (".env", ".env"),
            (".jpg", ".jpg"),
            ("a.", "a."),
            ("@alice", "@alice"),
            ("a b", "{name}"),
            ("\u{1b}[2J", "{name}"),
            ("日本", "{name}"),
            ("{id}", "{id}"),
            ("{name}.css", "{name}.css"),
            ("{slug}", "{slug}"),
        ] {
            assert_eq!(text_of(segment), expected, "{segment}");
        }
        assert_eq!(text_of(&"a".repeat(64)), "a".repeat(64));
        assert_eq!(text_of(&"a".repeat(65)), "{name}");
    }
}

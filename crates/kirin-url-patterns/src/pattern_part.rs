//! A part of a configured pattern: a text with or without a variable.

/// A segment of a configured pattern, or a value of its query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum PatternPart {
    Literal(Box<[u8]>),
    /// The bytes before and after the variable.
    Variable(Box<[u8]>, Box<[u8]>),
}

impl PatternPart {
    /// Parses a part, which has at most one variable in braces.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let Some((before, after)) = text.split_once('{') else {
            return (!text.contains('}')).then(|| Self::Literal(text.as_bytes().into()));
        };
        let (name, after) = after.split_once('}')?;
        let is_name = !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        let is_plain = |part: &str| !part.contains(['{', '}']);
        (is_name && is_plain(before) && is_plain(after))
            .then(|| Self::Variable(before.as_bytes().into(), after.as_bytes().into()))
    }

    /// Returns whether a segment or a value matches completely.
    pub(crate) fn matches(&self, part: &[u8]) -> bool {
        match self {
            Self::Literal(text) => **text == *part,
            Self::Variable(before, after) => {
                part.len() > before.len() + after.len()
                    && part.starts_with(before)
                    && part.ends_with(after)
            }
        }
    }
}

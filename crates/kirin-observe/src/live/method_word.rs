//! The method in a row of the live table.

use http::Method;

/// The methods that have a word, by the numbers in [`MethodWord`].
static KNOWN: [Method; 7] = [
    Method::GET,
    Method::HEAD,
    Method::POST,
    Method::PUT,
    Method::DELETE,
    Method::PATCH,
    Method::OPTIONS,
];

/// A method. Those that are not listed count as one, because strangers may invent more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MethodWord(u8);

impl MethodWord {
    /// The number of words: one for each method that is listed, and one for all others.
    pub const COUNT: usize = KNOWN.len() + 1;

    /// Returns all words.
    pub fn all() -> impl Iterator<Item = Self> {
        (0..Self::COUNT as u8).map(Self)
    }

    /// Returns the word of a method.
    pub fn of(method: &Method) -> Self {
        Self(KNOWN.iter().position(|known| known == method).unwrap_or(KNOWN.len()) as u8)
    }

    /// Returns the word.
    pub fn name(self) -> &'static str {
        KNOWN.get(usize::from(self.0)).map_or("{other}", Method::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_unknown_methods_are_counted_as_other() {
        for (method, word) in [("GET", "GET"), ("OPTIONS", "OPTIONS"), ("BREW", "{other}")] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(MethodWord::of(&method).name(), word);
        }
        let names: Vec<_> = MethodWord::all().map(MethodWord::name).collect();
        let expected = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "{other}"];
        assert_eq!(names, expected);
    }
}

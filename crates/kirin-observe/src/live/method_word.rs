//! The method in a row of the live table.

use http::Method;

/// The words, by the numbers in [`MethodWord`].
const WORDS: [&str; 8] = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "{other}"];

/// A method. Those that are not listed count as one, because strangers may invent more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MethodWord(u8);

impl MethodWord {
    /// All methods.
    pub const ALL: [Self; 8] =
        [Self(0), Self(1), Self(2), Self(3), Self(4), Self(5), Self(6), Self(7)];

    /// Returns the word of a method.
    pub fn of(method: &Method) -> Self {
        Self(match *method {
            Method::GET => 0,
            Method::HEAD => 1,
            Method::POST => 2,
            Method::PUT => 3,
            Method::DELETE => 4,
            Method::PATCH => 5,
            Method::OPTIONS => 6,
            _ => 7,
        })
    }

    /// Returns the word.
    pub fn name(self) -> &'static str {
        WORDS[usize::from(self.0)]
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
        for (word, name) in MethodWord::ALL.into_iter().zip(WORDS) {
            assert_eq!(word.name(), name);
        }
    }
}

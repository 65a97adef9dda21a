//! The method in a row of the live table.

use http::Method;

/// A method. Those that are not listed count as one, because strangers may invent more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MethodWord(&'static str);

impl MethodWord {
    /// All methods.
    pub const ALL: [Self; 8] = [
        Self("GET"),
        Self("HEAD"),
        Self("POST"),
        Self("PUT"),
        Self("DELETE"),
        Self("PATCH"),
        Self("OPTIONS"),
        Self("{other}"),
    ];

    /// Returns the word of a method.
    pub fn of(method: &Method) -> Self {
        let [known @ .., other] = &Self::ALL;
        *known.iter().find(|word| word.0 == method.as_str()).unwrap_or(other)
    }

    /// Returns the word.
    pub fn name(self) -> &'static str {
        self.0
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
    }
}

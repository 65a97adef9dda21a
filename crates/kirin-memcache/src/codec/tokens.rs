//! The tokens of a command line, which are separated by spaces.

/// The most tokens of a line. memcached reads 23 and leaves the rest to commands with several keys.
/// (`MAX_TOKENS` in `proto_text.c` of memcached 1.6 counts the end of the line as the 24th.)
pub(super) const MAX_TOKENS: usize = 23;

/// The first tokens of a line.
pub(super) struct Tokens<'a> {
    list: [&'a [u8]; MAX_TOKENS],
    count: usize,
}

impl<'a> Tokens<'a> {
    pub(super) fn split(line: &'a [u8]) -> Tokens<'a> {
        let mut tokens = Tokens { list: [b""; MAX_TOKENS], count: 0 };
        for (slot, token) in tokens.list.iter_mut().zip(Keys::split(line)) {
            *slot = token;
            tokens.count += 1;
        }
        tokens
    }

    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Returns the token at `index`, or an empty one if the line has fewer.
    pub(super) fn get(&self, index: usize) -> &'a [u8] {
        self.list.get(index).copied().unwrap_or_default()
    }

    /// Returns the tokens from `index` on.
    pub(super) fn from(&self, index: usize) -> &[&'a [u8]] {
        self.list.get(index..self.count).unwrap_or_default()
    }

    /// Returns whether the last token is `noreply`.
    pub(super) fn noreply(&self) -> bool {
        self.from(0).last() == Some(&b"noreply".as_slice())
    }
}

/// The keys of a retrieval command. They are split off one by one, because the line may be long and
/// its execution may pause between two keys.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys<'a> {
    rest: &'a [u8],
}

impl<'a> Keys<'a> {
    /// Splits `line` into words at spaces.
    pub fn split(line: &'a [u8]) -> Keys<'a> {
        Keys { rest: line }
    }

    /// Returns the words of `line` after the first `count`.
    pub(super) fn after_words(line: &'a [u8], count: usize) -> Keys<'a> {
        let mut words = Keys::split(line);
        for _ in 0..count {
            words.next();
        }
        words
    }

    /// Returns the rest of the line that has not been split yet.
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }
}

impl<'a> Iterator for Keys<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let start = self.rest.iter().position(|byte| *byte != b' ')?;
        let rest = &self.rest[start..];
        let end = memchr::memchr(b' ', rest).unwrap_or(rest.len());
        let (key, rest) = rest.split_at(end);
        self.rest = rest;
        Some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_spaces_separate_tokens() {
        let tokens = Tokens::split(b"  set  a\tb 0 ");
        assert_eq!(tokens.from(0), [&b"set"[..], b"a\tb", b"0"]);
        assert_eq!(tokens.get(3), b"");
        assert_eq!(Tokens::split(b"   ").count(), 0);
    }

    #[test]
    fn a_line_yields_its_first_23_tokens_and_all_its_keys() {
        let line = "k ".repeat(100);
        assert_eq!(Tokens::split(line.as_bytes()).count(), 23);
        assert_eq!(Keys::split(line.as_bytes()).count(), 100);
    }
}

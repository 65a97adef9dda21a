//! Content codings, and sets of them.

/// A content coding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Coding {
    /// `br`, RFC 7932.
    Brotli,
    /// `zstd`, RFC 8878.
    Zstd,
    /// `gzip`, RFC 1952.
    Gzip,
}

impl Coding {
    /// All codings, the best compression first. This is the order of preference for a result that
    /// is kept. For HTML, brotli 5 leaves 26.6 % of the size, and zstd 9 and gzip 6 leave 29 %.
    /// zstd is faster to decode than gzip.
    pub const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// All codings, the fastest first. This is the order of preference for a result that is sent
    /// once. 10 KB of HTML take 33 µs with zstd 3, 43 µs with gzip 2 and 80 µs with brotli 3. All
    /// leave 30 to 31 %.
    pub const BY_SPEED: [Coding; 3] = [Coding::Zstd, Coding::Gzip, Coding::Brotli];

    /// Returns the name in `Content-Encoding`.
    pub fn name(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// Returns the coding of this name in a field.
    pub fn from_name(name: &[u8]) -> Option<Coding> {
        // "a recipient SHOULD consider `x-gzip` to be equivalent" (RFC 9110 section 8.4.1.3)
        if name.eq_ignore_ascii_case(b"x-gzip") {
            return Some(Coding::Gzip);
        }
        Self::ALL.into_iter().find(|coding| name.eq_ignore_ascii_case(coding.name().as_bytes()))
    }

    /// Returns its index in [`Coding::ALL`].
    pub fn index(self) -> usize {
        self as usize
    }
}

/// A set of codings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Codings(u8);

impl Codings {
    /// The empty set.
    pub const NONE: Codings = Codings(0);
    /// The set of all codings.
    pub const ALL: Codings = Codings(0b111);

    /// Returns whether `coding` is in the set.
    pub fn has(self, coding: Coding) -> bool {
        self.0 & 1 << coding.index() != 0
    }

    /// Returns the set with `coding` added.
    #[must_use]
    pub fn with(self, coding: Coding) -> Codings {
        Codings(self.0 | 1 << coding.index())
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Coding> for Codings {
    fn from_iter<I: IntoIterator<Item = Coding>>(codings: I) -> Self {
        codings.into_iter().fold(Codings::NONE, Codings::with)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_coding_has_a_name_of_its_own_and_a_place_in_a_set() {
        for (index, coding) in Coding::ALL.into_iter().enumerate() {
            assert_eq!(coding.index(), index);
            assert_eq!(Coding::from_name(coding.name().to_uppercase().as_bytes()), Some(coding));
            assert!(Codings::ALL.has(coding) && !Codings::NONE.has(coding));
            let others: Codings =
                Coding::ALL.into_iter().filter(|other| *other != coding).collect();
            assert!(!others.has(coding) && others.with(coding) == Codings::ALL);
        }
        assert_eq!(Coding::from_name(b"x-gzip"), Some(Coding::Gzip));
        assert_eq!(Coding::from_name(b"deflate"), None);
        assert!(Coding::BY_SPEED.into_iter().collect::<Codings>() == Codings::ALL);
    }
}

//! Content codings (RFC 9110 section 12.5.3): which of the variants beside a file a client gets. Pure.

/// A content coding that a file can lie beside its original in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Coding {
    Brotli,
    Zstd,
    Gzip,
}

impl Coding {
    /// Best compression first; the order in which equal wishes of a client are met.
    pub(crate) const ALL: [Coding; 3] = [Coding::Brotli, Coding::Zstd, Coding::Gzip];

    /// The name in `Content-Encoding`.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Coding::Brotli => "br",
            Coding::Zstd => "zstd",
            Coding::Gzip => "gzip",
        }
    }

    /// What the name of the variant ends in.
    pub(crate) fn file_suffix(self) -> &'static str {
        match self {
            Coding::Brotli => ".br",
            Coding::Zstd => ".zst",
            Coding::Gzip => ".gz",
        }
    }
}

/// The weight of a coding, in thousandths; 0 is "not acceptable".
type Weight = u16;

/// What a client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct AcceptEncoding {
    /// In the order of [`Coding::ALL`].
    weights: [Option<Weight>; 3],
    identity: Option<Weight>,
    any_other: Option<Weight>,
}

impl AcceptEncoding {
    /// Reads the field's value. A member that is malformed is left out. No field means that the client does not say, and
    /// then it gets the original.
    pub(crate) fn parse(value: Option<&[u8]>) -> Self {
        let mut accept = Self::default();
        for member in value.unwrap_or(b"").split(|byte| *byte == b',') {
            let mut parts = member.split(|byte| *byte == b';');
            let name = parts.next().unwrap_or(b"").trim_ascii();
            let Some(weight) = weight(parts) else { continue };
            let is = |coding: &[u8]| name.eq_ignore_ascii_case(coding);
            let slot = if is(b"br") {
                &mut accept.weights[0]
            } else if is(b"zstd") {
                &mut accept.weights[1]
            } else if is(b"gzip") || is(b"x-gzip") {
                // "a recipient SHOULD consider `x-gzip` to be equivalent" (RFC 9110 section 8.4.1.3)
                &mut accept.weights[2]
            } else if is(b"identity") {
                &mut accept.identity
            } else if is(b"*") {
                &mut accept.any_other
            } else {
                continue;
            };
            // The first mention counts.
            slot.get_or_insert(weight);
        }
        accept
    }

    /// The best of the variants that are there, or none for the original. The original is also what a client gets that
    /// refuses everything: better than no page.
    pub(crate) fn choose(&self, is_there: impl Fn(Coding) -> bool) -> Option<Coding> {
        // Unless it is named or refused, the original is what the client takes when nothing else fits.
        let mut best = self.identity.unwrap_or(0);
        let mut chosen = None;
        for (coding, weight) in Coding::ALL.into_iter().zip(self.weights) {
            let weight = weight.or(self.any_other).unwrap_or(0);
            // A variant as welcome as the original wins: it is smaller.
            let better = if chosen.is_none() { weight >= best } else { weight > best };
            if weight > 0 && better && is_there(coding) {
                (best, chosen) = (weight, Some(coding));
            }
        }
        chosen
    }
}

/// `;q=0.5` in thousandths; 1000 without one, `None` when malformed (RFC 9110 section 12.4.2).
fn weight<'a>(mut parameters: impl Iterator<Item = &'a [u8]>) -> Option<Weight> {
    let Some(parameter) = parameters.next() else { return Some(1000) };
    let (b"q=" | b"Q=", value) = parameter.trim_ascii().split_at_checked(2)? else { return None };
    if parameters.next().is_some() {
        return None;
    }
    let (whole, fraction) = match value {
        [whole] => (whole, &b""[..]),
        [whole, b'.', fraction @ ..] if fraction.len() <= 3 => (whole, fraction),
        _ => return None,
    };
    let mut weight = match whole {
        b'0' => 0,
        b'1' => 1000,
        _ => return None,
    };
    let mut place = 100;
    for digit in fraction {
        weight += place * Weight::from(digit.is_ascii_digit().then(|| digit - b'0')?);
        place /= 10;
    }
    (weight <= 1000).then_some(weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BR: Option<Coding> = Some(Coding::Brotli);
    const ZSTD: Option<Coding> = Some(Coding::Zstd);
    const GZIP: Option<Coding> = Some(Coding::Gzip);

    fn choose(value: &str, variants: &str) -> Option<Coding> {
        let is_there = |coding: Coding| variants.split(' ').any(|name| name == coding.name());
        AcceptEncoding::parse(Some(value.as_bytes())).choose(is_there)
    }

    #[test]
    fn weights_then_compression_decide_between_the_variants_that_are_there() {
        for (value, variants, expected) in [
            ("gzip", "br zstd gzip", GZIP),
            ("GZip", "br zstd gzip", GZIP),
            ("x-gzip", "gzip", GZIP),
            ("gzip, deflate, br, zstd", "br zstd gzip", BR),
            ("gzip, deflate, br, zstd", "zstd gzip", ZSTD),
            ("gzip, deflate, br, zstd", "gzip", GZIP),
            ("gzip, deflate, br, zstd", "", None),
            ("br;q=0.5, gzip;q=0.8", "br gzip", GZIP),
            ("br;q=0.5, gzip;q=0.8", "br", BR),
            ("br;q=0.801, gzip;q=0.8", "br gzip", BR),
            ("br;q=0.8, zstd;q=0.8", "br zstd", BR),
            ("br;q=0, gzip", "br gzip", GZIP),
            ("br;q=0.000", "br", None),
            ("br ; q=1.000", "br", BR),
            ("br;Q=1", "br", BR),
            ("br;q=1.", "br", BR),
            ("*", "gzip", GZIP),
            ("*", "br gzip", BR),
            ("*;q=0", "br gzip", None),
            ("gzip, *;q=0", "br gzip", GZIP),
            ("br;q=0, *", "br gzip", GZIP),
            ("*;q=0.1, gzip;q=0.2", "br gzip", GZIP),
            ("identity", "br gzip", None),
            ("identity, gzip", "gzip", GZIP),
            ("identity;q=1, gzip;q=0.5", "gzip", None),
            ("identity;q=0.5, gzip;q=1", "gzip", GZIP),
            ("identity;q=0", "gzip", None),
            ("identity;q=0, gzip;q=0.1", "gzip", GZIP),
            ("identity;q=0, *;q=0", "gzip", None),
            ("", "br", None),
            (",, ,gzip,", "gzip", GZIP),
            ("gzip;q=0, gzip", "gzip", None),
            ("deflate, compress", "br zstd gzip", None),
            ("gzip;q=1.001", "gzip", None),
            ("gzip;q=2", "gzip", None),
            ("gzip;q=-1", "gzip", None),
            ("gzip;q=0.1234", "gzip", None),
            ("gzip;q=", "gzip", None),
            ("gzip;q", "gzip", None),
            ("gzip;level=9", "gzip", None),
            ("gzip;q=1;q=0", "gzip", None),
            ("gzip;q=abc, br", "br gzip", BR),
            ("gzip br", "br gzip", None),
            ("gzipx", "gzip", None),
        ] {
            assert_eq!(choose(value, variants), expected, "Accept-Encoding: {value} with {variants}");
        }
        assert_eq!(AcceptEncoding::parse(None).choose(|_| true), None);
    }

    proptest! {
        #[test]
        fn a_coding_is_chosen_only_if_it_is_there_and_was_named(value in "[a-z0-9;=,. *]{0,60}", there in 0u8..8) {
            let is_there = |coding: Coding| there & (1 << coding as u8) != 0;
            if let Some(coding) = AcceptEncoding::parse(Some(value.as_bytes())).choose(is_there) {
                prop_assert!(is_there(coding));
                prop_assert!(value.contains(coding.name()) || value.contains('*'), "{coding:?} for {value}");
            }
        }
    }
}

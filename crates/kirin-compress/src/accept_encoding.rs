//! `Accept-Encoding` (RFC 9110 section 12.5.3): chooses the variant that a client gets.

use kirin_http::field_list::members;

use crate::coding::Coding;

/// The weight of a coding in thousandths. 0 means "not acceptable".
type Weight = u16;

/// The codings that a client accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AcceptEncoding {
    /// The weights, in the order of [`Coding::ALL`].
    weights: [Option<Weight>; 3],
    identity: Option<Weight>,
    any_other: Option<Weight>,
}

impl AcceptEncoding {
    /// Parses the field's value. A malformed member is ignored. A client without the field has no
    /// preference and gets the original.
    pub fn parse(value: Option<&[u8]>) -> Self {
        let mut accept = Self::default();
        let Some(value) = value else { return accept };
        for member in members(value) {
            let mut parts = member.split(|byte| *byte == b';');
            let name = parts.next().unwrap_or(b"").trim_ascii();
            let Some(weight) = weight(parts) else { continue };
            let slot = match Coding::from_name(name) {
                Some(coding) => &mut accept.weights[coding.index()],
                None if name.eq_ignore_ascii_case(b"identity") => &mut accept.identity,
                None if name == b"*" => &mut accept.any_other,
                None => continue,
            };
            // The first mention counts.
            slot.get_or_insert(weight);
        }
        accept
    }

    /// Returns the best variant that is available, or `None` for the original. Of variants with the
    /// same weight, the first one in `order` is chosen. A client that refuses everything gets the
    /// original, which is better than no response.
    pub fn choose(&self, order: &[Coding], is_there: impl Fn(Coding) -> bool) -> Option<Coding> {
        // If the original is neither named nor refused, the client gets it when nothing else fits.
        let mut best = self.identity.unwrap_or(0);
        let mut chosen = None;
        for coding in order.iter().copied() {
            let weight = self.weight(coding);
            // A variant with the same weight as the original is chosen, because it is smaller.
            let better = if chosen.is_none() { weight >= best } else { weight > best };
            if weight > 0 && better && is_there(coding) {
                (best, chosen) = (weight, Some(coding));
            }
        }
        chosen
    }

    /// Returns whether the client accepts `coding`.
    pub fn takes(&self, coding: Coding) -> bool {
        self.weight(coding) > 0
    }

    /// Returns whether the client accepts the original, which is the default (RFC 9110 section
    /// 12.5.3).
    pub fn takes_identity(&self) -> bool {
        self.identity.or(self.any_other) != Some(0)
    }

    fn weight(&self, coding: Coding) -> Weight {
        self.weights[coding.index()].or(self.any_other).unwrap_or(0)
    }
}

/// Parses `;q=0.5` into thousandths. Returns 1000 if it is missing, and `None` if it is malformed
/// (RFC 9110 section 12.4.2).
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
        AcceptEncoding::parse(Some(value.as_bytes())).choose(&Coding::ALL, is_there)
    }

    #[test]
    fn a_field_costs_no_more_than_its_bytes() {
        let mut table = kirin_doubling::Table::new();
        for piece in ["gzip,", "gzip;q=0.5,", ",", ";", ";q=1", "q=", "*;q=0.001, ", "x"] {
            table.check(
                piece,
                300,
                |count| piece.repeat(count),
                |value| AcceptEncoding::parse(Some(value.as_bytes())).takes_identity(),
            );
        }
        table.finish();
    }

    #[test]
    fn the_best_variant_has_the_highest_weight_then_the_smallest_size() {
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
            assert_eq!(
                choose(value, variants),
                expected,
                "Accept-Encoding: {value} with {variants}"
            );
        }
        assert_eq!(AcceptEncoding::parse(None).choose(&Coding::ALL, |_| true), None);
    }

    #[test]
    fn the_servers_order_decides_between_equal_weights() {
        let accept = AcceptEncoding::parse(Some(b"gzip, br, zstd"));
        assert_eq!(accept.choose(&Coding::BY_SPEED, |_| true), ZSTD);
        assert_eq!(accept.choose(&[Coding::Gzip, Coding::Zstd], |_| true), GZIP);
        assert_eq!(
            AcceptEncoding::parse(Some(b"gzip;q=0.1, *;q=0.2")).choose(&Coding::BY_SPEED, |_| true),
            ZSTD
        );
    }

    #[test]
    fn a_client_accepts_the_codings_that_it_does_not_refuse() {
        for (value, gzip, identity) in [
            ("", false, true),
            ("gzip", true, true),
            ("br", false, true),
            ("*", true, true),
            ("*;q=0", false, false),
            ("gzip, *;q=0", true, false),
            ("identity;q=0", false, false),
            ("identity;q=0.1, *;q=0", false, true),
            ("gzip;q=0, *", false, true),
        ] {
            let accept = AcceptEncoding::parse(Some(value.as_bytes()));
            assert_eq!(
                (accept.takes(Coding::Gzip), accept.takes_identity()),
                (gzip, identity),
                "{value}"
            );
        }
    }

    proptest! {
        #[test]
        fn a_coding_is_chosen_only_if_it_is_there_and_was_named(value in "[a-z0-9;=,. *]{0,60}", there in 0u8..8) {
            let is_there = |coding: Coding| there & (1 << coding as u8) != 0;
            if let Some(coding) = AcceptEncoding::parse(Some(value.as_bytes())).choose(&Coding::ALL, is_there) {
                prop_assert!(is_there(coding));
                prop_assert!(value.contains(coding.name()) || value.contains('*'), "{coding:?} for {value}");
            }
        }
    }
}

//! The ways to prove a name, and which of them an attempt takes.
//!
//! Both ways are tried, as Caddy does: port 80 may be closed on the way, or something in front of
//! port 443 may answer TLS itself, and Kirin sees neither. But Let's Encrypt counts failed proofs,
//! five for a name in an hour. So only the first attempt after a start, a HUP or a success tries
//! both. Later attempts take turns.

use std::fmt;

use instant_acme::ChallengeType;

/// A way to prove that a name leads here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChallengeKind {
    /// By a page (RFC 8555 section 8.3). The authority asks port 80.
    Http01,
    /// By a certificate in a TLS handshake (RFC 8737). The authority asks port 443.
    TlsAlpn01,
}

/// The ways that an attempt takes.
#[derive(Debug, PartialEq, Eq)]
pub struct AttemptKinds {
    /// The way of the first order.
    pub first: ChallengeKind,
    /// The way of a second order at once, if the first proves nothing.
    pub second: Option<ChallengeKind>,
}

impl ChallengeKind {
    /// Returns the type of the authority's challenge.
    pub(crate) fn challenge_type(self) -> ChallengeType {
        match self {
            Self::Http01 => ChallengeType::Http01,
            Self::TlsAlpn01 => ChallengeType::TlsAlpn01,
        }
    }
}

impl fmt::Display for ChallengeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Http01 => "http-01",
            Self::TlsAlpn01 => "tls-alpn-01",
        })
    }
}

impl AttemptKinds {
    /// Chooses from `possible`, the best first. `failures` is the number of failures in a row.
    /// `is_new` says whether none of them was after the last start or HUP.
    pub fn choose(possible: &[ChallengeKind], failures: u32, is_new: bool) -> Self {
        let turn = if is_new { 0 } else { failures as usize % possible.len().max(1) };
        let first = possible.get(turn).copied().unwrap_or(ChallengeKind::TlsAlpn01);
        let other = possible.iter().copied().find(|kind| *kind != first);
        Self { first, second: other.filter(|_| is_new) }
    }
}

#[cfg(test)]
mod tests {
    use super::ChallengeKind::{Http01, TlsAlpn01};
    use super::*;

    #[test]
    fn the_first_attempt_tries_both_and_later_ones_take_turns() {
        let chosen = |possible: &[ChallengeKind], failures, is_new| {
            let chosen = AttemptKinds::choose(possible, failures, is_new);
            (chosen.first, chosen.second)
        };
        let both = [Http01, TlsAlpn01];
        assert_eq!(chosen(&both, 0, true), (Http01, Some(TlsAlpn01)));
        assert_eq!(chosen(&both, 1, false), (TlsAlpn01, None));
        assert_eq!(chosen(&both, 2, false), (Http01, None));
        assert_eq!(chosen(&both, 3, true), (Http01, Some(TlsAlpn01)));
        assert_eq!(chosen(&[TlsAlpn01, Http01], 0, true), (TlsAlpn01, Some(Http01)));
        for failures in 0..3 {
            assert_eq!(chosen(&[TlsAlpn01], failures, failures == 0), (TlsAlpn01, None));
        }
    }
}

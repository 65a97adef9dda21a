//! The protection of a page in the store: the conditions that the request passed whose response was
//! stored.
//!
//! An application stores its response with `Kirin-Store` ([`crate::filters::push`]). If the route
//! asked for a password, the stored response remembers which passwords, in a field that never
//! leaves the store. The `store` place and includes serve such a page only where the same condition
//! has been passed. Another route may reach the same key by its `rewrite`, and it must not become a
//! way around the password. The same holds for the clients that the route serves.

use std::fmt;
use std::num::NonZeroU64;

use kirin_http::{Client, FieldLines};
use xxhash_rust::xxh3::xxh3_64;

use crate::routing::rules::Rules;

/// The field of a stored response that says what protects it.
pub const FIELD: &str = "Kirin-Protection";

/// The conditions that a request has passed, or that a page asks for. Each request has a copy, so
/// it is small. Each number is the digest of a name in the configuration, so that it is the same
/// after a restart.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Protection {
    /// `basic_auth`: the password file.
    password: Option<NonZeroU64>,
    /// `rate_limit`: the route that counts.
    rate: Option<NonZeroU64>,
    /// The file of the authorities that vouch for the client's certificate.
    certificate: Option<NonZeroU64>,
    /// `allow`: the networks of the clients.
    allowed: Option<NonZeroU64>,
    /// `auth_request`: what the program is asked for.
    authority: Option<NonZeroU64>,
}

impl Protection {
    /// Returns the protection of a route with these rules. `name` is its path with its conditions.
    pub fn from_rules(name: &str, rules: &Rules) -> Self {
        let password = rules
            .basic_auth
            .as_ref()
            .map(|auth| digest_of(auth.file_path().as_os_str().as_encoded_bytes()));
        let rate = (!rules.rate_limits.is_empty()).then(|| digest_of(name.as_bytes()));
        let authority =
            rules.auth_request.as_ref().map(|auth| digest_of(auth.to_string().as_bytes()));
        let allowed = rules.access.allowed_digest().map(not_zero);
        Self { password, rate, certificate: None, allowed, authority }
    }

    /// Adds what the client has shown in the TLS handshake.
    pub fn with_client(self, client: Client<'_>) -> Self {
        let certificate = match client {
            Client::Verified(certificate) => {
                Some(digest_of(certificate.authorities.as_os_str().as_encoded_bytes()))
            }
            Client::NotRequested | Client::Anonymous => None,
        };
        Self { certificate, ..self }
    }

    /// Leaves out the limit on the rate of requests. The limit is on the work of one route; a page
    /// that this work has stored elsewhere, under a `key` of its own, needs no limit.
    pub fn without_rate(self) -> Self {
        Self { rate: None, ..self }
    }

    /// Returns the clients that `allow` of the route names, as a digest.
    pub fn allowed(self) -> Option<NonZeroU64> {
        self.allowed
    }

    /// Returns whether a program has decided who the visitor is (`auth_request`).
    pub fn has_authority(self) -> bool {
        self.authority.is_some()
    }

    /// Returns whether a route with this protection serves the page to some client, if not to every
    /// one.
    pub fn may_serve(self, page: Self) -> bool {
        self.admits(Self { certificate: None, ..page })
    }

    /// Returns whether a request that has passed these conditions may have the page.
    pub fn admits(self, page: Self) -> bool {
        page.is_for_all() || self.meets(page)
    }

    /// Returns whether there are no conditions, without a branch for each.
    fn is_for_all(self) -> bool {
        let bits = |digest: Option<NonZeroU64>| digest.map_or(0, NonZeroU64::get);
        bits(self.password)
            | bits(self.rate)
            | bits(self.certificate)
            | bits(self.allowed)
            | bits(self.authority)
            == 0
    }

    fn meets(self, page: Self) -> bool {
        let passes = |passed: Option<NonZeroU64>, wanted: Option<NonZeroU64>| {
            wanted.is_none() || passed == wanted
        };
        passes(self.password, page.password)
            && passes(self.rate, page.rate)
            && passes(self.certificate, page.certificate)
            && passes(self.allowed, page.allowed)
            && passes(self.authority, page.authority)
    }

    /// Reads and removes the field of a stored response. A value that is not understood protects
    /// from everybody.
    pub fn take(fields: &mut FieldLines) -> Self {
        let Some(value) = fields.get(FIELD) else { return Self::default() };
        let protection = std::str::from_utf8(value).ok().and_then(Self::parse);
        fields.remove(FIELD);
        // No name has this digest by intention, and no request passes five of them.
        let nobody = Some(NonZeroU64::MAX);
        protection.unwrap_or(Self {
            password: nobody,
            rate: nobody,
            certificate: nobody,
            allowed: nobody,
            authority: nobody,
        })
    }

    /// Returns the words of the conditions, such as `password`.
    pub fn words(self) -> Vec<&'static str> {
        self.members().into_iter().filter_map(|(word, digest)| digest.and(Some(word))).collect()
    }

    fn members(self) -> [(&'static str, Option<NonZeroU64>); 5] {
        [
            ("password", self.password),
            ("rate", self.rate),
            ("certificate", self.certificate),
            ("allow", self.allowed),
            ("auth", self.authority),
        ]
    }

    /// Reads the value of the field, which is not empty. Returns `None` if it is not understood.
    pub fn parse(value: &str) -> Option<Self> {
        let mut protection = Self::default();
        for member in value.split(", ") {
            let (name, digest) = member.split_once('=')?;
            let digest = Some(not_zero(u64::from_str_radix(digest, 16).ok()?));
            match name {
                "password" => protection.password = digest,
                "rate" => protection.rate = digest,
                "certificate" => protection.certificate = digest,
                "allow" => protection.allowed = digest,
                "auth" => protection.authority = digest,
                _ => return None,
            }
        }
        Some(protection)
    }
}

/// The value of the field; empty if nothing protects the page.
impl fmt::Display for Protection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (name, digest) in self.members() {
            if let Some(digest) = digest {
                write!(f, "{separator}{name}={digest:016x}")?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

/// Returns the digest of a name.
fn digest_of(name: &[u8]) -> NonZeroU64 {
    not_zero(xxh3_64(name))
}

/// Returns a digest, of which zero is one.
fn not_zero(digest: u64) -> NonZeroU64 {
    NonZeroU64::new(digest).unwrap_or(NonZeroU64::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_for_requests_that_have_passed_all_its_conditions() {
        let [none, password, rate, both] = [
            (None, None),
            (NonZeroU64::new(1), None),
            (None, NonZeroU64::new(2)),
            (NonZeroU64::new(1), NonZeroU64::new(2)),
        ]
        .map(|(password, rate)| Protection { password, rate, ..Protection::default() });
        let other = Protection { password: NonZeroU64::new(3), ..none };
        let certificate = Protection { certificate: NonZeroU64::new(4), ..password };
        let office = Protection { allowed: NonZeroU64::new(5), ..none };
        let home = Protection { allowed: NonZeroU64::new(6), ..none };
        let signed_on = Protection { authority: NonZeroU64::new(7), ..none };
        for (passed, page, admitted) in [
            (none, none, true),
            (password, none, true),
            (both, password, true),
            (password, password, true),
            (certificate, password, true),
            (none, password, false),
            (rate, password, false),
            (password, both, false),
            (other, password, false),
            (password, certificate, false),
            (office, office, true),
            (office, none, true),
            (none, office, false),
            (home, office, false),
            (office, password, false),
            (signed_on, signed_on, true),
            (none, signed_on, false),
            (password, signed_on, false),
        ] {
            assert_eq!(passed.admits(page), admitted, "{passed:?} {page:?}");
        }
        assert!(password.may_serve(certificate));
    }

    #[test]
    fn a_stored_protection_is_read_as_it_was_written() {
        let written = Protection {
            password: NonZeroU64::new(1),
            rate: None,
            certificate: NonZeroU64::new(u64::MAX - 1),
            allowed: NonZeroU64::new(1),
            authority: NonZeroU64::new(7),
        };
        let mut fields = FieldLines::new();
        fields.push(FIELD, written.to_string());
        assert_eq!(Protection::take(&mut fields), written);
        assert_eq!(fields.get(FIELD), None);
        assert_eq!(Protection::take(&mut fields), Protection::default());
    }

    #[test]
    fn a_protection_that_is_not_understood_admits_nobody() {
        for value in ["", "password", "password=x", "new=1", "password=1,rate=2"] {
            let mut fields = FieldLines::new();
            fields.push(FIELD, value);
            let page = Protection::take(&mut fields);
            assert!(!Protection::default().admits(page), "{value}");
        }
    }
}

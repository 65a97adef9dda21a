//! The key by which a limit counts requests, such as the client's address.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use kirin_http::cookies::cookie;
use kirin_http::peer::address_key;
use sha2::{Digest, Sha256};

use super::value_template::ValueTemplate;
use super::variables::RequestValues;

/// The part of a request that it is counted by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestKey {
    /// All requests of the route are counted together.
    Route,
    /// The client's address; of IPv6 the /64.
    Address,
    /// The value of this request field.
    Header(String),
    /// The value of this cookie.
    Cookie(String),
    /// The values of the variables in this text.
    Template(ValueTemplate),
}

impl RequestKey {
    /// Returns a hash of what the request has. A request without the field or cookie, or without a
    /// value of the variables, counts for its address. The hash is never zero. A secret seed in
    /// `hasher` keeps clients from aiming at the counts of others.
    pub fn hash(&self, request: &RequestValues<'_>, hasher: &RandomState) -> u64 {
        let hash = match self.value(request) {
            Some(value) => hasher.hash_one((true, value)),
            None => hasher.hash_one((false, address_key(request.origin.peer))),
        };
        hash.max(1)
    }

    /// Returns a digest of the same, which is the same on all machines and tells no address.
    pub fn digest(&self, request: &RequestValues<'_>) -> u128 {
        let (kind, value) = match (self.value(request), address_key(request.origin.peer)) {
            (Some(value), _) => (0, value),
            (None, Some(address)) => (1, Cow::Owned(address.to_le_bytes().to_vec())),
            (None, None) => (2, Cow::Borrowed(&b""[..])),
        };
        let digest: [u8; 32] =
            Sha256::new().chain_update([kind]).chain_update(value).finalize().into();
        digest.iter().take(16).fold(0, |number, byte| number << 8 | u128::from(*byte))
    }

    /// Returns the value by which the request counts. `None`: it counts for its address.
    fn value<'a>(&self, request: &RequestValues<'a>) -> Option<Cow<'a, [u8]>> {
        let head = request.head;
        match self {
            Self::Route => Some(Cow::Borrowed(&b""[..])),
            Self::Address => None,
            Self::Header(name) => head.field(name).map(Cow::Borrowed),
            Self::Cookie(name) => cookie(head, name.as_bytes()).map(Cow::Borrowed),
            Self::Template(template) => {
                let mut key = Vec::new();
                template.append_key(request, &mut key).then_some(Cow::Owned(key))
            }
        }
    }
}

/// The key in words, after "for each".
impl fmt::Display for RequestKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Route => f.write_str("route"),
            Self::Address => f.write_str("address"),
            Self::Header(name) => write!(f, "value of header `{name}`"),
            Self::Cookie(name) => write!(f, "value of cookie `{name}`"),
            Self::Template(template) => write!(f, "value of `{template}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_requests::with_request;
    use kirin_http::{Origin, Peer};

    #[test]
    fn a_digest_is_of_one_key_and_the_same_on_all_machines() {
        let digest = |key: &RequestKey, peer: &Peer, fields: &str| {
            with_request(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}").trim_end(), |request| {
                let origin = Origin { peer, ..request.origin };
                key.digest(&RequestValues { origin, ..request.values() })
            })
        };
        let peer = |address: &str| Peer::Tcp(address.parse().unwrap());
        let (address, header) = (RequestKey::Address, RequestKey::Header("k".into()));
        let (first, other, loopback) = (peer("10.0.0.1:1"), peer("10.0.0.2:1"), peer("[::1]:1"));
        let digests = [
            digest(&address, &first, ""),
            digest(&address, &other, ""),
            digest(&address, &loopback, ""),
            digest(&address, &Peer::Unix, ""),
            digest(&RequestKey::Route, &first, ""),
            digest(&header, &first, "k: a"),
        ];
        for (index, digest) in digests.iter().enumerate() {
            assert!(!digests[..index].contains(digest), "{index}");
        }
        // SHA-256 of the byte 0 and `a`, and of 2 alone.
        assert_eq!(digests[5] >> 96, 0x022a_6979);
        assert_eq!(digests[3] >> 96, 0xdbc1_b4c9);
        assert_eq!(digest(&header, &other, "K: a"), digests[5]);
        assert_eq!(digest(&header, &peer("10.0.0.1:2"), ""), digests[0]);
        let of_network = digest(&address, &peer("[2001:db8::1]:1"), "");
        assert_eq!(digest(&address, &peer("[2001:db8::2:3]:1"), ""), of_network);
    }
}

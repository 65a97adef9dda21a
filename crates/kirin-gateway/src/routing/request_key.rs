//! The key by which a limit counts requests, such as the client's address.

use std::borrow::Cow;
use std::fmt;
use std::hash::{BuildHasher, RandomState};

use kirin_http::cookies::cookie;
use kirin_http::peer::address_key;

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
        let head = request.head;
        let named = match self {
            Self::Route => Some(Cow::Borrowed(&b""[..])),
            Self::Address => None,
            Self::Header(name) => head.field(name).map(Cow::Borrowed),
            Self::Cookie(name) => cookie(head, name.as_bytes()).map(Cow::Borrowed),
            Self::Template(template) => {
                let mut key = Vec::new();
                template.append_key(request, &mut key).then_some(Cow::Owned(key))
            }
        };
        let hash = match named {
            Some(value) => hasher.hash_one((true, value)),
            None => hasher.hash_one((false, address_key(request.origin.peer))),
        };
        hash.max(1)
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

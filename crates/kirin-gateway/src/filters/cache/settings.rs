//! What a route says of its cache; made when the configuration is checked, shared by all loops.

use std::sync::Arc;
use std::time::Duration;

use kirin_cache::StorageRules;
use kirin_http::RequestHead;

use super::flights::Flights;

/// The cache of a route.
#[derive(Debug)]
pub struct CacheSettings {
    /// The largest stored response in bytes.
    pub item_limit_bytes: usize,
    /// What is stored.
    pub rules: StorageRules,
    /// What goes past.
    pub bypass: Vec<Bypass>,
    /// Arguments of the query that are left out.
    pub ignore_query: Vec<String>,
    /// How long a request waits for another.
    pub wait: Duration,
    /// Whether clients may have a fresh response validated.
    pub obeys_reload: bool,
    /// Requests for what is not there, which are at the place.
    pub flights: Arc<Flights>,
}

/// What a request may have to go past the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// A cookie of this name.
    Cookie(String),
    /// A header of this name.
    Header(String),
    /// An argument of the query.
    Query(String),
}

impl Bypass {
    /// Whether the request has it.
    pub fn is_in(&self, request: &RequestHead<'_>) -> bool {
        match self {
            Bypass::Header(name) => request.field(name).is_some(),
            Bypass::Cookie(name) => request
                .fields
                .iter()
                .filter(|field| field.name.eq_ignore_ascii_case("cookie"))
                .flat_map(|field| field.value.split(|byte| *byte == b';'))
                .any(|pair| name_of(pair) == name.as_bytes()),
            Bypass::Query(name) => request
                .query
                .unwrap_or_default()
                .split('&')
                .any(|argument| name_of(argument.as_bytes()) == name.as_bytes()),
        }
    }
}

fn name_of(pair: &[u8]) -> &[u8] {
    pair.split(|byte| *byte == b'=').next().unwrap_or(pair).trim_ascii()
}

//! The configuration of the cache of a route. It is made when the configuration is checked, and all
//! loops share it.

use std::sync::Arc;
use std::time::Duration;

use kirin_cache::StorageRules;
use kirin_http::cookies::has_cookie;
use kirin_http::{RequestHead, form};

use super::pending_fetches::PendingFetches;

/// The cache of a route.
#[derive(Debug)]
pub struct CacheSettings {
    /// The digest of the conditions of the route. Another route may answer other requests for the
    /// same target, and must not serve the responses of this one.
    pub conditions: Option<u64>,
    /// The largest stored response, in bytes.
    pub item_limit_bytes: usize,
    /// The rules for what is stored.
    pub rules: StorageRules,
    /// The conditions on which a request goes past the cache.
    pub bypass: Vec<BypassCondition>,
    /// The arguments of the query that are no part of the key.
    pub ignore_query: Vec<String>,
    /// How long a request waits for another.
    pub wait: Duration,
    /// Whether clients may have a fresh response revalidated.
    pub obeys_reload: bool,
    /// The requests that are at the place now.
    pub pending_fetches: Arc<PendingFetches>,
}

/// A part of a request that makes it go past the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BypassCondition {
    /// A cookie of this name.
    Cookie(String),
    /// A header of this name.
    Header(String),
    /// An argument of the query.
    Query(String),
}

impl BypassCondition {
    /// Returns whether the request meets the condition.
    pub fn is_in(&self, request: &RequestHead<'_>) -> bool {
        match self {
            BypassCondition::Header(name) => request.field(name).is_some(),
            BypassCondition::Cookie(name) => has_cookie(request, name.as_bytes()),
            BypassCondition::Query(name) => {
                form::pairs(request.query.unwrap_or_default().as_bytes())
                    .any(|argument| form::name_and_value(argument).0 == name.as_bytes())
            }
        }
    }
}

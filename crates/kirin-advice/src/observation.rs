//! One answer of an application or an upstream as it went by: hashes, lengths and facts.
//!
//! All hashes have the key of the run. They can be compared with each other, and with nothing else.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::pieces::HashedBody;

/// A route of the configuration, as advice speaks of it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdvisedRoute {
    /// The name of its site in the store. Empty for the routes at the top level.
    pub site: String,
    /// Its `path`.
    pub path: String,
    /// The place that runs code, such as `app:web`.
    pub place: String,
    /// Whether `store` is in its `try`.
    pub has_store: bool,
    /// Whether it has a `rewrite`.
    pub has_rewrite: bool,
}

/// What is requested: the parts of a request that a cache key begins with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ObservedTarget {
    /// The number of the route.
    pub route: u32,
    /// Whether the method is GET or HEAD. Other requests have no query here.
    pub is_read: bool,
    /// Whether the scheme is https.
    pub secure: bool,
    /// The host.
    pub host: String,
    /// The path, as sent.
    pub path: String,
    /// The query.
    pub query: Option<String>,
}

/// The visitor of a request. Values are hashes; 0 stands for a field that is missing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Visitor {
    /// Names and values of cookies.
    pub cookies: Vec<(String, u64)>,
    /// The other parts of the request that name the visitor: `Authorization`, a certificate, a user
    /// whose password was checked.
    pub credentials: Option<u64>,
    /// Names in lower case and values of the fields that are not known to be harmless. They may be
    /// credentials of the application's own.
    pub others: Vec<(String, u64)>,
    /// The address.
    pub address: u64,
    /// `Accept-Language`.
    pub language: u64,
    /// `Accept`.
    pub accept: u64,
    /// `Accept-Encoding`.
    pub encoding: u64,
    /// `User-Agent`.
    pub agent: u64,
}

impl Visitor {
    /// Returns whether the request says nothing about the visitor.
    pub fn is_anonymous(&self) -> bool {
        self.cookies.is_empty() && self.credentials.is_none() && self.others.is_empty()
    }
}

/// How long the application lets a shared cache use its response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Freshness {
    /// It says nothing.
    #[default]
    Unstated,
    /// Until it is validated, each time.
    Validate,
    /// So many seconds.
    Seconds(u64),
}

/// What a response says in its head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// Whether it sets a cookie.
    pub sets_cookie: bool,
    /// Whether it is for one visitor only (`private`, `no-store`).
    pub is_private: bool,
    /// Whether shared caches may give it to visitors with cookies (`public`, `s-maxage`).
    pub is_public: bool,
    /// How long it is fresh.
    pub freshness: Freshness,
    /// The fields of `Vary`, in lower case. `*` stands for all.
    pub vary: Vec<String>,
    /// Whether its media type is `text/html`.
    pub is_html: bool,
    /// Whether it has a content coding.
    pub is_coded: bool,
    /// Whether the application has it stored (`Kirin-Store`).
    pub is_stored: bool,
}

/// The body of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ObservedBody {
    /// All of it.
    Complete {
        /// Its hashes.
        hashed: HashedBody,
        /// Whether it has a value of the request's own cookies or credentials.
        has_own_value: bool,
    },
    /// More bytes than are hashed.
    TooLong,
    /// A file, which the front sends.
    File,
    /// None, or not all: a response to HEAD, or one that was cut.
    #[default]
    Missing,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// What was requested.
    pub target: ObservedTarget,
    /// Whether the request had a body.
    pub has_request_body: bool,
    /// The visitor.
    pub visitor: Visitor,
    /// When the place was asked, since the start of the run.
    pub asked: Duration,
    /// When the answer was complete, since the start of the run.
    pub answered: Duration,
    /// How long the place worked.
    pub place_time: Duration,
    /// The status.
    pub status: u16,
    /// What the head says.
    pub statement: Statement,
    /// The body.
    pub body: ObservedBody,
}

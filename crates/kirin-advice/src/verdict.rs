//! The verdicts about pages: whether a page could be in memory, for whom, and why not.

use serde::{Deserialize, Serialize};

/// Whether a page could be in memory.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum PageVerdict {
    /// It is the same for everybody.
    Everybody,
    /// It is the same for visitors without cookies and credentials. Others get pages of their own,
    /// or too few were seen.
    WithoutCookie {
        /// Whether other visitors were seen to get something else.
        others_differ: bool,
    },
    /// It is the same but for some places.
    SameBut {
        /// The places.
        gaps: Vec<NamedGap>,
    },
    /// It is the same for visitors with the same value.
    NeedsKey {
        /// The part of the request with the value.
        key: KeyPart,
        /// The number of values that were seen.
        values: usize,
    },
    /// It changes too often.
    Changing,
    /// The application stores it already.
    Stored,
    /// It is not safe to share.
    Unsafe {
        /// Why.
        reasons: Vec<Reason>,
    },
    /// There is too little evidence.
    Unproven {
        /// What is missing.
        missing: Vec<Missing>,
    },
}

/// A place in a page, and what makes the difference there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NamedGap {
    /// The offset in the page of a visitor without credentials, in bytes.
    pub offset: u64,
    /// The line there, from 1.
    pub line: u64,
    /// The length of the shortest content, in bytes.
    pub shortest: u64,
    /// The length of the longest content, in bytes.
    pub longest: u64,
    /// What makes the difference.
    pub cause: Cause,
}

/// What makes the difference in a gap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The value of this cookie.
    Cookie(String),
    /// Whether there is this cookie.
    HasCookie(String),
    /// It is new each time, or changes with time.
    EachTime,
    /// It is not known.
    Unknown,
}

/// A part of a request that a cache key can have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum KeyPart {
    /// A field of requests.
    Field(String),
    /// A cookie with few values.
    Cookie(String),
}

/// A reason against sharing a page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The method is neither GET nor HEAD.
    Method,
    /// Requests have a body.
    RequestBody,
    /// The route lets in some clients only.
    Protected,
    /// Responses set a cookie.
    SetsCookie,
    /// Responses are `private` or `no-store`.
    Private,
    /// Responses have `Vary: *`.
    VariesByAll,
    /// Visitors get different statuses.
    Statuses {
        /// The statuses that visitors without credentials get.
        anonymous: Vec<u16>,
        /// The statuses that others get.
        known: Vec<u16>,
    },
    /// The status is not that of a page.
    Status(u16),
    /// The page has a value of the visitor's own cookies.
    OwnValue,
    /// It is requested with credentials only.
    CredentialsOnly,
    /// It depends on fields of requests that no cache has in its key, and that may name
    /// the visitor.
    OtherFields(Vec<String>),
    /// It says `public` where visitors with cookies get pages of their own.
    PublicButDiffers,
    /// It depends on the address.
    Address,
    /// It depends on the browser (`User-Agent`).
    Agent,
    /// It differs between requests that differ in nothing.
    Differs,
    /// It is a file.
    File,
    /// It is too long to be compared.
    TooLong,
}

/// Evidence that is missing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Missing {
    /// No complete response was seen.
    Body,
    /// So few visitors were seen.
    Visitors {
        /// How many.
        seen: usize,
        /// How many are needed.
        needed: usize,
    },
    /// So few addresses were seen.
    Addresses {
        /// How many.
        seen: usize,
        /// How many are needed.
        needed: usize,
    },
    /// No visitor without cookies was seen.
    Anonymous,
    /// The application has given different pages to few visitors.
    Versions,
    /// So few different values of these fields were seen, which may name the visitor.
    Fields {
        /// The names.
        names: Vec<String>,
        /// How many values.
        seen: usize,
        /// How many are needed.
        needed: usize,
    },
}

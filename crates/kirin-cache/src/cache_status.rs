//! `Cache-Status` (RFC 9211): tells clients how the cache handled a request.

use std::fmt::{self, Display, Formatter};

/// The reason why a request was forwarded to the origin server (section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// The configuration or the request excludes the cache.
    Bypass,
    /// The cache does not support the method.
    Method,
    /// Nothing is stored for the target.
    UriMiss,
    /// A response is stored for the target, but not for this request.
    VaryMiss,
    /// A response is stored for the target and the fields of the request, but not for a visitor
    /// with its cookie or password.
    Miss,
    /// The stored response is fresh, but the client wants it validated.
    Request,
    /// The stored response is stale.
    Stale,
}

impl Forwarded {
    fn name(self) -> &'static str {
        match self {
            Forwarded::Bypass => "bypass",
            Forwarded::Method => "method",
            Forwarded::UriMiss => "uri-miss",
            Forwarded::VaryMiss => "vary-miss",
            Forwarded::Miss => "miss",
            Forwarded::Request => "request",
            Forwarded::Stale => "stale",
        }
    }
}

/// The cache status of one response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// The reason why the request was forwarded. `None` is a hit.
    pub forwarded: Option<Forwarded>,
    /// The status of the origin server, if it differs from that of the response.
    pub forwarded_status: Option<u16>,
    /// Whether the response was stored.
    pub stored: bool,
    /// Whether the request was collapsed with another one.
    pub collapsed: bool,
    /// The remaining freshness in seconds. It is negative if the response is stale.
    pub ttl: Option<i64>,
    /// A token: the reason why the response was not stored, or why the cache did not answer.
    pub detail: Option<&'static str>,
}

impl CacheStatus {
    /// Returns the status of a hit: a stored response that was reused without a request.
    pub fn hit(ttl: i64) -> Self {
        Self { ttl: Some(ttl), ..Self::default() }
    }

    /// Returns this status for a response with the status code `sent`, made from one of the origin
    /// server with the code `received`. A forwarded request without `fwd-status` got the code that
    /// the client gets (section 2.3).
    pub fn for_codes(self, sent: u16, received: u16) -> Self {
        let is_silent = self.forwarded.is_none() || self.forwarded_status.is_some();
        if is_silent || sent == received {
            return self;
        }
        Self { forwarded_status: Some(received), ..self }
    }

    /// Returns the status of a request that was forwarded.
    pub fn forwarded(why: Forwarded) -> Self {
        Self { forwarded: Some(why), ..Self::default() }
    }
}

impl Display for CacheStatus {
    /// Writes the parameters in the order of the RFC.
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("Kirin")?;
        match self.forwarded {
            None => f.write_str("; hit")?,
            Some(why) => write!(f, "; fwd={}", why.name())?,
        }
        if let Some(status) = self.forwarded_status {
            write!(f, "; fwd-status={status}")?;
        }
        if let Some(ttl) = self.ttl {
            write!(f, "; ttl={ttl}")?;
        }
        if self.stored {
            f.write_str("; stored")?;
        }
        if self.collapsed {
            f.write_str("; collapsed")?;
        }
        if let Some(detail) = self.detail {
            write!(f, "; detail={detail}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storable::Unstorable;

    #[test]
    fn a_cache_status_is_written_as_in_rfc_9211() {
        for (status, expected) in [
            (CacheStatus::hit(30), "Kirin; hit; ttl=30"),
            (CacheStatus::hit(-5), "Kirin; hit; ttl=-5"),
            (
                CacheStatus { stored: true, ..CacheStatus::forwarded(Forwarded::UriMiss) },
                "Kirin; fwd=uri-miss; stored",
            ),
            (
                CacheStatus {
                    forwarded_status: Some(304),
                    ttl: Some(60),
                    stored: true,
                    collapsed: true,
                    ..CacheStatus::forwarded(Forwarded::Stale)
                },
                "Kirin; fwd=stale; fwd-status=304; ttl=60; stored; collapsed",
            ),
            (
                CacheStatus { detail: Some("cookie"), ..CacheStatus::forwarded(Forwarded::Bypass) },
                "Kirin; fwd=bypass; detail=cookie",
            ),
        ] {
            assert_eq!(status.to_string(), expected);
        }
    }

    #[test]
    fn fwd_status_is_there_if_the_client_gets_another_code() {
        let miss = CacheStatus::forwarded(Forwarded::UriMiss);
        let validated =
            CacheStatus { forwarded_status: Some(304), ..CacheStatus::forwarded(Forwarded::Stale) };
        for (status, sent, received, expected) in [
            (miss, 200, 200, "Kirin; fwd=uri-miss"),
            (miss, 304, 200, "Kirin; fwd=uri-miss; fwd-status=200"),
            (validated, 304, 200, "Kirin; fwd=stale; fwd-status=304"),
            (validated, 200, 200, "Kirin; fwd=stale; fwd-status=304"),
            (CacheStatus::hit(5), 304, 200, "Kirin; hit; ttl=5"),
        ] {
            assert_eq!(status.for_codes(sent, received).to_string(), expected, "{sent}");
        }
    }

    #[test]
    fn every_cache_status_is_a_structured_field() {
        let forwarded = [
            Forwarded::Bypass,
            Forwarded::Method,
            Forwarded::UriMiss,
            Forwarded::VaryMiss,
            Forwarded::Miss,
            Forwarded::Request,
            Forwarded::Stale,
        ];
        for why in forwarded {
            for reason in Unstorable::ALL {
                let status = CacheStatus {
                    forwarded_status: Some(503),
                    stored: true,
                    collapsed: true,
                    ttl: Some(-3),
                    detail: Some(reason.name()),
                    ..CacheStatus::forwarded(why)
                };
                let list =
                    sfv::Parser::new(&status.to_string()).parse::<sfv::List>().expect("a list");
                let [sfv::ListEntry::Item(item)] = list.as_slice() else { panic!("{list:?}") };
                let names: Vec<&str> = item.params.keys().map(|name| name.as_str()).collect();
                assert_eq!(names, ["fwd", "fwd-status", "ttl", "stored", "collapsed", "detail"]);
            }
        }
    }
}

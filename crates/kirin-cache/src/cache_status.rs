//! `Cache-Status` (RFC 9211): what the cache did with a request, for whoever looks at the response.

use std::fmt::{self, Display, Formatter};

/// Why a request went on to the place behind the cache (section 2.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Forwarded {
    /// The configuration, or what the request carries, keeps it out of the cache.
    Bypass,
    /// Its method is none that is cached.
    Method,
    /// Nothing is stored for its target.
    UriMiss,
    /// Something is, but for other requests.
    VaryMiss,
    /// What is stored is fresh, and the client wants it validated.
    Request,
    /// What is stored is stale.
    Stale,
}

impl Forwarded {
    fn name(self) -> &'static str {
        match self {
            Forwarded::Bypass => "bypass",
            Forwarded::Method => "method",
            Forwarded::UriMiss => "uri-miss",
            Forwarded::VaryMiss => "vary-miss",
            Forwarded::Request => "request",
            Forwarded::Stale => "stale",
        }
    }
}

/// One response's.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CacheStatus {
    /// Why it was asked for; `None` is a hit.
    pub forwarded: Option<Forwarded>,
    /// The status that the place behind gave, when it is not that of the response.
    pub forwarded_status: Option<u16>,
    /// Whether the response is stored.
    pub stored: bool,
    /// Whether it waited for what another request had asked for.
    pub collapsed: bool,
    /// Seconds of freshness left; negative when it is stale.
    pub ttl: Option<i64>,
    /// Why the response is not stored or the request not answered from the cache: a token.
    pub detail: Option<&'static str>,
}

impl CacheStatus {
    /// Of a stored response that was used without asking anybody.
    pub fn hit(ttl: i64) -> Self {
        Self { ttl: Some(ttl), ..Self::default() }
    }

    /// Of a request that went on.
    pub fn forwarded(why: Forwarded) -> Self {
        Self { forwarded: Some(why), ..Self::default() }
    }
}

impl Display for CacheStatus {
    /// The parameters in the order in which the RFC has them.
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
    fn it_reads_as_the_rfc_has_it() {
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
    fn it_is_a_structured_field_whatever_it_says() {
        let forwarded = [
            Forwarded::Bypass,
            Forwarded::Method,
            Forwarded::UriMiss,
            Forwarded::VaryMiss,
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

//! The keys `deny`, `allow` and `maintenance` of a route: the clients that it serves.
//!
//! Pure. The router asks before all other rules, for subrequests too. So nothing that is stored
//! comes out of a route that refuses: the store, the cache and files are places behind this rule.

use http::StatusCode;
use kirin_http::{Peer, PeerSet, Response};
use xxhash_rust::xxh3::xxh3_64;

/// The clients that a route serves.
#[derive(Debug, Default)]
pub struct Access {
    /// The values of `deny` and `allow`.
    pub denial: Option<Denial>,
    /// The value of `maintenance`.
    pub maintenance: Option<Maintenance>,
}

/// A refusal of all clients but some.
#[derive(Debug)]
pub struct Denial {
    /// The status that the others get.
    pub status: StatusCode,
    /// The clients that are served. `None`: nobody.
    pub except: Option<PeerSet>,
}

/// The maintenance of a route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Maintenance {
    /// The path of the page that clients get. `None`: that of `error_pages`, or Kirin's own text.
    pub page: Option<String>,
    /// The value of `Retry-After`, in seconds.
    pub retry_after_seconds: u64,
    /// The clients that are served.
    pub except: PeerSet,
}

/// The response to a request that is not served.
#[derive(Debug)]
pub struct Refusal<'a> {
    /// The response.
    pub response: Response,
    /// The path of the page that replaces its body. `None`: as for other errors.
    pub page: Option<&'a str>,
}

impl Access {
    /// Returns whether all clients are served.
    pub fn is_for_all(&self) -> bool {
        self.denial.is_none() && self.maintenance.is_none()
    }

    /// Returns the refusal for a request of `client`, if it is not served.
    pub fn refuse(&self, client: &Peer) -> Option<Refusal<'_>> {
        if let Some(Denial { status, except }) = &self.denial
            && !except.as_ref().is_some_and(|served| served.contains(client))
        {
            return Some(Refusal { response: Response::error(*status), page: None });
        }
        self.maintenance.as_ref()?.refuse(client)
    }

    /// Returns the digest of the clients that `allow` names, if it does. It is the same after a
    /// restart, and however their networks are written.
    pub fn allowed_digest(&self) -> Option<u64> {
        let served = self.denial.as_ref()?.except.as_ref()?;
        Some(xxh3_64(&served.canonical_bytes()))
    }
}

impl Maintenance {
    /// Returns the refusal for a request of `client`, if it is not served.
    pub fn refuse(&self, client: &Peer) -> Option<Refusal<'_>> {
        if self.except.contains(client) {
            return None;
        }
        let mut response = Response::error(StatusCode::SERVICE_UNAVAILABLE);
        response.fields.push("Retry-After", self.retry_after_seconds.to_string());
        Some(Refusal { response, page: self.page.as_deref() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn peers(networks: &[&str]) -> PeerSet {
        PeerSet::new(networks.iter().map(|network| network.parse().unwrap()), false)
    }

    fn peer(address: &str) -> Peer {
        Peer::Tcp((address.parse::<std::net::IpAddr>().unwrap(), 1).into())
    }

    fn denial(status: u16, except: Option<&[&str]>) -> Option<Denial> {
        Some(Denial { status: StatusCode::from_u16(status).unwrap(), except: except.map(peers) })
    }

    fn maintenance(except: &[&str]) -> Option<Maintenance> {
        let page = Some("/sorry".into());
        Some(Maintenance { page, retry_after_seconds: 600, except: peers(except) })
    }

    #[test]
    fn a_client_that_is_not_served_gets_the_status_that_the_route_says() {
        let office = "10.1.2.3";
        for (name, access, client, status) in [
            ("no keys", Access::default(), office, 0),
            ("deny", Access { denial: denial(403, None), maintenance: None }, office, 403),
            ("deny 404", Access { denial: denial(404, None), maintenance: None }, office, 404),
            (
                "allow",
                Access { denial: denial(403, Some(&["10.0.0.0/8"])), maintenance: None },
                office,
                0,
            ),
            (
                "allow others",
                Access { denial: denial(404, Some(&["10.0.0.0/8"])), maintenance: None },
                "192.0.2.1",
                404,
            ),
            ("maintenance", Access { denial: None, maintenance: maintenance(&[]) }, office, 503),
            (
                "maintenance, tester",
                Access { denial: None, maintenance: maintenance(&["10.1.0.0/16"]) },
                office,
                0,
            ),
            (
                "a client that is refused does not hear of the maintenance",
                Access { denial: denial(403, Some(&["::/0"])), maintenance: maintenance(&[]) },
                office,
                403,
            ),
            (
                "both let pass",
                Access {
                    denial: denial(403, Some(&["10.0.0.0/8"])),
                    maintenance: maintenance(&["10.0.0.0/8"]),
                },
                office,
                0,
            ),
        ] {
            let refusal = access.refuse(&peer(client));
            let found = refusal.as_ref().map_or(0, |refusal| refusal.response.status.as_u16());
            assert_eq!(found, status, "{name}");
            let retry_after = refusal.as_ref().and_then(|r| r.response.fields.get("retry-after"));
            assert_eq!(retry_after, (status == 503).then_some(&b"600"[..]), "{name}");
            let page = refusal.as_ref().and_then(|refusal| refusal.page);
            assert_eq!(page, (status == 503).then_some("/sorry"), "{name}");
        }
    }

    #[test]
    fn the_digest_tells_which_clients_are_allowed() {
        let digest =
            |networks| Access { denial: denial(403, networks), maintenance: None }.allowed_digest();
        let office = digest(Some(&["10.0.0.0/8"][..]));
        assert!(office.is_some());
        assert_eq!(office, digest(Some(&["10.0.0.0/9", "10.128.0.0/9"])));
        assert_ne!(office, digest(Some(&["10.0.0.0/9"])));
        assert_eq!(digest(None), None);
        assert_eq!(Access::default().allowed_digest(), None);
    }
}

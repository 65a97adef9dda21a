//! The server that gets a request: what the request says about it, and how one event loop selects
//! (see `kirin-balance`).

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use kirin_balance::{Balancer, Criteria, Servers, SlotClaim, TriedServers, key_of};
use kirin_http::{Origin, Peer, RequestHead, address_key, cookie};

use crate::config::{Balancing, HashKey};
use crate::server::ProxiedServer;

/// The servers of an upstream at one time. `known` holds their state, in the same order.
pub(crate) struct ServerSet {
    pub(crate) servers: Vec<Arc<ProxiedServer>>,
    pub(crate) known: Arc<Servers>,
}

/// The properties of a request that decide which server gets it.
#[derive(Debug, Default)]
pub(crate) struct Selection {
    criteria: Criteria,
    /// Whether the client's connection is encrypted. Then the sticky cookie is marked `Secure`.
    pub(crate) secure: bool,
}

/// Selects servers for one event loop.
pub(crate) struct Selector {
    /// The balancer for the latest set.
    balancer: RefCell<Option<Balancer>>,
}

impl Selector {
    pub(crate) fn new() -> Self {
        Self { balancer: RefCell::new(None) }
    }

    /// Claims a slot of the server of `set` that is to get a request.
    pub(crate) fn begin(
        &self,
        set: &ServerSet,
        config: &Balancing,
        selection: &Selection,
    ) -> SlotClaim {
        let mut balancer = self.balancer.borrow_mut();
        let is_same = |balancer: &Balancer| Arc::ptr_eq(balancer.servers(), &set.known);
        let balancer = match &mut *balancer {
            Some(balancer) if is_same(balancer) => balancer,
            other => {
                let seed = RandomState::new().hash_one(0);
                other.insert(Balancer::new(Arc::clone(&set.known), config.method, seed))
            }
        };
        balancer.begin(&selection.criteria, Instant::now())
    }
}

impl Selection {
    /// Reads the properties from `request`, whose target for the servers is `target`.
    pub(crate) fn from_request(
        request: &RequestHead<'_>,
        target: &str,
        origin: Origin<'_>,
        config: &Balancing,
    ) -> Self {
        let key = config.key.as_ref().and_then(|key| match key {
            HashKey::Target => Some(key_of(target.as_bytes())),
            HashKey::Address => Some(match origin.peer {
                Peer::Tcp(address) => key_of(address.ip().to_canonical().to_string().as_bytes()),
                Peer::Unix => key_of(b"unix:"),
            }),
            HashKey::Header(name) => request.field(name).map(key_of),
            HashKey::Cookie(name) => cookie(request, name.as_bytes()).map(key_of),
        });
        let sticky = config.sticky.as_deref().and_then(|name| cookie(request, name.as_bytes()));
        let sticky = sticky.and_then(server_id);
        let client = address_key(origin.peer);
        Self {
            criteria: Criteria { key, sticky, tried: TriedServers::default(), client },
            secure: origin.secure,
        }
    }

    /// Returns the criteria for the balancer.
    pub(crate) fn criteria(&self) -> &Criteria {
        &self.criteria
    }

    /// Forgets the servers that were tried, because the set has changed.
    pub(crate) fn forget_tried(&mut self) {
        self.criteria.tried = TriedServers::default();
    }

    /// Notes that the request has been tried at a server.
    pub(crate) fn add_tried(&mut self, index: usize) {
        self.criteria.tried.add(index);
    }

    /// Returns how many servers have been tried.
    pub(crate) fn tried(&self) -> usize {
        self.criteria.tried.count()
    }

    /// Returns the value of `Set-Cookie` that leads the visitor back to the server `id`; `None` if
    /// the visitor has this cookie already.
    pub(crate) fn new_cookie(&self, name: &str, id: u64) -> Option<String> {
        let secure = if self.secure { "; Secure" } else { "" };
        (self.criteria.sticky != Some(id))
            .then(|| format!("{name}={id:016x}; Path=/; HttpOnly; SameSite=Lax{secure}"))
    }
}

/// Parses the server's number in a sticky cookie.
fn server_id(value: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(value).ok().filter(|digits| digits.len() == 16)?;
    digits
        .bytes()
        .all(|digit| digit.is_ascii_hexdigit())
        .then(|| u64::from_str_radix(digits, 16).ok())?
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_http::request::{HeadLimits, MAX_FIELDS, Parsed, parse};
    use kirin_http::{Client, ListenAddress, RequestNotes};
    use std::mem::MaybeUninit;

    fn selection(fields: &str, config: &Balancing) -> Selection {
        let request = format!("GET /a?b HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
        let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let Ok(Parsed::Complete(head, _)) =
            parse(request.as_bytes(), &mut storage, &HeadLimits::default())
        else {
            panic!("{request}")
        };
        let (peer, local) =
            (Peer::Tcp("[::ffff:192.0.2.1]:9".parse().unwrap()), ListenAddress::Unix("/s".into()));
        let origin = Origin {
            peer: &peer,
            local: &local,
            secure: true,
            client: Client::NotRequested,
            proxy: None,
            now: 0,
            notes: &RequestNotes::default(),
        };
        Selection::from_request(&head, "/a?b", origin, config)
    }

    #[test]
    fn the_key_is_built_from_the_configured_parts_of_the_request() {
        let keys = |key: HashKey, fields: &str| {
            selection(fields, &Balancing { key: Some(key), ..Balancing::default() }).criteria.key
        };
        let of = |text: &str| Some(key_of(text.as_bytes()));
        assert_eq!(keys(HashKey::Target, ""), of("/a?b"));
        assert_eq!(keys(HashKey::Address, ""), of("192.0.2.1"));
        assert_eq!(keys(HashKey::Header("X-User".into()), "x-user: zoe\r\n"), of("zoe"));
        assert_eq!(keys(HashKey::Header("X-User".into()), ""), None);
        assert_eq!(keys(HashKey::Cookie("sid".into()), "Cookie: a=b; sid=7\r\n"), of("7"));
        assert_eq!(selection("", &Balancing::default()).criteria.key, None);
    }

    #[test]
    fn a_visitor_gets_a_cookie_once_and_it_leads_back() {
        let config = Balancing { sticky: Some("server".into()), ..Balancing::default() };
        let cookie = selection("", &config).new_cookie("server", 0xab).unwrap();
        assert_eq!(cookie, "server=00000000000000ab; Path=/; HttpOnly; SameSite=Lax; Secure");
        let back = selection("Cookie: server=00000000000000ab\r\n", &config);
        assert_eq!(back.criteria.sticky, Some(0xab));
        assert_eq!(back.new_cookie("server", 0xab), None);
        assert!(back.new_cookie("server", 0xac).is_some());
        for value in ["", "ab", "+0000000000000ab", "00000000000000abc", "zzzzzzzzzzzzzzzz"] {
            assert_eq!(
                selection(&format!("Cookie: server={value}\r\n"), &config).criteria.sticky,
                None,
                "{value}"
            );
        }
    }
}

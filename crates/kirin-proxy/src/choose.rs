//! Which server gets a request: what the request says about it, and one loop's choice
//! (`kirin-balance`).

use std::cell::RefCell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Instant;

use kirin_balance::{Balancer, Claim, Servers, Tried, Wish, key_of};
use kirin_http::{Origin, Peer, RequestHead, address_key, cookie};

use crate::config::{Balancing, HashKey};
use crate::server::Server;

/// The servers of an upstream at one time, and what is known of them, in the same order.
pub(crate) struct ServerSet {
    pub(crate) servers: Vec<Arc<Server>>,
    pub(crate) known: Arc<Servers>,
}

/// What a request says about the choice.
#[derive(Debug, Default)]
pub(crate) struct Choice {
    wish: Wish,
    /// Whether its connection is encrypted, and the cookie that tells the visitor's server may be
    /// sent on such ones only.
    pub(crate) secure: bool,
}

/// One loop's choice.
pub(crate) struct Chooser {
    /// For the set that was there last.
    balancer: RefCell<Option<Balancer>>,
}

impl Chooser {
    pub(crate) fn new() -> Self {
        Self { balancer: RefCell::new(None) }
    }

    /// Begins a request to the server of `set` that is to get it.
    pub(crate) fn begin(&self, set: &ServerSet, config: &Balancing, choice: &Choice) -> Claim {
        let mut balancer = self.balancer.borrow_mut();
        let is_same = |balancer: &Balancer| Arc::ptr_eq(balancer.servers(), &set.known);
        let balancer = match &mut *balancer {
            Some(balancer) if is_same(balancer) => balancer,
            other => {
                let seed = RandomState::new().hash_one(0);
                other.insert(Balancer::new(Arc::clone(&set.known), config.method, seed))
            }
        };
        balancer.begin(&choice.wish, Instant::now())
    }
}

impl Choice {
    /// Of `request`, which servers get with this target.
    pub(crate) fn of(
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
        Self { wish: Wish { key, sticky, tried: Tried::default(), client }, secure: origin.secure }
    }

    /// What balancing has to know.
    pub(crate) fn wish(&self) -> &Wish {
        &self.wish
    }

    /// The servers are others now, and the request has been to none of them.
    pub(crate) fn forget_tried(&mut self) {
        self.wish.tried = Tried::default();
    }

    /// The request has been to this server.
    pub(crate) fn add_tried(&mut self, index: usize) {
        self.wish.tried.add(index);
    }

    /// To how many servers it has been.
    pub(crate) fn tried(&self) -> usize {
        self.wish.tried.count()
    }

    /// The value of `Set-Cookie` that brings the visitor back to the server `id`, unless the
    /// visitor has it.
    pub(crate) fn new_cookie(&self, name: &str, id: u64) -> Option<String> {
        let secure = if self.secure { "; Secure" } else { "" };
        (self.wish.sticky != Some(id))
            .then(|| format!("{name}={id:016x}; Path=/; HttpOnly; SameSite=Lax{secure}"))
    }
}

/// The server that a cookie's value stands for.
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
    use kirin_http::{Client, ListenAddress};
    use std::mem::MaybeUninit;

    fn choice(fields: &str, config: &Balancing) -> Choice {
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
            client: Client::NotAsked,
            proxy: None,
            now: 0,
        };
        Choice::of(&head, "/a?b", origin, config)
    }

    #[test]
    fn a_key_is_made_of_what_the_configuration_says() {
        let keys = |key: HashKey, fields: &str| {
            choice(fields, &Balancing { key: Some(key), ..Balancing::default() }).wish.key
        };
        let of = |text: &str| Some(key_of(text.as_bytes()));
        assert_eq!(keys(HashKey::Target, ""), of("/a?b"));
        assert_eq!(keys(HashKey::Address, ""), of("192.0.2.1"));
        assert_eq!(keys(HashKey::Header("X-User".into()), "x-user: zoe\r\n"), of("zoe"));
        assert_eq!(keys(HashKey::Header("X-User".into()), ""), None);
        assert_eq!(keys(HashKey::Cookie("sid".into()), "Cookie: a=b; sid=7\r\n"), of("7"));
        assert_eq!(choice("", &Balancing::default()).wish.key, None);
    }

    #[test]
    fn a_visitor_gets_a_cookie_once_and_it_leads_back() {
        let config = Balancing { sticky: Some("server".into()), ..Balancing::default() };
        let cookie = choice("", &config).new_cookie("server", 0xab).unwrap();
        assert_eq!(cookie, "server=00000000000000ab; Path=/; HttpOnly; SameSite=Lax; Secure");
        let back = choice("Cookie: server=00000000000000ab\r\n", &config);
        assert_eq!(back.wish.sticky, Some(0xab));
        assert_eq!(back.new_cookie("server", 0xab), None);
        assert!(back.new_cookie("server", 0xac).is_some());
        for value in ["", "ab", "+0000000000000ab", "00000000000000abc", "zzzzzzzzzzzzzzzz"] {
            assert_eq!(
                choice(&format!("Cookie: server={value}\r\n"), &config).wish.sticky,
                None,
                "{value}"
            );
        }
    }
}

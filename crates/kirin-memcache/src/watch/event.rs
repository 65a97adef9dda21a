//! Events as lines, in the form of memcached's logger (`logger.c` of memcached 1.6).

use std::fmt::Write;
use std::net::SocketAddr;
use std::os::fd::RawFd;
use std::time::Duration;

use kirin_store::{Eviction, KeyState};

use crate::codec::EventKinds;
use crate::text_key::uri_encoded;

/// The client of a connection.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WatchedPeer {
    /// A client on a TCP socket.
    Tcp(SocketAddr),
    /// A client on a unix socket.
    Unix,
}

/// An event that a watcher can be shown. It never has the value of an item.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WatchEvent<'a> {
    /// A command has looked up a key.
    Fetch { key: &'a [u8], state: KeyState, descriptor: RawFd },
    /// A storage command has succeeded or failed.
    Store(StoreEvent<'a>),
    /// An item leaves to make room.
    Evict(Eviction<'a>),
    /// A connection was accepted.
    Open { peer: WatchedPeer, descriptor: RawFd },
    /// A connection has ended.
    Close { peer: WatchedPeer, reason: &'static str, descriptor: RawFd },
}

/// The outcome of a storage command.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoreEvent<'a> {
    pub(crate) key: &'a [u8],
    /// The outcome in memcached's words.
    pub(crate) status: &'static str,
    /// The name of the command.
    pub(crate) verb: &'static str,
    /// The seconds until the item expires. 0 if it never does.
    pub(crate) ttl: u32,
    /// The length of the value in bytes.
    pub(crate) value_len: usize,
    /// Whether there was room for the item.
    pub(crate) has_room: bool,
    pub(crate) descriptor: RawFd,
}

impl WatchEvent<'_> {
    /// Returns the kind to which the event belongs.
    pub(crate) fn kind(&self) -> EventKinds {
        match self {
            WatchEvent::Fetch { .. } => EventKinds::FETCHERS,
            WatchEvent::Store(_) => EventKinds::MUTATIONS,
            WatchEvent::Evict(_) => EventKinds::EVICTIONS,
            WatchEvent::Open { .. } | WatchEvent::Close { .. } => EventKinds::CONNECTIONS,
        }
    }

    /// Returns the line of the event at `time` since the Unix epoch, with its number.
    pub(crate) fn line(&self, time: Duration, number: u64) -> String {
        let mut line = format!("ts={}.{:06} gid={number} ", time.as_secs(), time.subsec_micros());
        // Writing into a string never fails.
        let _ = match self {
            WatchEvent::Fetch { key, state, descriptor } => {
                let (status, class, size) = match state {
                    KeyState::Found { value_len, .. } => ("found", 1, *value_len),
                    KeyState::NotFound => ("not_found", 0, 0),
                    KeyState::Flushed => ("flushed", 0, 0),
                    KeyState::Expired => ("expired", 0, 0),
                };
                let key = uri_encoded(key);
                writeln!(
                    line,
                    "type=item_get key={key} status={status} clsid={class} cfd={descriptor} \
                     size={size}"
                )
            }
            WatchEvent::Store(StoreEvent {
                key,
                status,
                verb,
                ttl,
                value_len,
                has_room,
                descriptor,
            }) => {
                let (key, class) = (uri_encoded(key), u8::from(*has_room));
                writeln!(
                    line,
                    "type=item_store key={key} status={status} cmd={verb} ttl={ttl} \
                     clsid={class} cfd={descriptor} size={value_len}"
                )
            }
            WatchEvent::Evict(eviction) => {
                let key = uri_encoded(eviction.key);
                let fetched = if eviction.was_fetched { "yes" } else { "no" };
                let ttl = eviction.seconds_left.map_or(-1, |left| left as i64);
                let (idle, size) = (eviction.idle_seconds, eviction.value_len);
                writeln!(
                    line,
                    "type=eviction key={key} fetch={fetched} ttl={ttl} la={idle} clsid=1 \
                     size={size}"
                )
            }
            WatchEvent::Open { peer, descriptor } => {
                writeln!(line, "type=conn_new {} cfd={descriptor}", ClientAddress(peer))
            }
            WatchEvent::Close { peer, reason, descriptor } => {
                let address = ClientAddress(peer);
                writeln!(line, "type=conn_close {address} reason={reason} cfd={descriptor}")
            }
        };
        line
    }
}

/// The address of a client as memcached writes it.
struct ClientAddress<'a>(&'a WatchedPeer);

impl std::fmt::Display for ClientAddress<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            WatchedPeer::Tcp(address) => {
                write!(f, "rip={} rport={} transport=tcp", address.ip(), address.port())
            }
            WatchedPeer::Unix => f.write_str("rip=unix rport=0 transport=local"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_store::Expires;

    #[test]
    fn lines_have_the_form_of_memcached() {
        let time = Duration::new(1_795_372_750, 8_463_999);
        let client = WatchedPeer::Tcp("127.0.0.1:38614".parse().expect("an address"));
        let found = KeyState::Found { value_len: 3, expires: Expires::NEVER };
        let stored = StoreEvent {
            key: b"a b",
            status: "stored",
            verb: "set",
            ttl: 100,
            value_len: 4,
            has_room: true,
            descriptor: 16,
        };
        let evicted = Eviction {
            key: b"old",
            value_len: 10,
            idle_seconds: 5,
            was_fetched: true,
            seconds_left: None,
        };
        for (event, expected) in [
            (
                WatchEvent::Fetch { key: b"b:x", state: KeyState::NotFound, descriptor: 16 },
                "type=item_get key=b%3Ax status=not_found clsid=0 cfd=16 size=0",
            ),
            (
                WatchEvent::Fetch { key: b"a", state: found, descriptor: 16 },
                "type=item_get key=a status=found clsid=1 cfd=16 size=3",
            ),
            (
                WatchEvent::Store(stored),
                "type=item_store key=a%20b status=stored cmd=set ttl=100 clsid=1 cfd=16 size=4",
            ),
            (
                WatchEvent::Evict(evicted),
                "type=eviction key=old fetch=yes ttl=-1 la=5 clsid=1 size=10",
            ),
            (
                WatchEvent::Open { peer: client, descriptor: 14 },
                "type=conn_new rip=127.0.0.1 rport=38614 transport=tcp cfd=14",
            ),
            (
                WatchEvent::Close { peer: WatchedPeer::Unix, reason: "normal", descriptor: 14 },
                "type=conn_close rip=unix rport=0 transport=local reason=normal cfd=14",
            ),
        ] {
            let line = format!("ts=1795372750.008463 gid=7 {expected}\n");
            assert_eq!(event.line(time, 7), line);
        }
    }
}

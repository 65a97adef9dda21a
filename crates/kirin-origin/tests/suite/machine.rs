//! A machine: a store with an origin, whose connection a thread keeps.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use kirin_origin::address::Address;
use kirin_origin::{
    Begun, Condition, Content, Loaded, Look, NearStore, NotStored, OriginConfig, OriginError,
    OriginState, Purge, StoreOrigin, Write, Written,
};
use kirin_store::{Expires, Invalidation, NewItem, Now, Store, StoreConfig};
use kirin_tests::{RedisServer, patient, wait_for};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

pub struct Machine {
    pub origin: Arc<StoreOrigin>,
    pub store: Arc<Store>,
    calls: Runtime,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// An item that a test writes.
pub struct Item<'a> {
    pub key: &'a str,
    pub value: &'a str,
    pub tags: &'a [&'a str],
    pub condition: Condition,
}

impl<'a> Item<'a> {
    pub fn new(key: &'a str, value: &'a str) -> Self {
        Self { key, value, tags: &[], condition: Condition::Any }
    }

    pub fn tagged(self, tags: &'a [&'a str]) -> Self {
        Self { tags, ..self }
    }

    pub fn unchanged_since(self, loaded: &Loaded) -> Self {
        let condition = Condition::Unchanged { version: loaded.version, made: loaded.made };
        Self { condition, ..self }
    }
}

impl Machine {
    /// Starts with a server, and waits until it is connected.
    pub fn of(server: &RedisServer) -> Self {
        let machine = Self::at(&format!("redis://{}", server.address()), 60);
        machine.wait_until_connected();
        machine
    }

    /// Starts with an address. Copies live for `stale_seconds` without a proof.
    pub fn at(address: &str, stale_seconds: u64) -> Self {
        Self::trusting(address, stale_seconds, None)
    }

    /// Starts with the usual limits, which a busy machine may exceed.
    pub fn hurried(server: &RedisServer) -> Self {
        Self::hurried_at(&format!("redis://{}", server.address()))
    }

    /// Starts with an address and the usual limits.
    pub fn hurried_at(address: &str) -> Self {
        let config = OriginConfig::new(address.parse().expect("an address"), None);
        Self::with(config.expect("settings"))
    }

    /// Starts with the authorities of a PEM file.
    pub fn trusting(address: &str, stale_seconds: u64, ca: Option<PathBuf>) -> Self {
        let address: Address = address.parse().expect("an address");
        let config = OriginConfig {
            stale_limit: Duration::from_secs(stale_seconds),
            timeout: patient(Duration::from_secs(10)),
            ..OriginConfig::new(address, ca).expect("settings")
        };
        Self::with(config)
    }

    fn with(config: OriginConfig) -> Self {
        let store = Arc::new(Store::new(StoreConfig::default()));
        let origin = StoreOrigin::new(config, Arc::clone(&store));
        let (stop, stopped) = oneshot::channel();
        let kept = Arc::clone(&origin);
        let thread = std::thread::spawn(move || {
            let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async {
                tokio::select! {
                    () = kept.run() => {}
                    _ = stopped => {}
                }
            });
        });
        let calls = Builder::new_current_thread().enable_all().build().expect("a runtime");
        Self { origin, store, calls, stop: Some(stop), thread: Some(thread) }
    }

    pub fn is_connected(&self) -> bool {
        matches!(self.origin.state(), OriginState::Connected { .. })
    }

    pub fn wait_until_connected(&self) {
        let missing =
            std::fmt::from_fn(|output| write!(output, "a connection: {:?}", self.origin.state()));
        wait_for(&missing, || self.is_connected().then_some(()));
    }

    pub fn wait_until_away(&self) -> String {
        wait_for("the origin to be away", || match self.origin.state() {
            OriginState::Away { reason, .. } => Some(reason),
            OriginState::Connected { .. } => None,
        })
    }

    /// Asks the server for one item.
    pub fn load(&self, key: &str) -> Result<Loaded, OriginError> {
        let keys = [Bytes::copy_from_slice(key.as_bytes())];
        self.calls.block_on(self.origin.load(&keys)).map(|loaded| loaded[0].clone())
    }

    /// Returns the value that the server has and that may be served.
    pub fn loaded_value(&self, key: &str) -> Option<String> {
        let item = self.load(key).expect("an answer").item?;
        Some(String::from_utf8(item.decoded.value.to_vec()).expect("text"))
    }

    /// Returns the value of the copy.
    pub fn copy(&self, key: &str) -> Option<String> {
        let item = self.store.get(key.as_bytes(), Now::on_steady_clock())?;
        Some(String::from_utf8(item.value().to_vec()).expect("text"))
    }

    /// Reads as a client does: the copy, or what the server has.
    pub fn read(&self, key: &str) -> Option<String> {
        self.copy(key).or_else(|| self.loaded_value(key))
    }

    pub fn write(&self, item: &Item<'_>) -> Result<Written, OriginError> {
        let tags: Vec<&[u8]> = item.tags.iter().map(|tag| tag.as_bytes()).collect();
        let content = Content::Item {
            value: item.value.as_bytes(),
            flags: 7,
            expires: Some(Expires::NEVER),
            tags: &tags,
            chosen_cas: None,
            is_stale: false,
            is_won: false,
        };
        self.write_content(item.key, content, item.condition)
    }

    pub fn write_content(
        &self,
        key: &str,
        content: Content<'_>,
        condition: Condition,
    ) -> Result<Written, OriginError> {
        let after = match condition {
            Condition::Any | Condition::NotNewer(_) => 0,
            Condition::Unchanged { version, .. } => version,
        };
        let version = self.origin.next_version(after);
        let write = Write { key: key.as_bytes(), content, version, condition };
        self.calls.block_on(self.origin.write(&write, Now::on_steady_clock()))
    }

    /// Writes, and expects that nothing is in the way.
    pub fn set(&self, item: &Item<'_>) {
        assert_eq!(self.write(item), Ok(Written::Done), "{}", item.key);
    }

    /// Returns the store with its origin, as the web side has it.
    pub fn near(&self) -> NearStore {
        NearStore::new(Arc::clone(&self.store), Some(Arc::clone(&self.origin)))
    }

    /// Returns what a request finds that may wait.
    pub fn seen(&self, key: &str) -> Option<String> {
        let key = Bytes::copy_from_slice(key.as_bytes());
        let item = match self.near().look(&key, Now::on_steady_clock()) {
            Look::Item(item) => Some(item),
            Look::Nothing => None,
            Look::Unknown => self.calls.block_on(self.near().load(&[key])).remove(0),
        };
        item.map(|item| String::from_utf8(item.value().to_vec()).expect("text"))
    }

    /// Stores a page that was begun at `begun`.
    pub fn store_page(&self, key: &str, begun: &Begun, tags: &[&str]) -> Result<(), NotStored> {
        let tags: Vec<&[u8]> = tags.iter().map(|tag| tag.as_bytes()).collect();
        let (near, now) = (self.near(), Now::on_steady_clock());
        let item = NewItem::new(b"page").tags(&tags);
        self.calls.block_on(near.store_page(key.as_bytes(), item, begun, now))
    }

    /// Watches tags for something that was begun at `begun`.
    pub fn watch(&self, tags: &[&str], begun: &Begun) -> bool {
        let tags: Vec<&[u8]> = tags.iter().map(|tag| tag.as_bytes()).collect();
        self.calls.block_on(self.near().watch(&tags, begun)).expect("an answer")
    }

    pub fn touch(&self, loaded: &Loaded, seconds: u64) -> bool {
        let now = Now::on_steady_clock();
        let tags: Vec<Bytes> = loaded.item.iter().flat_map(|item| item.decoded.tags()).collect();
        let tags: Vec<&[u8]> = tags.iter().map(|tag| &tag[..]).collect();
        let expires = Expires::after_seconds(seconds, now);
        let touched = self.origin.touch(&loaded.key, &tags, loaded.version, expires, now);
        self.calls.block_on(touched).expect("an answer")
    }

    pub fn purge(&self, keys: &[&str], tags: &[&str], prefixes: &[&str], how: Invalidation) {
        let keys: Vec<&[u8]> = keys.iter().map(|name| name.as_bytes()).collect();
        let tags: Vec<&[u8]> = tags.iter().map(|name| name.as_bytes()).collect();
        let prefixes: Vec<&[u8]> = prefixes.iter().map(|name| name.as_bytes()).collect();
        let purge = Purge { keys: &keys, tags: &tags, prefixes: &prefixes, other_tags: &[] };
        let purged = self.origin.purge(&purge, how, Now::on_steady_clock());
        self.calls.block_on(purged).expect("the purge");
    }
}

impl Drop for Machine {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

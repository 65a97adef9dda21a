//! A machine: a store with an origin, whose connection a thread keeps.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;
use kirin_origin::address::Address;
use kirin_origin::{
    Begun, Condition, Content, Loaded, Look, NearStore, NotStored, OriginConfig, OriginError,
    OriginState, Purge, PurgeFound, StoreOrigin, Write, Written,
};
use kirin_store::{Expires, Invalidation, NewItem, Now, Store, StoreConfig};
use kirin_tests::{RedisCluster, RedisServer, patient, wait_for};
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;

/// What machines share: one server, or a cluster.
pub trait Engine {
    /// Starts it.
    fn start() -> Self;
    /// Returns its address for Kirin.
    fn address(&self) -> String;
    /// Returns its servers.
    fn servers(&self) -> Vec<&RedisServer>;
    /// Returns the server of a name.
    fn server_of(&self, name: &str) -> &RedisServer;
}

impl Engine for RedisServer {
    fn start() -> Self {
        Self::start()
    }

    fn address(&self) -> String {
        format!("redis://{}", self.address())
    }

    fn servers(&self) -> Vec<&RedisServer> {
        vec![self]
    }

    fn server_of(&self, _name: &str) -> &RedisServer {
        self
    }
}

impl Engine for RedisCluster {
    fn start() -> Self {
        Self::start()
    }

    fn address(&self) -> String {
        self.address()
    }

    fn servers(&self) -> Vec<&RedisServer> {
        self.masters.iter().collect()
    }

    fn server_of(&self, name: &str) -> &RedisServer {
        &self.masters[self.master_of(name)]
    }
}

/// Makes two tests of one that takes what starts the machines: for a server and for a cluster.
macro_rules! on_each_engine {
    ($($name:ident)*) => {
        mod on_a_server {
            $(#[test] fn $name() { super::$name::<kirin_tests::RedisServer>(); })*
        }
        mod on_a_cluster {
            $(#[test] fn $name() { super::$name::<kirin_tests::RedisCluster>(); })*
        }
    };
}
pub(crate) use on_each_engine;

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
    pub fn of(engine: &impl Engine) -> Self {
        let machine = Self::at(&engine.address(), 60);
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

    /// Waits for an answer of the server.
    pub fn call<T>(&self, answer: impl Future<Output = T>) -> T {
        self.calls.block_on(answer)
    }

    /// Reads a record.
    pub fn record(&self, name: &str) -> Option<Bytes> {
        self.call(self.origin.read_record(name.as_bytes())).expect("an answer")
    }

    /// Writes a record.
    pub fn write_record(&self, name: &str, value: &str, lasting: Option<Duration>) {
        let written = self.origin.write_record(name.as_bytes(), value.as_bytes(), lasting);
        self.call(written).expect("an answer");
    }

    /// Asks the server for one item.
    pub fn load(&self, key: &str) -> Result<Loaded, OriginError> {
        let keys = [Bytes::copy_from_slice(key.as_bytes())];
        self.calls.block_on(self.origin.load(&keys)).map(|loaded| loaded[0].clone())
    }

    /// Asks the server for several items.
    pub fn load_all(&self, keys: &[String]) -> Vec<Option<String>> {
        let keys: Vec<Bytes> = keys.iter().map(|key| key.clone().into()).collect();
        let loaded = self.calls.block_on(self.origin.load(&keys)).expect("an answer");
        let value = |loaded: Loaded| Some(loaded.item?.decoded.value.to_vec());
        let values = loaded.into_iter().map(value);
        values.map(|value| value.map(|value| String::from_utf8(value).expect("text"))).collect()
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
        let mut after = match condition {
            Condition::Any | Condition::NotNewer(_) => 0,
            Condition::Unchanged { version, .. } => version,
        };
        loop {
            let (key, content) = (key.as_bytes(), content.clone());
            let version = self.origin.next_version(after);
            let write = Write { key, content, version, condition };
            match self.calls.block_on(self.origin.write(&write, Now::on_steady_clock())) {
                // The clock of another machine may be ahead by the time of a trip.
                Ok(Written::Behind { version }) => after = version,
                written => return written,
            }
        }
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

    /// Purges a tag, and returns whether the origin has.
    pub fn try_purge_tag(&self, tag: &str) -> Result<PurgeFound, OriginError> {
        let purge = Purge { tags: &[tag.as_bytes()], ..Purge::default() };
        let purged = self.origin.purge(&purge, Invalidation::Hard, Now::on_steady_clock());
        self.calls.block_on(purged)
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

//! A redis-server with a connection that runs the scripts.

use std::future::Future;
use std::time::{SystemTime, UNIX_EPOCH};

use kirin_tests::RedisServer;
use redis::aio::MultiplexedConnection;
use redis::{FromRedisValue, RedisResult, Script};
use tokio::runtime::{Builder, Runtime};

/// The greatest number that a script returns. It stands for a version that cannot be read.
pub const UNREADABLE: u64 = (1 << 53) - 1;
/// Ten minutes in milliseconds.
pub const TEN_MINUTES: i64 = 600_000;
/// The marks of an item.
pub const STALE: u8 = 1;
pub const WON: u8 = 2;
pub const TOMBSTONE: u8 = 4;
/// The keys that the tests use.
pub const NUMBER: &str = "{k}n";
pub const PURGES: &str = "{k}p";
pub const ITEM: &str = "ki:a";
pub const TAG: &str = "kt:t";

/// A server, and a connection to it.
pub struct Engine {
    pub server: RedisServer,
    pub runtime: Runtime,
    pub connection: MultiplexedConnection,
}

/// The call of put.lua, with the values that most tests use.
pub struct Put<'a> {
    pub condition: &'a str,
    pub expected: u64,
    pub made: Option<u64>,
    pub ttl: u64,
    pub evicts: bool,
    pub item: Vec<u8>,
    pub tags: &'a [&'a str],
}

/// The head of an item, as the engine has it.
#[derive(Debug, PartialEq)]
pub struct Head {
    pub marks: u8,
    pub made: u64,
    pub version: u64,
    pub cas: u64,
}

impl Engine {
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    pub fn start_with(arguments: &[&str]) -> Self {
        let server = RedisServer::start_with(arguments);
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        let client = redis::Client::open(format!("redis://{}", server.address())).expect("a URL");
        let connection = client.get_multiplexed_async_connection();
        let connection = runtime.block_on(connection).expect("a connection");
        Self { server, runtime, connection }
    }

    /// Starts with the number N = M = `number` and nothing purged before.
    pub fn with_number(number: u64) -> Self {
        let engine = Self::start();
        engine.set_number(&format!("{number}:0"), "0:0");
        engine
    }

    pub fn set_number(&self, number: &str, all: &str) {
        self.run(&["SET", NUMBER, number]);
        self.run(&["HSET", PURGES, "", all]);
    }

    pub fn wait<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    pub fn run(&self, words: &[&str]) -> String {
        self.server.command(words)
    }

    /// Runs a command with a reply of another kind, or with bytes.
    pub fn query<T: FromRedisValue>(&self, words: &[&[u8]]) -> T {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(*word);
        }
        let reply = self.wait(command.query_async(&mut self.connection.clone()));
        reply.unwrap_or_else(|error| panic!("{}: {error}", words[0].escape_ascii()))
    }

    pub fn try_put(&self, put: &Put<'_>) -> RedisResult<(u8, u64, u64)> {
        self.wait(put_over(&mut self.connection.clone(), put))
    }

    pub fn put(&self, put: &Put<'_>) -> (u8, u64, u64) {
        self.try_put(put).expect("put.lua runs")
    }

    /// Runs purge.lua. Returns the number, and how many items and tags were found.
    pub fn purge(
        &self,
        kind: &str,
        tags: &[&str],
        prefixes: &[&str],
        items: &[&str],
    ) -> (u64, u64, u64) {
        let mut connection = self.connection.clone();
        let purged = purge_over(&mut connection, kind, tags, prefixes, items);
        let (number, found, tags, _) = self.wait(purged).expect("purge.lua runs");
        (number, found, tags)
    }

    pub fn touch(&self, version: u64, ttl: u64, tags: &[&str]) -> u8 {
        let script = Script::new(include_str!("../../src/scripts/touch.lua"));
        let mut call = script.key(ITEM);
        for tag in tags {
            call.key(*tag);
        }
        call.arg(version).arg(ttl);
        let reply = self.wait(call.invoke_async::<(u8,)>(&mut self.connection.clone()));
        reply.expect("touch.lua runs").0
    }

    pub fn head(&self, key: &str) -> Head {
        let item: Vec<u8> = self.query(&[b"GETRANGE", key.as_bytes(), b"0", b"30"]);
        assert_eq!((item.len(), item[0]), (31, 1), "{key}: {}", item.escape_ascii());
        let number = |at: usize| u64::from_le_bytes(item[at..at + 8].try_into().unwrap());
        Head { marks: item[1], made: number(6), version: number(14), cas: number(22) }
    }

    pub fn has(&self, key: &str) -> bool {
        self.run(&["EXISTS", key]) == "1"
    }

    /// Returns the milliseconds until a key expires; -1: never, -2: no such key.
    pub fn ttl(&self, key: &str) -> i64 {
        self.run(&["PTTL", key]).parse().expect("a number")
    }
}

/// Asserts that a TTL in milliseconds is `expected`, but for what has passed since.
#[track_caller]
pub fn assert_ttl(found: i64, expected: i64) {
    assert!((expected - 20_000..=expected).contains(&found), "{found}, not {expected}");
}

impl Default for Put<'_> {
    fn default() -> Self {
        let item = item(0, 0, 100, 0, b"value");
        Put { condition: "any", expected: 0, made: None, ttl: 0, evicts: false, item, tags: &[] }
    }
}

pub async fn put_over(
    connection: &mut MultiplexedConnection,
    put: &Put<'_>,
) -> RedisResult<(u8, u64, u64)> {
    let script = Script::new(concat!(
        include_str!("../../src/scripts/numbers.lua"),
        include_str!("../../src/scripts/present.lua"),
        include_str!("../../src/scripts/tags.lua"),
        include_str!("../../src/scripts/item.lua"),
        include_str!("../../src/scripts/put.lua")
    ));
    let mut call = script.key(ITEM);
    call.key(NUMBER).key(PURGES);
    for tag in put.tags {
        call.key(*tag);
    }
    call.arg(put.condition).arg(put.expected);
    call.arg(put.made.map(|made| made.to_string()).unwrap_or_default());
    call.arg(put.ttl).arg(u8::from(put.evicts)).arg(&put.item);
    call.invoke_async(connection).await
}

pub async fn purge_over(
    connection: &mut MultiplexedConnection,
    kind: &str,
    tags: &[&str],
    prefixes: &[&str],
    items: &[&str],
) -> RedisResult<(u64, u64, u64, u64)> {
    let script = Script::new(concat!(
        include_str!("../../src/scripts/numbers.lua"),
        include_str!("../../src/scripts/purging.lua"),
        include_str!("../../src/scripts/purge.lua")
    ));
    let mut call = script.key(NUMBER);
    call.key(PURGES);
    for key in tags.iter().chain(items) {
        call.key(*key);
    }
    call.arg(kind).arg(tags.len()).arg(tags.len());
    for prefix in prefixes {
        call.arg(*prefix);
    }
    call.invoke_async(connection).await
}

/// Runs purge_numbers.lua. Returns whether the purge is done, and a number.
pub async fn note_purge_over(
    connection: &mut MultiplexedConnection,
    number: u64,
    prefixes: &[&str],
) -> RedisResult<(u64, u64)> {
    let script = Script::new(concat!(
        include_str!("../../src/scripts/numbers.lua"),
        include_str!("../../src/scripts/purging.lua"),
        include_str!("../../src/scripts/purge_numbers.lua")
    ));
    let mut call = script.key(NUMBER);
    call.key(PURGES).arg("hard").arg(number);
    for prefix in prefixes {
        call.arg(*prefix);
    }
    call.invoke_async(connection).await
}

/// Returns an encoded item without tags. The scripts do not read its tags.
pub fn item(marks: u8, made: u64, version: u64, cas: u64, value: &[u8]) -> Vec<u8> {
    let mut item = vec![1, marks, 7, 0, 0, 0];
    for number in [made, version, cas] {
        item.extend_from_slice(&number.to_le_bytes());
    }
    item.push(0);
    item.extend_from_slice(value);
    item
}

/// Returns the microseconds since 1970, as TIME of the engine says.
pub fn now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a time after 1970");
    u64::try_from(now.as_micros()).expect("a time before 2255")
}

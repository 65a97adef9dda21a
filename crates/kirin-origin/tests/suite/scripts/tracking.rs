//! Which keys the engine tracks for the connection that runs a script.
//!
//! A write ends the tracking of its key. A read begins it: on Valkey 9.1 that of the key that was
//! read, on Redis 6.2 and 7.0 that of all keys of the script. These tests hold on both.

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, PushInfo, PushKind, Value};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::engine::{Engine, ITEM, NUMBER, PURGES, Put, TAG, item, purge_over, put_over};

/// A connection with tracking, and the pushes that it gets.
struct Tracked {
    connection: MultiplexedConnection,
    pushes: UnboundedReceiver<PushInfo>,
}

impl Tracked {
    async fn connect(engine: &Engine, noloop: bool) -> Self {
        let url = format!("redis://{}/?protocol=resp3", engine.server.address());
        let (sender, pushes) = unbounded_channel();
        let config = AsyncConnectionConfig::new().set_push_sender(sender);
        let client = redis::Client::open(url).expect("a URL");
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection = connection.expect("a connection");
        let mut command = redis::cmd("CLIENT");
        command.arg("TRACKING").arg("ON");
        if noloop {
            command.arg("NOLOOP");
        }
        command.exec_async(&mut connection).await.expect("tracking");
        Self { connection, pushes }
    }

    /// Returns the keys that were invalidated, sorted by name. The reply to PING comes after all
    /// pushes that were sent before.
    async fn invalidated(&mut self) -> Vec<String> {
        redis::cmd("PING").exec_async(&mut self.connection).await.expect("PONG");
        let mut keys = Vec::new();
        while let Ok(push) = self.pushes.try_recv() {
            assert_eq!(push.kind, PushKind::Invalidate, "{push:?}");
            for value in push.data {
                let Value::Array(names) = value else { panic!("{value:?}") };
                keys.extend(names.into_iter().map(|name| {
                    redis::from_redis_value::<String>(name).expect("the name of a key")
                }));
            }
        }
        keys.sort();
        keys
    }
}

/// Returns a write of a version.
fn put<'a>(version: u64, tags: &'a [&'a str]) -> Put<'a> {
    Put { item: item(0, 0, version, 0, b""), tags, ..Put::default() }
}

#[test]
fn with_noloop_a_write_tracks_what_it_only_reads() {
    let engine = Engine::with_number(50);
    engine.run(&["SET", TAG, "0:0"]);
    engine.wait(async {
        let mut writer = Tracked::connect(&engine, true).await;
        put_over(&mut writer.connection, &put(100, &[TAG])).await.expect("put");
        assert_eq!(writer.invalidated().await, [""; 0], "nothing of its own");
        for (key, words) in [
            (TAG, ["SET", TAG, "1:0"].as_slice()),
            (NUMBER, &["SET", NUMBER, "51:0"]),
            (PURGES, &["HSET", PURGES, "a", "1:0"]),
        ] {
            engine.run(words);
            assert_eq!(writer.invalidated().await, [key]);
        }
    });
}

#[test]
fn the_item_itself_is_not_tracked_after_a_write() {
    let engine = Engine::with_number(50);
    engine.wait(async {
        for (noloop, version, own) in [(true, 100, [].as_slice()), (false, 200, &[ITEM])] {
            let mut writer = Tracked::connect(&engine, noloop).await;
            put_over(&mut writer.connection, &put(version, &[])).await.expect("put");
            assert_eq!(writer.invalidated().await, own, "NOLOOP: {noloop}");
            put_over(&mut engine.connection.clone(), &put(version + 1, &[])).await.expect("put");
            assert_eq!(writer.invalidated().await, [""; 0], "NOLOOP: {noloop}");
        }
    });
}

#[test]
fn the_numbers_are_tracked_after_each_script_that_writes_them() {
    let engine = Engine::start();
    engine.wait(async {
        for noloop in [true, false] {
            let mut caller = Tracked::connect(&engine, noloop).await;
            for kind in ["put", "purge", "prefix", "lost"] {
                engine.run(&["DEL", ITEM]);
                if kind == "put" || kind == "lost" {
                    engine.run(&["DEL", NUMBER]);
                }
                match kind {
                    "put" => drop(put_over(&mut caller.connection, &put(100, &[])).await),
                    "purge" => {
                        drop(purge_over(&mut caller.connection, "hard", &[TAG], &[], &[ITEM]).await)
                    }
                    _ => drop(purge_over(&mut caller.connection, "soft", &[], &["a"], &[]).await),
                }
                caller.invalidated().await;
                purge_over(&mut engine.connection.clone(), "hard", &[], &["b"], &[])
                    .await
                    .expect("purge");
                let found = caller.invalidated().await;
                assert!(found.contains(&NUMBER.to_owned()), "{kind}, NOLOOP {noloop}: {found:?}");
                assert!(found.contains(&PURGES.to_owned()), "{kind}, NOLOOP {noloop}: {found:?}");
            }
        }
    });
}

#[test]
fn a_kept_tag_is_announced_only_with_a_new_ttl() {
    let engine = Engine::with_number(50);
    engine.wait(async {
        let mut reader = Tracked::connect(&engine, true).await;
        for (ttl, version, expected) in [
            (60_000, 100, [TAG].as_slice()),
            (60_000, 101, &[]),
            (30_000, 102, &[]),
            (3_600_000, 103, &[TAG]),
        ] {
            redis::cmd("GET").arg(TAG).exec_async(&mut reader.connection).await.expect("a tag");
            let put = Put { ttl, ..put(version, &[TAG]) };
            put_over(&mut engine.connection.clone(), &put).await.expect("put");
            assert_eq!(reader.invalidated().await, expected, "{ttl} ms");
        }
    });
}

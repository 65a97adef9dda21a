//! The bytes that an item takes in the store and in memcached.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};

use kirin_store::{NewItem, Now, Store, StoreConfig};

use crate::{ALLOCATOR_NAME, resident_bytes};

fn key(i: usize) -> String {
    format!("key:{i:012}")
}

pub fn store(count: usize, len: usize) {
    let before = resident_bytes("self");
    let store =
        Store::new(StoreConfig { memory_bytes: count * (len + 150), ..StoreConfig::default() });
    let value = vec![b'v'; len];
    let now = Now::from_unix_seconds(1_700_000_000);
    for i in 0..count {
        store.set(key(i).as_bytes(), NewItem::new(&value[..]), now);
    }
    assert_eq!(store.stats().evictions, 0, "there is room for all");
    let resident = resident_bytes("self") - before;
    let content = key(0).len() + len;
    println!(
        "kirin-store, {ALLOCATOR_NAME}: {count} items of {content} bytes: {:.1} bytes an item resident, {:.1} counted, \
         {:.1} more than key and value",
        resident as f64 / count as f64,
        store.used_bytes() as f64 / count as f64,
        resident as f64 / count as f64 - content as f64,
    );
}

/// Prints the nanoseconds of an operation on one thread, with random keys.
pub fn speed(count: usize, len: usize) {
    let store =
        Store::new(StoreConfig { memory_bytes: count * (len + 150), ..StoreConfig::default() });
    let full =
        Store::new(StoreConfig { memory_bytes: count * (len + 150) / 4, ..StoreConfig::default() });
    let (value, now) = (vec![b'v'; len], Now::from_unix_seconds(1_700_000_000));
    let mut random = 0u64;
    let keys: Vec<String> = (0..count)
        .map(|_| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            key((random >> 33) as usize % count)
        })
        .collect();
    let measure = |name: &str, operation: &dyn Fn(&[u8])| {
        let started = Instant::now();
        keys.iter().for_each(|key| operation(key.as_bytes()));
        println!("{ALLOCATOR_NAME}: {name}: {} ns", started.elapsed().as_nanos() / count as u128);
    };
    let set = |store: &Store, key: &[u8]| {
        assert!(store.set(key, NewItem::new(&value[..]), now).is_stored())
    };
    measure("set, new or again", &|key| set(&store, key));
    measure("set again", &|key| set(&store, key));
    measure("get", &|key| assert!(store.get(key, now).is_some()));
    measure("set in a full store", &|key| set(&full, key));
    measure("set in a full store, later", &|key| set(&full, key));
}

pub fn memcached(count: usize, len: usize) {
    let directory = std::env::temp_dir().join(format!("kirin-store-memory-{}", std::process::id()));
    std::fs::create_dir_all(&directory).expect("a temporary directory");
    let socket = directory.join("memcached.sock");
    let mut server = Command::new("memcached")
        .args(["-m", "8192", "-t", "1", "-u", "root", "-s"])
        .arg(&socket)
        .spawn()
        .expect("memcached is installed");
    let started = Instant::now();
    let mut connection = loop {
        match UnixStream::connect(&socket) {
            Ok(connection) => break connection,
            Err(error) if started.elapsed() > Duration::from_secs(10) => {
                panic!("memcached: {error}")
            }
            Err(_) => std::thread::yield_now(),
        }
    };
    let process = server.id().to_string();
    let before = resident_bytes(&process);
    let value = "v".repeat(len);
    let mut commands = String::new();
    for i in 0..count {
        commands.push_str(&format!("set {} 0 0 {len} noreply\r\n{value}\r\n", key(i)));
        if commands.len() > 1 << 16 || i + 1 == count {
            connection.write_all(commands.as_bytes()).expect("memcached reads");
            commands.clear();
        }
    }
    connection.write_all(b"mn\r\n").expect("memcached reads");
    let mut answer = [0; 4];
    connection.read_exact(&mut answer).expect("memcached answers when it is done");
    let resident = resident_bytes(&process) - before;
    let content = key(0).len() + len;
    println!(
        "memcached: {count} items of {content} bytes: {:.1} bytes an item resident, {:.1} more than key and value",
        resident as f64 / count as f64,
        resident as f64 / count as f64 - content as f64,
    );
    server.kill().expect("memcached runs");
    server.wait().expect("memcached ends");
    std::fs::remove_dir_all(&directory).expect("the directory is ours");
}

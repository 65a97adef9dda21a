//! Bytes an item takes: in the store, and in memcached.

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
    let store = Store::new(StoreConfig { memory_bytes: 8 << 30, ..StoreConfig::default() });
    let value = vec![b'v'; len];
    let now = Now::from_unix_seconds(1_700_000_000);
    for i in 0..count {
        store.set(key(i).as_bytes(), NewItem::new(&value[..]), now);
    }
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
            Err(error) if started.elapsed() > Duration::from_secs(10) => panic!("memcached: {error}"),
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

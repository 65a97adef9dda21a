//! A day in a few seconds: two threads store values from 10 bytes to 100 KB in shifting sizes.

use std::sync::Barrier;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use kirin_store::{Expires, NewItem, Now, Store, StoreConfig, StoreMode, StoreRequest};

use crate::{ALLOCATOR_NAME, resident_bytes};

/// A mix of sizes that lasts for a while.
struct Phase {
    name: &'static str,
    smallest: f64,
    largest: f64,
}

const PHASES: [Phase; 7] = [
    Phase { name: "10 B to 100 KB", smallest: 10.0, largest: 100_000.0 },
    Phase { name: "10 B to 200 B", smallest: 10.0, largest: 200.0 },
    Phase { name: "10 KB to 100 KB", smallest: 10_000.0, largest: 100_000.0 },
    Phase { name: "500 B to 2 KB", smallest: 500.0, largest: 2_000.0 },
    Phase { name: "1.1 KB to 1.2 KB", smallest: 1_100.0, largest: 1_200.0 },
    Phase { name: "100 B to 10 KB", smallest: 100.0, largest: 10_000.0 },
    Phase { name: "10 B to 100 KB", smallest: 10.0, largest: 100_000.0 },
];

/// How often each phase replaces the content of the whole budget.
const TURNS: usize = 2;
const THREADS: usize = 2;
const START: u64 = 1_700_000_000;

pub fn run(budget_bytes: usize) {
    let store = Store::new(StoreConfig { memory_bytes: budget_bytes, ..StoreConfig::default() });
    let baseline = resident_bytes("self");
    println!("{ALLOCATOR_NAME}, budget {} MiB", budget_bytes >> 20);
    println!("| sizes | items | used / budget | resident / budget, most | at the end |");
    println!("|---|---|---|---|---|");
    let share = |bytes: usize| bytes.saturating_sub(baseline) as f64 / budget_bytes as f64;
    let mut worst = 0.0f64;
    // The same threads run all the time, as in a server. Memory that a thread leaves behind at its
    // end is not measured.
    let (start, working) = (Barrier::new(THREADS + 1), AtomicUsize::new(0));
    thread::scope(|scope| {
        for thread in 0..THREADS {
            let (store, start, working) = (&store, &start, &working);
            scope.spawn(move || {
                for (number, phase) in PHASES.iter().enumerate() {
                    start.wait();
                    let seed = (number * THREADS + thread) as u64 + 1;
                    work(store, phase, seed, budget_bytes * TURNS / THREADS);
                    working.fetch_sub(1, Ordering::SeqCst);
                }
            });
        }
        for phase in &PHASES {
            working.store(THREADS, Ordering::SeqCst);
            start.wait();
            let mut most = 0;
            while working.load(Ordering::SeqCst) > 0 {
                most = most.max(resident_bytes("self"));
                thread::sleep(Duration::from_millis(5));
            }
            worst = worst.max(share(most));
            println!(
                "| {} | {} | {:.3} | {:.3} | {:.3} |",
                phase.name,
                store.stats().curr_items,
                store.used_bytes() as f64 / budget_bytes as f64,
                share(most),
                share(resident_bytes("self")),
            );
        }
    });
    println!("worst: {worst:.3}\n");
}

/// Sets `bytes` worth of values, with gets, deletes, appends and companions in between.
fn work(store: &Store, phase: &Phase, seed: u64, bytes: usize) {
    let mut random = seed;
    let mut next = || {
        random = random.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (random ^ (random >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    };
    let values = vec![b'v'; 100_001];
    let now = Now::from_unix_seconds(START + seed);
    let mut written = 0;
    while written < bytes {
        // The square makes low keys popular.
        let share = (next() >> 11) as f64 / (1u64 << 53) as f64;
        let key = format!("key-{:010}", (share * share * 4e6) as u64);
        let key = key.as_bytes();
        match next() % 20 {
            0..=9 => {
                let share = (next() >> 11) as f64 / (1u64 << 53) as f64;
                let len = (phase.smallest * (phase.largest / phase.smallest).powf(share)) as usize;
                let expires =
                    if next() % 4 == 0 { Expires::after_seconds(1, now) } else { Expires::NEVER };
                // As in the protocol, small values are copied, and large ones are handed over.
                let item = if len < 2048 {
                    NewItem::new(&values[..len])
                } else {
                    NewItem::new(values[..len].to_vec())
                };
                store.set(key, item.expires(expires), now);
                written += len + key.len() + 60;
            }
            10 => {
                store.delete(key, now);
            }
            11 => {
                let request = StoreRequest { mode: StoreMode::Append, ..StoreRequest::default() };
                store.store(key, NewItem::new(b"appended"), &request, now);
            }
            12 => {
                if let Some(item) = store.get(key, now) {
                    store.companion(&item, now, |value| {
                        (vec![1u8; value.len() / 4], value.len() / 4)
                    });
                }
            }
            13 if next() % 64 == 0 => {
                store.sweep(now, 1000);
            }
            _ => {
                store.get(key, now);
            }
        }
    }
}

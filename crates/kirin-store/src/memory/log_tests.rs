//! Tests of the log: freed pages, held pages, moved records.

use super::*;

fn key(i: u32) -> Vec<u8> {
    format!("key-{i:06}").into_bytes()
}

#[test]
fn a_page_without_live_records_is_freed() {
    let mut log = Log::new(4096);
    let addresses: Vec<Address> = (0..1000).map(|i| log.append(i, &key(i), &[7; 90])).collect();
    for (i, &address) in (0..).zip(&addresses) {
        let entry = log.record(address);
        assert_eq!((entry.slot, entry.key, entry.value), (i, &key(i)[..], &[7; 90][..]));
        assert_eq!(&log.share(address)[..], [&key(i)[..], &[7; 90]].concat());
    }
    assert_eq!(log.live_bytes(), 1000 * (8 + 10 + 90));
    let full = log.bytes();
    for &address in &addresses[..500] {
        log.release(address);
    }
    assert!(log.bytes() < full * 6 / 10, "{} of {full}", log.bytes());
    for &address in &addresses[500..] {
        log.release(address);
    }
    assert_eq!((log.live_bytes(), log.dead_bytes, log.allocated_pages), (0, 0, 1));
}

#[test]
fn a_page_that_a_reader_holds_counts_until_it_lets_go() {
    let mut log = Log::new(4096);
    let addresses: Vec<Address> = (0..100).map(|i| log.append(i, &key(i), &[7; 90])).collect();
    let held = log.share(addresses[0]);
    let before = log.allocated_pages;
    for &address in &addresses {
        log.release(address);
    }
    log.forget_released_pages();
    assert_eq!(log.allocated_pages, 2, "the open page and the held one, of {before}");
    assert_eq!(held, [&key(0)[..], &[7; 90]].concat());
    drop(held);
    log.forget_released_pages();
    assert_eq!(log.allocated_pages, 1);
}

#[test]
fn a_page_that_long_values_are_read_from_is_closed_early() {
    let mut log = Log::new(1 << 17);
    let short = log.append(0, b"short", &[1; 100]);
    log.share(short);
    assert!(!log.should_close_early());
    let long = log.append(1, b"long", &[2; 5000]);
    let (one, other) = (log.share(long), log.share(long));
    assert_ne!(one.as_ptr(), other.as_ptr(), "each reader gets a copy");
    assert!(log.should_close_early());
    log.close_early();
    assert!(!log.should_close_early());
    let (one, other) = (log.share(long), log.share(long));
    assert_eq!(one.as_ptr(), other.as_ptr(), "readers share the page");
    assert_eq!(one, [&b"long"[..], &[2; 5000]].concat());
    drop((one, other));
    assert_eq!(log.record(short).value, [1; 100]);
    let next = log.append(2, b"next", &[3; 10]);
    assert_ne!(next.page, long.page);
    log.release(short);
    log.release(long);
    assert_eq!(
        (log.dead_bytes, log.allocated_pages),
        (0, 1),
        "what was left of it has gone with it"
    );
    log.release(next);
    assert_eq!((log.live_bytes(), log.dead_bytes), (0, 0));
}

#[test]
fn moving_the_live_records_frees_the_emptiest_page() {
    let mut log = Log::new(4096);
    let mut addresses: Vec<Address> = (0..1000).map(|i| log.append(i, &key(i), &[7; 90])).collect();
    for i in (0..1000).filter(|i| i % 4 != 0) {
        log.release(addresses[i]);
    }
    let before = log.allocated_pages;
    while log.is_worth_compacting() {
        let page = log.emptiest().expect("there are holes");
        for (slot, address) in log.records(page) {
            let slot = slot as usize;
            if slot.is_multiple_of(4) && addresses[slot] == address {
                addresses[slot] = log.relocate(address);
            }
        }
    }
    assert!(log.allocated_pages <= before / 3, "{} of {before} pages", log.allocated_pages);
    for i in (0..1000).step_by(4) {
        assert_eq!(log.record(addresses[i]).key, key(i as u32));
    }
}

//! All orders in which requests take and free slots, wait, give up, and meet other servers.
//!
//! `cargo test -p kirin-balance --features loom --lib loom_tests` runs them. `scripts/planted-bugs`
//! shows that they find bugs.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};
use std::time::Instant;

use kirin_sync::model::{check, join, spawn, wait_for, yield_now};

use crate::test_servers::{server, servers};
use crate::{Attempt, Criteria, Entered, QueuePlace, QueueRefusal, Servers, SlotClaim};

/// Three requests can wait.
const QUEUE: usize = 3;

fn claim(servers: &Arc<Servers>) -> Option<Attempt> {
    match servers.claim(&Criteria::default(), Instant::now()) {
        SlotClaim::Given(attempt) => Some(attempt),
        SlotClaim::Full => None,
        SlotClaim::NoServer => panic!("no server"),
    }
}

fn enter(servers: &Arc<Servers>) -> Result<Entered, QueueRefusal> {
    servers.queue().enter(servers, &Criteria::default(), None, Instant::now())
}

/// Takes a slot as the proxy does, and waits for it if there is none.
fn get(servers: &Arc<Servers>) -> Attempt {
    if let Some(attempt) = claim(servers) {
        return attempt;
    }
    match enter(servers) {
        Ok(Entered::Given(attempt)) => attempt,
        Ok(Entered::Waits(place)) => wait_for(place).expect("a server"),
        Err(refusal) => panic!("{refusal:?}"),
    }
}

/// Has a slot for a while, in which another thread can run.
fn have(attempt: Attempt, holders: &AtomicU32) {
    assert_eq!(holders.fetch_add(1, SeqCst), 0, "two requests have the slot");
    yield_now();
    holders.fetch_sub(1, SeqCst);
    drop(attempt);
}

#[test]
fn a_slot_is_never_given_twice() {
    check(5, || {
        let servers = servers(&[1], QUEUE, Instant::now());
        let holders = Arc::new(AtomicU32::new(0));
        let (other, counted) = (Arc::clone(&servers), Arc::clone(&holders));
        let thread = spawn(move || have(get(&other), &counted));
        have(get(&servers), &holders);
        join(thread);
        assert_eq!(servers.server_status(Instant::now())[0].in_flight, 0);
    });
}

#[test]
fn a_slot_that_is_freed_while_a_request_enters_reaches_it() {
    check(6, || {
        let servers = servers(&[1], QUEUE, Instant::now());
        let attempt = claim(&servers).expect("a free server");
        let thread = spawn(move || drop(attempt));
        drop(get(&servers));
        join(thread);
    });
}

#[test]
fn a_slot_of_a_request_that_gives_up_reaches_the_next() {
    fn place(servers: &Arc<Servers>) -> QueuePlace {
        match enter(servers) {
            Ok(Entered::Waits(place)) => place,
            other => panic!("no place in the queue: {other:?}"),
        }
    }
    check(5, || {
        let servers = servers(&[1], QUEUE, Instant::now());
        let attempt = claim(&servers).expect("a free server");
        let (first, second) = (place(&servers), place(&servers));
        let threads = [spawn(move || drop(attempt)), spawn(move || drop(first))];
        drop(wait_for(second).expect("a server"));
        threads.into_iter().for_each(join);
        assert_eq!(servers.queue_status().waiting, 0);
    });
}

#[test]
fn a_request_does_not_wait_for_servers_that_were_exchanged() {
    check(5, || {
        let old = servers(&[1], QUEUE, Instant::now());
        // It stays until the end, so nobody gets this slot.
        let _attempt = claim(&old).expect("a free server");
        let new = Arc::new(old.exchanged([server(0, 1, false), server(1, 1, false)]));
        let entering = Arc::clone(&old);
        let thread = spawn(move || match enter(&entering) {
            Ok(Entered::Given(_)) => panic!("the server is busy"),
            Ok(Entered::Waits(place)) => wait_for(place).err(),
            Err(refusal) => Some(refusal),
        });
        new.begin_serving();
        assert_eq!(join(thread), Some(QueueRefusal::Exchanged));
        assert_eq!(claim(&new).expect("another server").index(), 1);
    });
}

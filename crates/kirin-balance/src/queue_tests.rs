//! Tests of slots and the requests that wait for them: no slot is lost or given twice, and no
//! request is overtaken.

use std::future::Future;
use std::num::NonZeroU32;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::{Entered, QueuePlace, QueueRefusal, RequestQueue};
use crate::fair_queue::Ticket;
use crate::test_servers::{server, servers};
use crate::{Attempt, Balancer, Criteria, Method, Servers, SlotClaim};

/// How long it may take until a free slot is noticed.
const SLOT_WAIT_LIMIT: Duration = Duration::from_secs(20);

/// Returns a server with a limit of one request, and a backup with the same limit.
fn servers_with_backup(queue_length: usize, now: Instant) -> Arc<Servers> {
    let none = servers(&[], queue_length, now);
    Arc::new(none.exchanged([server(0, 1, false), server(1, 1, true)]))
}

/// Asks for a server, and enters the queue if there is no room.
fn ask(servers: &Arc<Servers>, criteria: &Criteria, now: Instant) -> Result<Entered, QueueRefusal> {
    match Balancer::new(Arc::clone(servers), Method::RoundRobin, 7).begin(criteria, now) {
        SlotClaim::Given(attempt) => Ok(Entered::Given(attempt)),
        SlotClaim::NoServer => Err(QueueRefusal::NoServer),
        SlotClaim::Full => servers.queue().enter(servers, criteria, None, now),
    }
}

fn given(entered: Result<Entered, QueueRefusal>) -> Attempt {
    match entered {
        Ok(Entered::Given(attempt)) => attempt,
        other => panic!("no slot: {other:?}"),
    }
}

fn waits(entered: Result<Entered, QueueRefusal>) -> QueuePlace {
    match entered {
        Ok(Entered::Waits(wait)) => wait,
        other => panic!("no place in the queue: {other:?}"),
    }
}

fn poll(wait: &mut QueuePlace) -> Poll<Result<Attempt, QueueRefusal>> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

fn index(polled: &Poll<Result<Attempt, QueueRefusal>>) -> Option<usize> {
    match polled {
        Poll::Ready(Ok(attempt)) => Some(attempt.index()),
        _ => None,
    }
}

/// Checks that no server with waiting requests has room, and that the places are in order.
fn check(queue: &RequestQueue, servers: &Servers, now: Instant) {
    let state = queue.state.lock();
    let millis = servers.millis(now);
    for waiter in state.waiting.iter() {
        let candidates =
            waiter.servers.candidates(&waiter.criteria, millis).expect("a server to wait for");
        for (index, server) in waiter.servers.all().iter().enumerate() {
            let is_for_it =
                waiter.servers.is_candidate(index, candidates, &waiter.criteria, millis);
            assert!(
                !is_for_it || !server.has_room(),
                "a slot is free and {:?} waits",
                waiter.criteria
            );
        }
    }
    assert!(state.waiting.tickets().is_sorted());
    assert_eq!(queue.status().waiting, state.waiting.len());
}

fn in_flight(servers: &Servers, now: Instant) -> Vec<u32> {
    servers.server_status(now).iter().map(|server| server.in_flight).collect()
}

#[test]
fn a_server_never_has_more_requests_than_its_limit() {
    let now = Instant::now();
    let servers = servers(&[2, 1], 0, now);
    let attempts: Vec<_> =
        (0..3).map(|_| given(ask(&servers, &Criteria::default(), now))).collect();
    assert_eq!(in_flight(&servers, now), [2, 1]);
    assert_eq!(ask(&servers, &Criteria::default(), now).err(), Some(QueueRefusal::Full));
    assert_eq!(servers.queue_status().full, 1);
    drop(attempts);
    given(ask(&servers, &Criteria::default(), now));
}

#[test]
fn a_server_without_a_limit_always_has_room() {
    let now = Instant::now();
    let servers = servers(&[1, 0], 0, now);
    let _attempts: Vec<_> =
        (0..100).map(|_| given(ask(&servers, &Criteria::default(), now))).collect();
    assert_eq!(in_flight(&servers, now), [1, 99]);
}

#[test]
fn a_freed_slot_goes_to_the_request_that_has_waited_longest() {
    let now = Instant::now();
    let servers = servers(&[1], 2, now);
    let attempt = given(ask(&servers, &Criteria::default(), now));
    let mut first = waits(ask(&servers, &Criteria::default(), now));
    let mut second = waits(ask(&servers, &Criteria::default(), now));
    assert_eq!(ask(&servers, &Criteria::default(), now).err(), Some(QueueRefusal::Full));
    assert!(poll(&mut first).is_pending());
    drop(attempt);
    let _third = waits(ask(&servers, &Criteria::default(), now));
    assert!(poll(&mut second).is_pending());
    assert_eq!(index(&poll(&mut first)), Some(0), "and the attempt is dropped");
    assert_eq!(index(&poll(&mut second)), Some(0));
}

#[test]
fn a_slot_assigned_to_a_request_that_leaves_goes_to_the_next() {
    let now = Instant::now();
    let servers = servers(&[1], 3, now);
    let attempt = given(ask(&servers, &Criteria::default(), now));
    let [first, second, third] = [0; 3].map(|_| waits(ask(&servers, &Criteria::default(), now)));
    drop(second);
    drop(attempt);
    assert_eq!(
        servers.queue_status().waiting,
        1,
        "the first has its slot and does not know it yet"
    );
    drop(first);
    let mut third = third;
    assert_eq!(index(&poll(&mut third)), Some(0));
    assert_eq!(in_flight(&servers, now), [0]);
}

#[test]
fn a_visitor_waits_for_its_own_server_and_others_do_not_wait_behind_it() {
    let now = Instant::now();
    let servers = servers(&[1, 1], 9, now);
    let own = Criteria { sticky: servers.id(0), ..Criteria::default() };
    let busy = given(ask(&servers, &own, now));
    let mut visitor = waits(ask(&servers, &own, now));
    let other = given(ask(&servers, &Criteria::default(), now));
    assert_eq!(other.index(), 1);
    drop(other);
    assert!(poll(&mut visitor).is_pending());
    // The server is no longer there for the request.
    busy.failed(now);
    assert_eq!(index(&poll(&mut visitor)), Some(1));
}

#[test]
fn a_backup_is_not_used_while_a_request_can_wait() {
    let now = Instant::now();
    let servers = servers_with_backup(9, now);
    let attempt = given(ask(&servers, &Criteria::default(), now));
    let mut wait = waits(ask(&servers, &Criteria::default(), now));
    assert!(poll(&mut wait).is_pending());
    servers.probed(0, false, now);
    assert_eq!(index(&poll(&mut wait)), Some(1), "it is the only one now");
    drop(attempt);
}

#[test]
fn a_request_that_finds_the_queue_full_goes_to_a_backup() {
    let now = Instant::now();
    for queue_length in [0, 1] {
        let servers = servers_with_backup(queue_length, now);
        let primary = given(ask(&servers, &Criteria::default(), now));
        let waiting: Vec<_> =
            (0..queue_length).map(|_| waits(ask(&servers, &Criteria::default(), now))).collect();
        let backup = given(ask(&servers, &Criteria::default(), now));
        assert_eq!((primary.index(), backup.index()), (0, 1));
        assert_eq!(servers.queue_status().full, 0);
        assert_eq!(ask(&servers, &Criteria::default(), now).err(), Some(QueueRefusal::Full));
        drop(backup);
        assert_eq!(servers.queue_status().waiting, queue_length, "they wait for the primary");
        assert_eq!(given(ask(&servers, &Criteria::default(), now)).index(), 1);
        drop(primary);
        for mut wait in waiting {
            assert_eq!(index(&poll(&mut wait)), Some(0));
        }
        assert_eq!(given(ask(&servers, &Criteria::default(), now)).index(), 0);
    }
}

#[test]
fn no_backup_replaces_a_visitors_own_server_that_is_busy() {
    let now = Instant::now();
    let servers = servers_with_backup(0, now);
    let own = Criteria { sticky: servers.id(0), ..Criteria::default() };
    let _busy = given(ask(&servers, &own, now));
    assert_eq!(ask(&servers, &own, now).err(), Some(QueueRefusal::Full));
    let other = given(ask(&servers, &Criteria::default(), now));
    assert_eq!(other.index(), 1);
}

#[test]
fn a_backup_that_has_failed_gets_no_request_of_busy_servers() {
    let now = Instant::now();
    let servers = servers_with_backup(0, now);
    let _busy = given(ask(&servers, &Criteria::default(), now));
    servers.probed(1, false, now);
    assert_eq!(ask(&servers, &Criteria::default(), now).err(), Some(QueueRefusal::Full));
}

#[test]
fn a_waiting_request_is_told_that_all_servers_have_become_unhealthy() {
    let now = Instant::now();
    let servers = servers(&[1], 9, now);
    let _attempt = given(ask(&servers, &Criteria::default(), now));
    let mut wait = waits(ask(&servers, &Criteria::default(), now));
    servers.probed(0, false, now);
    assert!(matches!(poll(&mut wait), Poll::Ready(Err(QueueRefusal::NoServer))));
}

#[test]
fn a_server_on_trial_gets_one_of_the_waiting_requests() {
    let now = Instant::now();
    let servers = servers(&[2, 1], 9, now);
    let tunnel =
        given(ask(&servers, &Criteria { sticky: servers.id(0), ..Criteria::default() }, now));
    tunnel.failed(now);
    let _busy = given(ask(&servers, &Criteria::default(), now));
    let mut waiting: Vec<_> =
        (0..2).map(|_| waits(ask(&servers, &Criteria::default(), now))).collect();
    let later = now + Duration::from_secs(3601);
    servers.queue().serve_all(later);
    let Poll::Ready(Ok(trial)) = poll(&mut waiting[0]) else {
        panic!("it waits though one may be tried")
    };
    assert_eq!(trial.index(), 0);
    assert!(poll(&mut waiting[1]).is_pending(), "one at a time");
    drop(tunnel);
    assert!(poll(&mut waiting[1]).is_pending(), "though it has room");
    trial.answered(later);
    assert_eq!(index(&poll(&mut waiting[1])), Some(0));
}

#[test]
fn new_servers_take_waiting_requests_in_their_order() {
    let now = Instant::now();
    let old = servers(&[1], 2, now);
    let _attempt = given(ask(&old, &Criteria::default(), now));
    let mut waiting: Vec<_> = (0..2).map(|_| waits(ask(&old, &Criteria::default(), now))).collect();
    let new = Arc::new(old.exchanged([server(0, 1, false), server(7, 1, false)]));
    new.begin_serving();
    let tickets: Vec<Ticket> = waiting.iter().map(QueuePlace::ticket).collect();
    for wait in &mut waiting {
        assert!(matches!(poll(wait), Poll::Ready(Err(QueueRefusal::Exchanged))));
    }
    let entered = old.queue().enter(&old, &Criteria::default(), Some(tickets[0]), now);
    assert_eq!(entered.err(), Some(QueueRefusal::Exchanged), "the old are no more");
    let last = given(ask(&new, &Criteria::default(), now));
    let enter = |ticket| waits(new.queue().enter(&new, &Criteria::default(), ticket, now));
    let (mut second, mut first) = (enter(Some(tickets[1])), enter(Some(tickets[0])));
    assert_eq!(ask(&new, &Criteria::default(), now).err(), Some(QueueRefusal::Full));
    drop(last);
    assert!(poll(&mut second).is_pending());
    assert_eq!(index(&poll(&mut first)), Some(1));
}

/// An event. Its numbers choose what it happens to.
#[derive(Clone, Debug)]
enum Event {
    Come { own: Option<usize> },
    End(usize),
    Look(usize),
    Go(usize),
    Eject(usize),
    Answer(usize),
    Probe(usize, bool),
    Exchange(usize),
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        6 => proptest::option::weighted(0.3, 0usize..4).prop_map(|own| Event::Come { own }),
        4 => any::<usize>().prop_map(Event::End),
        3 => any::<usize>().prop_map(Event::Look),
        3 => any::<usize>().prop_map(Event::Go),
        1 => any::<usize>().prop_map(Event::Eject),
        1 => any::<usize>().prop_map(Event::Answer),
        1 => (any::<usize>(), any::<bool>()).prop_map(|(index, is_healthy)| Event::Probe(index, is_healthy)),
        1 => (1usize..5).prop_map(Event::Exchange),
    ]
}

fn nth<T>(list: &mut Vec<T>, number: usize) -> Option<T> {
    (!list.is_empty()).then(|| list.remove(number % list.len()))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_sequence_of_events_loses_a_slot_or_lets_a_request_overtake(
        limits in proptest::collection::vec(1u32..4, 1..4),
        queue_length in 0usize..8,
        events in proptest::collection::vec(event(), 1..120),
    ) {
        let now = Instant::now();
        let mut servers = servers(&limits, queue_length, now);
        let queue = Arc::clone(servers.queue());
        // Requests that wait or have not looked at what they were given yet, with the number of the
        // event that they came with. Positions do not tell who came first: requests of one client
        // exchange theirs.
        let (mut running, mut waiting) = (Vec::<Attempt>::new(), Vec::<(QueuePlace, Option<usize>)>::new());
        let mut last_given = None;
        for (came, event) in events.into_iter().enumerate() {
            match event {
                Event::Come { own } => {
                    let sticky = own.and_then(|own| servers.id(own));
                    let came_to = ask(&servers, &Criteria { sticky, ..Criteria::default() }, now);
                    match came_to {
                        Ok(Entered::Given(attempt)) => running.push(attempt),
                        Ok(Entered::Waits(wait)) => waiting.push((wait, sticky.is_none().then_some(came))),
                        Err(refused) => prop_assert!(refused != QueueRefusal::Exchanged),
                    }
                }
                Event::End(number) => drop(nth(&mut running, number)),
                Event::Look(number) => {
                    if let Some((mut wait, came_for_any)) = nth(&mut waiting, number) {
                        match poll(&mut wait) {
                            Poll::Pending => waiting.push((wait, came_for_any)),
                            Poll::Ready(Ok(attempt)) => running.push(attempt),
                            Poll::Ready(Err(refused)) => prop_assert!(refused != QueueRefusal::Full),
                        }
                    }
                }
                Event::Go(number) => drop(nth(&mut waiting, number)),
                Event::Eject(number) => { servers.failed(number % servers.len(), now); }
                Event::Answer(number) => if let Some(attempt) = nth(&mut running, number) {
                    attempt.answered(now);
                    running.push(attempt);
                },
                Event::Probe(number, is_healthy) => { servers.probed(number % servers.len(), is_healthy, now); }
                Event::Exchange(count) => {
                    let limit = |name: usize| limits.get(name).copied().unwrap_or(1);
                    servers = Arc::new(servers.exchanged((0..count).map(|name| server(name, limit(name), false))));
                    servers.begin_serving();
                    last_given = None;
                }
            }
            check(&queue, &servers, now);
            for server in servers.server_status(now) {
                prop_assert!(server.in_flight <= server.max_in_flight.map_or(u32::MAX, NonZeroU32::get));
            }
            // Among requests that accept any server, those that still wait have come after those
            // that have one.
            let state = queue.state.lock();
            let (mut still, mut given) = (Vec::new(), Vec::new());
            for (wait, came_for_any) in &waiting {
                let has_left = state.waiting.index_of(wait.ticket()).is_none();
                if has_left { &mut given } else { &mut still }.extend(*came_for_any);
            }
            drop(state);
            last_given = last_given.max(given.into_iter().max());
            let first = still.into_iter().min();
            prop_assert!(
                first.is_none() || first > last_given,
                "{first:?} waits, {last_given:?} does not"
            );
        }
        drop(waiting);
        drop(running);
        prop_assert_eq!(queue.status().waiting, 0);
        prop_assert!(in_flight(&servers, now).iter().all(|count| *count == 0));
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

/// Waits until `wait` is given a slot.
fn block_on(wait: QueuePlace) -> Attempt {
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut wait = pin!(wait);
    loop {
        if let Poll::Ready(given) = wait.as_mut().poll(&mut context) {
            return given.expect("a server");
        }
        let began = Instant::now();
        thread::park_timeout(SLOT_WAIT_LIMIT);
        assert!(began.elapsed() < SLOT_WAIT_LIMIT, "a slot has been lost");
    }
}

#[test]
fn concurrent_requests_of_many_threads_lose_no_slot() {
    let servers = servers(&[1, 2], 64, Instant::now());
    let working = AtomicUsize::new(0);
    thread::scope(|scope| {
        for number in 0..8usize {
            let (servers, working) = (&servers, &working);
            scope.spawn(move || {
                for round in 0..3000usize {
                    let attempt = match ask(servers, &Criteria::default(), Instant::now()) {
                        Ok(Entered::Given(attempt)) => attempt,
                        // Some leave at once, perhaps with a slot that they are just given.
                        Ok(Entered::Waits(wait)) if (round + number) % 3 == 0 => {
                            thread::yield_now();
                            drop(wait);
                            continue;
                        }
                        Ok(Entered::Waits(wait)) => block_on(wait),
                        Err(refused) => panic!("{refused:?}"),
                    };
                    assert!(working.fetch_add(1, SeqCst) < 3, "more than there may be");
                    if round % 5 == 0 {
                        thread::yield_now();
                    }
                    working.fetch_sub(1, SeqCst);
                    drop(attempt);
                }
            });
        }
    });
    let status = servers.queue_status();
    assert_eq!((status.waiting, in_flight(&servers, Instant::now())), (0, vec![0, 0]));
}

#[test]
fn a_slot_freed_while_a_request_enters_the_queue_is_found() {
    let now = Instant::now();
    let servers = servers(&[1], 1, now);
    let attempt = given(ask(&servers, &Criteria::default(), now));
    // The request that frees the slot here sees no waiting request.
    let entered =
        servers.queue().enter_with(&servers, &Criteria::default(), None, now, || drop(attempt));
    let mut wait = waits(entered);
    check(servers.queue(), &servers, now);
    assert_eq!(index(&poll(&mut wait)), Some(0));
}

#[test]
fn a_client_that_fills_the_queue_does_not_shut_others_out() {
    let now = Instant::now();
    let servers = servers(&[1], 3, now);
    let of = |client| Criteria { client: Some(client), ..Criteria::default() };
    let attempt = given(ask(&servers, &of(1), now));
    let [mut first, mut second, mut third] = [0; 3].map(|_| waits(ask(&servers, &of(1), now)));
    assert_eq!(ask(&servers, &of(1), now).err(), Some(QueueRefusal::Full));
    let mut other = waits(ask(&servers, &of(2), now));
    assert!(
        matches!(poll(&mut third), Poll::Ready(Err(QueueRefusal::Full))),
        "its last one gives way"
    );
    assert_eq!(servers.queue_status().full, 2);
    drop(attempt);
    assert_eq!(index(&poll(&mut first)), Some(0), "and the attempt is dropped");
    assert!(poll(&mut second).is_pending());
    assert_eq!(index(&poll(&mut other)), Some(0));
    assert_eq!(index(&poll(&mut second)), Some(0));
}

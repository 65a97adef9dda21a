//! Tests of the queue and the idle workers of an application.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;

use proptest::prelude::*;

use super::*;

/// Workers are numbers. Even and odd ones have different homes.
impl Pooled for u32 {
    type Home = u32;

    fn is_near(&self, home: u32) -> bool {
        self % 2 == home
    }

    /// Returns true for workers from 1,000 on.
    fn is_leaving(&self) -> bool {
        *self >= 1000
    }

    /// Returns the hundreds.
    fn process(&self) -> u32 {
        *self / 100
    }

    /// Returns the hundreds.
    fn load(&self) -> usize {
        (*self / 100) as usize
    }
}

/// Polls a place in the queue once.
fn poll(wait: &mut Wait<u32>) -> Poll<Result<u32, Refused>> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

fn idle(pool: &Pool<u32>) -> usize {
    pool.idle(|worker| Some(*worker)).len()
}

fn wait(pool: &Arc<Pool<u32>>, here: u32) -> Wait<u32> {
    match pool.take(here, None, None) {
        Ok(Acquired::Wait(wait)) => wait,
        Ok(Acquired::Worker(_)) => panic!("there was an idle worker"),
        Err(refused) => panic!("{refused:?}"),
    }
}

#[test]
fn the_worker_that_worked_last_is_taken_first_unless_another_is_at_home() {
    let pool = Pool::new(8);
    (1..=5).for_each(|worker| pool.release(worker));
    for (here, expected) in [(0, 4), (0, 2), (0, 5), (1, 3)] {
        let Ok(Acquired::Worker(worker)) = pool.take(here, None, None) else {
            panic!("all are idle")
        };
        assert_eq!(worker, expected);
    }
}

#[test]
fn a_closed_pool_gives_its_workers_to_the_pool_beside_it() {
    let serving = Pool::new(8);
    let trial = Pool::beside(&serving, 8);
    assert_eq!(trial.take(0, None, None).err(), Some(Refused::Closed));
    trial.open();
    let (mut first, second) = (wait(&trial, 0), wait(&trial, 0));
    trial.release(2);
    assert_eq!(poll(&mut first), Poll::Ready(Ok(2)));
    // A worker that is assigned while the pool closes finds its way, too.
    trial.release(4);
    assert!(trial.close().is_empty());
    drop(second);
    trial.release(6);
    trial.release(1000);
    assert_eq!((idle(&trial), idle(&serving)), (0, 2));
    trial.open();
    let mut waiting = wait(&trial, 0);
    trial.close();
    assert_eq!(poll(&mut waiting), Poll::Ready(Err(Refused::Closed)));
}

#[test]
fn a_worker_with_fewer_requests_is_taken_first() {
    let pool = Pool::new(8);
    [101, 3, 202, 302, 102, 5].into_iter().for_each(|worker| pool.release(worker));
    for (here, expected) in [(0, 5), (0, 3), (0, 102), (0, 101), (1, 202)] {
        let Ok(Acquired::Worker(worker)) = pool.take(here, None, None) else {
            panic!("all are idle")
        };
        assert_eq!(worker, expected);
    }
}

#[test]
fn a_worker_that_is_leaving_gets_no_request() {
    let pool = Pool::new(8);
    let mut first = wait(&pool, 0);
    pool.release(1000);
    assert!(poll(&mut first).is_pending());
    assert_eq!(idle(&pool), 0);
    pool.release(1);
    assert_eq!(poll(&mut first), Poll::Ready(Ok(1)));
}

#[test]
fn the_request_that_has_waited_longest_gets_the_worker() {
    let pool = Pool::new(8);
    let (mut first, mut second) = (wait(&pool, 0), wait(&pool, 0));
    pool.release(1);
    assert!(poll(&mut second).is_pending());
    assert_eq!(poll(&mut first), Poll::Ready(Ok(1)));
    pool.release(2);
    assert_eq!(poll(&mut second), Poll::Ready(Ok(2)));
}

#[test]
fn a_worker_goes_to_a_request_at_its_home_that_came_at_nearly_the_same_time() {
    let pool = Pool::new(8);
    let (mut other, mut at_home) = (wait(&pool, 0), wait(&pool, 1));
    // If the machine paused between the two, the first would be served first.
    let near = {
        let state = pool.state.lock();
        state.waiting.get(1).unwrap().since - state.waiting.get(0).unwrap().since <= OVERTAKING
    };
    pool.release(1);
    assert_eq!(poll(&mut at_home).is_ready(), near);
    assert_eq!(poll(&mut other).is_ready(), !near);
}

#[test]
fn nobody_is_overtaken_by_those_who_came_much_later() {
    let pool = Pool::new(8);
    let (mut first, mut second) = (wait(&pool, 0), wait(&pool, 1));
    pool.state.lock().waiting.get_mut(0).unwrap().since -= 2 * OVERTAKING;
    pool.release(1);
    assert!(poll(&mut second).is_pending());
    assert_eq!(poll(&mut first), Poll::Ready(Ok(1)));
}

#[test]
fn a_full_queue_refuses_and_a_place_that_is_given_up_is_free_again() {
    let pool = Pool::<u32>::new(2);
    let (first, _second) = (wait(&pool, 0), wait(&pool, 0));
    assert!(matches!(pool.take(0, None, None), Err(Refused::Full)));
    drop(first);
    assert_eq!(pool.waiting(), 1);
    let _third = wait(&pool, 0);
}

#[test]
fn a_worker_on_its_way_to_a_request_that_is_gone_goes_to_the_next() {
    let pool = Pool::new(8);
    let (first, mut second) = (wait(&pool, 0), wait(&pool, 0));
    pool.release(1);
    drop(first);
    assert_eq!(poll(&mut second), Poll::Ready(Ok(1)));
}

#[test]
fn requests_that_have_waited_too_long_are_refused() {
    let pool = Pool::<u32>::new(8);
    let mut first = wait(&pool, 0);
    let limit = Duration::from_secs(3);
    assert_eq!(pool.expire(Instant::now(), limit), 0);
    assert_eq!(pool.expire(Instant::now() + 2 * limit, limit), 1);
    assert_eq!(poll(&mut first), Poll::Ready(Err(Refused::WaitedTooLong)));
    assert_eq!(pool.waiting(), 0);
}

#[test]
fn a_closed_pool_refuses_those_who_wait_and_come_and_keeps_no_worker() {
    let pool = Pool::new(8);
    let mut first = wait(&pool, 0);
    assert_eq!(pool.close(), Vec::<u32>::new());
    assert_eq!(poll(&mut first), Poll::Ready(Err(Refused::Closed)));
    assert!(matches!(pool.take(0, None, None), Err(Refused::Closed)));
    pool.release(1);
    assert_eq!(idle(&pool), 0);
}

/// An event in a pool. Numbers choose among what is there, modulo its count.
#[derive(Clone, Debug)]
enum Step {
    Take,
    Release(usize),
    Poll(usize),
    GiveUp(usize),
    Lose(u32),
    Expire,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Take),
        4 => any::<usize>().prop_map(Step::Release),
        3 => any::<usize>().prop_map(Step::Poll),
        2 => any::<usize>().prop_map(Step::GiveUp),
        1 => (0u32..4).prop_map(Step::Lose),
        1 => Just(Step::Expire),
    ]
}

proptest! {
    #[test]
    fn no_worker_is_lost_or_in_two_places(steps in prop::collection::vec(step(), 0..200)) {
        const WORKERS: u32 = 4;
        let limit = Duration::from_secs(1);
        let pool = Pool::new(3);
        (0..WORKERS).for_each(|worker| pool.release(worker));
        let mut turn = 0;
        let (mut held, mut waits, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Take => match pool.take({ turn += 1; turn % 2 }, None, None) {
                    Ok(Acquired::Worker(worker)) => held.push(worker),
                    Ok(Acquired::Wait(wait)) => {
                        prop_assert_eq!(idle(&pool), 0, "nobody waits beside an idle worker");
                        waits.push(wait);
                    }
                    Err(refused) => {
                        prop_assert_eq!(refused, Refused::Full);
                        prop_assert_eq!(pool.waiting(), 3);
                    }
                },
                Step::Release(choice) if !held.is_empty() => {
                    pool.release(held.swap_remove(choice % held.len()));
                }
                Step::Poll(choice) if !waits.is_empty() => {
                    let choice = choice % waits.len();
                    if let Poll::Ready(result) = poll(&mut waits[choice]) {
                        held.extend(result);
                        waits.swap_remove(choice);
                    }
                }
                Step::GiveUp(choice) if !waits.is_empty() => drop(waits.swap_remove(choice % waits.len())),
                Step::Lose(worker) => lost.extend(pool.remove_idle(|idle| *idle == worker)),
                Step::Expire => {
                    pool.expire(Instant::now() + 2 * limit, limit);
                    prop_assert_eq!(pool.waiting(), 0);
                }
                Step::Release(_) | Step::Poll(_) | Step::GiveUp(_) => {}
            }
        }
        drop(waits);
        let mut all = pool.close();
        all.extend(held);
        all.extend(lost);
        all.sort_unstable();
        prop_assert_eq!(all, (0..WORKERS).collect::<Vec<_>>());
    }
}

#[test]
fn loops_that_take_wait_and_give_up_at_once_neither_lose_nor_share_a_worker() {
    const WORKERS: u32 = 3;
    const TURNS: usize = 3000;
    let pool = Pool::new(20);
    let in_use: [AtomicBool; WORKERS as usize] = Default::default();
    (0..WORKERS).for_each(|worker| pool.release(worker));
    let (served, given_up) = (AtomicUsize::new(0), AtomicUsize::new(0));

    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (pool, in_use, served, given_up) = (&pool, &in_use, &served, &given_up);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let work = |request: usize| async move {
                    let worker = match pool.take(thread % 2, None, None) {
                        Ok(Acquired::Worker(worker)) => worker,
                        // Some requests leave while they wait. A worker may be assigned to them by
                        // then.
                        Ok(Acquired::Wait(wait)) if request.is_multiple_of(3) => {
                            tokio::task::yield_now().await;
                            drop(wait);
                            given_up.fetch_add(1, Ordering::Relaxed);
                            return;
                        }
                        Ok(Acquired::Wait(wait)) => wait.await.unwrap(),
                        Err(refused) => panic!("{refused:?}"),
                    };
                    assert!(
                        !in_use[worker as usize].swap(true, Ordering::SeqCst),
                        "worker {worker} serves two requests"
                    );
                    tokio::task::yield_now().await;
                    assert!(in_use[worker as usize].swap(false, Ordering::SeqCst));
                    served.fetch_add(1, Ordering::Relaxed);
                    pool.release(worker);
                };
                runtime.block_on(async {
                    for turn in 0..TURNS {
                        tokio::join!(
                            work(turn),
                            work(turn + 1),
                            work(turn + 2),
                            work(turn + 3),
                            work(turn + 4)
                        );
                    }
                });
            });
        }
    });
    assert_eq!((idle(&pool), pool.waiting()), (WORKERS as usize, 0));
    let (served, given_up) = (served.into_inner(), given_up.into_inner());
    assert_eq!(served + given_up, 4 * 5 * TURNS);
    assert!(given_up > 0, "five at once on three workers");
}

#[test]
fn a_client_that_fills_the_queue_keeps_no_other_waiting_or_out() {
    let pool = Pool::<u32>::new(3);
    let wait_as = |client| match pool.take(0, Some(client), None) {
        Ok(Acquired::Wait(wait)) => wait,
        _ => panic!("no place in the queue"),
    };
    let [mut first, mut second, mut third] = [0; 3].map(|_| wait_as(1));
    assert!(matches!(pool.take(0, Some(1), None), Err(Refused::Full)));
    let mut other = wait_as(2);
    assert_eq!(poll(&mut third), Poll::Ready(Err(Refused::Full)), "its last one gives way");
    for worker in [1, 3] {
        pool.release(worker);
    }
    assert_eq!(poll(&mut first), Poll::Ready(Ok(1)));
    assert_eq!(poll(&mut other), Poll::Ready(Ok(3)));
    assert!(poll(&mut second).is_pending());
}

/// Enters requests of `(client, home)`, all within the time of overtaking.
fn wait_as(pool: &Arc<Pool<u32>>, requests: &[(u64, u32)]) -> Vec<Wait<u32>> {
    let since = Instant::now();
    let enter = |(client, home): &(u64, u32)| match pool.take(*home, Some(*client), None) {
        Ok(Acquired::Wait(wait)) => wait,
        _ => panic!("no place in the queue"),
    };
    let waits = requests.iter().map(enter).collect();
    let mut state = pool.state.lock();
    (0..requests.len()).for_each(|index| state.waiting.get_mut(index).unwrap().since = since);
    waits
}

#[test]
fn a_client_that_overtakes_itself_is_not_further_ahead_of_others() {
    let pool = Pool::<u32>::new(99);
    let flood: Vec<_> = (0..40).map(|number| (1, u32::from(number >= 12))).collect();
    let mut flood = wait_as(&pool, &flood);
    // Those at its home come first: the thirteenth, before all others.
    pool.release(1);
    assert_eq!(poll(&mut flood[12]), Poll::Ready(Ok(1)));
    let Ok(Acquired::Wait(mut other)) = pool.take(0, Some(2), None) else { panic!("no wait") };
    pool.release(1);
    assert_eq!(poll(&mut flood[13]), Poll::Ready(Ok(1)), "one of the flood, of the next round");
    pool.release(1);
    assert_eq!(poll(&mut other), Poll::Ready(Ok(1)));
}

#[test]
fn a_request_that_was_taken_back_precedes_later_ones_of_its_client_only() {
    let pool = Pool::new(3);
    let before = Instant::now();
    let mut flood = wait_as(&pool, &[(1, 0), (1, 0), (2, 0)]);
    let come_back =
        |number: u64| match pool.take(0, Some(1), Some(before - Duration::from_millis(number))) {
            Ok(Acquired::Wait(wait)) => wait,
            _ => panic!("no place in the queue"),
        };
    let (mut second, mut first) = (come_back(10), come_back(20));
    assert_eq!(pool.waiting(), 5, "although the queue is full");
    let [third, fourth, other] = &mut flood[..] else { panic!("three") };
    for wait in [&mut first, other, &mut second, third, fourth] {
        assert!(poll(wait).is_pending());
        pool.release(2);
        assert_eq!(poll(wait), Poll::Ready(Ok(2)));
    }
}

proptest! {
    /// Checks the promise of docs/limits.md: a newcomer waits for one request of a flood, which
    /// comes from two loops. Requests that overtake others do not change that.
    #[test]
    fn a_flood_delays_a_newcomer_by_one_request(
        homes in prop::collection::vec(0u32..2, 40),
        workers in prop::collection::vec(0u32..2, 20),
        newcomer in 0usize..10,
        here in 0u32..2,
    ) {
        let pool = Pool::<u32>::new(99);
        let requests: Vec<_> = homes.iter().map(|home| (1, *home)).collect();
        let mut flood = wait_as(&pool, &requests);
        for worker in &workers[..newcomer] {
            pool.release(*worker);
        }
        let Ok(Acquired::Wait(mut other)) = pool.take(here, Some(2), None) else {
            panic!("a place in the queue")
        };
        let mut releases = 0;
        while poll(&mut other).is_pending() {
            pool.release(workers[newcomer + releases]);
            releases += 1;
            prop_assert!(releases <= 2, "the newcomer waits for {releases} requests");
        }
        let served = flood.iter_mut().map(|wait| usize::from(poll(wait).is_ready())).sum::<usize>();
        prop_assert_eq!(served, newcomer + releases - 1);
    }
}

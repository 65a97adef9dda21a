use super::*;
use proptest::prelude::*;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;

/// Polls a place in the queue once.
fn poll<W>(wait: &mut Wait<W>) -> Poll<Result<W, Refused>> {
    Pin::new(wait).poll(&mut Context::from_waker(Waker::noop()))
}

fn wait<W>(pool: &Arc<Pool<W>>) -> Wait<W> {
    match pool.take(|_| true) {
        Ok(Taken::Wait(wait)) => wait,
        Ok(Taken::Worker(_)) => panic!("there was an idle worker"),
        Err(refused) => panic!("{refused:?}"),
    }
}

#[test]
fn the_worker_that_worked_last_is_taken_first_unless_another_is_preferred() {
    let pool = Pool::new(8);
    (1..=3).for_each(|worker| pool.release(worker));
    assert!(matches!(pool.take(|_| false), Ok(Taken::Worker(3))));
    assert!(matches!(pool.take(|worker| *worker == 1), Ok(Taken::Worker(1))));
}

#[test]
fn the_request_that_has_waited_longest_gets_the_worker() {
    let pool = Pool::new(8);
    let (mut first, mut second) = (wait(&pool), wait(&pool));
    pool.release(1);
    assert!(poll(&mut second).is_pending());
    assert_eq!(poll(&mut first), Poll::Ready(Ok(1)));
    pool.release(2);
    assert_eq!(poll(&mut second), Poll::Ready(Ok(2)));
}

#[test]
fn a_full_queue_refuses_and_a_place_that_is_given_up_is_free_again() {
    let pool = Pool::<u32>::new(2);
    let (first, _second) = (wait(&pool), wait(&pool));
    assert!(matches!(pool.take(|_| true), Err(Refused::Full)));
    drop(first);
    assert_eq!(pool.waiting(), 1);
    let _third = wait(&pool);
}

#[test]
fn a_worker_on_its_way_to_a_request_that_is_gone_goes_to_the_next() {
    let pool = Pool::new(8);
    let (first, mut second) = (wait(&pool), wait(&pool));
    pool.release(1);
    drop(first);
    assert_eq!(poll(&mut second), Poll::Ready(Ok(1)));
}

#[test]
fn requests_that_have_waited_too_long_are_refused() {
    let pool = Pool::<u32>::new(8);
    let mut first = wait(&pool);
    let limit = Duration::from_secs(3);
    assert_eq!(pool.expire(Instant::now(), limit), 0);
    assert_eq!(pool.expire(Instant::now() + 2 * limit, limit), 1);
    assert_eq!(poll(&mut first), Poll::Ready(Err(Refused::WaitedTooLong)));
    assert_eq!(pool.waiting(), 0);
}

#[test]
fn a_closed_pool_refuses_those_who_wait_and_come_and_keeps_no_worker() {
    let pool = Pool::new(8);
    let mut first = wait(&pool);
    assert_eq!(pool.close(), Vec::<u32>::new());
    assert_eq!(poll(&mut first), Poll::Ready(Err(Refused::Closed)));
    assert!(matches!(pool.take(|_| true), Err(Refused::Closed)));
    pool.release(1);
    assert_eq!(pool.idle(), 0);
}

/// Something that happens to a pool. Numbers choose among what is there, modulo its count.
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
        let (mut held, mut waits, mut lost) = (Vec::new(), Vec::new(), Vec::new());
        for step in steps {
            match step {
                Step::Take => match pool.take(|worker| worker % 2 == 0) {
                    Ok(Taken::Worker(worker)) => held.push(worker),
                    Ok(Taken::Wait(wait)) => {
                        prop_assert_eq!(pool.idle(), 0, "nobody waits beside an idle worker");
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
    const WORKERS: usize = 3;
    const TURNS: usize = 3000;
    let pool = Pool::new(4);
    let in_use: [AtomicBool; WORKERS] = Default::default();
    (0..WORKERS).for_each(|worker| pool.release(worker));
    let (served, given_up) = (AtomicUsize::new(0), AtomicUsize::new(0));

    std::thread::scope(|scope| {
        for thread in 0..4 {
            let (pool, in_use, served, given_up) = (&pool, &in_use, &served, &given_up);
            scope.spawn(move || {
                let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
                let work = |request: usize| async move {
                    let worker = match pool.take(|worker| worker % 2 == thread % 2) {
                        Ok(Taken::Worker(worker)) => worker,
                        // Some requests leave while they wait.
                        Ok(Taken::Wait(wait)) if request.is_multiple_of(3) => {
                            let mut wait = wait;
                            tokio::select! {
                                biased;
                                result = &mut wait => result.unwrap(),
                                () = tokio::task::yield_now() => {
                                    given_up.fetch_add(1, Ordering::Relaxed);
                                    return;
                                }
                            }
                        }
                        Ok(Taken::Wait(wait)) => wait.await.unwrap(),
                        Err(Refused::Full) => return,
                        Err(other) => panic!("{other:?}"),
                    };
                    assert!(
                        !in_use[worker].swap(true, Ordering::SeqCst),
                        "worker {worker} serves two requests"
                    );
                    tokio::task::yield_now().await;
                    assert!(in_use[worker].swap(false, Ordering::SeqCst));
                    served.fetch_add(1, Ordering::Relaxed);
                    pool.release(worker);
                };
                runtime.block_on(async {
                    for turn in 0..TURNS {
                        tokio::join!(work(turn), work(turn + 1), work(turn + 2));
                    }
                });
            });
        }
    });
    assert_eq!((pool.idle(), pool.waiting()), (WORKERS, 0));
    assert!(served.load(Ordering::Relaxed) > TURNS && given_up.load(Ordering::Relaxed) > 0);
}

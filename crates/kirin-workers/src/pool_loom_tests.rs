//! All orders in which requests ask for workers, leave, and workers come back.
//!
//! `cargo test -p kirin-workers --features loom --lib loom_tests` runs them. `scripts/planted-bugs`
//! shows that they find bugs.

use kirin_sync::model::{check, join, spawn, wait_for};

use super::*;

/// No worker is near to a request, so the time since a request came makes no difference.
const FAR: u32 = 2;

fn wait(pool: &Arc<Pool<u32>>) -> Wait<u32> {
    match pool.take(FAR, None, None) {
        Ok(Acquired::Wait(wait)) => wait,
        Ok(Acquired::Worker(_)) => panic!("there was an idle worker"),
        Err(refused) => panic!("{refused:?}"),
    }
}

fn get(pool: &Arc<Pool<u32>>) -> Result<u32, Refused> {
    match pool.take(FAR, None, None)? {
        Acquired::Worker(worker) => Ok(worker),
        Acquired::Wait(wait) => wait_for(wait),
    }
}

#[test]
fn a_worker_that_comes_back_while_a_request_asks_reaches_it() {
    check(6, || {
        let pool = Pool::new(8);
        let other = Arc::clone(&pool);
        let thread = spawn(move || other.release(1));
        assert_eq!(get(&pool), Ok(1));
        join(thread);
    });
}

#[test]
fn the_worker_of_a_request_that_leaves_goes_to_the_next() {
    check(5, || {
        let pool = Pool::new(8);
        let (first, second) = (wait(&pool), wait(&pool));
        let other = Arc::clone(&pool);
        let threads = [spawn(move || other.release(1)), spawn(move || drop(first))];
        assert_eq!(wait_for(second), Ok(1));
        threads.into_iter().for_each(join);
    });
}

#[test]
fn a_pool_that_is_closed_answers_everyone_and_keeps_no_worker() {
    check(5, || {
        let pool = Pool::new(8);
        let (closing, releasing) = (Arc::clone(&pool), Arc::clone(&pool));
        let threads = [spawn(move || _ = closing.close()), spawn(move || releasing.release(1))];
        if let Err(refused) = get(&pool) {
            assert_eq!(refused, Refused::Closed);
        }
        threads.into_iter().for_each(join);
        assert_eq!(pool.idle(|worker| Some(*worker)), [], "a closed pool keeps a worker");
    });
}

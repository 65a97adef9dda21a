//! Requests for one key at the same time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::SeqCst};

use kirin_sync::Mutex;
use kirin_sync::model::{check, join, spawn, wait_for};

use crate::filters::cache::pending_fetches::{
    FetchOutcome, Joined, PendingFetch, PendingFetches, WaitingRequest,
};

const KEY: &[u8] = b"key";

fn lead(fetches: &Arc<PendingFetches>) -> PendingFetch {
    let Joined::Leads(pending) = fetches.join(KEY) else { panic!("another fetch is in progress") };
    pending
}

fn wait(fetches: &Arc<PendingFetches>) -> WaitingRequest {
    let Joined::Waits(waiting) = fetches.join(KEY) else { panic!("no fetch is in progress") };
    waiting
}

#[test]
fn the_place_is_asked_once() {
    /// Answers a request, as `CacheFetch::run` does.
    fn answer(fetches: &Arc<PendingFetches>, store: &Mutex<bool>, asked: &AtomicU32) {
        match fetches.join(KEY) {
            Joined::Leads(pending) => {
                let is_stored = *store.lock();
                if !is_stored {
                    asked.fetch_add(1, SeqCst);
                    *store.lock() = true;
                }
                pending.finish(FetchOutcome::Stored);
            }
            Joined::Waits(mut waiting) => {
                assert_eq!(wait_for(waiting.outcome()), FetchOutcome::Stored);
                assert!(*store.lock(), "the waiting request finds no response");
            }
            Joined::Full => panic!("one request waits at most"),
        }
    }
    check(5, || {
        let (fetches, store) = (Arc::<PendingFetches>::default(), Arc::<Mutex<bool>>::default());
        let asked = Arc::<AtomicU32>::default();
        let other = (Arc::clone(&fetches), Arc::clone(&store), Arc::clone(&asked));
        let thread = spawn(move || answer(&other.0, &other.1, &other.2));
        answer(&fetches, &store, &asked);
        join(thread);
        assert_eq!(asked.load(SeqCst), 1, "requests that the place got");
    });
}

#[test]
fn a_request_that_waited_for_an_abandoned_fetch_leads_the_next() {
    check(6, || {
        let fetches = Arc::<PendingFetches>::default();
        let (pending, mut waiting) = (lead(&fetches), wait(&fetches));
        let thread = spawn(move || drop(pending));
        assert_eq!(wait_for(waiting.outcome()), FetchOutcome::Lost);
        drop(lead(&fetches));
        join(thread);
    });
}

#[test]
fn the_end_of_an_old_fetch_leaves_the_new_one_in_the_table() {
    check(6, || {
        let fetches = Arc::<PendingFetches>::default();
        let (old, waiting) = (lead(&fetches), wait(&fetches));
        let thread = spawn(move || old.finish(FetchOutcome::NotStored));
        let Joined::Leads(new) = fetches.join_anew(KEY, &waiting) else {
            panic!("the old fetch is in the way")
        };
        join(thread);
        let mut second = wait(&fetches);
        new.finish(FetchOutcome::Stored);
        assert_eq!(wait_for(second.outcome()), FetchOutcome::Stored);
    });
}

//! No flood and no order of requests gets more out of buckets than the limit allows.

use std::hash::{BuildHasher, RandomState};

use proptest::prelude::*;

use super::*;

#[test]
fn a_flood_of_keys_does_not_free_those_that_have_used_theirs_up() {
    let buckets = RateBuckets::new(1, Duration::from_secs(3600), 100);
    let busy: Vec<u64> = (1..=1000u64).map(|n| n.wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
    for hash in &busy {
        while buckets.take(*hash, 0).is_ok() {}
    }
    let hasher = RandomState::new();
    for n in 0..1_000_000u64 {
        let _ = buckets.take(hasher.hash_one(n).max(1), 1);
    }
    let freed = busy.iter().filter(|hash| buckets.take(**hash, 2).is_ok()).count();
    assert_eq!(freed, 0);
}

#[test]
fn only_so_many_keys_wait_for_the_origin() {
    let buckets = RateBuckets::new(1, Duration::from_secs(1), 2);
    let requests = |hash: u64| buckets.take_shared(hash, 0, || u128::from(hash));
    let hasher = RandomState::new();
    let hashes: Vec<u64> =
        (0..2 * MOST_UNSENT_KEYS).map(|number| hasher.hash_one(number).max(1)).collect();
    assert!(hashes.iter().all(|hash| requests(*hash) == Ok(())));
    let sent = buckets.take_unsent();
    assert_eq!(sent.len(), MOST_UNSENT_KEYS);
    assert!(sent.iter().all(|sent| sent.name == u128::from(sent.hash)));
    assert!(sent.iter().all(|sent| sent.lacking_micros == 1_000_000));
    assert!(!buckets.have_unsent() && buckets.take_unsent().is_empty());
    // The others have counted here.
    assert!(hashes.iter().all(|hash| requests(*hash) == Ok(())));
    assert!(hashes.iter().all(|hash| requests(*hash).is_err()));
    // Those that are refused are not sent.
    assert!(buckets.take_unsent().iter().all(|sent| sent.lacking_micros == 1_000_000));
}

#[test]
fn a_bucket_learns_what_it_lacks_and_keeps_what_is_not_sent() {
    let second = 1_000_000_000;
    let buckets = RateBuckets::new(1, Duration::from_secs(1), 10);
    let take = |now| buckets.take_shared(7, now, || 1);
    let left = |now: u64| (0..).take_while(|_| buckets.take(7, now).is_ok()).count();
    assert_eq!(take(0), Ok(()));
    assert_eq!(buckets.take_unsent().len(), 1);
    assert_eq!((take(0), take(0)), (Ok(()), Ok(())));
    // The request before, and four of other machines. Two are not sent.
    buckets.learn(7, 5_000_000, 0);
    assert_eq!(left(0), 3);
    // The origin has lost its keys.
    buckets.learn(7, 0, second);
    assert_eq!(left(second), 1);
    // A bucket that was forgotten.
    buckets.learn(8, 20_000_000, second);
    let retry_after = Duration::from_secs(11);
    assert_eq!(buckets.take(8, second), Err(TooMany { retry_after }));
}

proptest! {
    #[test]
    fn no_order_of_requests_gets_more_than_burst_and_rate(
        requests in 1u64..50, burst in 1u64..20, gaps in prop::collection::vec(0u64..200_000_000, 1..300),
    ) {
        let buckets = RateBuckets::new(requests, Duration::from_secs(1), burst);
        let (mut now, mut taken) = (0u64, 0u64);
        for gap in gaps {
            now += gap;
            taken += u64::from(buckets.take(7, now).is_ok());
        }
        prop_assert!(taken <= burst + now / buckets.interval, "{taken} in {now} ns");
    }
}

//! Tests of the choice among servers that fail, recover and differ.

use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use crate::{
    Attempt, Availability, Balancer, Criteria, Method, ServerSettings, Servers, Settings,
    TriedServers,
};

const SETTINGS: Settings = Settings {
    max_failures: 2,
    ejection_time: Duration::from_secs(10),
    healthy_after: 2,
    unhealthy_after: 2,
    slow_start: Duration::ZERO,
    queue_length: 0,
};

fn server(name: &str, weight: u32, backup: bool) -> ServerSettings {
    ServerSettings { name: name.into(), weight, backup, max_in_flight: None }
}

fn balancer(
    method: Method,
    servers: &[(&str, u32, bool)],
    settings: Settings,
    now: Instant,
) -> Balancer {
    let servers = servers.iter().map(|(name, weight, backup)| server(name, *weight, *backup));
    Balancer::new(Arc::new(Servers::new(servers, settings, now)), method, 7)
}

/// Returns how often each server is chosen, if each request ends before the next one.
fn counts(balancer: &Balancer, requests: usize, now: Instant) -> Vec<usize> {
    let mut counts = vec![0; balancer.servers().len()];
    for key in 0..requests {
        let criteria = Criteria { key: Some(key as u64), ..Criteria::default() };
        counts[balancer.choose(&criteria, now).unwrap()] += 1;
    }
    counts
}

fn fail(balancer: &Balancer, index: usize, times: usize, now: Instant) {
    (0..times).for_each(|_| {
        Attempt::begin(balancer.servers(), index, now).unwrap().failed(now);
    });
}

const METHODS: [Method; 4] =
    [Method::RoundRobin, Method::LeastConnections, Method::PeakEwma, Method::Hash];

#[test]
fn requests_are_spread_by_weight() {
    let now = Instant::now();
    for method in [Method::RoundRobin, Method::LeastConnections, Method::Hash] {
        let balancer = balancer(method, &[("a", 1, false), ("b", 3, false)], SETTINGS, now);
        // With least connections, each server stays busy.
        let mut attempts = Vec::new();
        let mut counts = [0; 2];
        for key in 0..4000 {
            let index =
                balancer.choose(&Criteria { key: Some(key), ..Criteria::default() }, now).unwrap();
            counts[index] += 1;
            attempts.push(Attempt::begin(balancer.servers(), index, now).unwrap());
        }
        assert!((900..1100).contains(&counts[0]), "{method:?}: {counts:?}");
    }
}

#[test]
fn a_server_that_fails_gets_nothing_until_one_request_has_tried_it() {
    let start = Instant::now();
    for method in METHODS {
        let balancer = balancer(method, &[("a", 1, false), ("b", 1, false)], SETTINGS, start);
        fail(&balancer, 0, 1, start);
        assert!(counts(&balancer, 1000, start)[0] > 0, "{method:?}");
        fail(&balancer, 0, 1, start);
        assert_eq!(counts(&balancer, 1000, start), [0, 1000], "{method:?}");
        assert_eq!(balancer.servers().server_status(start)[0].availability, Availability::Ejected);

        let later = start + Duration::from_secs(11);
        let trial = Attempt::begin(balancer.servers(), 0, later).unwrap();
        assert_eq!(counts(&balancer, 1000, later), [0, 1000], "{method:?}: one at a time");
        trial.answered(later);
        drop(trial);
        assert!(counts(&balancer, 1000, later)[0] > 0, "{method:?}");
        assert_eq!(
            balancer.servers().server_status(later)[0].availability,
            Availability::Available
        );
    }
}

#[test]
fn a_backup_is_asked_when_no_other_is_left() {
    let now = Instant::now();
    for method in METHODS {
        let balancer =
            balancer(method, &[("a", 1, false), ("b", 1, true), ("c", 1, false)], SETTINGS, now);
        assert_eq!(counts(&balancer, 1000, now)[1], 0, "{method:?}");
        fail(&balancer, 0, 2, now);
        assert_eq!(counts(&balancer, 1000, now), [0, 0, 1000], "{method:?}");
        fail(&balancer, 2, 2, now);
        assert_eq!(counts(&balancer, 1000, now), [0, 1000, 0], "{method:?}");
    }
}

#[test]
fn when_all_servers_have_failed_all_are_tried() {
    let now = Instant::now();
    for method in METHODS {
        let balancer = balancer(method, &[("a", 1, false), ("b", 1, false)], SETTINGS, now);
        fail(&balancer, 0, 2, now);
        fail(&balancer, 1, 2, now);
        let counts = counts(&balancer, 1000, now);
        assert!(counts.iter().all(|count| *count > 300), "{method:?}: {counts:?}");
    }
}

#[test]
fn an_unhealthy_server_gets_nothing_even_when_it_is_the_only_one() {
    let now = Instant::now();
    for method in METHODS {
        let balancer = balancer(method, &[("a", 1, false)], SETTINGS, now);
        assert_eq!(balancer.servers().probed(0, false, now), None);
        assert_eq!(balancer.servers().probed(0, false, now), Some(false));
        assert_eq!(balancer.choose(&Criteria::default(), now), None, "{method:?}");
        assert_eq!(balancer.servers().server_status(now)[0].availability, Availability::Unhealthy);
        assert_eq!(balancer.servers().probed(0, true, now), None);
        assert_eq!(balancer.servers().probed(0, true, now), Some(true));
        assert_eq!(balancer.choose(&Criteria::default(), now), Some(0), "{method:?}");
    }
}

#[test]
fn a_recovered_server_gets_a_growing_share() {
    let start = Instant::now();
    let settings = Settings { slow_start: Duration::from_secs(16), ..SETTINGS };
    let balancer =
        balancer(Method::RoundRobin, &[("a", 1, false), ("b", 1, false)], settings, start);
    for is_healthy in [false, false, true, true] {
        balancer.servers().probed(0, is_healthy, start);
    }
    let at = |seconds| counts(&balancer, 1000, start + Duration::from_secs(seconds))[0];
    let shares = [at(0), at(4), at(8), at(16)];
    // Of 1000 requests, the shares for 1/16, 1/4, 1/2 and all of the other server's weight,
    // including turns owed from before.
    for (share, expected) in shares.into_iter().zip([59_usize, 200, 333, 500]) {
        assert!(share.abs_diff(expected) <= 5, "{shares:?}");
    }
}

#[test]
fn with_latency_balancing_a_slow_server_gets_few_requests() {
    let now = Instant::now();
    let balancer = balancer(Method::PeakEwma, &[("a", 1, false), ("b", 1, false)], SETTINGS, now);
    Attempt::begin(balancer.servers(), 0, now).unwrap().answered(now + Duration::from_millis(200));
    Attempt::begin(balancer.servers(), 1, now).unwrap().answered(now + Duration::from_millis(2));
    assert_eq!(counts(&balancer, 1000, now), [0, 1000]);
    // The other server must become busier than that.
    let _attempts: Vec<_> =
        (0..150).map(|_| Attempt::begin(balancer.servers(), 1, now).unwrap()).collect();
    assert_eq!(counts(&balancer, 1000, now), [1000, 0]);
}

#[test]
fn a_visitor_stays_with_a_server_as_long_as_it_is_available() {
    let now = Instant::now();
    for method in METHODS {
        let balancer = balancer(method, &[("a", 1, false), ("b", 1, false)], SETTINGS, now);
        let sticky = balancer.servers().id(1);
        for _ in 0..10 {
            assert_eq!(balancer.choose(&Criteria { sticky, ..Criteria::default() }, now), Some(1));
        }
        fail(&balancer, 1, 2, now);
        assert_eq!(
            balancer.choose(&Criteria { sticky, ..Criteria::default() }, now),
            Some(0),
            "{method:?}"
        );
        let unknown = Criteria { sticky: Some(12345), ..Criteria::default() };
        assert!(balancer.choose(&unknown, now).is_some());
    }
}

#[test]
fn a_request_in_flight_is_counted_until_it_is_dropped() {
    let now = Instant::now();
    let balancer =
        balancer(Method::LeastConnections, &[("a", 1, false), ("b", 1, false)], SETTINGS, now);
    let attempt = Attempt::begin(balancer.servers(), 0, now).unwrap();
    attempt.answered(now);
    assert_eq!(balancer.servers().server_status(now)[0].in_flight, 1);
    assert_eq!(counts(&balancer, 100, now), [0, 100]);
    drop(attempt);
    assert_eq!(balancer.servers().server_status(now)[0].in_flight, 0);
    assert_eq!(counts(&balancer, 100, now), [50, 50]);
}

#[test]
fn the_keys_of_a_failed_server_move_to_others_and_come_back() {
    let now = Instant::now();
    let servers = [("a", 1, false), ("b", 1, false), ("c", 1, false)];
    let balancer = balancer(Method::Hash, &servers, SETTINGS, now);
    let all = |now| -> Vec<usize> {
        let criteria = |key| Criteria { key: Some(key), ..Criteria::default() };
        (0..3000).map(|key| balancer.choose(&criteria(key), now).unwrap()).collect()
    };
    let before = all(now);
    fail(&balancer, 0, 2, now);
    let during = all(now);
    for (before, during) in before.iter().zip(&during) {
        assert!(*during != 0 && (before == during || *before == 0));
    }
    let later = now + Duration::from_secs(11);
    Attempt::begin(balancer.servers(), 0, later).unwrap().answered(later);
    assert_eq!(all(later), before);
}

#[test]
fn a_server_keeps_its_state_when_other_servers_are_replaced() {
    let now = Instant::now();
    let old = balancer(Method::RoundRobin, &[("a", 1, false), ("b", 1, false)], SETTINGS, now);
    fail(&old, 1, 2, now);
    let attempt = Attempt::begin(old.servers(), 1, now).unwrap();
    let servers = old.servers().exchanged([server("b", 1, false), server("c", 1, false)]);
    let new = Balancer::new(Arc::new(servers), Method::RoundRobin, 7);
    let status = new.servers().server_status(now);
    assert_eq!((status[0].availability, status[0].in_flight), (Availability::Ejected, 1));
    assert_eq!(counts(&new, 100, now), [0, 100]);
    drop(attempt);
    assert_eq!(new.servers().server_status(now)[0].in_flight, 0);
}

proptest! {
    #[test]
    fn every_server_is_tried_once_and_then_there_is_none(
        method in 0usize..4,
        weights in proptest::collection::vec((1u32..100, any::<bool>()), 1..20),
        failing in proptest::collection::vec(any::<bool>(), 20),
        key in proptest::option::of(any::<u64>()),
        seed in any::<u64>(),
    ) {
        let now = Instant::now();
        let servers = weights.iter().enumerate().map(|(i, (weight, backup))| server(&i.to_string(), *weight, *backup));
        let servers = Arc::new(Servers::new(servers, SETTINGS, now));
        let balancer = Balancer::new(Arc::clone(&servers), METHODS[method], seed);
        for (index, _) in weights.iter().zip(&failing).enumerate().filter(|(_, (_, is_failing))| **is_failing) {
            fail(&balancer, index, 2, now);
        }
        let mut tried = TriedServers::default();
        for _ in 0..weights.len() {
            let index = balancer.choose(&Criteria { key, tried, ..Criteria::default() }, now).unwrap();
            prop_assert!(!tried.has(index));
            tried.add(index);
        }
        prop_assert_eq!(balancer.choose(&Criteria { key, tried, ..Criteria::default() }, now), None);
    }
}

//! Machines with a simulated origin: no order of requests and of exchanges exceeds the bound.

use std::collections::VecDeque;

use proptest::prelude::*;

use super::*;
use crate::routing::rate_limit_buckets::{RateBuckets, Sent};

const HASH: u64 = 7;
const MILLISECOND: u64 = 1_000_000;
const INTERVAL: u64 = EXCHANGE_INTERVAL.as_nanos() as u64;

/// The bucket on the origin, as count.lua has it. Times are nanoseconds, and what the bucket has is
/// microseconds of another clock.
struct SimulatedOrigin {
    full_at: u64,
    clock: u64,
}

impl SimulatedOrigin {
    fn count(&mut self, added: u64, now: u64) -> u64 {
        let now = self.clock + now / 1000;
        self.full_at = self.full_at.max(now) + added;
        self.full_at - now
    }
}

/// An exchange that is on its way.
struct Exchange {
    sent: Vec<Sent>,
    /// When the origin counts it.
    counted_at: u64,
    lacking: Option<u64>,
    /// When the machine has the answer.
    answered_at: u64,
}

struct Machine {
    buckets: RateBuckets,
    exchange: Option<Exchange>,
    /// The earliest time of the next exchange.
    next: u64,
}

/// Machines that share a limit. All have the same key.
struct Machines {
    machines: Vec<Machine>,
    origin: SimulatedOrigin,
    /// How long the ways to the origin and back take: they are used in turn.
    ways: VecDeque<u64>,
    now: u64,
}

impl Machines {
    fn new(count: usize, rate: u64, burst: u64, ways: Vec<u64>) -> Self {
        let machine = |_| Machine {
            buckets: RateBuckets::new(rate, Duration::from_secs(1), burst),
            exchange: None,
            next: 0,
        };
        let origin = SimulatedOrigin { full_at: 0, clock: 1_700_000_000_000_000 };
        Self { machines: (0..count).map(machine).collect(), origin, ways: ways.into(), now: 0 }
    }

    /// Carries out what happens until `end`, each event at its time.
    fn run_until(&mut self, end: u64) {
        while let Some((time, index)) = self.next_event().filter(|(time, _)| *time <= end) {
            self.now = self.now.max(time);
            self.step(index);
        }
        self.now = end;
    }

    fn next_event(&self) -> Option<(u64, usize)> {
        let time_of = |machine: &Machine| match &machine.exchange {
            Some(exchange) if exchange.lacking.is_none() => Some(exchange.counted_at),
            Some(exchange) => Some(exchange.answered_at),
            None => machine.buckets.have_unsent().then_some(machine.next),
        };
        let events = self.machines.iter().enumerate();
        events.filter_map(|(index, machine)| Some((time_of(machine)?, index))).min()
    }

    fn step(&mut self, index: usize) {
        let (now, machine) = (self.now, &mut self.machines[index]);
        match &mut machine.exchange {
            None => {
                self.ways.rotate_left(2);
                let counted_at = now + self.ways[0];
                machine.exchange = Some(Exchange {
                    sent: machine.buckets.take_unsent(),
                    counted_at,
                    lacking: None,
                    answered_at: counted_at + self.ways[1],
                });
                machine.next = now + INTERVAL;
            }
            Some(exchange) if exchange.lacking.is_none() => {
                let added = exchange.sent.iter().map(|sent| sent.lacking_micros).sum();
                exchange.lacking = Some(self.origin.count(added, now));
            }
            Some(exchange) => {
                machine.buckets.learn(HASH, exchange.lacking.unwrap_or_default(), now);
                machine.exchange = None;
            }
        }
    }

    /// Lets a request come to a machine. Returns whether it passes.
    fn request(&self, index: usize) -> bool {
        self.machines[index].buckets.take_shared(HASH, self.now, || 1).is_ok()
    }
}

proptest! {
    #[test]
    fn no_order_of_requests_exceeds_the_bound(
        count in 1usize..6,
        rate in 1u64..50,
        burst in 1u64..20,
        ways in prop::collection::vec(0u64..400, 2..20),
        events in prop::collection::vec((0u64..2_000, 0usize..6, 1usize..30), 1..200),
    ) {
        let ways: Vec<u64> = ways.iter().map(|way| way * MILLISECOND).collect();
        let longest_trip = 2 * ways.iter().max().copied().unwrap_or_default();
        // A request waits for the next exchange, which waits for the answer to the last one.
        let longest = INTERVAL.max(longest_trip) + longest_trip;
        let interval = 1_000_000_000 / rate;
        let others = (count as u64 - 1) * (burst * interval + longest);
        let mut machines = Machines::new(count, rate, burst, ways);
        // When a bucket of all requests would be full again.
        let mut full_at = 0;
        for (gap, index, requests) in events {
            machines.run_until(machines.now + gap * MILLISECOND);
            let now = machines.now;
            for _ in 0..requests {
                if machines.request(index % count) {
                    full_at = now.max(full_at) + interval;
                }
            }
            let lacking = full_at.saturating_sub(now);
            prop_assert!(lacking <= burst * interval + others, "{lacking} ns at {now}");
        }
    }
}

#[test]
fn a_visitor_of_many_machines_gets_no_less_than_the_rate() {
    let (count, rate, burst) = (4, 10, 20);
    let mut machines = Machines::new(count, rate, burst, vec![5 * MILLISECOND; 2]);
    let seconds = 60;
    let mut passed = 0;
    for number in 0..seconds * 1000 {
        machines.run_until(number * MILLISECOND);
        passed += u64::from(machines.request(number as usize % count));
    }
    // A machine that learns late that it may lets one pass later.
    let (least, most) = (burst + rate * seconds - count as u64, burst + rate * seconds);
    let most = most + (count as u64 - 1) * (burst + rate / 2);
    assert!((least..=most).contains(&passed), "{passed} are not in {least}..={most}");
}

//! Synthetic traces, the same in every run.

use std::collections::HashMap;

/// One request of a trace.
#[derive(Clone, Copy)]
pub struct Request {
    pub key: u64,
    pub bytes: u64,
}

/// A named list of requests.
pub struct Trace {
    pub name: &'static str,
    pub requests: Vec<Request>,
}

impl Trace {
    /// Returns the bytes of all distinct objects.
    pub fn distinct_bytes(&self) -> u64 {
        let objects: HashMap<u64, u64> =
            self.requests.iter().map(|request| (request.key, request.bytes)).collect();
        objects.values().sum()
    }
}

/// The number of requests in each trace.
const REQUESTS: usize = 1_000_000;
/// The number of objects over which Zipf's law is spread.
const OBJECTS: usize = 100_000;

/// A small generator of random numbers (SplitMix64), so that a run needs no crate and no seed.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    fn below_one(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}

fn mix(seed: u64) -> u64 {
    let z = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Ranks by Zipf's law.
struct Zipf {
    cumulated: Vec<f64>,
}

impl Zipf {
    fn new(objects: usize, exponent: f64) -> Zipf {
        let mut sum = 0.0;
        let cumulated = (1..=objects)
            .map(|rank| {
                sum += (rank as f64).powf(-exponent);
                sum
            })
            .collect();
        Zipf { cumulated }
    }

    fn rank(&self, random: &mut Random) -> u64 {
        let total = self.cumulated.last().copied().unwrap_or_default();
        let point = random.below_one() * total;
        self.cumulated.partition_point(|&sum| sum < point) as u64
    }
}

fn unit(key: u64) -> Request {
    Request { key, bytes: 1 }
}

/// Returns a request for 10 bytes to 100 KB, spread evenly over orders of magnitude. The key
/// decides the size.
fn mixed(key: u64) -> Request {
    let share = (mix(key) >> 11) as f64 / (1u64 << 53) as f64;
    Request { key, bytes: 10f64.powf(1.0 + 4.0 * share) as u64 }
}

fn zipf(exponent: f64, request: fn(u64) -> Request) -> Vec<Request> {
    let (zipf, mut random) = (Zipf::new(OBJECTS, exponent), Random(1));
    (0..REQUESTS).map(|_| request(mix(zipf.rank(&mut random)))).collect()
}

/// Makes a Zipf trace with a run over 20,000 new objects in every 100,000 requests.
fn scan() -> Vec<Request> {
    let (zipf, mut random) = (Zipf::new(OBJECTS, 1.0), Random(2));
    (0..REQUESTS)
        .map(
            |i| {
                if i % 100_000 >= 80_000 {
                    unit(i as u64)
                } else {
                    unit(mix(zipf.rank(&mut random)))
                }
            },
        )
        .collect()
}

/// Makes a Zipf trace. Every 50,000 requests, others replace a tenth of the most popular objects.
fn shifting() -> Vec<Request> {
    let (zipf, mut random) = (Zipf::new(OBJECTS, 1.0), Random(3));
    (0..REQUESTS)
        .map(|i| {
            let rank = zipf.rank(&mut random);
            // Each rank changes its object once in ten epochs, at an epoch of its own.
            let epoch = (i / 50_000) as u64;
            unit(mix(rank ^ ((epoch + rank % 10) / 10) << 32))
        })
        .collect()
}

/// Makes a Zipf trace in which a quarter of all requests is for objects that are requested only
/// once.
fn one_hit_wonders() -> Vec<Request> {
    let (zipf, mut random) = (Zipf::new(OBJECTS, 1.0), Random(4));
    (0..REQUESTS)
        .map(|i| {
            if random.next().is_multiple_of(4) {
                unit(i as u64)
            } else {
                unit(mix(zipf.rank(&mut random)))
            }
        })
        .collect()
}

/// Makes a trace of new objects, each popular for a while, as on a news site.
fn news() -> Vec<Request> {
    let (zipf, mut random) = (Zipf::new(20_000, 1.0), Random(5));
    (0..REQUESTS)
        .map(|i| {
            let newest = (i / 10) as u64;
            unit(newest.saturating_sub(zipf.rank(&mut random)))
        })
        .collect()
}

/// Returns all traces.
pub fn all() -> Vec<Trace> {
    let trace = |name, requests| Trace { name, requests };
    vec![
        trace("Zipf 0.8", zipf(0.8, unit)),
        trace("Zipf 1.0", zipf(1.0, unit)),
        trace("Zipf 1.2", zipf(1.2, unit)),
        trace("Zipf 1.0, 10 B to 100 KB", zipf(1.0, mixed)),
        trace("Zipf 1.0 with scans", scan()),
        trace("Zipf 1.0, shifting", shifting()),
        trace("Zipf 1.0, ¼ asked for once", one_hit_wonders()),
        trace("news: popularity decays", news()),
    ]
}

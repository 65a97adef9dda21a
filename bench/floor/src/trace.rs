//! Generated traces. A trace is the list of objects that requests ask for. The same arguments give
//! the same trace.

use clap::{Args, ValueEnum};

use crate::random::Random;

/// The number of requests between the starts of two scans.
const SCAN_EVERY: usize = 100_000;
/// The number of requests in a scan.
const SCAN_REQUESTS: usize = 20_000;
/// The number of epochs in a trace. Popularity shifts with each.
const EPOCHS: usize = 20;
/// The number of epochs in which every rank changes its object once. In each epoch a part of the
/// ranks changes.
const EPOCHS_TO_CHANGE_ALL: usize = 10;

/// The arguments of a trace.
#[derive(Args, Clone)]
pub struct TraceArguments {
    /// How popularity behaves over time.
    #[arg(long, value_enum, default_value_t = Popularity::Steady)]
    pub popularity: Popularity,
    /// Zipf's s: the frequency of the object of rank r is 1/r^s.
    #[arg(long, default_value_t = 1.0)]
    pub exponent: f64,
    /// Number of objects. A trace need not request every one.
    #[arg(long, default_value_t = 100_000, value_parser = clap::value_parser!(u32).range(10..))]
    pub objects: u32,
    /// Number of requests.
    #[arg(long, default_value_t = 1_000_000)]
    pub requests: usize,
    /// Seed of the random numbers. Another seed gives another trace of the same kind.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
}

/// How popularity behaves over time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Popularity {
    /// Popularity does not change.
    Steady,
    /// Popularity does not change, but a crawler comes: the last 20,000 of each 100,000 requests
    /// scan objects that are requested only by scans. These are a third of all objects. Each scan
    /// continues where the last one ended.
    Scans,
    /// Each twentieth of the trace gives other objects to a tenth of all ranks, from the most
    /// popular to the least.
    Shifting,
}

/// The requested objects in order.
pub struct Trace {
    /// The numbers of the objects, from 0 to `objects` - 1.
    pub requests: Vec<u32>,
}

impl Trace {
    /// Generates the trace.
    pub fn new(arguments: &TraceArguments) -> Self {
        let mut random = Random::new(arguments.seed);
        let requests = match arguments.popularity {
            Popularity::Steady => {
                let zipf = Zipf::new(arguments.objects, arguments.exponent);
                (0..arguments.requests).map(|_| zipf.rank(&mut random)).collect()
            }
            Popularity::Scans => scans(arguments, &mut random),
            Popularity::Shifting => shifting(arguments, &mut random),
        };
        Self { requests }
    }
}

fn scans(arguments: &TraceArguments, random: &mut Random) -> Vec<u32> {
    let cold = arguments.objects / 3;
    let popular = arguments.objects - cold;
    let zipf = Zipf::new(popular, arguments.exponent);
    let mut scanned = (0..cold).cycle();
    (0..arguments.requests)
        .map(|index| {
            let scanning = index % SCAN_EVERY >= SCAN_EVERY - SCAN_REQUESTS;
            match scanning.then(|| scanned.next()).flatten() {
                Some(object) => popular + object,
                None => zipf.rank(random),
            }
        })
        .collect()
}

fn shifting(arguments: &TraceArguments, random: &mut Random) -> Vec<u32> {
    let zipf = Zipf::new(arguments.objects, arguments.exponent);
    let epoch_requests = (arguments.requests / EPOCHS).max(1);
    // A rank moves on by a third of all objects. Its new object has not been popular before either
    // of the two changes, and the number of objects stays the same.
    let away = u64::from(arguments.objects / 3);
    (0..arguments.requests)
        .map(|index| {
            let rank = zipf.rank(random) as usize;
            let epoch = index / epoch_requests;
            let changes = (epoch + rank % EPOCHS_TO_CHANGE_ALL) / EPOCHS_TO_CHANGE_ALL;
            ((rank as u64 + changes as u64 * away) % u64::from(arguments.objects)) as u32
        })
        .collect()
}

/// A choice of ranks by Zipf's law. Ranks begin at 0.
struct Zipf {
    /// The sum of the frequencies up to each rank.
    cumulated: Vec<f64>,
}

impl Zipf {
    fn new(ranks: u32, exponent: f64) -> Self {
        let mut sum = 0.0;
        let cumulated = (1..=ranks)
            .map(|rank| {
                sum += f64::from(rank).powf(-exponent);
                sum
            })
            .collect();
        Self { cumulated }
    }

    fn rank(&self, random: &mut Random) -> u32 {
        let total = self.cumulated.last().copied().unwrap_or_default();
        let point = random.below_one() * total;
        self.cumulated.partition_point(|&sum| sum <= point) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::{Popularity, SCAN_EVERY, SCAN_REQUESTS, Trace, TraceArguments};
    use std::collections::HashMap;

    fn trace(popularity: Popularity) -> Vec<u32> {
        let arguments = TraceArguments {
            popularity,
            exponent: 1.0,
            objects: 60_000,
            requests: 400_000,
            seed: 1,
        };
        Trace::new(&arguments).requests
    }

    fn counts(requests: &[u32]) -> HashMap<u32, usize> {
        let mut counts = HashMap::new();
        requests.iter().for_each(|&object| *counts.entry(object).or_default() += 1);
        counts
    }

    #[test]
    fn the_same_arguments_make_the_same_trace() {
        for popularity in [Popularity::Steady, Popularity::Scans, Popularity::Shifting] {
            assert_eq!(trace(popularity), trace(popularity), "{popularity:?}");
        }
    }

    #[test]
    fn with_an_exponent_of_one_rank_ten_is_asked_for_a_tenth_as_often_as_rank_one() {
        let counts = counts(&trace(Popularity::Steady));
        let ratio = counts[&0] as f64 / counts[&9] as f64;
        assert!((9.0..11.0).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_scan_asks_for_objects_in_turn_that_nobody_asks_for_otherwise() {
        let requests = trace(Popularity::Scans);
        for (index, period) in requests.chunks(SCAN_EVERY).enumerate() {
            let (others, scan) = period.split_at(SCAN_EVERY - SCAN_REQUESTS);
            assert!(others.iter().all(|&object| object < 40_000), "period {index}");
            assert!(
                scan.iter().all(|&object| (40_000..60_000).contains(&object)),
                "period {index}"
            );
        }
        let first = &requests[SCAN_EVERY - SCAN_REQUESTS..SCAN_EVERY];
        assert!(first.windows(2).all(|pair| pair[1] == pair[0] + 1));
    }

    #[test]
    fn the_most_popular_objects_of_the_beginning_are_not_those_of_the_end() {
        let requests = trace(Popularity::Shifting);
        let top = |requests: &[u32]| {
            let mut counted: Vec<(u32, usize)> = counts(requests).into_iter().collect();
            counted.sort_by_key(|&(object, count)| (std::cmp::Reverse(count), object));
            counted.into_iter().take(20).map(|(object, _)| object).collect::<Vec<u32>>()
        };
        let (begin, end) = (top(&requests[..20_000]), top(&requests[380_000..]));
        assert!(begin.iter().all(|object| !end.contains(object)), "{begin:?} {end:?}");
        assert!(requests.iter().all(|&object| object < 60_000));
    }
}

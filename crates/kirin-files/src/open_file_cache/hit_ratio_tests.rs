//! The share of requests that the cache answers, compared with a cache that takes every path.

use std::collections::HashMap;

use super::*;

/// The most paths of the caches that are compared.
const PATHS: usize = 500;

const REQUESTS: usize = 60_000;

/// Numbers that look random, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((self.0 >> 33) % limit as u64) as usize
    }
}

/// Numbers by Zipf's law: the n-th one is as frequent as 1 / n to the power of `exponent`.
struct Zipf {
    sums: Vec<f64>,
}

impl Zipf {
    fn new(names: usize, exponent: f64) -> Self {
        let mut sum = 0.0;
        let weight = |n: usize| ((n + 1) as f64).powf(-exponent);
        let sums = (0..names).map(|n| {
            sum += weight(n);
            sum
        });
        Self { sums: sums.collect() }
    }

    fn next(&self, numbers: &mut Numbers) -> usize {
        let all = self.sums[self.sums.len() - 1];
        let wanted = all * numbers.below(1 << 30) as f64 / f64::from(1 << 30);
        self.sums.partition_point(|sum| *sum <= wanted)
    }
}

/// A cache that takes every path and evicts by CLOCK.
#[derive(Default)]
struct TakesEveryPath {
    by_name: HashMap<usize, usize>,
    slots: Vec<(usize, bool)>,
    hand: usize,
}

impl TakesEveryPath {
    fn request(&mut self, name: usize) -> bool {
        if let Some(at) = self.by_name.get(&name) {
            self.slots[*at].1 = true;
            return true;
        }
        if self.slots.len() < PATHS {
            self.by_name.insert(name, self.slots.len());
            self.slots.push((name, false));
            return false;
        }
        loop {
            self.hand = (self.hand + 1) % PATHS;
            let (old, wanted) = self.slots[self.hand];
            if wanted {
                self.slots[self.hand].1 = false;
                continue;
            }
            self.by_name.remove(&old);
            self.by_name.insert(name, self.hand);
            self.slots[self.hand] = (name, false);
            return false;
        }
    }
}

fn request(cache: &mut OpenFileCache<Value>, name: usize, now: Instant) -> bool {
    let path = name.to_le_bytes();
    let is_found = cache.get(PLACE, &path, now).is_some();
    if !is_found {
        cache.put(PLACE, &path, SMALL, now);
    }
    is_found
}

/// Returns the shares of `requests` that two caches answer, in percent: one that takes every path,
/// and the open-file cache.
fn shares(requests: impl Iterator<Item = usize>) -> (f64, f64) {
    let mut plain = TakesEveryPath::default();
    let (mut cache, now) = (cache(PATHS, 1 << 30, 1), Instant::now());
    let (mut all, mut of_plain, mut of_cache) = (0, 0, 0);
    for name in requests {
        all += 1;
        of_plain += u32::from(plain.request(name));
        of_cache += u32::from(request(&mut cache, name, now));
    }
    let percent = |found| 100.0 * f64::from(found) / f64::from(all);
    (percent(of_plain), percent(of_cache))
}

#[test]
fn the_cache_answers_as_many_requests_as_one_that_takes_every_path() {
    let zipf = |names, exponent| {
        let (zipf, mut numbers) = (Zipf::new(names, exponent), Numbers(1));
        (0..REQUESTS).map(move |_| zipf.next(&mut numbers))
    };
    let uniform = |names| {
        let mut numbers = Numbers(1);
        (0..REQUESTS).map(move |_| numbers.below(names))
    };
    let in_turn = |names| (0..REQUESTS).map(move |n| n % names);
    // Other names become popular after so many requests.
    let moving = |names, exponent, every| {
        zipf(names, exponent).enumerate().map(move |(n, name)| name + n / every * names)
    };
    let workloads: [(&str, Box<dyn Iterator<Item = usize>>); 17] = [
        ("zipf 0.6 of 2,500", Box::new(zipf(2500, 0.6))),
        ("zipf 0.8 of 2,500", Box::new(zipf(2500, 0.8))),
        ("zipf 1.0 of 2,500", Box::new(zipf(2500, 1.0))),
        ("zipf 1.2 of 2,500", Box::new(zipf(2500, 1.2))),
        ("zipf 0.8 of 25,000", Box::new(zipf(25_000, 0.8))),
        ("zipf 1.0 of 25,000", Box::new(zipf(25_000, 1.0))),
        ("zipf 1.2 of 25,000", Box::new(zipf(25_000, 1.2))),
        ("zipf 1.0 of 550", Box::new(zipf(550, 1.0))),
        ("uniform of 550", Box::new(uniform(550))),
        ("uniform of 1,000", Box::new(uniform(1000))),
        ("uniform of 2,500", Box::new(uniform(2500))),
        ("550 in turn", Box::new(in_turn(550))),
        ("1,000 in turn", Box::new(in_turn(1000))),
        ("2,500 in turn", Box::new(in_turn(2500))),
        ("zipf 1.0 of 2,500, others each 10,000", Box::new(moving(2500, 1.0, 10_000))),
        ("zipf 0.8 of 2,500, others each 10,000", Box::new(moving(2500, 0.8, 10_000))),
        (
            "zipf 1.0 of 2,500, and as many in turn",
            Box::new(zipf(2500, 1.0).zip(in_turn(2500)).flat_map(|(a, b)| [a, 2500 + b])),
        ),
    ];
    println!("{:<40} {:>10} {:>10}", "requests", "all enter", "admission");
    for (name, requests) in workloads {
        let (plain, ours) = shares(requests);
        println!("{name:<40} {plain:>9.1}% {ours:>9.1}%");
        assert!(ours > plain - 1.5, "{name}: {ours:.1}% instead of {plain:.1}%");
    }
}

#[test]
fn a_scan_leaves_the_entries_and_finds_them_in_each_turn() {
    for (paths, descriptors, value) in [(1000, 1, SMALL), (1, 1000, LARGE), (1000, 1, ABSENT)] {
        let (mut cache, now) = (cache(paths, 1 << 30, descriptors), Instant::now());
        let mut scan = |names: std::ops::Range<usize>| {
            let find = |name: &usize| {
                let path = name.to_le_bytes();
                let is_found = cache.get(PLACE, &path, now).is_some();
                if !is_found {
                    cache.put(PLACE, &path, value, now);
                }
                is_found
            };
            names.filter(find).count()
        };
        assert_eq!(scan(0..1000), 0, "{value:?}");
        assert_eq!(scan(0..1000), 1000, "{value:?}: the cache had room for all");
        // One in 32 of the 4,000 other names enters.
        for _ in 0..5 {
            let found = scan(0..5000);
            assert!(found > 800, "{value:?}: {found}");
        }
    }
}

#[test]
fn names_that_become_popular_replace_all_entries_soon() {
    let (mut cache, now) = (cache(PATHS, 1 << 30, 1), Instant::now());
    for name in 0..PATHS {
        request(&mut cache, name, now);
        request(&mut cache, name, now);
    }
    // As many names as the cache has room for, but others.
    let mut numbers = Numbers(1);
    for _ in 0..5 * PATHS {
        request(&mut cache, PATHS + numbers.below(PATHS), now);
    }
    let found = (PATHS..2 * PATHS).filter(|name| request(&mut cache, *name, now)).count();
    assert!(found > PATHS * 9 / 10, "{found}");
}

#[test]
fn entries_that_nobody_requests_leave_although_no_name_is_requested_twice() {
    let (mut cache, now) = (cache(PATHS, 1 << 30, 1), Instant::now());
    for name in 0..PATHS + 40 * 2 * PATHS {
        request(&mut cache, name, now);
    }
    let left = (0..PATHS).filter(|name| cache.peek(PLACE, &name.to_le_bytes()).is_some()).count();
    assert_eq!(left, 0);
}

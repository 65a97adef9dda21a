//! The limits and the eviction of the open-file cache.

#[path = "open_file_cache/hit_ratio_tests.rs"]
mod hit_ratio;

use proptest::prelude::*;

use super::*;

const PLACE: PlaceId = PlaceId(0);

/// A value of some size with some descriptors. Without either it is an absence.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Value {
    bytes: usize,
    descriptors: usize,
}

const ABSENT: Value = Value { bytes: 0, descriptors: 0 };
const SMALL: Value = Value { bytes: 100, descriptors: 0 };
const LARGE: Value = Value { bytes: 100, descriptors: 1 };

impl Cacheable for Value {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn descriptors(&self) -> usize {
        self.descriptors
    }

    fn is_absence(&self) -> bool {
        *self == ABSENT
    }
}

fn cache(paths: usize, bytes: usize, descriptors: usize) -> OpenFileCache<Value> {
    OpenFileCache::new(&CacheLimits { paths, bytes, descriptors, ..CacheLimits::default() })
}

fn knows(cache: &mut OpenFileCache<Value>, path: &str, now: Instant) -> bool {
    cache.get(PLACE, path.as_bytes(), now).is_some()
}

#[test]
fn an_entry_is_fresh_for_the_validity_time_and_stale_after() {
    let (mut cache, start) = (cache(10, 100_000, 10), Instant::now());
    assert!(cache.get(PLACE, b"/a", start).is_none());
    for value in [ABSENT, SMALL, LARGE] {
        cache.put(PLACE, b"/a", value, start);
        let just_before = start + Duration::from_millis(999);
        let found = cache.get(PLACE, b"/a", just_before);
        assert!(matches!(found, Some(Known::Fresh(found)) if found == value), "{value:?}");
        let after = start + Duration::from_secs(1);
        let found = cache.get(PLACE, b"/a", after);
        assert!(matches!(found, Some(Known::Stale(found)) if found == value), "{value:?}");
        cache.put(PLACE, b"/a", value, after);
        assert!(matches!(cache.get(PLACE, b"/a", after), Some(Known::Fresh(_))), "{value:?}");
        assert_eq!(cache.rings.each_ref().map(|ring| ring.units).iter().sum::<usize>(), 1);
    }
}

#[test]
fn the_same_path_of_two_places_is_two_entries() {
    let (mut cache, now) = (cache(10, 100_000, 10), Instant::now());
    cache.put(PLACE, b"/a", SMALL, now);
    assert!(cache.get(PlaceId(1), b"/a", now).is_none());
    cache.put(PlaceId(1), b"/a", LARGE, now);
    assert_eq!(cache.peek(PLACE, b"/a"), Some(&SMALL));
    assert_eq!(cache.peek(PlaceId(1), b"/a"), Some(&LARGE));
}

#[test]
fn a_scan_over_names_does_not_evict_entries_in_demand() {
    for (hot, scanned) in
        [(ABSENT, ABSENT), (SMALL, SMALL), (SMALL, ABSENT), (LARGE, LARGE), (LARGE, SMALL)]
    {
        let (mut cache, now) = (cache(10, 100_000, 10), Instant::now());
        for path in ["/1", "/2", "/3"] {
            cache.put(PLACE, path.as_bytes(), hot, now);
        }
        for round in 0..1000 {
            for path in ["/1", "/2", "/3"] {
                assert!(knows(&mut cache, path, now), "{path} in round {round}");
            }
            // The second request for the name finds no entry, and makes one.
            for _ in 0..2 {
                cache.put(PLACE, format!("/scan/{round}").as_bytes(), scanned, now);
            }
        }
        assert!(knows(&mut cache, "/scan/999", now));
        assert!(!knows(&mut cache, "/scan/900", now));
    }
}

#[test]
fn a_full_cache_takes_a_path_at_its_second_request() {
    for value in [ABSENT, SMALL, LARGE] {
        let (mut cache, now) = (cache(10, 100_000, 10), Instant::now());
        for n in 0..10 {
            cache.put(PLACE, format!("/{n}").as_bytes(), value, now);
            assert!(knows(&mut cache, &format!("/{n}"), now), "{value:?}: there was room for {n}");
        }
        cache.put(PLACE, b"/new", value, now);
        assert!(!knows(&mut cache, "/new", now), "{value:?}");
        // The same path of another place is another one.
        cache.put(PlaceId(1), b"/new", value, now);
        assert!(cache.get(PlaceId(1), b"/new", now).is_none(), "{value:?}");
        cache.put(PLACE, b"/new", value, now);
        assert!(knows(&mut cache, "/new", now), "{value:?}");
        assert_eq!(cache.by_path.len(), 10, "{value:?}");
    }
}

#[test]
fn a_path_that_is_cached_stays_when_its_result_changes() {
    let (mut cache, now) = (cache(10, 100_000, 10), Instant::now());
    for n in 0..10 {
        cache.put(PLACE, format!("/small/{n}").as_bytes(), SMALL, now);
        cache.put(PLACE, format!("/large/{n}").as_bytes(), LARGE, now);
        cache.put(PLACE, format!("/absent/{n}").as_bytes(), ABSENT, now);
    }
    for (path, value) in [
        (&b"/small/0"[..], Value { bytes: 101, ..SMALL }),
        (b"/small/0", LARGE),
        (b"/large/1", SMALL),
        (b"/absent/2", SMALL),
        (b"/small/3", ABSENT),
    ] {
        cache.put(PLACE, path, value, now);
        assert_eq!(cache.peek(PLACE, path), Some(&value));
    }
}

#[test]
fn names_that_are_not_there_evict_no_file_even_if_no_client_asks_for_it() {
    let (mut cache, now) = (cache(10, 80_000, 10), Instant::now());
    for n in 0..10 {
        cache.put(PLACE, format!("/small/{n}").as_bytes(), SMALL, now);
        cache.put(PLACE, format!("/large/{n}").as_bytes(), LARGE, now);
    }
    for length in [1, 5000, 20_000] {
        for n in 0..1000 {
            let name = format!("/{n}{}", "x".repeat(length));
            cache.put(PLACE, name.as_bytes(), ABSENT, now);
        }
        assert!(cache.rings[CacheGroup::Absent as usize].bytes <= 10_000);
    }
    for n in 0..10 {
        assert!(knows(&mut cache, &format!("/small/{n}"), now), "{n}");
        assert!(knows(&mut cache, &format!("/large/{n}"), now), "{n}");
    }
}

#[test]
fn descriptors_and_small_files_do_not_evict_each_other_below_the_memory_limit() {
    let (mut cache, now) = (cache(10, 100_000, 3), Instant::now());
    for n in 0..10 {
        cache.put(PLACE, format!("/small/{n}").as_bytes(), SMALL, now);
    }
    for n in 0..100 {
        let value = Value { descriptors: 1 + n % 3, ..LARGE };
        cache.put(PLACE, format!("/large/{n}").as_bytes(), value, now);
        assert!(cache.rings[CacheGroup::Descriptors as usize].units <= 3);
    }
    for n in 0..10 {
        assert!(knows(&mut cache, &format!("/small/{n}"), now), "{n}");
    }
    cache.put(PLACE, b"/too/many", Value { descriptors: 4, ..LARGE }, now);
    assert!(!knows(&mut cache, "/too/many", now));
}

#[test]
fn an_entry_over_a_limit_is_not_kept_and_evicts_nothing() {
    let (mut cache, now) = (cache(10, 8000, 10), Instant::now());
    cache.put(PLACE, b"/a", ABSENT, now);
    cache.put(PLACE, b"/b", SMALL, now);
    let long = "/".repeat(1001);
    cache.put(PLACE, long.as_bytes(), ABSENT, now);
    assert!(!knows(&mut cache, &long, now));
    cache.put(PLACE, b"/c", Value { bytes: 7001, descriptors: 0 }, now);
    for (path, is_known) in [("/a", true), ("/b", true), ("/c", false)] {
        assert_eq!(knows(&mut cache, path, now), is_known, "{path}");
    }
}

#[test]
fn a_cache_without_room_keeps_nothing() {
    let (mut cache, now) = (cache(0, 0, 0), Instant::now());
    for value in [ABSENT, SMALL, LARGE] {
        cache.put(PLACE, b"/a", value, now);
        assert!(!knows(&mut cache, "/a", now));
    }
}

proptest! {
    #[test]
    fn limits_hold_and_sums_are_right_after_any_puts_and_gets(
        steps in prop::collection::vec(
            (any::<bool>(), "/[a-d]{0,3}", 0usize..300, 0usize..900, 0usize..3),
            0..200,
        ),
    ) {
        let (mut cache, now) = (cache(5, 8000, 4), Instant::now());
        for (is_put, path, padding, bytes, descriptors) in steps {
            let path = format!("{path}{}", "x".repeat(padding));
            if is_put {
                cache.put(PLACE, path.as_bytes(), Value { bytes, descriptors }, now);
                // A full cache may refuse it once.
                cache.put(PLACE, path.as_bytes(), Value { bytes, descriptors }, now);
                prop_assert!(knows(&mut cache, &path, now));
            } else {
                cache.get(PLACE, path.as_bytes(), now);
            }
            for ring in &cache.rings {
                let sums = ring.iter().fold((0, 0), |(units, bytes), slot| {
                    (units + slot.units, bytes + slot.bytes)
                });
                prop_assert_eq!(sums, (ring.units, ring.bytes));
                prop_assert!(ring.units <= ring.limit_units);
            }
            let [memory, descriptors, absent] = cache.rings.each_ref().map(|ring| ring.bytes);
            prop_assert!(memory + descriptors <= 7000 && absent <= 1000);
            let entries = cache.rings.iter().map(|ring| ring.iter().count()).sum::<usize>();
            prop_assert_eq!(cache.by_path.len(), entries);
        }
    }
}

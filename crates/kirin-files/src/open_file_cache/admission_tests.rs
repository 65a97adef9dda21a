//! The table of refused paths.

use super::*;

/// Returns a hash whose bits are spread evenly.
fn hash(n: u64) -> u64 {
    let n = (n ^ (n >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let n = (n ^ (n >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    n ^ (n >> 31)
}

#[test]
fn a_path_is_admitted_at_its_second_request_once() {
    let mut admission = Admission::default();
    for n in 0..20 {
        assert!(!admission.admits(hash(n), 1000), "{n}");
    }
    for n in 0..20 {
        assert!(admission.admits(hash(n), 1000), "{n}");
    }
    assert!(!admission.admits(hash(0), 1000));
}

#[test]
fn the_table_remembers_about_as_many_paths_as_the_group_has() {
    let mut admission = Admission::default();
    for n in 0..100_000 {
        admission.admits(hash(n), 10_000);
    }
    let count = |admission: &mut Admission, paths: std::ops::Range<u64>| {
        paths.filter(|n| admission.admits(hash(*n), 10_000)).count()
    };
    let recent = count(&mut admission, 95_000..100_000);
    assert!(recent > 4000, "{recent} of the last 5,000");
    // One in 32 enters by turn.
    let old = count(&mut admission, 0..50_000);
    assert!(old < 50_000 / 32 + 500, "{old} of the first 50,000");
    assert!(admission.buckets.len() * size_of::<[Fingerprint; BUCKET]>() <= 4 * 10_000);
}

#[test]
fn one_in_32_paths_enters_although_none_is_requested_again() {
    let mut admission = Admission::default();
    let entered = (0..3200).filter(|n| admission.admits(hash(*n), 64)).count();
    // Few of the others have the fingerprint of another path.
    assert!((100..105).contains(&entered), "{entered} of 3,200");
}

#[test]
fn the_table_grows_and_shrinks_with_the_group() {
    let mut admission = Admission::default();
    for (paths, expected) in
        [(0, 16), (100, 16), (129, 32), (100_000, 32_768), (20_000, 32_768), (10_000, 4096)]
    {
        admission.admits(hash(1), paths);
        assert_eq!(admission.buckets.len(), expected, "{paths}");
    }
}

//! Which responses stay when the store is full.

use kirin_tests::{Kirin, Site};

use super::{APP, CONFIG, Tested, is_hit};

#[test]
fn a_scan_of_targets_does_not_evict_responses_in_demand() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, &CONFIG.replace("16MB", "2MB"));
    let tested = Tested { site, kirin };
    let mut client = tested.kirin.connect();
    let target_of =
        |page: usize, bytes: usize| format!("/page?cc=max-age=3600&bytes={bytes}&page={page}");
    let target = |page: usize| target_of(page, 8000);
    let bytes = || -> usize {
        let mut memcached = tested.memcached();
        memcached.send("stats\r\n");
        let line = std::iter::repeat_with(|| memcached.line())
            .find(|line| line.starts_with("STAT bytes "))
            .unwrap();
        line["STAT bytes ".len()..].trim().parse().expect("a number")
    };
    for _ in 0..3 {
        (0..20).for_each(|page| assert_eq!(client.get(&target(page)).body.len(), 8000));
    }
    let before = bytes();
    // They are so small that they share the store's pages.
    for page in 1000..1100 {
        client.get(&target_of(page, 3500));
    }
    let grown = bytes() - before;
    assert!(grown < 100 * 6_000, "{grown} bytes more for 100 pages of 3,500");
    // A crawler requests four times as much as the store has room for.
    for page in 2000..3000 {
        client.get(&target(page));
    }
    let kept = (0..20).filter(|&page| is_hit(&client.get(&target(page)))).count();
    assert!(kept >= 18, "{kept} of 20 are still there");
}

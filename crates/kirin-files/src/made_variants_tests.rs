//! Files that are compressed when they are asked for.

use std::fs;
use std::io::Read;

use kirin_compress::{Coding, Codings, INLINE_BYTES};
use tokio::task::LocalSet;

use super::site::{Seen, TestDirectory, set_modified};
use crate::{CacheLimits, FilesConfig, open_file_cache::Cacheable};

fn site(configure: impl FnOnce(&mut FilesConfig, &mut CacheLimits)) -> TestDirectory {
    TestDirectory::with(|config, limits| {
        config.compress = Codings::ALL;
        configure(config, limits);
    })
}

fn page(bytes: usize) -> String {
    "<p>hello, hello, hello\n".repeat(bytes / 22 + 1)[..bytes].to_owned()
}

fn ask(site: &TestDirectory, target: &str, codings: &str) -> Seen {
    site.ask("GET", target, &[("Accept-Encoding", codings)]).unwrap()
}

fn gunzip(body: &[u8]) -> String {
    let mut text = String::new();
    flate2::read::GzDecoder::new(body).read_to_string(&mut text).unwrap();
    text
}

/// Waits until the thread that compresses has ended.
async fn settle(site: &TestDirectory) {
    while site.files.underway().get() > 0 {
        tokio::task::yield_now().await;
    }
}

fn on_a_loop(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(LocalSet::new().run_until(test));
}

#[test]
fn a_file_without_variants_is_compressed_for_clients_that_accept_it() {
    let site = site(|_, _| {});
    set_modified(&site.write("a.html", page(5000)), 784_111_777);
    let plain = site.get("/a.html").unwrap();
    assert_eq!((plain.field("content-encoding"), plain.body.len()), (None, 5000));
    assert_eq!(plain.field("vary"), Some("Accept-Encoding"));
    for (codings, expected) in [("gzip", "gzip"), ("gzip, br", "br"), ("zstd, gzip;q=0.5", "zstd")]
    {
        let seen = ask(&site, "/a.html", codings);
        assert_eq!(
            (seen.status, seen.field("content-encoding")),
            (200, Some(expected)),
            "{codings}"
        );
        assert_eq!(seen.field("vary"), Some("Accept-Encoding"), "{codings}");
        assert_eq!(seen.field("content-type"), Some("text/html; charset=utf-8"), "{codings}");
        assert_eq!(seen.field("accept-ranges"), None, "{codings}");
        assert_eq!(
            seen.field("etag"),
            Some(&*format!("\"2ebc98a1.0-1388-{expected}\"")),
            "{codings}"
        );
        assert_eq!(seen.field("last-modified"), plain.field("last-modified"));
        assert!(seen.body.len() < 200);
        let head = site.ask("HEAD", "/a.html", &[("Accept-Encoding", codings)]).unwrap();
        assert_eq!(head.fields, seen.fields, "{codings}");
    }
    assert_eq!(gunzip(&ask(&site, "/a.html", "gzip").body), page(5000));
    // Kept, not made again.
    let (one, other) = (ask(&site, "/a.html", "gzip"), ask(&site, "/a.html", "gzip"));
    assert_eq!(one, other);
}

#[test]
fn files_not_worth_compressing_and_refused_codings_are_sent_uncompressed() {
    let site = site(|config, _| config.compress = [Coding::Gzip].into_iter().collect());
    site.write("tiny.html", page(511));
    site.write("large.png", page(5000));
    site.write("beside.html", page(5000));
    site.write("beside.html.br", "brotli");
    let mut state = 1u64;
    let noise: Vec<u8> = std::iter::repeat_with(|| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 56) as u8
    })
    .take(5000)
    .collect();
    site.write("noise.txt", noise);
    site.write("page.html", page(5000));
    for (target, codings, vary) in [
        ("/tiny.html", "gzip", None),
        ("/large.png", "gzip", None),
        ("/beside.html", "gzip", Some("Accept-Encoding")),
        ("/noise.txt", "gzip", Some("Accept-Encoding")),
        ("/page.html", "br, zstd", Some("Accept-Encoding")),
        ("/page.html", "gzip;q=0", Some("Accept-Encoding")),
        ("/page.html", "identity, gzip;q=0.5", Some("Accept-Encoding")),
        ("/page.html", "identity;q=0", Some("Accept-Encoding")),
    ] {
        for _ in 0..2 {
            let seen = ask(&site, target, codings);
            assert_eq!(
                (seen.status, seen.field("content-encoding")),
                (200, None),
                "{target} {codings}"
            );
            assert_eq!(seen.field("vary"), vary, "{target} {codings}");
        }
    }
    assert_eq!(ask(&site, "/beside.html", "br").body, b"brotli");
}

#[test]
fn ranges_are_parts_of_the_uncompressed_file() {
    let site = site(|_, _| {});
    site.write("a.html", page(5000));
    let gzip = ask(&site, "/a.html", "gzip");
    let ask = |lines: &[(&str, &str)]| {
        site.ask("GET", "/a.html", &[&[("Accept-Encoding", "gzip")], lines].concat()).unwrap()
    };
    let seen = ask(&[("Range", "bytes=0-4")]);
    assert_eq!(
        (seen.status, seen.field("content-encoding"), &seen.body[..]),
        (206, None, &b"<p>he"[..])
    );
    // The rest of a variant cannot be had: the whole.
    let seen = ask(&[("Range", "bytes=10-"), ("If-Range", gzip.field("etag").unwrap())]);
    assert_eq!((seen.status, seen.body.len()), (200, 5000));
    let seen = ask(&[
        ("Range", "bytes=4990-"),
        ("If-Range", site.get("/a.html").unwrap().field("etag").unwrap()),
    ]);
    assert_eq!((seen.status, seen.body.len()), (206, 10));
}

#[test]
fn a_client_that_has_any_accepted_variant_gets_304() {
    let site = site(|_, _| {});
    set_modified(&site.write("a.html", page(5000)), 784_111_777);
    let (plain, gzip, br) =
        ("\"2ebc98a1.0-1388\"", "\"2ebc98a1.0-1388-gzip\"", "\"2ebc98a1.0-1388-br\"");
    for (codings, held, expected) in [
        ("gzip", gzip, Some(gzip)),
        ("gzip", plain, Some(plain)),
        ("gzip, br", gzip, Some(gzip)),
        ("gzip, br", &format!("{plain}, W/{gzip}, {br}"), Some(br)),
        ("gzip", br, None),
        ("identity", gzip, None),
        ("gzip, identity;q=0", plain, None),
        ("gzip", "\"2ebc98a1.0-1388-gzi\"", None),
        ("gzip", "*", Some(gzip)),
    ] {
        let lines = [("Accept-Encoding", codings), ("If-None-Match", held)];
        let seen = site.ask("GET", "/a.html", &lines).unwrap();
        let tag = (seen.status == 304).then(|| seen.field("etag").unwrap());
        assert_eq!(tag, expected, "{held} for {codings}");
        assert_eq!(seen.field("vary"), Some("Accept-Encoding"), "{held} for {codings}");
    }
    for (codings, wanted, status, coding) in [
        ("gzip", gzip, 200, Some("gzip")),
        ("gzip", plain, 200, None),
        ("identity", plain, 200, None),
        ("identity", gzip, 412, None),
        ("gzip", "\"x\"", 412, None),
        ("gzip", "*", 200, Some("gzip")),
    ] {
        let seen = site
            .ask("GET", "/a.html", &[("Accept-Encoding", codings), ("If-Match", wanted)])
            .unwrap();
        assert_eq!(
            (seen.status, seen.field("content-encoding")),
            (status, coding),
            "{wanted} for {codings}"
        );
    }
}

#[test]
fn a_changed_file_is_compressed_again() {
    let mut site = site(|_, _| {});
    let file = site.write("a.html", page(5000));
    let before = ask(&site, "/a.html", "gzip");
    fs::write(&file, page(6000)).unwrap();
    site.pass(1000);
    let after = ask(&site, "/a.html", "gzip");
    assert_eq!(gunzip(&after.body).len(), 6000);
    assert_ne!(before.field("etag"), after.field("etag"));
    // A variant laid beside it wins from then on.
    site.write("a.html.gz", "by hand");
    site.pass(1000);
    assert_eq!(ask(&site, "/a.html", "gzip").body, b"by hand");
}

#[test]
fn a_large_file_is_sent_uncompressed_until_a_thread_has_compressed_it() {
    on_a_loop(async {
        // In memory and on disk.
        for bytes in [INLINE_BYTES + 1, 200_000] {
            let site = site(|_, _| {});
            set_modified(&site.write("app.js", page(bytes)), 784_111_777);
            let tag = format!("\"2ebc98a1.0-{bytes:x}-gzip\"");
            let first = ask(&site, "/app.js", "gzip");
            assert_eq!((first.field("content-encoding"), first.body.len()), (None, bytes));
            assert_eq!(first.field("vary"), Some("Accept-Encoding"));
            // A client with the earlier representation does not notice.
            let lines = [("Accept-Encoding", "gzip"), ("If-None-Match", &*tag)];
            let held = site.ask("GET", "/app.js", &lines).unwrap();
            assert_eq!((held.status, held.field("etag")), (304, Some(&*tag)));
            settle(&site).await;
            let second = ask(&site, "/app.js", "gzip");
            assert_eq!(
                (second.field("content-encoding"), second.field("etag")),
                (Some("gzip"), Some(&*tag))
            );
            assert!(gunzip(&second.body) == page(bytes));
            // The cache knows what it holds.
            let cache = site.files.cache().found.borrow();
            let found = cache.peek(site.files.id(), b"/app.js").unwrap();
            assert!(found.bytes() > second.body.len() && cache.used_bytes() > found.bytes());
        }
    });
}

#[test]
fn a_file_above_the_limit_or_gone_is_never_compressed() {
    on_a_loop(async {
        let mut site = site(|config, _| config.compressed_file_bytes = 100_000);
        site.write("above.js", page(100_001));
        let changing = site.write("changing.js", page(90_000));
        assert_eq!(ask(&site, "/above.js", "gzip").field("vary"), None);
        assert_eq!(site.files.underway().get(), 0);
        assert_eq!(ask(&site, "/changing.js", "gzip").body.len(), 90_000);
        // The thread reads it now: it must not keep something else under the old tag.
        fs::write(&changing, page(80_000)).unwrap();
        settle(&site).await;
        site.pass(1000);
        ask(&site, "/changing.js", "gzip");
        settle(&site).await;
        let seen = ask(&site, "/changing.js", "gzip");
        assert_eq!(gunzip(&seen.body).len(), 80_000);
    });
}

#[test]
fn variants_count_towards_the_memory_of_the_cache() {
    let limit = 64_000;
    let site = site(|_, limits| limits.bytes = limit);
    for n in 0..50 {
        site.write(&format!("{n}.html"), page(5000));
        // A full cache takes a file at its second request.
        for _ in 0..2 {
            assert_eq!(site.status(&format!("/{n}.html")), Some(200));
        }
        for coding in ["gzip", "br", "zstd"] {
            assert_eq!(
                ask(&site, &format!("/{n}.html"), coding).field("content-encoding"),
                Some(coding)
            );
            assert!(site.files.cache().found.borrow().used_bytes() <= limit);
        }
    }
}

#[test]
fn a_large_file_is_not_compressed_until_a_full_cache_takes_it() {
    on_a_loop(async {
        for bytes in [5000, INLINE_BYTES + 1, 200_000] {
            let mut site = site(|_, limits| (limits.paths, limits.descriptors) = (1, 1));
            for name in ["other.js", "other.bin"] {
                site.write(name, vec![b'x'; if name == "other.js" { 100 } else { 100_000 }]);
                assert_eq!(site.status(&format!("/{name}")), Some(200));
            }
            set_modified(&site.write("app.js", page(bytes)), 784_111_777);
            let tag = format!("\"2ebc98a1.0-{bytes:x}-gzip\"");
            // The full cache does not take it at its first request, so no thread works.
            let first = ask(&site, "/app.js", "gzip");
            let coding = (bytes <= INLINE_BYTES).then_some("gzip");
            assert_eq!(first.field("content-encoding"), coding, "{bytes} bytes");
            assert_eq!(first.field("vary"), Some("Accept-Encoding"));
            assert_eq!(site.files.underway().get(), 0);
            ask(&site, "/app.js", "gzip");
            settle(&site).await;
            let third = ask(&site, "/app.js", "gzip");
            assert_eq!(third.field("content-encoding"), Some("gzip"));
            assert_eq!(third.field("etag"), Some(&*tag));
            assert!(gunzip(&third.body) == page(bytes));
            // Other names evict it. Its visitors still get 304, whether it is cached or not.
            for n in 0..200 {
                site.write(&format!("{n}"), vec![b'x'; if bytes > 65536 { 100_000 } else { 100 }]);
                site.status(&format!("/{n}"));
            }
            site.pass(1000);
            let lines = [("Accept-Encoding", "gzip"), ("If-None-Match", &*tag)];
            for _ in 0..3 {
                let held = site.ask("GET", "/app.js", &lines).unwrap();
                assert_eq!((held.status, held.field("etag")), (304, Some(&*tag)));
            }
            settle(&site).await;
        }
    });
}

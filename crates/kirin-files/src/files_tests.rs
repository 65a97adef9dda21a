//! Against real directories. Time is an argument, so nothing sleeps.

#[path = "files_tests_site.rs"]
mod site;

#[path = "made_variants_tests.rs"]
mod made_variants;

#[path = "confirmed_tests.rs"]
mod confirmed;

use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use kirin_http::Body;

use super::*;
use crate::MediaTypes;
use site::{TestDirectory, open, see, set_modified, with_head};

#[test]
fn a_file_is_answered_with_its_type_and_validators() {
    let site = TestDirectory::new();
    set_modified(&site.write("a/b.html", "<p>hello"), 784_111_777);
    let seen = site.get("/a/b.html").unwrap();
    assert_eq!((seen.status, &seen.body[..]), (200, &b"<p>hello"[..]));
    assert_eq!(seen.field("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(seen.field("last-modified"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    assert_eq!(seen.field("etag"), Some("\"2ebc98a1.0-8\""));
    assert_eq!(seen.field("accept-ranges"), Some("bytes"));
    assert_eq!(seen.field("vary"), None);
    assert_eq!(seen.field("content-encoding"), None);
    let fresh = site.write("fresh", "x");
    let tag = site.get("/fresh").unwrap().field("etag").unwrap().to_owned();
    let modified = fs::metadata(fresh).unwrap().modified().unwrap().elapsed().unwrap();
    // Too young to be told from a change that comes now.
    assert!(tag.ends_with("~\"") || modified > Duration::from_millis(20), "{tag}");
    assert_eq!(site.body("//a/./c/../b%2ehtml"), "<p>hello");
}

#[test]
fn head_has_the_fields_and_the_length_of_get() {
    let site = TestDirectory::with(|_, limits| limits.small_file_bytes = 4);
    site.write("small", "1234");
    site.write("large", "12345");
    for (path, length) in [("/small", 4), ("/large", 5)] {
        let response = with_head("HEAD", path, &[("Range", "bytes=0-1")], |head| {
            site.files.answer(head, site.now).unwrap()
        });
        assert_eq!(response.body.length(), Some(length), "{path}");
        assert!(matches!(response.body, Body::Withheld(_)), "{path}");
        let seen = see(response);
        assert_eq!((seen.status, &seen.fields), (200, &site.get(path).unwrap().fields), "{path}");
    }
}

#[test]
fn a_missing_file_passes() {
    let site = TestDirectory::new();
    site.write("file", "x");
    site.write("empty/other.html", "x");
    site.write(".git/config", "x");
    site.write("a/.env", "x");
    let long = format!("/{}", "x".repeat(300));
    let deep = "/d".repeat(3000);
    for path in [
        "/none",
        "/none/",
        "/none/x",
        "/",
        "/file/",
        "/file/x",
        "/empty",
        "/empty/",
        "/.git/config",
        "/a/.env",
        "/%2egit/config",
        "/a%2fb",
        "/file%0a",
        "/%ff",
        "/FILE",
        &long,
        &deep,
    ] {
        assert_eq!(site.get(path), None, "{path}");
    }
    site.write(".well-known/security.txt", "contact");
    assert_eq!(site.body("/.well-known/security.txt"), "contact");
}

#[test]
fn other_methods_pass_and_the_router_can_ask_whether_a_file_exists() {
    let site = TestDirectory::new();
    site.write("file", "x");
    site.write("dir/index.html", "x");
    for (path, there) in
        [("/file", true), ("/dir", true), ("/dir/", true), ("/none", false), ("/../x", false)]
    {
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PROPFIND", "get"] {
            assert_eq!(site.ask(method, path, &[]), None, "{method} {path}");
            assert_eq!(
                with_head(method, path, &[], |head| site.files.has(head, site.now)),
                there,
                "{path}"
            );
        }
    }
}

#[test]
fn malformed_paths_are_refused() {
    let site = TestDirectory::new();
    for path in ["/../secret", "/a/../../secret", "/%2e%2e/secret", "/a%00", "/%zz", "/%"] {
        assert_eq!(site.status(path), Some(400), "{path}");
    }
}

#[test]
fn links_that_stay_inside_are_followed_and_others_are_refused() {
    let site = TestDirectory::new();
    site.write("a/file", "inside");
    symlink("a/file", site.root.join("link")).unwrap();
    symlink("a", site.root.join("linked-dir")).unwrap();
    symlink("../a/file", site.root.join("a/up-and-down")).unwrap();
    symlink("../secret", site.root.join("out")).unwrap();
    symlink("..", site.root.join("outer")).unwrap();
    symlink("../public/a/file", site.root.join("out-and-in")).unwrap();
    symlink("/etc/passwd", site.root.join("absolute")).unwrap();
    symlink(site.root.join("a/file"), site.root.join("absolute-inside")).unwrap();
    symlink("/proc/self/root", site.root.join("magic")).unwrap();
    symlink("loop", site.root.join("loop")).unwrap();
    symlink("nowhere", site.root.join("dangling")).unwrap();
    for path in ["/link", "/linked-dir/file", "/a/up-and-down"] {
        assert_eq!(site.body(path), "inside", "{path}");
    }
    for path in [
        "/out",
        "/outer/secret",
        "/out-and-in",
        "/absolute",
        "/absolute-inside",
        "/magic/etc/passwd",
        "/loop",
        "/outer/public/a/file",
        "/loop/x",
    ] {
        assert_eq!(site.status(path), Some(403), "{path}");
    }
    assert_eq!(site.get("/dangling"), None);
}

#[test]
fn an_index_or_a_variant_that_leads_outside_is_not_served() {
    let site = TestDirectory::new();
    fs::create_dir(site.root.join("d")).unwrap();
    symlink("../../secret", site.root.join("d/index.html")).unwrap();
    assert_eq!(site.status("/d/"), Some(403));
    assert_eq!(site.status("/d"), Some(403));
    site.write("page", "plain");
    symlink("../secret", site.root.join("page.gz")).unwrap();
    let seen = site.ask("GET", "/page", &[("Accept-Encoding", "gzip")]).unwrap();
    assert_eq!((&seen.body[..], seen.field("vary")), (&b"plain"[..], None));
}

#[test]
fn a_file_that_is_not_regular_is_refused_without_waiting() {
    let site = TestDirectory::new();
    let fifo = site.root.join("fifo");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &fifo,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o644),
        0,
    )
    .unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(site.root.join("socket")).unwrap();
    fs::create_dir(site.root.join("d")).unwrap();
    fs::rename(&fifo, site.root.join("d/index.html")).unwrap();
    symlink("d/index.html", site.root.join("fifo")).unwrap();
    for path in ["/fifo", "/socket", "/d/"] {
        assert_eq!(site.status(path), Some(403), "{path}");
    }
}

#[test]
fn an_unreadable_file_is_refused() {
    let site = TestDirectory::new();
    let file = site.write("d/file", "x");
    let mode =
        |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    mode(&file, 0o000);
    // Root may read everything, and then there is nothing to refuse.
    let expected = Some(if fs::read(&file).is_ok() { 200 } else { 403 });
    assert_eq!(site.status("/d/file"), expected);
    mode(&file, 0o644);
    mode(&site.root.join("d"), 0o000);
    assert_eq!(site.status("/d/./file"), expected);
    mode(&site.root.join("d"), 0o755);
}

#[test]
fn a_directory_is_redirected_to_its_own_path_and_shows_its_first_index() {
    let site = TestDirectory::with(|config, _| {
        config.index = vec!["index.html".into(), "index.htm".into()]
    });
    site.write("d/index.htm", "second");
    site.write("index.html", "root");
    fs::create_dir(site.root.join("d/index.html")).unwrap();
    site.write("evil.com/index.html", "x");
    assert_eq!(site.body("/"), "root");
    assert_eq!(site.body("/d/"), "second");
    assert_eq!(site.get("/d/").unwrap().field("content-type"), Some("text/html; charset=utf-8"));
    for (target, location) in [
        ("/d", "/d/"),
        ("/d?a=/../b", "/d/?a=/../b"),
        ("/%64", "/d/"),
        ("//evil.com", "/evil.com/"),
        ("//evil.com?x", "/evil.com/?x"),
        ("/d/../evil.com", "/evil.com/"),
    ] {
        let seen = site.get(target).unwrap();
        assert_eq!((seen.status, seen.field("location")), (301, Some(location)), "{target}");
    }
}

#[test]
fn answers_within_the_validity_time_do_not_look_at_the_file_system() {
    let mut site = TestDirectory::new();
    let file = site.write("file", "old");
    assert_eq!(site.body("/file"), "old");
    assert_eq!(site.get("/later"), None);
    fs::remove_file(file).unwrap();
    site.write("later", "there");
    site.pass(999);
    assert_eq!(site.body("/file"), "old");
    assert_eq!(site.get("/later"), None);
    site.pass(1);
    assert_eq!(site.get("/file"), None);
    assert_eq!(site.body("/later"), "there");
}

#[test]
fn changed_and_replaced_files_are_noticed_after_the_validity_time() {
    for small_file_bytes in [0, 1000] {
        let mut site = TestDirectory::with(|_, limits| limits.small_file_bytes = small_file_bytes);
        let file = site.write("file", "one");
        assert_eq!(site.body("/file"), "one");
        // Renamed over, with the same size and time: another file all the same.
        let time = fs::metadata(&file).unwrap().modified().unwrap();
        let new = site.write("new", "two");
        fs::File::options().write(true).open(&new).unwrap().set_modified(time).unwrap();
        fs::rename(&new, &file).unwrap();
        assert_eq!(site.body("/file"), "one");
        site.pass(1000);
        assert_eq!(site.body("/file"), "two");
        // Written in place, the same size, at once: maybe with the same time stamp.
        for contents in ["333", "444", "555"] {
            fs::write(&file, contents).unwrap();
            site.pass(1000);
            assert_eq!(site.body("/file"), contents);
        }
        fs::write(&file, "longer").unwrap();
        site.pass(1000);
        assert_eq!(site.body("/file"), "longer");
        fs::remove_file(&file).unwrap();
        fs::create_dir(&file).unwrap();
        site.write("file/index.html", "x");
        site.pass(1000);
        assert_eq!(site.status("/file"), Some(301));
    }
}

#[test]
fn all_spellings_of_a_path_are_one_entry() {
    let site = TestDirectory::with(|_, limits| limits.paths = 3);
    let file = site.write("a b/f.html", "old");
    site.write("other", "x");
    assert_eq!(site.body("/a%20b/f.html"), "old");
    assert_eq!(site.body("/other"), "x");
    for n in 0..100 {
        for path in [format!("//{}a%20b/f%2ehtml", "./".repeat(n)), format!("/{n}/../%6fther")] {
            assert_eq!(site.status(&path), Some(200), "{path}");
        }
    }
    fs::remove_file(file).unwrap();
    for path in ["/a%20b/f.html", "/a%20b/../a%20b/f.html", "//a%20b/f.html"] {
        assert_eq!(site.body(path), "old", "{path} has no entry");
    }
}

#[test]
fn without_precompressed_no_variant_is_looked_for() {
    let site = TestDirectory::with(|config, _| config.precompressed = false);
    site.write("a.js", "plain");
    site.write("a.js.gz", "coded");
    let seen = site.ask("GET", "/a.js", &[("Accept-Encoding", "gzip")]).unwrap();
    assert_eq!((&seen.body[..], seen.field("vary")), (&b"plain"[..], None));
    assert_eq!(site.body("/a.js.gz"), "coded");
}

#[test]
fn places_of_one_directory_share_the_cache_but_no_entries() {
    let site = TestDirectory::new();
    site.write("a.txt", "x");
    site.write("a.txt.gz", "coded");
    let mut types = MediaTypes::default();
    types.set("txt", "text/markdown");
    let config = FilesConfig {
        precompressed: false,
        media_types: types.into(),
        ..FilesConfig::new(&site.root)
    };
    let other = Files::open(config, site.files.cache()).unwrap();
    for (files, media_type, vary) in [
        (&site.files, "text/plain; charset=utf-8", Some("Accept-Encoding")),
        (&other, "text/markdown; charset=utf-8", None),
    ] {
        let seen = with_head("GET", "/a.txt", &[], |head| files.answer(head, site.now)).map(see);
        let seen = seen.unwrap();
        assert_eq!((seen.field("content-type"), seen.field("vary")), (Some(media_type), vary));
    }
    assert!(Rc::ptr_eq(&site.files.root, &other.root));
}

#[test]
fn a_place_that_is_opened_again_finds_its_entries_and_those_of_a_gone_one_are_dropped() {
    let site = TestDirectory::new();
    site.write("a.txt", "x");
    let cache = Rc::clone(site.files.cache());
    let config = FilesConfig { listing: true, ..FilesConfig::new(&site.root) };
    let open = || Files::open(config.clone(), &cache).unwrap();
    let ask = |files: &Files| {
        let found = with_head("GET", "/a.txt", &[], |head| files.answer(head, site.now));
        assert!(found.is_some());
    };
    let bytes = || cache.found.borrow().used_bytes();
    ask(&site.files);
    let of_first = bytes();
    let second = open();
    ask(&second);
    let of_both = bytes();
    let again = open();
    assert_eq!((again.id(), of_both), (second.id(), 2 * of_first));
    ask(&again);
    drop(second);
    cache.forget_gone_places();
    assert_eq!(bytes(), of_both);
    drop(again);
    cache.forget_gone_places();
    assert_eq!(bytes(), of_first);
    ask(&site.files);
    ask(&open());
}

#[test]
fn a_validity_of_zero_looks_at_the_file_for_each_request() {
    let site = TestDirectory::with(|_, limits| limits.validity = Duration::ZERO);
    let file = site.write("file", "one");
    assert_eq!(site.body("/file"), "one");
    fs::write(&file, "two!").unwrap();
    assert_eq!(site.body("/file"), "two!");
}

#[test]
fn a_rebuilt_root_is_followed() {
    let mut site = TestDirectory::new();
    site.write("file", "old");
    assert_eq!(site.body("/file"), "old");
    fs::remove_dir_all(&site.root).unwrap();
    site.pass(1000);
    assert_eq!(site.get("/file"), None);
    site.write("file", "new");
    site.pass(1000);
    assert_eq!(site.body("/file"), "new");
}

#[test]
fn conditions_and_ranges_reach_the_answer() {
    for small_file_bytes in [0, 1000] {
        let site = TestDirectory::with(|_, limits| limits.small_file_bytes = small_file_bytes);
        set_modified(&site.write("f.txt", "0123456789"), 784_111_777);
        let tag = site.get("/f.txt").unwrap().field("etag").unwrap().to_owned();
        let ask = |lines: &[(&str, &str)]| site.ask("GET", "/f.txt", lines).unwrap();
        let seen = ask(&[("If-None-Match", &tag)]);
        assert_eq!((seen.status, seen.body.len()), (304, 0));
        assert_eq!(seen.field("etag"), Some(&tag[..]));
        assert_eq!(seen.field("last-modified"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
        assert_eq!(seen.field("content-type"), None);
        assert_eq!(ask(&[("If-Match", "\"other\"")]).status, 412);
        for (range, body, content_range) in [
            ("bytes=2-4", "234", "bytes 2-4/10"),
            ("bytes=-3", "789", "bytes 7-9/10"),
            ("bytes=9-100", "9", "bytes 9-9/10"),
            ("bytes=0-", "0123456789", "bytes 0-9/10"),
        ] {
            let seen = ask(&[("Range", range)]);
            assert_eq!((seen.status, &seen.body[..]), (206, body.as_bytes()), "{range}");
            assert_eq!(seen.field("content-range"), Some(content_range), "{range}");
            assert_eq!(seen.field("content-type"), Some("text/plain; charset=utf-8"), "{range}");
        }
        let seen = ask(&[("Range", "bytes=10-")]);
        assert_eq!((seen.status, seen.field("content-range")), (416, Some("bytes */10")));
        // So near each other that they are sent as one; several lines are one list.
        for lines in
            [&[("Range", "bytes=0-1,3-4")][..], &[("Range", "bytes=0-1"), ("Range", "3-4")]]
        {
            let seen = ask(lines);
            assert_eq!((seen.status, &seen.body[..]), (206, &b"01234"[..]), "{lines:?}");
        }
        assert_eq!(ask(&[("Range", "bytes=0-1"), ("If-Range", &tag)]).status, 206);
        assert_eq!(ask(&[("Range", "bytes=0-1"), ("If-Range", "\"other\"")]).status, 200);
        assert_eq!(ask(&[("Range", "bytes=0-1"), ("If-None-Match", &tag)]).status, 304);
        assert_eq!(ask(&[("Range", "bytes=99-"), ("If-Range", "\"other\"")]).status, 200);
    }
}

#[test]
fn a_variant_with_the_time_of_the_file_in_whole_seconds_is_sent() {
    let site = TestDirectory::new();
    let at = |name: &str, nanoseconds: u32| {
        let time = UNIX_EPOCH + Duration::new(784_111_777, nanoseconds);
        File::options()
            .write(true)
            .open(site.write(name, name))
            .unwrap()
            .set_modified(time)
            .unwrap();
    };
    at("x.css", 500);
    // brotli copies the time of the file, without what is below a second.
    at("x.css.br", 0);
    // This one is of an earlier change within the same second.
    at("x.css.gz", 400);
    let coding = |accepted: &str| {
        let seen = site.ask("GET", "/x.css", &[("Accept-Encoding", accepted)]).unwrap();
        seen.field("content-encoding").map(str::to_owned)
    };
    assert_eq!(coding("br").as_deref(), Some("br"));
    assert_eq!(coding("gzip"), None);
}

#[test]
fn a_variant_beside_the_file_is_sent_to_clients_that_accept_it() {
    let mut site = TestDirectory::new();
    for (name, contents) in [("x.css", "plain"), ("x.css.gz", "gzipped"), ("x.css.br", "brotli")] {
        set_modified(&site.write(name, contents), 784_111_777);
    }
    set_modified(&site.write("x.css.zst", "forgotten"), 784_111_776);
    let ask = |site: &TestDirectory, codings: &str| {
        site.ask("GET", "/x.css", &[("Accept-Encoding", codings)]).unwrap()
    };
    let mut tags = Vec::new();
    for (codings, body, coding) in [
        ("gzip", "gzipped", Some("gzip")),
        ("gzip, br, zstd", "brotli", Some("br")),
        ("gzip, br;q=0.5", "gzipped", Some("gzip")),
        // Older than the file.
        ("zstd", "plain", None),
        ("identity", "plain", None),
    ] {
        let seen = ask(&site, codings);
        assert_eq!((seen.status, &seen.body[..]), (200, body.as_bytes()), "{codings}");
        assert_eq!(seen.field("content-encoding"), coding, "{codings}");
        assert_eq!(seen.field("content-type"), Some("text/css; charset=utf-8"), "{codings}");
        assert_eq!(seen.field("vary"), Some("Accept-Encoding"), "{codings}");
        let tag = seen.field("etag").unwrap().to_owned();
        let again = site
            .ask("GET", "/x.css", &[("Accept-Encoding", codings), ("If-None-Match", &tag)])
            .unwrap();
        assert_eq!(
            (again.status, again.field("vary")),
            (304, Some("Accept-Encoding")),
            "{codings}"
        );
        tags.push(tag);
    }
    tags.dedup();
    // gzip, br, gzip, and the original for the last two.
    assert_eq!(tags.len(), 4, "{tags:?}");
    let seen =
        site.ask("GET", "/x.css", &[("Accept-Encoding", "gzip"), ("Range", "bytes=0-3")]).unwrap();
    assert_eq!((&seen.body[..], seen.field("content-range")), (&b"gzip"[..], Some("bytes 0-3/7")));
    let itself = site.ask("GET", "/x.css.gz", &[("Accept-Encoding", "gzip")]).unwrap();
    assert_eq!(itself.field("content-type"), Some("application/gzip"));
    assert_eq!((itself.field("content-encoding"), itself.field("vary")), (None, None));
    // A variant that comes later is noticed with the file.
    fs::remove_file(site.root.join("x.css.br")).unwrap();
    set_modified(&site.root.join("x.css.zst"), 784_111_778);
    assert_eq!(ask(&site, "br").body, b"brotli");
    site.pass(1000);
    assert_eq!(ask(&site, "br").body, b"plain");
    assert_eq!(ask(&site, "zstd").body, b"forgotten");
}

#[test]
fn separate_ranges_come_as_parts() {
    for small_file_bytes in [0, 1000] {
        let site = TestDirectory::with(|_, limits| limits.small_file_bytes = small_file_bytes);
        let content: String = (0..100).map(|n| format!("line {n:03}\n")).collect();
        site.write("f.txt", &content);
        let seen = site.ask("GET", "/f.txt", &[("Range", "bytes=891-,0-8")]).unwrap();
        assert_eq!((seen.status, seen.field("content-range")), (206, None));
        let media_type = seen.field("content-type").unwrap();
        let boundary = media_type.strip_prefix("multipart/byteranges; boundary=").unwrap();
        let part = |range: &str, text: &str| {
            format!(
                "--{boundary}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes {range}/900\r\n\r\n{text}\r\n"
            )
        };
        let parts = part("891-899", "line 099\n") + &part("0-8", "line 000\n");
        assert_eq!(String::from_utf8_lossy(&seen.body), format!("{parts}--{boundary}--\r\n"));
        assert_eq!(
            site.ask("GET", "/f.txt", &[("Range", "bytes=900-,1000-")]).unwrap().status,
            416
        );
        assert_eq!(site.ask("HEAD", "/f.txt", &[("Range", "bytes=891-,0-8")]).unwrap().status, 200);
    }
}

#[test]
fn an_empty_file_is_served() {
    let site = TestDirectory::new();
    site.write("empty.txt", "");
    let seen = site.get("/empty.txt").unwrap();
    assert_eq!((seen.status, seen.body.len()), (200, 0));
    assert_eq!(site.ask("GET", "/empty.txt", &[("Range", "bytes=0-")]).unwrap().status, 416);
    assert_eq!(site.ask("GET", "/empty.txt", &[("Range", "bytes=-1")]).unwrap().status, 200);
}

#[test]
fn a_file_from_the_future_has_no_date() {
    let site = TestDirectory::new();
    set_modified(&site.write("f", "x"), 30_000_000_000);
    let seen = site.get("/f").unwrap();
    assert_eq!((seen.status, seen.field("last-modified")), (200, None));
    assert!(seen.field("etag").is_some());
}

#[test]
fn small_files_keep_no_descriptor_and_large_ones_not_more_than_the_limit() {
    let site = TestDirectory::with(|_, limits| {
        limits.small_file_bytes = 4;
        limits.descriptors = 5;
    });
    for n in 0..20 {
        site.write(&format!("small{n}"), "1234");
        site.write(&format!("large{n}"), "12345");
        site.write(&format!("large{n}.gz"), "12345");
    }
    for n in 0..20 {
        assert!(site.get(&format!("/small{n}")).unwrap().in_memory);
    }
    assert_eq!(site.descriptors(), 0);
    for n in 0..20 {
        let seen = site.get(&format!("/large{n}")).unwrap();
        assert!(!seen.in_memory && seen.field("vary").is_some());
        assert!(site.descriptors() <= 5, "{} descriptors after {n}", site.descriptors());
    }
    assert_eq!(site.descriptors(), 4);
}

#[test]
fn a_directory_that_cannot_be_served_is_an_error_with_the_reason() {
    let site = TestDirectory::new();
    let file = site.write("file", "x");
    let error = |config: FilesConfig| open(config).err().map(|error| error.to_string()).unwrap();
    let none = site.root.join("none");
    let message = error(FilesConfig::new(&none));
    assert!(
        message.contains(none.to_str().unwrap()) && message.contains("No such file"),
        "{message}"
    );
    assert!(error(FilesConfig::new(&file)).ends_with("is not a directory"));
    for index in ["", "a/b", "../x", ".hidden", "/x", "a\0"] {
        let config = FilesConfig { index: vec![index.into()], ..FilesConfig::new(&site.root) };
        assert!(error(config).contains("is not a file name"), "{index}");
    }
}

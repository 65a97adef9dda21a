//! Tests of directory listings.

use std::ffi::OsStr;
use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::rc::Rc;
use std::time::Instant;

use kirin_http::request;
use proptest::prelude::*;

use super::*;
use crate::{CacheLimits, FileCache, Files, FilesConfig};

/// Requests `target`. Returns the status, `Location` and the body.
fn get(files: &Files, target: &str) -> Option<(u16, String, String)> {
    let text = format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut storage = [const { MaybeUninit::uninit() }; request::MAX_FIELDS];
    let Ok(request::Parsed::Complete(head, _)) =
        request::parse(text.as_bytes(), &mut storage, &Default::default())
    else {
        panic!("{text}")
    };
    let response = files.answer(&head, Instant::now())?;
    let location = response
        .fields
        .get("location")
        .map(String::from_utf8_lossy)
        .unwrap_or_default()
        .into_owned();
    let body = match response.body {
        Body::Bytes(bytes) => String::from_utf8(bytes.to_vec()).unwrap(),
        _ => String::new(),
    };
    Some((response.status.as_u16(), location, body))
}

fn open(config: FilesConfig) -> Files {
    Files::open(config, &Rc::new(FileCache::new(CacheLimits::default()))).unwrap()
}

fn listed(root: &std::path::Path) -> Files {
    open(FilesConfig { listing: true, ..FilesConfig::new(root) })
}

#[test]
fn a_directory_without_an_index_is_listed() {
    let outer = tempfile::tempdir().unwrap();
    fs::write(outer.path().join("secret"), "0123456789").unwrap();
    let root = outer.path().join("public");
    fs::create_dir_all(root.join("docs/zoo")).unwrap();
    fs::create_dir(root.join("with-index")).unwrap();
    fs::write(root.join("with-index/index.html"), "home").unwrap();
    fs::write(root.join("docs/b.txt"), "12345").unwrap();
    fs::write(root.join("docs/A<b>&'\"c.txt"), "").unwrap();
    fs::write(root.join("docs/caf\u{e9} x.txt"), "").unwrap();
    fs::write(root.join("docs/javascript:x"), "").unwrap();
    fs::write(root.join("docs").join(OsStr::from_bytes(b"\xff")), "").unwrap();
    fs::write(root.join("docs/.hidden"), "").unwrap();
    fs::write(root.join("docs/line\nend"), "").unwrap();
    symlink("b.txt", root.join("docs/inside")).unwrap();
    symlink("../../secret", root.join("docs/outside")).unwrap();
    symlink("/etc", root.join("docs/absolute")).unwrap();
    let files = listed(&root);
    let (status, _, body) = get(&files, "/docs/").unwrap();
    assert_eq!(status, 200);
    let rows: Vec<&str> = body.lines().filter(|line| line.starts_with("<tr>")).collect();
    let names: Vec<&str> = rows.iter().filter_map(|row| row.split('"').nth(1)).collect();
    assert_eq!(
        names,
        [
            "../",
            "./zoo/",
            "./A%3Cb%3E%26%27%22c.txt",
            "./b.txt",
            "./caf%C3%A9%20x.txt",
            "./inside",
            "./javascript%3Ax",
            "./%FF",
        ],
        "{body}"
    );
    assert!(
        body.contains(">A&lt;b&gt;&amp;&#39;&quot;c.txt</a>") && !body.contains("<b>"),
        "{body}"
    );
    assert!(body.contains("caf\u{e9} x.txt</a>"), "{body}");
    assert!(rows[3].contains("<td>5</td>") && rows[5].contains("<td>5</td>"), "{body}");
    for target in ["/docs/caf%C3%A9%20x.txt", "/docs/%FF", "/docs/A%3Cb%3E%26%27%22c.txt"] {
        assert_eq!(get(&files, target).unwrap().0, 200, "{target}");
    }
    assert_eq!(get(&files, "/docs?a").unwrap(), (301, "/docs/?a".into(), String::new()));
    assert_eq!(get(&files, "/with-index/").unwrap().2, "home");
    assert_eq!(get(&files, "/docs/gone/"), None);
    assert_eq!(get(&files, "/docs/.hidden/"), None);
    assert_eq!(get(&files, "/docs/absolute/").map(|reply| reply.0), Some(403));
    let unlisted = open(FilesConfig::new(&root));
    assert_eq!(get(&unlisted, "/docs/"), None);
    assert_eq!(get(&unlisted, "/docs"), None);
}

#[test]
fn the_root_has_no_link_up_and_a_long_list_ends() {
    let root = tempfile::tempdir().unwrap();
    for number in 0..MAX_ENTRIES + 3 {
        fs::write(root.path().join(number.to_string()), "").unwrap();
    }
    let body = get(&listed(root.path()), "/").unwrap().2;
    assert!(!body.contains("../"), "{body}");
    assert_eq!(body.matches("<tr>").count(), MAX_ENTRIES);
    assert!(body.contains("the others are not shown"));
}

#[test]
fn dates_are_in_utc() {
    assert_eq!(date(784_111_777), "06 Nov 1994 08:49");
    assert_eq!(date(-1), "-");
    assert_eq!(date(i64::MAX), "-");
}

proptest! {
    #[test]
    fn a_name_links_to_itself_and_makes_no_markup(name in prop::collection::vec(any::<u8>(), 1..20)) {
        let escaped = as_html(&name);
        prop_assert!(!escaped.contains(['<', '>', '"', '\'']));
        let encoded = percent::encode(&name, RESERVED);
        prop_assert!(encoded.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>?#/".contains(&byte)));
        if is_shown(&FileName::parse("/").unwrap(), &name) && !name.contains(&b'/') {
            prop_assert_eq!(FileName::parse(&format!("/{encoded}")).unwrap().name, name);
        }
    }
}

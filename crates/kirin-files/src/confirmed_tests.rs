//! Lookups of files that are cached already: what a look at the state only may not miss.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::{Duration, SystemTime};

use super::site::{TestDirectory, set_modified};
use crate::FollowLinks;

/// Waits until the names in all directories are older than any tick of a file system.
fn settle() {
    let settled = SystemTime::now() + Duration::from_millis(3100);
    while SystemTime::now() < settled {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// Requests `path` after the validity time, so that a lookup has seen the settled directory.
fn look_again(site: &mut TestDirectory, paths: &[&str]) {
    site.pass(1000);
    for path in paths {
        site.get(path);
    }
    site.pass(1000);
}

#[test]
fn an_unchanged_file_is_confirmed_without_opening_it() {
    let mut site =
        TestDirectory::with(|config, _| config.index = vec!["a.html".into(), "b.html".into()]);
    let plain = ["/plain.css", "/d/", "/d/b.html", "/coded.js"];
    for name in ["plain.css", "d/b.html", "coded.js", "coded.js.gz", "linked", "odd/f", "far/gone"]
    {
        set_modified(&site.write(name, name), 784_111_777);
    }
    let many: Vec<String> = (0..30).map(|n| format!("/many/{n}.css")).collect();
    for name in &many {
        set_modified(&site.write(&name[1..], "x"), 784_111_777);
    }
    symlink("linked", site.root.join("link")).unwrap();
    symlink("../nowhere", site.root.join("odd/f.br")).unwrap();
    let opened = ["/link", "/odd/f"];
    for path in plain.iter().chain(&opened) {
        assert_eq!(site.status(path), Some(200), "{path}");
    }
    site.pass(1000);
    for path in plain {
        assert!(!site.confirms(path), "{path}: its directory has just changed");
    }
    settle();
    look_again(&mut site, &[&plain[..], &opened].concat());
    for path in plain {
        assert!(site.confirms(path), "{path}");
    }
    for path in opened {
        assert!(!site.confirms(path), "{path}: a link may lead elsewhere");
    }
    // From time to time a file is opened even so. The minute begins when Kirin looked for variants,
    // which is when it read the names in the directory.
    for path in &many[1..] {
        site.get(path);
    }
    site.pass(30_000);
    site.get(&many[0]);
    site.pass(29_000);
    assert!(site.confirms(&many[0]));
    site.pass(1000);
    assert!(!site.confirms(&many[0]));
    site.pass(29_000);
    assert!(!site.confirms("/plain.css"));
}

#[test]
fn a_file_is_not_confirmed_where_links_depend_on_their_owners() {
    let mut site = TestDirectory::with(|config, _| config.follow_links = FollowLinks::SameOwner);
    set_modified(&site.write("file", "x"), 784_111_777);
    settle();
    look_again(&mut site, &["/file"]);
    assert_eq!(site.body("/file"), "x");
    assert!(!site.confirms("/file"));
}

#[test]
fn any_change_is_seen_after_the_validity_time() {
    let mut site =
        TestDirectory::with(|config, _| config.index = vec!["a.html".into(), "b.html".into()]);
    let names = ["edited", "replaced", "removed", "linked", "moved", "coded", "plain", "index"];
    for name in names {
        set_modified(&site.write(&format!("{name}/b.html"), "old"), 784_111_777);
    }
    set_modified(&site.write("plain/b.html.gz", "gz"), 784_111_777);
    let paths = names.map(|name| format!("/{name}/"));
    let paths = paths.each_ref().map(String::as_str);
    look_again(&mut site, &paths);
    settle();
    look_again(&mut site, &paths);
    for path in paths {
        assert!(site.confirms(path), "{path}");
        assert_eq!(site.body(path), "old");
    }

    let file = |name: &str| site.root.join(name).join("b.html");
    fs::write(file("edited"), "new").unwrap();
    let new = site.write("new", "new");
    set_modified(&new, 784_111_777);
    fs::rename(new, file("replaced")).unwrap();
    fs::remove_file(file("removed")).unwrap();
    fs::remove_file(file("linked")).unwrap();
    symlink("../../secret", file("linked")).unwrap();
    // The same file at the same path, but the path leads out of the root.
    let outside = site.root.parent().unwrap().join("outside");
    fs::rename(site.root.join("moved"), &outside).unwrap();
    symlink("../outside", site.root.join("moved")).unwrap();
    site.write("coded/b.html.br", "br");
    fs::remove_file(site.root.join("plain/b.html.gz")).unwrap();
    site.write("index/a.html", "first");

    for path in paths {
        assert_eq!(site.body(path), "old", "{path} within the validity time");
    }
    site.pass(1000);
    let seen = |name: &str| {
        let path = format!("/{name}/");
        let seen = site.ask("GET", &path, &[("Accept-Encoding", "br, gzip")])?;
        Some((seen.status, String::from_utf8(seen.body).unwrap()))
    };
    for (name, expected) in [
        ("edited", Some((200, "new"))),
        ("replaced", Some((200, "new"))),
        ("removed", None),
        ("linked", Some((403, "403 Forbidden\n"))),
        ("moved", Some((403, "403 Forbidden\n"))),
        ("coded", Some((200, "br"))),
        ("plain", Some((200, "old"))),
        ("index", Some((200, "first"))),
    ] {
        let expected = expected.map(|(status, body)| (status, body.to_owned()));
        assert_eq!(seen(name), expected, "{name}");
    }
}

#[test]
fn a_new_variant_is_seen_after_the_validity_time_although_the_names_were_read() {
    let mut site = TestDirectory::new();
    for n in 0..40 {
        set_modified(&site.write(&format!("d/{n}.html"), "plain"), 784_111_777);
    }
    let ask = |site: &TestDirectory, n: usize| {
        let accepted = [("Accept-Encoding", "br")];
        let seen = site.ask("GET", &format!("/d/{n}.html"), &accepted).unwrap();
        String::from_utf8(seen.body).unwrap()
    };
    for n in 0..30 {
        assert_eq!(ask(&site, n), "plain");
    }
    // One file is cached, and the other is not.
    for n in [0, 35] {
        site.write(&format!("d/{n}.html.br"), "br");
        assert_eq!(ask(&site, n), "plain", "{n}: the names were read within the validity time");
    }
    site.pass(1000);
    for n in [0, 35] {
        assert_eq!(ask(&site, n), "br", "{n}");
    }
    // A directory with variants is asked for each of them.
    site.write("d/36.html.br", "br");
    assert_eq!(ask(&site, 36), "br");
}

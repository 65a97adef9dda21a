//! The keys of static files, through the built program.

use std::fs;

use kirin_tests::{Kirin, Reply, Site, wait_for};

/// Starts the program with the routes and sections of `config`.
fn serve(site: &Site, config: &str) -> Kirin {
    let listener = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n";
    Kirin::start(site, &format!("{listener}{config}"))
}

fn route(path: &str, keys: &str) -> String {
    format!("[[route]]\npath = \"{path}\"\nrewrite = \"/\"\ntry = [\"files:public\"]\n{keys}\n")
}

fn media_type(reply: &Reply) -> Option<String> {
    reply.field("content-type").map(str::to_owned)
}

/// Returns the number of files below `public` that the program has open, without directories.
fn open_files(site: &Site, kirin: &Kirin) -> usize {
    let public = site.path("public");
    let open = fs::read_dir(format!("/proc/{}/fd", kirin.pid())).expect("descriptors");
    open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
        .filter(|target| target.starts_with(&public) && target.is_file())
        .count()
}

#[test]
fn without_precompressed_a_variant_beside_a_file_is_a_file_of_its_own() {
    let site = Site::new().with("public/a.js", "plain").with("public/a.js.gz", "coded");
    let kirin = serve(&site, &(route("/on", "") + &route("/off", "precompressed = false")));
    for (path, body, coding, vary) in [
        ("/on/a.js", "coded", Some("gzip"), Some("Accept-Encoding")),
        ("/off/a.js", "plain", None, None),
        ("/off/a.js.gz", "coded", None, None),
    ] {
        let reply = kirin.connect().request("GET", path, "Accept-Encoding: gzip\r\n");
        assert_eq!((reply.status, &*reply.text()), (200, body), "{path}: {}", reply.head);
        let fields = (reply.field("content-encoding"), reply.field("vary"));
        assert_eq!(fields, (coding, vary), "{path}: {}", reply.head);
    }
}

#[test]
fn index_names_are_tried_in_their_order() {
    let site = Site::new()
        .with("public/both/start.htm", "start")
        .with("public/both/index.html", "index")
        .with("public/index/index.html", "index")
        .with("public/none/other.html", "other");
    let routes = [
        route("/default", ""),
        route("/own", "index = [\"start.htm\", \"index.html\"]"),
        route("/no", "index = []"),
    ];
    let kirin = serve(&site, &routes.concat());
    for (path, status, body) in [
        ("/default/both/", 200, "index"),
        ("/default/none/", 404, ""),
        ("/own/both/", 200, "start"),
        ("/own/index/", 200, "index"),
        ("/own/both", 301, ""),
        ("/no/both/", 404, ""),
        ("/no/both", 404, ""),
        ("/no/both/start.htm", 200, "start"),
    ] {
        let reply = kirin.get(path);
        assert_eq!(reply.status, status, "{path}: {}", reply.head);
        assert!(status != 200 || reply.text() == body, "{path}: {}", reply.text());
    }
}

#[test]
fn the_index_of_a_directory_never_shows_the_source_of_a_script() {
    let site = Site::new().with("public/index.html", "<?php secret");
    let upstream = "[[upstream]]\nname = \"php\"\nservers = [\"fastcgi://127.0.0.1:9\"]\n\
                    root = \"public\"\nextension = \".html\"\n";
    let kirin = serve(&site, &(route("/", "").replace("rewrite = \"/\"\n", "") + upstream));
    for path in ["/", "/index.html"] {
        let reply = kirin.get(path);
        assert_eq!(reply.status, 404, "{path}: {}", reply.text());
    }
}

#[test]
fn media_types_and_the_charset_are_those_of_the_route() {
    let mut site = Site::new();
    let names = ["a.html", "a.json", "a.webc", "a.WEBC", "a.txt", "a.png", "README"];
    for name in names {
        site = site.with(&format!("public/{name}"), "x");
    }
    let types = "mime_types = { webc = \"text/html\", txt = \"text/plain; charset=koi8-r\", \"*\" = \"text/x-any\" }";
    let routes = [
        route("/default", ""),
        route("/own", types),
        route("/latin", &format!("{types}\ncharset = \"iso-8859-1\"")),
        route("/none", "charset = \"\""),
    ];
    let kirin = serve(&site, &routes.concat());
    for (path, expected) in [
        (
            "/default",
            [
                "text/html; charset=utf-8",
                "application/json; charset=utf-8",
                "application/octet-stream",
                "application/octet-stream",
                "text/plain; charset=utf-8",
                "image/png",
                "application/octet-stream",
            ],
        ),
        (
            "/own",
            [
                "text/html; charset=utf-8",
                "application/json; charset=utf-8",
                "text/html; charset=utf-8",
                "text/html; charset=utf-8",
                "text/plain; charset=koi8-r",
                "image/png",
                "text/x-any; charset=utf-8",
            ],
        ),
        (
            "/latin",
            [
                "text/html; charset=iso-8859-1",
                "application/json; charset=utf-8",
                "text/html; charset=iso-8859-1",
                "text/html; charset=iso-8859-1",
                "text/plain; charset=koi8-r",
                "image/png",
                "text/x-any; charset=iso-8859-1",
            ],
        ),
        (
            "/none",
            [
                "text/html",
                "application/json",
                "application/octet-stream",
                "application/octet-stream",
                "text/plain",
                "image/png",
                "application/octet-stream",
            ],
        ),
    ] {
        for (name, expected) in names.iter().zip(expected) {
            let reply = kirin.get(&format!("{path}/{name}"));
            assert_eq!(media_type(&reply).as_deref(), Some(expected), "{path}/{name}");
        }
    }
}

#[test]
fn the_open_file_cache_keeps_what_it_has_seen_for_the_validity_time() {
    let site = Site::new().with("public/there", "old");
    let cache = "[open_file_cache]\nvalidity = \"3600s\"\n";
    let kirin = serve(&site, &(route("/", "") + cache));
    assert_eq!(kirin.get("/there").text(), "old");
    assert_eq!(kirin.get("/later").status, 404);
    fs::remove_file(site.path("public/there")).expect("a file");
    fs::write(site.path("public/later"), "new").expect("a file");
    for path in ["/there", "//there", "/%74here", "/x/../there"] {
        assert_eq!(kirin.get(path).text(), "old", "{path}");
    }
    for path in ["/later", "//later", "/%6cater"] {
        assert_eq!(kirin.get(path).status, 404, "{path}");
    }
}

#[test]
fn a_file_that_appears_or_changes_is_seen_after_the_validity_time() {
    let site = Site::new().with("public/there", "old");
    let kirin = serve(&site, &(route("/", "") + "[open_file_cache]\nvalidity = \"50ms\"\n"));
    assert_eq!(kirin.get("/there").text(), "old");
    assert_eq!(kirin.get("/later").status, 404);
    fs::write(site.path("public/there"), "changed").expect("a file");
    fs::write(site.path("public/later"), "new").expect("a file");
    wait_for("the change", || (kirin.get("/there").text() == "changed").then_some(()));
    wait_for("the new file", || (kirin.get("/later").status == 200).then_some(()));
    fs::remove_file(site.path("public/later")).expect("a file");
    wait_for("the removal", || (kirin.get("/later").status == 404).then_some(()));
}

#[test]
fn a_cache_without_paths_looks_at_each_request() {
    let site = Site::new().with("public/there", "old");
    let cache = "[open_file_cache]\npaths = 0\nvalidity = \"3600s\"\n";
    let kirin = serve(&site, &(route("/", "") + cache));
    assert_eq!(kirin.get("/there").text(), "old");
    assert_eq!(kirin.get("/later").status, 404);
    fs::write(site.path("public/there"), "changed").expect("a file");
    fs::write(site.path("public/later"), "new").expect("a file");
    assert_eq!(kirin.get("/there").text(), "changed");
    assert_eq!(kirin.get("/later").text(), "new");
}

#[test]
fn all_routes_together_keep_no_more_descriptors_than_the_limit() {
    let mut site = Site::new();
    for n in 0..20 {
        site = site.with(&format!("public/{n}"), "x".repeat(9000));
    }
    let routes: String = (0..10).map(|n| route(&format!("/r{n}"), "")).collect();
    let cache = "[open_file_cache]\ndescriptors = 5\nsmall_file = \"8KB\"\n";
    let kirin = serve(&site, &(routes + cache));
    let mut client = kirin.connect();
    for n in 0..200 {
        let reply = client.get(&format!("/r{}/{}", n % 10, n % 20));
        assert_eq!((reply.status, reply.body.len()), (200, 9000), "{n}");
    }
    wait_for("five descriptors", || (open_files(&site, &kirin) == 5).then_some(()));
}

#[test]
fn names_that_are_not_there_evict_no_file() {
    let site = Site::new().with("public/rare", "rare").with("public/other", "other");
    let cache = "[open_file_cache]\npaths = 50\nmemory = \"1MB\"\nvalidity = \"3600s\"\n";
    let kirin = serve(&site, &(route("/", "") + cache));
    let mut client = kirin.connect();
    assert_eq!(client.get("/rare").text(), "rare");
    assert_eq!(client.get("/other").text(), "other");
    fs::remove_file(site.path("public/rare")).expect("a file");
    for n in 0..500 {
        assert_eq!(client.get(&format!("/absent{n}")).status, 404);
        assert_eq!(client.get(&format!("/{}other", "./".repeat(n))).text(), "other");
    }
    // Nobody has asked for it, and it still has its entry.
    assert_eq!(client.get("/rare").text(), "rare");
}

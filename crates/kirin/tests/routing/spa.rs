//! `fallback` and `immutable`: builds of front ends, through the built program.

use kirin_tests::{Kirin, Reply, Site, run_kirin};

const LISTENER: &str = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n";

/// The configuration of docs/spa.md for a build of Vite.
const VITE: &str = r#"
[[app]]
name = "api"
load = "api.psgi"
workers = 1
[[route]]
path = "/"
try = ["files:dist"]
fallback = "index.html"
headers = { "Cache-Control" = "no-cache" }
[[route]]
path = "/assets"
try = ["files:dist"]
immutable = true
[[route]]
path = "/api"
try = ["app:api"]
"#;

/// The configuration of docs/spa.md for a static export of Next.js.
const NEXT: &str = r#"
[[route]]
path = "/"
try = ["files:out"]
error_pages = { 404 = "/404.html" }
headers = { "Cache-Control" = "no-cache" }
[[route]]
path = "/_next/static"
try = ["files:out"]
immutable = true
"#;

const IMMUTABLE: &str = "public, max-age=31536000, immutable";

const PAGE: &str = "<!doctype html><div id=app></div>";

const BROWSER: &str = "Accept: text/html,application/xhtml+xml,*/*;q=0.8\r\n";

const NAVIGATION: &str = "Sec-Fetch-Mode: navigate\r\nSec-Fetch-Dest: document\r\n";

const FETCH: &str = "Sec-Fetch-Mode: cors\r\nSec-Fetch-Dest: empty\r\nAccept: */*\r\n";

/// Writes the files of a build of Vite 8.
fn vite() -> Site {
    Site::new()
        .with("dist/index.html", PAGE)
        .with("dist/favicon.svg", "<svg/>")
        .with("dist/assets/index-4B_zcIE0.js", "main()")
        .with("dist/assets/index-Ck4RP02B.css", "body{}")
        .with("api.psgi", "sub { [404, ['Content-Type' => 'text/plain'], ['api']] }")
}

fn ask(kirin: &Kirin, target: &str, fields: &str) -> Reply {
    kirin.connect().request("GET", target, fields)
}

#[test]
fn navigations_get_the_page_and_all_else_what_is_there() {
    let site = vite();
    let kirin = Kirin::start(&site, &format!("{LISTENER}{VITE}"));
    let no_cache = Some("no-cache");
    for (target, fields, status, body, cached) in [
        ("/", "", 200, Some(PAGE), no_cache),
        ("/favicon.svg", FETCH, 200, Some("<svg/>"), no_cache),
        ("/users/7?tab=a", BROWSER, 200, Some(PAGE), no_cache),
        ("/users/7", NAVIGATION, 200, Some(PAGE), no_cache),
        ("/users/jane.doe", NAVIGATION, 200, Some(PAGE), no_cache),
        ("/users/7", "", 404, None, no_cache),
        ("/users/7", "Accept: */*\r\n", 404, None, no_cache),
        ("/users/7.json", FETCH, 404, None, no_cache),
        ("/none.png", "Sec-Fetch-Mode: no-cors\r\nAccept: image/*\r\n", 404, None, no_cache),
        ("/assets/index-4B_zcIE0.js", FETCH, 200, Some("main()"), Some(IMMUTABLE)),
        ("/assets/index-4B_zcIE0.js", NAVIGATION, 200, Some("main()"), Some(IMMUTABLE)),
        ("/assets/index-0LD.js", FETCH, 404, None, None),
        ("/assets/index-0LD.js", NAVIGATION, 404, None, None),
        ("/assets", NAVIGATION, 404, None, None),
        ("/api/none", NAVIGATION, 404, Some("api"), None),
    ] {
        let reply = ask(&kirin, target, fields);
        assert_eq!(reply.status, status, "{target} {fields}: {}", reply.head);
        assert_eq!(reply.field("cache-control"), cached, "{target} {fields}: {}", reply.head);
        assert!(body.is_none_or(|body| reply.text() == body), "{target}: {}", reply.text());
    }
}

#[test]
fn the_page_varies_is_asked_for_again_and_has_no_other_method() {
    let site = vite();
    let routes = VITE.replace("headers = { \"Cache-Control\" = \"no-cache\" }\n", "");
    let kirin = Kirin::start(&site, &format!("{LISTENER}{routes}"));
    let page = ask(&kirin, "/users/7", NAVIGATION);
    assert_eq!(page.field("cache-control"), Some("no-cache"), "{}", page.head);
    let vary = |reply: &Reply| reply.field("vary").map(str::to_owned).unwrap_or_default();
    assert!(vary(&page).ends_with("Accept, Sec-Fetch-Mode"), "{}", page.head);
    let missing = ask(&kirin, "/users/7", FETCH);
    assert_eq!((missing.status, &*vary(&missing)), (404, "Accept, Sec-Fetch-Mode"));
    let tag = page.field("etag").expect("a tag");
    let again = ask(&kirin, "/users/8", &format!("{NAVIGATION}If-None-Match: {tag}\r\n"));
    assert_eq!((again.status, again.field("cache-control")), (304, Some("no-cache")));
    let asset = ask(&kirin, "/assets/index-4B_zcIE0.js", "");
    let tag = asset.field("etag").expect("a tag");
    let fields = format!("If-None-Match: {tag}\r\n");
    let again = ask(&kirin, "/assets/index-4B_zcIE0.js", &fields);
    assert_eq!((again.status, again.field("cache-control")), (304, Some(IMMUTABLE)));
    let mut client = kirin.connect();
    let head = client.request("HEAD", "/users/7", NAVIGATION);
    assert_eq!((head.status, head.field("cache-control")), (200, Some("no-cache")));
    assert_eq!(kirin.connect().request("POST", "/users/7", NAVIGATION).status, 404);
    assert_eq!(kirin.connect().request("POST", "/index.html", NAVIGATION).status, 405);
}

#[test]
fn the_fallback_comes_after_all_places_and_before_error_pages() {
    let site = vite()
        .with("more/here.txt", "more")
        .with("more/404.html", "sorry")
        .with("more/ssi.html", "<!--#echo var=\"DOCUMENT_URI\" -->")
        .with("pass.lua", "return function() return nil end");
    let routes = "[[route]]\npath = \"/\"\ntry = [\"files:dist\", \"lua:pass.lua\", \"files:more\"]\n\
                  fallback = \"index.html\"\nerror_pages = { 404 = \"/404.html\" }\n\
                  [[route]]\npath = \"/sub\"\nrewrite = \"/\"\ntry = [\"files:more\"]\nfallback = \"here.txt\"\n\
                  [[route]]\npath = \"/none\"\ntry = [\"files:more\"]\nfallback = \"none.html\"\n\
                  [[route]]\npath = \"/ssi\"\ntry = [\"files:more\"]\nfallback = \"ssi.html\"\nssi = true\n";
    let kirin = Kirin::start(&site, &format!("{LISTENER}{routes}"));
    for (target, fields, status, body) in [
        ("/here.txt", NAVIGATION, 200, "more"),
        ("/users/7", NAVIGATION, 200, PAGE),
        ("/users/7", FETCH, 404, "sorry"),
        ("/sub/a", NAVIGATION, 200, "more"),
        ("/none/a", NAVIGATION, 404, ""),
        ("/ssi/a", NAVIGATION, 200, "/ssi/a"),
    ] {
        let reply = ask(&kirin, target, fields);
        assert_eq!(reply.status, status, "{target} {fields}: {}", reply.head);
        assert!(body.is_empty() || reply.text() == body, "{target}: {}", reply.text());
    }
}

#[test]
fn kirin_explain_says_who_gets_the_page() {
    let site = vite().with("kirin.toml", format!("{LISTENER}{VITE}"));
    let config = site.path("kirin.toml").display().to_string();
    let url = "http://127.0.0.1/users/7";
    for (arguments, expected) in [
        (vec![url], "otherwise 404: `fallback` is for clients that accept `text/html`"),
        (vec![url, "-H", "Accept: text/html"], "otherwise the page of `fallback`"),
        (vec!["http://127.0.0.1/assets/a"], "immutable: files may be cached for a year"),
    ] {
        let arguments = [&["explain"], &*arguments, &["--config", &config]].concat();
        let said = run_kirin(&site, &arguments);
        let said = String::from_utf8_lossy(&said.stdout);
        assert!(said.contains(expected), "{arguments:?}: {said}");
    }
}

#[test]
fn a_static_export_of_next_is_served_as_directories() {
    let site = Site::new()
        .with("out/index.html", "start")
        .with("out/404.html", "not found")
        .with("out/about/index.html", "about")
        .with("out/about/__next._tree.txt", "tree")
        .with("out/contact.html", "contact")
        .with("out/_next/static/chunks/0cz1d0mv5g_q7.js", "chunk");
    let kirin = Kirin::start(&site, &format!("{LISTENER}{NEXT}"));
    for (target, status, body, cached, location) in [
        ("/", 200, "start", Some("no-cache"), None),
        ("/about/", 200, "about", Some("no-cache"), None),
        ("/about", 301, "", Some("no-cache"), Some("/about/")),
        ("/none", 404, "not found", Some("no-cache"), None),
        ("/_next/static/chunks/0cz1d0mv5g_q7.js", 200, "chunk", Some(IMMUTABLE), None),
        ("/_next/static/chunks/0ld.js", 404, "", None, None),
        // Without `trailingSlash` a page has a name that its address does not have.
        ("/contact", 404, "not found", Some("no-cache"), None),
        ("/contact.html", 200, "contact", Some("no-cache"), None),
    ] {
        let reply = ask(&kirin, target, NAVIGATION);
        let found = (reply.status, reply.field("cache-control"), reply.field("location"));
        assert_eq!(found, (status, cached, location), "{target}: {}", reply.head);
        assert!(body.is_empty() || reply.text() == body, "{target}: {}", reply.text());
    }
}

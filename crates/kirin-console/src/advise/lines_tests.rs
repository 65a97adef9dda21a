//! The lines for each verdict, and paths and routes that must not become lines.

use kirin_advice::observation::AdvisedRoute;
use kirin_advice::report::Steady;

use super::*;

pub(crate) fn entry(path: &str, verdict: PageVerdict) -> ReportEntry {
    ReportEntry {
        route: AdvisedRoute {
            site: String::new(),
            path: "/".into(),
            place: "app:web".into(),
            has_store: false,
            has_rewrite: false,
        },
        site: String::new(),
        host: "h".into(),
        target: path.into(),
        path: Some(path.into()),
        pages: 1,
        requests: 10,
        place_seconds: 1.0,
        visitors: 5,
        saved_requests: 9,
        saved_seconds: 0.9,
        verdict,
        steady: Some(Steady {
            observed_seconds: 60.0,
            changes: 0,
            shortest_seconds: None,
            ttl_seconds: Some(30),
        }),
        freshness: StatedFreshness::None,
        is_html: true,
        is_path_mixed: false,
    }
}

const CONFIG: &str = r#"
[[route]]
path = "/"
try = ["store", "app:web"]
basic_auth = "users"
headers = { "X-Frame-Options" = "DENY" }
[[route]]
path = "= /known"
try = ["app:web"]
[[site]]
name = "shop"
hosts = ["shop.example.org"]
cache = { bypass = ["cookie:admin"] }
[[site.route]]
path = "/list/"
try = ["app:web"]
"#;

#[test]
fn a_copy_of_the_route_keeps_all_keys() {
    let found = lines(CONFIG, &entry("/news", PageVerdict::Everybody));
    let Ok(ConfigLines::Route(text)) = &found else { panic!("{found:?}") };
    let parsed: Table = text.parse().expect(text);
    let route = &parsed["route"][0];
    assert_eq!(route["path"].as_str(), Some("= /news"), "{text}");
    assert_eq!(route["basic_auth"].as_str(), Some("users"), "{text}");
    assert_eq!(route["headers"]["X-Frame-Options"].as_str(), Some("DENY"), "{text}");
    assert_eq!(route["cache"]["ttl"].as_str(), Some("30s"), "{text}");
    assert_eq!(route["cache"]["cookies"].as_str(), Some("ignore"), "{text}");
}

#[test]
fn visitors_with_cookies_share_only_what_is_the_same_for_everybody() {
    let found = lines(CONFIG, &entry("/", PageVerdict::WithoutCookie { others_differ: true }));
    let text = found.as_ref().map(ConfigLines::text).unwrap_or_default();
    assert!(text.contains("cache = { ttl = \"30s\" }") && !text.contains("cookies"), "{found:?}");
}

#[test]
fn a_route_of_a_site_keeps_the_cache_of_the_site() {
    let mut entry = entry("/list", PageVerdict::Everybody);
    entry.route.site = "shop".into();
    entry.route.path = "/list".into();
    entry.freshness = StatedFreshness::Lifetime;
    let found = lines(CONFIG, &entry);
    let Ok(ConfigLines::SiteRoute(name, text)) = &found else { panic!("{found:?}") };
    assert_eq!(name, "shop");
    assert!(text.contains("bypass = [\"cookie:admin\"]") && !text.contains("ttl"), "{text}");
}

#[test]
fn a_route_that_is_there_gets_a_key() {
    let mut entry = entry("/known", PageVerdict::Everybody);
    entry.route.path = "= /known".into();
    let found = lines(CONFIG, &entry);
    assert!(
        matches!(&found, Ok(ConfigLines::Key(text)) if text.starts_with("cache = {")),
        "{found:?}"
    );
}

#[test]
fn no_lines_are_advised_unless_their_effect_is_certain() {
    let everybody = |path| entry(path, PageVerdict::Everybody);
    let changed = |change: fn(&mut ReportEntry)| {
        let mut entry = everybody("/news");
        change(&mut entry);
        entry
    };
    for (entry, expected) in [
        (entry("/x", PageVerdict::Changing), NoLines::Verdict),
        (entry("/x", PageVerdict::Unsafe { reasons: Vec::new() }), NoLines::Verdict),
        (entry("/x", PageVerdict::SameBut { gaps: Vec::new() }), NoLines::Verdict),
        (changed(|entry| entry.path = None), NoLines::ManyPages),
        (changed(|entry| entry.is_path_mixed = true), NoLines::MixedPath),
        (changed(|entry| entry.route.has_rewrite = true), NoLines::Rewrite),
        (changed(|entry| entry.route.path = "/other".into()), NoLines::Route),
        (changed(|entry| entry.route.site = "other".into()), NoLines::Route),
        (everybody("/a%2Fb"), NoLines::Path),
        (everybody("/a%2fb"), NoLines::Path),
        (everybody("/a%252Fb"), NoLines::Path),
        (everybody("/a//b"), NoLines::Path),
        (everybody("/a/../b"), NoLines::Path),
        (everybody("/{id}"), NoLines::Path),
        (everybody("/a%0ab"), NoLines::Path),
        (everybody("/a%3Fb"), NoLines::Path),
        (everybody("/%ff"), NoLines::Path),
        (everybody("/%"), NoLines::Path),
    ] {
        assert_eq!(lines(CONFIG, &entry), Err(expected), "{entry:?}");
    }
}

#[test]
fn a_path_cannot_add_keys() {
    let entry = entry("/x\"%0atry=[]", PageVerdict::Everybody);
    assert_eq!(lines(CONFIG, &entry), Err(NoLines::Path));
    let entry = super::tests::entry("/x\"y'%E3%81%82", PageVerdict::Everybody);
    let found = lines(CONFIG, &entry);
    let text = found.as_ref().map(ConfigLines::text).unwrap_or_default();
    let parsed: Table = text.parse().expect(text);
    assert_eq!(parsed["route"][0]["path"].as_str(), Some("= /x\"y'あ"), "{text}");
}

#[test]
fn two_routes_of_the_same_path_give_no_lines() {
    let config = format!(
        "{CONFIG}[[route]]\npath = \"/\"\ntry = [\"app:web\"]\nmatch = {{ methods = [\"GET\"] }}\n"
    );
    // The table of a site is open at the end of the file.
    let config =
        config.replace("[[site]]", "[[ignored]]").replace("[[site.route]]", "[[ignored.route]]");
    assert_eq!(lines(&config, &entry("/news", PageVerdict::Everybody)), Err(NoLines::Route));
}

#[test]
fn a_configuration_costs_no_more_than_its_bytes() {
    let mut table = kirin_doubling::Table::new();
    let config = |count: usize| "[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n".repeat(count);
    let known = entry("/x", PageVerdict::Everybody);
    table.check("configuration", 100, config, |config| lines(config, &known).is_ok());
    for piece in ["a", "/", "%41", "%", "%2f", "あ"] {
        let page =
            |count: usize| entry(&format!("/{}", piece.repeat(count)), PageVerdict::Everybody);
        table.check(&format!("path {piece}"), 300, page, |page| lines(CONFIG, page).is_ok());
    }
    table.finish();
}

#[test]
fn a_wildcard_in_front_does_not_hide_the_name_of_a_site() {
    let config = "[[site]]\nhosts = [\"*.a.test\", \"a.test\"]\n[[site.route]]\npath = \"/\"\n\
                  try = [\"app:web\"]\n";
    let mut entry = entry("/page", PageVerdict::Everybody);
    entry.route.site = "a.test".into();
    assert!(
        matches!(lines(config, &entry), Ok(ConfigLines::SiteRoute(name, _)) if name == "a.test")
    );
}

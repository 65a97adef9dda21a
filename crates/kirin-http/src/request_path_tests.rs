//! Tests of the paths of requests.

use proptest::prelude::*;

use super::*;

#[test]
fn routes_see_what_a_path_means() {
    for (raw, meant) in [
        ("/", Ok("/")),
        ("/a/b", Ok("/a/b")),
        ("/%61dmin", Ok("/admin")),
        ("/x/../admin/y", Ok("/admin/y")),
        ("//admin", Ok("/admin")),
        ("/./admin", Ok("/admin")),
        ("/a%2Fb", Ok("/a/b")),
        ("/%61dmin%2F%0a", Ok("/admin/\n")),
        ("/x%2f..%2fadmin", Ok("/admin")),
        ("/a/", Ok("/a/")),
        ("/a%20/", Ok("/a ")),
        ("/a%2F..%2F..", Err(BadPath::AboveRoot)),
        ("/..", Err(BadPath::AboveRoot)),
        ("/%", Err(BadPath::Encoding)),
        ("/%00", Err(BadPath::Nul)),
        ("*", Ok("*")),
    ] {
        let path = RequestPath::parse(raw);
        let normalized = path.map(|path| String::from_utf8_lossy(path.normalized()).into_owned());
        assert_eq!(normalized.as_deref().map_err(|bad| *bad), meant, "{raw}");
    }
}

#[test]
fn the_rest_of_a_path_is_kept_and_cannot_lead_elsewhere() {
    for (raw, prefix, rest) in [
        ("/old", "/old", ""),
        ("/old/", "/old", "/"),
        ("/old/a/b.html", "/old", "/a/b.html"),
        ("/", "", "/"),
        ("/a", "", "/a"),
        ("/old/a%20b/", "/old", "/a%20b/"),
        ("/old/caf%c3%a9", "/old", "/caf%C3%A9"),
        ("/%6fld/x", "/old", "/x"),
        ("/old//evil.example", "/old", "/evil.example"),
        ("//evil.example", "", "/evil.example"),
        ("///evil.example/..", "", "/"),
        ("/old/\\evil.example", "/old", "/%5Cevil.example"),
        ("/old/%5cevil.example", "/old", "/%5Cevil.example"),
        ("/old/./x", "/old", "/x"),
        ("/old/x/../../old/y", "/old", "/y"),
        ("/x/../old/y", "/old", "/y"),
        ("/old/a%2fb", "/old", "/a/b"),
        ("/old%2fb", "/old", "/b"),
        ("/old//a%2F%2Fb", "/old", "/a/b"),
        ("/old/%0d%0aSet-Cookie:x", "/old", "/%0D%0ASet-Cookie:x"),
        ("/old/d\u{e9}", "/old", "/d%C3%A9"),
        ("/old/a?b", "/old", "/a%3Fb"),
    ] {
        assert_eq!(RequestPath::parse(raw).unwrap().rest_below(prefix), rest, "{raw}");
    }
}

#[test]
fn an_ambiguous_path_is_resolved_for_applications() {
    // A mounted application gets the paths with empty segments resolved, too.
    for (raw, resolved, resolved_at_mount) in [
        ("/a/b", None, None),
        ("/", None, None),
        ("*", None, None),
        ("/a%20b%2Fd/", None, None),
        ("/a%20b//c%2Fd", None, Some("/a%20b/c/d")),
        ("/a//", None, Some("/a/")),
        ("/a%2F/b", None, Some("/a/b")),
        ("/a.b/...", None, None),
        ("/members/../x", Some("/x"), Some("/x")),
        ("/members%2F%2e%2E%2fx%20y/", Some("/x%20y/"), Some("/x%20y/")),
        ("/a/./b/..", Some("/a/"), Some("/a/")),
        ("/.", Some("/"), Some("/")),
        ("//", Some("/"), Some("/")),
        ("//x/members", Some("/x/members"), Some("/x/members")),
        ("/%2fx//y", Some("/x/y"), Some("/x/y")),
        ("///x", Some("/x"), Some("/x")),
    ] {
        let path = RequestPath::parse(raw).unwrap();
        assert_eq!(path.if_ambiguous().as_deref(), resolved, "{raw}");
        assert_eq!(path.if_resolved().as_deref(), resolved_at_mount, "{raw}");
    }
}

proptest! {
    #[test]
    fn the_path_of_an_application_is_below_the_route_of_the_request(raw in "/[a./%25fF2eE]{0,16}") {
        let Ok(path) = RequestPath::parse(&raw) else { return Ok(()) };
        let path_info = path.if_ambiguous().unwrap_or_else(|| raw.clone());
        prop_assert!(!path_info.starts_with("//"), "{}", raw);
        let mut path_info = decode_path(path_info.as_bytes()).unwrap().into_owned();
        // Slashes may be doubled.
        path_info.dedup_by(|a, b| *a == b'/' && *b == b'/');
        let trimmed = |path: &[u8]| path.strip_suffix(b"/").unwrap_or(path).to_vec();
        prop_assert_eq!(trimmed(&path_info), trimmed(path.normalized()));
    }

    #[test]
    fn no_rest_names_another_host_or_climbs(raw in "/(old)?[/\\\\.%25fao;]{0,12}") {
        let Ok(path) = RequestPath::parse(&raw) else { return Ok(()) };
        for prefix in ["", "/old"] {
            let below = path.normalized().strip_prefix(prefix.as_bytes());
            if !below.is_some_and(|rest| rest.is_empty() || rest[0] == b'/') {
                continue;
            }
            let rest = path.rest_below(prefix);
            prop_assert!(rest.is_empty() || (rest.starts_with('/') && !rest.starts_with("//")), "{} {}", raw, rest);
            prop_assert!(!rest.contains('\\'), "{} {}", raw, rest);
            prop_assert!(!format!("{rest}/").contains("/../"), "{} {}", raw, rest);
        }
    }
}

#[test]
fn another_server_sees_the_path_of_the_route() {
    let target = |sent: &str| {
        let (path, query) = match sent.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (sent, None),
        };
        let request = RequestHead {
            method: http::Method::GET,
            target: sent,
            path,
            query,
            version: crate::Version::Http11,
            host: "",
            fields: &[],
            body: crate::BodyLength::None,
            persistent: true,
            expects_continue: false,
        };
        forwarded_target(&request, &RequestPath::parse(path).unwrap()).into_owned()
    };
    for (sent, forwarded) in [
        ("/a%2f//b?c=../d", "/a%2f//b?c=../d"),
        ("/a/../b%20?c", "/b%20?c"),
        ("/a/..", "/"),
        ("//x/members?y", "/x/members?y"),
        ("*", "*"),
    ] {
        assert_eq!(target(sent), forwarded, "{sent}");
    }
}

#[test]
fn a_decoded_path_keeps_its_last_slash() {
    for (sent, decoded) in
        [("/", "/"), ("/a/", "/a/"), ("/a%20/", "/a /"), ("/a/.", "/a/"), ("/.", "/"), ("*", "/*")]
    {
        assert_eq!(RequestPath::parse(sent).unwrap().decoded(), decoded.as_bytes(), "{sent}");
    }
}

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
    for (raw, segments, rest) in [
        ("/old", 1, ""),
        ("/old/", 1, "/"),
        ("/old/a/b.html", 1, "/a/b.html"),
        ("/", 0, "/"),
        ("/a", 0, "/a"),
        ("/old/a%20b/", 1, "/a%20b/"),
        ("/old/caf%c3%a9", 1, "/caf%C3%A9"),
        ("/%6fld/x", 1, "/x"),
        ("/old//evil.example", 1, "/evil.example"),
        ("//evil.example", 0, "/evil.example"),
        ("///evil.example/..", 0, "/"),
        ("/old/\\evil.example", 1, "/%5Cevil.example"),
        ("/old/%5cevil.example", 1, "/%5Cevil.example"),
        ("/old/./x", 1, "/x"),
        ("/old/x/../../old/y", 1, "/y"),
        ("/x/../old/y", 1, "/y"),
        ("/old/a%2fb", 1, "/a/b"),
        ("/old%2fb", 1, "/b"),
        ("/old//a%2F%2Fb", 1, "/a/b"),
        ("/old/%0d%0aSet-Cookie:x", 1, "/%0D%0ASet-Cookie:x"),
        ("/old/d\u{e9}", 1, "/d%C3%A9"),
        ("/old/a?b", 1, "/a%3Fb"),
        ("/a/b%2fc/./d/", 2, "/c/d/"),
        ("/a/b", 2, ""),
        ("/a/b/", 2, "/"),
        ("*", 0, "*"),
    ] {
        assert_eq!(RequestPath::parse(raw).unwrap().rest_after(segments), rest, "{raw}");
    }
}

#[test]
fn a_path_with_dots_is_resolved_for_applications() {
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
        ("//", None, Some("/")),
        ("//x/members", None, Some("/x/members")),
        ("/%2fx//y", None, Some("/x/y")),
        ("///x", None, Some("/x")),
    ] {
        let path = RequestPath::parse(raw).unwrap();
        assert_eq!(path.without_dots().as_deref(), resolved, "{raw}");
        assert_eq!(path.if_resolved().as_deref(), resolved_at_mount, "{raw}");
    }
}

#[test]
fn segments_are_those_of_the_normalized_path() {
    for (sent, segments, is_directory) in [
        ("/", &[][..], true),
        ("/a", &["a"][..], false),
        ("/a/", &["a"][..], true),
        ("/a/bc/d", &["a", "bc", "d"][..], false),
        ("/x/..//a%2Fb%20/.", &["a", "b "][..], true),
        ("/.", &[][..], true),
        ("/a/..", &[][..], true),
    ] {
        let path = RequestPath::parse(sent).unwrap();
        let found: Vec<_> = (0..).map_while(|number| path.segment(number)).collect();
        let expected: Vec<_> = segments.iter().map(|segment| segment.as_bytes()).collect();
        assert_eq!(found, expected, "{sent}");
        assert_eq!(path.is_directory(), is_directory, "{sent}");
        for count in 0..=segments.len() {
            let first: String = segments[..count].iter().map(|one| format!("/{one}")).collect();
            assert_eq!(path.first_segments(count), first.as_bytes(), "{sent} {count}");
        }
    }
}

proptest! {
    #[test]
    fn the_path_of_an_application_is_below_the_route_of_the_request(raw in "/[a./%25fF2eE]{0,16}") {
        let Ok(path) = RequestPath::parse(&raw) else { return Ok(()) };
        let path_info = path.without_dots().unwrap_or_else(|| raw.clone());
        let mut path_info = decode_path(path_info.as_bytes()).unwrap().into_owned();
        // Slashes may be doubled.
        path_info.dedup_by(|a, b| *a == b'/' && *b == b'/');
        let trimmed = |path: &[u8]| path.strip_suffix(b"/").unwrap_or(path).to_vec();
        prop_assert_eq!(trimmed(&path_info), trimmed(path.normalized()));
    }

    #[test]
    fn no_rest_names_another_host_or_climbs(raw in "/(old)?[/\\\\.%25fao;]{0,12}") {
        let Ok(path) = RequestPath::parse(&raw) else { return Ok(()) };
        for segments in 0..4 {
            let rest = path.rest_after(segments);
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
        ("//x/members?y", "//x/members?y"),
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

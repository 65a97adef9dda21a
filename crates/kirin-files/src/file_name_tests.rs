//! Tests of the parsing of a request path.

use proptest::prelude::*;

use super::*;

fn parse(raw: &str) -> Result<(Vec<u8>, bool), NoFile> {
    FileName::parse(raw).map(|path| (path.name, path.directory))
}

#[test]
fn a_path_is_decoded_once_and_its_dots_and_slashes_resolved() {
    let cases: &[(&str, &[u8], bool)] = &[
        ("/", b"", true),
        ("//", b"", true),
        ("///", b"", true),
        ("/.", b"", true),
        ("/./", b"", true),
        ("/././.", b"", true),
        ("/a", b"a", false),
        ("/a/", b"a", true),
        ("/a//", b"a", true),
        ("/a/b", b"a/b", false),
        ("/a//b", b"a/b", false),
        ("//a///b//", b"a/b", true),
        ("/a/./b", b"a/b", false),
        ("/a/.", b"a", true),
        ("/a/./", b"a", true),
        ("/a/..", b"", true),
        ("/a/../", b"", true),
        ("/a/../b", b"b", false),
        ("/a/b/..", b"a", true),
        ("/a/b/../", b"a", true),
        ("/a/b/../c", b"a/c", false),
        ("/a/b/../../c", b"c", false),
        ("/a//../b", b"b", false),
        ("/a/.//../b", b"b", false),
        ("/aa/bb/../cc/../../d", b"d", false),
        ("/a/%2e%2e/b", b"b", false),
        ("/a/%2E%2E/b", b"b", false),
        ("/a/.%2e/b", b"b", false),
        ("/a/%2e./b", b"b", false),
        ("/a/%2e/b", b"a/b", false),
        ("/a/%2e", b"a", true),
        ("/%61%62", b"ab", false),
        ("/a%2eb", b"a.b", false),
        ("/a%20b", b"a b", false),
        ("/a+b", b"a+b", false),
        ("/a%2bb", b"a+b", false),
        ("/a;b=c", b"a;b=c", false),
        ("/a%3fb", b"a?b", false),
        ("/a%23b", b"a#b", false),
        ("/a%25b", b"a%b", false),
        // Decoded once: what comes out is a name, not another encoding.
        ("/a/%252e%252e/b", b"a/%2e%2e/b", false),
        ("/%252fetc", b"%2fetc", false),
        ("/a%255cb", b"a%5cb", false),
        ("/%2500", b"%00", false),
        // A backslash is a character like others.
        ("/a\\b", b"a\\b", false),
        ("/a%5cb", b"a\\b", false),
        ("/..\\..\\etc", b"..\\..\\etc", false),
        ("/..%5c..%5cetc", b"..\\..\\etc", false),
        ("/c:/x", b"c:/x", false),
        // Three dots and more are names.
        ("/.../a", b".../a", false),
        ("/..a", b"..a", false),
        ("/a..", b"a..", false),
        ("/a/..b/c", b"a/..b/c", false),
        // Bytes, whether they are UTF-8 or not; an overlong form of `.` or `/` is neither.
        ("/%c3%a9", b"\xc3\xa9", false),
        ("/\u{e9}", b"\xc3\xa9", false),
        ("/%ff", b"\xff", false),
        ("/%c0%ae%c0%ae/a", b"\xc0\xae\xc0\xae/a", false),
        ("/a/%c0%ae%c0%ae/b", b"a/\xc0\xae\xc0\xae/b", false),
        ("/..%c0%afetc", b"..\xc0\xafetc", false),
        ("/%e0%80%af", b"\xe0\x80\xaf", false),
    ];
    for (raw, name, directory) in cases {
        assert_eq!(parse(raw), Ok((name.to_vec(), *directory)), "{raw}");
    }
}

#[test]
fn a_path_that_names_no_file_is_refused_or_passes() {
    for (raw, expected) in [
        ("/..", NoFile::BadPath(BadPath::AboveRoot)),
        ("/../", NoFile::BadPath(BadPath::AboveRoot)),
        ("/../etc/passwd", NoFile::BadPath(BadPath::AboveRoot)),
        ("/a/../..", NoFile::BadPath(BadPath::AboveRoot)),
        ("/a/../../b", NoFile::BadPath(BadPath::AboveRoot)),
        // Above the root is above it, even if the way leads back.
        ("/../public/a", NoFile::BadPath(BadPath::AboveRoot)),
        ("//../a", NoFile::BadPath(BadPath::AboveRoot)),
        ("/./../a", NoFile::BadPath(BadPath::AboveRoot)),
        ("/%2e%2e/a", NoFile::BadPath(BadPath::AboveRoot)),
        ("/.%2E/a", NoFile::BadPath(BadPath::AboveRoot)),
        ("/a/%2e%2e/%2e%2e/b", NoFile::BadPath(BadPath::AboveRoot)),
        ("/%", NoFile::BadPath(BadPath::Encoding)),
        ("/%4", NoFile::BadPath(BadPath::Encoding)),
        ("/%zz", NoFile::BadPath(BadPath::Encoding)),
        ("/%4/1", NoFile::BadPath(BadPath::Encoding)),
        ("/%+1", NoFile::BadPath(BadPath::Encoding)),
        ("/a%%41", NoFile::BadPath(BadPath::Encoding)),
        ("/%u0041", NoFile::BadPath(BadPath::Encoding)),
        ("/%00", NoFile::BadPath(BadPath::Nul)),
        ("/a%00.html", NoFile::BadPath(BadPath::Nul)),
        ("/a/%00/../b", NoFile::BadPath(BadPath::Nul)),
        ("/a%2fb", NoFile::Unnameable),
        ("/%2f", NoFile::Unnameable),
        ("/a/%2F/b", NoFile::Unnameable),
        ("/..%2f..%2fetc", NoFile::Unnameable),
        ("/%2e%2e%2f%2e%2e", NoFile::Unnameable),
        ("/a%2f..%2f..", NoFile::Unnameable),
        ("/a%0ab", NoFile::Unnameable),
        ("/a%0d%0aSet-Cookie:%20x", NoFile::Unnameable),
        ("/%01", NoFile::Unnameable),
        ("/%1f", NoFile::Unnameable),
        ("/%7f", NoFile::Unnameable),
        ("/%0a/../a", NoFile::Unnameable),
        ("/%0a/../../a", NoFile::BadPath(BadPath::AboveRoot)),
        ("*", NoFile::Unnameable),
        ("", NoFile::Unnameable),
        ("a", NoFile::Unnameable),
        ("../a", NoFile::Unnameable),
    ] {
        assert_eq!(parse(raw), Err(expected), "{raw}");
    }
}

#[test]
fn names_with_a_leading_dot_are_hidden_except_well_known() {
    for (raw, hidden) in [
        ("/", false),
        ("/a.b", false),
        ("/.git/config", true),
        ("/.env", true),
        ("/%2eenv", true),
        ("/a/.htpasswd", true),
        ("/a/.git/", true),
        ("/.../a", true),
        ("/..a", true),
        ("/.well-known/security.txt", false),
        ("/.well-known/acme-challenge/x", false),
        ("/.well-known", false),
        ("/.well-known/.env", true),
        ("/.well-known/../.env", true),
        ("/.well-known-not", true),
        ("/a/.well-known/x", true),
        ("/.git/../a", false),
    ] {
        assert_eq!(FileName::parse(raw).unwrap().is_hidden(), hidden, "{raw}");
    }
}

/// Generates paths from the pieces that attacks are made of.
fn hostile_path() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "/", "//", ".", "..", "%2e", "%2E", "%2f", "%5c", "\\", "%00", "%", "%25", "%c0%ae",
        "%c0%af", "a", "b", "%61", "\u{e9}", "%ff", "%0a", ";", "...",
    ]);
    prop::collection::vec(piece, 0..24).prop_map(|pieces| format!("/{}", pieces.concat()))
}

proptest! {
    #[test]
    fn a_name_never_has_a_segment_that_leads_elsewhere(raw in prop_oneof![hostile_path(), "/.*"]) {
        if let Ok(path) = FileName::parse(&raw) {
            prop_assert!(!path.name.contains(&0));
            prop_assert!(path.name.is_empty() || !path.name.split(|b| *b == b'/').any(|segment| {
                matches!(segment, b"" | b"." | b"..")
            }), "{:?}", path);
            prop_assert!(path.directory || !path.name.is_empty());
        }
    }

    #[test]
    fn the_canonical_path_means_the_same_and_stays_on_this_host(raw in prop_oneof![hostile_path(), "/.*"]) {
        if let Ok(path) = FileName::parse(&raw) {
            let uri = path.to_directory_uri();
            prop_assert!(uri.starts_with('/') && !uri.starts_with("//") && !uri.contains('\\'), "{uri}");
            prop_assert!(uri.bytes().all(|b| b.is_ascii_graphic()), "{uri}");
            let again = FileName::parse(&uri).unwrap();
            prop_assert_eq!(again.name, path.name);
            prop_assert!(again.directory);
        }
    }
}

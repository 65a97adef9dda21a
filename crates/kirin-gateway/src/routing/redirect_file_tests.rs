//! Tests of the file of redirects.

use super::*;

#[test]
fn comments_empty_lines_and_the_habits_of_spreadsheets_are_accepted() {
    let text = "\u{feff}# FROM\tTO\r\n\r\n/a\t/b\r\n \t \n /c \t /d \t 302 \n/e\t/f\t\n/g\t/h";
    assert_eq!(parse("t", text.as_bytes()).unwrap().len(), 4);
    assert!(parse("t", b"").unwrap().is_empty());
}

#[test]
fn an_error_has_the_line_what_was_found_and_what_is_allowed() {
    for (line, expected) in [
        ("/a /b", "no tab"),
        ("/a\t/b\t301\tx", "4 fields"),
        ("\t/b", "FROM ``"),
        ("a\t/b", "FROM `a`: it must be a path of this site"),
        ("https://old.test/a\t/b", "it must be a path of this site"),
        ("/a#b\t/c", "it must be a path of this site"),
        ("/a*\t/c", "`*` may only be the last segment"),
        ("/a/*/b\t/c", "`*` may only be the last segment"),
        ("/a/*?x=y\t/c", "has no query"),
        ("/a?x=\u{e9}\t/c", "percent-encoded"),
        ("/a%zz\t/c", "the path has a malformed percent-encoding"),
        ("/a%00\t/c", "the path has a NUL"),
        ("/../a\t/c", "the path climbs above the root"),
        ("/a\t", "TO ``: it must be `/PATH`"),
        ("/a\tb", "TO `b`: it must be `/PATH`"),
        ("/a\t//evil.test", "it must be `/PATH`"),
        ("/a\thttps:///x", "it must be `/PATH`"),
        ("/a\tjavascript:alert(1)", "it must be `/PATH`"),
        ("/a\thttps://user@host/", "it must be `/PATH`"),
        ("/a\t/b c", "percent-encoded"),
        ("/a\t/caf\u{e9}", "percent-encoded"),
        ("/a\t/\\b", "percent-encoded"),
        ("/a\t/{id}", "percent-encoded"),
        ("/a\t/b?x= y", "percent-encoded"),
        ("/a\t/b#c#d", "percent-encoded"),
        ("/a\t/b/*", "only if FROM does"),
        ("/a/*\t/b?x/*", "no `/*` behind it"),
        ("/a\t/b\t200", "status `200`: allowed are 301, 302, 303, 307 and 308"),
        ("/a\t/b\tmoved", "status `moved`"),
    ] {
        let errors = parse("t", format!("/first\t/x\n{line}\n").as_bytes()).unwrap_err();
        let [error] = errors.as_slice() else { panic!("{line}: {errors:?}") };
        assert_eq!((error.number, &*error.line), (2, line.trim_end()), "{line}");
        assert!(error.message.contains(expected), "{line}: {}", error.message);
    }
    let errors = parse("t", b"/a\t/b\n\xff\t/b\nx\n").unwrap_err();
    assert_eq!(errors.iter().map(|error| error.number).collect::<Vec<_>>(), [2, 3]);
}

#[test]
fn two_lines_for_the_same_requests_are_an_error_with_both() {
    for (first, second) in [
        ("/a", "/a"),
        ("/a", "/%61"),
        ("/a", "/x/../a"),
        ("/a/*", "/a//*"),
        ("/*", "/*"),
        ("/a?b", "/a?b"),
        ("/caf\u{e9}", "/caf%C3%A9"),
    ] {
        let text = format!("{first}\t/x\n# between\n{second}\t/y\n");
        let errors = parse("t", text.as_bytes()).unwrap_err();
        assert_eq!(errors[0].number, 3, "{second}");
        assert!(errors[0].message.contains("line 1 already"), "{}", errors[0].message);
    }
    for (first, second) in
        [("/a", "/a/"), ("/a", "/a/*"), ("/a", "/a?b"), ("/a?b", "/a?c"), ("/", "/*")]
    {
        let text = format!("{first}\t/x\n{second}\t/y\n");
        assert!(parse("t", text.as_bytes()).is_ok(), "{first} {second}");
    }
}

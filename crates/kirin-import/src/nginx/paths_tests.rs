//! Regular expressions, and the paths that stand for them.

use super::*;

fn shown(expression: &str, ignores_case: bool) -> String {
    let Some(found) = paths(expression, ignores_case) else { return "none".into() };
    let paths: Vec<_> = found.forms.iter().filter_map(Form::path).collect();
    let broader = if found.is_broader { " (broader)" } else { "" };
    let missing = if found.missing.is_empty() { "" } else { " (more)" };
    paths.join(" ") + broader + missing
}

#[test]
fn expressions_become_paths() {
    for (expression, expected) in [
        (r"\.pdf$", "*.pdf"),
        (r"\.(jpg|png)$", "*.jpg *.png"),
        (r"\.(?:jpe?g|gif)$", "*.jpeg *.jpg *.gif"),
        (r"[^/]\.php(/|$)", "none"),
        (r"^/users/[^/]+/avatar(/|$)", "/users/{s1}/avatar"),
        (r"^/users/(?<id>[^/]+)/photo", "/users/{id}/photo (more)"),
        (r"^/users/[^/]+", "/users/{s1}"),
        (r"^/users/(\d+)$", "= /users/{s1} (broader)"),
        (r"^/(?:build|tests|config)(?:$|/)", "/build /tests /config"),
        (r"^/old/(.*)$", "/old"),
        (r"^/old(/.*)?$", "/old"),
        (r"^/root/?(.*)$", "/root (more)"),
        (r"^/docs/.*\.pdf$", "/docs/*.pdf"),
        (r"^/a\.b$", "= /a.b"),
        (r"^/a/$", "= /a/"),
        (r"^/$", "= /"),
        (r"^", "/"),
        (r"^(.*)$", "/"),
        (r"^/(.*)$", "/"),
        (
            r"/uploads/.*\.php$",
            "/uploads/*.php /{s1}/uploads/*.php /{s1}/{s2}/uploads/*.php (more)",
        ),
        (r"^/(index|a/b).php", "/index.php /a/b.php (more)"),
        (r"^.+\.php$", "*.php"),
        (r"^.*/\.x$", "= /.x = /{s1}/.x = /{s1}/{s2}/.x (more)"),
        (r"(?!a)b", "none"),
        (r"a{2}", "none"),
        (r"(((", "none"),
        (r"^/x[", "none"),
    ] {
        assert_eq!(shown(expression, false), expected, "{expression}");
    }
    assert_eq!(
        shown(r"(?:#.*#|\.(?:in[ci]|sql)|~)$", false),
        "*.inc *.ini *.sql *~ (broader) (more)"
    );
    assert_eq!(shown(r"\.sql$", true), "*.sql *.SQL (more)");
}

#[test]
fn groups_stand_for_names_and_for_the_rest() {
    let found = paths(r"^/users/([^/]+)(/.*)?$", false).expect("paths");
    let form = found.forms.first().expect("a form");
    assert_eq!(form.groups.get("1").map(String::as_str), Some("{s1}"));
    assert_eq!(form.rest, Some(("2".into(), true)));
    let found = paths(r"^/old/(?<rest>.*)$", false).expect("paths");
    assert_eq!(found.forms[0].rest, Some(("rest".into(), false)));
}

//! Fields that are kept with a response (section 3.1).

use super::{Case, Reused, case, run};

fn second_has(
    section: &'static str,
    said: &str,
    name: &'static str,
    value: Option<&'static str>,
) -> Case {
    case(section, said, &[&format!("200\nCache-Control: max-age=3600\n{said}")])
        .get("", Reused)
        .has(name, value)
}

#[test]
fn all_fields_are_kept_except_those_of_the_connection() {
    let mut cases = Vec::new();
    for name in [
        "Clear-Site-Data",
        "Content-Disposition",
        "Content-Language",
        "Content-Location",
        "Content-Security-Policy",
        "Content-Type",
        "ETag",
        "Last-Modified",
        "Link",
        "Pragma",
        "Server",
        "Vary",
        "WWW-Authenticate",
        "X-Frame-Options",
        "X-Anything",
    ] {
        let value = match name {
            "ETag" => "\"a\"",
            "Last-Modified" => "Sun, 06 Nov 1994 08:49:37 GMT",
            _ => "x",
        };
        cases.push(second_has("3.1", &format!("{name}: {value}"), name, Some(value)));
    }
    for line in [
        "Connection: x-a\nX-A: b",
        "Proxy-Authenticate: Basic",
        "Proxy-Authentication-Info: x",
        "Proxy-Connection: close",
        "Keep-Alive: timeout=9",
        "Upgrade: x",
        "TE: x",
    ] {
        let name = line.rsplit('\n').next().unwrap().split(':').next().unwrap().to_owned();
        cases.push(second_has("3.1", line, name.leak(), None));
    }
    run(cases);
}

#[test]
fn fields_that_a_directive_names_are_not_kept() {
    run(vec![
        second_has("5.2.2.4", "Cache-Control: no-cache=\"x-a\"\nX-A: b", "x-a", None),
        second_has("5.2.2.4", "Cache-Control: no-cache=x-a\nX-A: b", "x-a", None),
        second_has("5.2.2.4", "Cache-Control: no-cache=\"x-b, X-A\"\nx-a: b\nX-B: c", "x-b", None),
        second_has("5.2.2.7", "Cache-Control: private=\"x-a\"\nX-A: b", "x-a", None),
        second_has("5.2.2.7", "Cache-Control: private=\"x-b\"\nX-A: b", "x-a", Some("b")),
        second_has(
            "5.2.2.7",
            "Cache-Control: private=\"Set-Cookie\"\nSet-Cookie: a=b",
            "set-cookie",
            None,
        ),
    ]);
}

#[test]
fn the_date_is_that_of_the_response() {
    run(vec![
        second_has(
            "5.1",
            "Date: Sun, 06 Nov 2050 08:49:37 GMT",
            "date",
            Some("Sun, 06 Nov 2050 08:49:37 GMT"),
        ),
        second_has(
            "4.2.1",
            "Expires: Sun, 06 Nov 2050 08:49:37 GMT",
            "expires",
            Some("Sun, 06 Nov 2050 08:49:37 GMT"),
        ),
    ]);
}

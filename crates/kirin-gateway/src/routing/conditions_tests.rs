//! Tests of the conditions of routes.

use super::*;
use crate::request::test_requests::with_request;

fn methods(names: &[&str]) -> Condition {
    Condition::methods(names.iter().copied()).unwrap()
}

fn field(name: &str, wanted: &str) -> Condition {
    Condition::field(name, Wanted::parse(wanted).unwrap()).unwrap()
}

fn argument(name: &str, wanted: &str) -> Condition {
    Condition::argument(name, Wanted::parse(wanted).unwrap())
}

fn clients(networks: &[&str]) -> Condition {
    let networks = networks.iter().map(|network| network.parse().unwrap());
    Condition::clients(PeerSet::new(networks, false)).unwrap()
}

fn cookie(name: &str, wanted: &str) -> Condition {
    Condition::cookie(name, Wanted::parse(wanted).unwrap()).unwrap()
}

/// Asserts whether `condition` holds for each head.
fn check(condition: &Condition, heads: &[(&str, bool)]) {
    for (head, holds) in heads {
        with_request(head, |request| {
            let client = RequestClient::of(request.origin);
            assert_eq!(condition.holds(request.head, client), *holds, "{condition}: {head}");
        });
    }
}

#[test]
fn head_goes_with_get() {
    let [get, head, post] =
        ["GET", "HEAD", "POST"].map(|method| format!("{method} / HTTP/1.1\r\nHost: a"));
    for (methods, expected) in [
        (methods(&["GET"]), [true, true, false]),
        (methods(&["HEAD"]), [false, true, false]),
        (methods(&["PUT", "POST"]), [false, false, true]),
        (methods(&["GET", "POST"]), [true, true, true]),
    ] {
        check(&methods, &[(&get, expected[0]), (&head, expected[1]), (&post, expected[2])]);
    }
}

#[test]
fn a_value_is_compared_completely_or_with_a_wildcard_at_its_ends() {
    for (wanted, yes, no) in [
        ("*", &["", "x", "*"][..], &[][..]),
        ("1", &["1"], &["", "11", "1 2", "*"]),
        ("", &[""], &["1"]),
        ("a*", &["a", "ab"], &["ba", "A"]),
        ("*a", &["a", "ba"], &["ab"]),
        ("*json*", &["json", "application/json;q=1"], &["js on", "JSON"]),
        ("a b", &["a b"], &["a"]),
    ] {
        let parsed = Wanted::parse(wanted).unwrap();
        for (values, expected) in [(yes, true), (no, false)] {
            for value in values {
                assert_eq!(parsed.matches(value.as_bytes()), expected, "{wanted} {value}");
            }
        }
    }
    for wanted in ["**", "***", "a*b", "*a*b*", "a**"] {
        assert!(Wanted::parse(wanted).unwrap_err().contains("alone"), "{wanted}");
    }
}

#[test]
fn any_line_of_a_field_may_meet_the_condition() {
    let (one, two) = ("GET / HTTP/1.1\r\nHost: a\r\n", "x-BETA: 2\r\nX-Beta: 1");
    let [none, one, both] =
        [format!("{one}X-Betas: 1"), format!("{one}X-beta: 2"), format!("{one}{two}")];
    check(&field("X-Beta", "1"), &[(&none, false), (&one, false), (&both, true)]);
    check(&field("x-beta", "*"), &[(&none, false), (&one, true), (&both, true)]);
    let absent = Condition::field("X-Beta", Wanted::Absent).unwrap();
    check(&absent, &[(&none, true), (&one, false), (&both, false)]);
}

#[test]
fn arguments_of_a_query_are_decoded_as_a_form_is() {
    let head = |query: &str| format!("GET /{query} HTTP/1.1\r\nHost: a");
    for (name, wanted, yes, no) in [
        (
            "preview",
            "*",
            &["?preview", "?a&preview=", "?preview=1"][..],
            &["", "?", "?Preview"][..],
        ),
        ("q", "a b", &["?q=a+b", "?q=a%20b", "?%71=a%20%62", "?q=x&q=a+b"], &["?q=a", "?q=a%2Bb"]),
        ("a b", "", &["?a+b", "?a%20b="], &["?a b=1", "?a"]),
        ("q", "*%*", &["?q=%25", "?q=5%", "?q=%zz"], &["?q=%20"]),
        ("q", "\u{e9}", &["?q=%c3%A9"], &["?q=%e9"]),
        ("q", "1", &["?q=1&q=2"], &["?x;q=1", "?q=1;x"]),
    ] {
        let condition = argument(name, wanted);
        for (queries, expected) in [(yes, true), (no, false)] {
            for query in queries.iter().filter(|query| !query.contains(' ')) {
                check(&condition, &[(&head(query), expected)]);
            }
        }
    }
}

#[test]
fn clients_are_networks_or_all_on_unix_sockets() {
    // The client of these requests is 192.0.2.7.
    let head = "GET / HTTP/1.1\r\nHost: a";
    check(&clients(&["192.0.2.0/24"]), &[(head, true)]);
    check(&clients(&["10.0.0.0/8", "192.0.2.7/32"]), &[(head, true)]);
    check(&clients(&["192.0.3.0/24", "::/0"]), &[(head, false)]);
    let unix = PeerSet::new([], true);
    check(&Condition::clients(unix).unwrap(), &[(head, false)]);
}

#[test]
fn all_conditions_must_hold_and_the_others_are_explained() {
    let conditions = RouteConditions::new(vec![
        methods(&["POST", "GET"]),
        field("X-Beta", "1"),
        field("Accept", "*json*"),
        argument("preview", "*"),
        clients(&["10.0.0.0/8", "192.0.2.8/32"]),
        cookie("beta", "1"),
        Condition::Scheme { is_https: true },
        Condition::Not(Box::new(field("Accept", "*json*"))),
    ]);
    let head =
        "DELETE /?previews HTTP/1.1\r\nHost: a\r\nX-Beta: 2\r\nx-beta: 3\r\nAccept: text/json";
    with_request(head, |request| {
        let client = RequestClient::of(request.origin);
        let unmet = conditions.unmet(request.head, client);
        let differences: Vec<_> =
            unmet.map(|condition| condition.difference(request.head, client)).collect();
        assert_eq!(
            differences,
            [
                "client is 192.0.2.7, wanted client `10.0.0.0/8` or `192.0.2.8/32`",
                "cookie `beta` is missing, wanted `1`",
                "header `x-beta` is `2` and `3`, wanted `1`",
                "method is `DELETE`, wanted method `GET` or `POST`",
                "header accept = `*json*` holds, wanted not",
                "query argument `preview` is missing, wanted `*`",
                "scheme is `http`, wanted scheme `https`",
            ]
        );
        assert!(!conditions.hold(request.head, client));
        assert!(RouteConditions::default().hold(request.head, client));
    });
}

#[test]
fn equal_conditions_are_found_in_any_order() {
    let one = RouteConditions::new(vec![field("A", "1"), methods(&["GET", "POST", "GET"])]);
    let other = RouteConditions::new(vec![methods(&["POST", "GET"]), field("a", "1")]);
    assert_eq!(one, other);
    assert_ne!(one, RouteConditions::new(vec![field("A", "1")]));
    assert_ne!(
        RouteConditions::new(vec![field("A", "1*")]),
        RouteConditions::new(vec![field("A", "1")])
    );
}

#[test]
fn a_condition_that_never_holds_is_refused() {
    for (methods, expected) in [
        (&[][..], "empty list"),
        (&["get"], "write `GET`"),
        (&["GET", "TRACE"], "reaches no route"),
        (&["CONNECT"], "reaches no route"),
        (&["G T"], "not a method"),
        (&[""], "not a method"),
    ] {
        let error = Condition::methods(methods.iter().copied()).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    for (name, wanted, expected) in [
        ("", "1", "name of a field"),
        ("A b", "1", "name of a field"),
        ("HOST", "a", "[[site]]"),
        ("A", "a\r\nb", "control character"),
    ] {
        let error = Condition::field(name, Wanted::parse(wanted).unwrap()).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
    assert!(Condition::clients(PeerSet::default()).unwrap_err().contains("empty list"));
}

#[test]
fn cookies_of_all_lines_count_and_their_names_differ_by_case() {
    let one = "GET / HTTP/1.1\r\nHost: a\r\nCookie: a=1; beta=x; beta=2\r\nCookie: c=3";
    let none = "GET / HTTP/1.1\r\nHost: a\r\nX-Cookie: beta=2\r\nCookie: xbeta=2; Beta=2; beta";
    for (wanted, expected) in [("2", [true, false]), ("*", [true, false]), ("x", [true, false])] {
        check(&cookie("beta", wanted), &[(one, expected[0]), (none, expected[1])]);
    }
    check(&cookie("c", "3"), &[(one, true), (none, false)]);
    let absent = Condition::Cookie { name: "beta".into(), wanted: Wanted::Absent };
    check(&absent, &[(one, false), (none, true)]);
    assert!(Condition::cookie("a b", Wanted::Present).is_err());
}

#[test]
fn not_turns_a_condition_round() {
    let get = "GET / HTTP/1.1\r\nHost: a\r\nX-Beta: 1";
    let post = "POST / HTTP/1.1\r\nHost: a";
    for condition in [field("X-Beta", "1"), methods(&["GET"]), Condition::Scheme { is_https: true }]
    {
        for head in [get, post] {
            with_request(head, |request| {
                let client = RequestClient::of(request.origin);
                let turned = Condition::Not(Box::new(condition.clone()));
                assert_ne!(
                    condition.holds(request.head, client),
                    turned.holds(request.head, client),
                    "{turned}: {head}"
                );
            });
        }
    }
}

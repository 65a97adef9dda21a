//! Tests of the rules of a route.

use std::net::IpAddr;

use kirin_http::{Peer, PeerSet};

use crate::check::tests::{LISTENER, check_text};

#[test]
fn errors_in_rules_and_proxies_name_line_value_and_what_is_allowed() {
    let route = "[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n";
    let redirect =
        |path: &str, to: &str| format!("[[route]]\npath = \"{path}\"\nredirect = \"{to}\"\n");
    for (text, expected) in [
        (
            &format!("{LISTENER}trusted = [\"10.0.0.1/8\"]\n{route}"),
            vec!["kirin.toml:3:12", "address bits behind its prefix; the network is 10.0.0.0/8"],
        ),
        (
            &format!("{LISTENER}trusted = [\"proxy.example\"]\n{route}"),
            vec!["kirin.toml:3:12", "`proxy.example` is not an address", "unix:"],
        ),
        (
            &format!("{LISTENER}trusted = [\"::ffff:10.0.0.0/104\"]\n{route}"),
            vec!["kirin.toml:3:12", "as an IPv4 network"],
        ),
        (
            &format!("{LISTENER}proxy_protocol = true\n{route}"),
            vec!["kirin.toml:2:11", "need `trusted`"],
        ),
        (
            &format!("{LISTENER}forwarded = \"real_ip\"\n{route}"),
            vec!["kirin.toml:3:13", "`forwarded` is `real_ip`: allowed are"],
        ),
        (
            &format!("{LISTENER}{route}headers = {{ \"Content-Length\" = \"1\" }}\n"),
            vec!["kirin.toml:6:32", "`Content-Length` is Kirin's own"],
        ),
        (
            &format!("{LISTENER}{route}headers = {{ A = \"x\\r\\ny\" }}\n"),
            vec!["kirin.toml:6:17", "control character"],
        ),
        (
            &format!("{LISTENER}{route}redirect = \"/x\"\n"),
            vec!["kirin.toml:5:8", "either `try` or `redirect`"],
        ),
        (
            &format!("{LISTENER}{route}[[route]]\npath = \"/old\"\nredirect = \"//x\"\n"),
            vec!["kirin.toml:8:12", "redirect `//x`", "https://HOST"],
        ),
        (
            &format!(
                "{LISTENER}{route}[[route]]\npath = \"/old\"\nredirect = \"/x\"\nredirect_status = 300\n"
            ),
            vec!["kirin.toml:9:19", "301, 302"],
        ),
        (
            &format!("{LISTENER}{route}[[route]]\npath = \"/old\"\nredirect = \"/old/new\"\n"),
            vec!["kirin.toml:8:12", "leads back to its own route `/old`"],
        ),
        (
            &format!("{LISTENER}{route}{}{}", redirect("/a", "/b"), redirect("/b", "/a")),
            vec!["kirin.toml:8:12", "redirects in a circle: /a → /b → /a"],
        ),
        (
            &format!("{LISTENER}{route}{}{}", redirect("/a/{id}", "/b/{id}"), redirect("/b", "/a")),
            vec!["in a circle: /a/id → /b/id → /a/id"],
        ),
        (
            &format!("{LISTENER}{route}rewrite = \"/../x\"\n"),
            vec!["kirin.toml:6:11", "rewrite `/../x`", "begin with `/`"],
        ),
        (
            &format!("{LISTENER}{route}error_pages = {{ 200 = \"/x\" }}\n"),
            vec!["kirin.toml:6:23", "`200` is no error"],
        ),
        (
            &format!(
                "{LISTENER}[[route]]\npath = \"/a\"\ntry = [\"files:public\"]\nerror_pages = {{ 5xx = \"/b/x\" }}\n"
            ),
            vec!["kirin.toml:6:23", "error page `/b/x`: no route without `match` has it"],
        ),
        (
            &format!("{LISTENER}{route}basic_auth = \"gone\"\n"),
            vec!["kirin.toml:6:14", "`basic_auth`", "gone: cannot be read"],
        ),
        (
            &format!("{LISTENER}{route}basic_auth = \"app.psgi\"\n"),
            vec!["kirin.toml:6:14", "app.psgi: line 1 is not `NAME:HASH`"],
        ),
        (
            &format!("{LISTENER}[[route]]\npath = \"/\"\ntry = [\"store\"]\nlisting = true\n"),
            vec!["kirin.toml:4:8", "`listing` of route `/`", "no files:DIR"],
        ),
        (
            &format!("{LISTENER}{route}deny = 401\n"),
            vec!["kirin.toml:6:8", "`deny` is 401: allowed are 403 and 404"],
        ),
        (
            &format!("{LISTENER}{route}deny = true\n"),
            vec!["kirin.toml:6:8", "`deny` is true: allowed is 403 or 404"],
        ),
        (
            &format!("{LISTENER}{route}deny = \"404\"\n"),
            vec!["kirin.toml:6:8", "`deny` is \"404\": allowed is 403 or 404"],
        ),
        (
            &format!("{LISTENER}{route}allow = []\n"),
            vec!["kirin.toml:6:9", "`allow` names nobody", "`deny = 403`"],
        ),
        (
            &format!("{LISTENER}{route}allow = [\"::1\", \"10.0.0.1/8\"]\n"),
            vec!["kirin.toml:6:17", "`allow`: `10.0.0.1/8`", "the network is 10.0.0.0/8"],
        ),
        (
            &format!("{LISTENER}{route}allow = [\"all\"]\n"),
            vec!["kirin.toml:6:10", "`allow`: `all` is not an address", "unix:"],
        ),
        (
            &format!("{LISTENER}{route}maintenance = {{ allow = [\"office\"] }}\n"),
            vec!["kirin.toml:6:26", "`maintenance.allow`: `office` is not an address"],
        ),
        (
            &format!("{LISTENER}{route}maintenance = \"/sorry.html\"\n"),
            vec!["kirin.toml:6:15", "true, false or a table such as { page ="],
        ),
        (
            &format!("{LISTENER}{route}maintenance = {{ pages = \"/x\" }}\n"),
            vec!["kirin.toml:6:17", "unknown key `pages`", "did you mean `page`"],
        ),
        (
            &format!("{LISTENER}{route}maintenance = {{ page = \"x\" }}\n"),
            vec!["kirin.toml:6:24", "maintenance page `x`: it must be a path"],
        ),
        (
            &format!(
                "{LISTENER}[[route]]\npath = \"/a\"\ntry = [\"files:public\"]\nmaintenance = {{ page = \"/b/x\" }}\n"
            ),
            vec!["kirin.toml:6:24", "maintenance page `/b/x`: no route without `match` has it"],
        ),
        (
            &format!("{LISTENER}{route}[[route]]\npath = \"/a\"\ndeny = 403\nallow = [\"::1\"]\n"),
            vec!["kirin.toml:7:8", "`try` of route `/a` is empty", "a `deny`"],
        ),
        (
            &format!("{LISTENER}{route}header = {{}}\n"),
            vec!["kirin.toml:6:1", "unknown key `header`", "`headers`"],
        ),
    ] {
        let error = check_text(text).expect_err(text);
        for part in expected {
            assert!(error.contains(part), "{text}\ngave: {error}\nwithout: {part}");
        }
    }
}

#[test]
fn a_route_with_rules_is_understood() {
    let site = check_text(&format!(
        "{LISTENER}trusted = [\"10.0.0.0/8\", \"::1\", \"unix:\"]\nforwarded = \"forwarded\"\nproxy_protocol = true\n\
         [[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\nlisting = true\nrewrite = \"/x\"\n\
         headers = {{ A = \"b\" }}\nerror_pages = {{ 404 = \"/404.html\", 5xx = \"/5xx.html\" }}\n\
         [[route]]\npath = \"/old\"\nredirect = \"/new\"\nredirect_status = 301\n"
    ))
    .unwrap();
    let forwarding = site.listeners[0].forwarding.as_ref().unwrap();
    let networks = ["10.0.0.0/8", "::1/128"].map(|network| network.parse().unwrap());
    assert_eq!(forwarding.trusted, PeerSet::new(networks, true));
    assert!(site.listeners[0].proxy_protocol);
    assert!(
        site.gateway.sites[0].routes[1].rules.redirect.is_some()
            && site.gateway.sites[0].routes[1].places.is_empty()
    );
    let rules = &site.gateway.sites[0].routes[0].rules;
    assert!(
        site.gateway.sites[0].routes[0].listing
            && rules.rewrite.is_some()
            && rules.error_pages.paths().count() == 2
    );
    let plain =
        check_text(&format!("{LISTENER}[[route]]\npath = \"/\"\ntry = [\"store\"]\n")).unwrap();
    assert!(
        plain.gateway.sites[0].routes[0].rules.is_empty()
            && plain.listeners[0].forwarding.is_none()
    );
}

#[test]
fn the_clients_of_a_route_are_those_that_its_keys_name() {
    let check = |keys: &str| {
        let route = format!("[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n{keys}\n");
        let site = check_text(&format!("{LISTENER}{route}")).expect(keys);
        let access = &site.gateway.sites[0].routes[0].rules.access;
        let answer = |address: &str| {
            let peer = match address.parse::<IpAddr>() {
                Ok(ip) => Peer::Tcp((ip, 1).into()),
                Err(_) => Peer::Unix,
            };
            access.refuse(&peer).map_or(200, |refusal| refusal.response.status.as_u16())
        };
        ["10.1.1.1", "2001:db8::1", "192.0.2.1", "unix:"].map(answer)
    };
    for (keys, expected) in [
        ("", [200; 4]),
        ("deny = 403", [403; 4]),
        ("deny = 404", [404; 4]),
        ("allow = [\"10.0.0.0/8\"]", [200, 403, 403, 403]),
        ("allow = [\"2001:db8::/32\", \"unix:\"]\ndeny = 404", [404, 200, 404, 200]),
        ("maintenance = true", [503; 4]),
        ("maintenance = {}", [503; 4]),
        ("maintenance = false", [200; 4]),
        ("[route.maintenance]\nallow = [\"10.1.1.1\"]", [200, 503, 503, 503]),
        (
            "allow = [\"10.0.0.0/8\", \"unix:\"]\nmaintenance = { allow = [\"unix:\"] }",
            [503, 403, 403, 200],
        ),
    ] {
        assert_eq!(check(keys), expected, "{keys}");
    }
}

#[test]
fn a_route_that_refuses_everybody_needs_no_places() {
    let site = check_text(&format!("{LISTENER}[[route]]\npath = \"/.git\"\ndeny = 404\n")).unwrap();
    assert!(site.gateway.sites[0].routes[0].places.is_empty());
}

#[test]
fn redirects_that_end_are_not_reported_as_a_circle() {
    let route = "[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n";
    for redirects in [
        &[("/a", "/b"), ("/b", "/c")][..],
        // `/a` leads to `/b`, that to `/a/z`, and that to `/b/z`, which has files.
        &[("/a", "/b"), ("/b", "/a/z")],
        &[("/a", "/b"), ("/b", "https://example.org/a")],
    ] {
        let redirects: String = redirects
            .iter()
            .map(|(path, to)| format!("[[route]]\npath = \"{path}\"\nredirect = \"{to}\"\n"))
            .collect();
        let files = "[[route]]\npath = \"/b/z\"\ntry = [\"files:public\"]\n";
        let text = format!("{LISTENER}{route}{redirects}{files}");
        assert!(check_text(&text).is_ok(), "{text}\n{:?}", check_text(&text).err());
    }
}

#[test]
fn auth_request_errors_name_what_is_asked_and_what_is_allowed() {
    let route = |keys: &str| {
        format!("{LISTENER}[[route]]\npath = \"/\"\ntry = [\"store\"]\nauth_request = {keys}\n")
    };
    for (keys, expected) in [
        ("true", vec!["kirin.toml:6:16", "allowed is a path such as \"/auth\", false or a table"]),
        ("\"/auth?x\"", vec!["kirin.toml:6:16", "the route `/` has an `auth_request` itself"]),
        ("\"auth\"", vec!["kirin.toml:6:16", "`auth` is not a place"]),
        (
            "\"store\"",
            vec!["kirin.toml:6:16", "must be a path of this site, app:NAME or proxy:NAME"],
        ),
        ("\"app:auth\"", vec!["kirin.toml:6:16", "there is no app `auth`"]),
        ("{ path = \"/x\" }", vec!["kirin.toml:6:16", "`ask` is missing"]),
        ("{ ask = \"/a#b\" }", vec!["kirin.toml:6:24", "must be a path as in a request"]),
        ("{ ask = \"/a\", path = \"/x\" }", vec!["kirin.toml:6:37", "`path` is for a place"]),
        ("{ ask = \"/a\", fields = [\"Host\"] }", vec!["kirin.toml:6:40", "Kirin's own"]),
        (
            "{ ask = \"/a\", fields = [\"X_User\"] }",
            vec!["kirin.toml:6:40", "letters, digits and `-`"],
        ),
        (
            "{ ask = \"/a\", response_fields = [\"Location\"] }",
            vec!["kirin.toml:6:49", "`Location` is Kirin's own"],
        ),
        ("{ ask = \"/a\", field = [] }", vec!["kirin.toml:6:30", "unknown key `field`"]),
    ] {
        let error = check_text(&route(keys)).expect_err(keys);
        for part in expected {
            assert!(error.contains(part), "{keys}: {part}: {error}");
        }
    }
    let without_route = route("\"/auth\"").replace("path = \"/\"", "path = \"/private\"");
    let error = check_text(&without_route).expect_err("no route");
    assert!(error.contains("asks `/auth`: no route without `match` has it"), "{error}");
    let site = format!(
        "{LISTENER}[[site]]\nhosts = [\"a.example\"]\nauth_request = \"/auth\"\n\
         [[site.route]]\npath = \"/\"\ntry = [\"store\"]\n\
         [[site.route]]\npath = \"/auth\"\ntry = [\"store\"]\nauth_request = false\n"
    );
    assert!(check_text(&site).is_ok());
}

#[test]
fn errors_in_limits_name_the_key_and_what_is_allowed() {
    let route = |keys: &str| {
        format!("{LISTENER}[[route]]\npath = \"/{{id}}\"\ntry = [\"store\"]\n{keys}\n")
    };
    for (keys, expected) in [
        ("rate_limit = [{ rate = \"1/s\", key = \"{id}{client}\" }]", None),
        ("rate_limit = [{ rate = \"1/s\", key = \"route\", status = 503, dry_run = true }]", None),
        ("in_flight_limit = [{ max = 1, key = \"cookie:a\" }]", None),
        ("in_flight_limit = [{ max = 0 }]", Some("allowed is 1 to 1000000")),
        ("in_flight_limit = [{ }]", Some("`max` is missing")),
        ("in_flight_limit = [{ max = 1, key = \"ip\" }]", Some("allowed are address, route,")),
        ("rate_limit = [{ rate = \"1/s\", key = \"{user}\" }]", Some("is not known yet")),
        ("rate_limit = [{ rate = \"1/s\", key = \"{nobody}\" }]", Some("its names are `{id}`")),
        ("rate_limit = [{ rate = \"1/s\", key = \"{{x\" }]", Some("allowed are address, route,")),
        ("rate_limit = [{ rate = \"1/s\", status = 200 }]", Some("allowed are 400 to 599")),
        ("in_flight_limit = [{ max = 1, page = \"x\" }]", Some("it must be a path")),
    ] {
        let checked = check_text(&route(keys));
        match expected {
            None => assert!(checked.is_ok(), "{keys}: {:?}", checked.err()),
            Some(part) => {
                let error = checked.expect_err(keys);
                assert!(error.contains(part) && error.contains("kirin.toml:6:"), "{keys}: {error}");
            }
        }
    }
}

//! Tests of the rules of a route.

use kirin_http::PeerSet;

use crate::check::tests::{LISTENER, check_text};

#[test]
fn errors_in_rules_and_proxies_name_line_value_and_what_is_allowed() {
    let route = "[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n";
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
            &format!("{LISTENER}forwarded = \"X-Real-IP\"\n{route}"),
            vec!["kirin.toml:3:13", "`forwarded` is `X-Real-IP`: allowed are"],
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
            vec!["kirin.toml:6:23", "error page `/b/x`: no route has it"],
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
            &format!("{LISTENER}{route}header = {{}}\n"),
            vec!["kirin.toml:6:1", "unknown field `header`", "`headers`"],
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
        site.gateway.sites[0].routes[0].rules.redirect.is_some()
            && site.gateway.sites[0].routes[0].places.is_empty()
    );
    let rules = &site.gateway.sites[0].routes[1].rules;
    assert!(
        site.gateway.sites[0].routes[1].listing
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

//! Sections of upstreams with the configurations that they make, or with their errors.

use std::time::Duration;

use kirin_proxy::{ForwardedPolicy, HashKey, HostPolicy, Method};

use crate::check::tests::{LISTENER, check_text};

#[test]
fn keys_that_cgi_servers_do_not_use_are_errors() {
    let scgi = "servers = [\"scgi://a:1\"]";
    let fastcgi = "servers = [\"fastcgi://a:1\"]\nroot = \"x\"";
    for (servers, key, allowed) in [
        (scgi, "host = \"upstream\"", "HTTP_HOST"),
        (fastcgi, "host = \"client\"", "HTTP_HOST"),
        (scgi, "forwarded = \"none\"", "REMOTE_ADDR"),
        (fastcgi, "forwarded = \"Forwarded\"", "REMOTE_ADDR"),
        (scgi, "via = \"\"", "`Via`"),
        (fastcgi, "via = \"kirin\"", "`Via`"),
        (scgi, "keep_connections = 0", "connection of its own"),
        (scgi, "keep_time = \"5s\"", "connection of its own"),
        (scgi, "max_requests = 5", "connection of its own"),
        (scgi, "max_age = \"5m\"", "connection of its own"),
        (scgi, "tls = {}", "without an https"),
        (fastcgi, "health = { path = \"/\" }", "connected to"),
        (scgi, "health = { host = \"a\" }", "connected to"),
        (scgi, "health = { status = \"200\" }", "connected to"),
    ] {
        let error = check(&format!("{servers}\n{key}")).unwrap_err();
        let line = 5 + servers.lines().count();
        let name = key.split(' ').next().unwrap_or_default();
        let parts = [format!("kirin.toml:{line}:"), format!("`{name}`"), allowed.into()];
        assert!(parts.iter().all(|part| error.contains(part)), "{key}: {error}");
    }
    let kept =
        "keep_connections = 2\nkeep_time = \"5s\"\nmax_requests = 5\nmax_age = \"5m\"\nhealth = {}";
    assert_eq!(check(&format!("{fastcgi}\n{kept}")).unwrap().pool.idle, 2);
    assert!(check(&format!("{scgi}\nhealth = {{ interval = \"5s\" }}")).unwrap().health.is_some());
}

#[test]
fn a_limit_is_for_each_server_or_for_one() {
    let of = |upstream: &str| -> Vec<Option<u32>> {
        let servers = check(upstream).unwrap().servers;
        servers.iter().map(|server| server.max_in_flight.map(Into::into)).collect()
    };
    let servers = "servers = [\"a:1\", { address = \"a:2\", max_in_flight = 2 }]";
    assert_eq!(of(servers), [None, Some(2)]);
    assert_eq!(of(&format!("{servers}\nmax_in_flight = 8")), [Some(8), Some(2)]);
    let limits = check(&format!("{servers}\nqueue = 0\nqueue_wait = \"1s\"")).unwrap().queue;
    assert_eq!((limits.length, limits.wait), (0, Duration::from_secs(1)));
    let limits = check("servers = [\"a:1\"]\nmax_in_flight = 1").unwrap().queue;
    assert_eq!((limits.length, limits.wait), (1024, Duration::from_secs(30)));
}

fn check(upstream: &str) -> Result<kirin_proxy::UpstreamConfig, String> {
    let route = "[[route]]\npath = \"/\"\ntry = [\"store\", \"proxy:api\"]\n";
    let text = format!("{LISTENER}[[upstream]]\nname = \"api\"\n{upstream}\n{route}");
    let mut site = check_text(&text)?;
    assert_eq!(site.gateway.sites[0].routes[0].places[1].to_string(), "proxy:api");
    Ok(site.upstreams.remove(0))
}

#[test]
fn an_upstream_needs_servers_only() {
    let upstream = check("servers = [\"127.0.0.1:3000\", \"unix:x.sock\"]").unwrap();
    assert_eq!(upstream.servers[0].address.to_string(), "127.0.0.1:3000");
    assert!(
        upstream.servers[1].address.to_string().starts_with("unix:/"),
        "{:?}",
        upstream.servers[1]
    );
    assert_eq!((upstream.host, upstream.forwarded), (HostPolicy::Client, ForwardedPolicy::X));
    assert_eq!((upstream.via.as_deref(), upstream.pool.idle), (Some("kirin"), 64));
}

#[test]
fn the_keys_of_an_upstream_reach_its_configuration() {
    let upstream = check(
        "servers = [\"h2c://a.test:1\"]\nhost = \"www.a.test:8080\"\nforwarded = \"none\"\nvia = \"\"\n\
         first_byte_timeout = \"5m\"\nkeep_connections = 0\nmax_age = \"1h\"\n",
    )
    .unwrap();
    assert_eq!(upstream.host, HostPolicy::Name("www.a.test:8080".into()));
    assert_eq!((upstream.forwarded, upstream.via), (ForwardedPolicy::Nothing, None));
    assert_eq!(upstream.timeouts.first_byte, Duration::from_secs(300));
    assert_eq!((upstream.pool.idle, upstream.pool.max_age), (0, Some(Duration::from_secs(3600))));
}

#[test]
fn fastcgi_servers_have_a_root_and_keep_no_connections_by_themselves() {
    let upstream =
        check("servers = [\"fastcgi://unix:/run/php.sock\"]\nroot = \"public\"").unwrap();
    let fastcgi = upstream.fastcgi.unwrap();
    assert!(fastcgi.root.starts_with('/') && fastcgi.root.ends_with("/public"), "{fastcgi:?}");
    assert_eq!((fastcgi.index.as_str(), fastcgi.extension.as_str()), ("index.php", ".php"));
    assert_eq!(upstream.pool.idle, 0);
    let upstream = check(
        "servers = [\"fastcgi://a:9000\"]\nroot = \"/x\"\nextension = \".fcgi\"\nkeep_connections = 4",
    )
    .unwrap();
    let fastcgi = upstream.fastcgi.unwrap();
    assert_eq!((fastcgi.root.as_str(), fastcgi.index.as_str()), ("/x", "index.fcgi"));
    assert_eq!(upstream.pool.idle, 4);
    assert!(check("servers = [\"scgi://a:1\", \"scgi://unix:/x\"]").unwrap().fastcgi.is_none());
}

#[test]
fn balancing_and_health_checks_are_read() {
    let upstream = check(
        "servers = [\"a.test:1\", { address = \"b.test:2\", weight = 3 }, { address = \"c.test:3\", backup = true }]\n\
         balance = \"hash\"\nhash_key = \"cookie:sid\"\nsticky_cookie = \"server\"\nmax_failures = 1\n\
         slow_start = \"30s\"\nretry_percent = 5\nhealth = { path = \"/up\", status = \"204\", interval = \"1s\" }\n",
    )
    .unwrap();
    let weights: Vec<_> =
        upstream.servers.iter().map(|server| (server.weight, server.backup)).collect();
    assert_eq!(weights, [(1, false), (3, false), (1, true)]);
    let balancing = upstream.balancing;
    assert_eq!(
        (balancing.method, balancing.key),
        (Method::Hash, Some(HashKey::Cookie("sid".into())))
    );
    assert_eq!((balancing.sticky.as_deref(), balancing.max_failures), (Some("server"), 1));
    assert_eq!((balancing.slow_start, balancing.retry_percent), (Duration::from_secs(30), 5));
    let health = upstream.health.unwrap();
    assert_eq!(
        (health.path.as_str(), health.status, health.unhealthy_after),
        ("/up", 204..=204, 3)
    );
    assert_eq!((health.interval, health.timeout), (Duration::from_secs(1), Duration::from_secs(2)));
}

#[test]
fn errors_name_line_value_and_what_is_allowed() {
    for (upstream, expected) in [
        ("servers = []", vec!["kirin.toml:4:8", "needs `servers`"]),
        (
            "servers = [\"ftp://a\"]",
            vec!["kirin.toml:5:12", "`ftp://a` is not a server", "unix:/PATH"],
        ),
        ("servers = [1]", vec!["kirin.toml:5:12", "an address, or {"]),
        ("servers = [{ address = \"a:1\", wait = 1 }]", vec!["kirin.toml:5:", "wait"]),
        ("servers = [{ address = \"a:1\", weight = 0 }]", vec!["kirin.toml:5:12", "1 to 1000"]),
        ("servers = [\"a:1\"]\nbalance = \"x\"", vec!["kirin.toml:6:11", "least-connections"]),
        ("servers = [\"a:1\"]\nbalance = \"hash\"", vec!["kirin.toml:6:11", "hash_key"]),
        ("servers = [\"a:1\"]\nhash_key = \"target\"", vec!["kirin.toml:6:12", "balance"]),
        ("servers = [\"a:1\"]\nsticky_cookie = \"a b\"", vec!["kirin.toml:6:17", "cookie"]),
        ("servers = [\"a:1\"]\nretry_percent = 101", vec!["kirin.toml:6:17", "0 to 100"]),
        ("servers = [\"a:1\"]\nhealth = { path = \"up\" }", vec!["kirin.toml:6:19", "begins with"]),
        (
            "servers = [\"a:1\"]\nhealth = { path = \"/\", status = \"ok\" }",
            vec!["kirin.toml:6:", "200-399"],
        ),
        ("servers = [\"a:1\"]\nhost = \"a b\"", vec!["kirin.toml:6:8", "\"upstream\""]),
        ("servers = [\"a:1\"]\nforwarded = \"x\"", vec!["kirin.toml:6:13", "\"both\""]),
        ("servers = [\"a:1\"]\nvia = \"a b\"", vec!["kirin.toml:6:7", "`via`"]),
        ("servers = [\"a:1\"]\ntls = {}", vec!["kirin.toml:6:7", "without an https"]),
        ("servers = [\"a:1\"]\nroot = \"x\"", vec!["kirin.toml:6:8", "without a fastcgi"]),
        ("servers = [\"a:1\"]\nmax_in_flight = 0", vec!["kirin.toml:6:17", "nonzero"]),
        ("servers = [{ address = \"a:1\", max_in_flight = 0 }]", vec!["kirin.toml:5:", "nonzero"]),
        ("servers = [\"a:1\"]\nqueue = 5", vec!["kirin.toml:6:9", "max_in_flight"]),
        ("servers = [\"a:1\"]\nqueue_wait = \"5s\"", vec!["kirin.toml:6:14", "max_in_flight"]),
        (
            "servers = [\"a:1\"]\nmax_in_flight = 1\nqueue = 65537",
            vec!["kirin.toml:7:9", "0 to 65536"],
        ),
        ("servers = [\"a:1\"]\nhealth = {}", vec!["kirin.toml:", "health", "path"]),
        (
            "servers = [\"scgi://a:1\"]\nindex = \"x.php\"",
            vec!["kirin.toml:6:9", "without a fastcgi"],
        ),
        ("servers = [\"fastcgi://a:1\"]", vec!["kirin.toml:4:8", "needs `root`"]),
        ("servers = [\"fastcgi://a\"]\nroot = \"x\"", vec!["kirin.toml:5:12", "no port"]),
        (
            "servers = [\"a:1\", \"fastcgi://a:2\"]\nroot = \"x\"",
            vec!["kirin.toml:5:19", "in one upstream"],
        ),
        ("servers = [\"scgi://a:1\", \"uwsgi://a:2\"]", vec!["kirin.toml:5:26", "in one upstream"]),
        (
            "servers = [\"fastcgi://a:1\"]\nroot = \"x\"\nextension = \"php\"",
            vec!["kirin.toml:7:13", "a dot"],
        ),
        (
            "servers = [\"fastcgi://a:1\"]\nroot = \"x\"\nindex = \"index.html\"",
            vec!["kirin.toml:7:9", "ends in `.php`"],
        ),
        ("servers = [\"https://a\"]\ntls = { ca = \"no.pem\" }", vec!["kirin.toml:6:7", "no.pem"]),
    ] {
        let error = check(upstream).unwrap_err();
        assert!(expected.iter().all(|part| error.contains(part)), "{upstream}: {error}");
    }
}

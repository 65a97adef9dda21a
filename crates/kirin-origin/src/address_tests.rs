//! Tests of the addresses of an engine.

use proptest::prelude::*;

use super::*;

fn parsed(text: &str) -> Address {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

#[test]
fn an_address_is_shown_without_its_password() {
    for (text, shown) in [
        ("redis://127.0.0.1", "redis://127.0.0.1:6379"),
        ("redis://Cache.internal:7000/", "redis://cache.internal:7000"),
        ("rediss://[::0:1]/3", "rediss://[::1]:6379/3"),
        ("redis://[::1]:1", "redis://[::1]:1"),
        ("redis://kirin:secret@a_b/0", "redis://kirin@a_b:6379"),
        ("redis://:secret@a", "redis://a:6379"),
        ("redis://secret@a", "redis://a:6379"),
        ("redis://k%40%0a:a%3Ab:@c@a", "redis://k%40%0A@a:6379"),
        ("redis+unix:///run/redis.sock", "redis+unix:///run/redis.sock"),
        ("redis+unix://u:secret@/a%40b%3f#?db=7", "redis+unix://u@/a%40b%3F%23?db=7"),
        ("redis-sentinel://a/main", "redis-sentinel://a:26379/main"),
        (
            "rediss-sentinel://u:secret@a,[::2]:5,c:6/my-main_1.x?db=2",
            "rediss-sentinel://u@a:26379,[::2]:5,c:6/my-main_1.x?db=2",
        ),
        (
            "redis-sentinel://a/main?sentinel_user=s&db=2&sentinel_password=secret",
            "redis-sentinel://a:26379/main?db=2",
        ),
        ("redis-cluster://:secret@a,b:7001", "redis-cluster://a:6379,b:7001"),
        ("rediss-cluster://a/", "rediss-cluster://a:6379"),
    ] {
        let address = parsed(text);
        assert_eq!(address.to_string(), shown, "{text}");
        assert_eq!(parsed(shown).topology, address.topology, "{text}");
        assert!(!format!("{address:?}").contains("secret"), "{address:?}");
    }
}

#[test]
fn an_address_has_its_parts() {
    let address = parsed("rediss://k%40:p%2f%C3%A4:@[::1]:7000/3");
    let node = NodeAddress { host: "::1".into(), port: 7000 };
    assert_eq!(address.topology, Topology::Server { node, tls: true, database: 3 });
    assert!(address.uses_tls());
    let credentials = address.credentials.expect("credentials");
    assert_eq!((credentials.user(), credentials.password()), (Some("k@"), "p/\u{e4}:"));

    let address = parsed("redis+unix://:p@/run/a%FFb?db=2");
    let path = PathBuf::from(OsString::from_vec(b"/run/a\xffb".to_vec()));
    assert_eq!(address.topology, Topology::UnixSocket { path, database: 2 });
    let credentials = address.credentials.expect("credentials");
    assert_eq!((credentials.user(), credentials.password()), (None, "p"));

    let address = parsed("redis://nopass@a");
    let credentials = address.credentials.expect("credentials");
    assert_eq!((credentials.user(), credentials.password()), (Some("nopass"), ""));
    for text in ["redis://@a", "redis://:@a", "redis://a"] {
        assert_eq!(parsed(text).credentials, None, "{text}");
    }

    let address = parsed("redis-sentinel://:p@a/b?sentinel_password=q%26&sentinel_user=s&db=3");
    let credentials = address.sentinel_credentials.as_ref().expect("credentials");
    assert_eq!((credentials.user(), credentials.password()), (Some("s"), "q&"));
    assert_eq!(address.database(), 3);
    for text in ["redis-sentinel://:p@a/b", "redis-sentinel://a/b?sentinel_user="] {
        assert_eq!(parsed(text).sentinel_credentials, None, "{text}");
    }
}

#[test]
fn a_password_from_elsewhere_is_added_and_never_takes_the_place_of_one() {
    for (text, user) in [("redis://a", None), ("redis://kirin@a", Some("kirin"))] {
        let address = parsed(text).with_password("p@ss".into()).expect(text);
        assert_eq!(address.topology, parsed(text).topology);
        let credentials = address.credentials.expect("credentials");
        assert_eq!((credentials.user(), credentials.password()), (user, "p@ss"));
    }
    let error = parsed("redis://kirin:secret@a").with_password("other".into()).expect_err("two");
    assert_eq!(error.to_string(), "redis://kirin@a:6379 has a password already");
}

#[test]
fn a_malformed_address_is_refused_with_what_is_allowed() {
    for (text, reason) in [
        ("", "write redis://"),
        ("127.0.0.1:6379", "no scheme"),
        ("u:secret@h://a", "no scheme"),
        ("http://a", "`http` of the origin is unknown: allowed are redis, rediss"),
        ("REDIS://a", "`REDIS`"),
        ("redis://", "`` is not the host"),
        ("redis://a b", "`a b` is not the host"),
        ("redis://::1:80", "IPv6 address in []"),
        ("redis://[::1", "IPv6 address in []"),
        ("redis://[::1]:", "from 1 to 65535"),
        ("redis://:secret:6379", "`@` behind a password"),
        ("redis://u:secret:6379", "`@` behind a password"),
        ("redis://u:secret", "the port of the origin `u`"),
        ("redis://[a]", "`[a]` is not the host"),
        ("redis://[::1]x", "`[::1]x` is not the host"),
        ("redis://a:", "`a` is not a number from 1 to 65535"),
        ("redis://a:0", "from 1 to 65535"),
        ("redis://a:+80", "from 1 to 65535"),
        ("redis://a:65536", "from 1 to 65535"),
        ("redis://a,b:1,c", "3 servers: only redis-sentinel"),
        ("redis://a/x", "`x` is not a database"),
        ("redis://a/-1", "from 0 to 2147483647"),
        ("redis://a/2147483648", "from 0 to"),
        ("redis://a/1/", "`1/`"),
        ("redis://a#1", "`#1`"),
        ("redis://a?db=1", "`?db`"),
        ("redis://a?sentinel_password=secret", "`?sentinel_password`"),
        ("redis://u:se/cret@a", "`%2F` for `/`"),
        ("redis://u:se?cret@a", "`%3F` for `?`"),
        ("redis://u:se%cret@a", "`%25` for `%`"),
        ("redis://u:secret%4@a", "`%25` for `%`"),
        ("redis://u:secret%ff@a", "percent-encoded text"),
        ("redis+unix://", "0 bytes"),
        ("redis+unix:///", "1 bytes"),
        ("redis+unix://run/a.sock", "third `/`"),
        ("redis+unix:///a%00", "percent-encoded"),
        ("redis+unix:///a@b", "`%40` for `@`"),
        ("redis+unix:///a?db=", "`` is not a database"),
        ("redis+unix:///a?x=1", "`?x`"),
        ("redis-sentinel://a", "`` is not the name of a master"),
        ("redis-sentinel://a/", "redis-sentinel://HOST/NAME"),
        ("redis-sentinel://a/b/1", "`b/1`"),
        ("redis-sentinel://a,/b", "`` is not the host"),
        ("redis-sentinel://a&sentinel_password=secret", "`a&sentinel_password` is not the host"),
        ("redis-sentinel://a/b?db=1&db=2", "`db` follows the name of a master"),
        ("redis-sentinel://a/b?", "each once, with `&` between them"),
        ("redis-sentinel://a/b?password=secret", "`password` follows"),
        ("redis-sentinel://a/b?sentinel_password=secret&", "`…` follows"),
        ("redis-sentinel://a/b?sentinel_password=&secret", "`…` follows"),
        ("redis-sentinel://a/b?sentinel_password=secret%", "`%25` for `%`"),
        ("redis-sentinel://a/b?db=1;sentinel_password=secret", "`1;sentinel_password` is not"),
        ("redis-sentinel://a/b&sentinel_password=secret", "`b&sentinel_password` is not"),
        ("redis-cluster://a/1", "`/1` follows"),
        ("redis-cluster://a?db=1", "`?db` follows"),
    ] {
        let error = text.parse::<Address>().expect_err(text).to_string();
        assert!(error.contains(reason), "{text}: {error}");
        assert!(!error.contains("cret"), "{text}: {error}");
    }
    let long = format!("redis+unix:///{}", "a".repeat(107));
    let error = long.parse::<Address>().expect_err("108 bytes").to_string();
    assert!(error.contains("108 bytes") && error.contains("2 to 107"), "{error}");
}

proptest! {
    #[test]
    fn a_shown_address_has_the_same_servers(
        text in "(redis|rediss|redis\\+unix|rediss?-sentinel|rediss?-cluster)://([a:%@]{0,4}@)?\
            [a-z0-9.\\[\\]:,/?=%-]{0,20}"
    ) {
        if let Ok(address) = text.parse::<Address>() {
            let shown = address.to_string();
            prop_assert_eq!(shown.parse::<Address>().map(|shown| shown.topology), Ok(address.topology));
        }
    }

    #[test]
    fn no_text_shows_a_password(
        scheme in "(redis|rediss|redis\\+unix|redis-sentinel|redis-cluster|x)",
        user in "[a-z]{0,3}",
        before in "[a-z/?#@:%,]{0,3}",
        after in "[a-z/?#@:%,]{0,3}",
        rest in "([a-z]{0,3}|[a-z]{1,3}/[a-z0-9]{1,2}|/run/a)",
        option in "([?][a-z&;=]{0,3}sentinel_password=[a-z/?#%&=;]{0,2}HUNTER2[a-z/?#%&=;]{0,2})?",
    ) {
        let text = format!("{scheme}://{user}:{before}HUNTER2{after}@{rest}{option}");
        let shown = match text.parse::<Address>() {
            Ok(address) => format!("{address} {address:?}"),
            Err(error) => format!("{error} {error:?}"),
        };
        prop_assert!(!shown.to_ascii_uppercase().contains("HUNTER2"), "{} {}", text, shown);
    }
}

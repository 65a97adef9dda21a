//! Tests of the keys for an origin.

use std::fs;
use std::path::Path;
use std::time::Duration;

use kirin_origin::address::Topology;
use kirin_origin::{DEFAULT_STALE_LIMIT, DEFAULT_TIMEOUT};

use super::*;
use crate::check::tests::LISTENER;
use crate::{StoreSetup, read};

/// Returns the store of a configuration in `directory` with these keys of `[store]`, or the errors.
fn store_in(directory: &Path, keys: &str) -> Result<StoreSetup, String> {
    let text = format!("{LISTENER}[store]\n{keys}[[route]]\npath = \"/\"\ntry = [\"store\"]\n");
    let source = ConfigSource::from_text("kirin.toml", directory, text);
    read(&source).map(|config| config.store).map_err(|error| error.to_string())
}

fn store(keys: &str) -> Result<StoreSetup, String> {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("password"), "s3cret\n").unwrap();
    fs::write(directory.path().join("two-lines"), "s3cret\nother\n").unwrap();
    fs::write(directory.path().join("empty"), "\n").unwrap();
    fs::write(directory.path().join("large"), "s".repeat(5000)).unwrap();
    let authority = rcgen::generate_simple_self_signed(["redis.test".into()]).unwrap();
    fs::write(directory.path().join("ca.pem"), authority.cert.pem()).unwrap();
    store_in(directory.path(), keys)
}

#[test]
fn an_origin_has_its_defaults() {
    assert!(store("").unwrap().origin.is_none());
    let setup = store("origin = \"redis://kirin@10.0.0.5/2\"\n").unwrap();
    let origin = setup.origin.unwrap();
    assert_eq!(origin.address.to_string(), "redis://10.0.0.5:6379/2");
    assert_eq!(origin.names, Names::default());
    assert_eq!((origin.timeout, origin.stale_limit), (DEFAULT_TIMEOUT, DEFAULT_STALE_LIMIT));
    assert!(origin.tls.is_none() && setup.origin_files.is_empty());
}

#[test]
fn an_origin_has_what_its_keys_say() {
    let setup = store(
        "origin = \"rediss://kirin@redis.test\"\norigin_ca = \"ca.pem\"\n\
         origin_password_file = \"password\"\norigin_prefix = \"shop:\"\norigin_timeout = \"2s\"\n\
         stale_limit = \"1m\"\n",
    );
    let setup = setup.unwrap();
    let origin = setup.origin.unwrap();
    assert!(matches!(origin.address.topology, Topology::Server { tls: true, .. }));
    let credentials = origin.address.credentials.as_ref().unwrap();
    assert_eq!((credentials.user(), credentials.password()), (Some("kirin"), "s3cret"));
    assert_eq!(origin.names, Names::new("shop:").unwrap());
    assert_eq!(origin.timeout, Duration::from_secs(2));
    assert_eq!(origin.stale_limit, Duration::from_secs(60));
    assert!(origin.tls.is_some());
    let names: Vec<_> = setup.origin_files.iter().filter_map(|path| path.file_name()).collect();
    assert_eq!(names, ["ca.pem", "password"]);
    let socket = store("origin = \"redis+unix:///run/redis.sock?db=1\"\n").unwrap().origin.unwrap();
    assert_eq!(socket.address.to_string(), "redis+unix:///run/redis.sock?db=1");
}

#[test]
fn a_password_is_the_only_line_of_its_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("password");
    for (text, password) in
        [("a", "a"), ("a\n", "a"), ("a\r\n", "a"), (" a@:/%2F \n", " a@:/%2F "), ("ä", "ä")]
    {
        fs::write(&file, text).unwrap();
        assert_eq!(password_in(&file).as_deref(), Ok(password), "{text:?}");
    }
    for text in ["", "\n", "\r\n", "s3cret\n\n", "s3cret\nb", "s3cret\rb", "s3\0cret"] {
        fs::write(&file, text).unwrap();
        let error = password_in(&file).unwrap_err();
        assert!(error.contains("one line") && !error.contains("s3"), "{text:?}: {error}");
    }
    fs::write(&file, b"s3cret\xff").unwrap();
    let error = password_in(&file).unwrap_err();
    assert!(error.contains("cannot be read") && !error.contains("s3cret"), "{error}");
}

#[test]
fn wrong_keys_of_an_origin_are_refused_with_what_is_allowed() {
    let origin = "origin = \"redis://a\"\n";
    let with = |keys: &str| format!("{origin}{keys}");
    for (keys, parts) in [
        (
            "origin = \"a:6379\"\n".into(),
            &["kirin.toml:4:10", "`store.origin`", "has no scheme: write redis://HOST:PORT"][..],
        ),
        ("origin = \"http://a\"\n".into(), &["scheme `http`", "allowed are redis, rediss"]),
        ("origin = \"redis-sentinel://a\"\n".into(), &["`` is not the name of a master"]),
        ("origin = \"rediss-cluster://a/1\"\n".into(), &["`/1` follows the servers of a cluster"]),
        ("origin = 6379\n".into(), &["`origin` is the number 6379: allowed is a text in quotes"]),
        (
            with("origin_ca = \"ca.pem\"\n"),
            &["kirin.toml:5:13", "`store.origin_ca`: the origin redis://a:6379 has no certificate"],
        ),
        (
            "origin = \"rediss://a\"\norigin_ca = \"gone.pem\"\n".into(),
            &["kirin.toml:5:13", "`store.origin_ca`", "/gone.pem: "],
        ),
        (
            with("origin_password_file = \"gone\"\n"),
            &["kirin.toml:5:24", "`store.origin_password_file`", "/gone: cannot be read"],
        ),
        (with("origin_password_file = \".\"\n"), &["is not a file of at most 4096 bytes"]),
        (with("origin_password_file = \"large\"\n"), &["is not a file of at most 4096 bytes"]),
        (with("origin_password_file = \"empty\"\n"), &["/empty: has no password"]),
        (with("origin_password_file = \"two-lines\"\n"), &["it must have one line"]),
        (
            with("origin_prefix = \"a{b}\"\n"),
            &["kirin.toml:5:17", "`store.origin_prefix`", "`a{b}` has a brace: allowed is any"],
        ),
        (with("origin_prefix = \"\"\n"), &["has 0 bytes: allowed is 1 to 64"]),
        (
            with("origin_timeout = \"0ms\"\n"),
            &["kirin.toml:5:18", "`0ms` is not a time", "such as \"100ms\""],
        ),
        (
            with("stale_limit = \"1s\"\n"),
            &["kirin.toml:5:15", "`store.stale_limit` is 1s: at least 2s is needed"],
        ),
        (
            with("snapshot = \"items\"\n"),
            &[
                "kirin.toml:5:12",
                "`store.snapshot` with `store.origin`: the items are on the origin",
            ],
        ),
    ] {
        let error = store(&keys).expect_err(&keys);
        for part in parts {
            assert!(error.contains(part), "{keys}: no {part} in {error}");
        }
        assert_eq!(error.matches("kirin.toml:").count(), 1, "{keys}: {error}");
    }
}

#[test]
fn a_key_for_an_origin_needs_one() {
    for key in [
        "origin_ca = \"ca.pem\"",
        "origin_password_file = \"password\"",
        "origin_prefix = \"kirin:\"",
        "origin_timeout = \"500ms\"",
        "stale_limit = \"5s\"",
    ] {
        let error = store(&format!("{key}\n")).expect_err(key);
        let name = key.split(' ').next().unwrap();
        let said = format!("`store.{name}` is for an origin, and there is none: add `origin`");
        assert!(error.starts_with("kirin.toml:4:") && error.contains(&said), "{error}");
    }
}

#[test]
fn all_errors_of_an_origin_are_reported_at_once() {
    let error = store(
        "origin = \"redis://:s3cret@a\"\norigin_password_file = \"password\"\n\
         origin_prefix = \"}\"\nstale_limit = \"1s\"\nsnapshot = \"items\"\n",
    );
    let error = error.unwrap_err();
    for line in 5..9 {
        assert!(error.contains(&format!("kirin.toml:{line}:")), "{line}: {error}");
    }
    assert!(error.contains("has a password already; remove one of the two"), "{error}");
}

#[test]
fn no_error_shows_a_password() {
    for keys in [
        "origin = \"redis://:s3cret@a\"\nsnapshot = \"items\"",
        "origin = \"redis://:s3cret@a b\"",
        "origin = \"redis://:s3/cret@a\"",
        "origin = \"redis://a:s3cret:1\"",
        "origin = \"redis://u:s3cret\"",
        "origin = \"redis-cluster://:s3cret@a/1\"",
        "origin = \"redis://:s3cret@a\"\norigin_password_file = \"password\"",
        "origin = [\"redis://:s3cret@a\"]",
        "origin = [\"redis://:s3cret\"]",
        "origin = redis://:s3cret@a",
        "origin = \"redis://:s3cret@a",
        "orign = \"redis://:s3cret@a\"",
        "origin = \"redis-sentinel://a/main?sentinel_password=s3cret&x\"",
        "origin = \"redis-sentinel://a/main&sentinel_password=s3cret\"",
        "orign = \"redis-sentinel://a/main?sentinel_password=s3cret\"",
    ] {
        let error = store(&format!("{keys}\n")).expect_err(keys);
        assert!(error.contains("kirin.toml:4:") || error.contains("kirin.toml:5:"), "{error}");
        assert!(!error.contains("s3cret") && !error.contains("cret@"), "{keys}: {error}");
    }
}

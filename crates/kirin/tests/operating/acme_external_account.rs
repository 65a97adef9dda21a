//! An authority that makes accounts only for its customers (RFC 8555 section 7.3.4).

use std::fs;
use std::os::unix::fs::PermissionsExt;

use kirin_tests::{Kirin, Pebble, PebbleSetup, Site, run_kirin};
use rustix::process::Signal;

use crate::acme::{command, start};

const ID: &str = "customer-1";
const KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";
const OTHER_KEY: &str = "b10lLJs8l1GPIzsLP0s6pMt8O0XVGnfTaCeROxQM0BIt2XrJMDHJZBM5NuQmQJQH";

fn pebble() -> Pebble {
    Pebble::start_with(&PebbleSetup { customer: Some((ID, KEY)), ..<_>::default() })
}

fn site() -> Site {
    Site::new().with("www/hello.txt", "hello\n")
}

fn write_key(site: &Site, key: &str) {
    let file = site.path("eab.key");
    fs::write(&file, format!("{key}\n")).expect("a key");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).expect("a mode");
}

fn config(pebble: &Pebble, rest: &str) -> String {
    let url = pebble.url();
    format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\nacme = {{ domains = [\"a.test\"], directory = \"{url}\"{rest} }}\n\
         [[listener]]\naddress = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\ntry = [\"files:www\"]\n"
    )
}

fn with_account(pebble: &Pebble, id: &str) -> String {
    let account = format!(", external_account = {{ id = \"{id}\", key_file = \"eab.key\" }}");
    config(pebble, &account)
}

fn reload(site: &Site, pebble: &Pebble, config: &str) {
    fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
    let output = command(site, pebble).arg("reload").output().expect("kirin runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Checks that an attempt has failed, and that the log says why and shows no key.
fn failed(kirin: &Kirin, parts: &[&str]) {
    kirin.wait_for_log("next attempt in");
    let log = kirin.log();
    for part in parts {
        assert!(log.contains(part), "{part}: {log}");
    }
    assert!(!log.contains(KEY) && !log.contains(OTHER_KEY), "{log}");
}

#[test]
fn an_external_account_gets_a_certificate() {
    let (site, pebble) = (site(), pebble());
    write_key(&site, KEY);
    let kirin = start(&site, &pebble, &with_account(&pebble, ID));
    pebble.look_at(kirin.address_of(1));
    kirin.wait_for_log("serving a new certificate for a.test");
    assert!(!kirin.log().contains(KEY), "{}", kirin.log());
    assert_eq!(pebble.accounts(), 1, "{}", pebble.log());
}

#[test]
fn a_wrong_key_is_logged_and_can_be_repaired() {
    let (site, pebble) = (site(), pebble());
    write_key(&site, OTHER_KEY);
    let kirin = start(&site, &pebble, &with_account(&pebble, ID));
    let advice = "`key_file` must have the HMAC key that belongs to it";
    failed(&kirin, &["no certificate for a.test", ": `external_account`: ", advice]);
    // The operator repairs it. The file is read again.
    write_key(&site, KEY);
    pebble.look_at(kirin.address_of(1));
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("serving a new certificate for a.test");
}

#[test]
fn an_unknown_id_and_a_missing_account_are_logged() {
    let (site, pebble) = (site(), pebble());
    write_key(&site, KEY);
    let kirin = start(&site, &pebble, &config(&pebble, ""));
    failed(&kirin, &["make an account there, and write its id and key with `external_account`"]);
    drop(kirin);
    let kirin = start(&site, &pebble, &with_account(&pebble, "customer-2"));
    failed(&kirin, &[": `external_account`: ", "`id` must be the key id"]);
    pebble.look_at(kirin.address_of(1));
    reload(&site, &pebble, &with_account(&pebble, ID));
    kirin.wait_for_log("serving a new certificate for a.test");
}

#[test]
fn a_key_file_that_cannot_be_used_is_refused_at_once() {
    let site = site();
    let check = |account: &str| {
        let config = format!(
            "[[listener]]\naddress = \"0\"\n[listener.tls.acme]\ndomains = [\"a.test\"]\n\
             external_account = {account}\n[[route]]\npath = \"/\"\ntry = [\"files:www\"]\n"
        );
        fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
        let output = run_kirin(&site, &["check"]);
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let account = "{ id = \"a\", key_file = \"eab.key\" }";
    let said = check(account);
    assert!(said.contains("eab.key: cannot be read: ") && said.contains("HMAC key"), "{said}");
    write_key(&site, KEY);
    assert_eq!(check(account), "kirin.toml: good\n");
    let said = check("{ id = \"\", key_file = \"eab.key\" }");
    assert!(said.contains("`acme.external_account.id` is the key id"), "{said}");
    let said = check("{ id = \"a\" }");
    assert!(said.contains("key_file"), "{said}");
    write_key(&site, "s3cret!");
    let said = check(account);
    assert!(said.contains("is no key in base64url") && !said.contains("s3cret"), "{said}");
    fs::set_permissions(site.path("eab.key"), fs::Permissions::from_mode(0o644)).expect("a mode");
    let said = check(account);
    assert!(said.contains("chmod o-rwx"), "{said}");
}

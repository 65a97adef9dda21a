//! Session tickets through the built program: reloads, and machines with one key.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use kirin_tests::{Authority, Issued, Kirin, Site, TlsClient, TlsSetup, run_kirin};
use rustix::process::Signal;
use rustls::ProtocolVersion::{TLSv1_2, TLSv1_3};

/// Returns the configuration of a listener with these keys of `[listener.tls]`.
fn config(keys: &str) -> String {
    format!(
        "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\n\
         certificates = [{{ chain = \"a.pem\", key = \"a.key\" }}]\n{keys}\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n"
    )
}

const SHARED: &str = "ticket_key_file = \"ticket.key\"";

fn site(certificate: &Issued) -> Site {
    let site = Site::new().with("public/hello.txt", "hello\n");
    certificate.write(&site, "a");
    site
}

fn write_key(site: &Site, digit: &str) {
    let file = site.path("ticket.key");
    std::fs::write(&file, digit.repeat(64)).expect("a key");
    std::fs::set_permissions(&file, Permissions::from_mode(0o600)).expect("its mode");
}

/// Requests a page. Returns whether the session was resumed.
fn resumes(kirin: &Kirin, setup: &TlsSetup) -> bool {
    let mut client = TlsClient::connect(kirin.address(), "a.test", setup).expect("a handshake");
    let resumed = client.is_resumed();
    assert!(client.get_and_close("/hello.txt").ends_with("hello\n"));
    resumed
}

fn reload(kirin: &Kirin) {
    let before = kirin.log().matches("reloaded").count();
    kirin.signal(Signal::HUP);
    kirin_tests::wait_for("the reload", || {
        (kirin.log().matches("reloaded").count() > before).then_some(())
    });
}

#[test]
fn machines_with_one_key_resume_the_sessions_of_each_other() {
    let authority = Authority::new("Kirin test authority");
    let certificate = authority.issue(&["a.test"]);
    let sites = [site(&certificate), site(&certificate), site(&certificate)];
    for (site, digit) in sites.iter().zip(["1", "1", "2"]) {
        write_key(site, digit);
    }
    let [one, two, other] = sites.each_ref().map(|site| Kirin::start(site, &config(SHARED)));
    for version in [TLSv1_2, TLSv1_3] {
        let setup = TlsSetup::new(&authority, None, version);
        assert!(!resumes(&one, &setup), "{version:?}");
        assert!(resumes(&two, &setup), "{version:?}");
        assert!(resumes(&one, &setup), "{version:?}");
        assert!(!resumes(&other, &setup), "{version:?}: it has another key");
    }
}

#[test]
fn sessions_go_on_over_a_reload_until_there_is_another_key() {
    let authority = Authority::new("Kirin test authority");
    let site = site(&authority.issue(&["a.test"]));
    let setup = TlsSetup::new(&authority, None, TLSv1_3);
    let kirin = Kirin::start(&site, &config(""));
    assert!(!resumes(&kirin, &setup));
    reload(&kirin);
    assert!(resumes(&kirin, &setup), "its own key stays");
    write_key(&site, "1");
    std::fs::write(site.path("kirin.toml"), config(SHARED)).expect("kirin.toml");
    reload(&kirin);
    assert!(!resumes(&kirin, &setup), "the key of the file is another");
    reload(&kirin);
    assert!(resumes(&kirin, &setup), "the file is the same");
    write_key(&site, "2");
    reload(&kirin);
    assert!(!resumes(&kirin, &setup), "the file has another key");
    std::fs::write(site.path("kirin.toml"), config("")).expect("kirin.toml");
    reload(&kirin);
    assert!(!resumes(&kirin, &setup), "without the file, the key is nobody else's");
}

#[test]
fn a_session_carries_no_certificate_to_a_listener_that_does_not_trust_it() {
    let authority = Authority::new("Kirin test authority");
    let (ours, theirs) = (Authority::new("Ours"), Authority::new("Theirs"));
    let certificate = authority.issue(&["a.test"]);
    let sites = [site(&certificate), site(&certificate)];
    for (site, clients) in sites.iter().zip([&ours, &theirs]) {
        write_key(site, "1");
        std::fs::write(site.path("clients.pem"), clients.pem()).expect("clients.pem");
    }
    let keys = format!("{SHARED}\nclient_ca = \"clients.pem\"\n");
    let [mine, other] = sites.each_ref().map(|site| Kirin::start(site, &config(&keys)));
    for version in [TLSv1_2, TLSv1_3] {
        let setup = TlsSetup::new(&authority, Some(&ours.issue(&["alice"])), version);
        assert!(!resumes(&mine, &setup));
        assert!(resumes(&mine, &setup), "{version:?}");
        // TLS 1.3 tells the client of the refusal after its own part of the handshake.
        let refused =
            TlsClient::connect(other.address(), "a.test", &setup).and_then(|mut client| {
                client.send("GET /hello.txt HTTP/1.1\r\nHost: a.test\r\nConnection: close\r\n\r\n");
                let (received, result) = client.read_to_end();
                assert!(received.is_empty(), "{version:?}: a stranger is served");
                result
            });
        assert!(refused.is_err(), "{version:?}");
        assert!(resumes(&mine, &setup), "{version:?}");
    }
    // The same listener with other authorities forgets its clients.
    std::fs::write(sites[0].path("clients.pem"), theirs.pem()).expect("clients.pem");
    let setup = TlsSetup::new(&authority, Some(&ours.issue(&["bob"])), TLSv1_2);
    assert!(!resumes(&mine, &setup));
    reload(&mine);
    assert!(TlsClient::connect(mine.address(), "a.test", &setup).is_err());
}

#[test]
fn a_wrong_key_file_is_refused_without_showing_it() {
    let authority = Authority::new("Kirin test authority");
    let site = site(&authority.issue(&["a.test"])).with("kirin.toml", config(SHARED));
    let check = || {
        let output = run_kirin(&site, &["check"]);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let error = check();
    let parts = ["kirin.toml:6:", "`ticket_key_file`", "ticket.key", "openssl rand -hex 32"];
    assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    std::fs::write(site.path("ticket.key"), "12345").expect("a key");
    let error = check();
    assert!(error.contains("chmod o-rwx"), "{error}");
    std::fs::set_permissions(site.path("ticket.key"), Permissions::from_mode(0o600)).expect("mode");
    let error = check();
    assert!(error.contains("64 hexadecimal digits") && !error.contains("12345"), "{error}");
}

//! TLS sessions over an upgrade.

use kirin_tests::{Authority, Site, TlsClient, TlsSetup};
use rustls::ProtocolVersion::{TLSv1_2, TLSv1_3};

use super::Service;

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\n\
    certificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n\
    [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n";

#[test]
fn clients_resume_their_sessions_in_the_new_program() {
    let authority = Authority::new("Kirin test authority");
    let site = Site::new().with("public/hello.txt", "hello\n");
    authority.issue(&["a.test"]).write(&site, "a");
    let service = Service::start_in(site, CONFIG);
    let resumes = |setup: &TlsSetup| {
        let client = TlsClient::connect(service.address(), "a.test", setup);
        let mut client = client.expect("a handshake");
        let resumed = client.is_resumed();
        assert!(client.get_and_close("/hello.txt").ends_with("hello\n"));
        resumed
    };
    let setups = [TLSv1_2, TLSv1_3].map(|version| TlsSetup::new(&authority, None, version));
    for setup in &setups {
        assert!(!resumes(setup));
    }
    // The second upgrade hands on what the first has handed over.
    for number in 0..2 {
        service.upgrade();
        for setup in &setups {
            assert!(resumes(setup), "upgrade {number}");
        }
    }
    let log = service.first.log();
    assert!(!log.contains("secret") && !log.contains("WARN"), "{log}");
}

//! A thousand sites with a certificate and ten routes each.

use std::fmt::Write;

use kirin_tests::{Authority, Issued, Kirin, Site, TlsClient, TlsSetup, wait_for};
use rustix::process::Signal;
use rustls::ProtocolVersion::TLSv1_3;

const SITES: usize = 1000;

fn names() -> Vec<String> {
    (0..SITES).map(|number| format!("site{number}.test")).collect()
}

fn write(site: &Site, certificates: &[Issued]) {
    for (number, issued) in certificates.iter().enumerate() {
        std::fs::write(site.path(&format!("{number}.pem")), &issued.chain).expect("a chain");
    }
    certificates[0].write(site, "0");
}

fn config() -> String {
    let mut pairs = String::new();
    let mut sites = String::new();
    for number in 0..SITES {
        let _ = write!(pairs, "{{ chain = \"{number}.pem\", key = \"0.key\" }}, ");
        let _ = writeln!(
            sites,
            "[[site]]\nhosts = [\"site{number}.test\"]\nheaders = {{ X-Site = \"{number}\" }}"
        );
        for route in 0..9 {
            let _ = writeln!(sites, "[[site.route]]\npath = \"/r{route}\"\ntry = [\"store\"]");
        }
        let _ = writeln!(sites, "[[site.route]]\npath = \"/\"\ntry = [\"files:public\"]");
    }
    format!(
        "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\ntls.certificates = [{pairs}]\n\
         [store]\nmemory = \"16MB\"\n{sites}"
    )
}

/// Returns whether the server sends `issued` to clients that ask for `name`.
fn is_sent(kirin: &Kirin, setup: &TlsSetup, name: &str, issued: &Issued) -> bool {
    let connected = TlsClient::connect(kirin.address(), name, setup);
    connected.unwrap_or_else(|error| panic!("{name}: {error}")).server_is(issued)
}

#[test]
fn each_of_a_thousand_sites_has_its_certificate_and_its_routes() {
    let authority = Authority::new("Kirin test authority");
    let setup = TlsSetup::new(&authority, None, TLSv1_3);
    let names = names();
    let first = authority.issue_each(&names);
    let site = Site::new().with("public/x", "x");
    write(&site, &first);
    let started = std::time::Instant::now();
    let kirin = Kirin::start(&site, &config());
    let status = std::fs::read_to_string(format!("/proc/{}/status", kirin.pid())).expect("status");
    let resident = status.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    // The test does not depend on these.
    println!("{SITES} sites: started in {:?}, {resident}", started.elapsed());
    for (number, (name, issued)) in names.iter().zip(&first).enumerate() {
        let mut client = TlsClient::connect(kirin.address(), name, &setup)
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(client.server_is(issued), "{name}");
        client.send(format!("GET /x HTTP/1.1\r\nHost: {name}\r\nConnection: close\r\n\r\n"));
        let response = String::from_utf8_lossy(&client.read_to_end().0).into_owned();
        let is_of_site = response.contains(&format!("\r\nX-Site: {number}\r\n"));
        assert!(response.starts_with("HTTP/1.1 200") && is_of_site, "{name}: {response}");
    }

    let second = authority.issue_each(&names);
    write(&site, &second);
    kirin.signal(Signal::HUP);
    wait_for("the new certificates", || {
        is_sent(&kirin, &setup, &names[SITES - 1], &second[SITES - 1]).then_some(())
    });
    for (name, issued) in names.iter().zip(&second) {
        // Each event loop takes them over by itself.
        wait_for(name, || is_sent(&kirin, &setup, name, issued).then_some(()));
    }
}

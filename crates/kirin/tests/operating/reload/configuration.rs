//! What a change of the configuration changes, and what it leaves alone.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kirin_tests::{
    Authority, Backend, Client, Http2Client, Kirin, Site, TlsClient, TlsSetup, wait_for,
};
use rustix::process::Signal;
use rustls::ProtocolVersion::TLSv1_3;

use super::{Served, printed};

const LISTENER: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n";

fn with_routes(routes: &str) -> String {
    format!("{LISTENER}{routes}")
}

fn files(directory: &str) -> String {
    format!("[[route]]\npath = \"/\"\ntry = [\"files:{directory}\"]\n")
}

fn two_directories() -> Served {
    let site = Site::new().with("one/a.txt", "one").with("two/a.txt", "two");
    Served::start(site, &with_routes(&files("one")))
}

#[test]
fn the_next_request_of_every_connection_sees_the_new_routes() {
    let served = two_directories();
    let mut kept: Vec<Client> = (0..8).map(|_| served.kirin.connect()).collect();
    let mut streams = Http2Client::connect(served.kirin.address());
    assert!(kept.iter_mut().all(|client| client.get("/a.txt").text() == "one"));
    assert_eq!(streams.get("/a.txt").text(), "one");
    let said = served.reload(&with_routes(&files("two")));
    assert_eq!(said, "[[route]] /: try [\"files:one\"] → [\"files:two\"]\nreloaded\n");
    assert!(kept.iter_mut().all(|client| client.get("/a.txt").text() == "two"));
    assert_eq!(streams.get("/a.txt").text(), "two");
    assert_eq!(served.text("/a.txt"), "two");
    served.kirin.wait_for_log("changed: [[route]] /: try");
}

#[test]
fn a_reload_reads_the_table_of_redirects_again() {
    let site = Site::new().with("one/a.txt", "one").with("old.tsv", "/x\t/y\n");
    let config = with_routes(&format!("{}redirects = \"old.tsv\"\n", files("one")));
    let served = Served::start(site, &config);
    let location = || served.kirin.get("/x").field("location").map(str::to_owned);
    assert_eq!(location().as_deref(), Some("/y"));
    std::fs::write(served.site.path("old.tsv"), "/x\t/x\n").expect("old.tsv");
    let said = served.refused(&config);
    assert!(said.contains("old.tsv:1: /x leads to itself"), "{said}");
    assert_eq!(location().as_deref(), Some("/y"));
    std::fs::write(served.site.path("old.tsv"), "/x\t/z\n").expect("old.tsv");
    let said = served.reload(&config);
    assert!(said.contains("reloaded"), "{said}");
    assert_eq!(location().as_deref(), Some("/z"));
}

#[test]
fn hup_reads_the_configuration_and_loads_applications_again() {
    let site = Site::new()
        .with("app.psgi", "my $v = 'first'; sub { [200, [], [$v]] }")
        .with("one/a.txt", "one")
        .with("two/a.txt", "two");
    let app = "[[app]]\nname = \"web\"\nload = \"app.psgi\"\n[[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n";
    let config = |directory| with_routes(&format!("{app}{}", files(directory)));
    let served = Served::start(site, &config("one"));
    assert_eq!((served.text("/a.txt"), served.text("/app")), ("one".into(), "first".into()));
    std::fs::write(served.site.path("app.psgi"), "sub { [200, [], ['second']] }").expect("a file");
    served.write(&config("two"));
    served.kirin.signal(Signal::HUP);
    wait_for("the new application", || (served.text("/app") == "second").then_some(()));
    assert_eq!(served.text("/a.txt"), "two");
    // A reload alone leaves applications alone.
    std::fs::write(served.site.path("app.psgi"), "sub { [200, [], ['third']] }").expect("a file");
    assert_eq!(printed(&served.command(&["reload"])), "the configuration is the same\nreloaded\n");
    assert_eq!(served.text("/app"), "second");
    let said = printed(&served.command(&["reload", "--app", "web"]));
    assert_eq!(said, "the configuration is the same\napp `web`: loaded again\nreloaded\n");
    wait_for("the third application", || (served.text("/app") == "third").then_some(()));
}

#[test]
fn a_request_finishes_with_the_configuration_that_it_began_with() {
    let goes_on = Arc::new(AtomicBool::new(false));
    let backend_goes_on = Arc::clone(&goes_on);
    let backend = Backend::start(move |mut connection| {
        while let Some(request) = connection.read_request() {
            if request.target() == "/slow" {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nbegi");
                wait_for("the reload", || backend_goes_on.load(Ordering::Relaxed).then_some(()));
                connection.send("nend");
            } else {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
            }
        }
    });
    let site = Site::new().with("two/slow", "new");
    let upstream = format!("[[upstream]]\nname = \"api\"\nservers = [\"{}\"]\n", backend.address());
    let before = "[[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\nheaders = { X-Was = \"before\" }\naccess_log = { path = \"before.log\", format = \"%U %>s\" }\n";
    let config = |routes: &str| with_routes(&format!("{upstream}{routes}"));
    let served = Served::start(site, &config(before));
    let mut slow = served.kirin.connect();
    slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    slow.read_until(b"begi");
    // The route of the request in progress is gone, and its log as well.
    served.reload(&config(&files("two")));
    assert_eq!(served.text("/slow"), "new");
    goes_on.store(true, Ordering::Relaxed);
    assert!(slow.try_read_until(b"nend"), "the response was cut");
    assert_eq!(slow.get("/slow").text(), "new");
    wait_for("the line of the old route", || {
        let log = std::fs::read_to_string(served.site.path("before.log")).ok()?;
        log.contains("/slow 200").then_some(())
    });
}

#[test]
fn limits_of_a_listener_hold_from_the_next_request_on() {
    let served = two_directories();
    let limited = |limits: &str| format!("{LISTENER}{limits}{}", files("one"));
    let mut kept = served.kirin.connect();
    let long = format!("X-Long: {}\r\n", "x".repeat(3000));
    assert_eq!(kept.request("GET", "/a.txt", &long).status, 200);
    let said = served.reload(&limited("head_limit = \"2KB\"\nrequest_line_limit = \"1KB\"\n"));
    assert!(said.contains("[[listener]] 127.0.0.1:0: head_limit added \"2KB\"\n"), "{said}");
    assert_eq!(kept.request("GET", "/a.txt", &long).status, 431);
    drop(kept);
    served.reload(&limited("keep_alive = \"1s\"\n"));
    let mut idle = served.kirin.connect();
    assert_eq!(idle.get("/a.txt").text(), "one");
    wait_for("the end of an idle connection", || idle.is_ended_after_sending(b"").then_some(()));
}

#[test]
fn the_limit_of_connections_of_an_address_changes_without_forgetting_who_is_there() {
    let served = two_directories();
    let limit = |limit: &str| format!("{LISTENER}{limit}{}", files("one"));
    served.reload(&limit("connections_per_address = 2\n"));
    let mut clients: Vec<Client> = (0..2).map(|_| served.kirin.connect()).collect();
    assert!(clients.iter_mut().all(|client| client.get("/a.txt").status == 200));
    served.reload(&limit("connections_per_address = 3\n"));
    let mut third = served.kirin.connect();
    assert_eq!(third.get("/a.txt").status, 200);
    let mut fourth = served.kirin.connect();
    fourth.try_send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for("a refusal", || fourth.is_ended_after_sending(b"").then_some(()));
    served.reload(&limit(""));
    assert_eq!(served.kirin.connect().get("/a.txt").status, 200);
    assert!(clients.iter_mut().all(|client| client.get("/a.txt").status == 200));
}

#[test]
fn sites_come_and_go() {
    let served = two_directories();
    let site = |host: &str, directory: &str| {
        format!(
            "[[site]]\nhosts = [\"{host}\"]\n[[site.route]]\npath = \"/\"\ntry = [\"files:{directory}\"]\n"
        )
    };
    let get = |host: &str| {
        let mut client = served.kirin.connect();
        client.send(format!("GET /a.txt HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        client.read_reply()
    };
    let said =
        served.reload(&format!("{LISTENER}{}{}", site("a.test", "one"), site("b.test", "two")));
    assert!(said.contains("[[site]] a.test: added") && said.contains("[[site]] b.test"), "{said}");
    assert_eq!((get("a.test").text(), get("b.test").text()), ("one".into(), "two".into()));
    assert_eq!(get("c.test").status, 421);
    let said = served.reload(&format!("{LISTENER}{}", site("b.test", "one")));
    assert!(said.contains("[[site]] a.test: removed"), "{said}");
    assert_eq!((get("a.test").status, get("b.test").text()), (421, "one".into()));
}

#[test]
fn access_logs_change_and_no_line_is_lost() {
    let served = two_directories();
    let log = |name: &str| {
        format!(
            "{LISTENER}access_log = {{ path = \"{name}\", format = \"%U%q\" }}\n{}",
            files("one")
        )
    };
    let lines = |name: &str| {
        let log = std::fs::read_to_string(served.site.path(name)).unwrap_or_default();
        log.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    served.reload(&log("first.log"));
    for number in 0..20 {
        assert_eq!(served.text(&format!("/a.txt?{number}")), "one");
    }
    served.reload(&log("second.log"));
    assert_eq!(served.text("/a.txt?after"), "one");
    wait_for("the lines of both logs", || {
        (lines("first.log").len() == 20 && lines("second.log").len() == 1).then_some(())
    });
    // The same log goes on.
    served.reload(&log("second.log"));
    assert_eq!(served.text("/a.txt?again"), "one");
    wait_for("another line", || (lines("second.log").len() == 2).then_some(()));
}

#[test]
fn certificates_of_other_files_are_for_new_connections() {
    let authority = Authority::new("Kirin test authority");
    let (first, second) = (authority.issue(&["a.test"]), authority.issue(&["a.test"]));
    let site = Site::new().with("one/a.txt", "one");
    first.write(&site, "first");
    second.write(&site, "second");
    let config = |name: &str, more: &str| {
        format!(
            "{LISTENER}[listener.tls]\ncertificates = [{{ chain = \"{name}.pem\", key = \"{name}.key\" }}]\n{more}{}",
            files("one")
        )
    };
    let served = Served::start(site, &config("first", ""));
    let setup = TlsSetup::new(&authority, None, TLSv1_3);
    let connect =
        || TlsClient::connect(served.kirin.address(), "a.test", &setup).expect("a handshake");
    let mut before = connect();
    assert!(before.server_is(&first));
    let said = served.reload(&config("second", "hsts = \"1d\"\n"));
    assert!(said.contains("tls.certificates") && said.contains("tls.hsts added \"1d\""), "{said}");
    let mut after = connect();
    assert!(after.server_is(&second));
    for client in [&mut before, &mut after] {
        let reply = client.get_and_close("/a.txt");
        assert!(reply.ends_with("one"), "{reply}");
        assert!(reply.contains("Strict-Transport-Security: max-age=86400"), "{reply}");
    }
    // A file that has changed is read again, without a change of the configuration.
    let third = authority.issue(&["a.test"]);
    third.write(&served.site, "second");
    let said = printed(&served.command(&["reload"]));
    assert_eq!(said, "the configuration is the same\nreloaded\n");
    let setup = TlsSetup::new(&authority, None, TLSv1_3);
    let mut other =
        TlsClient::connect(served.kirin.address(), "a.test", &setup).expect("a handshake");
    assert!(other.server_is(&third));
    assert!(other.get_and_close("/a.txt").ends_with("one"));
}

#[test]
fn reloads_at_once_are_carried_out_one_after_the_other() {
    let served = two_directories();
    served.write(&with_routes(&files("two")));
    let all: Vec<String> = std::thread::scope(|scope| {
        let reload = || printed(&served.command(&["reload"]));
        let running: Vec<_> = (0..4).map(|_| scope.spawn(reload)).collect();
        running.into_iter().map(|one| one.join().expect("a reload")).collect()
    });
    let changed = all.iter().filter(|said| said.contains("files:two")).count();
    assert_eq!(changed, 1, "{all:?}");
    assert_eq!(served.text("/a.txt"), "two");
}

#[test]
fn a_target_of_the_command_line_can_be_reloaded_too() {
    let site = Site::new().with("app.psgi", "sub { [200, [], ['first']] }");
    let kirin = Kirin::start_with(&site, &["serve", "--listen", "127.0.0.1:0", "app.psgi"]);
    assert_eq!(kirin.get("/").text(), "first");
    let served = Served { kirin, site };
    std::fs::write(served.site.path("app.psgi"), "sub { [200, [], ['second']] }").expect("a file");
    let said = printed(&served.command(&["reload", "--apps", "--target", "app.psgi"]));
    assert_eq!(said, "the configuration is the same\napp `web`: loaded again\nreloaded\n");
    wait_for("the new application", || (served.text("/") == "second").then_some(()));
}

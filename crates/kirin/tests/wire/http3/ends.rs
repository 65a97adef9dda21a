//! Ends of HTTP/3 connections: of the program, of a configuration, of limits and of patience.

use rustix::process::Signal;

use super::clients::head_by_curl;
use super::*;

#[test]
fn term_answers_what_is_in_progress_and_names_the_last_request() {
    let mut served = serve(CONFIG);
    let mut client = served.connect();
    let mut idle = served.connect();
    assert_eq!(idle.get("/hello.txt").status(), 200);
    let stream = client.begin("/app/wait", json!({}));
    served.site.wait_for_files("begun.", 1);
    served.kirin.signal(Signal::TERM);
    let warning = client.ask(&json!({ "do": "goaway", "count": 1 }));
    // The first number warns, and refuses nothing.
    assert!(warning["numbers"][0].as_u64() > Some(1 << 60), "{warning}");
    let late = client.begin("/hello.txt", json!({}));
    let goaways = client.ask(&json!({ "do": "goaway", "count": 2 }));
    let last = goaways["numbers"][1].as_u64().expect("a number");
    // It is the first request that is not answered (RFC 9114 section 5.2).
    assert!(goaways["numbers"].as_array().expect("numbers").len() == 2, "{goaways}");
    assert!((stream + 4..=late + 4).contains(&last), "{goaways}, requests {stream} and {late}");
    std::fs::write(served.site.path("go"), "").expect("a file");
    let replies = client.finish(&[stream, late]);
    assert_eq!((replies[0].status(), replies[0].text()), (200, "waited"), "{:?}", replies[0]);
    if last > late {
        assert_eq!(replies[1].text(), "hello\n", "{:?}", replies[1]);
    } else {
        assert_eq!(replies[1].0["reset"], 0x10b, "H3_REQUEST_REJECTED: {:?}", replies[1]);
    }
    for client in [&mut client, &mut idle] {
        let closed = client.wait_closed();
        assert_eq!((&closed["kind"], &closed["code"]), (&json!("application"), &json!(0x100)));
    }
    assert_eq!(served.kirin.wait().code(), Some(0), "{}", served.kirin.log());
    assert!(!served.kirin.whole_log().contains("panic"), "{}", served.kirin.whole_log());
}

#[test]
fn a_reload_keeps_connections_and_new_ones_get_the_new_certificate() {
    let served = serve(CONFIG);
    let connect = json!({ "do": "connect", "url": served.url() });
    let mut client = Http3Client::start();
    let before = client.ask(&connect);
    let stream = client.begin("/app/wait", json!({}));
    served.site.wait_for_files("begun.", 1);
    served.authority.issue(&["localhost"]).write(&served.site, "a");
    // The configuration is another one, too.
    let config = with_port(CONFIG, &served.port) + "index = [\"hello.txt\"]\n";
    std::fs::write(served.site.path("kirin.toml"), config).expect("kirin.toml");
    let output = run_kirin(&served.site, &["reload"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(client.get("/").text(), "hello\n", "a connection from before");
    std::fs::write(served.site.path("go"), "").expect("a file");
    let reply = client.finish(&[stream]).remove(0);
    assert_eq!((reply.status(), reply.text()), (200, "waited"), "{reply:?}");
    let mut other = Http3Client::start();
    let after = other.ask(&connect);
    assert_ne!(before["serial"], after["serial"], "the certificate");
    assert_eq!(other.get("/").text(), "hello\n");
    assert_eq!(client.get("/hello.txt").text(), "hello\n", "it still serves");
}

#[test]
fn connections_of_one_address_are_limited() {
    let limit = "connections_per_address = 3\naccess_log";
    let served = serve(&CONFIG.replacen("access_log", limit, 1));
    let mut clients: Vec<Http3Client> = (0..3).map(|_| served.connect()).collect();
    let connect = json!({ "do": "connect", "url": served.url() });
    let refused = Http3Client::start().try_ask(&connect).expect_err("a fourth connection");
    assert!(refused.contains("'code': 2,") || refused.contains("CONNECTION_REFUSED"), "{refused}");
    served.kirin.wait_for_log("too many from one address");
    for client in &mut clients {
        assert_eq!(client.get("/hello.txt").status(), 200, "the others go on");
    }
    clients.pop().expect("a client").ask(&json!({ "do": "close" }));
    wait_for("room for another", || Http3Client::start().try_ask(&connect).ok());
}

#[test]
fn while_many_handshakes_are_open_a_client_must_show_its_address() {
    let served = serve(&CONFIG.replace("threads = 2", "threads = 1"));
    let connect = json!({ "do": "connect", "url": served.url() });
    let answer = Http3Client::start().ask(&connect);
    assert_eq!(answer["retried"], false, "{answer}");
    let mut idle = Http3Client::start();
    idle.ask(&json!({ "do": "half_open", "url": served.url(), "count": 64 }));
    let mut client = wait_for("a Retry", || {
        let mut client = Http3Client::start();
        (client.ask(&connect)["retried"] == true).then_some(client)
    });
    assert_eq!(client.get("/hello.txt").text(), "hello\n");
}

#[test]
fn a_blocked_client_gets_403_and_no_new_connection() {
    let served = serve(&format!("{CONFIG}[admin]\naddress = \"unix:admin.sock\"\n"));
    let mut client = served.connect();
    assert_eq!(client.get("/hello.txt").status(), 200);
    let kirin = |words: &[&str]| {
        let output = run_kirin(&served.site, words);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    kirin(&["block", "127.0.0.1", "--for", "10m"]);
    assert_eq!(client.get("/hello.txt").status(), 403);
    // A blocked client gets no answer, so it goes on trying until the block ends.
    let mut other = Http3Client::start();
    other.tell(&json!({ "do": "connect", "url": served.url() }));
    kirin(&["unblock", "127.0.0.1"]);
    other.answer().expect("a connection behind the block");
    assert_eq!(other.get("/hello.txt").status(), 200);
    assert_eq!(client.get("/hello.txt").status(), 200);
}

#[test]
fn a_slow_head_is_ended_and_the_connection_stays() {
    let served = serve(&CONFIG.replace("access_log", "head_timeout = \"2s\"\naccess_log"));
    let mut client = served.connect();
    let stream = client.ask(&json!({ "do": "part_of_head" }))["stream"].as_u64();
    let reply = client.finish(&[stream.expect("a stream")]).remove(0);
    assert_eq!(reply.0["reset"], 0x10d, "H3_REQUEST_INCOMPLETE: {reply:?}");
    assert_eq!(client.get("/hello.txt").text(), "hello\n");
}

#[test]
fn a_client_that_reads_nothing_is_ended_and_its_bytes_are_counted() {
    let config = CONFIG.replace("access_log", "write_timeout = \"2s\"\naccess_log");
    let served = serve(&format!("{config}{ADMIN}"));
    let held = || served.kirin.status()["clients"]["memory_bytes"].as_u64().expect("bytes");
    assert_eq!(held(), 0);
    let mut client = served.connect();
    let stream = client.begin("/large.bin", json!({ "unread": true }));
    client.ask(&json!({ "do": "look", "stream": stream, "head": true }));
    // The client goes on with its connection, and opens no window.
    client.tell(&json!({ "do": "finish", "streams": [stream] }));
    let counted = wait_for("bytes that are counted", || Some(held()).filter(|held| *held > 0));
    // A connection has at most its windows (docs/http3.md).
    assert!(counted <= (512 + 1024 + 64) * 1024, "{counted}");
    served.wait_for_line("\"GET /large.bin HTTP/3.0\" 200 ");
    let mut answer = client.answer().expect("an end");
    let reply = Http3Reply(answer["responses"][0].take());
    assert!(!reply.is_complete() && !reply.0["reset"].is_null(), "{reply:?}");
    assert!(reply.length() < 3_000_000, "{} bytes", reply.length());
    assert_eq!(client.get("/hello.txt").text(), "hello\n", "the connection stays");
    client.ask(&json!({ "do": "close" }));
    wait_for("nothing to be held", || (held() == 0).then_some(()));
}

/// Returns a site whose listener has a port of which UDP is taken, with `http3` in its `tls`.
fn with_taken_port(http3: &str) -> (Site, LeasedPort, std::net::UdpSocket, String) {
    let site = Site::new();
    Authority::new("Kirin test authority").issue(&["localhost"]).write(&site, "a");
    let port = LeasedPort::lease();
    let taken = std::net::UdpSocket::bind(port.address()).expect("the port");
    let start = CONFIG.split("[[app]]").next().expect("the listener");
    let start = start.replace("http3 = true\n", http3);
    let config = format!("{start}[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n");
    std::fs::create_dir(site.path("public")).expect("a directory");
    std::fs::write(site.path("public/hello.txt"), "hello\n").expect("a file");
    let config = with_port(&config, &port);
    std::fs::write(site.path("kirin.toml"), &config).expect("kirin.toml");
    (site, port, taken, config)
}

fn in_use(port: &LeasedPort) -> String {
    let number = port.number();
    format!("the UDP port of 127.0.0.1:{number}, which HTTP/3 needs, is in use by another process")
}

#[test]
fn a_udp_port_that_is_taken_is_an_error_if_http3_is_asked_for() {
    let (site, port, taken, _) = with_taken_port("http3 = true\n");
    for words in [["serve", "--config", "kirin.toml"], ["check", "--config", "kirin.toml"]] {
        let (succeeded, said) = said(&site, &words);
        assert!(!succeeded && said.contains(&in_use(&port)), "{words:?}: {said}");
    }
    drop(taken);
    let (succeeded, said) = said(&site, &["check", "--config", "kirin.toml"]);
    assert!(succeeded && !said.contains("UDP"), "{said}");
}

#[test]
fn without_a_free_udp_port_there_is_no_http3_unless_it_is_asked_for() {
    let (site, port, _taken, config) = with_taken_port("");
    let (succeeded, said) = said(&site, &["check", "--config", "kirin.toml"]);
    let warning = format!("warning: {}; HTTP/3 will be off there", in_use(&port));
    assert!(succeeded && said.contains(&warning), "{said}");
    let kirin = Kirin::start(&site, &config);
    kirin.wait_for_log(&format!("{}; HTTP/3 is off there", in_use(&port)));
    let head = head_by_curl(&port, "--http2");
    assert!(head.contains(" 200") && !head.contains("alt-svc"), "{head}");
}

#[test]
fn http3_is_there_unless_it_is_turned_off() {
    // On all addresses of both families.
    let everywhere = CONFIG.replace("127.0.0.1:PORT", "*:PORT");
    let served = serve(&everywhere.replace("http3 = true\n", ""));
    assert!(head_by_curl(&served.port, "--http2").contains("alt-svc: h3="));
    assert_eq!(served.connect().get("/hello.txt").text(), "hello\n");
    let served = serve(&CONFIG.replace("http3 = true", "http3 = false"));
    assert!(!head_by_curl(&served.port, "--http2").contains("alt-svc"));
    // The port is free for others.
    std::net::UdpSocket::bind(served.port.address()).expect("the UDP port");
}

#[test]
fn http3_on_a_unix_socket_is_an_error() {
    let (site, _port, _taken, config) = with_taken_port("http3 = true\n");
    let address = config.lines().find(|line| line.starts_with("address")).expect("the address");
    let config = config.replace(address, "address = \"unix:web.sock\"");
    std::fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
    let (succeeded, said) = said(&site, &["check", "--config", "kirin.toml"]);
    let message = "HTTP/3 needs a UDP port: a listener on a unix socket has none";
    assert!(!succeeded && said.contains(message), "{said}");
}

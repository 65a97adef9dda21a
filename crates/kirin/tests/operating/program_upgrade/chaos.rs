//! Chaos: clients of eight kinds, while one program after the other takes over. No request is lost
//! or answered wrongly, no acknowledged write is lost, and no memcached client connects again.
//!
//! `make test` runs ten upgrades, `make chaos` fifty (`KIRIN_CHAOS=long`).

use std::net::SocketAddr;
use std::time::Instant;

use kirin_tests::{Client, Http2Client, LeasedPort, SetAtEnd, scripts};

use super::{Service, has_ended};
use crate::reload::chaos::{self, Clients, PIPELINED, Run};

/// Messages of a tunnel. The old program finishes it, and has only so much time.
const MESSAGES: u64 = 200;

fn size() -> (u64, u64) {
    match std::env::var("KIRIN_CHAOS").as_deref() {
        Ok("long") => (1_000_000, 50),
        _ => (50_000, 10),
    }
}

/// Requests on one HTTP/2 connection after the other. A program ends them politely: a stream that
/// it has begun is answered, and others were not begun.
fn http2(run: &Run<'_>) {
    let mut client = Http2Client::connect(run.address);
    run.repeat("HTTP/2", |_| {
        let mut answered = 0;
        for _ in 0..PIPELINED {
            let result = client
                .try_begin("GET", "/file/a.txt", &[], true)
                .and_then(|pending| client.try_finish(pending));
            match result {
                Ok(reply) => {
                    assert_eq!(reply.field("x-variant"), Some(reply.text().as_str()));
                    answered += 1;
                }
                Err(error) => {
                    let is_polite =
                        error.is_go_away() && error.reason() == Some(h2::Reason::NO_ERROR);
                    assert!(is_polite, "{error:?}");
                    client = Http2Client::connect(run.address);
                }
            }
        }
        answered
    });
}

/// Sends messages through one tunnel after the other.
fn web_socket(run: &Run<'_>) {
    let mut tunnel: Option<Client> = None;
    run.repeat("WebSocket", |round| {
        if round % MESSAGES == 0 {
            tunnel = None;
        }
        let client = tunnel.get_or_insert_with(|| {
            let mut client = Client::connect(run.address);
            client.send(
                "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
                 Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
            );
            assert!(client.try_read_until(b"\r\n\r\n"), "an upgrade");
            client
        });
        let message = format!("{round:016}");
        client.send(&message);
        assert!(client.try_read_until(message.as_bytes()), "the tunnel has ended");
        1
    });
}

#[test]
fn chaos() {
    let (requests, upgrades) = size();
    let backends = [chaos::backend(), chaos::backend()];
    let port = LeasedPort::lease();
    let extra: SocketAddr = ([127, 0, 0, 1], port.number()).into();
    let config = chaos::config(0, &backends, extra);
    let service = Service::start_in(chaos::site(), &config);
    scripts::memcached(&service.site).set("/page", b"text/plain\r\nstored");
    let run = Run::new(service.address(), &service.site);
    let clients: [Clients; 8] = [
        chaos::kept,
        chaos::new_connections,
        http2,
        chaos::uploads,
        chaos::streams,
        web_socket,
        chaos::psgi,
        chaos::memcached,
    ];
    let began = Instant::now();
    run.with_clients(&clients, || {
        let _over = SetAtEnd(&run.is_over);
        for number in 1..=upgrades {
            run.wait_for_progress(requests * number / upgrades);
            let before = service.pid().expect("a pid");
            let (code, said) = service.command(&["upgrade"]);
            assert!(code == Some(0) && said.starts_with("upgraded"), "{said}");
            kirin_tests::wait_for("the end of the old program", || has_ended(before).then_some(()));
        }
    });
    let items = run.check_store();
    println!(
        "{}{upgrades} upgrades. {items} items of the store are as written.",
        run.table(began.elapsed().as_secs_f64())
    );
    let log = service.first.log();
    assert!(!log.contains("panicked") && !log.contains("ERROR"), "{log}");
}

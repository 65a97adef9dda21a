//! A handler that panics ends its own connection and no other.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;

use kirin_http::{
    Answer, AnsweredBy, Body, Handler, ListenAddress, Origin, RequestHead, Response, StatusCode,
};
use kirin_server::{InForce, Limits, Listener, Observers, Server, listener};

struct Panicking;

impl Handler for Panicking {
    fn answer(&self, request: &RequestHead<'_>, _origin: Origin<'_>) -> Answer {
        match request.path {
            "/now" => panic!("expected by this test"),
            "/later" => Answer::later(|_body| async {
                tokio::task::yield_now().await;
                panic!("expected by this test")
            }),
            _ => Answer::Now(Response::new(
                AnsweredBy::SERVER,
                StatusCode::OK,
                Body::from(b"hello".to_vec()),
            )),
        }
    }
}

fn ask(stream: &mut TcpStream, path: &str) -> String {
    let request = format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut buffer = [0; 1024];
    // The client sees an end or a reset: an empty reply.
    let count = stream.read(&mut buffer).unwrap_or(0);
    String::from_utf8_lossy(&buffer[..count]).into_owned()
}

#[test]
fn a_panic_ends_its_connection_and_no_other() {
    let wanted: ListenAddress = "127.0.0.1:0".parse().expect("an address");
    let bound = Listener::bind(&wanted, 1).expect("a port").remove(0);
    let address = bound.address().expect("its address");
    let ListenAddress::Tcp(to) = address.clone() else { panic!("TCP was asked for") };
    std::thread::spawn(move || {
        let runtime = tokio::runtime::LocalRuntime::new().expect("a runtime");
        runtime.block_on(async {
            let server = InForce::new(Server::new(
                Rc::new(Panicking),
                address,
                Limits::default(),
                Observers::default(),
            ));
            listener::accept(bound, server).await
        })
    });
    let connect = |to: SocketAddr| TcpStream::connect(to).expect("accepted");
    let mut other = connect(to);
    assert!(ask(&mut other, "/").ends_with("hello"));
    for path in ["/now", "/later"] {
        for _ in 0..3 {
            assert_eq!(ask(&mut connect(to), path), "", "{path}");
        }
        assert!(ask(&mut other, "/").ends_with("hello"), "after {path}");
        assert!(ask(&mut connect(to), "/").ends_with("hello"), "after {path}");
    }
}

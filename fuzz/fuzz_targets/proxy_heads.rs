//! Messages that the proxy passes on. A parsed request is sent as exactly one request with its
//! original framing, and no head of a response panics.
#![no_main]

use std::mem::MaybeUninit;

use kirin_http::request::{FieldStorage, HeadLimits, MAX_FIELDS, Parsed, parse};
use kirin_http::{BodyLength, Client, ListenAddress, Origin, Peer, RequestNotes};
use kirin_proxy::request_head::{HeadPolicy, OutgoingFraming, encode};
use kirin_proxy::upstream_response::read_head;
use kirin_proxy::{ForwardedPolicy, HostPolicy};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    for is_head in [false, true] {
        if let Ok(Some((_, length))) = read_head(input, is_head, Some("kirin")) {
            assert!(length <= input.len());
        }
    }
    let mut storage: FieldStorage<'_> = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let Ok(Parsed::Complete(request, _)) = parse(input, &mut storage, &HeadLimits::default())
    else {
        return;
    };
    let local = ListenAddress::Unix("/s".into());
    let (peer, client) = (Peer::Unix, Client::NotRequested);
    let notes = RequestNotes::default();
    let origin = Origin {
        peer: &peer,
        local: &local,
        secure: false,
        client,
        proxy: None,
        now: 0,
        notes: &notes,
    };
    let host = if request.host.is_empty() { HostPolicy::Upstream } else { HostPolicy::Client };
    let policy = HeadPolicy { host: &host, forwarded: ForwardedPolicy::Both, via: Some("kirin"), given: &[] };
    let mut head = encode(&request, request.target, origin, policy);
    for (framing, expected) in [
        (OutgoingFraming::Nothing, BodyLength::None),
        (OutgoingFraming::Length(7), BodyLength::Exact(7)),
        (OutgoingFraming::Chunked, BodyLength::Chunked),
    ] {
        head.finish(framing, "server");
        let sent = head.as_http1();
        let mut storage: FieldStorage<'_> = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let limits = HeadLimits { head_bytes: 1 << 20, request_line_bytes: 1 << 20 };
        match parse(sent, &mut storage, &limits) {
            Ok(Parsed::Complete(again, length)) => {
                assert_eq!((length, again.body), (sent.len(), expected));
                assert_eq!((again.method, again.target), (request.method.clone(), request.target));
            }
            // Kirin adds some fields, even if there are already as many as allowed.
            Err(kirin_http::request::Reject::HeadTooLarge) => {}
            other => panic!("{:?} is not one request: {other:?}", String::from_utf8_lossy(sent)),
        }
    }
});

//! Requests for unit tests.

use std::mem::MaybeUninit;

use kirin_http::request::{self, Parsed};
use kirin_http::{Client, ListenAddress, Origin, Peer, RequestPath};
use kirin_store::Namespace;

use super::answers::NoRoutes;
use super::context::{Request, SharedHead};
use super::lineage::Lineage;

/// Calls `work` with the request of this head, which is without the empty line at its end.
pub fn with_request<R>(head: &str, work: impl FnOnce(&Request<'_>) -> R) -> R {
    let text = format!("{head}\r\n\r\n");
    let mut storage = [const { MaybeUninit::uninit() }; request::MAX_FIELDS];
    let Ok(Parsed::Complete(head, _)) =
        request::parse(text.as_bytes(), &mut storage, &Default::default())
    else {
        panic!("{text}")
    };
    let peer = Peer::Tcp("192.0.2.7:1234".parse().unwrap());
    let local = ListenAddress::Tcp("127.0.0.1:8443".parse().unwrap());
    let client = Client::NotRequested;
    let origin = Origin {
        peer: &peer,
        local: &local,
        secure: false,
        client,
        proxy: None,
        now: 7,
        notes: &kirin_http::RequestNotes::default(),
    };
    let (lineage, kept) = (Lineage::default(), SharedHead::new());
    let path = RequestPath::parse(head.path).unwrap();
    let namespace = Namespace::default();
    work(&Request::new(&head, origin, &path, &namespace, &lineage, &NoRoutes, &kept))
}

//! The ways into the store, and the ways out.

use super::{BOB, ELSEWHERE, LIAR, MARI, OFFICE, Protection, Running, ZOE, ask, stores};

/// A way into the store, under the key `/app/x`.
pub struct In {
    pub name: &'static str,
    /// The protection of the route that stores.
    pub protection: Protection,
    pub store: fn(&mut Running),
}

pub const WAYS_IN: [In; 17] = [
    In {
        name: "Kirin-Store",
        protection: Protection::Password,
        store: |r| stores(r, "GET", "/password/x", BOB),
    },
    In {
        name: "Kirin-Store of a streamed response",
        protection: Protection::Password,
        store: |r| {
            stores(r, "GET", "/password/x?stream", BOB);
            // The key of the stream includes the query.
            let page = r.store.get("/app/x?stream").expect("a page");
            r.store.set("/app/x", &page);
        },
    },
    In {
        name: "Kirin-Store with a key",
        protection: Protection::Password,
        store: |r| stores(r, "GET", "/password/key", BOB),
    },
    In {
        name: "Kirin-Store of a POST with a key",
        protection: Protection::Password,
        store: |r| stores(r, "POST", "/password/key", &format!("{BOB}Content-Length: 0\r\n")),
    },
    In {
        name: "Kirin-Store of a route with a cache",
        protection: Protection::Password,
        store: |r| stores(r, "GET", "/password-cached/x", BOB),
    },
    In {
        name: "Kirin-Store of a part",
        protection: Protection::Password,
        store: |r| stores(r, "GET", "/page/push", BOB),
    },
    In {
        name: "Kirin-Store, rate",
        protection: Protection::Rate,
        store: |r| stores(r, "GET", "/rate/x", ""),
    },
    In {
        name: "Kirin-Store, clients",
        protection: Protection::Office,
        store: |r| stores(r, "GET", "/office/x", OFFICE),
    },
    In {
        name: "Kirin-Store of a streamed response, clients",
        protection: Protection::Office,
        store: |r| {
            stores(r, "GET", "/office/x?stream", OFFICE);
            let page = r.store.get("/app/x?stream").expect("a page");
            r.store.set("/app/x", &page);
        },
    },
    In {
        name: "Kirin-Store of a POST with a key, clients",
        protection: Protection::Office,
        store: |r| stores(r, "POST", "/office/key", &format!("{OFFICE}Content-Length: 0\r\n")),
    },
    In {
        name: "Kirin-Store of a part, clients",
        protection: Protection::Office,
        store: |r| stores(r, "GET", "/page/push-office", OFFICE),
    },
    In {
        name: "Kirin-Store, auth_request",
        protection: Protection::SignedOn,
        store: |r| stores(r, "GET", "/signed/x", MARI),
    },
    In {
        name: "Kirin-Store of a route with auth_request and a cache",
        protection: Protection::SignedOn,
        store: |r| stores(r, "GET", "/signed-cached/x", MARI),
    },
    In {
        name: "Kirin-Store of a part, auth_request",
        protection: Protection::SignedOn,
        store: |r| stores(r, "GET", "/page/push-signed", MARI),
    },
    In {
        name: "Kirin-Store, open",
        protection: Protection::None,
        store: |r| stores(r, "GET", "/open/x", ""),
    },
    In {
        name: "memcached set",
        protection: Protection::None,
        store: |r| r.store.set("/app/x", b"text/html\r\nsecret"),
    },
    In {
        name: "kirin.store.set",
        protection: Protection::None,
        store: |r| assert_eq!(ask(r, "GET", "/lua/set", "").status, 200),
    },
];

/// A way out of the store. It reports whether the item `/app/x` is shown.
pub struct Out {
    pub name: &'static str,
    pub shows: fn(&mut Running) -> bool,
    /// The protections whose pages come out this way.
    pub gives: &'static [Protection],
}

fn shows(running: &Running, target: &str, fields: &str) -> bool {
    let reply = ask(running, "GET", target, fields);
    assert!(!reply.head.contains("Kirin-Protection"), "{}", reply.head);
    reply.text().contains("secret")
}

const OPEN: &[Protection] = &[Protection::None];
const MEMBERS: &[Protection] = &[Protection::None, Protection::Password];
const SIGNED_ON: &[Protection] = &[Protection::None, Protection::SignedOn];
const COLLEAGUES: &[Protection] = &[Protection::None, Protection::Office];
const ALL: &[Protection] = &[
    Protection::None,
    Protection::Password,
    Protection::Rate,
    Protection::Office,
    Protection::SignedOn,
];

pub const WAYS_OUT: [Out; 37] = [
    Out {
        name: "store behind the same auth_request",
        shows: |r| shows(r, "/same-signed/x", MARI),
        gives: SIGNED_ON,
    },
    Out {
        name: "the same for another visitor",
        shows: |r| shows(r, "/same-signed/x", BOB),
        gives: &[],
    },
    Out {
        name: "store behind another auth_request",
        shows: |r| shows(r, "/other-signed/x", MARI),
        gives: OPEN,
    },
    Out {
        name: "include virtual of the same auth_request, by another visitor",
        shows: |r| shows(r, "/page/same-signed", ""),
        gives: &[],
    },
    Out {
        name: "include key behind the same auth_request",
        shows: |r| shows(r, "/signed-page/key", MARI),
        gives: SIGNED_ON,
    },
    Out {
        name: "fetch of a route with the same auth_request",
        shows: |r| shows(r, "/lua/fetch?/same-signed/x", MARI),
        gives: SIGNED_ON,
    },
    Out {
        name: "fetch of a route with the same auth_request, by another visitor",
        shows: |r| shows(r, "/lua/fetch?/same-signed/x", OFFICE),
        gives: &[],
    },
    Out { name: "store of another route", shows: |r| shows(r, "/app/x", ""), gives: OPEN },
    Out {
        name: "the same, with a password that nobody asks for",
        shows: |r| shows(r, "/app/x", BOB),
        gives: OPEN,
    },
    Out {
        name: "HEAD",
        shows: |r| {
            let mut c = r.kirin.connect();
            c.send("HEAD /app/x HTTP/1.1\r\nHost: a\r\n\r\n");
            c.read_head_reply().status == 200
        },
        gives: OPEN,
    },
    Out {
        name: "405 in place of 404",
        shows: |r| ask(r, "POST", "/app/x", "Content-Length: 0\r\n").status == 405,
        gives: OPEN,
    },
    Out {
        name: "store behind another password",
        shows: |r| shows(r, "/other/x", ZOE),
        gives: OPEN,
    },
    Out {
        name: "store behind another rate limit",
        shows: |r| shows(r, "/other-rate/x", ""),
        gives: OPEN,
    },
    Out {
        name: "store behind the same password",
        shows: |r| shows(r, "/same/x", BOB),
        gives: MEMBERS,
    },
    Out { name: "the same without the password", shows: |r| shows(r, "/same/x", ""), gives: &[] },
    Out {
        name: "store of another route, for a client that nobody asks for",
        shows: |r| shows(r, "/app/x", OFFICE),
        gives: OPEN,
    },
    Out {
        name: "store for other clients, one of both",
        shows: |r| shows(r, "/other-office/x", OFFICE),
        gives: OPEN,
    },
    Out {
        name: "store for the same clients",
        shows: |r| shows(r, "/same-office/x", OFFICE),
        gives: COLLEAGUES,
    },
    Out {
        name: "the same for another client",
        shows: |r| shows(r, "/same-office/x", ELSEWHERE),
        gives: &[],
    },
    Out {
        name: "the same for a client that names the office itself",
        shows: |r| shows(r, "/same-office/x", LIAR),
        gives: &[],
    },
    Out { name: "a closed route", shows: |r| shows(r, "/closed/x", OFFICE), gives: &[] },
    Out {
        name: "a route in maintenance",
        shows: |r| shows(r, "/maintained/x", OFFICE),
        gives: &[],
    },
    Out {
        name: "include virtual of the same clients, by another",
        shows: |r| shows(r, "/page/same-office", ELSEWHERE),
        gives: &[],
    },
    Out {
        name: "include virtual of a closed route",
        shows: |r| shows(r, "/page/closed", OFFICE),
        gives: &[],
    },
    Out {
        name: "include virtual of a route in maintenance",
        shows: |r| shows(r, "/page/maintained", OFFICE),
        gives: &[],
    },
    Out {
        name: "include key for the same clients",
        shows: |r| shows(r, "/office-page/key", OFFICE),
        gives: COLLEAGUES,
    },
    Out {
        name: "fetch of a route for the same clients",
        shows: |r| shows(r, "/lua/fetch?/same-office/x", OFFICE),
        gives: COLLEAGUES,
    },
    Out {
        name: "fetch of a route for the same clients, by another",
        shows: |r| shows(r, "/lua/fetch?/same-office/x", ELSEWHERE),
        gives: &[],
    },
    Out {
        name: "fetch of a closed route",
        shows: |r| shows(r, "/lua/fetch?/closed/x", OFFICE),
        gives: &[],
    },
    Out { name: "include key", shows: |r| shows(r, "/page/key", BOB), gives: OPEN },
    Out {
        name: "include key behind the same password",
        shows: |r| shows(r, "/members-page/key", BOB),
        gives: MEMBERS,
    },
    Out {
        name: "include key in a file",
        shows: |r| shows(r, "/files/include.html", BOB),
        gives: OPEN,
    },
    Out { name: "include virtual", shows: |r| shows(r, "/page/virtual", BOB), gives: OPEN },
    Out {
        name: "include virtual of the same password, without it",
        shows: |r| shows(r, "/page/same", ""),
        gives: &[],
    },
    Out { name: "an error page", shows: |r| shows(r, "/error/none", BOB), gives: OPEN },
    Out { name: "kirin.store.get", shows: |r| shows(r, "/lua/get", ""), gives: ALL },
    Out { name: "memcached get", shows: |r| r.store.get("/app/x").is_some(), gives: ALL },
];

//! Requests for a response that is just being stored. They get it while it arrives.
//!
//! The test controls every byte of the server behind Kirin. It sends them when it has seen what the
//! clients have got so far.

mod attached;
mod requests;

use std::sync::Mutex;
use std::sync::mpsc::{self, Receiver};

use kirin_tests::{
    ADMIN, Backend, BackendConnection, Client, Kirin, ReceivedRequest, Reply, Site, wait_limit,
};
use serde_json::Value;

const CHUNKED: &str = "Transfer-Encoding: chunked";

struct Tested {
    site: Site,
    kirin: Kirin,
    arrived: Receiver<(ReceivedRequest, BackendConnection)>,
    _backend: Backend,
}

/// A request that has arrived at the server, and is answered by the test.
struct Call {
    asked: ReceivedRequest,
    connection: BackendConnection,
}

fn serve() -> Tested {
    let (arrive, arrived) = mpsc::channel();
    let arrive = Mutex::new(arrive);
    let backend = Backend::start(move |mut connection| {
        if let Some(asked) = connection.read_request() {
            let _ = arrive.lock().expect("a channel").send((asked, connection));
        }
    });
    let config = format!(
        "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"32MB\"\nitem_limit = \"2MB\"\n\
         memcached = [\"unix:m.sock\"]\n{ADMIN}\
         [[upstream]]\nname = \"web\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:web\"]\ncache = true\n\
         [[route]]\npath = \"/small\"\ntry = [\"proxy:web\"]\ncache = {{ item_limit = \"64KB\" }}\n\
         [[route]]\npath = \"/reload\"\ntry = [\"proxy:web\"]\ncache = {{ reload = true }}\n\
         [[route]]\npath = \"/zip\"\ntry = [\"proxy:web\"]\ncache = true\ncompress = true\n\
         [[route]]\npath = \"/ssi\"\ntry = [\"store\", \"proxy:web\"]\ncache = true\nssi = true\n",
        backend.address()
    );
    let site = Site::new();
    let kirin = Kirin::start(&site, &config);
    Tested { site, kirin, arrived, _backend: backend }
}

impl Tested {
    /// Returns the next request that arrives.
    fn call(&self) -> Call {
        let (asked, connection) =
            self.arrived.recv_timeout(wait_limit()).expect("a request at the server");
        Call { asked, connection }
    }

    /// Checks that no other request has arrived. Answered requests have arrived before.
    fn assert_nobody_else_asked(&self) {
        assert!(self.arrived.try_recv().is_err(), "another request at the server");
    }

    /// Sends a GET on its own connection, and does not wait for it.
    fn begin(&self, target: &str, fields: &str) -> Client {
        let mut client = self.kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
        client
    }

    fn begin_many(&self, count: usize, target: &str) -> Vec<Client> {
        (0..count).map(|_| self.begin(target, "")).collect()
    }

    fn counts(&self) -> Value {
        self.kirin.status()["cache"].clone()
    }
}

impl Call {
    /// Answers 200 with `framing` and these fields.
    fn head(&mut self, framing: &str, fields: &str) -> &mut Self {
        let about = "Content-Type: text/html\r\nConnection: close";
        self.send(format!("HTTP/1.1 200 OK\r\n{about}\r\n{framing}\r\n{fields}\r\n"))
    }

    fn send(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        assert!(self.connection.send(bytes), "nobody reads from the server");
        self
    }

    fn chunk(&mut self, bytes: impl AsRef<[u8]>) -> &mut Self {
        let bytes = bytes.as_ref();
        self.send([format!("{:x}\r\n", bytes.len()).as_bytes(), bytes, b"\r\n"].concat())
    }

    fn last_chunk(&mut self) -> &mut Self {
        self.send("0\r\n\r\n")
    }
}

fn status(reply: &Reply) -> &str {
    reply.field("cache-status").unwrap_or_else(|| panic!("no Cache-Status: {}", reply.head))
}

fn is_collapsed(reply: &Reply) -> bool {
    // The application has answered 200.
    let forwarded = match reply.status {
        200 => "Kirin; fwd=uri-miss; ttl=",
        _ => "Kirin; fwd=uri-miss; fwd-status=200; ttl=",
    };
    status(reply).starts_with(forwarded) && status(reply).ends_with("; collapsed")
}

const MINUTE: &str = "Cache-Control: max-age=60\r\n";

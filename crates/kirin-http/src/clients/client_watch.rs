//! Watches whether the client of a waiting request is still connected.
//!
//! A handler whose request waits in a queue uses it, so that it does no work for a client that has
//! disconnected.

use std::future::{pending, poll_fn};
use std::rc::Rc;
use std::task::{Context, Poll};

/// A client that can be watched.
pub trait WatchedClient {
    /// Returns ready when the client has disconnected. Called only while nothing is written to it.
    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()>;

    /// Ends the watch.
    fn end_watch(&self);

    /// Returns whether the client can be watched while the body of its request is read.
    fn is_apart_from_body(&self) -> bool;
}

/// The watch over the client of one request.
#[derive(Clone)]
pub struct ClientWatch(Rc<dyn WatchedClient>);

impl ClientWatch {
    /// Returns the watch over `client`.
    pub fn new(client: Rc<dyn WatchedClient>) -> Self {
        Self(client)
    }

    /// Returns whether the client can be watched while its body is read. The socket of an HTTP/1
    /// client can have one reader only.
    pub fn is_apart_from_body(&self) -> bool {
        self.0.is_apart_from_body()
    }

    /// Waits until the client has disconnected. It finds out within a second or two.
    ///
    /// A client that has only ended its side may still wait for the response. A probe tells the
    /// difference: a client that has closed its socket answers it with a reset. HTTP/1.0 has no
    /// response that could be a probe, so there only a reset counts.
    ///
    /// Wait for this only while nothing is written to the client.
    pub async fn gone(&self) {
        let _watch = Watch(&*self.0);
        poll_fn(|context| self.0.poll_gone(context)).await;
    }
}

/// Waits until `client` has disconnected, as [`ClientWatch::gone`]; for ever if there is no client
/// to watch.
pub async fn client_gone(client: Option<&ClientWatch>) {
    match client {
        Some(client) => client.gone().await,
        None => pending().await,
    }
}

/// Ends the watch when the wait for it is over or given up.
struct Watch<'a>(&'a dyn WatchedClient);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.end_watch();
    }
}

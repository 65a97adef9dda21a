//! The client of a request that waits for something: is it still there?
//!
//! A handler whose request waits in a queue asks, so that nothing is done for those who have gone.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A client that tells when it has gone.
pub trait WatchedClient {
    /// Ready when the client has gone. Called while nothing is written to it.
    fn poll_gone(&self, context: &mut Context<'_>) -> Poll<()>;

    /// Ends the watch.
    fn end_watch(&self);

    /// Whether the client can be watched while the body of its request is read.
    fn is_apart_from_body(&self) -> bool;
}

/// The client of one request.
#[derive(Clone)]
pub struct ClientWatch(Rc<dyn WatchedClient>);

impl ClientWatch {
    /// Returns the watch over `client`.
    pub fn new(client: Rc<dyn WatchedClient>) -> Self {
        Self(client)
    }

    /// Whether it can be watched while its body is read. An HTTP/1 client's socket has one reader.
    pub fn is_apart_from_body(&self) -> bool {
        self.0.is_apart_from_body()
    }

    /// Waits until the client has gone, within a second or two.
    ///
    /// The end of its sending alone does not mean that: a client may end its side after the request
    /// and wait for the response. Only one that has closed its socket answers the probe with a
    /// reset. HTTP/1.0 has no response that could be a probe, so there only a reset counts.
    ///
    /// To be waited for only while nothing is written to the client.
    pub async fn gone(&self) {
        let _watch = Watch(&*self.0);
        poll_fn(|context| self.0.poll_gone(context)).await;
    }
}

/// Ends the watch when nobody waits any more.
struct Watch<'a>(&'a dyn WatchedClient);

impl Drop for Watch<'_> {
    fn drop(&mut self) {
        self.0.end_watch();
    }
}

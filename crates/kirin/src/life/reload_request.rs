//! The requests for a reload that operators send by the admin listener. The main thread carries
//! them out, one after the other.

use http::StatusCode;
use kirin_http::Response;
use kirin_observe::answers::{json, text};
use kirin_observe::reload::{ReloadWish, Reloaded};
use tokio::sync::{mpsc, oneshot};

/// The most requests that wait while another is carried out.
const MAX_WAITING: usize = 8;

/// A request for a reload. The error is a message for the operator.
pub struct ReloadRequest {
    /// What is wanted.
    pub wish: ReloadWish,
    /// Gets the result.
    pub done: oneshot::Sender<Result<Reloaded, String>>,
}

/// The side of the event loops: sends requests to the main thread.
#[derive(Clone)]
pub struct ReloadRequests(mpsc::Sender<ReloadRequest>);

impl ReloadRequests {
    /// Returns both sides.
    pub fn channel() -> (Self, mpsc::Receiver<ReloadRequest>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        (Self(sender), receiver)
    }

    /// Has the main thread carry out a request. Returns the answer for the operator.
    pub async fn carry_out(&self, wish: ReloadWish) -> Response {
        let (done, is_done) = oneshot::channel();
        match self.0.try_send(ReloadRequest { wish, done }) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                return refused("too many reloads wait already");
            }
            Err(mpsc::error::TrySendError::Closed(_)) => return refused("Kirin stops"),
        }
        match is_done.await {
            Ok(Ok(reloaded)) => json(&serde_json::json!(reloaded)),
            Ok(Err(message)) => text(StatusCode::CONFLICT, &format!("{message}\n")),
            Err(_) => refused("Kirin stops"),
        }
    }
}

fn refused(reason: &str) -> Response {
    text(StatusCode::SERVICE_UNAVAILABLE, &format!("{reason}\n"))
}

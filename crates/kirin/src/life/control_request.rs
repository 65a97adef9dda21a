//! The requests of operators that the main thread carries out, one after the other. They come by
//! the admin listener.

use http::StatusCode;
use kirin_http::Response;
use kirin_observe::answers::{json, text};
use kirin_observe::reload::{ReloadWish, Reloaded};
use kirin_observe::upgrade::{UpgradeWish, Upgraded};
use serde::Serialize;
use tokio::sync::{mpsc, oneshot};

/// The most requests that wait while another is carried out.
const MAX_WAITING: usize = 8;

/// Gets the result of a request. The error is a message for the operator.
pub type Done<T> = oneshot::Sender<Result<T, String>>;

/// A request of an operator.
pub enum ControlRequest {
    /// Reads the configuration again.
    Reload(ReloadWish, Done<Reloaded>),
    /// Starts the program again, and hands over to it.
    Upgrade(UpgradeWish, Done<Upgraded>),
}

/// The side of the event loops: sends requests to the main thread.
#[derive(Clone)]
pub struct ControlRequests(mpsc::Sender<ControlRequest>);

impl ControlRequests {
    /// Returns both sides.
    pub fn channel() -> (Self, mpsc::Receiver<ControlRequest>) {
        let (sender, receiver) = mpsc::channel(MAX_WAITING);
        (Self(sender), receiver)
    }

    /// Has the main thread carry out a request. Returns the answer for the operator.
    pub async fn carry_out<T: Serialize>(
        &self,
        request: impl FnOnce(Done<T>) -> ControlRequest,
    ) -> Response {
        let (done, is_done) = oneshot::channel();
        match self.0.try_send(request(done)) {
            Ok(()) => {}
            Err(mpsc::error::TrySendError::Full(_)) => {
                return refused("too many requests wait already");
            }
            Err(mpsc::error::TrySendError::Closed(_)) => return refused("Kirin stops"),
        }
        match is_done.await {
            Ok(Ok(result)) => json(&serde_json::json!(result)),
            Ok(Err(message)) => text(StatusCode::CONFLICT, &format!("{message}\n")),
            Err(_) => refused("Kirin stops"),
        }
    }
}

fn refused(reason: &str) -> Response {
    text(StatusCode::SERVICE_UNAVAILABLE, &format!("{reason}\n"))
}

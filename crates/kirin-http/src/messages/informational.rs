//! Informational responses, such as 103 Early Hints, ahead of the response that ends an exchange.

use std::cell::Cell;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use http::StatusCode;

use crate::field_lines::FieldLines;
use crate::pace::Pace;

/// The most informational responses in one exchange, and the most bytes of all their heads
/// together.
const MAX_RESPONSES: usize = 64;
const MAX_BYTES: usize = 64 * 1024;

/// What a server or an application may still send before its response. Informational responses wait
/// in memory for clients that do not read.
#[derive(Clone, Copy, Debug)]
pub struct InformationalBudget {
    left: usize,
    left_bytes: usize,
}

impl Default for InformationalBudget {
    fn default() -> Self {
        Self { left: MAX_RESPONSES, left_bytes: MAX_BYTES }
    }
}

impl InformationalBudget {
    /// Counts a response with a head of so many bytes. Returns false if it is too much.
    #[must_use]
    pub fn take(&mut self, bytes: usize) -> bool {
        let left = (self.left.checked_sub(1), self.left_bytes.checked_sub(bytes));
        let (Some(left), Some(left_bytes)) = left else { return false };
        *self = Self { left, left_bytes };
        true
    }
}

/// A client that takes informational responses.
pub trait InformationalClient {
    /// Sends one. `pace` says how slowly the client took those before. A client that is never
    /// waited for does not change it.
    fn send<'a>(
        &'a self,
        status: StatusCode,
        fields: &'a FieldLines,
        pace: &'a mut Pace,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + 'a>>;
}

/// Sends informational responses to one client (RFC 9110 section 15.2). A client that speaks
/// HTTP/1.0 has none.
#[derive(Clone)]
pub struct Informational {
    client: Rc<dyn InformationalClient>,
    /// The pace for all of them together, so that many small ones give a slow reader no more time.
    pace: Cell<Pace>,
}

impl Informational {
    /// Returns a sender to `client`, which may be as slow as `pace` allows.
    pub fn new(client: Rc<dyn InformationalClient>, pace: Pace) -> Self {
        Self { client, pace: Cell::new(pace) }
    }

    /// Sends one. Refuses 100 and 101, which only the engine sends, and a status that is not
    /// informational. Any other error means that the client has disconnected; sending the response
    /// will fail as well.
    pub async fn send(&self, status: StatusCode, fields: &FieldLines) -> io::Result<()> {
        if !status.is_informational() || status.as_u16() <= 101 {
            let message =
                format!("{} is not an informational response to be sent on", status.as_u16());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut pace = self.pace.get();
        let sent = self.client.send(status, fields, &mut pace).await;
        self.pace.set(pace);
        sent
    }
}

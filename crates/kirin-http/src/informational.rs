//! Informational responses, such as 103 Early Hints, ahead of the response that ends an exchange.

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use bytes::Bytes;
use http::StatusCode;

use crate::field_lines::FieldLines;
use crate::http2::{self, Responder};
use crate::io::Io;
use crate::output::Unsent;
use crate::pace::Pace;
use crate::response_writer::write_status_line;
use crate::sending;

/// Informational responses at most before the one that ends an exchange, and bytes of all their
/// heads together.
const MOST: usize = 64;
const MOST_BYTES: usize = 64 * 1024;

/// What a server or an application may still say before its response: it waits in memory for
/// clients that do not read.
#[derive(Clone, Copy, Debug)]
pub struct InformationalBudget {
    left: usize,
    left_bytes: usize,
}

impl Default for InformationalBudget {
    fn default() -> Self {
        Self { left: MOST, left_bytes: MOST_BYTES }
    }
}

impl InformationalBudget {
    /// Counts one with a head of so many bytes. False when it is too much.
    #[must_use]
    pub fn take(&mut self, bytes: usize) -> bool {
        let left = (self.left.checked_sub(1), self.left_bytes.checked_sub(bytes));
        let (Some(left), Some(left_bytes)) = left else { return false };
        *self = Self { left, left_bytes };
        true
    }
}

/// The way for informational responses to one client (RFC 9110 section 15.2). There is none to a
/// client that speaks HTTP/1.0.
#[derive(Clone)]
pub struct Informational(Way);

#[derive(Clone)]
enum Way {
    Http1 {
        io: Rc<Io>,
        /// Of all of them together, so that many small ones give a slow reader no more time.
        pace: Cell<Pace>,
    },
    Http2(Responder),
}

impl Informational {
    pub(crate) fn http1(io: &Rc<Io>) -> Self {
        let pace = Cell::new(Pace::new(io.deadlines.writing));
        Self(Way::Http1 { io: Rc::clone(io), pace })
    }

    pub(crate) fn http2(responder: &Responder) -> Self {
        Self(Way::Http2(Rc::clone(responder)))
    }

    /// Sends one. 100 and 101 are the engine's own and refused, and so is what is not
    /// informational. Any other error means that the client has gone, which the response will find
    /// out.
    pub async fn send(&self, status: StatusCode, fields: &FieldLines) -> io::Result<()> {
        if !status.is_informational() || status.as_u16() <= 101 {
            let message =
                format!("{} is not an informational response to be sent on", status.as_u16());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        match &self.0 {
            Way::Http1 { io, pace: shared } => {
                let mut head = Vec::with_capacity(fields.len_bytes() + 40);
                write_status_line(status, &mut head);
                fields.write_to(&mut head);
                head.extend_from_slice(b"\r\n");
                let mut pace = shared.get();
                let mut unsent = Unsent::one(Bytes::from(head));
                let sent = sending::flush_at(io, &mut pace, &mut unsent).await;
                shared.set(pace);
                sent
            }
            Way::Http2(responder) => {
                http2::send_informational(responder, status, fields).map_err(io::Error::other)
            }
        }
    }
}

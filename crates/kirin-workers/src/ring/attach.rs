//! The offer of a ring to a worker that has greeted.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use tokio::io::AsyncReadExt;
use tokio::net::UnixStream;

use crate::descriptor_message;
use crate::ring::owner::{Parked, RingOwner};
use crate::ring::shared_ring::SharedRing;
use crate::ring::workers::RingSeat;

/// The longest answer of a worker to the offer, in bytes.
const MAX_ANSWER_BYTES: usize = 16;

/// Offers `ring` to the worker at the other end of `stream`. Returns its seat; `None` if it refuses
/// or there is no seat left.
pub(crate) async fn offer<C: Parked>(
    app: &impl RingOwner<C>,
    ring: &Arc<SharedRing<C>>,
    stream: &mut UnixStream,
    pid: u32,
) -> io::Result<Option<RingSeat<C>>> {
    let Some(seat) = ring.take_seat(app, pid) else { return Ok(None) };
    let line = format!("KIRIN/2 seat={}\n", seat.number);
    let eventfds = ring.loops.iter().map(|side| side.eventfd.as_fd());
    let descriptors: Vec<BorrowedFd<'_>> = [ring.ring.file()].into_iter().chain(eventfds).collect();
    let sent = descriptor_message::send(stream, line.as_bytes(), &descriptors).await?;
    if sent != line.len() {
        return Err(io::ErrorKind::WriteZero.into());
    }
    let mut answer = Vec::with_capacity(MAX_ANSWER_BYTES);
    loop {
        match stream.read_u8().await? {
            b'\n' => break,
            byte => answer.push(byte),
        }
        if answer.len() > MAX_ANSWER_BYTES {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "answer to the ring"));
        }
    }
    if answer == b"ring" {
        return Ok(Some(seat));
    }
    ring.process_ended(app, pid);
    Ok(None)
}

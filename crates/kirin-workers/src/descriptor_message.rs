//! Messages with descriptors (`SCM_RIGHTS`), which a worker gets for the ring and for a body in a
//! file.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::BorrowedFd;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use tokio::io::Interest;
use tokio::net::UnixStream;

/// Sends `bytes`, and the descriptors with the first of them. Returns how many bytes were sent,
/// which is at least one.
pub(crate) async fn send(
    stream: &UnixStream,
    bytes: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<usize> {
    let send = || {
        let rights = SendAncillaryMessage::ScmRights(descriptors);
        let mut space = vec![MaybeUninit::uninit(); rights.size()];
        let mut control = SendAncillaryBuffer::new(&mut space);
        if !control.push(rights) {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(sendmsg(stream, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?)
    };
    match stream.async_io(Interest::WRITABLE, send).await? {
        0 => Err(io::ErrorKind::WriteZero.into()),
        count => Ok(count),
    }
}

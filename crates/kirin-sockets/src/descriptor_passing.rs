//! Passes open descriptors to another process, each with a message (SCM_RIGHTS, unix(7)).
//!
//! The kernel never joins two messages that carry descriptors, so one call receives one message of
//! a stream socket.

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use tokio::io::Interest;

/// The most bytes of a message.
pub const MESSAGE_BYTES: usize = 4096;

/// The sending end of a socket, on an event loop.
pub struct DescriptorSender(tokio::net::UnixStream);

impl DescriptorSender {
    /// Takes a socket over. Must be called on an event loop.
    pub fn new(socket: std::os::unix::net::UnixStream) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        Ok(Self(tokio::net::UnixStream::from_std(socket)?))
    }

    /// Sends a copy of a descriptor with a message, which must not be empty nor longer than
    /// [`MESSAGE_BYTES`].
    pub async fn send(&self, message: &[u8], descriptor: BorrowedFd<'_>) -> io::Result<()> {
        if message.is_empty() || message.len() > MESSAGE_BYTES {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        let send = || {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            let descriptors = [descriptor];
            ancillary.push(SendAncillaryMessage::ScmRights(&descriptors));
            let data = [IoSlice::new(message)];
            Ok(sendmsg(&self.0, &data, &mut ancillary, SendFlags::NOSIGNAL)?)
        };
        let sent = self.0.async_io(Interest::WRITABLE, send).await?;
        // The kernel takes a small message as a whole.
        if sent == message.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }
}

/// Waits for the next message and its descriptor, which is closed on exec(2). Returns `None` at the
/// end. The descriptor is missing if this process has no room for it.
pub fn receive(
    socket: &std::os::unix::net::UnixStream,
) -> io::Result<Option<(Vec<u8>, Option<OwnedFd>)>> {
    let mut message = vec![0; MESSAGE_BYTES];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut ancillary = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        let mut data = [IoSliceMut::new(&mut message)];
        match recvmsg(socket, &mut data, &mut ancillary, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            received => break received?.bytes,
        }
    };
    if received == 0 {
        return Ok(None);
    }
    message.truncate(received);
    let mut descriptors = ancillary.drain().filter_map(|part| match part {
        RecvAncillaryMessage::ScmRights(mut descriptors) => descriptors.next(),
        _ => None,
    });
    Ok(Some((message, descriptors.next())))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    use super::*;

    #[tokio::test]
    async fn each_message_comes_with_its_descriptor() {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let sender = DescriptorSender::new(ours).unwrap();
        let mut ends = Vec::new();
        for number in 0..3 {
            let (near, far) = UnixStream::pair().unwrap();
            sender.send(format!("number {number}").as_bytes(), far.as_fd()).await.unwrap();
            ends.push(near);
        }
        drop(sender);
        for (number, near) in ends.iter_mut().enumerate() {
            let (message, descriptor) = receive(&theirs).unwrap().unwrap();
            assert_eq!(message, format!("number {number}").as_bytes());
            let mut far = UnixStream::from(descriptor.unwrap());
            far.write_all(b"x").unwrap();
            let mut byte = [0];
            near.read_exact(&mut byte).unwrap();
        }
        assert!(receive(&theirs).unwrap().is_none());
    }

    #[tokio::test]
    async fn a_message_of_no_length_or_too_much_is_refused() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let sender = DescriptorSender::new(ours.try_clone().unwrap()).unwrap();
        for message in [vec![], vec![0; MESSAGE_BYTES + 1]] {
            assert!(sender.send(&message, ours.as_fd()).await.is_err());
        }
    }
}

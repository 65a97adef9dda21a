//! The link between a program and the next one, which receives on its UDP sockets after an upgrade.
//!
//! The next program must know which of them has made a connection ID, and gives datagrams of
//! connections that the program before still has back to it. A message is one packet of a unix
//! socket:
//!
//! | to | message |
//! |---|---|
//! | the next program | [`Introduction`]. It stays in the socket, so that another program reads it when an upgrade has failed |
//! | the program before | [`RECEIVES`]: the next program receives from now on |
//! | the program before | [`DATAGRAM`] and a [`Datagram`] |

use std::io::{self, IoSlice};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV6};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram as StdUnixDatagram;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, ready};

use bytes::{Buf, BufMut, BytesMut};
use quinn_proto::EcnCodepoint;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, recv, send,
    sendmsg, socketpair,
};
use tokio::io::ReadBuf;
use tokio::net::UnixDatagram;

use super::secret::{SECRET_BYTES, Secret};
use super::socket::Datagram;

/// The length of an introduction.
const INTRODUCTION_BYTES: usize = 2 + SECRET_BYTES;

/// The messages to the program before, by their first octet.
const RECEIVES: u8 = 0;
const DATAGRAM: u8 = 1;

/// The length of an address in a message: which kind it is, and room for the larger kind.
const ADDRESS_BYTES: usize = 1 + 16;

/// The length of what comes before the bytes of a datagram: the message, ECN, two addresses, a port
/// and the scope of a link-local address.
const HEADER_BYTES: usize = 1 + 1 + 2 * ADDRESS_BYTES + 2 + 4;

/// The most bytes of a message.
const MESSAGE_BYTES: usize = HEADER_BYTES + 64 * 1024;

/// What a program tells the next one.
pub(super) struct Introduction {
    /// The number of the program (`connection_ids.rs`).
    pub(super) program: u8,
    /// The number of its last endpoint.
    pub(super) last_endpoint: u8,
    /// What its keys are made of.
    pub(super) secret: Secret,
}

/// The end of a link in the program that may get a successor.
pub(super) struct SuccessorEnd(OwnedFd);

/// Returns a new link with an introduction: this program's end and the other one.
pub(super) fn open(introduction: &Introduction) -> io::Result<(SuccessorEnd, OwnedFd)> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let (ours, theirs) = socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    let mut message = vec![introduction.program, introduction.last_endpoint];
    message.extend_from_slice(&introduction.secret.0);
    send(&ours, &message, SendFlags::NOSIGNAL)?;
    Ok((SuccessorEnd(ours), theirs))
}

/// The link to a successor, on an event loop.
pub(super) struct SuccessorLink {
    socket: UnixDatagram,
    buffer: Vec<u8>,
}

/// What a successor says.
pub(super) enum SuccessorMessage {
    /// It receives on the sockets.
    Receives,
    /// A datagram has come that is not its own.
    Datagram(Datagram),
}

impl SuccessorLink {
    /// Registers the link with the event loop.
    pub(super) fn new(end: SuccessorEnd) -> io::Result<Self> {
        let socket = UnixDatagram::from_std(StdUnixDatagram::from(end.0))?;
        Ok(Self { socket, buffer: vec![0; MESSAGE_BYTES] })
    }

    /// Waits for a message. `None` if there is no successor any more.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<SuccessorMessage>> {
        loop {
            let mut buffer = ReadBuf::new(&mut self.buffer);
            if ready!(self.socket.poll_recv(context, &mut buffer)).is_err() {
                return Poll::Ready(None);
            }
            match buffer.filled() {
                [] => return Poll::Ready(None),
                [RECEIVES] => return Poll::Ready(Some(SuccessorMessage::Receives)),
                message => {
                    if let Some(datagram) = read_datagram(message) {
                        return Poll::Ready(Some(SuccessorMessage::Datagram(datagram)));
                    }
                }
            }
        }
    }
}

/// The link to the program before.
pub(super) struct PredecessorLink {
    socket: OwnedFd,
    is_gone: AtomicBool,
    /// What it has told.
    pub(super) introduction: Introduction,
}

impl PredecessorLink {
    /// Takes a link over.
    pub(super) fn new(socket: OwnedFd) -> io::Result<Self> {
        let mut message = [0; INTRODUCTION_BYTES + 1];
        let (read, _) = recv(&socket, &mut message[..], RecvFlags::PEEK)?;
        let introduction = match message.get(..read) {
            Some([program, last_endpoint, secret @ ..]) => {
                secret.try_into().ok().map(|secret| Introduction {
                    program: *program,
                    last_endpoint: *last_endpoint,
                    secret: Secret(secret),
                })
            }
            _ => None,
        };
        let unknown = || io::Error::other("the program before this one has not introduced itself");
        let introduction = introduction.ok_or_else(unknown)?;
        Ok(Self { socket, is_gone: AtomicBool::new(false), introduction })
    }

    /// Returns whether the program before has no connections any more.
    pub(super) fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    /// Tells that this program receives.
    pub(super) fn receives(&self) {
        _ = self.send(&[IoSlice::new(&[RECEIVES])]);
    }

    /// Gives a datagram back. It is lost, as in the network, if too many wait already. Returns
    /// false if the program before has ended.
    pub(super) fn forward(&self, datagram: &Datagram) -> bool {
        let header = header(datagram);
        self.send(&[IoSlice::new(&header), IoSlice::new(&datagram.bytes)])
    }

    fn send(&self, message: &[IoSlice<'_>]) -> bool {
        let mut ancillary = SendAncillaryBuffer::default();
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match sendmsg(&self.socket, message, &mut ancillary, flags) {
            Ok(_) | Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR) => true,
            Err(_) => {
                self.is_gone.store(true, Ordering::Relaxed);
                false
            }
        }
    }
}

/// Writes what comes before the bytes of a datagram.
fn header(datagram: &Datagram) -> BytesMut {
    let mut header = BytesMut::with_capacity(HEADER_BYTES);
    header.put_u8(DATAGRAM);
    header.put_u8(datagram.ecn.map_or(0, |ecn| ecn as u8));
    put_address(&mut header, Some(datagram.sender.ip()));
    put_address(&mut header, datagram.receiver);
    header.put_u16(datagram.sender.port());
    header.put_u32(match datagram.sender {
        SocketAddr::V4(_) => 0,
        SocketAddr::V6(sender) => sender.scope_id(),
    });
    header
}

fn put_address(header: &mut BytesMut, address: Option<IpAddr>) {
    let (kind, octets) = match address {
        None => (0, [0; 16]),
        Some(IpAddr::V4(address)) => (4, address.to_ipv6_compatible().octets()),
        Some(IpAddr::V6(address)) => (6, address.octets()),
    };
    header.put_u8(kind);
    header.put_slice(&octets);
}

fn take_address(message: &mut &[u8]) -> Option<IpAddr> {
    let kind = message.get_u8();
    let address = message.get_u128();
    match kind {
        4 => Some(Ipv4Addr::from_bits(address as u32).into()),
        6 => Some(Ipv6Addr::from_bits(address).into()),
        _ => None,
    }
}

/// Reads a message with a datagram.
fn read_datagram(mut message: &[u8]) -> Option<Datagram> {
    if message.len() < HEADER_BYTES || message.get_u8() != DATAGRAM {
        return None;
    }
    let ecn = EcnCodepoint::from_bits(message.get_u8());
    let sender = take_address(&mut message)?;
    let receiver = take_address(&mut message);
    let port = message.get_u16();
    let scope = message.get_u32();
    let sender = match sender {
        IpAddr::V4(address) => (address, port).into(),
        IpAddr::V6(address) => SocketAddrV6::new(address, port, 0, scope).into(),
    };
    Some(Datagram { bytes: message.into(), sender, receiver, ecn })
}

#[cfg(test)]
mod tests {
    use std::future::poll_fn;

    use super::*;

    fn introduction() -> Introduction {
        Introduction { program: 7, last_endpoint: 1, secret: Secret::random().unwrap() }
    }

    fn datagram(sender: &str, receiver: Option<&str>, ecn: Option<EcnCodepoint>) -> Datagram {
        let receiver = receiver.map(|receiver| receiver.parse().unwrap());
        let bytes = BytesMut::from(&b"some bytes"[..]);
        Datagram { bytes, sender: sender.parse().unwrap(), receiver, ecn }
    }

    #[test]
    fn every_program_that_tries_reads_the_introduction() {
        let told = introduction();
        let (_ours, theirs) = open(&told).unwrap();
        for _ in 0..3 {
            let link = PredecessorLink::new(theirs.try_clone().unwrap()).unwrap();
            assert_eq!((link.introduction.program, link.introduction.last_endpoint), (7, 1));
            assert_eq!(link.introduction.secret.0, told.secret.0);
        }
    }

    #[test]
    fn another_introduction_is_an_error() {
        for message in [&[0][..], &[0; INTRODUCTION_BYTES - 1], &[0; INTRODUCTION_BYTES + 1]] {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let (ours, theirs) =
                socketpair(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
            send(&ours, message, SendFlags::empty()).unwrap();
            assert!(PredecessorLink::new(theirs).is_err(), "{message:?}");
        }
    }

    #[tokio::test]
    async fn datagrams_go_back_as_they_came() {
        let (ours, theirs) = open(&introduction()).unwrap();
        let mut successor = SuccessorLink::new(ours).unwrap();
        let predecessor = PredecessorLink::new(theirs).unwrap();
        predecessor.receives();
        let received = poll_fn(|context| successor.poll(context)).await;
        assert!(matches!(received, Some(SuccessorMessage::Receives)));
        for (sender, receiver, ecn) in [
            ("192.0.2.1:443", None, None),
            ("192.0.2.1:1", Some("192.0.2.2"), Some(EcnCodepoint::Ce)),
            ("[2001:db8::1]:65535", Some("2001:db8::2"), Some(EcnCodepoint::Ect0)),
            ("[::ffff:192.0.2.1]:5", Some("::ffff:192.0.2.2"), Some(EcnCodepoint::Ect1)),
            ("[fe80::1%3]:5", None, None),
        ] {
            let sent = datagram(sender, receiver, ecn);
            assert!(predecessor.forward(&sent));
            let received = poll_fn(|context| successor.poll(context)).await;
            let Some(SuccessorMessage::Datagram(received)) = received else { panic!("{sender}") };
            assert_eq!((received.sender, received.receiver), (sent.sender, sent.receiver));
            assert_eq!((received.ecn, received.bytes), (sent.ecn, sent.bytes), "{sender}");
        }
        drop(predecessor);
        assert!(poll_fn(|context| successor.poll(context)).await.is_none());
    }

    #[test]
    fn datagrams_for_a_program_that_has_ended_or_does_not_read_do_no_harm() {
        let (ours, theirs) = open(&introduction()).unwrap();
        let link = PredecessorLink::new(theirs).unwrap();
        let datagram = datagram("192.0.2.1:443", None, None);
        for _ in 0..10_000 {
            assert!(link.forward(&datagram));
        }
        assert!(!link.is_gone());
        drop(ours);
        assert!(!link.forward(&datagram));
        assert!(link.is_gone());
    }

    #[test]
    fn other_messages_are_no_datagrams() {
        let whole = [header(&datagram("192.0.2.1:443", None, None)).as_ref(), b"x"].concat();
        assert!(read_datagram(&whole).is_some());
        for length in 0..HEADER_BYTES {
            assert!(read_datagram(&whole[..length]).is_none(), "{length}");
        }
        assert!(read_datagram(&[&[9], &whole[1..]].concat()).is_none());
    }
}

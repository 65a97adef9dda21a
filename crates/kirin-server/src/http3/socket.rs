//! The UDP socket of an endpoint. Several datagrams pass in one system call where the kernel can
//! (UDP_GRO and UDP_SEGMENT, udp(7)).

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr};
use std::task::{Context, Poll, ready};

use bytes::BytesMut;
use quinn_proto::{EcnCodepoint, Transmit};
use quinn_udp::{RecvMeta, UdpSockRef, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// The most receptions in one system call. Each may be many datagrams of one sender.
const BATCH: usize = 8;

/// The most bytes of one reception, which is the most that an IP packet can have.
const RECEPTION_BYTES: usize = 64 * 1024;

/// The most datagrams of one transmission.
const MOST_SEGMENTS: usize = 32;

/// Memory that the kernel may use for datagrams that nobody has taken yet.
const RECEIVE_BUFFER_BYTES: usize = 2 * 1024 * 1024;

/// A UDP socket on an event loop.
pub(super) struct DatagramSocket {
    socket: UdpSocket,
    state: UdpSocketState,
    buffer: Vec<u8>,
}

/// A received datagram.
pub(super) struct Datagram {
    pub(super) bytes: BytesMut,
    pub(super) sender: SocketAddr,
    /// The address that it was sent to.
    pub(super) receiver: Option<IpAddr>,
    pub(super) ecn: Option<EcnCodepoint>,
}

impl DatagramSocket {
    /// Takes a bound socket.
    pub(super) fn new(socket: std::net::UdpSocket) -> io::Result<Self> {
        let state = UdpSocketState::new(UdpSockRef::from(&socket))?;
        // The kernel cuts it to net.core.rmem_max.
        _ = state.set_recv_buffer_size(UdpSockRef::from(&socket), RECEIVE_BUFFER_BYTES);
        let socket = UdpSocket::from_std(socket)?;
        Ok(Self { socket, state, buffer: vec![0; BATCH * RECEPTION_BYTES] })
    }

    /// Returns whether packets keep their size on their way, so that the size that a path takes can
    /// be found out.
    pub(super) fn keeps_size(&self) -> bool {
        !self.state.may_fragment()
    }

    /// Returns the most datagrams of one transmission.
    pub(super) fn most_segments(&self) -> usize {
        self.state.max_gso_segments().clamp(1, MOST_SEGMENTS)
    }

    /// Appends the datagrams that one system call brings to `datagrams`.
    pub(super) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        datagrams: &mut Vec<Datagram>,
    ) -> Poll<io::Result<()>> {
        let mut metas = [RecvMeta::default(); BATCH];
        let receptions = loop {
            ready!(self.socket.poll_recv_ready(context))?;
            let mut pieces = self.buffer.chunks_mut(RECEPTION_BYTES).map(IoSliceMut::new);
            let mut slices: [IoSliceMut<'_>; BATCH] =
                std::array::from_fn(|_| pieces.next().unwrap_or_else(|| IoSliceMut::new(&mut [])));
            let received = self.socket.try_io(Interest::READABLE, || {
                self.state.recv(UdpSockRef::from(&self.socket), &mut slices, &mut metas)
            });
            match received {
                Ok(count) => break count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
        };
        let received = metas.iter().zip(self.buffer.chunks(RECEPTION_BYTES)).take(receptions);
        for (meta, bytes) in received {
            let bytes = bytes.get(..meta.len).unwrap_or_default();
            datagrams.extend(bytes.chunks(meta.stride.max(1)).map(|bytes| Datagram {
                bytes: bytes.into(),
                sender: meta.addr,
                receiver: meta.dst_ip,
                ecn: meta.ecn.and_then(|ecn| EcnCodepoint::from_bits(ecn as u8)),
            }));
        }
        Poll::Ready(Ok(()))
    }

    /// Sends what a connection has put into `contents`. Returns false if the kernel takes nothing
    /// now; the context is woken when it does. Other errors are those of the network, where
    /// datagrams may be lost.
    pub(super) fn send(
        &self,
        context: &mut Context<'_>,
        transmit: &Transmit,
        contents: &[u8],
    ) -> bool {
        let transmit = quinn_udp::Transmit {
            destination: transmit.destination,
            ecn: transmit.ecn.and_then(|ecn| quinn_udp::EcnCodepoint::from_bits(ecn as u8)),
            contents: contents.get(..transmit.size).unwrap_or_default(),
            segment_size: transmit.segment_size,
            src_ip: transmit.src_ip,
        };
        loop {
            let sent = self.socket.try_io(Interest::WRITABLE, || {
                self.state.send(UdpSockRef::from(&self.socket), &transmit)
            });
            match sent {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if self.socket.poll_send_ready(context).is_pending() {
                        return false;
                    }
                }
                _ => return true,
            }
        }
    }
}

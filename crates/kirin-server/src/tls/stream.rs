//! TLS over a socket, as a stream of bytes.
//!
//! It uses the unbuffered interface of rustls, so that an idle connection holds its keys and no
//! buffer. Records are read into a buffer of the event loop, and decrypted there. A connection has
//! memory of its own only for a partial record, and for bytes that the socket did not take.

use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::os::fd::AsFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use rustix::net::{SendFlags, send};
use rustls::pki_types::CertificateDer;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{
    ConnectionState, EncodeError, EncryptError, InsufficientSizeError, UnbufferedStatus,
};
use rustls::{HandshakeKind, ProtocolVersion, ServerConfig};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use crate::tls::challenge::FirstRecord;

/// The largest record: 2^14 bytes of data, 256 of expansion and 5 of header (RFC 8446 section 5.2);
/// TLS 1.2 allows 2,048 of expansion.
const RECORD_BYTES: usize = 16 * 1024 + 2048 + 5;

/// The most data that is encrypted at once: two records.
const WRITE_BYTES: usize = 32 * 1024;

/// The most bytes that encryption adds to that: header, tag and explicit nonce of each record (RFC
/// 5288: 29 bytes).
const EXPANSION_BYTES: usize = 3 * 32;

/// A handshake message that is not complete after so many bytes is refused. rustls takes no more
/// than 64 KB either.
const RECEIVED_LIMIT_BYTES: usize = 128 * 1024;

/// The first byte of a record that carries a handshake (RFC 8446 section 5.1).
const HANDSHAKE_RECORD: u8 = 22;

const PLAIN_HTTP_ANSWER: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain; charset=utf-8\r\n\
    Content-Length: 58\r\nConnection: close\r\n\r\nThis port speaks HTTPS: the address begins with https://.\n";

thread_local! {
    /// Buffers of the event loop. They are used within one call only.
    static BUFFERS: RefCell<Buffers> = RefCell::default();
}

#[derive(Default)]
struct Buffers {
    received: Vec<u8>,
    gathered: Vec<u8>,
    encrypted: Vec<u8>,
}

/// A socket and its TLS session.
pub(crate) struct TlsStream<S> {
    socket: S,
    session: UnbufferedServerConnection,
    /// What the first record says about the client.
    first_record: FirstRecord,
    /// Received bytes that are too few for a record or a handshake message.
    received: Vec<u8>,
    /// Decrypted bytes for which the reader had no room.
    decrypted: Vec<u8>,
    /// Encrypted bytes that the socket has not taken yet.
    unsent: Vec<u8>,
    /// The peer has ended its side.
    ended: bool,
    /// The session has failed and must not be called any more.
    has_failed: bool,
}

/// The progress in received bytes.
struct Processed {
    /// Number of bytes that are done with.
    used: usize,
    result: Result<(), rustls::Error>,
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream<S> {
    /// Returns a stream whose handshake has not started yet.
    pub(crate) fn new(socket: S, config: Arc<ServerConfig>) -> Result<Self, rustls::Error> {
        Ok(Self {
            socket,
            session: UnbufferedServerConnection::new(config)?,
            first_record: FirstRecord::Incomplete,
            received: Vec::new(),
            decrypted: Vec::new(),
            unsent: Vec::new(),
            ended: false,
            has_failed: false,
        })
    }

    /// Continues the handshake. When it fails, the alert for the peer has been sent. It also is
    /// ready if the peer is an authority. The handshake then waits for [`TlsStream::go_on`].
    pub(crate) fn poll_handshake(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            ready!(self.poll_send(context))?;
            if !self.session.is_handshaking()
                || matches!(self.first_record, FirstRecord::OfAuthority(_))
            {
                return Poll::Ready(Ok(()));
            }
            if self.ended {
                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
            }
            ready!(self.poll_receive(context, &mut ReadBuf::new(&mut [])))?;
        }
    }

    /// Returns the name of which an authority wants proof, if the handshake waits for that.
    pub(crate) fn take_asked_name(&mut self) -> Option<Box<str>> {
        match std::mem::replace(&mut self.first_record, FirstRecord::OfClient) {
            FirstRecord::OfAuthority(name) => Some(name),
            _ => None,
        }
    }

    /// Lets a handshake that has waited go on, with other settings if there are some. After an
    /// error there is an alert to send.
    pub(crate) fn go_on(&mut self, config: Option<Arc<ServerConfig>>) -> io::Result<()> {
        if let Some(config) = config {
            self.session = UnbufferedServerConnection::new(config).map_err(io::Error::other)?;
        }
        let mut hello = std::mem::take(&mut self.received);
        self.take_in(&mut hello, &mut ReadBuf::new(&mut []))
    }

    /// Returns the protocol that the handshake has chosen.
    pub(crate) fn alpn_protocol(&self) -> Option<&[u8]> {
        self.session.alpn_protocol()
    }

    /// Returns the version of TLS that the handshake has chosen.
    pub(crate) fn protocol_version(&self) -> Option<rustls::ProtocolVersion> {
        self.session.protocol_version()
    }

    /// Returns whether the version is TLS 1.3, and not 1.2.
    pub(crate) fn is_tls13(&self) -> bool {
        self.session.protocol_version() == Some(ProtocolVersion::TLSv1_3)
    }

    /// Returns whether the handshake has resumed an earlier session.
    pub(crate) fn is_resumed(&self) -> bool {
        self.session.handshake_kind() == Some(HandshakeKind::Resumed)
    }

    /// Returns the verified certificate that the client has presented.
    pub(crate) fn client_certificate(&self) -> Option<&CertificateDer<'static>> {
        self.session.peer_certificates().and_then(<[_]>::first)
    }

    /// Returns the socket below.
    pub(crate) fn socket(&self) -> &S {
        &self.socket
    }

    /// Returns the socket below, to wait for it.
    pub(crate) fn socket_mut(&mut self) -> &mut S {
        &mut self.socket
    }

    /// Sends the bytes that are encrypted already.
    pub(crate) fn poll_send(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unsent.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut sent = 0;
        let result = loop {
            match self.unsent.get(sent..) {
                Some(rest @ [_, ..]) => {
                    match Pin::new(&mut self.socket).poll_write(context, rest) {
                        Poll::Ready(Ok(0)) => {
                            break Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                        }
                        Poll::Ready(Ok(count)) => sent += count,
                        Poll::Ready(Err(error)) => break Poll::Ready(Err(error)),
                        Poll::Pending => break Poll::Pending,
                    }
                }
                _ => break Poll::Ready(Ok(())),
            }
        };
        if sent >= self.unsent.len() {
            self.unsent = Vec::new();
        } else {
            self.unsent.drain(..sent);
        }
        result
    }

    /// Reads from the socket once and decrypts into `out`. Bytes without room there wait in
    /// `decrypted`.
    fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.has_failed {
            return Poll::Ready(Err(io::ErrorKind::NotConnected.into()));
        }
        BUFFERS.with_borrow_mut(|buffers| {
            let kept = self.received.len();
            let buffer = &mut buffers.received;
            if buffer.len() < kept + RECORD_BYTES {
                buffer.resize(kept + RECORD_BYTES, 0);
            }
            let mut read = ReadBuf::new(&mut buffer[kept..kept + RECORD_BYTES]);
            ready!(Pin::new(&mut self.socket).poll_read(context, &mut read))?;
            let count = read.filled().len();
            if count == 0 {
                self.ended = true;
                return Poll::Ready(Ok(()));
            }
            buffer[..kept].copy_from_slice(&self.received);
            let incoming = &mut buffer[..kept + count];
            if self.session.is_handshaking() && is_plain_http(incoming) {
                self.has_failed = true;
                self.unsent = PLAIN_HTTP_ANSWER.to_vec();
                let _ = self.poll_send(context);
                return Poll::Ready(Err(io::Error::new(
                    io::ErrorKind::InvalidData,
                    "plain HTTP on a TLS port",
                )));
            }
            if self.first_record == FirstRecord::Incomplete {
                self.first_record = FirstRecord::look(incoming);
                if let FirstRecord::OfAuthority(_) = self.first_record {
                    self.received = incoming.to_vec();
                    return Poll::Ready(Ok(()));
                }
            }
            let result = self.take_in(incoming, out);
            if self.has_failed {
                let _ = self.poll_send(context);
            }
            Poll::Ready(result)
        })
    }

    /// Takes in received bytes, and keeps those that are too few for a message. If the session
    /// fails, its alert is ready to be sent.
    fn take_in(&mut self, incoming: &mut [u8], out: &mut ReadBuf<'_>) -> io::Result<()> {
        let Processed { used, result } = self.process(incoming, out);
        if let Err(error) = result {
            self.take_alert(incoming.get_mut(used..).unwrap_or_default());
            self.has_failed = true;
            return Err(io::Error::new(io::ErrorKind::InvalidData, error));
        }
        let rest = incoming.get(used..).unwrap_or_default();
        if rest.len() > RECEIVED_LIMIT_BYTES {
            self.has_failed = true;
            return Err(io::Error::new(io::ErrorKind::InvalidData, "TLS message too long"));
        }
        self.received = rest.to_vec();
        Ok(())
    }

    /// Has the session process `incoming`.
    fn process(&mut self, incoming: &mut [u8], out: &mut ReadBuf<'_>) -> Processed {
        debug_assert!(!self.has_failed, "the session goes on with the message that failed");
        let mut used = 0;
        let result = loop {
            let UnbufferedStatus { mut discard, state } =
                self.session.process_tls_records(incoming.get_mut(used..).unwrap_or_default());
            let done = match state {
                Ok(ConnectionState::ReadTraffic(mut traffic)) => loop {
                    match traffic.next_record() {
                        Some(Ok(record)) => {
                            discard += record.discard;
                            let fits = record.payload.len().min(out.remaining());
                            out.put_slice(&record.payload[..fits]);
                            self.decrypted.extend_from_slice(&record.payload[fits..]);
                        }
                        Some(Err(error)) => break Some(Err(error)),
                        None => break None,
                    }
                },
                Ok(ConnectionState::EncodeTlsData(mut data)) => {
                    match append(&mut self.unsent, 0, |room| data.encode(room)) {
                        Ok(()) => None,
                        Err(_) => {
                            Some(Err(rustls::Error::General("a message cannot be encoded".into())))
                        }
                    }
                }
                // The bytes are in `unsent`, which is sent before anything else.
                Ok(ConnectionState::TransmitTlsData(data)) => {
                    data.done();
                    None
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.ended = true;
                    None
                }
                Ok(ConnectionState::BlockedHandshake | ConnectionState::WriteTraffic(_)) => {
                    Some(Ok(()))
                }
                Ok(ConnectionState::Closed) => {
                    self.ended = true;
                    Some(Ok(()))
                }
                // Early data is not enabled, and future states are unknown.
                Ok(_) => {
                    Some(Err(rustls::Error::General("unexpected state of the session".into())))
                }
                Err(error) => Some(Err(error)),
            };
            used += discard;
            if let Some(result) = done {
                break result;
            }
        };
        Processed { used, result }
    }

    /// Takes the alert that says why the session has failed, and the messages before it. They must
    /// be taken before anything else. After that the session must not be called, because it would
    /// continue with the message that failed.
    fn take_alert(&mut self, incoming: &mut [u8]) {
        while self.session.wants_write()
            && let Ok(ConnectionState::EncodeTlsData(mut message)) =
                self.session.process_tls_records(incoming).state
        {
            let _ = append(&mut self.unsent, 0, |room| message.encode(room));
        }
    }

    /// Encrypts `data` into `encrypted`, behind the session's own messages.
    fn encrypt(&mut self, data: &[u8], encrypted: &mut Vec<u8>) -> io::Result<()> {
        if self.has_failed {
            return Err(io::ErrorKind::NotConnected.into());
        }
        loop {
            // Each call gets all received bytes, because the session knows partial messages by
            // their positions.
            let UnbufferedStatus { discard, state } =
                self.session.process_tls_records(&mut self.received);
            let is_done = match state {
                Ok(ConnectionState::WriteTraffic(mut traffic)) => {
                    append(encrypted, data.len() + EXPANSION_BYTES, |room| {
                        traffic.encrypt(data, room)
                    })
                    .map_err(|error| io::Error::other(format!("{error:?}")))?;
                    true
                }
                Ok(ConnectionState::EncodeTlsData(mut message)) => {
                    append(encrypted, 0, |room| message.encode(room))
                        .map_err(|error| io::Error::other(error.to_string()))?;
                    false
                }
                Ok(ConnectionState::TransmitTlsData(message)) => {
                    message.done();
                    false
                }
                Ok(ConnectionState::PeerClosed) => {
                    self.ended = true;
                    false
                }
                Ok(_) => return Err(io::ErrorKind::NotConnected.into()),
                Err(error) => {
                    self.has_failed = true;
                    return Err(io::Error::new(io::ErrorKind::InvalidData, error));
                }
            };
            self.received.drain(..discard.min(self.received.len()));
            if is_done {
                return Ok(());
            }
        }
    }
}

impl<S: AsyncRead + AsyncWrite + AsFd + Unpin> TlsStream<S> {
    /// Tells the peer that no further bytes will be sent, if the socket takes that now.
    pub(crate) fn end(&mut self) {
        if self.has_failed
            || self.session.is_handshaking()
            || !self.unsent.is_empty()
            || !self.received.is_empty()
        {
            return;
        }
        let mut closing = [0; 128];
        if let Ok(ConnectionState::WriteTraffic(mut traffic)) =
            self.session.process_tls_records(&mut []).state
            && let Ok(length) = traffic.queue_close_notify(&mut closing)
        {
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let _ = send(&self.socket, closing.get(..length).unwrap_or_default(), flags);
        }
    }
}

/// Returns whether a client speaks plain HTTP. It begins with a method, and a TLS record never
/// does.
fn is_plain_http(received: &[u8]) -> bool {
    received.first().is_some_and(|first| *first != HANDSHAKE_RECORD && first.is_ascii_uppercase())
}

/// A slice into which rustls writes. It is too small until rustls has said how large it must be.
trait NeedsRoom {
    fn required_size(&self) -> Option<usize>;
}

impl NeedsRoom for EncodeError {
    fn required_size(&self) -> Option<usize> {
        match self {
            EncodeError::InsufficientSize(InsufficientSizeError { required_size }) => {
                Some(*required_size)
            }
            EncodeError::AlreadyEncoded => None,
        }
    }
}

impl NeedsRoom for EncryptError {
    fn required_size(&self) -> Option<usize> {
        match self {
            EncryptError::InsufficientSize(InsufficientSizeError { required_size }) => {
                Some(*required_size)
            }
            EncryptError::EncryptExhausted => None,
        }
    }
}

/// Appends the bytes that `write` writes to `out`. They need about `room` bytes.
fn append<E: NeedsRoom>(
    out: &mut Vec<u8>,
    room: usize,
    mut write: impl FnMut(&mut [u8]) -> Result<usize, E>,
) -> Result<(), E> {
    let start = out.len();
    out.resize(start + room, 0);
    let mut result = write(&mut out[start..]);
    if let Err(error) = &result
        && let Some(size) = error.required_size()
    {
        out.resize(start + size, 0);
        result = write(&mut out[start..]);
    }
    out.truncate(start + result.as_ref().map_or(0, |length| *length));
    result.map(|_| ())
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for TlsStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        out: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = &mut *self;
        // A client may continue to send while it does not read. Our bytes wait.
        if let Poll::Ready(Err(error)) = stream.poll_send(context) {
            return Poll::Ready(Err(error));
        }
        let before = out.filled().len();
        if !stream.decrypted.is_empty() {
            let fits = stream.decrypted.len().min(out.remaining());
            out.put_slice(&stream.decrypted[..fits]);
            if fits == stream.decrypted.len() {
                stream.decrypted = Vec::new();
            } else {
                stream.decrypted.drain(..fits);
            }
        }
        while out.filled().len() == before && !stream.ended {
            ready!(stream.poll_receive(context, out))?;
        }
        Poll::Ready(Ok(()))
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for TlsStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        let stream = &mut *self;
        ready!(stream.poll_send(context))?;
        let data = &data[..data.len().min(WRITE_BYTES)];
        BUFFERS.with_borrow_mut(|buffers| {
            let encrypted = &mut buffers.encrypted;
            encrypted.clear();
            encrypted.reserve(WRITE_BYTES + 1024);
            stream.encrypt(data, encrypted)?;
            let mut sent = 0;
            while sent < encrypted.len() {
                match Pin::new(&mut stream.socket).poll_write(context, &encrypted[sent..]) {
                    Poll::Ready(Ok(0)) => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    Poll::Ready(Ok(count)) => sent += count,
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                    Poll::Pending => {
                        stream.unsent = encrypted[sent..].to_vec();
                        break;
                    }
                }
            }
            Poll::Ready(Ok(data.len()))
        })
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first =
            slices.iter().find(|slice| !slice.is_empty()).map_or(&[][..], |slice| &slice[..]);
        if first.len() >= WRITE_BYTES / 2 {
            return self.poll_write(context, first);
        }
        // A record for the head alone would cost more than copying the bytes that follow it.
        let mut gathered = BUFFERS.with_borrow_mut(|buffers| std::mem::take(&mut buffers.gathered));
        gathered.clear();
        for slice in slices {
            let fits = slice.len().min(WRITE_BYTES - gathered.len());
            gathered.extend_from_slice(&slice[..fits]);
        }
        let result = self.poll_write(context, &gathered);
        BUFFERS.with_borrow_mut(|buffers| buffers.gathered = gathered);
        result
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_send(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_flush(context)
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;

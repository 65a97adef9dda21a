//! Tests of handshakes with the client of rustls. Its bytes are cut and changed on the way.

use std::io::{Read, Write};
use std::task::Waker;
use std::time::Duration;

use rustls::pki_types::{PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, SupportedProtocolVersion};

use super::*;
use crate::tls::challenge::ChallengeCertificate;
use crate::tls::{CertificateFiles, ClientAuthorities, Tls, TlsSettings};

/// A socket in memory. It gives the bytes that were put into it, and takes up to so many at once.
#[derive(Default)]
struct Pipe {
    incoming: Vec<u8>,
    outgoing: Vec<u8>,
    takes: Option<usize>,
}

impl AsyncRead for Pipe {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.incoming.is_empty() {
            return Poll::Pending;
        }
        let fits = self.incoming.len().min(buffer.remaining());
        buffer.put_slice(&self.incoming[..fits]);
        self.incoming.drain(..fits);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Pipe {
    fn poll_write(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let room = self.takes.unwrap_or(usize::MAX).min(bytes.len());
        if room == 0 {
            return Poll::Pending;
        }
        self.outgoing.extend_from_slice(&bytes[..room]);
        if let Some(takes) = &mut self.takes {
            *takes -= room;
        }
        Poll::Ready(Ok(room))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// The settings of a server, and of a client that trusts it.
struct Ends {
    tls: Tls,
    client: Arc<ClientConfig>,
}

const VERSIONS: [&SupportedProtocolVersion; 2] = [&rustls::version::TLS12, &rustls::version::TLS13];

impl Ends {
    /// Returns both settings. With `asks`, the server asks for a certificate, which the client does
    /// not have.
    fn new(version: &'static SupportedProtocolVersion, asks: bool) -> Self {
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
        let files = tempfile::tempdir().unwrap();
        let (chain, key) = (files.path().join("chain"), files.path().join("key"));
        std::fs::write(&chain, made.cert.pem()).unwrap();
        std::fs::write(&key, made.signing_key.serialize_pem()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let client =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_protocol_versions(&[version])
                .unwrap()
                .with_root_certificates(roots)
                .with_no_client_auth();
        let client_authorities =
            asks.then(|| ClientAuthorities { file: chain.clone(), required: true });
        let certificates = vec![CertificateFiles { chain, key }];
        let settings = TlsSettings {
            certificates,
            client_authorities,
            handshake_time: Duration::from_secs(10),
            ticket_secret: None,
            early_data: false,
        };
        Self { tls: Tls::load(settings).unwrap(), client: Arc::new(client) }
    }

    fn start(&self) -> (ClientConnection, TlsStream<Pipe>) {
        let name = ServerName::try_from("a.test").unwrap();
        let client = ClientConnection::new(Arc::clone(&self.client), name).unwrap();
        (client, self.tls.stream(Pipe::default()).unwrap())
    }
}

/// Returns the bytes that the client sends next.
fn say(client: &mut ClientConnection) -> Vec<u8> {
    let mut said = Vec::new();
    while client.wants_write() {
        client.write_tls(&mut said).unwrap();
    }
    said
}

/// Has the client process the bytes of the server.
fn hear(client: &mut ClientConnection, server: &mut TlsStream<Pipe>) {
    let said = std::mem::take(&mut server.socket.outgoing);
    let mut rest = &said[..];
    while !rest.is_empty() {
        client.read_tls(&mut rest).unwrap();
        client.process_new_packets().unwrap();
    }
}

/// Has the server process `bytes`. Returns the data in them.
fn take(server: &mut TlsStream<Pipe>, bytes: &[u8]) -> io::Result<Vec<u8>> {
    server.socket.incoming.extend_from_slice(bytes);
    let mut context = Context::from_waker(Waker::noop());
    let mut data = Vec::new();
    if let Poll::Ready(result) = server.poll_handshake(&mut context) {
        result?;
        loop {
            let mut buffer = [0; 4096];
            let mut read = ReadBuf::new(&mut buffer);
            match Pin::new(&mut *server).poll_read(&mut context, &mut read) {
                Poll::Ready(Ok(())) if read.filled().is_empty() => break,
                Poll::Ready(result) => result.map(|()| data.extend_from_slice(read.filled()))?,
                Poll::Pending => break,
            }
        }
    }
    Ok(data)
}

/// Returns the bytes of a client by turns: the hello, the end of the handshake with a request, and
/// close_notify. Each turn comes after the client has processed the server's bytes.
fn turns(ends: &Ends) -> Vec<Vec<u8>> {
    let (mut client, mut server) = ends.start();
    let mut turns = Vec::new();
    while client.is_handshaking() {
        turns.push(say(&mut client));
        take(&mut server, turns.last().unwrap()).unwrap();
        hear(&mut client, &mut server);
    }
    client.writer().write_all(b"request").unwrap();
    turns.push(say(&mut client));
    turns
}

#[test]
fn data_passes_both_ways_in_pieces_of_any_size() {
    for version in VERSIONS {
        let ends = Ends::new(version, false);
        let lengths: Vec<usize> = turns(&ends).iter().map(Vec::len).collect();
        for (cut_turn, length) in lengths.iter().enumerate() {
            for at in 0..=*length {
                let (mut client, mut server) = ends.start();
                let mut data = Vec::new();
                for turn in 0..lengths.len() {
                    if turn + 1 == lengths.len() {
                        client.writer().write_all(b"request").unwrap();
                    }
                    let said = say(&mut client);
                    let (first, second) =
                        said.split_at(if turn == cut_turn { at.min(said.len()) } else { 0 });
                    data.extend(take(&mut server, first).unwrap());
                    data.extend(take(&mut server, second).unwrap());
                    hear(&mut client, &mut server);
                }
                assert_eq!(data, b"request", "{version:?} turn {cut_turn} cut at {at}");
                assert!(
                    server.received.is_empty()
                        && server.decrypted.is_empty()
                        && server.unsent.is_empty()
                );
            }
        }
    }
}

#[test]
fn a_changed_byte_never_becomes_data_and_is_no_panic() {
    for version in VERSIONS {
        for asks in [false, true] {
            let ends = Ends::new(version, asks);
            let lengths: Vec<usize> = match asks {
                false => turns(&ends).iter().map(Vec::len).collect(),
                // The client has no certificate, so that there are two turns at most.
                true => vec![300, 300],
            };
            for (changed_turn, length) in lengths.iter().enumerate() {
                for at in 0..*length {
                    let (mut client, mut server) = ends.start();
                    let mut data = Vec::new();
                    for turn in 0..lengths.len() {
                        if turn + 1 == lengths.len() && !client.is_handshaking() {
                            client.writer().write_all(b"request").unwrap();
                        }
                        let mut said = say(&mut client);
                        if let Some(byte) = said.get_mut(at).filter(|_| turn == changed_turn) {
                            *byte ^= 0x55;
                        }
                        match take(&mut server, &said) {
                            Ok(taken) => data.extend(taken),
                            Err(_) => break,
                        }
                        let heard = std::mem::take(&mut server.socket.outgoing);
                        if client.read_tls(&mut &heard[..]).is_err()
                            || client.process_new_packets().is_err()
                        {
                            break;
                        }
                    }
                    let what = String::from_utf8_lossy(&data).into_owned();
                    assert!(
                        data.is_empty() || (data == b"request" && !asks),
                        "{version:?} {what:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn a_client_that_reads_little_gets_all_that_was_written() {
    for version in VERSIONS {
        let ends = Ends::new(version, false);
        let (mut client, mut server) = ends.start();
        while client.is_handshaking() || server.session.is_handshaking() {
            let said = say(&mut client);
            take(&mut server, &said).unwrap();
            hear(&mut client, &mut server);
        }
        let mut context = Context::from_waker(Waker::noop());
        let data: Vec<u8> = (0..200_000u32).map(|n| (n % 251) as u8).collect();
        let (head, body) = data.split_at(100);
        let mut written = 0;
        let mut received = Vec::new();
        let mut is_flushed = false;
        while !is_flushed {
            server.socket.takes = Some(1000);
            let slices = [
                IoSlice::new(head.get(written..).unwrap_or_default()),
                IoSlice::new(&body[written.saturating_sub(head.len())..]),
            ];
            if written < data.len() {
                if let Poll::Ready(count) =
                    Pin::new(&mut server).poll_write_vectored(&mut context, &slices)
                {
                    written += count.unwrap();
                }
            } else {
                is_flushed = Pin::new(&mut server).poll_flush(&mut context).is_ready();
            }
            assert!(
                server.unsent.len() <= WRITE_BYTES + EXPANSION_BYTES,
                "{} bytes wait",
                server.unsent.len()
            );
            hear(&mut client, &mut server);
            let mut buffer = vec![0; 100_000];
            while let Ok(count @ 1..) = client.reader().read(&mut buffer) {
                received.extend_from_slice(&buffer[..count]);
            }
        }
        assert!(received == data, "{} of {} bytes", received.len(), data.len());
        assert!(server.unsent.capacity() == 0, "nothing is kept");
    }
}

#[test]
fn renegotiation_and_floods_of_handshake_messages_are_refused() {
    for version in VERSIONS {
        let ends = Ends::new(version, false);
        let (mut client, mut server) = ends.start();
        let hello = say(&mut client);
        take(&mut server, &hello).unwrap();
        // A second hello is not allowed here.
        assert!(take(&mut server, &hello).is_err(), "{version:?}");
        assert!(server.unsent.is_empty() && !server.socket.outgoing.is_empty(), "an alert is sent");
        // The session does not see what follows: it would go on with the message that failed.
        assert!(take(&mut server, &hello).is_err(), "{version:?}");
        // A message that announces 16 MB, in records that never end.
        let (_, mut server) = ends.start();
        let mut record = vec![22, 3, 1, 0x40, 0];
        record.extend([1, 0xff, 0xff, 0xff]);
        record.resize(5 + 0x4000, 0);
        let refused = (0..100).position(|_| take(&mut server, &record).is_err());
        assert!(refused.is_some_and(|records| records < 10), "{refused:?}");
    }
}

#[test]
fn an_authority_gets_its_certificate_and_no_ticket() {
    for version in VERSIONS {
        let made = rcgen::generate_simple_self_signed(["a.test".to_owned()]).unwrap();
        let challenge = ChallengeCertificate::new(
            made.cert.der().clone(),
            PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap(),
        )
        .unwrap();
        // Clients need a certificate, and an authority has none.
        let mut ends = Ends::new(version, true);
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[version])
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        config.alpn_protocols = vec![b"acme-tls/1".to_vec()];
        ends.client = Arc::new(config);
        let (mut client, mut server) = ends.start();
        let said = say(&mut client);
        // The first record may come in pieces.
        take(&mut server, &said[..9]).unwrap();
        let mut context = Context::from_waker(Waker::noop());
        server.socket.incoming.extend_from_slice(&said[9..]);
        assert!(server.poll_handshake(&mut context).is_ready());
        assert_eq!(server.take_asked_name().as_deref(), Some("a.test"));
        assert!(server.socket.outgoing.is_empty(), "nothing is said before the answer is known");
        server.go_on(Some(challenge.config())).unwrap();
        while client.is_handshaking() {
            take(&mut server, &say(&mut client)).unwrap();
            hear(&mut client, &mut server);
        }
        take(&mut server, &say(&mut client)).unwrap();
        hear(&mut client, &mut server);
        assert_eq!(client.alpn_protocol(), Some(&b"acme-tls/1"[..]));
        assert_eq!(client.peer_certificates().unwrap()[0], *made.cert.der());
        assert_eq!(client.tls13_tickets_received(), 0);
        // A second connection has no session to resume.
        let (mut client, mut server) = ends.start();
        server.socket.incoming.extend_from_slice(&say(&mut client));
        assert!(server.poll_handshake(&mut context).is_ready());
        assert!(server.take_asked_name().is_some());
        server.go_on(Some(challenge.config())).unwrap();
        while client.is_handshaking() {
            take(&mut server, &say(&mut client)).unwrap();
            hear(&mut client, &mut server);
        }
        assert_eq!(client.handshake_kind(), Some(HandshakeKind::Full));

        // There is no answer. The alert says that no protocol fits.
        let (mut client, mut server) = ends.start();
        server.socket.incoming.extend_from_slice(&say(&mut client));
        assert!(server.poll_handshake(&mut context).is_ready());
        assert!(server.take_asked_name().is_some());
        assert!(server.go_on(None).is_err());
        assert!(server.poll_send(&mut context).is_ready());
        client.read_tls(&mut &server.socket.outgoing[..]).unwrap();
        let error = client.process_new_packets().unwrap_err();
        assert_eq!(
            error,
            rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)
        );
    }
}

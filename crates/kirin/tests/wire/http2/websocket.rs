//! WebSockets over HTTP/2 (RFC 8441), to an application and to a server behind `proxy:`.

use std::io::{Read, Write};
use std::net::TcpListener;

use kirin_h2::hpack::{Decoder, FieldBuffer};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

use super::connection::{Connection, Outcome};
use super::frames::*;
use super::*;

const ECHO_APP: &str = r#"
sub {
    my $env = shift;
    my $io = $env->{'psgix.io'};
    return [200, [], ['no socket']] if $env->{PATH_INFO} eq '/app/none';
    return [403, [], ['not you']] if $env->{PATH_INFO} eq '/app/refused';
    return sub {
        my $writer = shift->([101, [Upgrade => 'websocket', 'Sec-WebSocket-Accept' => 'x', 'X-Seen' =>
            join ' ', map { $env->{$_} // '-' } qw(REQUEST_METHOD HTTP_UPGRADE SERVER_PROTOCOL HTTP_ORIGIN)]]);
        while (sysread $io, my $bytes, 65536) { $writer->write($bytes) }
    };
};
"#;

fn serve_echo(server: Option<u16>) -> (Site, Kirin) {
    let site = Site::new().with("app.psgi", ECHO_APP).with("public/hello.txt", "hello\n");
    let port = server.unwrap_or(9);
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
         [[upstream]]\nname = \"far\"\nservers = [\"http://127.0.0.1:{port}\"]\n\
         [[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n\
         [[route]]\npath = \"/far\"\ntry = [\"proxy:far\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n"
    );
    let kirin = Kirin::start(&site, &config);
    (site, kirin)
}

/// Returns the request that opens a WebSocket.
fn open(stream: u32, path: &str, protocol: &str) -> Vec<u8> {
    let fields = [
        (":method", "CONNECT"),
        (":protocol", protocol),
        (":scheme", "http"),
        (":authority", "test"),
        (":path", path),
        ("origin", "http://test"),
        ("sec-websocket-version", "13"),
    ];
    frame(HEADERS, END_HEADERS, stream, &block(&fields))
}

/// A stream of a connection as a socket.
struct StreamSocket {
    connection: Connection,
    stream: u32,
    received: Vec<u8>,
    ended: bool,
    /// Bytes that may still be sent on the stream, and on the connection.
    windows: [u32; 2],
}

impl StreamSocket {
    fn new(kirin: &Kirin, path: &str) -> Self {
        let mut connection = Connection::open(kirin.address());
        connection.send(open(1, path, "websocket"));
        connection.send(window_update(0, 1 << 30)).send(window_update(1, 1 << 30));
        let (windows, received) = ([65_535; 2], Vec::new());
        let mut socket = Self { connection, stream: 1, received, ended: false, windows };
        while socket.connection.head_of(1).is_none() {
            socket.take_frame();
        }
        socket
    }

    fn take_frame(&mut self) {
        let frame = self.connection.next().unwrap_or_else(|| panic!("{}", self.connection));
        let bytes = frame.number(0).unwrap_or(0);
        match (frame.kind, frame.stream) {
            (SETTINGS, 0) if frame.flags & ACK == 0 => {
                for setting in frame.payload.chunks(6).filter(|setting| setting[1] == 4) {
                    let size = setting[2..].try_into().map(u32::from_be_bytes).expect("a number");
                    self.windows[0] += size - 65_535;
                }
            }
            (WINDOW_UPDATE, 0) => self.windows[1] += bytes,
            (WINDOW_UPDATE, _) => self.windows[0] += bytes,
            (DATA, stream) if stream == self.stream => {
                self.received.extend_from_slice(&frame.payload);
                self.ended |= frame.flags & END_STREAM != 0;
            }
            (RST_STREAM | GOAWAY, _) => panic!("the stream has ended\n{}", self.connection),
            _ => {}
        }
    }

    fn end(&mut self) {
        self.connection.send(frame(DATA, END_STREAM, self.stream, b""));
    }
}

impl Read for StreamSocket {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        while self.received.is_empty() && !self.ended {
            self.take_frame();
        }
        let count = buffer.len().min(self.received.len());
        buffer[..count].copy_from_slice(&self.received[..count]);
        self.received.drain(..count);
        Ok(count)
    }
}

impl Write for StreamSocket {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let room = |socket: &Self| socket.windows[0].min(socket.windows[1]) as usize;
        while room(self) == 0 {
            self.take_frame();
        }
        let count = bytes.len().min(room(self)).min(16_384);
        self.connection.send(frame(DATA, 0, self.stream, &bytes[..count]));
        self.windows = self.windows.map(|window| window - count as u32);
        Ok(count)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Starts a WebSocket server that echoes messages, for one connection after the other.
pub(super) fn echo_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        for socket in listener.incoming().flatten() {
            std::thread::spawn(move || {
                let Ok(mut socket) = tungstenite::accept(socket) else { return };
                while let Ok(message) = socket.read() {
                    if message.is_close() || socket.send(message).is_err() {
                        let _ = socket.flush();
                        return;
                    }
                }
            });
        }
    });
    port
}

#[test]
fn the_settings_allow_websockets() {
    let (_site, kirin) = serve_echo(None);
    let mut connection = Connection::open(kirin.address());
    let settings = connection.wait_for("SETTINGS", |frame| frame.is(SETTINGS, 0));
    // SETTINGS_ENABLE_CONNECT_PROTOCOL.
    let allowed = settings.payload.chunks(6).any(|setting| setting == [0, 8, 0, 0, 0, 1]);
    assert!(allowed, "{settings:?}");
}

#[test]
fn a_websocket_to_a_server_echoes_messages_of_any_size() {
    let (_site, kirin) = serve_echo(Some(echo_server()));
    let socket = StreamSocket::new(&kirin, "/far");
    let mut socket = WebSocket::from_raw_socket(socket, Role::Client, None);
    for size in [0, 5, 126, 65_536, 1_000_000] {
        let bytes: Vec<u8> = (0..size).map(|at: u32| (at % 251) as u8).collect();
        socket.send(Message::binary(bytes.clone())).expect("send");
        let reply = socket.read().expect("an echo");
        assert!(reply == Message::binary(bytes), "{} bytes for {size}", reply.len());
    }
    socket.close(None).expect("close");
    while socket.read().is_ok() {}
}

#[test]
fn an_application_gets_the_handshake_of_http_1_and_the_bytes_of_the_stream() {
    let (_site, kirin) = serve_echo(None);
    let mut socket = StreamSocket::new(&kirin, "/app/echo");
    let head = socket.connection.head_of(1).expect("a head").to_vec();
    let mut fields = FieldBuffer::default();
    Decoder::new(4096).decode(&head, 1 << 16, 100, &mut fields).expect("a header block");
    let value = |name: &str| {
        let field = fields.iter().find(|field| field.name_str() == name);
        field.map(|field| String::from_utf8_lossy(field.value).into_owned())
    };
    assert_eq!(value(":status").as_deref(), Some("200"));
    assert_eq!(value("x-seen").as_deref(), Some("GET websocket HTTP/1.1 http://test"));
    // HTTP/2 has neither (RFC 8441 section 5).
    assert_eq!((value("upgrade"), value("sec-websocket-accept")), (None, None));
    let bytes: Vec<u8> = (0..300_000_u32).map(|at| (at / 7 % 256) as u8).collect();
    for part in bytes.chunks(50_000) {
        socket.write_all(part).expect("send");
        let mut echo = vec![0; part.len()];
        socket.read_exact(&mut echo).expect("an echo");
        assert!(echo == part);
    }
    // The other worker serves other streams of the connection meanwhile.
    let other = socket.connection.send(get(3, "/app/none")).outcome_of(3);
    assert_eq!(other.ok(), Some(&b"no socket"[..]), "{}", socket.connection);
    socket.end();
    let mut rest = Vec::new();
    socket.read_to_end(&mut rest).expect("the end");
    assert_eq!(rest, b"");
}

#[test]
fn what_is_no_websocket_does_not_look_like_one() {
    let (_site, kirin) = serve_echo(None);
    let mut connection = Connection::open(kirin.address());
    let mut decoder = Decoder::new(4096);
    for (stream, path, protocol, status) in [
        // A success would open the WebSocket.
        (1, "/app/none", "websocket", "501"),
        (3, "/hello.txt", "websocket", "501"),
        (5, "/app/refused", "websocket", "403"),
        (7, "/none", "websocket", "404"),
        (9, "/app/echo", "connect-udp", "501"),
    ] {
        connection.send(open(stream, path, protocol));
        let outcome = connection.outcome_of(stream);
        let Outcome::Answered(head, _) = &outcome else { panic!("{path}: {outcome:?}") };
        assert_eq!(status_of(&mut decoder, head), status, "{path} {protocol}\n{connection}");
    }
    assert!(connection.send(get(11, "/hello.txt")).outcome_of(11).ok().is_some());
}

/// Returns the status of a response.
fn status_of(decoder: &mut Decoder, block: &[u8]) -> String {
    let mut fields = FieldBuffer::default();
    decoder.decode(block, 1 << 16, 100, &mut fields).expect("a header block");
    let status = fields.iter().next().expect("a status");
    String::from_utf8_lossy(status.value).into_owned()
}

#[test]
fn a_websocket_ends_with_its_stream_and_with_its_connection() {
    let (_site, kirin) = serve_echo(None);
    for reset in [true, false] {
        let mut sockets: Vec<_> = (0..2).map(|_| StreamSocket::new(&kirin, "/app/echo")).collect();
        if reset {
            sockets.iter_mut().for_each(|socket| _ = socket.connection.send(rst_stream(1)));
        } else {
            sockets.clear();
        }
        // Both workers serve again: each of these holds one.
        let again: Vec<_> = (0..2).map(|_| StreamSocket::new(&kirin, "/app/echo")).collect();
        drop(again);
    }
}

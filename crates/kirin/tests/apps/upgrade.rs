//! `Upgrade` through the built program: WebSocket with a real client library, and failures.

use std::net::TcpStream;

use kirin_tests::{Kirin, Site, patient_seconds, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use tungstenite::{Message, WebSocket};

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\ndeadline = \"DEADLINE\"\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

/// The deadline of a request in seconds, in which handshakes and echoes must be done.
const DEADLINE: u64 = 5;

/// An application that echoes WebSocket messages (RFC 6455), in both ways that PSGI allows.
const APP: &str = r#"
use v5.16; use warnings; use Digest::SHA qw(sha1_base64);
sub read_exactly {
    my ($io, $length) = @_;
    my $bytes = '';
    while (length $bytes < $length) { sysread $io, $bytes, $length - length $bytes, length $bytes or die "gone\n" }
    $bytes;
}
sub echo {
    my ($io, $write) = @_;
    while (1) {
        my ($first, $length) = unpack 'CC', read_exactly($io, 2);
        $length &= 127;
        $length = unpack 'n', read_exactly($io, 2) if $length == 126;
        $length = unpack 'Q>', read_exactly($io, 8) if $length == 127;
        my $mask = read_exactly($io, 4);
        my $data = $length ? read_exactly($io, $length) : '';
        $data ^= substr $mask x (1 + $length / 4), 0, $length;
        my $head = $length < 126 ? pack('CC', $first, $length)
            : $length < 65536 ? pack('CCn', $first, 126, $length) : pack('CCQ>', $first, 127, $length);
        $write->($head . $data);
        return if ($first & 15) == 8;
    }
}
sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    my $io = $env->{'psgix.io'};
    return [200, ['Content-Type' => 'text/plain'], ["$$ " . ($io ? 'io' : 'none')]] if $path eq '/';
    return sub { $_[0]->([101, [Upgrade => 'websocket']]) } if $path eq '/unasked';
    return [101, [Upgrade => 'websocket'], []] if $path eq '/whole';
    if ($path eq '/deaf') {
        return sub { shift->([101, [Upgrade => 'websocket', 'X-Worker' => $$]]); sleep 1 while 1 };
    }
    my $accept = sha1_base64("$env->{HTTP_SEC_WEBSOCKET_KEY}258EAFA5-E914-47DA-95CA-C5AB0DC85B11") . '=';
    if ($path eq '/raw') {
        return sub {
            print $io "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n",
                "Sec-WebSocket-Accept: $accept\r\nX-Worker: $$\r\n\r\n";
            echo($io, sub { print $io $_[0] });
        };
    }
    return sub {
        my $writer = shift->([101, [Upgrade => 'websocket', 'Sec-WebSocket-Accept' => $accept, 'X-Worker' => $$]]);
        echo($io, sub { $writer->write($_[0]) });
    };
};
"#;

fn serve() -> (Site, Kirin) {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, &CONFIG.replace("DEADLINE", &patient_seconds(DEADLINE)));
    (site, kirin)
}

/// Returns a WebSocket and the pid of the worker at its other end.
fn open(kirin: &Kirin, path: &str) -> (WebSocket<TcpStream>, String) {
    let stream = TcpStream::connect(kirin.address()).expect("connect");
    stream.set_read_timeout(Some(kirin_tests::wait_limit())).expect("read timeout");
    let url = format!("ws://{}{path}", kirin.address());
    let (socket, response) = tungstenite::client(url, stream).expect("a handshake");
    let worker = response.headers().get("x-worker").expect("X-Worker");
    (socket, worker.to_str().expect("a pid").to_owned())
}

fn assert_echo(socket: &mut WebSocket<TcpStream>, message: Message) {
    socket.send(message.clone()).expect("send");
    let reply = socket.read().expect("read");
    assert!(reply == message, "{} bytes for {}", reply.len(), message.len());
}

#[test]
fn a_websocket_echoes_text_and_binary_of_any_size_and_closes() {
    let (_site, kirin) = serve();
    for path in ["/raw", "/writer"] {
        let (mut socket, worker) = open(&kirin, path);
        assert_echo(&mut socket, Message::text("hello"));
        for size in [0, 125, 126, 65_535, 65_536, 1_000_000] {
            let bytes: Vec<u8> = (0..size).map(|at: u32| (at % 251) as u8).collect();
            assert_echo(&mut socket, Message::binary(bytes));
        }
        // The other worker serves all others, on new and kept connections.
        let mut client = kirin.connect();
        for _ in 0..5 {
            assert!(!client.get("/").text().starts_with(&worker), "{path}");
        }
        socket.close(None).expect("close");
        while socket.read().is_ok() {}
        wait_for("the worker to serve again", || {
            kirin.get("/").text().starts_with(&worker).then_some(())
        });
    }
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn an_unrequested_protocol_switch_is_an_error() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    assert_eq!(client.get("/unasked").status, 500);
    assert_eq!(client.get("/whole").status, 500);
    assert_eq!(
        client.request("GET", "/whole", "Upgrade: x\r\nConnection: Upgrade\r\n").status,
        500
    );
    assert_eq!(client.get("/").status, 200);
}

#[test]
fn either_side_of_an_upgraded_connection_may_vanish() {
    let (_site, kirin) = serve();
    let (mut socket, worker) = open(&kirin, "/raw");
    assert_echo(&mut socket, Message::text("hello"));
    let pid = Pid::from_raw(worker.parse().expect("a pid")).expect("a pid");
    kill_process(pid, Signal::KILL).expect("kill");
    assert!(socket.read().is_err());

    // A worker may get its next seat before its last connection has ended. It is replaced then, so
    // the test does not wait for a certain process: no worker serves unless one is free again.
    let sockets = [open(&kirin, "/writer").0, open(&kirin, "/writer").0];
    drop(sockets);
    let page = kirin.get("/");
    assert_eq!(page.status, 200, "{}", kirin.log());
}

#[test]
fn workers_that_ignore_the_end_of_their_clients_are_replaced() {
    let (_site, kirin) = serve();
    let mut clients: Vec<_> = (0..2).map(|_| kirin.connect()).collect();
    for client in &mut clients {
        client.send(
            "GET /deaf HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        );
        client.read_until(b"\r\n\r\n");
    }
    clients[0].reset();
    clients[1].end();
    let page = kirin.get("/");
    assert_eq!(page.status, 200, "{}", kirin.log());
}

/// An application that writes 101 and a message to `psgix.io`, and then ends in several ways.
const WRITES_AND: &str = r#"
use v5.16; use warnings;
my ($runs, @kept) = (0);
sub {
    my $env = shift;
    my ($path, $io) = @$env{qw(PATH_INFO psgix.io)};
    push @kept, delete $env->{'psgix.io'} if $path eq '/keep';
    return [200, [], ["$$ $runs"]] if $path eq '/count';
    $runs++;
    die "no socket\n" if !$io;
    return undef if $path eq '/nothing';
    die "declined\n" if $path eq '/declined';
    my $switch = sub {
        print $io "HTTP/1.1 101 Switching Protocols\r\nUpgrade: test\r\nConnection: Upgrade\r\n\r\n";
        # The front may have read all of it by now, or nothing.
        sysread $io, my $go, 1 if $env->{QUERY_STRING} eq 'read';
        syswrite $io, 'bye';
    };
    return sub {
        my $responder = shift;
        $switch->();
        die "died later\n" if $path eq '/die-later';
        $responder->([200, [], ['late']]);
    } if $path =~ /later/;
    $switch->();
    die "died\n" if $path eq '/die' || $path eq '/keep';
    return [200, [], ['triple']] if $path eq '/triple';
    return [101, [Upgrade => 'test'], []];
};
"#;

#[test]
fn an_upgraded_connection_ends_when_its_application_dies_or_returns() {
    let config = CONFIG.replace("DEADLINE", &patient_seconds(DEADLINE));
    let config = config.replace("workers = 2", "workers = 1");
    let site = Site::new().with("app.psgi", WRITES_AND);
    let kirin = Kirin::start(&site, &config);
    let count = kirin.get("/count").text();
    let pid = count.strip_suffix(" 0").expect("no run yet");
    let mut runs = 0;
    for (path, reason) in [
        ("/die", "died"),
        ("/keep", "died"),
        ("/triple", "written to psgix.io, so its response is not sent"),
        ("/switched", "written to psgix.io, so its response is not sent"),
        ("/die-later", "died later"),
        ("/later", "written to psgix.io, so its response is not sent"),
    ] {
        for query in ["", "?read"] {
            let mut client = kirin.connect();
            client.send(format!(
                "GET {path}{query} HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: test\r\n\r\n"
            ));
            client.read_until(b"\r\n\r\n");
            if query == "?read" {
                client.send("x");
            }
            let data = client.read_to_end();
            assert_eq!(String::from_utf8_lossy(&data), "bye", "{path}{query}\n{}", kirin.log());
            kirin.wait_for_log(&format!("GET {path}{query}: "));
            assert!(kirin.log().contains(reason), "{reason}\n{}", kirin.log());
            // The client that has not left keeps no worker.
            runs += 1;
            assert_eq!(kirin.get("/count").text(), format!("{pid} {runs}"), "{path}{query}");
        }
    }
    let mut client = kirin.connect();
    for (path, reason) in [
        ("/nothing", "has returned no response, and has not written to psgix.io"),
        ("/declined", "declined"),
    ] {
        let reply = client.request("GET", path, "Upgrade: test\r\nConnection: Upgrade\r\n");
        assert_eq!(reply.status, 500, "{path}: {reply:?}");
        kirin.wait_for_log(reason);
        runs += 1;
        assert_eq!(client.get("/count").text(), format!("{pid} {runs}"), "{path}");
    }
}

//! Connections: limits, large values, clients that disconnect, many clients at once.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::sync::Arc;
use std::time::Duration;

use kirin_memcache::ServerOptions;
use kirin_memcache::codec::CodecLimits;

use crate::peer::{Client, Kirin, show, wait_until};

fn options(item_size_bytes: usize) -> ServerOptions {
    ServerOptions {
        limits: CodecLimits { item_size_bytes, ..CodecLimits::default() },
        ..ServerOptions::default()
    }
}

fn counter(kirin: &Kirin, name: &str) -> u64 {
    let stats = String::from_utf8(kirin.connect().ask(b"stats\r\n")).expect("text");
    let row = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    row.and_then(|value| value.trim().parse().ok())
        .unwrap_or_else(|| panic!("no {name} in {stats}"))
}

#[test]
fn all_commands_of_a_read_are_answered_together() {
    let kirin = Kirin::start();
    let mut client = kirin.connect();
    let commands: String =
        (0..1000).map(|i| format!("set k{i} 0 0 1\r\nv\r\nget k{i}\r\n")).collect();
    let answers: String =
        (0..1000).map(|i| format!("STORED\r\nVALUE k{i} 0 1\r\nv\r\nEND\r\n")).collect();
    assert_eq!(show(&client.ask(commands.as_bytes())), show(answers.as_bytes()));
}

#[test]
fn answers_are_sent_before_quit_and_before_the_end_of_input_closes() {
    let kirin = Kirin::start();
    let mut client = kirin.connect();
    client.send(b"set a 0 0 1\r\n1\r\nget a\r\nquit\r\nget a\r\n");
    assert_eq!(client.read_to_end(), b"STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n");

    let mut client = kirin.connect();
    client.send(b"get a\r\nget a");
    client.stream.shutdown(Shutdown::Write).expect("half-closed");
    assert_eq!(client.read_to_end(), b"VALUE a 0 1\r\n1\r\nEND\r\n");
}

#[test]
fn a_client_of_the_binary_protocol_is_cut_off() {
    let kirin = Kirin::start();
    let mut client = kirin.connect();
    client.send(&[0x80, 0x0b, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(client.read_to_end(), b"");
    assert_eq!(kirin.connect().ask(b"get a\r\n"), b"END\r\n");
}

#[test]
fn a_connection_over_the_limit_gets_an_error() {
    let kirin = Kirin::with(ServerOptions { connection_limit: 3, ..ServerOptions::default() }, 1);
    let mut clients: Vec<Client> = (0..3).map(|_| kirin.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.ask(b"get a\r\n"), b"END\r\n");
    }
    assert_eq!(kirin.connect().read_to_end(), b"ERROR Too many open connections\r\n");
    drop(clients.pop());
    wait_until("a place for a connection", || kirin.server.open_connections() < 3);
    assert_eq!(kirin.connect().ask(b"get a\r\n"), b"END\r\n");
}

#[test]
fn a_silent_connection_is_closed_if_an_idle_timeout_is_set() {
    let idle_timeout = Some(Duration::from_millis(100));
    let kirin = Kirin::with(ServerOptions { idle_timeout, ..ServerOptions::default() }, 1);
    assert_eq!(kirin.connect().read_to_end(), b"");
    assert_eq!(counter(&kirin, "idle_kicks"), 1);
}

#[test]
fn values_of_many_sizes_come_back_whole() {
    let kirin = Kirin::with(options(64 << 20), 1);
    let mut client = kirin.connect();
    for size in [0, 1, 1023, 1024, 1025, 65_500, 65_536, 70_000, 1 << 20, (3 << 20) + 1, 40 << 20] {
        let value: Vec<u8> = (0..size).map(|at| (at * 7 + at / 251) as u8).collect();
        let set = [format!("set k 5 0 {size}\r\n").as_bytes(), &value, b"\r\n"].concat();
        assert_eq!(show(&client.ask(&set)), "STORED\\r\\n", "set of {size} bytes");
        let answer = client.ask(b"get k\r\n");
        let expected =
            [format!("VALUE k 5 {size}\r\n").as_bytes(), &value, b"\r\nEND\r\n"].concat();
        assert!(
            answer == expected,
            "get of {size} bytes: {} bytes, not {}",
            answer.len(),
            expected.len()
        );
    }
}

#[test]
fn a_large_value_and_the_commands_behind_it_may_come_in_pieces() {
    let kirin = Kirin::with(options(8 << 20), 1);
    let mut client = kirin.connect();
    let value = vec![b'v'; 300_000];
    let set =
        [b"set k 0 0 300000\r\n", value.as_slice(), b"\r\nget nothing\r\nset n 0 0 1\r\n1\r\n"]
            .concat();
    for piece in set.chunks(7919) {
        client.send(piece);
    }
    assert_eq!(client.ask(b"incr n 1\r\n"), b"STORED\r\nEND\r\nSTORED\r\n2\r\n");
    let broken = [b"set k 0 0 300000\r\n", value.as_slice(), b"xxget n\r\n"].concat();
    assert_eq!(client.ask(&broken), b"CLIENT_ERROR bad data chunk\r\nVALUE n 0 1\r\n2\r\nEND\r\n");
}

#[test]
fn a_client_that_leaves_in_the_middle_does_not_disturb_others() {
    let kirin = Kirin::start();
    let value = vec![b'v'; 900_000];
    let set = [b"set k 0 0 900000\r\n", value.as_slice(), b"\r\n"].concat();
    assert_eq!(kirin.connect().ask(&set), b"STORED\r\n");
    for _ in 0..50 {
        let mut client = kirin.connect();
        client.send(&b"get k\r\n".repeat(100));
        drop(client);
        kirin.connect().send(&set[..400_000]);
    }
    wait_until("all connections are gone", || kirin.server.open_connections() == 0);
    assert_eq!(kirin.connect().ask(b"mg k s\r\n"), b"HD s900000\r\n");
}

#[test]
fn counters_and_cas_loops_of_many_clients_lose_no_update() {
    const CLIENTS: usize = 16;
    const ROUNDS: usize = 200;
    let kirin = Arc::new(Kirin::with(ServerOptions::default(), 2));
    let mut setup = kirin.connect();
    assert_eq!(
        setup.ask(b"set n 0 0 1\r\n0\r\nset m 0 0 1\r\n0\r\nset c 0 0 1\r\n0\r\n"),
        b"STORED\r\n".repeat(3)
    );
    let work = |number: usize, kirin: Arc<Kirin>| {
        let mut client = kirin.connect();
        for round in 0..ROUNDS {
            client.send(b"incr n 3 noreply\r\n");
            let answer = client.ask(b"ma m D5 q\r\n");
            assert_eq!(show(&answer), "", "client {number}, round {round}");
            loop {
                let answer = String::from_utf8(client.ask(b"gets c\r\n")).expect("text");
                let mut lines = answer.lines();
                let cas =
                    lines.next().and_then(|line| line.split(' ').nth(4)).expect("a cas unique");
                let count: u64 =
                    lines.next().and_then(|line| line.trim().parse().ok()).expect("a number");
                let next = (count + 1).to_string();
                let swap = format!("cas c 0 0 {} {cas}\r\n{next}\r\n", next.len());
                match client.ask(swap.as_bytes()).as_slice() {
                    b"STORED\r\n" => break,
                    b"EXISTS\r\n" => {}
                    other => panic!("cas: {}", show(other)),
                }
            }
        }
    };
    let workers: Vec<_> = (0..CLIENTS)
        .map(|number| {
            let kirin = Arc::clone(&kirin);
            std::thread::spawn(move || work(number, kirin))
        })
        .collect();
    for worker in workers {
        worker.join().expect("a client's thread");
    }
    let rounds = CLIENTS * ROUNDS;
    for (key, expected) in [("n", 3 * rounds), ("m", 5 * rounds), ("c", rounds)] {
        let answer = setup.ask(format!("incr {key} 0\r\n").as_bytes());
        assert_eq!(show(&answer), format!("{expected}\\r\\n"), "{key}");
    }
}

#[test]
fn one_of_many_clients_that_miss_at_once_wins() {
    let kirin = Kirin::with(ServerOptions::default(), 2);
    let address = kirin.address;
    for round in 0..50 {
        let clients: Vec<_> = (0..8)
            .map(|_| {
                std::thread::spawn(move || {
                    Client::connect(address).ask(format!("mg page{round} N30 v\r\n").as_bytes())
                })
            })
            .collect();
        let answers: Vec<_> =
            clients.into_iter().map(|client| client.join().expect("an answer")).collect();
        let wins = answers.iter().filter(|answer| *answer == b"VA 0 W\r\n\r\n").count();
        let waits = answers.iter().filter(|answer| *answer == b"VA 0 Z\r\n\r\n").count();
        assert_eq!(
            (wins, waits),
            (1, 7),
            "round {round}: {:?}",
            answers.iter().map(|a| show(a)).collect::<Vec<_>>()
        );
    }
}

#[test]
fn bytes_that_drip_in_one_by_one_make_commands() {
    let kirin = Kirin::start();
    let mut stream = TcpStream::connect(kirin.address).expect("a connection");
    stream.set_nodelay(true).expect("no delay");
    for byte in b"set a 0 0 3\r\nabc\r\nget a\r\nquit\r\n" {
        stream.write_all(&[*byte]).expect("sent");
    }
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("the answers");
    assert_eq!(show(&answer), show(b"STORED\r\nVALUE a 0 3\r\nabc\r\nEND\r\n"));
}

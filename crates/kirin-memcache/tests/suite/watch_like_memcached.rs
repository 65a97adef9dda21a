//! The same commands to memcached and to Kirin: a watcher of each is shown the same lines.

use std::io::{BufRead, BufReader};

use crate::peer::{Client, Kirin, Memcached, show};

/// Commands, each with the bytes at the end of its answer.
const COMMANDS: &[(&str, &str)] = &[
    ("get a b:x\r\n", "END\r\n"),
    ("set a 5 0 3\r\nabc\r\n", "\r\n"),
    ("set a 5 100 4\r\nabcd\r\n", "\r\n"),
    ("get a\r\n", "END\r\n"),
    ("gets b a\r\n", "END\r\n"),
    ("gat 100 a n\r\n", "END\r\n"),
    ("touch a 100\r\n", "\r\n"),
    ("touch n 0\r\n", "\r\n"),
    ("incr a 1\r\n", "\r\n"),
    ("set n 0 0 1\r\n9\r\n", "\r\n"),
    ("incr n 1\r\n", "\r\n"),
    ("decr none 1\r\n", "\r\n"),
    ("delete n\r\n", "\r\n"),
    ("delete n\r\n", "\r\n"),
    ("add a 0 0 1\r\n1\r\n", "\r\n"),
    ("replace q 0 0 1\r\n1\r\n", "\r\n"),
    ("append q 0 0 1\r\n1\r\n", "\r\n"),
    ("append a 0 0 1\r\n1\r\n", "\r\n"),
    ("prepend a 0 0 2\r\n12\r\n", "\r\n"),
    ("cas a 0 0 1 1\r\nx\r\n", "\r\n"),
    ("cas q 0 0 1 1\r\nx\r\n", "\r\n"),
    ("set c%/é 0 0 1 noreply\r\nx\r\nmn\r\n", "MN\r\n"),
    ("mg m v\r\n", "\r\n"),
    ("mg m N30\r\n", "\r\n"),
    ("mg m q k\r\n", "\r\n"),
    ("ms m 1\r\nx\r\n", "\r\n"),
    ("ms m2 1 ME\r\nx\r\n", "\r\n"),
    ("ms m2 1 ME\r\nx\r\n", "\r\n"),
    ("ms m2 1 MA\r\nx\r\n", "\r\n"),
    ("ms m2 1 MR C1\r\nx\r\n", "\r\n"),
    ("ms OiAgeA== 1 b\r\nx\r\n", "\r\n"),
    ("md m2 I\r\n", "\r\n"),
    ("md m2\r\n", "\r\n"),
    ("md m2\r\n", "\r\n"),
    ("ma m3 N0 J5\r\n", "\r\n"),
    ("ma m3\r\n", "\r\n"),
    ("ma m4\r\n", "\r\n"),
    ("me m3\r\n", "\r\n"),
    // The watchers know by this key that there is no more.
    ("set end 0 0 1\r\n1\r\n", "\r\n"),
];

/// The lines of a watcher after `OK`.
struct Watch(BufReader<std::net::TcpStream>);

impl Watch {
    fn begin(mut client: Client, streams: &str) -> Watch {
        let answer = client.ask_until(format!("watch {streams}\r\n").as_bytes(), b"OK\r\n");
        assert_eq!(answer, b"OK\r\n");
        Watch(BufReader::new(client.stream))
    }

    /// Returns the lines up to the first that has `end`.
    fn lines_until(&mut self, end: &str) -> Vec<String> {
        let mut lines = Vec::new();
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).expect("a line") > 0, "closed after {lines:#?}");
            let is_end = line.contains(end);
            lines.push(line);
            if is_end {
                return lines;
            }
        }
    }
}

/// Removes what differs between any two servers: time, number, ports and descriptors.
fn comparable(line: &str) -> String {
    let words = line.split(' ').map(|word| match word.split_once('=') {
        Some((name @ ("ts" | "gid" | "rport" | "cfd"), value)) => {
            let value = value.trim_end();
            let is_number = value.parse::<f64>().is_ok();
            format!("{name}={}", if is_number { "NUMBER" } else { value })
        }
        // Both clocks tick while the commands run.
        Some(("ttl", value)) => match value.parse::<u64>() {
            Ok(90..=100) => "ttl=ABOUT100".to_owned(),
            _ => word.to_owned(),
        },
        _ => word.trim_end().to_owned(),
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Returns what watchers of `streams` are shown of [`COMMANDS`].
fn shown(watch: &mut Watch, client: &mut Client, end: &str) -> Vec<String> {
    for (command, answer_end) in COMMANDS {
        let answer = client.ask_until(command.as_bytes(), answer_end.as_bytes());
        assert!(answer.ends_with(answer_end.as_bytes()), "{command}: {}", show(&answer));
    }
    let mut lines: Vec<String> =
        watch.lines_until(end).iter().map(|line| comparable(line)).collect();
    // memcached looks a number up twice if it then creates it.
    lines.dedup();
    lines
}

#[test]
fn fetchers_and_mutations_are_shown_as_memcached_shows_them() {
    for (streams, end) in [
        ("fetchers", "item_get key=end "),
        ("mutations", "item_store key=end "),
        ("fetchers mutations evictions connevents", "item_store key=end "),
    ] {
        let (memcached, kirin) = (Memcached::start(), Kirin::start());
        let mut their_client = memcached.connect();
        let mut our_client = kirin.connect();
        // An answer shows that the server has accepted the connection, which is an event itself.
        assert_eq!(their_client.ask(b""), our_client.ask(b""));
        let mut theirs = Watch::begin(memcached.connect(), streams);
        let mut ours = Watch::begin(kirin.connect(), streams);
        let their_lines = shown(&mut theirs, &mut their_client, end);
        let our_lines = shown(&mut ours, &mut our_client, end);
        assert_eq!(our_lines, their_lines, "{streams}: ours (left), memcached's (right)");
        assert!(our_lines.len() > 15, "{our_lines:#?}");
    }
}

#[test]
fn connections_are_shown_as_memcached_shows_them() {
    let (memcached, kirin) = (Memcached::start(), Kirin::start());
    let lines = |mut watch: Watch, connect: &dyn Fn() -> Client| {
        let mut client = connect();
        assert_eq!(client.ask(b"get a\r\n"), b"END\r\n");
        drop(client);
        let mut lines = watch.lines_until("type=conn_close ");
        let mut client = connect();
        client.send(b"quit\r\n");
        assert_eq!(client.read_to_end(), b"");
        lines.extend(watch.lines_until("type=conn_close "));
        let mut client = connect();
        client.send(&[b'x'; 5000]);
        client.read_to_end();
        lines.extend(watch.lines_until("type=conn_close "));
        lines.iter().map(|line| comparable(line)).collect::<Vec<_>>()
    };
    let theirs = Watch::begin(memcached.connect(), "connevents");
    let ours = Watch::begin(kirin.connect(), "connevents");
    let theirs = lines(theirs, &|| memcached.connect());
    let ours = lines(ours, &|| kirin.connect());
    assert_eq!(ours, theirs, "ours (left), memcached's (right)");
    assert_eq!(ours.len(), 6);
}

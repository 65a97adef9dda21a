//! The memory that clients can make `kirin memcached` hold, measured from outside the process.

use std::io::Read;

use kirin_tests::{MemcachedClient, MemcachedProgram, memcached_port, wait_for};

fn start(arguments: &[&str]) -> (MemcachedProgram, u16) {
    let directory = tempfile::tempdir().expect("a directory");
    let port_file = directory.path().join("port");
    let program =
        MemcachedProgram::start(&[&["-p", "-1", "-t", "1"], arguments].concat(), Some(&port_file));
    let port = memcached_port(&port_file);
    (program, port)
}

fn counter(port: u16, name: &str) -> u64 {
    let stats = String::from_utf8(MemcachedClient::connect(port).ask(b"stats\r\n")).expect("text");
    let row = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    row.and_then(|value| value.trim().parse().ok())
        .unwrap_or_else(|| panic!("no {name} in {stats}"))
}

#[test]
fn an_announced_gigabyte_that_never_comes_takes_no_memory() {
    let (program, port) = start(&["-m", "4096", "-I", "1000m"]);
    let before = program.resident_bytes();
    let mut clients: Vec<MemcachedClient> =
        (0..100).map(|_| MemcachedClient::connect(port)).collect();
    for client in &mut clients {
        client.send(b"set k 0 0 1000000000\r\nonly this much");
    }
    wait_for("the server has read it", || (counter(port, "bytes_read") > 100 * 36).then_some(()));
    let grown = program.resident_bytes().saturating_sub(before);
    assert!(grown < 32 << 20, "{grown} bytes for 100 announcements");
}

#[test]
fn an_idle_connection_takes_little_memory() {
    let (program, port) = start(&["-c", "5000"]);
    let mut first: Vec<MemcachedClient> =
        (0..100).map(|_| MemcachedClient::connect(port)).collect();
    let used = |client: &mut MemcachedClient| assert_eq!(client.ask(b"get a\r\n"), b"END\r\n");
    first.iter_mut().for_each(used);
    let before = program.resident_bytes();
    let mut clients: Vec<MemcachedClient> =
        (0..2000).map(|_| MemcachedClient::connect(port)).collect();
    clients.iter_mut().for_each(used);
    let each = program.resident_bytes().saturating_sub(before) / clients.len();
    eprintln!("{each} bytes of memory each idle connection");
    // It was 823 bytes. A buffer for each connection would take several thousand.
    assert!(each < 1600, "{each} bytes each");
}

#[test]
fn a_client_that_does_not_read_waits_and_costs_little() {
    let (program, port) = start(&["-I", "2m"]);
    let value = vec![b'v'; 1_000_000];
    let set = [b"set k 0 0 1000000\r\n", value.as_slice(), b"\r\n"].concat();
    assert_eq!(MemcachedClient::connect(port).ask(&set), b"STORED\r\n");

    // 4,000 megabytes are requested and not read, in one line and in many commands.
    let mut one_line = MemcachedClient::connect(port);
    one_line.send(format!("get{}\r\n", " k".repeat(2000)).as_bytes());
    let mut many_lines = MemcachedClient::connect(port);
    many_lines.send("get k\r\n".repeat(2000).as_bytes());
    wait_for("both are held back", || (counter(port, "conn_yields") >= 2).then_some(()));
    let resident = program.resident_bytes();
    assert!(resident < 64 << 20, "{resident} bytes while two clients do not read");

    // Other clients are served meanwhile. In the end the two clients get everything.
    assert_eq!(MemcachedClient::connect(port).ask(b"get nothing\r\n"), b"END\r\n");
    for (mut client, ends) in [(one_line, 1), (many_lines, 2000)] {
        let expected = 2000 * ("VALUE k 0 1000000\r\n".len() + 1_000_000 + 2) + ends * 5;
        let mut received = 0;
        let mut part = vec![0; 1 << 20];
        while received < expected {
            let count = client.stream.read(&mut part).expect("more of the answer");
            assert!(count > 0, "closed after {received} of {expected} bytes");
            received += count;
        }
        assert_eq!(received, expected);
        assert_eq!(client.ask(b"get nothing\r\n"), b"END\r\n");
    }
}

//! Operators' tools and watchers on `kirin memcached` and `kirin serve`.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::net::TcpStream;
use std::process::{Command, Output, Stdio};

use kirin_tests::{
    Kirin, Memcached, MemcachedClient, MemcachedProgram, Site, memcached_port, wait_for,
};

/// memcached's own tool for operators.
const TOOL: &str = "/usr/share/memcached/scripts/memcached-tool";

fn start(arguments: &[&str]) -> (MemcachedProgram, u16) {
    let directory = tempfile::tempdir().expect("a directory");
    let port_file = directory.path().join("port");
    let program = MemcachedProgram::start(&[&["-p", "-1"], arguments].concat(), Some(&port_file));
    let port = memcached_port(&port_file);
    (program, port)
}

fn counter(port: u16, name: &str) -> u64 {
    let stats = String::from_utf8(MemcachedClient::connect(port).ask(b"stats\r\n")).expect("text");
    let row = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
    row.and_then(|value| value.trim().parse().ok())
        .unwrap_or_else(|| panic!("no {name} in {stats}"))
}

/// Stores items under `key:NUMBER`, with the number as the value.
/// The flags have a bit that PHP leaves to its users.
fn fill(port: u16, numbers: std::ops::Range<u32>) {
    let mut client = MemcachedClient::connect(port);
    let mut commands = String::new();
    for number in numbers {
        let value = number.to_string();
        let length = value.len();
        let _ = write!(commands, "set key:{number} 65536 0 {length} noreply\r\n{value}\r\n");
    }
    assert_eq!(client.ask(commands.as_bytes()), b"");
}

fn run(command: &mut Command) -> String {
    let output: Output = command
        .stdin(Stdio::null())
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{command:?}: {said}\n{output:?}");
    said
}

fn tool(port: u16, arguments: &[&str]) -> String {
    run(Command::new("perl").arg(TOOL).arg(format!("127.0.0.1:{port}")).args(arguments))
}

/// Begins to watch. Returns the lines that follow `OK`.
fn watch(port: u16, streams: &str) -> BufReader<TcpStream> {
    let mut client = MemcachedClient::connect(port);
    client.send(format!("watch {streams}\r\n").as_bytes());
    let mut lines = BufReader::new(client.stream);
    assert_eq!(line(&mut lines), "OK\r\n");
    lines
}

fn line(lines: &mut BufReader<TcpStream>) -> String {
    let mut line = String::new();
    lines.read_line(&mut line).expect("a line");
    line
}

#[test]
fn memcached_tool_works_in_all_its_modes() {
    let (_program, port) = start(&["-t", "2"]);
    fill(port, 0..1000);
    let display = tool(port, &["display"]);
    let row: Vec<&str> = display.lines().nth(1).expect("a row").split_whitespace().collect();
    assert_eq!((row[0], row[4]), ("1", "1000"), "{display}");
    for (mode, expected) in
        [("stats", ["curr_items", "1000"]), ("settings", ["detail_enabled", "no"])]
    {
        let said = tool(port, &[mode]);
        let has_row = said.lines().any(|line| line.split_whitespace().eq(expected));
        assert!(has_row, "{mode}: {said}");
    }
    let sizes: u32 = tool(port, &["sizes"])
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1)?.parse::<u32>().ok())
        .sum();
    assert_eq!(sizes, 1000, "the sizes of all items");

    let keys = tool(port, &["keys"]);
    let listed: BTreeSet<&str> = keys.lines().filter_map(|line| line.split(' ').next()).collect();
    assert_eq!((keys.lines().count(), listed.len()), (1000, 1000));
    assert!(listed.contains("key=key%3A77"), "{keys:.300}");
    assert_eq!(tool(port, &["keys", "10"]).lines().count(), 10);

    // `dump` lists the keys, reads each item and writes the commands that store it again.
    let dump = tool(port, &["dump"]);
    let (_other, empty) = start(&["-t", "1"]);
    let stored = MemcachedClient::connect(empty).ask(dump.as_bytes());
    assert_eq!(stored, b"STORED\r\n".repeat(1000));
    let answer = MemcachedClient::connect(empty).ask(b"get key:77\r\n");
    assert_eq!(answer, b"VALUE key:77 65536 2\r\n77\r\nEND\r\n");
}

#[test]
fn libmemcached_lists_the_keys_in_c_and_in_php() {
    let (_program, port) = start(&["-t", "2"]);
    fill(port, 0..3000);
    let expected: BTreeSet<String> = (0..3000).map(|number| format!("key:{number}")).collect();
    let memcdump = run(Command::new("memcdump").arg(format!("--servers=127.0.0.1:{port}")));
    assert_eq!(memcdump.lines().map(str::to_owned).collect::<BTreeSet<_>>(), expected);
    let script = format!(
        "$store = new Memcached(); $store->addServer('127.0.0.1', {port}); \
         $keys = $store->getAllKeys(); \
         if ($keys === false) {{ echo $store->getResultMessage(); exit(1); }} \
         echo implode(\"\\n\", $keys), \"\\n\", $store->get('key:77'), \"\\n\";"
    );
    let said = run(Command::new("php").args(["-r", &script]));
    let mut lines: Vec<String> = said.lines().map(str::to_owned).collect();
    assert_eq!(lines.pop().as_deref(), Some("77"), "the connection is usable after the list");
    assert_eq!(lines.len(), 3000);
    assert_eq!(lines.into_iter().collect::<BTreeSet<_>>(), expected);
}

#[test]
fn clients_that_do_not_read_a_list_cost_little() {
    let (program, port) = start(&["-t", "1", "-m", "256"]);
    fill(port, 0..150_000);
    let before = program.resident_bytes();
    let mut clients: Vec<MemcachedClient> =
        (0..10).map(|_| MemcachedClient::connect_with_small_window(port)).collect();
    let yields = counter(port, "conn_yields");
    for client in &mut clients {
        client.send(b"lru_crawler metadump all\r\n");
    }
    for client in &clients {
        assert_eq!(client.stream.peek(&mut [0]).expect("the start of a list"), 1);
    }
    // A list that goes on yields once more in the same turn of the only event loop. Each look takes
    // a turn.
    let (mut last, mut looks) = (0, 0);
    wait_for("the sockets are full", || {
        let now = counter(port, "conn_yields");
        looks = if now == last { looks + 1 } else { 0 };
        last = now;
        (now >= yields + 10 && looks >= 20).then_some(())
    });
    let each = program.resident_bytes().saturating_sub(before) / clients.len();
    // A whole list has 12 MB. A piece has 64 KiB, and one step more at most.
    assert!(each < 512 << 10, "{each} bytes for each client that does not read");
    assert_eq!(MemcachedClient::connect(port).ask(b"get none\r\n"), b"END\r\n");
    let mut client = clients.pop().expect("a client");
    drop(clients);
    let list = client.ask(b"get none\r\n");
    let text = String::from_utf8(list).expect("text");
    let (list, rest) = text.split_once("END\r\n").expect("an end");
    assert_eq!((list.lines().count(), rest), (150_000, "END\r\n"), "{list:.300}");
}

#[test]
fn a_client_that_stops_reading_a_list_is_cut_when_it_idles() {
    let (_program, port) = start(&["-t", "1", "-o", "idle_timeout=1"]);
    fill(port, 0..100_000);
    let kicks = counter(port, "idle_kicks");
    let mut client = MemcachedClient::connect(port);
    client.send(b"lru_crawler metadump all\r\n");
    wait_for("it is cut", || (counter(port, "idle_kicks") > kicks).then_some(()));
    let list = client.read_to_end();
    assert!(!list.ends_with(b"END\r\n"), "{} bytes", list.len());
}

#[test]
fn a_watcher_sees_the_commands_of_all_event_loops() {
    let (_program, port) = start(&["-t", "3"]);
    let mut fetchers = watch(port, "fetchers");
    let mut mutations = watch(port, "mutations");
    let mut clients: Vec<MemcachedClient> =
        (0..30).map(|_| MemcachedClient::connect(port)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        let set = format!("set key{number} 0 0 6\r\nsecret\r\n");
        assert_eq!(client.ask(set.as_bytes()), b"STORED\r\n");
    }
    for (lines, kind) in [(&mut fetchers, "item_get"), (&mut mutations, "item_store")] {
        let shown: Vec<String> = (0..30).map(|_| line(lines)).collect();
        for number in 0..30 {
            let expected = format!(" type={kind} key=key{number} ");
            assert!(shown.iter().any(|line| line.contains(&expected)), "{expected}: {shown:#?}");
        }
        assert!(!shown.concat().contains("secret"), "values are never shown");
    }
    assert_eq!(counter(port, "log_watchers"), 2);
    drop((fetchers, mutations));
    wait_for("nobody watches", || (counter(port, "log_watchers") == 0).then_some(()));
}

#[test]
fn a_slow_watcher_loses_lines_and_is_told_how_many() {
    let (program, port) = start(&["-t", "2"]);
    let mut watcher = watch(port, "fetchers");
    let before = program.resident_bytes();
    let key = "\u{e9}".repeat(120);
    let mut client = MemcachedClient::connect(port);
    let gets = format!("get {key}\r\n").repeat(100);
    wait_for("the watcher's socket and ring are full", || {
        client.ask(gets.as_bytes());
        (counter(port, "log_watcher_skipped") > 0).then_some(())
    });
    for _ in 0..100 {
        client.ask(gets.as_bytes());
    }
    let skipped = counter(port, "log_watcher_skipped");
    assert!(skipped > 9000, "{skipped} lines");
    let grown = program.resident_bytes().saturating_sub(before);
    assert!(grown < 8 << 20, "{grown} bytes for a watcher that does not read");

    let (mut told, mut shown) = (0, 0);
    while told == 0 {
        let line = line(&mut watcher);
        match line.strip_prefix("skipped=") {
            Some(count) => told = count.trim_end().parse().expect("a number"),
            None => {
                assert!(line.contains(" type=item_get key=%C3%A9"), "{line}");
                shown += 1;
            }
        }
    }
    assert_eq!((told, shown), (skipped, counter(port, "log_watcher_sent")));
    assert_eq!(client.ask(b"get again\r\n"), b"END\r\n");
    assert!(line(&mut watcher).contains(" key=again "), "it is shown the next events");
}

#[test]
fn a_watcher_may_be_silent_for_longer_than_the_idle_timeout() {
    let (_program, port) = start(&["-t", "1", "-o", "idle_timeout=1"]);
    let mut watcher = watch(port, "connevents");
    for _ in 0..2 {
        assert_eq!(MemcachedClient::connect(port).read_to_end(), b"");
        assert!(line(&mut watcher).contains(" type=conn_new rip=127.0.0.1 rport="));
        let closed = line(&mut watcher);
        assert!(closed.contains(" transport=tcp reason=idle_timeout cfd="), "{closed}");
    }
    drop(watcher);
}

#[test]
fn evictions_are_shown_with_what_the_items_were() {
    let (_program, port) = start(&["-t", "2", "-m", "2", "-I", "64k"]);
    let mut watcher = watch(port, "evictions");
    let mut client = MemcachedClient::connect(port);
    let value = "v".repeat(1000);
    wait_for("something is evicted", || {
        let sets: String = (0..100)
            .map(|_| {
                let number = counter_of_sets();
                format!("set old/{number} 0 1000 1000 noreply\r\n{value}\r\n")
            })
            .collect();
        client.ask(sets.as_bytes());
        (counter(port, "evictions") > 0).then_some(())
    });
    let shown = line(&mut watcher);
    assert!(shown.contains(" type=eviction key=old%2F"), "{shown}");
    assert!(shown.contains(" fetch=no ttl=") && shown.ends_with(" clsid=1 size=1000\n"), "{shown}");
}

/// Returns a number that no set had before.
fn counter_of_sets() -> u64 {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SETS: AtomicU64 = AtomicU64::new(0);
    SETS.fetch_add(1, Ordering::Relaxed)
}

#[test]
fn the_options_of_memcached_forbid_lists_and_watchers() {
    let (_program, port) = start(&["-X", "-W", "-D", "/"]);
    let mut client = MemcachedClient::connect(port);
    for (command, expected) in [
        ("watch fetchers\r\n", "CLIENT_ERROR watch commands not allowed\r\n"),
        ("lru_crawler metadump all\r\n", "ERROR metadump not allowed\r\n"),
        ("stats cachedump 1 0\r\n", "CLIENT_ERROR stats cachedump not allowed\r\n"),
        ("get a/b\r\n", "END\r\n"),
        ("stats detail dump\r\n", "PREFIX a get 1 hit 0 set 0 del 0\r\nEND\r\n"),
    ] {
        assert_eq!(client.ask(command.as_bytes()), expected.as_bytes(), "{command}");
    }
}

#[test]
fn pages_are_listed_and_cached_responses_are_not() {
    const CONFIG: &str = r#"
        threads = 2
        [[listener]]
        address = "127.0.0.1:0"
        [store]
        memcached = ["unix:m.sock"]
        [[app]]
        name = "web"
        load = "app.psgi"
        workers = 1
        [[route]]
        path = "/"
        try = ["store", "app:web"]
        cache = true
    "#;
    const APP: &str = "sub { [200, ['Content-Type' => 'text/plain', 'Cache-Control' => 'max-age=60'], ['cached']] }";
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.set("/page", b"text/plain\r\nstored");
    let mut watcher = Memcached::connect(&site.path("m.sock"));
    assert_eq!(watcher.send("watch fetchers mutations\r\n").line(), "OK");
    let mut client = kirin.connect();
    assert_eq!(client.get("/page").text(), "stored");
    for expected in ["fwd=uri-miss", "hit"] {
        let reply = client.get("/other");
        assert!(reply.field("cache-status").is_some_and(|status| status.contains(expected)));
        assert_eq!(reply.text(), "cached");
    }
    memcached.send("lru_crawler mgdump all\r\n");
    assert_eq!((memcached.line(), memcached.line()), ("mg /page".into(), "EN".into()));
    // Requests of browsers are not commands, so the first line is about this command.
    assert_eq!(memcached.get("/page").as_deref(), Some(&b"text/plain\r\nstored"[..]));
    let shown = watcher.line();
    assert!(shown.contains(" type=item_get key=%2Fpage status=found "), "{shown}");
}

#[test]
fn a_connection_that_ends_while_it_watches_is_noticed() {
    let (_program, port) = start(&["-t", "1"]);
    let mut watcher = watch(port, "fetchers");
    watcher.get_mut().shutdown(std::net::Shutdown::Write).expect("half-closed");
    let mut rest = Vec::new();
    assert_eq!(watcher.read_to_end(&mut rest).expect("the end"), 0);
    assert_eq!(counter(port, "log_watchers"), 0);
}

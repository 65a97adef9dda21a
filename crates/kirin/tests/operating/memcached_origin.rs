//! Several `kirin memcached` with one Redis: each keeps copies of its items.

use std::fmt::from_fn;
use std::net::TcpStream;
use std::path::Path;

use kirin_tests::{
    MemcachedClient, MemcachedProgram, RedisCluster, RedisSentinels, RedisServer,
    memcached_command, memcached_port, wait_for,
};
use rustix::process::{Pid, Signal, kill_process};

/// A store before an origin.
struct Machine {
    program: MemcachedProgram,
    port: u16,
}

impl Machine {
    fn of(redis: &RedisServer) -> Self {
        Self::with(redis, &[])
    }

    fn with(redis: &RedisServer, arguments: &[&str]) -> Self {
        let machine = Self::at(&format!("redis://{}", redis.address()), arguments);
        machine.wait_for_stat("origin_state", "connected");
        machine
    }

    fn at(address: &str, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let port_file = directory.path().join("port");
        let origin = format!("origin={address}");
        // No machine that is busy for a second makes a command fail.
        let own = ["-p", "-1", "-t", "2", "-o", &origin, "-o", "origin_timeout=10s"];
        let program = MemcachedProgram::start(&[&own, arguments].concat(), Some(&port_file));
        let port = memcached_port(&port_file);
        Self { program, port }
    }

    fn client(&self) -> MemcachedClient {
        MemcachedClient::connect(self.port)
    }

    fn ask(&self, command: &str) -> String {
        String::from_utf8(self.client().ask(command.as_bytes())).expect("text")
    }

    fn stat(&self, name: &str) -> String {
        let stats = self.ask("stats\r\n");
        let row = stats.lines().find_map(|line| line.strip_prefix(&format!("STAT {name} ")));
        row.unwrap_or_else(|| panic!("no {name} in {stats}")).trim().to_owned()
    }

    fn wait_for_stat(&self, name: &str, value: &str) {
        wait_for(&format!("{name} to be {value}"), || (self.stat(name) == value).then_some(()));
    }

    fn wait_for_answer(&self, command: &str, answer: &str) {
        let missing = std::fmt::from_fn(|output| {
            write!(output, "{answer:?} to {command:?}, not {:?}", self.ask(command))
        });
        wait_for(&missing, || (self.ask(command) == answer).then_some(()));
    }
}

#[test]
fn what_one_machine_writes_the_others_read() {
    let redis = RedisServer::start();
    let (first, second) = (Machine::of(&redis), Machine::of(&redis));
    assert_eq!(first.ask("ms a 3 F5 Ptags=menu,all\r\nold\r\n"), "HD\r\n");
    assert_eq!(second.ask("get a b\r\n"), "VALUE a 5 3\r\nold\r\nEND\r\n");
    let reads = second.stat("origin_reads");
    assert_eq!(second.ask("get a b\r\nmg a v\r\n"), "VALUE a 5 3\r\nold\r\nEND\r\nVA 3\r\nold\r\n");
    assert_eq!(second.stat("origin_reads"), reads, "the copies answer");
    // A CAS unique is the same on all machines.
    let gets = first.ask("gets a\r\n");
    let cas = gets.split_whitespace().nth(4).expect("a CAS unique");
    assert_eq!(second.ask(&format!("cas a 5 0 3 {cas}\r\nnew\r\n")), "STORED\r\n");
    assert_eq!(first.ask(&format!("cas a 5 0 3 {cas}\r\nnix\r\n")), "EXISTS\r\n");
    first.wait_for_answer("get a\r\n", "VALUE a 5 3\r\nnew\r\nEND\r\n");
    for (command, answer) in [
        ("append a 0 0 1\r\n!\r\n", "STORED\r\n"),
        ("set n 0 0 2\r\n41\r\n", "STORED\r\n"),
        ("incr n 1\r\n", "42\r\n"),
        ("touch n 1000\r\n", "TOUCHED\r\n"),
        ("ms t 1 Ptags=menu\r\nt\r\n", "HD\r\n"),
        ("add t 0 0 1\r\nx\r\n", "NOT_STORED\r\n"),
    ] {
        assert_eq!(first.ask(command), answer, "{command}");
    }
    second.wait_for_answer("get a n\r\n", "VALUE a 5 4\r\nnew!\r\nVALUE n 0 2\r\n42\r\nEND\r\n");
    assert_eq!(second.ask("get t\r\n"), "VALUE t 0 1\r\nt\r\nEND\r\n");
    assert_eq!(first.ask("md menu Ptag\r\n"), "HD\r\n");
    second.wait_for_answer("get t\r\n", "END\r\n");
    assert_eq!(first.ask("flush_all\r\n"), "OK\r\n");
    second.wait_for_answer("get a n t\r\n", "END\r\n");
    assert_eq!(first.stat("cmd_set"), "6", "two ms, cas, append, set and add");
    first.program.terminate();
}

#[test]
fn increments_of_all_machines_are_added_up() {
    const EACH: usize = 300;
    let redis = RedisServer::start();
    let machines = [Machine::of(&redis), Machine::of(&redis), Machine::of(&redis)];
    assert_eq!(machines[0].ask("set n 0 0 1\r\n0\r\n"), "STORED\r\n");
    let counted: Vec<usize> = std::thread::scope(|scope| {
        let threads: Vec<_> = machines
            .iter()
            .map(|machine| {
                scope.spawn(|| {
                    let mut client = machine.client();
                    let count = |_: &usize| {
                        let answer = client.ask(b"incr n 1\r\n");
                        let is_number = answer.first().is_some_and(u8::is_ascii_digit);
                        let is_refused = answer.starts_with(b"SERVER_ERROR the item changes");
                        assert!(is_number || is_refused, "{}", answer.escape_ascii());
                        is_number
                    };
                    (0..EACH).filter(count).count()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("a count")).collect()
    });
    let sum: usize = counted.iter().sum();
    assert!(sum >= EACH, "{counted:?}");
    let value = sum.to_string();
    let answer = format!("VALUE n 0 {}\r\n{value}\r\nEND\r\n", value.len());
    machines[1].wait_for_answer("get n\r\n", &answer);
}

#[test]
fn many_keys_and_large_values_come_in_their_order() {
    let redis = RedisServer::start();
    let (first, second) = (Machine::of(&redis), Machine::of(&redis));
    let mut client = first.client();
    let mut answer = Vec::new();
    let mut command = b"get".to_vec();
    for number in 0..100usize {
        // Some are larger than what one read brings.
        let value = vec![b'a' + (number % 26) as u8; 1 + number * 2_000];
        let set = format!("set key{number} 0 0 {}\r\n", value.len());
        assert_eq!(client.ask(&[set.as_bytes(), &value, b"\r\n"].concat()), b"STORED\r\n");
        command.extend_from_slice(format!(" key{number} none{number}").as_bytes());
        answer.extend_from_slice(format!("VALUE key{number} 0 {}\r\n", value.len()).as_bytes());
        answer.extend_from_slice(&value);
        answer.extend_from_slice(b"\r\n");
    }
    command.extend_from_slice(b"\r\n");
    answer.extend_from_slice(b"END\r\n");
    let mut client = second.client();
    for round in ["from the origin", "from the copies"] {
        let got = client.ask(&command);
        assert!(got == answer, "{round}: {} bytes for {}", got.len(), answer.len());
    }
    // Commands that come together are answered in their order, whatever each waits for.
    let pipeline =
        b"get none0\r\nset p 0 0 1\r\n1\r\nincr p 2\r\nget p\r\ndelete p\r\nget p key0\r\n";
    let answers = b"END\r\nSTORED\r\n3\r\nVALUE p 0 1\r\n3\r\nEND\r\nDELETED\r\nVALUE key0 0 1\r\na\r\nEND\r\n";
    assert_eq!(client.ask(pipeline).escape_ascii().to_string(), answers.escape_ascii().to_string());
    let too_large =
        [&b"set key1 0 0 2000000\r\n"[..], &[b'x'; 2_000_000], b"\r\nget key0\r\n"].concat();
    let refused = b"SERVER_ERROR object too large for cache\r\nVALUE key0 0 1\r\na\r\nEND\r\n";
    let got = client.ask(&too_large).escape_ascii().to_string();
    assert_eq!(got, refused.escape_ascii().to_string());
    first.wait_for_answer("get key1\r\n", "END\r\n");
}

#[test]
fn a_store_without_its_origin_serves_copies_for_a_while_and_refuses_the_rest() {
    let mut redis = RedisServer::start();
    let machine = Machine::of(&redis);
    assert_eq!(
        machine.ask("set a 0 0 1\r\n1\r\nget a\r\n"),
        "STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n"
    );
    redis.kill();
    machine.wait_for_stat("origin_state", "away");
    // The copy of a is served as long as a machine may serve what it cannot prove.
    let refused = "SERVER_ERROR the origin is away: ";
    for command in ["get b\r\n", "set a 0 0 1\r\n2\r\n", "incr a 1\r\n", "md x Ptag\r\n"] {
        let answer = machine.ask(command);
        assert!(answer.starts_with(refused), "{command:?}: {answer:?}");
        assert_eq!(answer.lines().count(), 1, "{answer:?}");
    }
    assert_eq!(machine.ask("set a 0 0 1 noreply\r\n2\r\n"), "");
    wait_for("the copy to be forgotten", || {
        machine.ask("get a\r\n").starts_with(refused).then_some(())
    });
    redis.restart();
    machine.wait_for_stat("origin_state", "connected");
    assert_eq!(machine.ask("get a\r\nset a 0 0 1\r\n3\r\n"), "END\r\nSTORED\r\n");
    machine.program.terminate();
}

#[test]
fn clients_of_all_machines_go_on_after_a_failover() {
    let mut redis = RedisSentinels::start();
    let machines = [(); 2].map(|()| Machine::at(&redis.address(), &[]));
    for machine in &machines {
        machine.wait_for_stat("origin_state", "connected");
    }
    let mut clients = machines.each_ref().map(Machine::client);
    assert_eq!(clients[0].ask(b"set a 0 0 3\r\nold\r\n"), b"STORED\r\n");
    assert_eq!(clients[1].ask(b"get a\r\n"), b"VALUE a 0 3\r\nold\r\nEND\r\n");
    redis.servers[0].kill();
    // Until then a machine serves its copy, but takes no write.
    for machine in &machines {
        machine.wait_for_stat("origin_state", "away");
    }
    let refused = clients[0].ask(b"set a 0 0 3\r\nno!\r\n");
    assert!(
        refused.starts_with(b"SERVER_ERROR the origin is away: "),
        "{}",
        refused.escape_ascii()
    );
    for machine in &machines {
        machine.wait_for_stat("origin_state", "connected");
    }
    assert_eq!(clients[1].ask(b"get a\r\n"), b"END\r\n");
    // Each machine purges everything when it connects, and both have.
    assert_eq!(clients[0].ask(b"set a 0 0 3\r\nnew\r\n"), b"STORED\r\n");
    machines[1].wait_for_answer("get a\r\n", "VALUE a 0 3\r\nnew\r\nEND\r\n");
    assert_eq!(redis.master(), 1);
    for machine in machines {
        machine.program.terminate();
    }
}

#[test]
fn clients_of_all_machines_use_a_cluster_and_go_on_after_a_failover() {
    let mut redis = RedisCluster::with_replicas();
    let machines = [(); 2].map(|()| Machine::at(&redis.address(), &[]));
    for machine in &machines {
        machine.wait_for_stat("origin_state", "connected");
    }
    for number in 0..20 {
        let set = format!("ms a{number} 3 Ptags=tag\r\nold\r\n");
        machines[0].wait_for_answer(&set, "HD\r\n");
        let value = format!("VALUE a{number} 0 3\r\nold\r\nEND\r\n");
        machines[1].wait_for_answer(&format!("get a{number}\r\n"), &value);
    }
    assert_eq!(
        machines[0].ask("incr a0 1\r\n"),
        "CLIENT_ERROR cannot increment or decrement non-numeric value\r\n"
    );
    assert_eq!(machines[0].ask("set n 0 0 1\r\n1\r\nincr n 4\r\n"), "STORED\r\n5\r\n");
    assert_eq!(machines[1].ask("incr n 4\r\n"), "9\r\n");
    let master = redis.master_of("kirin:i:a0");
    redis.masters[master].kill();
    for machine in &machines {
        machine.wait_for_stat("origin_state", "away");
    }
    redis.wait_for_failover(master);
    for machine in &machines {
        machine.wait_for_stat("origin_state", "connected");
    }
    // Each machine purges everything when it connects, and both have.
    assert_eq!(machines[1].ask("get a0 a1 a2 a3\r\n"), "END\r\n");
    assert_eq!(machines[0].ask("set a0 0 0 3\r\nnew\r\n"), "STORED\r\n");
    machines[1].wait_for_answer("get a0\r\n", "VALUE a0 0 3\r\nnew\r\nEND\r\n");
    for machine in machines {
        machine.program.terminate();
    }
}

#[test]
fn a_store_starts_without_its_origin() {
    let mut redis = RedisServer::start();
    redis.kill();
    let machine = Machine::at(&format!("redis://{}", redis.address()), &[]);
    let answer = machine.ask("get a\r\n");
    assert!(answer.starts_with("SERVER_ERROR the origin is away: "), "{answer}");
    redis.restart();
    machine.wait_for_stat("origin_state", "connected");
    assert_eq!(machine.ask("set a 0 0 1\r\n1\r\n"), "STORED\r\n");
}

#[test]
fn one_client_recaches_an_item_and_the_others_wait_for_it() {
    let redis = RedisServer::start();
    let first = Machine::with(&redis, &["-o", "stampede_guard=30"]);
    let second = Machine::with(&redis, &["-o", "stampede_guard=30"]);
    assert_eq!(first.ask("set a 0 20 1\r\n1\r\n"), "STORED\r\n");
    // The item expires soon, so the first client makes it again, whichever machine it asks.
    assert_eq!(second.ask("get a\r\n"), "END\r\n");
    assert_eq!(second.ask("get a\r\n"), "VALUE a 0 1\r\n1\r\nEND\r\n");
    assert_eq!(first.ask("get a\r\n"), "VALUE a 0 1\r\n1\r\nEND\r\n");
    // In one line, too, one look misses.
    assert_eq!(first.ask("set b 0 20 1\r\n2\r\n"), "STORED\r\n");
    assert_eq!(second.ask("get b b a\r\n"), "VALUE b 0 1\r\n2\r\nVALUE a 0 1\r\n1\r\nEND\r\n");
}

#[test]
fn a_delayed_flush_reaches_all_machines_unless_another_takes_its_place() {
    let redis = RedisServer::start();
    let (first, second) = (Machine::of(&redis), Machine::of(&redis));
    assert_eq!(first.ask("set a 0 0 1\r\n1\r\nflush_all 1\r\n"), "STORED\r\nOK\r\n");
    assert_eq!(first.ask("flush_all 1000\r\nset b 0 0 1\r\n1\r\n"), "OK\r\nSTORED\r\n");
    assert_eq!(first.ask("flush_all 1\r\n"), "OK\r\n");
    second.wait_for_answer("get a b\r\n", "END\r\n");
}

#[test]
fn a_new_program_keeps_the_clients_and_reads_the_items_from_the_origin() {
    let redis = RedisServer::start();
    let directory = tempfile::tempdir().expect("a directory");
    let path = |name: &str| directory.path().join(name).to_string_lossy().into_owned();
    let (pid_file, port_file) = (path("pid"), path("port"));
    let origin = format!("origin=redis://{}", redis.address());
    let mut first = memcached_command(&["-p", "-1", "-P", &pid_file, "-o", &origin])
        .env("MEMCACHED_PORT_FILENAME", &port_file)
        .stderr(std::fs::File::create(path("log")).expect("a log"))
        .spawn()
        .expect("the program starts");
    let port = memcached_port(Path::new(&port_file));
    let mut client = MemcachedClient::connect(port);
    wait_for("the origin", || {
        (client.ask(b"set a 0 0 1\r\n1\r\nget a\r\n") == b"STORED\r\nVALUE a 0 1\r\n1\r\nEND\r\n")
            .then_some(())
    });
    let log =
        from_fn(|output| output.write_str(&std::fs::read_to_string(path("log")).expect("it")));
    let missing = from_fn(|output| write!(output, "the first program to end: {log}"));
    let status = wait_for(&missing, || {
        // The port may answer before the program takes signals.
        let _ = kill_process(Pid::from_child(&first), Signal::USR2);
        first.try_wait().expect("its end")
    });
    assert!(status.success());
    let second = std::fs::read_to_string(&pid_file).expect("a pid file");
    let second: i32 = second.trim().parse().expect("a pid");
    let stats = String::from_utf8(client.ask(b"stats\r\n")).expect("text");
    assert!(stats.contains(&format!("STAT pid {second}\r\n")), "{stats}");
    wait_for("the item", || {
        (client.ask(b"get a\r\n") == b"VALUE a 0 1\r\n1\r\nEND\r\n").then_some(())
    });
    let second = Pid::from_raw(second).expect("a pid");
    kill_process(second, Signal::TERM).expect("it is there");
    wait_for("its end", || TcpStream::connect(("127.0.0.1", port)).is_err().then_some(()));
}

#[test]
fn an_origin_that_cannot_be_used_is_refused_at_the_start() {
    for (origin, reason) in [
        ("origin", "-o origin needs an address such as redis://HOST:PORT"),
        ("origin=redis://a,origin_timeout=5", "-o origin_timeout `5` is not a time"),
        ("origin=redis://a,stale_limit=1s", "-o stale_limit: at least 2s is needed"),
        ("stale_limit=5s", "-o origin_timeout and stale_limit: there is no -o origin"),
        (
            "origin=127.0.0.1:6379",
            "the address of the origin has no scheme: write redis://HOST:PORT",
        ),
        ("origin=http://a", "the scheme `http` of the origin is unknown"),
        ("origin=redis-cluster://:secret@a/1", "`/1` follows the servers of a cluster"),
        ("origin=rediss://:secret@a,origin_ca=nothing.pem", "/nothing.pem: "),
        (
            "origin=redis://a,origin_ca=ca.pem",
            "-o origin_ca: only an origin with TLS (rediss://) has a certificate",
        ),
        (
            "origin=redis://a,snapshot=file",
            "-o origin and -o snapshot: the items are on the origin",
        ),
    ] {
        let output = memcached_command(&["-p", "-1", "-o", origin]).output().expect("an end");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && said.contains(reason), "{origin}: {said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

//! A machine that is killed while it makes a response for all machines, at each command that it
//! sends to the server.

use kirin_tests::{RedisServer, wait_for};
use rustix::process::Signal;

use super::{CALM, Machine, address_of};
use crate::origin_chaos::proxy::Proxy;

/// The fields of a response that is kept.
const KEPT: &str = "X-Fields: Cache-Control: max-age=300|Surrogate-Key: t\r\n";

/// More commands than a response takes.
const MOST_COMMANDS: usize = 20;

/// Sends the first request for a response to a machine whose commands stop behind
/// `commands_before`, and one to `other` while the first one hangs. Kills the first machine then.
/// Returns the response of `other`, or `None` if the commands of the first one came to their end.
fn response_after_kill(
    redis: &RedisServer,
    other: &Machine,
    commands_before: usize,
    is_delivered: bool,
) -> Option<String> {
    let proxy = Proxy::start(redis.address());
    let address = format!("redis://{}", proxy.address());
    let owner = Machine::with_origin("a", &address, CALM).connected(1);
    let target = format!("/cached/{commands_before}/{is_delivered}");
    proxy.stop_behind(commands_before, is_delivered);
    let mut hanging = owner.connect();
    hanging.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{KEPT}\r\n"));
    // The last command is the end of the lease. Without a stop, the lease is gone behind it.
    let is_over = || redis.command(&["KEYS", "kirin:l:*"]).is_empty() && owner.runs() > 0;
    let has_stopped = wait_for("a stop, or the end of the commands", || {
        if proxy.has_stopped() { Some(true) } else { is_over().then_some(false) }
    });
    if !has_stopped {
        return None;
    }
    let mut client = other.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{KEPT}\r\n"));
    owner.kirin.signal(Signal::KILL);
    let reply = client.read_reply();
    assert_eq!(reply.status, 200, "{}", reply.head);
    let text = reply.text();
    // It is stored for all, whoever has made it.
    let before = other.runs();
    assert_eq!(other.ask("GET", &target, KEPT).text(), text);
    assert_eq!(other.runs(), before);
    Some(text)
}

/// Kills a machine at each command. The last one reaches the server if `is_delivered`.
fn check(is_delivered: bool) {
    let redis = RedisServer::start();
    let other = Machine::with_origin("b", &address_of(&redis), CALM).connected(1);
    let mut by_owner = 0;
    let kills = (0..MOST_COMMANDS)
        .map_while(|before| response_after_kill(&redis, &other, before, is_delivered))
        .inspect(|text| by_owner += usize::from(text.starts_with("a ")))
        .count();
    // It reads, takes the lease, stores and ends the lease at least.
    assert!((4..MOST_COMMANDS).contains(&kills), "{kills} commands");
    assert!((1..kills).contains(&by_owner), "{by_owner} of {kills} responses are the owner's");
}

#[test]
fn an_owner_that_dies_before_any_command_leaves_the_response_to_another_machine() {
    check(false);
}

#[test]
fn an_owner_that_dies_behind_any_command_leaves_the_response_to_another_machine() {
    check(true);
}

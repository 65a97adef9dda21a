//! Commands and their answers, with a clock that stands still. The differential test compares with
//! memcached. This one has the commands that memcached does not have, and those that need another
//! time.

use std::time::Duration;

use kirin_memcache::codec::CodecLimits;
use kirin_memcache::{OUTPUT_LIMIT_BYTES, ServerOptions};

use crate::peer::{Conversation, NOON, show};

/// Checks the rows of a table: the input and the answer.
fn check(conversation: &mut Conversation, table: &[(&str, &str)]) {
    for (said, expected) in table {
        let answer = conversation.say(said.as_bytes());
        assert_eq!(show(&answer), show(expected.as_bytes()), "answer to {}", show(said.as_bytes()));
    }
}

#[test]
fn items_expire_at_their_time() {
    let mut talk = Conversation::new();
    check(
        &mut talk,
        &[
            ("set a 0 10 1\r\n1\r\n", "STORED\r\n"),
            ("ms b 1 T20\r\n2\r\n", "HD\r\n"),
            ("set date 0 1700000030 1\r\n3\r\n", "STORED\r\n"),
            ("mg b t\r\n", "HD t20\r\n"),
            ("mg date t\r\n", "HD t30\r\n"),
        ],
    );
    talk.executor.set_now(NOON.plus_seconds(9));
    check(&mut talk, &[("get a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n"), ("mg b t\r\n", "HD t11\r\n")]);
    talk.executor.set_now(NOON.plus_seconds(10));
    check(&mut talk, &[("get a\r\n", "END\r\n"), ("add a 0 0 1\r\n2\r\n", "STORED\r\n")]);
    talk.executor.set_now(NOON.plus_seconds(30));
    check(&mut talk, &[("mg b\r\n", "EN\r\n"), ("get a date\r\n", "VALUE a 0 1\r\n2\r\nEND\r\n")]);
}

#[test]
fn a_delayed_flush_removes_the_items_that_are_there_when_it_is_due() {
    let mut talk = Conversation::new();
    check(&mut talk, &[("set a 0 0 1\r\n1\r\n", "STORED\r\n"), ("flush_all 10\r\n", "OK\r\n")]);
    talk.executor.set_now(NOON.plus_seconds(9));
    check(
        &mut talk,
        &[("get a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n"), ("set b 0 0 1\r\n1\r\n", "STORED\r\n")],
    );
    talk.executor.set_now(NOON.plus_seconds(11));
    check(&mut talk, &[("get a b\r\n", "END\r\n"), ("set a 0 0 1\r\n2\r\n", "STORED\r\n")]);
    talk.executor.set_now(NOON.plus_seconds(12));
    check(&mut talk, &[("get a\r\n", "VALUE a 0 1\r\n2\r\nEND\r\n")]);
}

#[test]
fn one_client_recaches_and_the_others_are_told_to_wait() {
    let mut talk = Conversation::new();
    check(
        &mut talk,
        &[
            ("mg page v N30 t\r\n", "VA 0 t30 W\r\n\r\n"),
            ("mg page v N30 t\r\n", "VA 0 t30 Z\r\n\r\n"),
            ("ms page 3 T60\r\nnew\r\n", "HD\r\n"),
            ("mg page v N30 t\r\n", "VA 3 t60\r\nnew\r\n"),
            ("mg page v R61\r\n", "VA 3 W\r\nnew\r\n"),
            ("mg page v R61\r\n", "VA 3 Z\r\nnew\r\n"),
            ("md page I T10\r\n", "HD\r\n"),
            ("mg page v\r\n", "VA 3 X W\r\nnew\r\n"),
            ("mg page v t\r\n", "VA 3 t10 Z X\r\nnew\r\n"),
        ],
    );
}

#[test]
fn flags_of_later_memcacheds_are_understood() {
    check(
        &mut Conversation::new(),
        &[
            ("ms a 1 E1000 c\r\n1\r\n", "HD c1000\r\n"),
            ("mg a c\r\n", "HD c1000\r\n"),
            ("ma a E2000 c v\r\n", "VA 1 c2000\r\n2\r\n"),
            ("md a x\r\n", "HD\r\n"),
            ("mg a v s\r\n", "VA 0 s0\r\n\r\n"),
            ("ms list 2 MA N60\r\nx,\r\n", "HD\r\n"),
            ("ms list 2 MA N60\r\ny,\r\n", "HD\r\n"),
            ("mg list v t\r\n", "VA 4 t60\r\nx,y,\r\n"),
        ],
    );
}

#[test]
fn a_tag_invalidates_every_item_that_carries_it() {
    check(
        &mut Conversation::new(),
        &[
            ("ms /a 1 Ptags=memo:1,user:7\r\na\r\n", "HD\r\n"),
            ("ms /b 1 Ptags=user:7\r\nb\r\n", "HD\r\n"),
            ("ms /c 1 Ptags=user:8\r\nc\r\n", "HD\r\n"),
            ("md user:7 Ptag I\r\n", "HD\r\n"),
            ("mg /a v\r\n", "VA 1 X W\r\na\r\n"),
            ("mg /a v\r\n", "VA 1 Z X\r\na\r\n"),
            ("mg /c v\r\n", "VA 1\r\nc\r\n"),
            ("md user:7 Ptag q\r\nmn\r\n", "MN\r\n"),
            ("get /a /b /c\r\n", "VALUE /c 0 1\r\nc\r\nEND\r\n"),
            ("md nobody Ptag k O1\r\n", "NF knobody O1\r\n"),
            ("ms /a 1\r\na\r\n", "HD\r\n"),
            ("get /a\r\n", "VALUE /a 0 1\r\na\r\nEND\r\n"),
        ],
    );
}

#[test]
fn a_prefix_invalidates_every_key_that_starts_with_it() {
    check(
        &mut Conversation::new(),
        &[
            ("ms /memo/1 1\r\na\r\n", "HD\r\n"),
            ("ms /memo/2 1\r\nb\r\n", "HD\r\n"),
            ("ms /mine 1\r\nc\r\n", "HD\r\n"),
            ("md /memo/ Pprefix\r\n", "HD\r\n"),
            ("get /memo/1 /memo/2 /mine\r\n", "VALUE /mine 0 1\r\nc\r\nEND\r\n"),
            ("md /mi Pprefix I\r\n", "HD\r\n"),
            ("mg /mine v\r\n", "VA 1 X W\r\nc\r\n"),
        ],
    );
}

#[test]
fn unknown_words_in_router_flags_are_ignored() {
    check(
        &mut Conversation::new(),
        &[
            ("ms a 1 P/path Lhint\r\n1\r\n", "HD\r\n"),
            ("md a Ptags\r\n", "HD\r\n"),
            ("ms a 1 Ptags=\r\n1\r\n", "CLIENT_ERROR empty tag\r\n"),
            ("ms a 1 Ptags=a,,b\r\n1\r\n", "CLIENT_ERROR empty tag\r\n"),
            (
                "ms a 1 Ptags=1,2,3,4,5,6,7,8,9,0,1,2,3,4,5,6,7\r\n1\r\n",
                "CLIENT_ERROR more than 16 tags\r\n",
            ),
            ("mg a v\r\n", "EN\r\n"),
        ],
    );
    let long = format!("ms a 1 Ptags={}\r\n1\r\n", "t".repeat(251));
    check(&mut Conversation::new(), &[(&long, "CLIENT_ERROR tag longer than 250 bytes\r\n")]);
}

#[test]
fn with_the_guard_one_plain_get_misses_shortly_before_the_end() {
    let guard = Some(Duration::from_secs(10));
    let mut talk =
        Conversation::with(ServerOptions { stampede_guard: guard, ..ServerOptions::default() });
    let hit = "VALUE page 0 3\r\nold\r\nEND\r\n";
    check(
        &mut talk,
        &[
            ("set page 0 60 3\r\nold\r\n", "STORED\r\n"),
            ("set forever 0 0 1\r\nx\r\n", "STORED\r\n"),
            ("get page\r\n", hit),
        ],
    );
    talk.executor.set_now(NOON.plus_seconds(50));
    check(&mut talk, &[("get page\r\n", hit)]);
    talk.executor.set_now(NOON.plus_seconds(51));
    check(
        &mut talk,
        &[
            ("get page\r\n", "END\r\n"),
            ("get page\r\n", hit),
            ("gets page\r\n", "VALUE page 0 3 1\r\nold\r\nEND\r\n"),
            ("set page 0 60 3\r\nnew\r\n", "STORED\r\n"),
            ("get page\r\n", "VALUE page 0 3\r\nnew\r\nEND\r\n"),
            ("get forever\r\n", "VALUE forever 0 1\r\nx\r\nEND\r\n"),
            ("md page I\r\n", "HD\r\n"),
            ("get page\r\n", "END\r\n"),
            ("get page\r\n", "VALUE page 0 3\r\nnew\r\nEND\r\n"),
        ],
    );
}

#[test]
fn the_memory_limit_is_not_raised_above_its_bound() {
    let mut talk = Conversation::with(ServerOptions {
        memory_ceiling_bytes: 64 << 20,
        ..ServerOptions::default()
    });
    let refused = "MEMLIMIT_ADJUST_FAILED out of bounds or unable to adjust\r\n";
    check(
        &mut talk,
        &[
            ("cache_memlimit 8\r\n", "OK\r\n"),
            ("cache_memlimit 64\r\n", "OK\r\n"),
            ("cache_memlimit 65\r\n", refused),
            ("cache_memlimit 65 noreply\r\n", ""),
            ("cache_memlimit 1000000000\r\n", refused),
        ],
    );
    // The default is the memory of the machine, which is less than a million megabytes.
    check(
        &mut Conversation::new(),
        &[("cache_memlimit 64\r\n", "OK\r\n"), ("cache_memlimit 1000000000\r\n", refused)],
    );
}

#[test]
fn flush_all_can_be_forbidden() {
    let limits = CodecLimits { flush_enabled: false, ..CodecLimits::default() };
    let mut talk = Conversation::with(ServerOptions { limits, ..ServerOptions::default() });
    check(
        &mut talk,
        &[
            ("set a 0 0 1\r\n1\r\n", "STORED\r\n"),
            ("flush_all\r\n", "CLIENT_ERROR flush_all not allowed\r\n"),
            ("flush_all noreply\r\nget a\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n"),
        ],
    );
}

#[test]
fn statistics_are_lines_of_names_and_values() {
    let mut talk = Conversation::new();
    check(
        &mut talk,
        &[
            ("stats items\r\n", "END\r\n"),
            ("stats sizes\r\n", "END\r\n"),
            ("stats conns\r\n", "END\r\n"),
            ("stats reset\r\n", "RESET\r\n"),
            ("set a 0 0 1\r\n1\r\n", "STORED\r\n"),
            ("get a b\r\n", "VALUE a 0 1\r\n1\r\nEND\r\n"),
        ],
    );
    for (command, row) in [
        ("stats\r\n", "STAT get_hits 1\r\n"),
        ("stats\r\n", "STAT curr_items 1\r\n"),
        ("stats items\r\n", "STAT items:1:number 1\r\n"),
        ("stats slabs\r\n", "STAT active_slabs 1\r\n"),
        ("stats settings\r\n", "STAT item_size_max 1048576\r\n"),
        ("stats sizes\r\n", " 1\r\n"),
    ] {
        let answer = String::from_utf8(talk.say(command.as_bytes())).expect("text");
        assert!(answer.contains(row), "{command:?} has no {row:?}: {answer}");
        let (rows, end) = answer.rsplit_once("END\r\n").expect("an end");
        assert!(
            end.is_empty() && rows.lines().all(|line| line.starts_with("STAT ")),
            "{command:?}: {answer}"
        );
    }
}

#[test]
fn a_multi_get_of_much_data_stops_and_goes_on() {
    let mut talk = Conversation::new();
    let value = "v".repeat(300_000);
    for key in 0..10 {
        let set = format!("set k{key} 0 0 {}\r\n{value}\r\n", value.len());
        assert_eq!(talk.say(set.as_bytes()), b"STORED\r\n");
    }
    let keys: String = (0..40).map(|key| format!(" k{}", key % 10)).collect();
    for (verb, cas) in [("get", false), ("gets", true), ("gat 0", false), ("gats 0", true)] {
        let answer = talk.say(format!("{verb}{keys}\r\nmn\r\n").as_bytes());
        let mut expected = String::new();
        for key in 0..40 {
            let cas = if cas { format!(" {}", key % 10 + 1) } else { String::new() };
            expected.push_str(&format!("VALUE k{} 0 300000{cas}\r\n{value}\r\n", key % 10));
        }
        expected.push_str("END\r\nMN\r\n");
        assert!(
            answer == expected.as_bytes(),
            "{verb}: {} bytes, expected {}",
            answer.len(),
            expected.len()
        );
        assert!(answer.len() > 10 * OUTPUT_LIMIT_BYTES, "enough to have stopped several times");
    }
}

#[test]
fn a_long_line_is_only_taken_from_a_retrieval() {
    for verb in ["get", "gets", "gat 0", "gats 0"] {
        let line = format!("{verb} {}\r\n", "key ".repeat(20_000));
        assert_eq!(Conversation::new().say(line.as_bytes()), b"END\r\n", "{verb}");
    }
    let endless = format!("get {}", "key ".repeat(300_000));
    for said in [endless, "x".repeat(2049), format!("set {}", "x".repeat(3000)), " ".repeat(3000)] {
        let mut talk = Conversation::new();
        assert_eq!(talk.say(said.as_bytes()), b"");
        assert!(talk.ended, "{} bytes of {:?}…", said.len(), &said[..8]);
    }
}

#[test]
fn the_binary_protocol_ends_the_conversation() {
    let mut talk = Conversation::new();
    assert_eq!(talk.say(b"\x80\x0b\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"), b"");
    assert!(talk.ended);
    let mut talk = Conversation::new();
    check(&mut talk, &[("get a\r\n", "END\r\n")]);
    assert_eq!(
        talk.say(b"\x80\r\n"),
        b"ERROR\r\n",
        "only the first byte tells the protocols apart"
    );
}

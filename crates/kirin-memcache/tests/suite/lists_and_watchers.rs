//! Lists of items, watchers and statistics by prefix, with a clock that stands still.

use std::sync::Arc;

use kirin_memcache::codec::CodecLimits;
use kirin_memcache::{MemcachedServer, ServerOptions};
use kirin_store::{Store, StoreConfig};

use crate::peer::{Conversation, show};

/// Checks the rows of a table: the input and the answer.
fn check(conversation: &mut Conversation, table: &[(&str, &str)]) {
    for (said, expected) in table {
        let answer = conversation.say(said.as_bytes());
        assert_eq!(show(&answer), show(expected.as_bytes()), "answer to {}", show(said.as_bytes()));
    }
}

#[test]
fn watching_and_listing_can_be_forbidden() {
    let limits =
        CodecLimits { dump_enabled: false, watch_enabled: false, ..CodecLimits::default() };
    check(
        &mut Conversation::with(ServerOptions { limits, ..ServerOptions::default() }),
        &[
            ("watch\r\n", "CLIENT_ERROR watch commands not allowed\r\n"),
            ("watch fetchers noreply\r\n", ""),
            ("lru_crawler metadump all\r\n", "ERROR metadump not allowed\r\n"),
            ("lru_crawler mgdump hash\r\n", "ERROR mgdump not allowed\r\n"),
            ("stats cachedump 1 0\r\n", "CLIENT_ERROR stats cachedump not allowed\r\n"),
        ],
    );
}

#[test]
fn a_list_has_a_line_for_each_item_and_no_value() {
    let mut talk = Conversation::new();
    check(
        &mut talk,
        &[
            ("lru_crawler mgdump all\r\n", "EN\r\n"),
            ("stats cachedump 1 0\r\n", "END\r\n"),
            ("set a:/b 0 100 5\r\nvalue\r\n", "STORED\r\n"),
            ("lru_crawler mgdump all\r\n", "mg a:/b\r\nEN\r\n"),
            ("lru_crawler mgdump 2\r\n", "EN\r\n"),
            ("lru_crawler mgdump 2,1\r\nmn\r\n", "mg a:/b\r\nEN\r\nMN\r\n"),
            ("lru_crawler mgdump x\r\n", "BADCLASS invalid class id\r\n"),
            ("lru_crawler metadump ,\r\n", "NOTSTARTED no items to crawl\r\n"),
            ("stats cachedump 1 0\r\n", "ITEM a:/b [5 b; 1700000100 s]\r\nEND\r\n"),
            ("md a:/b\r\nms AAECAwQF 3 b\r\nbin\r\n", "HD\r\nHD\r\n"),
            ("lru_crawler mgdump all\r\n", "mg AAECAwQF b\r\nEN\r\n"),
            // The line of this command has no way to write such a key.
            ("stats cachedump 1 0\r\n", "END\r\n"),
            // A key that starts as those of cached responses do: \0c.
            ("md AAECAwQF b\r\nms AGMvcGFnZQ== 3 b\r\nweb\r\n", "HD\r\nHD\r\n"),
            ("lru_crawler metadump all\r\n", "END\r\n"),
            ("mg AGMvcGFnZQ== b v\r\n", "VA 3\r\nweb\r\n"),
        ],
    );
    let mut talk = Conversation::new();
    check(&mut talk, &[("set a:/b 0 100 5\r\nvalue\r\n", "STORED\r\n")]);
    let line = String::from_utf8(talk.say(b"lru_crawler metadump all\r\n")).expect("text");
    let (start, size) = line.split_once(" size=").expect("a size");
    assert_eq!(start, "key=a%3A%2Fb exp=1700000100 la=1700000000 cas=1 fetch=no cls=1");
    let size = size.strip_suffix("\nEND\r\n").and_then(|size| size.parse().ok());
    assert!(size.is_some_and(|size: u32| size > 9), "{line}");
}

#[test]
fn a_long_list_comes_in_pieces_before_the_next_command() {
    let mut talk = Conversation::new();
    for number in 0..20_000 {
        let set = format!("set key:{number} 0 0 1 noreply\r\nv\r\n");
        assert_eq!(talk.say(set.as_bytes()), b"");
    }
    for (list, end) in [
        ("lru_crawler metadump all", "END\r\n"),
        ("lru_crawler mgdump all", "EN\r\n"),
        ("stats cachedump 1 0", "END\r\n"),
    ] {
        let answer = talk.say(format!("{list}\r\nincr n 1\r\nmn\r\n").as_bytes());
        let answer = String::from_utf8(answer).expect("text");
        let (list, rest) = answer.split_once(end).expect("an end");
        assert_eq!((list.lines().count(), rest), (20_000, "NOT_FOUND\r\nMN\r\n"), "{list:.80}");
        let mut lines: Vec<&str> = list.lines().collect();
        lines.sort_unstable();
        lines.dedup();
        assert_eq!(lines.len(), 20_000);
    }
    let some = String::from_utf8(talk.say(b"stats cachedump 1 300\r\n")).expect("text");
    assert_eq!(some.lines().count(), 301, "a limit");
}

#[test]
fn a_list_of_all_prefixes_is_complete() {
    let mut talk = Conversation::new();
    assert_eq!(talk.say(b"stats detail on\r\n"), b"OK\r\n");
    let gets: String = (0..2000).map(|number| format!("get p{number:04}:x\r\n")).collect();
    talk.say(gets.as_bytes());
    let rows: String = (0..2000)
        .map(|number| format!("PREFIX p{number:04} get 1 hit 0 set 0 del 0\r\n"))
        .collect();
    let expected = rows + "END\r\nMN\r\n";
    assert_eq!(show(&talk.say(b"stats detail dump\r\nmn\r\n")), show(expected.as_bytes()));
}

#[test]
fn prefixes_are_counted_while_that_is_switched_on() {
    let row = |row: &str| format!("PREFIX {row}\r\nEND\r\n");
    let mut talk = Conversation::new();
    check(
        &mut talk,
        &[
            ("set a:1 0 0 1\r\n1\r\n", "STORED\r\n"),
            ("stats detail dump\r\n", "END\r\n"),
            ("stats detail on\r\n", "OK\r\n"),
            ("get a:1 a:2 b\r\n", "VALUE a:1 0 1\r\n1\r\nEND\r\n"),
            ("stats detail dump\r\n", &row("a get 2 hit 1 set 0 del 0")),
            // Unlike memcached 1.6.18, Kirin counts the meta commands, too.
            ("mg a:1\r\nmg a:9\r\nms a:3 1\r\nx\r\nmd a:3\r\n", "HD\r\nEN\r\nHD\r\nHD\r\n"),
            ("delete a:3\r\n", "NOT_FOUND\r\n"),
            ("md a: Pprefix\r\n", "HD\r\n"),
            ("stats detail dump\r\n", &row("a get 4 hit 2 set 1 del 2")),
            ("stats detail off\r\n", "OK\r\n"),
            ("get a:1\r\n", "END\r\n"),
            ("stats detail dump\r\n", &row("a get 4 hit 2 set 1 del 2")),
            ("stats reset\r\n", "RESET\r\n"),
            ("stats detail dump\r\n", "END\r\n"),
        ],
    );
}

#[test]
fn a_watcher_is_shown_what_others_do() {
    let limits = CodecLimits { item_size_bytes: 4096, ..CodecLimits::default() };
    let store = Store::new(StoreConfig { item_limit_bytes: 4096, ..StoreConfig::default() });
    let options = ServerOptions { limits, ..ServerOptions::default() };
    let server = MemcachedServer::new(Arc::new(store), options);
    let mut watcher = Conversation::on(&server);
    let mut talk = Conversation::on(&server);
    check(&mut talk, &[("get unseen\r\n", "END\r\n")]);
    assert_eq!(watcher.say(b"watch fetchers mutations\r\nget ignored\r\n"), b"OK\r\n");
    for (command, expected) in [
        ("get a\r\n", "type=item_get key=a status=not_found clsid=0 cfd=0 size=0\n"),
        (
            "set a 0 100 4\r\nabcd\r\n",
            "type=item_get key=a status=not_found clsid=0 cfd=0 size=0\n\
             type=item_store key=a status=stored cmd=set ttl=100 clsid=1 cfd=0 size=4\n",
        ),
        (
            "append a 0 0 1\r\ne\r\n",
            "type=item_get key=a status=found clsid=1 cfd=0 size=4\n\
             type=item_store key=a status=stored cmd=append ttl=100 clsid=1 cfd=0 size=5\n",
        ),
        ("md a\r\n", "type=item_get key=a status=found clsid=1 cfd=0 size=5\n"),
        (
            "add b 0 0 5000\r\n",
            "type=item_store key=b status=too_large cmd=add ttl=0 clsid=0 cfd=0 size=0\n\
             type=item_get key=b status=not_found clsid=0 cfd=0 size=0\n",
        ),
    ] {
        talk.say(command.as_bytes());
        let lines = String::from_utf8(watcher.say(b"")).expect("text");
        let shown: String = lines
            .split_inclusive('\n')
            .map(|line| line.splitn(3, ' ').nth(2).expect("time, number and event"))
            .collect();
        assert_eq!(shown, expected, "{command}");
    }
    drop(watcher);
    talk.say(&[b'x'; 5002]);
    check(&mut talk, &[("\r\nget c\r\n", "ERROR\r\nEND\r\n")]);
    let mut watchers: Vec<Conversation> = (0..21).map(|_| Conversation::on(&server)).collect();
    let answers = watchers.iter_mut().map(|watcher| watcher.say(b"watch\r\n"));
    let refused: Vec<Vec<u8>> = answers.filter(|answer| answer != b"OK\r\n").collect();
    assert_eq!(refused, [b"WATCHER_TOO_MANY log watcher limit reached\r\n"]);
}

#[test]
fn a_stream_that_kirin_does_not_have_is_refused_by_name() {
    let refusal = "ERROR Kirin has no such events: watch fetchers, mutations, evictions or \
                   connevents\r\n";
    for stream in ["rawcmds", "sysevents", "fetchers proxyreqs", "proxyevents", "proxyuser"] {
        check(&mut Conversation::new(), &[(&format!("watch {stream}\r\n"), refusal)]);
    }
}

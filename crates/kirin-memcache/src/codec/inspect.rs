//! The commands that look inside the store: lists of items, watchers, statistics by prefix.
//!
//! memcached numbers its slab classes from 1 to 63. Kirin has one class, number 1, with all items.
//! The other classes exist and are empty.

use super::command::{Command, ItemList, ListFormat, PrefixCommand};
use super::event_kinds::EventKinds;
use super::line::{CodecLimits, Line, answer};
use super::number::parse_u32;
use super::tokens::Tokens;

/// The class that has all items.
const CLASS: u32 = 1;

/// The numbers that memcached accepts as slab classes (`MAX_NUMBER_OF_SLAB_CLASSES` is 64).
const CLASSES: std::ops::Range<u32> = 1..64;

/// The streams of memcached that show parts which Kirin does not have.
const OTHER_STREAMS: [&[u8]; 5] =
    [b"rawcmds", b"sysevents", b"proxyreqs", b"proxyevents", b"proxyuser"];

/// Parses `lru_crawler metadump CLASSES` and `lru_crawler mgdump CLASSES`.
pub(super) fn dump<'a>(format: ListFormat, classes: &[u8], limits: &CodecLimits) -> Line<'a> {
    let (refusal, nothing) = match format {
        ListFormat::Mgdump => ("ERROR mgdump not allowed", "EN"),
        _ => ("ERROR metadump not allowed", "END"),
    };
    if !limits.dump_enabled {
        return answer(refusal, false);
    }
    let has_items = match classes {
        b"all" | b"hash" => true,
        list => match listed_classes(list) {
            Ok(Some(has_items)) => has_items,
            Ok(None) => return answer("NOTSTARTED no items to crawl", false),
            Err(BadClass) => return answer("BADCLASS invalid class id", false),
        },
    };
    if !has_items {
        return answer(nothing, false);
    }
    Line::Command(Command::List(ItemList { format, limit: None }))
}

/// A list of classes has something that is not the number of a class.
struct BadClass;

/// Returns whether a comma-separated list has the class with the items. `None` if it is empty.
fn listed_classes(list: &[u8]) -> Result<Option<bool>, BadClass> {
    let mut has_items = None;
    for number in list.split(|byte| *byte == b',').filter(|number| !number.is_empty()) {
        let class = parse_u32(number).filter(|class| CLASSES.contains(class)).ok_or(BadClass)?;
        has_items = Some(has_items.unwrap_or(false) || class == CLASS);
    }
    Ok(has_items)
}

/// Parses `stats cachedump CLASS LIMIT`. A limit of 0 is none.
pub(super) fn cachedump<'a>(tokens: &Tokens<'a>, limits: &CodecLimits) -> Line<'a> {
    if !limits.dump_enabled {
        return answer("CLIENT_ERROR stats cachedump not allowed", false);
    }
    if tokens.count() < 4 {
        return answer("CLIENT_ERROR bad command line", false);
    }
    match (parse_u32(tokens.get(2)), parse_u32(tokens.get(3))) {
        (Some(CLASS), Some(limit)) => Line::Command(Command::List(ItemList {
            format: ListFormat::Cachedump,
            limit: Some(limit).filter(|limit| *limit > 0),
        })),
        (Some(class), Some(_)) if class < CLASSES.end => answer("END", false),
        (Some(_), Some(_)) => answer("CLIENT_ERROR Illegal slab id", false),
        _ => answer("CLIENT_ERROR bad command line format", false),
    }
}

/// Parses `stats detail on|off|dump`.
pub(super) fn detail<'a>(tokens: &Tokens<'a>) -> Line<'a> {
    Line::Command(Command::Prefixes(match tokens.get(2) {
        b"on" => PrefixCommand::On,
        b"off" => PrefixCommand::Off,
        b"dump" => PrefixCommand::Dump,
        _ => return answer("CLIENT_ERROR usage: stats detail on|off|dump", false),
    }))
}

/// Parses `watch STREAM...`. Without a stream, memcached shows the fetchers.
pub(super) fn watch<'a>(tokens: &Tokens<'a>, limits: &CodecLimits) -> Line<'a> {
    let noreply = tokens.noreply();
    if !limits.watch_enabled {
        return answer("CLIENT_ERROR watch commands not allowed", noreply);
    }
    let mut kinds = EventKinds::default();
    for stream in tokens.from(1) {
        kinds = kinds
            | match *stream {
                b"fetchers" => EventKinds::FETCHERS,
                b"mutations" => EventKinds::MUTATIONS,
                b"evictions" => EventKinds::EVICTIONS,
                b"connevents" => EventKinds::CONNECTIONS,
                stream if OTHER_STREAMS.contains(&stream) => {
                    return answer(
                        "ERROR Kirin has no such events: watch fetchers, mutations, evictions \
                         or connevents",
                        noreply,
                    );
                }
                _ => return answer("ERROR", noreply),
            };
    }
    let kinds = if kinds.is_empty() { EventKinds::FETCHERS } else { kinds };
    Line::Command(Command::Watch(kinds))
}

//! The commands for operators, and those that tune the internals of memcached.
//!
//! Kirin has no slab classes, no LRU queues and no crawler thread. Commands that only tune these
//! are checked as memcached checks them, and answered `OK`, so that start-up scripts work. The
//! commands that look inside the store are in `inspect.rs`.

use super::command::{Command, ListFormat, StatsTopic};
use super::inspect;
use super::line::{CodecLimits, Line, answer, error};
use super::number::{Exptime, parse_f64, parse_i32, parse_u32};
use super::tokens::Tokens;

const BAD_FORMAT: &str = "CLIENT_ERROR bad command line format";

/// Parses a line with a command of this file. Returns `None` for any other.
pub(super) fn parse<'a>(
    name: &[u8],
    tokens: &Tokens<'a>,
    limits: &CodecLimits,
) -> Option<Line<'a>> {
    Some(match name {
        b"version" => Line::Command(Command::Version),
        b"quit" => Line::Command(Command::Quit),
        b"stats" => stats(tokens, limits),
        b"flush_all" => flush_all(tokens, limits),
        b"cache_memlimit" => cache_memlimit(tokens),
        b"verbosity" => verbosity(tokens),
        b"shutdown" => answer("ERROR: shutdown not enabled", false),
        b"watch" => inspect::watch(tokens, limits),
        b"slabs" => slabs(tokens),
        b"lru" => lru(tokens),
        b"lru_crawler" => lru_crawler(tokens, limits),
        b"snapshot" if tokens.count() == 1 => Line::Command(Command::Snapshot),
        _ => return None,
    })
}

fn stats<'a>(tokens: &Tokens<'a>, limits: &CodecLimits) -> Line<'a> {
    if tokens.count() < 2 {
        return Line::Command(Command::Stats(StatsTopic::General));
    }
    let topic = match tokens.get(1) {
        b"items" => StatsTopic::Items,
        b"slabs" => StatsTopic::Slabs,
        b"settings" => StatsTopic::Settings,
        b"sizes" => StatsTopic::Sizes,
        b"conns" => StatsTopic::Connections,
        b"reset" => StatsTopic::Reset,
        b"detail" => return inspect::detail(tokens),
        b"cachedump" => return inspect::cachedump(tokens, limits),
        // The histogram of sizes is always available.
        b"sizes_enable" => return answer("STAT sizes_status enabled\r\nEND", false),
        b"sizes_disable" => return answer("STAT sizes_status disabled\r\nEND", false),
        _ => return error(),
    };
    Line::Command(Command::Stats(topic))
}

fn flush_all<'a>(tokens: &Tokens<'a>, limits: &CodecLimits) -> Line<'a> {
    if !matches!(tokens.count(), 1..=3) {
        return error();
    }
    let noreply = tokens.noreply();
    if !limits.flush_enabled {
        return answer("CLIENT_ERROR flush_all not allowed", noreply);
    }
    let without_delay = if noreply { 2 } else { 1 };
    let delay = if tokens.count() == without_delay { Some(0) } else { parse_i32(tokens.get(1)) };
    match delay {
        Some(delay) => Line::Command(Command::FlushAll { delay: Exptime(delay), noreply }),
        None => answer("CLIENT_ERROR invalid exptime argument", noreply),
    }
}

fn cache_memlimit<'a>(tokens: &Tokens<'a>) -> Line<'a> {
    if !matches!(tokens.count(), 2 | 3) {
        return error();
    }
    let noreply = tokens.noreply();
    match parse_u32(tokens.get(1)) {
        None => answer("ERROR", noreply),
        Some(0..8) => answer("MEMLIMIT_TOO_SMALL cannot set maxbytes to less than 8m", noreply),
        Some(megabytes) if megabytes > 1_000_000_000 => {
            answer("MEMLIMIT_ADJUST_FAILED input value is megabytes not bytes", noreply)
        }
        Some(megabytes) => Line::Command(Command::CacheMemlimit { megabytes, noreply }),
    }
}

fn verbosity<'a>(tokens: &Tokens<'a>) -> Line<'a> {
    if !matches!(tokens.count(), 2 | 3) {
        return error();
    }
    let noreply = tokens.noreply();
    match parse_u32(tokens.get(1)) {
        Some(level) => Line::Command(Command::Verbosity { level: level.min(2), noreply }),
        None => answer(BAD_FORMAT, noreply),
    }
}

fn slabs<'a>(tokens: &Tokens<'a>) -> Line<'a> {
    match (tokens.get(1), tokens.count()) {
        (b"reassign", 4) => match (parse_i32(tokens.get(2)), parse_i32(tokens.get(3))) {
            (Some(from), Some(to)) if from == to => {
                answer("SAME src and dst class are identical", false)
            }
            (Some(_), Some(_)) => answer("BADCLASS invalid src or dst class id", false),
            _ => answer(BAD_FORMAT, false),
        },
        (b"automove", 3..) => {
            let noreply = tokens.noreply();
            if tokens.get(2) == b"ratio" {
                let ratio = parse_f64(tokens.get(3)).filter(|_| tokens.count() >= 4);
                return answer(if ratio.is_some() { "OK" } else { "ERROR" }, noreply);
            }
            match parse_u32(tokens.get(2)) {
                Some(0..=2) => answer("OK", noreply),
                Some(_) => answer("ERROR", noreply),
                None => answer(BAD_FORMAT, noreply),
            }
        }
        _ => error(),
    }
}

fn lru<'a>(tokens: &Tokens<'a>) -> Line<'a> {
    if tokens.count() < 2 {
        return error();
    }
    let noreply = tokens.noreply();
    let text = match (tokens.get(1), tokens.count()) {
        (b"tune", 6..) => lru_tune(tokens),
        (b"mode", 3..) if matches!(tokens.get(2), b"flat" | b"segmented") => "OK",
        (b"temp_ttl", 3..) if parse_i32(tokens.get(2)).is_some() => "OK",
        _ => "ERROR",
    };
    answer(text, noreply)
}

fn lru_tune(tokens: &Tokens<'_>) -> &'static str {
    let shares = (parse_u32(tokens.get(2)), parse_u32(tokens.get(3)));
    let factors = (parse_f64(tokens.get(4)), parse_f64(tokens.get(5)));
    match (shares, factors) {
        ((Some(hot), Some(warm)), (Some(hot_factor), Some(warm_factor))) => {
            if hot.wrapping_add(warm) > 80 {
                "ERROR hot and warm pcts must not exceed 80"
            } else if hot_factor <= 0.0 || warm_factor <= 0.0 {
                "ERROR hot/warm age factors must be greater than 0"
            } else {
                "OK"
            }
        }
        _ => "ERROR",
    }
}

fn lru_crawler<'a>(tokens: &Tokens<'a>, limits: &CodecLimits) -> Line<'a> {
    match (tokens.get(1), tokens.count()) {
        (b"enable" | b"disable", 2) => answer("OK", false),
        (b"crawl", 3) => answer("OK", false),
        (b"metadump", 3) => inspect::dump(ListFormat::Metadump, tokens.get(2), limits),
        (b"mgdump", 3) => inspect::dump(ListFormat::Mgdump, tokens.get(2), limits),
        (b"tocrawl", 3) => match parse_u32(tokens.get(2)) {
            Some(_) => answer("OK", false),
            None => answer(BAD_FORMAT, false),
        },
        (b"sleep", 3) => match parse_u32(tokens.get(2)) {
            Some(0..=1_000_000) => answer("OK", false),
            Some(_) => answer("CLIENT_ERROR sleep must be one second or less", false),
            None => answer(BAD_FORMAT, false),
        },
        _ => error(),
    }
}

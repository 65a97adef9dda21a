//! The command line of memcached, for scripts and test harnesses that start one.
//!
//! Words in, [`Options`] out: there is no I/O here. `config.rs` makes a configuration of them. The
//! help text is in `help.txt`. An option without a meaning in Kirin is accepted if clients cannot
//! see a difference. Otherwise it is refused with a reason.

use std::path::PathBuf;
use std::time::Duration;

use kirin_config::{Milliseconds, Seconds};
use kirin_origin::address::Address;
use kirin_origin::check_stale_limit;

use crate::memcached::option_names::{LONG_NAMES, WITH_VALUE, WITHOUT_EFFECT, WITHOUT_VALUE};

/// The action that a command line requests.
#[derive(Clone, Debug, PartialEq)]
pub enum MemcachedAction {
    /// Starts the store.
    Run(Box<Options>),
    /// `-h`: prints [`HELP`].
    Help,
    /// `-V`: prints the version.
    Version,
}

/// The text that `-h` prints.
pub const HELP: &str = include_str!("help.txt");

/// The options for starting a store.
#[derive(Clone, Debug, PartialEq)]
pub struct Options {
    /// `-p`: the TCP port. Default 11211; 0 for no TCP, -1 for a free port.
    pub port: i32,
    /// `-l`: the addresses to listen on, each with an optional port. The default is 127.0.0.1.
    /// Unlike memcached, Kirin accepts only clients of this machine by default.
    pub listen: Vec<HostAndPort>,
    /// `-s`: a unix socket to listen on, in place of TCP.
    pub unix_socket: Option<PathBuf>,
    /// `-a`: the access mode of the unix socket, in octal. Default 700.
    pub unix_mode: u32,
    /// `-m`: the memory budget in bytes, given in megabytes. Default 64 MiB.
    pub memory_bytes: usize,
    /// `-c`: the most connections at the same time. Default 1024.
    pub connection_limit: usize,
    /// `-t`: the number of event loops, each with a thread. Default 4.
    pub threads: usize,
    /// `-I`: the largest item in bytes; `k` and `m` multiply. Default 1 MiB.
    pub item_size_bytes: usize,
    /// `-M`: answers an error when memory is full, in place of evicting.
    pub no_evictions: bool,
    /// `-F`: refuses `flush_all`.
    pub no_flush_all: bool,
    /// `-X`: refuses to list items.
    pub no_dumping: bool,
    /// `-W`: refuses watchers.
    pub no_watchers: bool,
    /// `-D`: counts commands by prefix from the start. The byte ends the prefix of a key.
    pub prefix_delimiter: Option<u8>,
    /// `-d`: runs in the background.
    pub daemon: bool,
    /// `-P`: the file to write the process id to.
    pub pid_file: Option<PathBuf>,
    /// `-u`: the user to switch to if started as root.
    pub user: Option<String>,
    /// `-v`, `-vv`: with 1, errors of connections are logged; with 2, also commands.
    pub verbosity: u32,
    /// `-b`: the most connections that wait to be accepted. Default 1024.
    pub backlog: i32,
    /// `-o idle_timeout=SECONDS`: the time after which a silent connection is closed. 0, the
    /// default, never closes one.
    pub idle_timeout: Option<Duration>,
    /// `-o stampede_guard=SECONDS`, an extension of Kirin. If an item is stale, or expires within
    /// so many seconds, a plain `get` misses for one client. That client should recache the item.
    /// The others get the old value meanwhile. Off by default.
    pub stampede_guard: Option<Duration>,
    /// `-o snapshot=FILE`, an extension of Kirin. Loads the items of this file at the start, and
    /// writes them to it on TERM or INT. Off by default: as in memcached, the store starts empty.
    pub snapshot: Option<PathBuf>,
    /// `-o origin=ADDRESS`, an extension of Kirin. The items are on a Redis or Valkey server, and
    /// this store keeps copies of them.
    pub origin: Option<Address>,
    /// `-o origin_ca=FILE`, an extension of Kirin. The authorities whose certificate the origin may
    /// have. Those of the system by default.
    pub origin_ca: Option<PathBuf>,
    /// `-o origin_timeout=TIME`, an extension of Kirin: how long a trip to the origin may take.
    pub origin_timeout: Option<Duration>,
    /// `-o stale_limit=TIME`, an extension of Kirin: how long copies are served that the origin
    /// does not prove.
    pub stale_limit: Option<Duration>,
}

/// An address from `-l`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostAndPort {
    /// A host name or an address.
    pub host: String,
    /// A port in place of `-p`.
    pub port: Option<u16>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            port: 11211,
            listen: Vec::new(),
            unix_socket: None,
            unix_mode: 0o700,
            memory_bytes: 64 << 20,
            connection_limit: 1024,
            threads: 4,
            item_size_bytes: 1 << 20,
            no_evictions: false,
            no_flush_all: false,
            no_dumping: false,
            no_watchers: false,
            prefix_delimiter: None,
            daemon: false,
            pid_file: None,
            user: None,
            verbosity: 0,
            backlog: 1024,
            idle_timeout: None,
            stampede_guard: None,
            snapshot: None,
            origin: None,
            origin_ca: None,
            origin_timeout: None,
            stale_limit: None,
        }
    }
}

/// Parses the words after `memcached`. An error is one line that names the option.
pub fn parse<I, S>(words: I) -> Result<MemcachedAction, String>
where
    I: IntoIterator<Item = S>,
    S: Into<String>,
{
    let mut options = Options::default();
    let mut words = words.into_iter().map(Into::into);
    while let Some(word) = words.next() {
        if let Some(long) = word.strip_prefix("--") {
            let (name, value) = match long.split_once('=') {
                Some((name, value)) => (name, Some(value.to_owned())),
                None => (long, None),
            };
            let Some((_, letter)) = LONG_NAMES.iter().find(|(known, _)| *known == name) else {
                return Err(format!("unknown option --{name}; see --help"));
            };
            let value = match value {
                None if WITH_VALUE.contains(*letter) => words.next(),
                value => value,
            };
            match letter {
                'h' | 'i' => return Ok(MemcachedAction::Help),
                'V' => return Ok(MemcachedAction::Version),
                letter => options.set(*letter, value)?,
            }
        } else if let Some(letters) = word.strip_prefix('-').filter(|letters| !letters.is_empty()) {
            let mut rest = letters.chars();
            while let Some(letter) = rest.next() {
                if WITH_VALUE.contains(letter) {
                    let attached = rest.as_str();
                    let value =
                        if attached.is_empty() { words.next() } else { Some(attached.to_owned()) };
                    options.set(letter, value)?;
                    break;
                }
                match letter {
                    'h' | 'i' => return Ok(MemcachedAction::Help),
                    'V' => return Ok(MemcachedAction::Version),
                    letter if WITHOUT_VALUE.contains(letter) => options.set(letter, None)?,
                    letter => return Err(format!("unknown option -{letter}; see -h")),
                }
            }
        } else {
            return Err(format!("{word:?} is not an option; see -h"));
        }
    }
    options.check()?;
    Ok(MemcachedAction::Run(Box::new(options)))
}

impl Options {
    fn set(&mut self, letter: char, value: Option<String>) -> Result<(), String> {
        if !WITH_VALUE.contains(letter) {
            return self.switch(letter, value.as_deref());
        }
        let value = value.ok_or_else(|| format!("option -{letter} needs a value"))?;
        match letter {
            'p' => self.port = number(letter, &value, -1, 65535)? as i32,
            's' => self.unix_socket = Some(value.into()),
            'a' => {
                self.unix_mode = u32::from_str_radix(&value, 8)
                    .ok()
                    .filter(|mode| *mode <= 0o777)
                    .ok_or_else(|| format!("-a {value}: not an octal access mode such as 700"))?;
            }
            'm' => self.memory_bytes = (number(letter, &value, 1, 1 << 30)? as usize) << 20,
            'c' => self.connection_limit = number(letter, &value, 1, 10_000_000)? as usize,
            't' => self.threads = number(letter, &value, 1, 1024)? as usize,
            'b' => self.backlog = number(letter, &value, 1, i64::from(i32::MAX))? as i32,
            'I' => self.item_size_bytes = item_size(&value)?,
            'l' => {
                for address in value.split(',').filter(|address| !address.is_empty()) {
                    self.listen.push(listen_address(address)?);
                }
            }
            'u' => self.user = Some(value),
            'P' => self.pid_file = Some(value.into()),
            'U' => {
                if number(letter, &value, 0, 65535)? != 0 {
                    return Err("-U: Kirin has no UDP; leave it out or say -U 0".into());
                }
            }
            'B' => match value.as_str() {
                "ascii" | "auto" => {}
                "binary" => {
                    return Err("-B binary: Kirin speaks the text and meta protocols only".into());
                }
                _ => return Err(format!("-B {value}: one of ascii, auto")),
            },
            'o' => {
                for suboption in suboptions(&value).filter(|suboption| !suboption.is_empty()) {
                    self.extended(suboption)?;
                }
            }
            'D' => match value.as_bytes() {
                [delimiter @ b'!'..=b'~'] => self.prefix_delimiter = Some(*delimiter),
                _ => return Err(format!("-D {value}: not one visible ASCII character such as :")),
            },
            'f' | 'n' | 'R' | 'N' => {}
            'Y' => {
                return Err(
                    "-Y: Kirin's store has no passwords; use a unix socket and its mode".into()
                );
            }
            'e' => return Err("-e: Kirin keeps items over a restart in its own snapshot".into()),
            _ => return Err(format!("unknown option -{letter}; see -h")),
        }
        Ok(())
    }

    fn switch(&mut self, letter: char, value: Option<&str>) -> Result<(), String> {
        match letter {
            // The long form asks for more with `--verbose=vv`.
            'v' => self.verbosity += 1 + value.map_or(0, |more| more.len() as u32),
            'd' => self.daemon = true,
            'M' => self.no_evictions = true,
            'F' => self.no_flush_all = true,
            'W' => self.no_watchers = true,
            'X' => self.no_dumping = true,
            'k' | 'r' | 'L' | 'C' => {}
            'A' => return Err("-A: Kirin is stopped by a signal, not by a client".into()),
            'S' => return Err("-S: Kirin has no SASL; use a unix socket and its mode".into()),
            'Z' => return Err("-Z: Kirin's store has no TLS; use a unix socket or a tunnel".into()),
            _ => return Err(format!("unknown option -{letter}; see -h")),
        }
        Ok(())
    }

    fn extended(&mut self, suboption: &str) -> Result<(), String> {
        let (name, value) = match suboption.split_once('=') {
            Some((name, value)) => (name, Some(value)),
            None => (suboption, None),
        };
        let seconds = || -> Result<Option<Duration>, String> {
            let text = value.ok_or_else(|| format!("-o {name} needs a number of seconds"))?;
            let seconds = text
                .parse()
                .map_err(|_| format!("-o {suboption}: {text:?} is not a number of seconds"))?;
            Ok(Some(Duration::from_secs(seconds)).filter(|duration| !duration.is_zero()))
        };
        match name {
            "idle_timeout" => self.idle_timeout = seconds()?,
            "stampede_guard" => self.stampede_guard = seconds()?,
            "snapshot" => {
                let path = value.filter(|path| !path.is_empty());
                self.snapshot = Some(path.ok_or("-o snapshot needs a file")?.into());
            }
            "origin" => {
                let address =
                    value.ok_or("-o origin needs an address such as redis://HOST:PORT")?;
                let address: Result<Address, _> = address.parse();
                self.origin = Some(address.map_err(|error| format!("-o origin: {error}"))?);
            }
            "origin_ca" => {
                let path = value.filter(|path| !path.is_empty());
                self.origin_ca = Some(path.ok_or("-o origin_ca needs a file")?.into());
            }
            "origin_timeout" => {
                let time: Milliseconds = value
                    .unwrap_or_default()
                    .parse()
                    .map_err(|error| format!("-o origin_timeout {error}"))?;
                self.origin_timeout = Some(time.into());
            }
            "stale_limit" => {
                let time: Seconds = value
                    .unwrap_or_default()
                    .parse()
                    .map_err(|error| format!("-o stale_limit {error}"))?;
                self.stale_limit = Some(time.into());
            }
            "no_maxconns_fast" => {
                return Err(
                    "-o no_maxconns_fast: connections over the limit are always refused at once"
                        .into(),
                );
            }
            name if name.starts_with("ext_") => {
                return Err(format!("-o {name}: Kirin's store is in memory only"));
            }
            name if name.starts_with("ssl_") => {
                return Err(format!("-o {name}: Kirin's store has no TLS"));
            }
            name if WITHOUT_EFFECT.contains(&name) => {}
            name => return Err(format!("Illegal suboption \"{name}\"")),
        }
        Ok(())
    }

    /// Checks the options together. The messages are those of memcached.
    fn check(&self) -> Result<(), String> {
        if self.item_size_bytes < 1024 {
            return Err("Item max size cannot be less than 1024 bytes.".into());
        }
        if self.item_size_bytes > self.memory_bytes / 2 {
            return Err("Cannot set item size limit higher than 1/2 of memory max.".into());
        }
        if self.item_size_bytes > 1 << 30 {
            return Err("Cannot set item size limit higher than a gigabyte.".into());
        }
        if self.origin.is_none() && (self.origin_timeout.is_some() || self.stale_limit.is_some()) {
            return Err("-o origin_timeout and stale_limit: there is no -o origin".into());
        }
        if let Some(limit) = self.stale_limit {
            check_stale_limit(limit).map_err(|error| format!("-o stale_limit: {error}"))?;
        }
        if self.origin_ca.is_some() && !self.origin.as_ref().is_some_and(Address::uses_tls) {
            return Err(
                "-o origin_ca: only an origin with TLS (rediss://) has a certificate".into()
            );
        }
        if self.origin.is_some() && self.snapshot.is_some() {
            return Err("-o origin and -o snapshot: the items are on the origin, so there is \
                        nothing to save here"
                .into());
        }
        Ok(())
    }
}

fn number(letter: char, value: &str, lowest: i64, highest: i64) -> Result<i64, String> {
    value
        .parse()
        .ok()
        .filter(|number| (lowest..=highest).contains(number))
        .ok_or_else(|| format!("-{letter} {value}: not a number from {lowest} to {highest}"))
}

/// Splits the value of `-o` at its commas, but not at those between the Sentinels or the nodes of
/// an origin. The `/` before the name of the master ends Sentinels. A `/` or a suboption with a `=`
/// ends nodes.
fn suboptions(value: &str) -> impl Iterator<Item = &str> {
    let has_more = |before: &str, after: &str| {
        let address = before.strip_prefix("origin=").and_then(|text| text.split_once("://"));
        address.is_some_and(|(scheme, servers)| {
            let next = after.split(',').next().unwrap_or_default();
            let may_follow = match scheme {
                "redis-sentinel" | "rediss-sentinel" => true,
                "redis-cluster" | "rediss-cluster" => !next.contains('='),
                _ => false,
            };
            may_follow && !servers.contains('/')
        })
    };
    let mut rest = Some(value);
    std::iter::from_fn(move || {
        let text = rest?;
        let is_end = |at: &usize| match text.split_at_checked(*at) {
            Some((before, after)) => !has_more(before, after.strip_prefix(',').unwrap_or(after)),
            None => true,
        };
        let end = text.match_indices(',').map(|(at, _)| at).find(is_end);
        let (suboption, after) = match end.and_then(|at| text.split_at_checked(at)) {
            Some((suboption, after)) => (suboption, after.strip_prefix(',')),
            None => (text, None),
        };
        rest = after;
        Some(suboption)
    })
}

fn item_size(value: &str) -> Result<usize, String> {
    let (digits, unit) = match value.char_indices().last() {
        Some((at, 'k' | 'K')) => (&value[..at], 1 << 10),
        Some((at, 'm' | 'M')) => (&value[..at], 1 << 20),
        _ => (value, 1),
    };
    digits
        .parse::<usize>()
        .ok()
        .and_then(|number| number.checked_mul(unit))
        .ok_or_else(|| format!("-I {value}: not a size such as 1m, 512k or 65536"))
}

fn listen_address(text: &str) -> Result<HostAndPort, String> {
    let wrong = || format!("-l {text}: not an address such as 127.0.0.1, [::1]:11211 or localhost");
    if let Some(address) = text.strip_prefix("notls:") {
        return listen_address(address);
    }
    if let Some(rest) = text.strip_prefix('[') {
        let (host, rest) = rest.split_once(']').ok_or_else(wrong)?;
        let port = match rest.strip_prefix(':') {
            Some(port) => Some(port.parse().map_err(|_| wrong())?),
            None if rest.is_empty() => None,
            None => return Err(wrong()),
        };
        return Ok(HostAndPort { host: host.to_owned(), port });
    }
    match text.split_once(':') {
        // An address with more than one colon and without brackets is an IPv6 address without a
        // port.
        Some((_, rest)) if rest.contains(':') => {
            Ok(HostAndPort { host: text.to_owned(), port: None })
        }
        Some((host, port)) if !host.is_empty() => Ok(HostAndPort {
            host: host.to_owned(),
            port: Some(port.parse().map_err(|_| wrong())?),
        }),
        Some(_) => Err(wrong()),
        None => Ok(HostAndPort { host: text.to_owned(), port: None }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(words: &str) -> Options {
        match parse(words.split_whitespace()) {
            Ok(MemcachedAction::Run(options)) => *options,
            other => panic!("{words}: {other:?}"),
        }
    }

    #[test]
    fn a_command_line_written_for_memcached_is_understood() {
        let read = options(
            "-p 0 -s /tmp/m.sock -a 0766 -m 128 -c 20000 -t 2 -U 0 -l 127.0.0.1,[::1]:1234 -I 2m \
             -o modern,idle_timeout=30 -u nobody -d -P /tmp/m.pid -vv -M -X -W -D /",
        );
        let expected = Options {
            port: 0,
            listen: vec![
                HostAndPort { host: "127.0.0.1".into(), port: None },
                HostAndPort { host: "::1".into(), port: Some(1234) },
            ],
            unix_socket: Some("/tmp/m.sock".into()),
            unix_mode: 0o766,
            memory_bytes: 128 << 20,
            connection_limit: 20_000,
            threads: 2,
            item_size_bytes: 2 << 20,
            idle_timeout: Some(Duration::from_secs(30)),
            user: Some("nobody".into()),
            daemon: true,
            pid_file: Some("/tmp/m.pid".into()),
            verbosity: 2,
            no_evictions: true,
            no_dumping: true,
            no_watchers: true,
            prefix_delimiter: Some(b'/'),
            ..Options::default()
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn values_may_be_attached_or_long() {
        assert_eq!(options("-p11222 -m64 -U0").port, 11222);
        assert_eq!(options("--port=11222 --memory-limit 100").memory_bytes, 100 << 20);
        assert_eq!(options("-dvv").verbosity, 2);
        assert_eq!(options("-p -1").port, -1);
    }

    #[test]
    fn an_origin_may_have_several_sentinels_between_other_suboptions() {
        let read = options(
            "-o modern,origin=rediss-sentinel://:p@a:1,b,[::1]:2/main?db=3,origin_ca=ca.pem,\
             stale_limit=9s",
        );
        let origin = read.origin.map(|origin| origin.to_string());
        assert_eq!(origin.as_deref(), Some("rediss-sentinel://a:1,b:26379,[::1]:2/main?db=3"));
        assert_eq!(read.origin_ca, Some("ca.pem".into()));
        assert_eq!(read.stale_limit, Some(Duration::from_secs(9)));
        let server = options("-o origin=redis://a,stale_limit=9s").origin;
        assert_eq!(server.map(|origin| origin.to_string()).as_deref(), Some("redis://a:6379"));
    }

    #[test]
    fn an_origin_may_have_several_nodes_between_other_suboptions() {
        for end in [",stale_limit=9s", "/,stale_limit=9s", "/,modern,stale_limit=9s"] {
            let read = options(&format!("-o modern,origin=redis-cluster://:p=@a:1,b,[::1]:2{end}"));
            let origin = read.origin.map(|origin| origin.to_string());
            assert_eq!(origin.as_deref(), Some("redis-cluster://a:1,b:6379,[::1]:2"), "{end}");
            assert_eq!(read.stale_limit, Some(Duration::from_secs(9)), "{end}");
        }
    }

    #[test]
    fn the_default_listens_on_this_machine_only() {
        assert_eq!(options(""), Options::default());
        assert!(Options::default().listen.is_empty(), "no address is loopback, see config.rs");
    }

    #[test]
    fn every_letter_is_either_with_or_without_a_value() {
        for (name, letter) in LONG_NAMES {
            assert!(WITH_VALUE.contains(*letter) != WITHOUT_VALUE.contains(*letter), "--{name}");
        }
    }

    #[test]
    fn unsupported_options_are_refused_by_name() {
        let refusals = [
            ("-U 11211", "-U: Kirin has no UDP"),
            ("-B binary", "-B binary"),
            ("-p 70000", "-p 70000: not a number from -1 to 65535"),
            ("-p", "option -p needs a value"),
            ("-I 1", "Item max size cannot be less than 1024 bytes."),
            ("-I 33m -m 64", "Cannot set item size limit higher than 1/2 of memory max."),
            ("-o nonsense", "Illegal suboption \"nonsense\""),
            ("-o origin=redis-sentinel://a,b", "`` is not the name of a master"),
            ("-o origin=redis-sentinel://a,stale_limit=9s", "`stale_limit` is not the host"),
            ("-o idle_timeout=x", "is not a number of seconds"),
            ("-l [::1", "not an address"),
            ("-D ::", "-D ::: not one visible ASCII character"),
            ("-q", "unknown option -q"),
            ("--quiet", "unknown option --quiet"),
            ("start", "is not an option"),
        ];
        for (words, expected) in refusals {
            let refusal = parse(words.split_whitespace()).expect_err(words);
            assert!(refusal.contains(expected), "{words}: {refusal}");
        }
    }
}

//! What clients did, when, and what they were told. The checker judges it afterwards.
//!
//! Each write leaves a text that nobody else writes: its number. A value is the number of the write
//! that replaced the item, and those of what was appended since, such as `12+40+41`. So a value
//! tells its whole origin.

use std::fmt;
use std::time::Duration;

/// The machine of what no client did: the server has lost its data.
pub const NO_MACHINE: usize = usize::MAX;

/// What a client did, or what happened to the server. Times count from the start of the history.
#[derive(Clone, Debug)]
pub struct Operation {
    /// No other operation of the history has it.
    pub id: u64,
    pub machine: usize,
    /// The key; for a purge the tag or the prefix.
    pub key: String,
    pub kind: Kind,
    pub start: Duration,
    pub end: Duration,
    pub outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `set`, or `ms` with tags.
    Set {
        tags: Vec<&'static str>,
    },
    /// `gets`.
    Get,
    /// `GET` of a page that includes the item.
    Show,
    /// `cas` with the CAS unique of a value that was read before.
    Cas {
        unique: u64,
        expected: String,
    },
    /// `append`.
    Append,
    /// `incr` by one. A key that is counted was set to 0 before the history, and is never written
    /// otherwise.
    Count,
    Delete,
    Touch,
    /// `md … Ptag`. A soft one changes no value, and plain clients go on reading it.
    PurgeTag(How),
    /// `md … Pprefix`, or the server has lost everything.
    PurgePrefix(How),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Hard,
    Soft,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// A value and its CAS unique.
    Value(String, u64),
    /// A value in a page. A page does not tell a missing item from one that cannot be had.
    Shown(String),
    /// There is no item.
    Absent,
    /// The command was carried out.
    Done,
    /// It was, and this is the number now.
    Number(u64),
    /// `cas` has found another value.
    Exists,
    /// It was certainly not carried out: the answer says so.
    NotDone,
    /// Nobody knows, or a read has failed.
    Unknown,
}

/// A process that answers clients. A new one in the same place is another machine.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// When it did not run yet.
    pub born: Duration,
}

/// The time from the beginning of a fault until the machine has answered a write again.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    pub machine: usize,
    pub from: Duration,
    pub until: Duration,
}

#[derive(Clone, Debug, Default)]
pub struct History {
    pub operations: Vec<Operation>,
    pub machines: Vec<Machine>,
    pub faults: Vec<Fault>,
}

impl Operation {
    /// Returns the command line and the data block, or the request for the page.
    pub fn command(&self) -> String {
        let Self { id, key, kind, .. } = self;
        let id = id.to_string();
        let block = |head: String, value: &str| format!("{head}{}\r\n{value}\r\n", value.len());
        let purge = |word: &str, how: &How| {
            format!("md {key} P{word}{}\r\n", if *how == How::Soft { " I" } else { "" })
        };
        match kind {
            Kind::Set { tags } if tags.is_empty() => block(format!("set {key} 0 0 "), &id),
            Kind::Set { tags } => {
                format!("ms {key} {} Ptags={}\r\n{id}\r\n", id.len(), tags.join(","))
            }
            Kind::Get => format!("gets {key}\r\n"),
            Kind::Show => format!("GET /{key} HTTP/1.0\r\nHost: chaos\r\n\r\n"),
            Kind::Cas { unique, .. } => format!("cas {key} 0 0 {} {unique}\r\n{id}\r\n", id.len()),
            Kind::Append => block(format!("append {key} 0 0 "), &format!("+{id}")),
            Kind::Count => format!("incr {key} 1\r\n"),
            Kind::Delete => format!("delete {key}\r\n"),
            Kind::Touch => format!("touch {key} 100000\r\n"),
            Kind::PurgeTag(how) => purge("tag", how),
            Kind::PurgePrefix(how) => purge("prefix", how),
        }
    }

    /// Returns whether a command reads its item at the server, and not a copy.
    pub fn is_strict(&self) -> bool {
        !matches!(self.kind, Kind::Get | Kind::Show)
    }

    /// Returns whether the server may have carried it out.
    pub fn may_be_done(&self) -> bool {
        self.is_done() || self.outcome == Outcome::Unknown
    }

    /// Returns whether the client was told that it was carried out.
    pub fn is_done(&self) -> bool {
        matches!(self.outcome, Outcome::Done | Outcome::Number(_))
    }
}

impl Outcome {
    /// Returns what a page shows. Nothing is known if it is not there, or not the item in it.
    pub fn of_page(response: &str) -> Self {
        match response.split_once("\r\n\r\n") {
            Some((head, value))
                if head.starts_with("HTTP/1.1 200 ") && !value.starts_with("[an error") =>
            {
                Self::Shown(value.to_owned())
            }
            _ => Self::Unknown,
        }
    }

    /// Returns what an answer means. `None` is a connection that has ended.
    ///
    /// # Panics
    /// Panics if no command of a history can be answered so.
    pub fn of(answer: Option<&str>) -> Self {
        let Some(answer) = answer else { return Self::Unknown };
        let line = answer.lines().next().unwrap_or_default();
        if let Some(head) = line.strip_prefix("VALUE ") {
            let unique = head.split(' ').nth(3).and_then(|unique| unique.parse().ok());
            let value = answer.lines().nth(1).unwrap_or_default().trim_end();
            return Self::Value(value.to_owned(), unique.expect("a CAS unique"));
        }
        if let Some(reason) = line.strip_prefix("SERVER_ERROR the ") {
            // docs/memcached.md and `OriginError` say that nothing was sent, or nothing written.
            let nothing_written = ["origin is away: ", "origin is too slow: ", "item changes on "];
            let is_not_done = nothing_written.iter().any(|start| reason.starts_with(start));
            return if is_not_done { Self::NotDone } else { Self::Unknown };
        }
        match line {
            "STORED" | "DELETED" | "TOUCHED" | "HD" | "NF" => Self::Done,
            "END" | "NOT_FOUND" | "NOT_STORED" => Self::Absent,
            "EXISTS" => Self::Exists,
            number => match number.parse() {
                Ok(number) => Self::Number(number),
                Err(_) => panic!("an answer that nobody expects: {answer:?}"),
            },
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, machine, key, kind, start, end, outcome } = self;
        let (start, end) = (start.as_secs_f64(), end.as_secs_f64());
        match *machine {
            NO_MACHINE => write!(f, "server")?,
            machine => write!(f, "machine {machine}")?,
        }
        write!(f, " {start:.6}..{end:.6} #{id} {kind:?} {key}: {outcome:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_say_what_was_done() {
        let unknown = "SERVER_ERROR the origin has not answered within 500 ms; the command …\r\n";
        for (answer, outcome) in [
            ("VALUE a 0 4 17\r\n3+12\r\nEND\r\n", Outcome::Value("3+12".into(), 17)),
            ("END\r\n", Outcome::Absent),
            ("NF\r\n", Outcome::Done),
            ("42\r\n", Outcome::Number(42)),
            ("SERVER_ERROR the origin is away: no\r\n", Outcome::NotDone),
            ("SERVER_ERROR the item changes on the origin too often\r\n", Outcome::NotDone),
            (unknown, Outcome::Unknown),
        ] {
            assert_eq!(Outcome::of(Some(answer)), outcome, "{answer}");
        }
        assert_eq!(Outcome::of(None), Outcome::Unknown);
    }
}

//! The line that a worker sends first on its connection: `KIRIN/1 pid=123 generation=1
//! adapter=perl/0.001`.

use crate::parsed::Wanted;
use crate::stacks::StackLayout;

/// The longest greeting line in bytes.
pub(crate) const MAX_GREETING_BYTES: usize = 256;

/// The most connections of one worker.
const MAX_CONNECTIONS: usize = 16_384;

/// What a worker says about itself.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Greeting {
    pub(crate) pid: u32,
    pub(crate) adapter: String,
    /// The parts of a request that Kirin should parse: `parsed=query,form,cookies`.
    pub(crate) wanted: Wanted,
    /// Whether the worker can use a ring: `speaks=2`.
    pub(crate) knows_ring: bool,
    /// Whether the worker can receive a body in a file as a descriptor: `body=descriptor`.
    pub(crate) takes_descriptors: bool,
    /// How many connections the worker accepts at the same time: `connections=1024`. It is 1 for a
    /// worker that does not say it.
    pub(crate) connections: usize,
    /// Where the worker's stack is: `stacks=perl:…`, `stacks=python:…`.
    pub(crate) stacks: Option<StackLayout>,
}

/// Why a greeting is not that of a worker.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum BadGreeting {
    #[error("worker speaks another protocol: {0:?} (expected KIRIN/1)")]
    Protocol(String),
    #[error("greeting has no {0}")]
    Missing(&'static str),
}

/// Parses a greeting without its line end. Unknown words are ignored, so that adapters can say
/// more.
pub(crate) fn parse(line: &str) -> Result<Greeting, BadGreeting> {
    let mut words = line.split_ascii_whitespace();
    let protocol = words.next().unwrap_or("");
    if protocol != "KIRIN/1" {
        return Err(BadGreeting::Protocol(protocol.to_owned()));
    }
    let (mut pid, mut adapter) = (None, None);
    let (mut wanted, mut stacks) = (Wanted::default(), None);
    let (mut knows_ring, mut takes_descriptors) = (false, false);
    let mut connections = 1;
    for word in words {
        match word.split_once('=') {
            Some(("pid", value)) => pid = value.parse().ok().filter(|pid| *pid > 1),
            Some(("adapter", value)) => adapter = Some(value.to_owned()),
            Some(("parsed", value)) => wanted = Wanted::from_list(value),
            Some(("speaks", value)) => knows_ring = value == "2",
            Some(("body", value)) => takes_descriptors = value == "descriptor",
            Some(("connections", value)) => {
                connections = value.parse().unwrap_or(1).clamp(1, MAX_CONNECTIONS);
            }
            Some(("stacks", value)) => stacks = StackLayout::parse(value),
            _ => {}
        }
    }
    Ok(Greeting {
        pid: pid.ok_or(BadGreeting::Missing("pid"))?,
        adapter: adapter.ok_or(BadGreeting::Missing("adapter"))?,
        wanted,
        knows_ring,
        takes_descriptors,
        connections,
        stacks,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_greeting_names_pid_and_adapter_and_may_say_more() {
        let greeting = parse("KIRIN/1 pid=123 generation=1 adapter=perl/0.001 mood=good").unwrap();
        assert_eq!(
            greeting,
            Greeting {
                pid: 123,
                adapter: "perl/0.001".into(),
                wanted: Wanted::default(),
                knows_ring: false,
                takes_descriptors: false,
                connections: 1,
                stacks: None
            }
        );
        let greeting = parse("KIRIN/1 pid=123 adapter=x parsed=query").unwrap();
        assert_eq!(greeting.wanted, Wanted { query: true, ..Wanted::default() });
        for (word, knows_ring) in [("speaks=2", true), ("speaks=3", false), ("speaks", false)] {
            let greeting = parse(&format!("KIRIN/1 pid=123 adapter=x {word}")).unwrap();
            assert_eq!(greeting.knows_ring, knows_ring, "{word}");
        }
        for (word, takes) in [("body=descriptor", true), ("body=bytes", false), ("body", false)] {
            let greeting = parse(&format!("KIRIN/1 pid=123 adapter=x {word}")).unwrap();
            assert_eq!(greeting.takes_descriptors, takes, "{word}");
        }
        for (value, connections) in
            [("64", 64), ("1", 1), ("0", 1), ("-1", 1), ("many", 1), ("99999", 16_384)]
        {
            let greeting = parse(&format!("KIRIN/1 pid=123 adapter=x connections={value}"));
            assert_eq!(greeting.unwrap().connections, connections, "{value}");
        }
    }

    #[test]
    fn a_malformed_greeting_is_refused() {
        for line in
            ["", "KIRIN/2 pid=1 adapter=x", "HTTP/1.1 200 OK", "KIRIN/1 adapter=x", "KIRIN/1 pid=5"]
        {
            assert!(parse(line).is_err(), "{line}");
        }
        // Processes 0 and 1 are never workers. Signals must not reach them.
        for pid in ["0", "1", "-5", "x", "99999999999"] {
            assert!(parse(&format!("KIRIN/1 pid={pid} adapter=x")).is_err(), "{pid}");
        }
    }
}

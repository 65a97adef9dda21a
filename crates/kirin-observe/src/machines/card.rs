//! What a machine says about itself when it announces itself.

use std::collections::HashMap;

use kirin_clock::wall_seconds;
use kirin_origin::random_name;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The most characters of what a machine serves.
const MOST_CHARACTERS: usize = 200;

/// A machine, as it announces itself. It never changes while the program runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MachineCard {
    /// A random name of this run of the program.
    pub id: String,
    /// The name of the host, as `uname -n` prints it.
    pub host: String,
    /// The process id.
    pub pid: u32,
    /// The version of Kirin.
    pub version: String,
    /// The start of the program in seconds since the Unix epoch, by the machine's own clock.
    pub since: u64,
    /// The configuration or the target that it serves.
    pub serves: String,
}

impl MachineCard {
    /// Returns the card of this process. `serving` is the part of the status that says what it
    /// serves.
    pub fn of_this_machine(serving: &Value) -> Self {
        let host = rustix::system::uname();
        let served = ["config", "target", "program"].map(|key| serving[key].as_str());
        let served = served.into_iter().flatten().next().unwrap_or_default();
        Self {
            id: random_name(),
            host: host.nodename().to_string_lossy().into_owned(),
            pid: std::process::id(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            since: wall_seconds(),
            serves: served.chars().take(MOST_CHARACTERS).collect(),
        }
    }

    /// Returns what goes to the origin.
    pub fn text(&self) -> String {
        serde_json::json!(self).to_string()
    }

    /// Reads what another machine has written. Returns `None` if no Kirin writes that.
    pub fn parse(text: &[u8]) -> Option<Self> {
        let card: Self = serde_json::from_slice(text).ok()?;
        (!card.id.is_empty()).then_some(card)
    }
}

/// Returns a name for each machine, for people: its host, and with several on a host the process
/// id.
pub fn names(cards: &[MachineCard]) -> Vec<String> {
    let mut on_host: HashMap<&str, usize> = HashMap::new();
    cards.iter().for_each(|card| *on_host.entry(&card.host).or_default() += 1);
    let name = |card: &MachineCard| match on_host.get(&*card.host) {
        Some(1) => card.host.clone(),
        _ => format!("{}/{}", card.host, card.pid),
    };
    cards.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_read_as_it_was_written() {
        let serving = serde_json::json!({ "target": "/srv/shop".repeat(100) });
        let card = MachineCard::of_this_machine(&serving);
        assert_eq!(MachineCard::parse(card.text().as_bytes()), Some(card.clone()));
        assert_eq!((card.serves.len(), card.pid), (MOST_CHARACTERS, std::process::id()));
        assert!(!card.host.is_empty());
        assert_ne!(MachineCard::of_this_machine(&serving).id, card.id);
        for other in ["", "x", "1", "{}", "{\"id\": 1}"] {
            assert_eq!(MachineCard::parse(other.as_bytes()), None, "{other}");
        }
        let later = MachineCard::parse(b"{\"id\": \"1\", \"unknown\": 2}");
        assert_eq!(later, Some(MachineCard { id: "1".into(), ..MachineCard::default() }));
    }

    #[test]
    fn machines_on_one_host_are_told_apart_by_their_process_ids() {
        let card = |host: &str, pid| MachineCard { host: host.into(), pid, ..Default::default() };
        assert_eq!(names(&[card("a", 1), card("b", 2)]), ["a", "b"]);
        assert_eq!(names(&[card("a", 1), card("b", 2), card("a", 3)]), ["a/1", "b", "a/3"]);
    }
}

//! The commands of a load: keys, values and the mix of commands. There is no I/O: a batch is bytes.

use clap::Args;
use kirin_floor::random::Random;

/// The commands of a batch and the items that they name.
#[derive(Args, Clone)]
pub struct Workload {
    /// Number of different keys. Each is chosen with the same probability.
    #[arg(long, default_value_t = 10_000, value_parser = at_least_one)]
    pub keys: usize,
    /// Size of every value in bytes.
    #[arg(long = "value", default_value_t = 100, value_name = "BYTES")]
    pub value_bytes: usize,
    /// Commands in a batch. A batch is sent in one write, and the next one follows the last reply.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    pub depth: usize,
    /// Share of sets among the commands, in percent. The others are gets.
    #[arg(long = "sets", default_value_t = 0, value_name = "PERCENT",
          value_parser = clap::value_parser!(u8).range(..=100))]
    pub set_percent: u8,
    /// Number of keys in each get.
    #[arg(long, default_value_t = 1, value_parser = at_least_one)]
    pub keys_per_get: usize,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    text.parse()
        .ok()
        .filter(|&number| number > 0)
        .ok_or_else(|| "a number from 1 is needed".to_owned())
}

/// Writes batches. Everything that repeats is formatted once, so that the load costs little
/// compared to the server.
pub struct Batches {
    workload: Workload,
    keys: Vec<String>,
    value: Vec<u8>,
    random: Random,
}

/// The number of elements that the replies to a batch must have.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The number of commands. `END` or `STORED` ends the reply to each.
    pub commands: usize,
    /// The number of values if no key is missing.
    pub values: usize,
}

impl Batches {
    /// Creates the batches of a workload. `seed` fixes the order of keys and commands.
    pub fn new(workload: &Workload, seed: u64) -> Self {
        Self {
            workload: workload.clone(),
            keys: (0..workload.keys).map(|number| format!("bench:{number:08}")).collect(),
            value: vec![b'v'; workload.value_bytes],
            random: Random::new(seed),
        }
    }

    /// Writes the next batch into `request`, which is cleared before.
    pub fn next(&mut self, request: &mut Vec<u8>) -> Expected {
        request.clear();
        let mut expected = Expected { commands: self.workload.depth, values: 0 };
        for _ in 0..self.workload.depth {
            if self.random.below(100) < usize::from(self.workload.set_percent) {
                let key = self.random.below(self.keys.len());
                self.append_set(key, request);
            } else {
                request.extend_from_slice(b"get");
                for _ in 0..self.workload.keys_per_get {
                    request.push(b' ');
                    let key = self.random.below(self.keys.len());
                    request.extend_from_slice(self.keys[key].as_bytes());
                }
                request.extend_from_slice(b"\r\n");
                expected.values += self.workload.keys_per_get;
            }
        }
        expected
    }

    /// Appends a set of the key with this number.
    pub fn append_set(&self, key: usize, request: &mut Vec<u8>) {
        request.extend_from_slice(
            format!("set {} 0 0 {}\r\n", self.keys[key], self.value.len()).as_bytes(),
        );
        request.extend_from_slice(&self.value);
        request.extend_from_slice(b"\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::{Batches, Expected, Workload};

    fn workload() -> Workload {
        Workload { keys: 10, value_bytes: 3, depth: 1, set_percent: 0, keys_per_get: 1 }
    }

    fn batch(workload: &Workload) -> (String, Expected) {
        let mut request = Vec::new();
        let expected = Batches::new(workload, 7).next(&mut request);
        (String::from_utf8(request).expect("ASCII"), expected)
    }

    #[test]
    fn a_get_names_as_many_keys_as_were_asked_for() {
        let (request, expected) = batch(&Workload { keys_per_get: 3, ..workload() });
        let words: Vec<&str> = request.split_ascii_whitespace().collect();
        assert_eq!((words[0], words.len()), ("get", 4), "{request}");
        assert_eq!(expected, Expected { commands: 1, values: 3 });
    }

    #[test]
    fn a_set_announces_the_length_of_its_value() {
        let (request, expected) = batch(&Workload { set_percent: 100, ..workload() });
        assert!(request.starts_with("set bench:0000000"), "{request}");
        assert!(request.ends_with(" 0 0 3\r\nvvv\r\n"), "{request}");
        assert_eq!(expected, Expected { commands: 1, values: 0 });
    }

    #[test]
    fn a_tenth_of_the_commands_are_sets_when_asked_for_ten_percent() {
        let (request, _) = batch(&Workload { depth: 10_000, set_percent: 10, ..workload() });
        let sets = request.lines().filter(|line| line.starts_with("set ")).count();
        assert!((900..1100).contains(&sets), "{sets} of 10,000");
    }

    #[test]
    fn every_key_is_used() {
        let (request, _) = batch(&Workload { depth: 1000, ..workload() });
        for number in 0..10 {
            assert!(request.contains(&format!("bench:{number:08}\r\n")), "key {number}");
        }
    }
}

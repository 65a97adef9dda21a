//! Facts about this process, from proc(5).

use std::fs;

use rustix::process::{Resource, getrlimit};

/// The facts. `None` for one that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProcessFacts {
    /// CPU time in seconds, in user space and in the kernel.
    pub cpu_seconds: Option<f64>,
    /// Resident memory in bytes.
    pub resident_bytes: Option<u64>,
    /// Open file descriptors.
    pub open_descriptors: Option<u64>,
    /// The most file descriptors.
    pub max_descriptors: Option<u64>,
}

impl ProcessFacts {
    /// Reads the facts.
    pub fn read() -> Self {
        let stat = fs::read_to_string("/proc/self/stat").ok();
        let ticks = rustix::param::clock_ticks_per_second() as f64;
        let statm = fs::read_to_string("/proc/self/statm").ok();
        let page_bytes = rustix::param::page_size() as u64;
        Self {
            cpu_seconds: stat.and_then(|stat| Some(cpu_ticks(&stat)? as f64 / ticks)),
            resident_bytes: statm.and_then(|statm| {
                Some(statm.split_ascii_whitespace().nth(1)?.parse::<u64>().ok()? * page_bytes)
            }),
            // One of them is the descriptor of the directory.
            open_descriptors: fs::read_dir("/proc/self/fd")
                .ok()
                .map(|entries| (entries.count() as u64).saturating_sub(1)),
            max_descriptors: getrlimit(Resource::Nofile).current,
        }
    }
}

/// Returns the sum of user and system time in a line of proc_pid_stat(5). The name of the program,
/// in parentheses, may have spaces and parentheses.
fn cpu_ticks(stat: &str) -> Option<u64> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut times = fields.split_ascii_whitespace().skip(11);
    let (user, system) = (times.next()?, times.next()?);
    Some(user.parse::<u64>().ok()? + system.parse::<u64>().ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_is_the_14th_and_the_15th_field() {
        let stat = "7 (a) b) c) S 1 7 7 0 -1 4194560 100 0 0 0 250 31 0 0 20 0 3 0 99 1 2";
        assert_eq!(cpu_ticks(stat), Some(281));
        assert_eq!(cpu_ticks("7 (a) S 1"), None);
        assert_eq!(cpu_ticks(""), None);
    }

    #[test]
    fn all_facts_of_this_process_can_be_read() {
        let facts = ProcessFacts::read();
        assert!(facts.cpu_seconds.is_some_and(|seconds| seconds >= 0.0), "{facts:?}");
        assert!(facts.resident_bytes.is_some_and(|bytes| bytes > 100_000), "{facts:?}");
        assert!(facts.open_descriptors.is_some_and(|open| open >= 3), "{facts:?}");
    }
}

//! The process groups of all programs that run, on all event loops. When Kirin ends at once, its
//! event loops do not end before it, and nothing else would end their programs.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use rustix::process::{Pid, RawPid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};

/// The groups of this process.
static RUNNING: Mutex<RunningGroups> =
    Mutex::new(RunningGroups { leaders: BTreeSet::new(), have_ended: false });

struct RunningGroups {
    /// The leaders, which are not reaped. So each number still is that of its group.
    leaders: BTreeSet<RawPid>,
    have_ended: bool,
}

/// Adds a group. It is killed if Kirin ends.
pub(crate) fn add(leader: Pid) {
    let mut running = RUNNING.lock();
    running.leaders.insert(leader.as_raw_nonzero().get());
    if running.have_ended {
        kill(leader);
    }
}

/// Reaps the leader of a group if it has ended. Returns whether it has.
pub(crate) fn reap(leader: Pid) -> bool {
    let mut running = RUNNING.lock();
    let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG;
    let is_reaped = !matches!(waitid(WaitId::Pid(leader), options), Ok(None));
    if is_reaped {
        running.leaders.remove(&leader.as_raw_nonzero().get());
    }
    is_reaped
}

/// Kills all programs, and those that are started from now on. Call this when Kirin ends.
pub fn kill_all() {
    let mut running = RUNNING.lock();
    running.have_ended = true;
    running.leaders.iter().copied().filter_map(Pid::from_raw).for_each(kill);
}

fn kill(leader: Pid) {
    // The leader is not reaped, so the group exists.
    let _ = kill_process_group(leader, Signal::KILL);
}

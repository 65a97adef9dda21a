//! When connections are to be asked for what is due.
//!
//! The next time of a connection moves with almost every packet, mostly away. So a connection is
//! entered again only for an earlier time; at the time that was entered, it says what its time is
//! now.

use std::collections::BTreeSet;
use std::time::Instant;

/// The times of the connections of an endpoint. A connection is named by its number.
#[derive(Default)]
pub(super) struct Timers {
    entries: BTreeSet<(Instant, usize)>,
}

impl Timers {
    /// Enters a connection for `time`, unless it is entered for an earlier one. `entered` is the
    /// connection's own note of its entry.
    pub(super) fn enter(&mut self, number: usize, time: Instant, entered: &mut Option<Instant>) {
        if entered.is_some_and(|entered| entered <= time) {
            return;
        }
        self.leave(number, entered);
        self.entries.insert((time, number));
        *entered = Some(time);
    }

    /// Removes a connection.
    pub(super) fn leave(&mut self, number: usize, entered: &mut Option<Instant>) {
        if let Some(entered) = entered.take() {
            self.entries.remove(&(entered, number));
        }
    }

    /// Returns the first time.
    pub(super) fn first(&self) -> Option<Instant> {
        self.entries.first().map(|(time, _)| *time)
    }

    /// Removes and returns a connection whose time has come. It must clear its note.
    pub(super) fn pop_due(&mut self, now: Instant) -> Option<usize> {
        let (time, number) = *self.entries.first()?;
        if time > now {
            return None;
        }
        self.entries.remove(&(time, number));
        Some(number)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_connection_has_one_entry_which_becomes_earlier_only() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let (mut timers, mut entered) = (Timers::default(), None);
        timers.enter(7, at(10), &mut entered);
        timers.enter(7, at(20), &mut entered);
        assert_eq!(timers.first(), Some(at(10)));
        timers.enter(7, at(5), &mut entered);
        timers.enter(8, at(6), &mut None);
        assert_eq!(timers.entries.len(), 2);
        assert_eq!(timers.pop_due(at(4)), None);
        assert_eq!(timers.pop_due(at(6)), Some(7));
        assert_eq!(timers.pop_due(at(6)), Some(8));
        assert_eq!(timers.first(), None);
    }
}

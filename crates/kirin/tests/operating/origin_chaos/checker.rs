//! Judges a history by the promises of docs/memcached.md, "Several machines".
//!
//! A write lies between its start and its end, wherever it was carried out. One with an unknown
//! outcome may be carried out at any later time, so its end is when a client has first read it. A
//! state is *over* for a reader if a write began after it was certainly there, and ended before the
//! reader began, less the time that the reader's machine may be late. So the checker never accuses
//! a Kirin that was merely unlucky, and it needs no search.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::time::Duration;

use super::history::{Fault, History, How, Kind, NO_MACHINE, Operation, Outcome};

/// How late a machine may be.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Without a fault: the invalidation is on its way. This is for a busy machine.
    pub steady: Duration,
    /// With a fault since: the stale limit, and what full seconds add.
    pub faulty: Duration,
    /// Whether the server has lost its data by itself: then only staleness is judged.
    pub server_loses: bool,
}

impl Default for Limits {
    fn default() -> Self {
        let (steady, faulty) = (Duration::from_secs(3), Duration::from_secs(6));
        Self { steady, faulty, server_loses: false }
    }
}

/// What docs/memcached.md promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Promise {
    /// A value is what somebody has written, and each write is carried out at most once: "A write
    /// may have been carried out nevertheless, and is not sent again."
    IsWritten,
    /// "A write is answered when the origin has it. After that this machine serves no older value."
    OwnWrites,
    /// "The other machines serve no older value once the invalidation has arrived", and "Without
    /// the origin, a machine serves its copies for at most 5 seconds."
    Fresh,
    /// A machine without copies reads what was acknowledged: "A write is answered when the origin
    /// has it", and "After a new connection no copy from before it is served."
    Kept,
    /// "`cas`, `incr`, `append` and `add` are atomic over all of them."
    Atomic,
    /// "A CAS unique is the same on all machines."
    Unique,
}

/// A promise that was broken, and by which operations.
#[derive(Clone, Debug)]
pub struct Violation {
    pub promise: Promise,
    text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}: {}", self.promise, self.text)
    }
}

/// Returns the promises that a history breaks.
pub fn check(history: &History, limits: &Limits) -> Vec<Violation> {
    let context = Context::new(history, *limits);
    let mut keys: BTreeMap<&str, Vec<&Operation>> = BTreeMap::new();
    let mut purges = Vec::new();
    for operation in &history.operations {
        match operation.kind {
            Kind::PurgeTag(_) | Kind::PurgePrefix(_) => purges.push(operation),
            _ => keys.entry(&operation.key).or_default().push(operation),
        }
    }
    let mut violations = Vec::new();
    for (key, operations) in keys {
        if operations.iter().any(|operation| operation.kind == Kind::Count) {
            context.check_count(&operations, &mut violations);
        } else {
            let item = ItemHistory::new(&context, key, operations, &purges);
            item.check(&mut violations);
        }
    }
    violations
}

/// What all keys share.
struct Context<'a> {
    history: &'a History,
    limits: Limits,
    by_id: HashMap<u64, &'a Operation>,
    /// When a write with an unknown outcome was first read.
    first_read: HashMap<u64, Duration>,
}

/// A change of an item that has certainly happened.
struct Change<'a> {
    operation: &'a Operation,
    end: Duration,
    /// The change is a purge of items with this tag.
    tag: Option<&'a str>,
}

/// All that concerns one key.
struct ItemHistory<'a> {
    context: &'a Context<'a>,
    operations: Vec<&'a Operation>,
    /// What ends a value, by its start: another value, a removal, or a purge.
    overwrites: Vec<Change<'a>>,
    /// What proves that there is an item afterwards, by its start.
    makers: Vec<Change<'a>>,
    appends: Vec<Change<'a>>,
    /// What may have removed the item, by its start. It may not have happened.
    removals: Vec<Change<'a>>,
    /// The writes of values, by their start. Some may not have happened.
    values: Vec<&'a Operation>,
}

impl<'a> Context<'a> {
    fn new(history: &'a History, limits: Limits) -> Self {
        let by_id: HashMap<u64, &Operation> =
            history.operations.iter().map(|operation| (operation.id, operation)).collect();
        let mut first_read: HashMap<u64, Duration> = HashMap::new();
        for operation in &history.operations {
            let (Outcome::Value(text, _) | Outcome::Shown(text)) = &operation.outcome else {
                continue;
            };
            for id in parts(text).into_iter().flatten() {
                // The number of a key that is counted names no write.
                let is_write =
                    |write: &&Operation| write.key == operation.key && write.kind != Kind::Count;
                if by_id.get(&id).is_some_and(is_write) {
                    let first = first_read.entry(id).or_insert(operation.end);
                    *first = operation.end.min(*first);
                }
            }
        }
        Self { history, limits, by_id, first_read }
    }

    /// Returns when an operation has certainly been carried out.
    fn done_by(&self, operation: &Operation) -> Duration {
        let acknowledged = if operation.is_done() { operation.end } else { Duration::MAX };
        let read = self.first_read.get(&operation.id).copied().unwrap_or(Duration::MAX);
        acknowledged.min(read)
    }

    /// Returns the changes that have certainly happened, by their start.
    fn certain<'b>(&self, operations: impl Iterator<Item = &'b Operation>) -> Vec<Change<'b>> {
        let all = operations.map(|operation| {
            let tag = matches!(operation.kind, Kind::PurgeTag(_)).then_some(&*operation.key);
            Change { operation, end: self.done_by(operation), tag }
        });
        let mut changes: Vec<_> = all.filter(|change| change.end < Duration::MAX).collect();
        changes.sort_by_key(|change| change.operation.start);
        changes
    }

    /// Returns since when a reader must know of a change, and which promise says so.
    fn known_by(&self, reader: &Operation, change: &Change<'_>) -> (Duration, Promise) {
        let Change { operation, end, .. } = change;
        if reader.is_strict() {
            return (*end, Promise::Atomic);
        }
        let machine = self.history.machines.get(reader.machine);
        if machine.is_some_and(|machine| machine.born >= *end) {
            return (*end, Promise::Kept);
        }
        // Others may have read it before this machine has heard of it.
        let is_own = reader.machine == operation.machine && operation.is_done();
        if is_own && operation.end < reader.start {
            return (operation.end, Promise::OwnWrites);
        }
        let is_faulty = |fault: &Fault| {
            fault.machine == reader.machine
                && fault.from < reader.start
                && fault.until > operation.start
        };
        let late = match self.history.faults.iter().any(is_faulty) {
            true => self.limits.faulty,
            false => self.limits.steady,
        };
        (*end + late, Promise::Fresh)
    }

    /// Returns the first change that began after `since`, and that a reader must know of.
    fn must_know<'b>(
        &self,
        reader: &Operation,
        since: Duration,
        changes: &'b [Change<'a>],
        is_meant: impl Fn(&Change<'_>) -> bool,
    ) -> Option<(&'b Change<'a>, Promise)> {
        let first = changes.partition_point(|change| change.operation.start <= since);
        let later = changes.get(first..).unwrap_or_default().iter();
        later
            .take_while(|change| change.operation.start < reader.start)
            .filter(|change| is_meant(change))
            .find_map(|change| {
                let (known_by, promise) = self.known_by(reader, change);
                (known_by < reader.start).then_some((change, promise))
            })
    }

    /// Judges a key that is only counted.
    fn check_count(&self, operations: &[&Operation], violations: &mut Vec<Violation>) {
        let counts = operations.iter().filter(|operation| operation.kind == Kind::Count);
        let mut starts: Vec<Duration> =
            counts.clone().filter(|count| count.may_be_done()).map(|count| count.start).collect();
        starts.sort_unstable();
        let mut done: Vec<Change<'_>> = self.certain(counts.copied());
        done.sort_by_key(|count| count.end);
        let mut given = HashMap::new();
        for reader in operations {
            let number = match &reader.outcome {
                Outcome::Number(number) => *number,
                Outcome::Value(text, _) => match text.parse() {
                    Ok(number) => number,
                    Err(_) => {
                        violations.push(broken(Promise::IsWritten, "no number", &[reader]));
                        continue;
                    }
                },
                Outcome::Absent => {
                    violations.push(broken(Promise::Kept, "nobody has removed it", &[reader]));
                    continue;
                }
                _ => continue,
            };
            let most = starts.partition_point(|start| *start < reader.end);
            if number > most as u64 {
                let text = format!("only {most} increments had begun");
                violations.push(broken(Promise::IsWritten, &text, &[reader]));
            }
            // Those before the longest lateness need no look.
            let surely = reader.start.saturating_sub(self.limits.faulty);
            let first = done.partition_point(|count| count.end < surely);
            let before = done.partition_point(|count| count.end < reader.start);
            let mut least = first as u64 + u64::from(reader.kind == Kind::Count);
            let mut promise = Promise::Kept;
            for count in done.get(first..before).unwrap_or_default() {
                let (known_by, why) = self.known_by(reader, count);
                if known_by < reader.start {
                    least += 1;
                    promise = why;
                }
            }
            if number < least {
                let text = format!("it must be {least} at least");
                violations.push(broken(promise, &text, &[reader]));
            }
            if reader.kind == Kind::Count
                && let Some(other) = given.insert(number, *reader)
            {
                let text = "two increments have the same number";
                violations.push(broken(Promise::Atomic, text, &[reader, other]));
            }
        }
    }
}

impl<'a> ItemHistory<'a> {
    fn new(
        context: &'a Context<'a>,
        key: &str,
        mut operations: Vec<&'a Operation>,
        purges: &[&'a Operation],
    ) -> Self {
        operations.sort_by_key(|operation| operation.start);
        let is_value =
            |operation: &Operation| matches!(operation.kind, Kind::Set { .. } | Kind::Cas { .. });
        let values: Vec<&Operation> = operations
            .iter()
            .copied()
            .filter(|operation| is_value(operation) && operation.may_be_done())
            .collect();
        let tags: HashSet<&str> = values.iter().flat_map(|value| tags_of(value)).copied().collect();
        let purges = purges.iter().copied().filter(|purge| match purge.kind {
            Kind::PurgeTag(How::Hard) => tags.contains(&*purge.key),
            Kind::PurgePrefix(How::Hard) => key.starts_with(&purge.key),
            _ => false,
        });
        let deletes = operations.iter().copied().filter(|operation| operation.kind == Kind::Delete);
        let removals: Vec<&Operation> = purges.chain(deletes).collect();
        let overwrites = values.iter().chain(&removals).copied();
        let appends = || operations.iter().copied().filter(|one| one.kind == Kind::Append);
        Self {
            overwrites: context.certain(overwrites),
            makers: context.certain(values.iter().copied().chain(appends())),
            appends: context.certain(appends()),
            removals: {
                let mut possible: Vec<Change<'_>> = removals
                    .into_iter()
                    .filter(|removal| removal.may_be_done())
                    .map(|operation| {
                        let tag =
                            matches!(operation.kind, Kind::PurgeTag(_)).then_some(&*operation.key);
                        Change { operation, end: context.done_by(operation), tag }
                    })
                    .collect();
                possible.sort_by_key(|change| change.operation.start);
                possible
            },
            values,
            operations,
            context,
        }
    }

    fn check(&self, violations: &mut Vec<Violation>) {
        let mut winners: HashMap<u64, &Operation> = HashMap::new();
        let mut named: HashMap<u64, (&str, &Operation)> = HashMap::new();
        for reader in &self.operations {
            match (&reader.kind, &reader.outcome) {
                (_, Outcome::Value(text, unique)) => {
                    violations.extend(self.judge_value(reader, text));
                    let (other, first) = *named.entry(*unique).or_insert((text, reader));
                    if other != text {
                        let text = "two values have the same CAS unique";
                        violations.push(broken(Promise::Unique, text, &[first, reader]));
                    }
                }
                (_, Outcome::Shown(text)) => violations.extend(self.judge_value(reader, text)),
                // It was the present value at that moment.
                (Kind::Cas { unique, expected }, Outcome::Done) => {
                    violations.extend(self.judge_value(reader, expected));
                    if let Some(other) = winners.insert(*unique, reader) {
                        let text = "two cas have won by the same CAS unique";
                        violations.push(broken(Promise::Atomic, text, &[other, reader]));
                    }
                }
                (_, Outcome::Absent) => violations.extend(self.judge_absence(reader)),
                _ => {}
            }
        }
    }

    /// Judges a value that a command has found.
    fn judge_value(&self, reader: &Operation, text: &str) -> Option<Violation> {
        let nobody = |text: &str| Some(broken(Promise::IsWritten, text, &[reader]));
        let Some(ids) = parts(text) else { return nobody("nobody writes such a value") };
        let mut writes = Vec::new();
        for (index, id) in ids.iter().enumerate() {
            let Some(write) = self.context.by_id.get(id) else {
                return nobody("nobody has written that");
            };
            let is_right_kind = match write.kind {
                Kind::Set { .. } | Kind::Cas { .. } => index == 0,
                Kind::Append => index > 0,
                _ => false,
            };
            if !is_right_kind || write.key != reader.key {
                return Some(broken(Promise::IsWritten, "written elsewhere", &[reader, write]));
            }
            if !write.may_be_done() {
                let text = "the client was told that nothing was written";
                return Some(broken(Promise::IsWritten, text, &[reader, write]));
            }
            if write.start > reader.end {
                return Some(broken(Promise::IsWritten, "read before", &[reader, write]));
            }
            if ids[..index].contains(id) {
                return Some(broken(Promise::IsWritten, "appended twice", &[reader, write]));
            }
            writes.push(*write);
        }
        let wrong_order =
            writes.windows(2).find(|pair| pair[1].is_done() && pair[1].end < pair[0].start);
        if let Some(pair) = wrong_order {
            return Some(broken(
                Promise::Atomic,
                "in the wrong order",
                &[reader, pair[0], pair[1]],
            ));
        }
        let base = writes[0];
        let there_at = self.context.done_by(base);
        let ends_it =
            |change: &Change<'_>| change.tag.is_none_or(|tag| tags_of(base).contains(&tag));
        // The operation itself has replaced the value that it has found.
        let over = self.context.must_know(reader, there_at, &self.overwrites, |change| {
            change.operation.id != reader.id && ends_it(change)
        });
        if let Some((change, promise)) = over {
            return Some(broken(promise, "the value is over", &[base, change.operation, reader]));
        }
        let missing = self.context.must_know(reader, there_at, &self.appends, |change| {
            !ids.contains(&change.operation.id)
        });
        missing.map(|(change, promise)| {
            broken(promise, "the value lacks an append", &[base, change.operation, reader])
        })
    }

    /// Judges that a command has found nothing.
    fn judge_absence(&self, reader: &Operation) -> Option<Violation> {
        if self.context.limits.server_loses {
            return None;
        }
        // The last write that the reader must know of. It has not been removed.
        let known = |since| self.context.must_know(reader, since, &self.makers, |_| true);
        let begun = self.removals.partition_point(|removal| removal.operation.start < reader.end);
        let is_explained = |removal: &Change<'_>| match removal.tag {
            None => known(removal.end).is_none(),
            Some(tag) => known(removal.end).is_none() && self.may_have_purged(reader, removal, tag),
        };
        if self.removals[..begun].iter().rev().any(is_explained) {
            return None;
        }
        // In the beginning there was nothing.
        let (change, promise) = known(Duration::ZERO)?;
        let last = self
            .makers
            .iter()
            .rev()
            .find(|maker| self.context.known_by(reader, maker).0 < reader.start);
        let last = last.unwrap_or(change);
        let promise = if promise == Promise::Fresh { Promise::Kept } else { promise };
        Some(broken(promise, "nobody has removed it", &[last.operation, reader]))
    }

    /// Returns whether a purge of a tag may have found an item with the tag, and nothing else was
    /// written since that the reader must know of.
    fn may_have_purged(&self, reader: &Operation, purge: &Change<'_>, tag: &str) -> bool {
        let begun = self.values.partition_point(|value| value.start < purge.end);
        let tagged = self.values[..begun].iter().rev().filter(|value| has_tag(value, tag));
        tagged.into_iter().any(|value| {
            let there_at = self.context.done_by(value);
            let survives = |change: &Change<'_>| {
                change.operation.kind != Kind::Append && !has_tag(change.operation, tag)
            };
            self.context.must_know(reader, there_at, &self.makers, survives).is_none()
        })
    }
}

fn tags_of(write: &Operation) -> &[&'static str] {
    match &write.kind {
        Kind::Set { tags } => tags,
        _ => &[],
    }
}

fn has_tag(write: &Operation, tag: &str) -> bool {
    tags_of(write).contains(&tag)
}

/// Returns the numbers of the writes that have made a value.
fn parts(text: &str) -> Option<Vec<u64>> {
    text.split('+').map(|part| part.parse().ok()).collect()
}

fn broken(promise: Promise, text: &str, operations: &[&Operation]) -> Violation {
    let lines = operations.iter().map(|operation| format!("\n    {operation}"));
    Violation { promise, text: format!("{text}:{}", lines.collect::<String>()) }
}

/// Returns the loss of all data of the server, as an operation.
pub fn loss(id: u64, start: Duration, end: Duration) -> Operation {
    let (key, kind) = (String::new(), Kind::PurgePrefix(How::Hard));
    Operation { id, machine: NO_MACHINE, key, kind, start, end, outcome: Outcome::Done }
}

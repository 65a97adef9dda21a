//! The access log of an event loop: a line for each response that its conditions choose.
//!
//! Each loop gathers its lines and queues them together, once a second or when there are many. A
//! write has complete lines only, so that the lines of two loops do not mix: the kernel does not
//! split a write to a file opened for appending. On a terminal, each line is queued at once.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::SystemTime;

use super::conditions::{Choice, LogConditions, RequestSampler};
use super::daemon_line::write_values;
use super::log_format::{LogFormat, TakenValues, ValueSource};
use super::log_sink::LogSink;
use super::log_time::{RequestTimes, TimeTexts};
use crate::ended_request::EndedRequest;

/// Gathered bytes after which they are written before the second is over.
const FLUSH_BYTES: usize = 32 * 1024;

/// A log as the program has opened it. All event loops share it.
#[derive(Clone)]
pub struct OpenLog {
    /// The target of its lines.
    pub sink: Arc<LogSink>,
    /// Their format.
    pub format: Arc<LogFormat>,
    /// The conditions under which a request gets a line.
    pub conditions: LogConditions,
}

/// The access log of one event loop.
pub struct AccessLog {
    log: OpenLog,
    sampler: RequestSampler,
    lines: RefCell<Vec<u8>>,
    times: RefCell<TimeTexts>,
    has_precise_time: bool,
}

/// The values of a request that waits, for its line.
pub struct LineRecord {
    pub(super) values: TakenValues,
    /// Whether the line is written for every outcome.
    is_chosen: bool,
}

impl AccessLog {
    /// Returns a log that nothing is written to yet.
    pub fn new(log: OpenLog) -> Self {
        let has_precise_time = log.format.has_precise_time();
        Self {
            log,
            sampler: RequestSampler::default(),
            lines: RefCell::default(),
            times: RefCell::default(),
            has_precise_time,
        }
    }

    /// Returns the format.
    pub(super) fn format(&self) -> &LogFormat {
        &self.log.format
    }

    /// Decides about the line of a request.
    pub(super) fn choose(&self, path: Option<&str>) -> Choice {
        self.log.conditions.choose(path, &self.sampler)
    }

    /// Returns the record of a request about whose line `choice` was made.
    pub(super) fn record(&self, choice: Choice, values: TakenValues) -> LineRecord {
        LineRecord { values, is_chosen: choice == Choice::Chosen }
    }

    /// Adds the line of a request that was answered at once. `now` is the time of the loop.
    pub(super) fn end_at_once(
        &self,
        choice: Choice,
        source: ValueSource<'_>,
        request: &EndedRequest<'_>,
        now: SystemTime,
    ) {
        let times = match self.has_precise_time {
            true => RequestTimes::ended_now(request.took),
            false => RequestTimes::in_second(now),
        };
        self.add(choice == Choice::Chosen, source, request, times);
    }

    /// Adds the line of a request that has waited.
    pub(super) fn end(&self, record: &LineRecord, request: &EndedRequest<'_>) {
        let times = RequestTimes::ended_now(request.took);
        self.add(record.is_chosen, ValueSource::Taken(&record.values), request, times);
    }

    fn add(
        &self,
        is_chosen: bool,
        source: ValueSource<'_>,
        request: &EndedRequest<'_>,
        times: RequestTimes,
    ) {
        let conditions = &self.log.conditions;
        if !is_chosen && !conditions.wants_outcome(request.status, request.is_cut, request.took) {
            return;
        }
        let mut lines = self.lines.borrow_mut();
        let mut texts = self.times.borrow_mut();
        self.log.format.write_line(source, request, times, &mut texts, &mut lines);
        if self.log.sink.takes_values() {
            write_values(request, &mut lines);
        }
        lines.push(b'\n');
        if lines.len() >= FLUSH_BYTES || self.log.sink.is_terminal() {
            drop(lines);
            self.flush();
        }
    }

    /// Queues the gathered lines for writing.
    pub fn flush(&self) {
        let mut lines = self.lines.borrow_mut();
        if !lines.is_empty() {
            self.log.sink.push(&lines);
            lines.clear();
            lines.shrink_to(2 * FLUSH_BYTES);
        }
    }
}

/// Another configuration may have taken the place of this log while a request was in progress,
/// whose line came last.
impl Drop for AccessLog {
    fn drop(&mut self) {
        self.flush();
    }
}

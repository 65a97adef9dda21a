//! The statistics of one method and pattern.

use crate::histogram::DurationHistogram;
use crate::line::LogRecord;

/// The statistics of some requests.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// The number of requests.
    pub count: u64,
    /// The requests by the first digit of their status, from 1 to 5.
    pub classes: [u64; 6],
    /// The requests of which the log has the bytes.
    pub sized: u64,
    /// The sum of the bytes.
    pub bytes: u64,
    /// The requests of which the log has the duration.
    pub timed: u64,
    /// The sum of the durations in microseconds.
    pub sum: u64,
    /// The shortest duration in microseconds.
    pub min: u64,
    /// The longest duration in microseconds.
    pub max: u64,
    /// All durations.
    pub durations: DurationHistogram,
    /// The requests of which the log has the place or the cache status.
    pub placed: u64,
    /// The requests that were answered from memory.
    pub hits: u64,
    /// The responses that the client did not get completely.
    pub cut: u64,
    /// The requests by the number of the place in the summary.
    pub places: Vec<(u8, u64)>,
}

impl Tally {
    /// Adds a request. `place` is the number of its place.
    pub(crate) fn add(&mut self, record: &LogRecord<'_>, place: Option<u8>) {
        self.count += 1;
        let class = usize::from(record.status / 100);
        if let Some(count) = self.classes.get_mut(class) {
            *count += 1;
        }
        if let Some(bytes) = record.bytes {
            self.sized += 1;
            self.bytes = self.bytes.saturating_add(bytes);
        }
        if let Some(micros) = record.micros {
            self.add_duration(micros);
        }
        self.cut += u64::from(record.is_cut);
        if let Some(place) = place {
            self.add_place(place, 1);
        }
        if place.is_some() || record.cache.is_some() {
            self.placed += 1;
            self.hits += u64::from(is_hit(record.place.as_deref(), record.cache.as_deref()));
        }
    }

    fn add_duration(&mut self, micros: u64) {
        self.min = if self.timed == 0 { micros } else { self.min.min(micros) };
        self.max = self.max.max(micros);
        self.timed += 1;
        self.sum = self.sum.saturating_add(micros);
        self.durations.add(micros);
    }

    fn add_place(&mut self, place: u8, count: u64) {
        match self.places.iter_mut().find(|(known, _)| *known == place) {
            Some((_, known)) => *known += count,
            None => self.places.push((place, count)),
        }
    }

    /// Adds the requests of another tally of the same summary.
    pub(crate) fn merge(&mut self, other: &Self) {
        if other.timed > 0 {
            self.min = if self.timed == 0 { other.min } else { self.min.min(other.min) };
        }
        self.max = self.max.max(other.max);
        self.count += other.count;
        for (class, added) in self.classes.iter_mut().zip(other.classes) {
            *class += added;
        }
        self.sized += other.sized;
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.timed += other.timed;
        self.sum = self.sum.saturating_add(other.sum);
        self.durations.merge(&other.durations);
        self.placed += other.placed;
        self.hits += other.hits;
        self.cut += other.cut;
        for (place, count) in &other.places {
            self.add_place(*place, *count);
        }
    }

    /// Returns the average duration in microseconds.
    pub fn average(&self) -> Option<u64> {
        average(self.sum, self.timed)
    }

    /// Returns the average bytes.
    pub fn average_bytes(&self) -> Option<u64> {
        average(self.bytes, self.sized)
    }

    /// Returns a percentile of the durations in microseconds. It is exact if it is the shortest or
    /// the longest duration, and never outside of these.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let rank = (u128::from(self.timed) * u128::from(percent)).div_ceil(100);
        if self.timed > 0 && rank == u128::from(self.timed) {
            return Some(self.max);
        }
        self.durations.percentile(percent).map(|micros| micros.clamp(self.min, self.max))
    }

    /// Returns the share of requests that were answered from memory, from 0 to 1.
    #[allow(clippy::cast_precision_loss)]
    pub fn hit_ratio(&self) -> Option<f64> {
        (self.placed > 0).then(|| self.hits as f64 / self.placed as f64)
    }
}

fn average(sum: u64, count: u64) -> Option<u64> {
    (count > 0).then(|| (sum + count / 2) / count)
}

/// Returns whether a request was answered from memory: by the store, or by a cache that did not
/// wait for the origin server. A cache that did has revalidated its response, or stores a new one.
fn is_hit(place: Option<&[u8]>, cache: Option<&[u8]>) -> bool {
    match (place, cache) {
        (Some(b"store"), _) | (Some(b"cache"), None) => true,
        (_, None) => false,
        (_, Some(status)) => [&b"HIT"[..], b"STALE", b"UPDATING"]
            .iter()
            .any(|answered| status.eq_ignore_ascii_case(answered)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_reached_the_origin_server_is_not_a_hit() {
        for (place, cache, expected) in [
            (Some("store"), None, true),
            (Some("cache"), None, true),
            (Some("cache"), Some("HIT"), true),
            (Some("cache"), Some("STALE"), true),
            (Some("cache"), Some("MISS"), false),
            (Some("cache"), Some("REVALIDATED"), false),
            (Some("app:web"), Some("MISS"), false),
            (Some("app:web"), None, false),
            (None, Some("hit"), true),
        ] {
            let answered = is_hit(place.map(str::as_bytes), cache.map(str::as_bytes));
            assert_eq!(answered, expected, "{place:?} {cache:?}");
        }
    }
}

//! What a limit of a route does with a request that is too many: a status and perhaps a page, or a
//! dry run, which counts and logs.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use http::StatusCode;
use kirin_http::Response;
use parking_lot::Mutex;

use super::access::Refusal;

/// The shortest time between two lines about the same dry run.
const LOG_INTERVAL: Duration = Duration::from_secs(10);

/// The refusal of a limit, and how often it has happened.
#[derive(Debug)]
pub struct LimitRefusal {
    settings: RefusalSettings,
    /// The requests that were refused.
    refused: AtomicU64,
    /// The requests that were too many in a dry run.
    passed: AtomicU64,
    /// The last line about a dry run.
    logged: Mutex<Option<Instant>>,
}

/// The settings of a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusalSettings {
    /// The status of the response.
    pub status: StatusCode,
    /// The path of the page. `None`: the one that the route has for the status.
    pub page: Option<String>,
    /// Whether requests pass all the same.
    pub is_dry_run: bool,
}

impl LimitRefusal {
    /// Creates a refusal that has not happened yet.
    pub fn new(settings: RefusalSettings) -> Self {
        Self {
            settings,
            refused: AtomicU64::new(0),
            passed: AtomicU64::new(0),
            logged: Mutex::new(None),
        }
    }

    /// Returns the settings.
    pub fn settings(&self) -> &RefusalSettings {
        &self.settings
    }

    /// Returns how many requests were refused, since the start.
    pub fn refused(&self) -> u64 {
        self.refused.load(Relaxed)
    }

    /// Returns how many requests a dry run would have refused, since the start.
    pub fn passed(&self) -> u64 {
        self.passed.load(Relaxed)
    }

    /// Counts a request that is too many at `now`. Returns its refusal, or `None` in a dry run,
    /// which logs `limit` from time to time. `retry_after` is in seconds.
    pub fn refuse(
        &self,
        limit: &dyn std::fmt::Display,
        retry_after: u64,
        now: Instant,
    ) -> Option<Refusal<'_>> {
        if self.settings.is_dry_run {
            self.passed.fetch_add(1, Relaxed);
            let mut logged = self.logged.lock();
            if logged.is_none_or(|last| now.saturating_duration_since(last) >= LOG_INTERVAL) {
                *logged = Some(now);
                let so_far = self.passed();
                tracing::warn!("dry run: a request is more than {limit}; {so_far} so far");
            }
            return None;
        }
        self.refused.fetch_add(1, Relaxed);
        let mut response = Response::error(self.settings.status);
        if matches!(
            self.settings.status,
            StatusCode::TOO_MANY_REQUESTS | StatusCode::SERVICE_UNAVAILABLE
        ) {
            response.fields.push("Retry-After", retry_after.to_string());
        }
        Some(Refusal { response, page: self.settings.page.as_deref() })
    }
}

//! An attempt at a server, whose time is a step of the request, and its warnings.

use std::ops::Deref;

use kirin_balance::Attempt;
use kirin_http::OpenStep;

use crate::upstream_request::RequestWarnings;

/// A request's slot at a server. The step of the request ends when the slot is free again.
pub(crate) struct TimedAttempt {
    attempt: Attempt,
    _step: OpenStep,
    /// Logs what is wrong with the response.
    pub(crate) warnings: RequestWarnings,
}

impl TimedAttempt {
    pub(crate) fn new(attempt: Attempt, step: OpenStep, warnings: RequestWarnings) -> Self {
        Self { attempt, _step: step, warnings }
    }
}

impl Deref for TimedAttempt {
    type Target = Attempt;

    fn deref(&self) -> &Attempt {
        &self.attempt
    }
}

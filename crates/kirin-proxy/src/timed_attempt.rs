//! An attempt at a server, whose time is a step of the request.

use std::ops::Deref;

use kirin_balance::Attempt;
use kirin_http::OpenStep;

/// A request's slot at a server. The step of the request ends when the slot is free again.
pub(crate) struct TimedAttempt {
    attempt: Attempt,
    _step: OpenStep,
}

impl TimedAttempt {
    pub(crate) fn new(attempt: Attempt, step: OpenStep) -> Self {
        Self { attempt, _step: step }
    }
}

impl Deref for TimedAttempt {
    type Target = Attempt;

    fn deref(&self) -> &Attempt {
        &self.attempt
    }
}

//! Why a connection ends.

use crate::reason::Reason;

/// An error of the connection (RFC 9113 section 5.4.1). GOAWAY with its reason is in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}")]
pub struct Failure {
    /// The code that the client gets.
    pub reason: Reason,
    /// What the client did.
    pub what: &'static str,
    /// The budget that it has used up, if that is the reason.
    pub excess: Option<Excess>,
}

/// What a client did too much of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Excess {
    /// It reset streams, or made the server reset them.
    EarlyEnds,
    /// It sent frames that ask for nothing.
    Frames,
}

impl Failure {
    pub(crate) const fn new(reason: Reason, what: &'static str) -> Self {
        Self { reason, what, excess: None }
    }

    pub(crate) const fn protocol(what: &'static str) -> Self {
        Self::new(Reason::ProtocolError, what)
    }

    pub(crate) const fn frame_size(what: &'static str) -> Self {
        Self::new(Reason::FrameSizeError, what)
    }

    pub(crate) const EARLY_ENDS: Self = Self {
        reason: Reason::EnhanceYourCalm,
        what: "too many streams were reset or broke the rules",
        excess: Some(Excess::EarlyEnds),
    };

    pub(crate) const FRAMES: Self = Self {
        reason: Reason::EnhanceYourCalm,
        what: "too many frames that ask for nothing",
        excess: Some(Excess::Frames),
    };
}

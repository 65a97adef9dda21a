//! The machines with the same origin behind their stores: they know each other, and an operator
//! sees all of them at any of them.
//!
//! A machine announces itself at the origin while it serves ([`announcing`]). An operator's
//! question goes to all of them as a record at the origin, and each answers with a record of its
//! own ([`question`]). So no machine opens a port for the others, and it costs nothing if nobody
//! asks. The machine that was asked adds up the answers ([`sum`]).
//!
//! | file | what it has |
//! |---|---|
//! | [`card`] | what a machine says about itself when it announces itself |
//! | [`announcing`] | announces this machine as long as it serves |
//! | [`question`] | what operators ask all machines, and the names of the records |
//! | [`answering`] | answers the questions, at most two of a kind in a second |
//! | [`asking`] | asks all machines |
//! | [`report`] | an answer, which has a limit in bytes |
//! | [`sum`], [`status_sum`] | the sum of the answers |
//! | [`status`] | the answers for `kirin status --all` |

pub mod announcing;
pub mod answering;
pub mod asking;
pub mod card;
pub mod question;
pub mod report;
pub mod status;
mod status_sum;
pub mod sum;

use std::sync::Arc;

use kirin_origin::StoreOrigin;
use serde_json::Value;
use tokio::sync::watch;

use asking::LastAnswers;
use card::MachineCard;

/// The most machines that are shown and asked.
pub const MOST_MACHINES: usize = 1000;

/// This machine, and the way to the others.
pub struct Machines {
    origin: Arc<StoreOrigin>,
    card: MachineCard,
    last: LastAnswers,
    /// Whether this machine is announced no more.
    has_left: watch::Sender<bool>,
}

impl Machines {
    /// Returns this machine. `serving` is the part of the status that says what it serves.
    pub fn new(origin: Arc<StoreOrigin>, serving: &Value) -> Self {
        let card = MachineCard::of_this_machine(serving);
        Self { origin, card, last: LastAnswers::default(), has_left: watch::Sender::new(false) }
    }
}

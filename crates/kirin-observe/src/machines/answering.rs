//! Answers the questions that operators of other machines ask this one.

use std::sync::Arc;
use std::time::Duration;

use kirin_origin::OriginError;
use tokio::task::spawn_blocking;
use tokio::time::{Instant, sleep, sleep_until};

use super::Machines;
use super::question::{ANSWER_INTERVAL, LASTING, MachineQuestion};
use super::report;
use crate::live::snapshot::Snapshot;

/// The pause after a failure.
const PAUSE: Duration = Duration::from_secs(1);

/// A function that takes the snapshot for a question. It reads files, so it runs on a thread of its
/// own.
pub trait Snapshots: Fn(MachineQuestion) -> Snapshot + Send + Sync + 'static {}

impl<F: Fn(MachineQuestion) -> Snapshot + Send + Sync + 'static> Snapshots for F {}

impl Machines {
    /// Answers the questions of one kind. Never returns. However many questions there are, a
    /// machine makes two answers in a second.
    pub async fn answer(&self, question: MachineQuestion, snapshots: Arc<impl Snapshots>) {
        let mut changes = self.origin.watch_record(&question.record());
        // The first reading makes the origin report the next question.
        changes.mark_changed();
        let (mut answered, mut next) = (None, Instant::now());
        // The sender is a part of the origin.
        while changes.changed().await.is_ok() {
            sleep_until(next).await;
            match self.read_question(question).await {
                Ok(asked) if asked.is_some() && asked != answered => {
                    next = Instant::now() + ANSWER_INTERVAL;
                    answered = asked;
                    let answer = self.answer_once(question, asked, Arc::clone(&snapshots)).await;
                    if let Err(error) = answer {
                        tracing::debug!(%error, "an operator of another machine got no answer");
                    }
                }
                Ok(_) => {}
                // A new connection would be a change. Otherwise the origin reports nothing before
                // the record is read again.
                Err(_) => {
                    changes.mark_changed();
                    sleep(PAUSE).await;
                }
            }
        }
    }

    async fn answer_once(
        &self,
        question: MachineQuestion,
        asked: Option<u64>,
        snapshots: Arc<impl Snapshots>,
    ) -> Result<(), OriginError> {
        let limit_bytes = report::limit_bytes(self.origin.count_machines().await?);
        let write = move || report::write(asked, snapshots(question), limit_bytes);
        // It fails only by a panic, which is in the log.
        let Ok(report) = spawn_blocking(write).await else { return Ok(()) };
        let name = question.answer_record(&self.card.id);
        self.origin.write_record(&name, &report, Some(LASTING)).await
    }
}

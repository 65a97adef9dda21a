//! Asks all machines.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use kirin_origin::OriginError;
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};

use super::announcing::sorted;
use super::card::MachineCard;
use super::question::{LASTING, MachineQuestion};
use super::report::{self, MachineReport};
use super::{MOST_MACHINES, Machines, status, sum};

/// How long a machine may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(2);

/// The pauses between two looks for answers, from the first to the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
const LONGEST_PAUSE: Duration = Duration::from_millis(200);

/// The answers that are read in one trip.
const READ_AT_ONCE: usize = 64;

/// The machines and their reports.
pub type Answers = Vec<(MachineCard, Option<MachineReport>)>;

/// The last answers, for operators that ask at the same time.
#[derive(Default)]
pub struct LastAnswers {
    status: Mutex<Option<LastAnswer>>,
    top: Mutex<Option<LastAnswer>>,
}

struct LastAnswer {
    asked: Instant,
    text: Arc<str>,
}

impl Machines {
    /// Asks all machines, and returns their answers as JSON for `kirin status --all` or
    /// `kirin top --all`. A machine that does not answer within two seconds is a part of it.
    pub async fn ask(&self, question: MachineQuestion) -> Result<Arc<str>, OriginError> {
        let arrived = Instant::now();
        let mut last = match question {
            MachineQuestion::Status => self.last.status.lock().await,
            MachineQuestion::Top => self.last.top.lock().await,
        };
        // Another operator has asked while this one has waited for the turn.
        if let Some(last) = last.as_ref().filter(|last| last.asked >= arrived) {
            return Ok(Arc::clone(&last.text));
        }
        let asked = Instant::now();
        let answers = self.collect(question).await?;
        let write = move || {
            let answers = answers.into_iter().map(|(card, answer)| {
                let report = answer.as_deref().and_then(report::read);
                (card, report)
            });
            match question {
                MachineQuestion::Status => status::text(answers.collect()),
                MachineQuestion::Top => sum::text(answers.collect()),
            }
        };
        let written = tokio::task::spawn_blocking(write).await;
        let text: Arc<str> = written.unwrap_or_default().into();
        *last = Some(LastAnswer { asked, text: Arc::clone(&text) });
        Ok(text)
    }

    /// Asks all machines, and waits for their answers.
    async fn collect(
        &self,
        question: MachineQuestion,
    ) -> Result<Vec<(MachineCard, Option<Bytes>)>, OriginError> {
        let begun = Instant::now();
        let asking = async {
            let cards = sorted(self.origin.machines(MOST_MACHINES).await?);
            let number = self.origin.next_version(0);
            self.write_question(question, number).await?;
            Ok((cards, number))
        };
        let asked = timeout(ANSWER_WAIT, asking).await;
        let (cards, number) = asked.unwrap_or(Err(OriginError::TimedOut(ANSWER_WAIT)))?;
        let names: Vec<_> = cards.iter().map(|card| question.answer_record(&card.id)).collect();
        let mut answers = vec![None; cards.len()];
        let mut pause = FIRST_PAUSE;
        while answers.contains(&None) && begun.elapsed() < ANSWER_WAIT {
            sleep(pause).await;
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
            let missing: Vec<_> = (0..answers.len()).filter(|at| answers[*at].is_none()).collect();
            for missing in missing.chunks(READ_AT_ONCE) {
                let names: Vec<&[u8]> = missing.iter().map(|at| names[*at].as_slice()).collect();
                let read = self.origin.read_records(&names).await?;
                for (at, answer) in missing.iter().zip(read) {
                    answers[*at] = answer.filter(|answer| report::number(answer) >= Some(number));
                }
            }
            // Another operator may have asked at the same moment, with a number that is smaller by
            // the time of a trip. Answers to that question are none to this one.
            if answers.contains(&None) && self.read_question(question).await? < Some(number) {
                self.write_question(question, number).await?;
            }
        }
        Ok(cards.into_iter().zip(answers).collect())
    }

    async fn write_question(
        &self,
        question: MachineQuestion,
        number: u64,
    ) -> Result<(), OriginError> {
        let text = number.to_string();
        self.origin.write_record(&question.record(), text.as_bytes(), Some(LASTING)).await
    }

    /// Returns the number of the present question, if there is one.
    pub(super) async fn read_question(
        &self,
        question: MachineQuestion,
    ) -> Result<Option<u64>, OriginError> {
        let text = self.origin.read_record(&question.record()).await?;
        Ok(text.and_then(|text| std::str::from_utf8(&text).ok()?.parse().ok()))
    }
}

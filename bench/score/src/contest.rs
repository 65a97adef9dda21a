//! The state that all visitors of one run share: the site, the time, the posted memos, and the
//! tally.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use kirin_floor::random::Random;
use tokio::task::{JoinSet, LocalSet};
use tokio::time::{Instant, sleep, timeout_at};

use crate::answer::Answer;
use crate::browser::{Browser, Request, Version};
use crate::facts::{Facts, SeededMemo};
use crate::judge::{self, Content, Fault};
use crate::kind::Kind;
use crate::page;
use crate::tally::{Tally, Verdict};
use crate::{member, poller, reader};

/// The number of visitors, and the times of the run.
pub struct Plan {
    /// The address of the site.
    pub address: SocketAddr,
    /// The length of the run.
    pub length: Duration,
    /// The number of visitors without an account.
    pub readers: usize,
    /// The number of visitors who sign in.
    pub members: usize,
    /// The seed that fixes the requests of each visitor.
    pub seed: u64,
    /// The time in which a new public memo must appear on `/`. It begins when the author gets the
    /// answer.
    pub appears_within: Duration,
    /// The time in which a request must be answered. After it the request has failed.
    pub answer_limit: Duration,
}

/// The time after which a visitor with a wrong answer comes again. Without it, a site that is down
/// would get 100,000 requests a second.
const LEAVES_FOR: Duration = Duration::from_millis(50);

/// The state of one run.
pub struct Contest {
    /// The plan of the run.
    pub plan: Plan,
    /// The facts about the site.
    pub facts: Facts,
    /// The time when the run ends.
    pub end: Instant,
    tally: RefCell<Tally>,
    /// The pages that were judged right, by path. The same bytes need not be judged again.
    approved: RefCell<HashMap<String, Vec<u8>>>,
    pending: RefCell<Vec<Pending>>,
    sealed: RefCell<Vec<Sealed>>,
    sessions: Cell<usize>,
}

/// A public memo that has not been seen on `/` yet.
struct Pending {
    id: u64,
    posted: Instant,
}

/// A private memo.
#[derive(Clone, Copy)]
pub struct Sealed {
    /// The number of the memo, as in `/memo/N`.
    pub id: u64,
    /// The number of the author's account.
    pub owner: usize,
}

/// The reason why a visit ends early.
#[derive(Debug)]
pub enum Left {
    /// The time is over.
    Over,
    /// An answer was wrong.
    Annoyed,
}

/// Runs a contest to its end on this thread.
pub fn run(plan: Plan, facts: Facts) -> io::Result<Verdict> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    LocalSet::new().block_on(&runtime, async {
        let begin = Instant::now();
        let contest = Rc::new(Contest {
            end: begin + plan.length,
            plan,
            facts,
            tally: RefCell::default(),
            approved: RefCell::default(),
            pending: RefCell::default(),
            sealed: RefCell::default(),
            sessions: Cell::default(),
        });
        let mut visitors = JoinSet::new();
        let mut seeds = Random::new(contest.plan.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        for number in 0..contest.plan.readers + contest.plan.members {
            let random = Random::new(seeds.below(usize::MAX) as u64);
            if number < contest.plan.readers {
                visitors.spawn_local(reader::come(Rc::clone(&contest), random));
            } else {
                visitors.spawn_local(member::come(Rc::clone(&contest), random));
            }
        }
        visitors.spawn_local(poller::come(Rc::clone(&contest)));
        while let Some(ended) = visitors.join_next().await {
            ended.map_err(io::Error::other)?;
        }
        Ok(contest.tally.take().verdict(contest.plan.length))
    })
}

impl Contest {
    /// Sends one request, and judges and counts its answer.
    pub async fn ask<T>(
        &self,
        browser: &mut Browser,
        kind: Kind,
        request: Request<'_>,
        judge: impl FnOnce(&Answer<'_>) -> Result<T, Fault>,
    ) -> Result<T, Left> {
        self.ask_until(self.end, browser, kind, request, judge).await
    }

    /// Does the same as [`Self::ask`] with an end of its own. A right answer after the end of the
    /// contest earns no points.
    pub async fn ask_until<T>(
        &self,
        end: Instant,
        browser: &mut Browser,
        kind: Kind,
        request: Request<'_>,
        judge: impl FnOnce(&Answer<'_>) -> Result<T, Fault>,
    ) -> Result<T, Left> {
        let asked = Instant::now();
        if asked >= end {
            return Err(Left::Over);
        }
        let answer_limit = end.min(asked + self.plan.answer_limit);
        let judged = match timeout_at(answer_limit, browser.ask(request)).await {
            Ok(Ok(answer)) => judge(&answer),
            Ok(Err(error)) => Err(Fault::Slip(format!("no answer: {error}"))),
            Err(_) if answer_limit == end => return Err(Left::Over),
            Err(_) => {
                Err(Fault::Slip(format!("no answer for {} s", self.plan.answer_limit.as_secs())))
            }
        };
        let mut tally = self.tally.borrow_mut();
        let now = Instant::now();
        match judged {
            Ok(found) => {
                if now < self.end {
                    tally.right(kind, now - asked);
                }
                Ok(found)
            }
            Err(fault) => {
                tally.wrong(kind, fault);
                Err(Left::Annoyed)
            }
        }
    }

    /// Waits a moment after a fault. Returns false if the contest is over.
    pub async fn goes_on(&self, left: Result<(), Left>) -> bool {
        if matches!(left, Err(Left::Annoyed)) {
            sleep(LEAVES_FOR).await;
        }
        !matches!(left, Err(Left::Over)) && Instant::now() < self.end
    }

    /// Requests a public page for a visitor without a cookie.
    pub async fn see(
        &self,
        browser: &mut Browser,
        kind: Kind,
        path: &str,
        content: Content<'_>,
    ) -> Result<(), Left> {
        self.ask(browser, kind, Request::Get(path), |answer| {
            self.judge_public(answer, path, content)
        })
        .await
    }

    /// Judges a public page, unless it is the same as the last right one.
    pub fn judge_public(
        &self,
        answer: &Answer<'_>,
        path: &str,
        content: Content<'_>,
    ) -> Result<(), Fault> {
        let known = self.approved.borrow().get(path).is_some_and(|body| body == answer.body);
        if known && answer.status == 200 && answer.field("Content-Type").starts_with("text/html") {
            return Ok(());
        }
        judge::for_stranger(answer, content)?;
        self.approved.borrow_mut().insert(path.to_owned(), answer.body.to_vec());
        Ok(())
    }

    /// Requests the files that every page needs, as a browser does. The files that it has already
    /// are requested only if they have changed.
    pub async fn fetch_files(
        &self,
        browser: &mut Browser,
        versions: &mut Vec<Version>,
    ) -> Result<(), Left> {
        for (number, file) in self.facts.files.iter().enumerate() {
            if let Some(version) = versions.get(number) {
                let request = Request::GetUnlessSame(file.path, version);
                self.ask(browser, Kind::Unchanged, request, judge::unchanged).await?;
                continue;
            }
            let version = self
                .ask(browser, Kind::File, Request::Get(file.path), |answer| {
                    judge::file(answer, file)?;
                    Version::of(answer)
                        .ok_or_else(|| Fault::Slip(format!("{} has no version", file.path)))
                })
                .await?;
            versions.push(version);
        }
        Ok(())
    }

    /// Returns a random public memo. Newer memos are chosen more often, because visitors of real
    /// sites prefer new pages.
    pub fn some_memo(&self, random: &mut Random) -> &SeededMemo {
        let memos = &self.facts.memos;
        &memos[memos.len() - 1 - newest_first(random, memos.len())]
    }

    /// Returns the path of a random list. Newer lists are chosen more often.
    pub fn some_list(&self, random: &mut Random) -> String {
        format!("/recent/{}", newest_first(random, self.facts.full_lists()))
    }

    /// Returns a random private memo, unless the account `not_of` has written it.
    pub fn some_sealed(&self, random: &mut Random, not_of: Option<usize>) -> Option<Sealed> {
        let sealed = self.sealed.borrow();
        let chosen = *sealed.get(random.below(sealed.len().max(1)))?;
        (Some(chosen.owner) != not_of).then_some(chosen)
    }

    /// Returns the number of the account for the next session. As long as there are enough
    /// accounts, each is used only once.
    pub fn next_account(&self) -> usize {
        let number = self.sessions.get();
        self.sessions.set(number + 1);
        number % self.facts.names.len()
    }

    /// Notes that a private memo has been written.
    pub fn posted_private(&self, sealed: Sealed) {
        self.sealed.borrow_mut().push(sealed);
    }

    /// Notes that a public memo has been written. From now on the poller looks for it.
    pub fn posted_public(&self, id: u64) {
        self.pending.borrow_mut().push(Pending { id, posted: Instant::now() });
    }

    /// Returns whether a public memo has not been seen on `/` yet.
    pub fn awaits_memos(&self) -> bool {
        !self.pending.borrow().is_empty()
    }

    /// Looks for the posted memos on a front page that was requested at the time `asked`.
    pub fn find_posted(&self, front: &[u8], asked: Instant) -> Result<(), Fault> {
        let mut late = false;
        self.pending.borrow_mut().retain(|memo| {
            if page::links_to_memo(front, memo.id) {
                self.tally.borrow_mut().appeared(memo.posted.elapsed());
                return false;
            }
            let is_late = asked.saturating_duration_since(memo.posted) >= self.plan.appears_within;
            late |= is_late;
            !is_late
        });
        if late {
            let limit = self.plan.appears_within.as_secs_f64();
            return Err(Fault::Breach(format!(
                "a public memo is not on the front page after {limit} s"
            )));
        }
        Ok(())
    }

    /// Counts a fault for each memo that was never seen. The poller has ended, and a front page
    /// that did not answer has not shown them.
    pub fn give_up_posted(&self) {
        for _ in self.pending.take() {
            let fault = Fault::Breach(
                "a public memo is posted, and the front page does not answer".to_owned(),
            );
            self.tally.borrow_mut().wrong(Kind::Front, fault);
        }
    }
}

/// Returns a random number from 0 to `count` - 1. Half of the results are in the first eighth.
fn newest_first(random: &mut Random, count: usize) -> usize {
    let place = random.below_one().powi(3) * count as f64;
    (place as usize).min(count.saturating_sub(1))
}

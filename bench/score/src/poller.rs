//! The poller, which waits for new memos. It requests `/` repeatedly and looks for memos that have
//! been posted.

use std::rc::Rc;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::browser::{Browser, Request};
use crate::contest::{Contest, Left};
use crate::judge::Content;
use crate::kind::Kind;

/// The time between an answer and the next request. A front page has 100 memos, and fewer are
/// posted in this time.
const PAUSE: Duration = Duration::from_millis(50);

/// Requests the front page until the contest is over and the last memo has appeared or is too late.
pub async fn come(contest: Rc<Contest>) {
    let mut browser = Browser::new(contest.plan.address);
    let end = contest.end + contest.plan.appears_within + contest.plan.answer_limit;
    while Instant::now() < contest.end || contest.awaits_memos() {
        let asked = Instant::now();
        let looked = contest
            .ask_until(end, &mut browser, Kind::Front, Request::Get("/"), |answer| {
                contest.judge_public(answer, "/", Content::List)?;
                contest.find_posted(answer.body, asked)
            })
            .await;
        if matches!(looked, Err(Left::Over)) {
            break;
        }
        sleep(PAUSE).await;
    }
    contest.give_up_posted();
}

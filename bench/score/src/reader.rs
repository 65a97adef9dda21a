//! Visitors without an account. They read, and sometimes request a page that they must not see.

use std::rc::Rc;

use kirin_floor::random::Random;

use crate::browser::Browser;
use crate::browser::Request;
use crate::contest::{Contest, Left};
use crate::judge::{self, Content};
use crate::kind::Kind;

/// The number of pages in a visit after the first.
const PAGES: usize = 12;
/// One visit in this number ends with a private memo.
const VISITS_PER_TRY: usize = 10;

/// Visits the site again and again until the contest is over, each time as a new visitor.
pub async fn come(contest: Rc<Contest>, mut random: Random) {
    loop {
        let left = visit(&contest, &mut random).await;
        if !contest.goes_on(left).await {
            return;
        }
    }
}

async fn visit(contest: &Contest, random: &mut Random) -> Result<(), Left> {
    let mut browser = Browser::new(contest.plan.address);
    let mut versions = Vec::new();
    contest.see(&mut browser, Kind::Front, "/", Content::List).await?;
    contest.fetch_files(&mut browser, &mut versions).await?;
    for page in 0..PAGES {
        match random.below(100) {
            0..35 => contest.see(&mut browser, Kind::Front, "/", Content::List).await?,
            35..60 => {
                contest
                    .see(&mut browser, Kind::List, &contest.some_list(random), Content::List)
                    .await?;
            }
            _ => {
                let memo = contest.some_memo(random);
                let words = [memo.words.as_str(), memo.author.as_str()];
                let path = format!("/memo/{}", memo.id);
                contest.see(&mut browser, Kind::Memo, &path, Content::Words(&words)).await?;
            }
        }
        // A reload requests the files again.
        if page == PAGES / 2 {
            contest.fetch_files(&mut browser, &mut versions).await?;
        }
    }
    if random.below(VISITS_PER_TRY) == 0
        && let Some(sealed) = contest.some_sealed(random, None)
    {
        let path = format!("/memo/{}", sealed.id);
        contest.ask(&mut browser, Kind::OthersPrivate, Request::Get(&path), judge::refused).await?;
    }
    Ok(())
}

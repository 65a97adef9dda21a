//! Visitors with an account. They sign in, read, write, check their private memos, and sign out.

use std::fmt::Write;
use std::rc::Rc;

use kirin_floor::random::Random;

use crate::browser::{Browser, Request};
use crate::contest::{Contest, Left, Sealed};
use crate::judge::{self, Content, Fault, SEALED};
use crate::kind::Kind;

/// The number of turns in a session. Each turn ends with one public and one private memo.
const TURNS: usize = 2;
/// The number of pages that a member reads in a turn.
const PAGES: usize = 10;
/// The text of every memo that a member writes.
const PARAGRAPH: &str = "Rain since the morning. Saw *a heron that did not move*, and later the last ferry leaving.\r\n\r\n\
    - the path behind the station\r\n- a [map](https://www.openstreetmap.org/) of the way\r\n- `ss -ltnp`, written down\r\n\r\n\
    > What is written down need not be remembered.\r\n";

/// Visits the site again and again until the contest is over, each time with another account.
pub async fn come(contest: Rc<Contest>, mut random: Random) {
    loop {
        let account = contest.next_account();
        let mut member = Member {
            contest: &contest,
            account,
            name: &contest.facts.names[account],
            browser: Browser::new(contest.plan.address),
            stranger: Browser::new(contest.plan.address),
            token: String::new(),
        };
        let left = member.visit(&mut random).await;
        if !contest.goes_on(left).await {
            return;
        }
    }
}

struct Member<'a> {
    contest: &'a Contest,
    account: usize,
    name: &'a str,
    browser: Browser,
    /// The browser of another visitor, who gets addresses from the member.
    stranger: Browser,
    /// The token for forms, from the last page.
    token: String,
}

impl Member<'_> {
    async fn visit(&mut self, random: &mut Random) -> Result<(), Left> {
        self.sign_in().await?;
        for _ in 0..TURNS {
            for _ in 0..PAGES {
                self.read(random).await?;
            }
            self.write_public(random).await?;
            self.write_private(random).await?;
            self.try_anothers_private(random).await?;
        }
        self.sign_out().await
    }

    async fn sign_in(&mut self) -> Result<(), Left> {
        let contest = self.contest;
        let request = Request::Get("/signin");
        let token = contest
            .ask(&mut self.browser, Kind::SignInForm, request, |answer| {
                judge::form(answer, "/signin")
            })
            .await?;
        contest.fetch_files(&mut self.browser, &mut Vec::new()).await?;
        let form = encoded(&[
            ("csrf_token", &token),
            ("name", self.name),
            ("password", &contest.facts.password),
        ]);
        let request = Request::Post("/signin", &form);
        contest
            .ask(&mut self.browser, Kind::SignIn, request, |answer| {
                judge::sees_other(answer, "/mypage")
            })
            .await?;
        self.see_my_page().await
    }

    /// Requests the page that has the form for new memos.
    async fn see_my_page(&mut self) -> Result<(), Left> {
        let name = self.name;
        self.token = self
            .contest
            .ask(&mut self.browser, Kind::MyPage, Request::Get("/mypage"), |answer| {
                judge::own(answer, Content::Words(&[]), name)?;
                judge::form(answer, "/memo")
            })
            .await?;
        Ok(())
    }

    async fn read(&mut self, random: &mut Random) -> Result<(), Left> {
        let contest = self.contest;
        match random.below(100) {
            0..35 => self.see("/", Content::List).await,
            35..60 => self.see(&contest.some_list(random), Content::List).await,
            _ => {
                let memo = contest.some_memo(random);
                let words = [memo.words.as_str(), memo.author.as_str()];
                self.see(&format!("/memo/{}", memo.id), Content::Words(&words)).await
            }
        }
    }

    /// Requests a public page, which must show the member's name.
    async fn see(&mut self, path: &str, content: Content<'_>) -> Result<(), Left> {
        let name = self.name;
        self.token = self
            .contest
            .ask(&mut self.browser, Kind::SignedIn, Request::Get(path), |answer| {
                judge::for_member(answer, content, name)
            })
            .await?;
        Ok(())
    }

    async fn write_public(&mut self, random: &mut Random) -> Result<(), Left> {
        let mark = format!("open-{:08x}", random.below(1 << 32));
        let id = self.post(Kind::PostPublic, &mark, false).await?;
        self.contest.posted_public(id);
        let (path, words) = (format!("/memo/{id}"), [mark.as_str(), self.name]);
        self.see(&path, Content::Words(&words)).await?;
        self.contest.see(&mut self.stranger, Kind::Memo, &path, Content::Words(&words)).await
    }

    async fn write_private(&mut self, random: &mut Random) -> Result<(), Left> {
        let mark = format!("{SEALED}{:08x}", random.below(1 << 32));
        self.see_my_page().await?;
        let id = self.post(Kind::PostPrivate, &mark, true).await?;
        self.contest.posted_private(Sealed { id, owner: self.account });
        let (path, words, name) = (format!("/memo/{id}"), [mark.as_str()], self.name);
        self.token = self
            .contest
            .ask(&mut self.browser, Kind::OwnPrivate, Request::Get(&path), |answer| {
                judge::own(answer, Content::Words(&words), name)
            })
            .await?;
        let request = Request::Get(&path);
        self.contest.ask(&mut self.stranger, Kind::OthersPrivate, request, judge::refused).await
    }

    /// Posts a memo. Returns its number.
    async fn post(&mut self, kind: Kind, mark: &str, is_private: bool) -> Result<u64, Left> {
        let content = format!("# {mark} of the day\r\n\r\n{PARAGRAPH}");
        let mut fields = vec![("csrf_token", self.token.as_str()), ("content", &content)];
        if is_private {
            fields.push(("is_private", "1"));
        }
        let form = encoded(&fields);
        self.contest
            .ask(&mut self.browser, kind, Request::Post("/memo", &form), |answer| {
                let path = judge::sees_other(answer, "/memo/")?;
                let id = path.strip_prefix("/memo/").and_then(|id| id.parse().ok());
                id.ok_or_else(|| Fault::Slip(format!("sent on to {path}, which is no memo")))
            })
            .await
    }

    async fn try_anothers_private(&mut self, random: &mut Random) -> Result<(), Left> {
        let Some(sealed) = self.contest.some_sealed(random, Some(self.account)) else {
            return Ok(());
        };
        let path = format!("/memo/{}", sealed.id);
        self.contest
            .ask(&mut self.browser, Kind::OthersPrivate, Request::Get(&path), judge::refused)
            .await
    }

    /// Signs out. The name must disappear at once for this browser, and for one that still has the
    /// old cookie.
    async fn sign_out(&mut self) -> Result<(), Left> {
        let (contest, name) = (self.contest, self.name);
        let old_cookies = self.browser.cookies.clone();
        let form = encoded(&[("csrf_token", &self.token)]);
        let request = Request::Post("/signout", &form);
        contest
            .ask(&mut self.browser, Kind::SignOut, request, |answer| judge::sees_other(answer, "/"))
            .await?;
        self.see_signed_out().await?;
        self.browser.cookies = old_cookies;
        self.see_signed_out().await?;
        let request = Request::Get("/mypage");
        contest
            .ask(&mut self.browser, Kind::SignedOut, request, |answer| {
                judge::sees_other(answer, "/signin").map_err(|fault| match answer.status {
                    200 => {
                        Fault::Breach(format!("{name} has signed out and has a page of their own"))
                    }
                    _ => fault,
                })
            })
            .await?;
        Ok(())
    }

    async fn see_signed_out(&mut self) -> Result<(), Left> {
        let name = self.name;
        self.contest
            .ask(&mut self.browser, Kind::SignedOut, Request::Get("/"), |answer| {
                judge::after_sign_out(answer, Content::List, name)
            })
            .await
    }
}

/// Encodes a form as a browser does.
fn encoded(fields: &[(&str, &str)]) -> String {
    let mut form = String::new();
    for (name, value) in fields {
        let separator = if form.is_empty() { "" } else { "&" };
        let _ = write!(form, "{separator}{name}=");
        for &byte in value.as_bytes() {
            match byte {
                b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'*' | b'-' | b'.' | b'_' => {
                    form.push(byte.into())
                }
                b' ' => form.push('+'),
                _ => {
                    let _ = write!(form, "%{byte:02X}");
                }
            }
        }
    }
    form
}

#[cfg(test)]
mod tests {
    use super::encoded;

    #[test]
    fn a_form_is_sent_as_browsers_send_it() {
        assert_eq!(encoded(&[("a", "x y&z=ä"), ("b", "")]), "a=x+y%26z%3D%C3%A4&b=");
    }
}

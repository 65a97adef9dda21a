//! The place `lua:FILE`: a script of this loop answers, passes, or waits for what the program gets
//! it.
//!
//! A script that waits for nothing answers at once, without a task. Subrequests are answered by the
//! routes themselves: what they find in memory is there at once, too, and only what takes waiting
//! is waited for, all of it together. Called by the router.

use std::path::PathBuf;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use kirin_http::{
    Answer, Body, BodyLength, FieldLines, Origin, RequestBody, RequestHead, Response,
};
use kirin_lua::{
    Called, Fetch, Fetched, Host, Limits, LuaError, ScriptFile, Step, Supply, Suspended, Wanted,
};
use kirin_store::{Now, Store};
use kirin_workers::MetaVariables;

use crate::pages::session;
use crate::places::script_turns::{ScriptTurns, Turn};
use crate::request::kept_request::KeptRequest;
use crate::request::subrequest::{self, CollectError, Lineage, Parent};
use crate::routing::path_rest::meant_path;
use crate::routing::router::{At, Lookup, Routes};

/// A script, opened.
pub struct LuaPlace {
    script: ScriptFile,
    turns: Rc<ScriptTurns>,
    body_limit_bytes: u64,
    fetch_limit_bytes: usize,
}

/// The program around the scripts: the visitors' sessions, and turns of the loop.
struct Program {
    store: Arc<Store>,
    cookie: Option<Arc<str>>,
    turns: Rc<ScriptTurns>,
}

impl Host for Program {
    fn session(&self, request: &Called, now: Now) -> Option<Bytes> {
        session::item_of_cookies(
            request.field_values("cookie"),
            self.cookie.as_deref()?,
            &self.store,
            now,
        )
    }

    fn ran(&self, time: Duration) {
        self.turns.ran(time);
    }
}

/// An answer to a subrequest.
enum Asked {
    Here(Fetched),
    Coming(Pin<Box<dyn Future<Output = Result<Fetched, String>>>>),
}

/// What a call waits for that is not there.
enum Awaited {
    Body,
    Answers(Vec<Asked>),
}

/// What a call does next, when it has its turn.
enum Next {
    Begin(Called),
    Resume(Suspended, Awaited),
}

/// How far a call has come without waiting.
enum Progress {
    Answered(Response),
    Passed,
    Waits(Suspended, Awaited),
}

impl LuaPlace {
    /// Loads the script `file`. `session_cookie` names visitors' sessions, `body_limit_bytes` is
    /// the route's own. `turns` are those of the loop's scripts.
    pub fn open(
        file: PathBuf,
        store: &Arc<Store>,
        session_cookie: Option<Arc<str>>,
        limits: Limits,
        body_limit_bytes: Option<u64>,
        turns: &Rc<ScriptTurns>,
    ) -> Result<Self, LuaError> {
        let turns = Rc::clone(turns);
        let program = Rc::new(Program {
            store: Arc::clone(store),
            cookie: session_cookie,
            turns: Rc::clone(&turns),
        });
        let script = ScriptFile::open(file, Arc::clone(store), program, limits)?;
        let body_limit_bytes = body_limit_bytes.unwrap_or(u64::MAX).min(limits.body_bytes);
        let fetch_limit_bytes = usize::try_from(limits.body_bytes).unwrap_or(usize::MAX);
        Ok(Self { script, turns, body_limit_bytes, fetch_limit_bytes })
    }

    /// Waits until a call of this script may run.
    async fn turn(&self) -> Option<Turn> {
        self.turns.turn(std::ptr::from_ref(self).addr()).await
    }

    /// Answers, or passes. `at` is where it stands.
    pub fn answer(
        &self,
        routes: &Rc<Routes>,
        at: At,
        lookup: &Lookup<'_>,
        origin: Origin<'_>,
    ) -> Option<Answer> {
        let path = match meant_path(lookup.seen.path) {
            Ok(path) => path,
            Err(status) => return Some(Answer::Now(Response::error(status))),
        };
        let called = Called::of(lookup.seen, origin, &path, lookup.meta.user);
        if !self.turns.is_free() {
            let (routes, kept) = (Rc::clone(routes), KeptLookup::of(lookup, origin));
            return Some(Answer::later(move |body| {
                go_on(routes, at, kept, Next::Begin(called), body)
            }));
        }
        let now = Now::from_unix_seconds(origin.now);
        let step = self.script.call(called, now);
        match self.advance(step, now, routes.parent_at(at, lookup, origin)) {
            Progress::Answered(response) => Some(Answer::Now(response)),
            Progress::Passed => None,
            Progress::Waits(suspended, awaited) => {
                let (routes, kept) = (Rc::clone(routes), KeptLookup::of(lookup, origin));
                Some(Answer::later(move |body| {
                    go_on(routes, at, kept, Next::Resume(suspended, awaited), body)
                }))
            }
        }
    }

    /// Has a call go on as long as it waits for nothing that is not there.
    fn advance(&self, mut step: Step, now: Now, parent: Parent<'_>) -> Progress {
        loop {
            let mut suspended = match step {
                Step::Answered(response) => return Progress::Answered(response),
                Step::Passed => return Progress::Passed,
                Step::Failed(fault) => {
                    return Progress::Answered(Response {
                        answered_by: kirin_lua::ANSWERED_BY,
                        ..Response::error(fault.status())
                    });
                }
                Step::Waiting(suspended) => suspended,
            };
            let supply = match suspended.wanted() {
                None => Supply::Refused("nothing to wait for".into()),
                Some(Wanted::Body) => return Progress::Waits(suspended, Awaited::Body),
                Some(Wanted::Fetches(fetches)) => match self.ask(parent, &fetches) {
                    Err(problem) => Supply::Refused(problem),
                    Ok(asked) if asked.iter().all(|asked| matches!(asked, Asked::Here(_))) => {
                        let here = |asked| match asked {
                            Asked::Here(fetched) => Some(fetched),
                            Asked::Coming(_) => None,
                        };
                        Supply::Fetched(asked.into_iter().filter_map(here).collect())
                    }
                    Ok(asked) => return Progress::Waits(suspended, Awaited::Answers(asked)),
                },
            };
            step = suspended.resume(supply, now);
        }
    }

    /// Asks the routes for all of `fetches`.
    fn ask(&self, parent: Parent<'_>, fetches: &[Fetch]) -> Result<Vec<Asked>, String> {
        let limit = self.fetch_limit_bytes;
        let ask = |fetch: &Fetch| {
            let fields: Vec<_> =
                fetch.fields.iter().map(|(name, value)| httparse::Header { name, value }).collect();
            let length = match fetch.body.len() as u64 {
                0 => BodyLength::None,
                length => BodyLength::Exact(length),
            };
            let answer = parent.ask(&fetch.method, fetch.target.as_bytes(), &fields, length);
            let answer =
                answer.map_err(|refused| format!("fetch `{}`: {refused}", fetch.target))?;
            let is_head = fetch.method == Method::HEAD;
            Ok(match answer {
                Answer::Now(response) => fetched_now(response, is_head, limit, &fetch.target),
                Answer::Later(later) => {
                    let (body, target) =
                        (RequestBody::from_bytes(fetch.body.clone()), fetch.target.clone());
                    Asked::Coming(Box::pin(async move {
                        let response = later(body).await;
                        fetched(response, is_head, limit, &target).await
                    }))
                }
            })
        };
        fetches.iter().map(ask).collect()
    }
}

/// An answer whose body is in memory is there.
fn fetched_now(mut response: Response, is_head: bool, limit: usize, target: &str) -> Asked {
    let is_short = response.body.length().is_some_and(|length| length <= limit as u64);
    if is_short && !is_head {
        let body = std::mem::replace(&mut response.body, Body::Empty);
        match subrequest::collect_now(body) {
            Ok(pieces) => return Asked::Here(whole(response.status, response.fields, pieces)),
            Err(body) => response.body = body,
        }
    }
    let target = target.to_owned();
    Asked::Coming(Box::pin(async move { fetched(response, is_head, limit, &target).await }))
}

async fn fetched(
    response: Response,
    is_head: bool,
    limit: usize,
    target: &str,
) -> Result<Fetched, String> {
    let (status, fields) = (response.status, response.fields);
    let body = if is_head { Body::Empty } else { response.body };
    match subrequest::collect(body, limit).await {
        Ok(pieces) => Ok(whole(status, fields, pieces)),
        Err(CollectError::TooLarge(limit)) => Err(format!(
            "fetch `{target}`: the answer is larger than `lua.body_limit`, {limit} bytes"
        )),
        Err(error) => Err(format!("fetch `{target}`: {error}")),
    }
}

fn whole(status: StatusCode, fields: FieldLines, mut pieces: Vec<Bytes>) -> Fetched {
    let body = match pieces.len() {
        0 => Bytes::new(),
        1 => pieces.swap_remove(0),
        _ => Bytes::from(pieces.concat()),
    };
    Fetched { status, fields, body }
}

/// Waits with a call until it has answered; if it passes, the next place answers.
async fn go_on(
    routes: Rc<Routes>,
    at: At,
    kept: KeptLookup,
    mut next: Next,
    mut body: RequestBody,
) -> Response {
    let Some(place) = routes.script(at) else {
        return Response::error(StatusCode::INTERNAL_SERVER_ERROR);
    };
    let mut read = None;
    loop {
        let work: Box<dyn FnOnce(Now) -> Step + '_> = match next {
            Next::Begin(called) => Box::new(|now| place.script.call(called, now)),
            Next::Resume(suspended, awaited) => {
                let supply = match awaited {
                    Awaited::Answers(asked) => {
                        all(asked).await.map_or_else(Supply::Refused, Supply::Fetched)
                    }
                    Awaited::Body => match body.read_whole(place.body_limit_bytes).await {
                        Ok(bytes) => Supply::Body(read.insert(bytes).clone()),
                        Err(error) => {
                            return Response {
                                answered_by: kirin_lua::ANSWERED_BY,
                                ..Response::error(error.status())
                            };
                        }
                    },
                };
                Box::new(|now| suspended.resume(supply, now))
            }
        };
        let turn = place.turn().await;
        let now = Now::from_unix_seconds(kirin_clock::steady_seconds());
        let step = work(now);
        let progress = kept
            .with(|lookup, origin| place.advance(step, now, routes.parent_at(at, &lookup, origin)));
        drop(turn);
        match progress {
            Progress::Answered(response) => {
                let answer =
                    kept.with(|lookup, origin| routes.filtered(at, &lookup, origin, response));
                return answer.response(RequestBody::empty()).await;
            }
            Progress::Waits(waiting, what) => next = Next::Resume(waiting, what),
            Progress::Passed => break,
        }
    }
    if let Some(read) = read {
        body = body.again(read);
    }
    let next = At { place: at.place + 1, ..at };
    kept.with(|lookup, origin| routes.look(next, &lookup, origin)).response(body).await
}

/// Waits for all answers together.
async fn all(mut asked: Vec<Asked>) -> Result<Vec<Fetched>, String> {
    std::future::poll_fn(|context| {
        let mut is_ready = true;
        for one in &mut asked {
            if let Asked::Coming(coming) = one {
                match coming.as_mut().poll(context) {
                    Poll::Ready(Ok(fetched)) => *one = Asked::Here(fetched),
                    Poll::Ready(Err(problem)) => return Poll::Ready(Err(problem)),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    let here = |asked| match asked {
        Asked::Here(fetched) => Some(fetched),
        Asked::Coming(_) => None,
    };
    Ok(asked.into_iter().filter_map(here).collect())
}

/// A [`Lookup`] that outlives the connection's read buffer.
struct KeptLookup {
    request: KeptRequest,
    /// Target and path as they are seen, if they are others than were sent.
    seen: Option<(String, String)>,
    script_name: String,
    path: Option<String>,
    user: Option<String>,
    lineage: Lineage,
}

impl KeptLookup {
    fn of(lookup: &Lookup<'_>, origin: Origin<'_>) -> Self {
        let is_rewritten = !std::ptr::eq(lookup.seen, lookup.sent);
        Self {
            request: KeptRequest::of(lookup.sent, origin),
            seen: is_rewritten
                .then(|| (lookup.seen.target.to_owned(), lookup.seen.path.to_owned())),
            script_name: lookup.meta.script_name.to_owned(),
            path: lookup.meta.path.map(Into::into),
            user: lookup.meta.user.map(Into::into),
            lineage: lookup.lineage.clone(),
        }
    }

    fn with<R>(&self, work: impl FnOnce(Lookup<'_>, Origin<'_>) -> R) -> R {
        let meta = MetaVariables {
            script_name: &self.script_name,
            path: self.path.as_deref(),
            user: self.user.as_deref(),
        };
        self.request.with(|sent, origin| {
            let rewritten = self.seen.as_ref().map(|(target, path)| RequestHead {
                target,
                path,
                ..sent.clone()
            });
            let seen = rewritten.as_ref().unwrap_or(sent);
            work(Lookup { sent, seen, meta, lineage: &self.lineage }, origin)
        })
    }
}

//! The place `lua:FILE`: a script answers, passes, or waits for the body or for other requests.
//!
//! A script that waits for nothing answers at once, without a task. The routes answer its
//! subrequests: a response from memory is there at once. The script waits for all others together.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, StatusCode};
use kirin_http::{Answer, Body, BodyLength, FieldLines, RequestBody, Response};
use kirin_lua::{
    AwaitedInput, CallOutcome, Called, Fetch, Fetched, Host, ScriptFile, StoreCall, Supply,
    Suspended, VisitorSession,
};
use kirin_origin::{Look, NearStore, Scratch};
use kirin_store::{ItemRef, Now};

use super::kind::{OpenPlace, PlaceKind};
use super::opening::{Opening, PlaceError};
use super::place::Place;
use super::script_turns::{ScriptTurn, ScriptTurns};
use crate::filters::chain::Filters;
use crate::pages::session::{self, Session};
use crate::request::answers::PlaceNumber;
use crate::request::collected_body::{self, CollectError};
use crate::request::context::Request;
use crate::request::kept_request::KeptRequest;

/// The kind `lua:FILE`.
pub static KIND: PlaceKind = PlaceKind {
    name: "lua",
    argument: Some("FILE"),
    runs_code: true,
    answers_all: false,
    keys: &[],
    read: |path, named| Ok(Arc::new(File(named.file(path)?))),
};

/// The place in `try`: the absolute path of the script.
struct File(PathBuf);

impl OpenPlace for File {
    fn path(&self) -> Option<&Path> {
        Some(&self.0)
    }

    fn open(&self, opening: &Opening<'_>) -> Result<Box<dyn Place>, PlaceError> {
        let (resources, limits) = (opening.resources, opening.resources.config.lua);
        let near = resources.responses.near();
        let program = Rc::new(Program {
            near: near.clone(),
            cookie: resources.config.session_cookie.clone(),
            turns: Rc::clone(&resources.shared.turns),
        });
        let file = ScriptFile::open(self.0.clone(), near.clone(), program, limits);
        let body_limit_bytes = opening.route.body_limit_bytes.unwrap_or(u64::MAX);
        Ok(Box::new(LuaPlace(Rc::new(RouteScript {
            file: file.map_err(PlaceError::new)?,
            number: opening.number,
            filters: Rc::clone(opening.filters),
            turns: Rc::clone(&resources.shared.turns),
            near: near.clone(),
            scratch: resources.shared.scratch.clone(),
            body_limit_bytes: body_limit_bytes.min(limits.body_bytes),
            fetch_limit_bytes: usize::try_from(limits.body_bytes).unwrap_or(usize::MAX),
        }))))
    }
}

/// The place of one route.
pub struct LuaPlace(Rc<RouteScript>);

/// A script of one route, opened.
struct RouteScript {
    file: ScriptFile,
    /// The position of its place in the configuration.
    number: PlaceNumber,
    filters: Rc<Filters>,
    turns: Rc<ScriptTurns>,
    near: NearStore,
    /// Where changes for the server behind the store are made, if there is one.
    scratch: Option<Rc<Scratch>>,
    /// The largest body of a request that it reads, in bytes.
    body_limit_bytes: u64,
    /// The largest answer to a subrequest that it reads, in bytes.
    fetch_limit_bytes: usize,
}

/// The services for scripts: the visitors' sessions, and turns on the event loop.
struct Program {
    near: NearStore,
    cookie: Option<Arc<str>>,
    turns: Rc<ScriptTurns>,
}

impl Host for Program {
    fn session(&self, request: &Called, now: Now) -> VisitorSession {
        let Some(cookie) = self.cookie.as_deref() else { return VisitorSession::Nothing };
        let fields = request.field_values("cookie");
        let Some(key) = session::key_of_cookies(fields, cookie, request.namespace()) else {
            return VisitorSession::Nothing;
        };
        match self.near.look(&key, now) {
            Look::Nothing => VisitorSession::Nothing,
            Look::Unknown => VisitorSession::Unknown(Bytes::copy_from_slice(&key)),
            Look::Item(item) => {
                let text = self.session_text(&item, now);
                text.map_or(VisitorSession::Nothing, VisitorSession::Text)
            }
        }
    }

    fn session_text(&self, item: &ItemRef, now: Now) -> Option<Bytes> {
        Session::of_item(item, self.near.store(), now).map(|_| item.value())
    }

    fn ran(&self, time: Duration) {
        self.turns.ran(time);
    }
}

/// An answer to a subrequest.
enum FetchAnswer {
    Here(Fetched),
    Coming(Pin<Box<dyn Future<Output = Result<Fetched, String>>>>),
}

/// The things that a call waits for.
enum Awaited {
    Body,
    Answers(Vec<FetchAnswer>),
    Store(StoreCall),
}

/// The next step of a call, when it has its turn.
enum CallStep {
    Begin(Called),
    Resume(Suspended, Awaited),
}

/// The state of a call that has run without waiting.
enum CallProgress {
    Answered(Response),
    Passed,
    Waits(Suspended, Awaited),
}

impl Place for LuaPlace {
    fn answer(&self, request: &Request<'_>) -> Option<Answer> {
        let script = &self.0;
        let path = request.path.normalized();
        let Request { rewritten, origin, user, namespace, .. } = *request;
        let called = Called::of(rewritten, origin, path, user.map(|user| user.name), namespace);
        if !script.turns.is_free() {
            let (script, kept) = (Rc::clone(script), request.keep());
            return Some(Answer::later(move |body| {
                go_on(script, kept, CallStep::Begin(called), body)
            }));
        }
        let now = Now::from_unix_seconds(request.origin.now);
        let step = script.file.call(called, now);
        match script.advance(step, now, request) {
            CallProgress::Answered(response) => {
                Some(script.filters.around_response(request, response))
            }
            CallProgress::Passed => None,
            CallProgress::Waits(suspended, awaited) => {
                let (script, kept) = (Rc::clone(script), request.keep());
                Some(Answer::later(move |body| {
                    go_on(script, kept, CallStep::Resume(suspended, awaited), body)
                }))
            }
        }
    }
}

impl RouteScript {
    /// Waits until a call of this script may run.
    async fn turn(&self) -> Option<ScriptTurn> {
        self.turns.turn(std::ptr::from_ref(self).addr()).await
    }

    /// Continues a call until it must wait.
    fn advance(&self, mut step: CallOutcome, now: Now, request: &Request<'_>) -> CallProgress {
        loop {
            let mut suspended = match step {
                CallOutcome::Answered(response) => return CallProgress::Answered(response),
                CallOutcome::Passed => return CallProgress::Passed,
                CallOutcome::Failed(fault) => {
                    return CallProgress::Answered(failure(fault.status()));
                }
                CallOutcome::Waiting(suspended) => suspended,
            };
            let supply = match suspended.wanted() {
                None => Supply::Refused("nothing to wait for".into()),
                Some(AwaitedInput::Body) => return CallProgress::Waits(suspended, Awaited::Body),
                Some(AwaitedInput::Store(call)) => {
                    return CallProgress::Waits(suspended, Awaited::Store(call));
                }
                Some(AwaitedInput::Fetches(fetches)) => match self.fetch(request, &fetches) {
                    Err(problem) => Supply::Refused(problem),
                    Ok(answers)
                        if answers
                            .iter()
                            .all(|answers| matches!(answers, FetchAnswer::Here(_))) =>
                    {
                        let here = |answers| match answers {
                            FetchAnswer::Here(fetched) => Some(fetched),
                            FetchAnswer::Coming(_) => None,
                        };
                        Supply::Fetched(answers.into_iter().filter_map(here).collect())
                    }
                    Ok(answers) => {
                        return CallProgress::Waits(suspended, Awaited::Answers(answers));
                    }
                },
            };
            step = suspended.resume(supply, now);
        }
    }

    /// Asks the routes for all of `fetches`.
    fn fetch(&self, request: &Request<'_>, fetches: &[Fetch]) -> Result<Vec<FetchAnswer>, String> {
        let limit = self.fetch_limit_bytes;
        let ask = |fetch: &Fetch| {
            let fields: Vec<_> =
                fetch.fields.iter().map(|(name, value)| httparse::Header { name, value }).collect();
            let length = match fetch.body.len() as u64 {
                0 => BodyLength::None,
                length => BodyLength::Exact(length),
            };
            let answer = request.ask(&fetch.method, fetch.target.as_bytes(), &fields, length);
            let answer =
                answer.map_err(|refused| format!("fetch `{}`: {refused}", fetch.target))?;
            let is_head = fetch.method == Method::HEAD;
            Ok(match answer {
                Answer::Now(response) => fetched_now(response, is_head, limit, &fetch.target),
                Answer::Later(later) => {
                    let (body, target) =
                        (RequestBody::from_bytes(fetch.body.clone()), fetch.target.clone());
                    FetchAnswer::Coming(Box::pin(async move {
                        let response = later(body).await;
                        fetched(response, is_head, limit, &target).await
                    }))
                }
            })
        };
        fetches.iter().map(ask).collect()
    }
}

/// Returns an answer whose body is in memory, or one that must be waited for.
fn fetched_now(mut response: Response, is_head: bool, limit: usize, target: &str) -> FetchAnswer {
    let is_short = response.body.length().is_some_and(|length| length <= limit as u64);
    if is_short && !is_head {
        let body = std::mem::replace(&mut response.body, Body::Empty);
        match collected_body::collect_now(body) {
            Ok(pieces) => {
                return FetchAnswer::Here(whole(response.status, response.fields, pieces));
            }
            Err(body) => response.body = body,
        }
    }
    let target = target.to_owned();
    FetchAnswer::Coming(Box::pin(async move { fetched(response, is_head, limit, &target).await }))
}

async fn fetched(
    response: Response,
    is_head: bool,
    limit: usize,
    target: &str,
) -> Result<Fetched, String> {
    let (status, fields) = (response.status, response.fields);
    let body = if is_head { Body::Empty } else { response.body };
    match collected_body::collect(body, limit).await {
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

/// Waits with a call until it has answered. If it passes, the places behind it answer.
async fn go_on(
    script: Rc<RouteScript>,
    kept: KeptRequest,
    mut next: CallStep,
    mut body: RequestBody,
) -> Response {
    let mut read = None;
    loop {
        let work: Box<dyn FnOnce(Now) -> CallOutcome + '_> = match next {
            CallStep::Begin(called) => Box::new(|now| script.file.call(called, now)),
            CallStep::Resume(suspended, awaited) => {
                let supply = match awaited {
                    Awaited::Answers(answers) => {
                        all(answers).await.map_or_else(Supply::Refused, Supply::Fetched)
                    }
                    Awaited::Store(call) => match &script.scratch {
                        Some(scratch) => {
                            Supply::Stored(call.carry_out(&script.near, scratch).await)
                        }
                        None => Supply::Refused("nothing to wait for".into()),
                    },
                    Awaited::Body => match body.read_whole(script.body_limit_bytes).await {
                        Ok(bytes) => Supply::Body(read.insert(bytes).clone()),
                        Err(error) => {
                            return Response {
                                answered_by: kirin_lua::ANSWERED_BY,
                                ..error.response()
                            };
                        }
                    },
                };
                Box::new(|now| suspended.resume(supply, now))
            }
        };
        let turn = script.turn().await;
        let now = Now::on_steady_clock();
        let step = work(now);
        let progress = kept.with(|request| script.advance(step, now, request));
        drop(turn);
        match progress {
            CallProgress::Answered(response) => {
                let answer = kept.with(|request| script.filters.around_response(request, response));
                return answer.response(RequestBody::empty()).await;
            }
            CallProgress::Waits(waiting, what) => next = CallStep::Resume(waiting, what),
            CallProgress::Passed => break,
        }
    }
    if let Some(read) = read {
        body = body.again(read);
    }
    let answer = kept.with(|request| request.routes.ask_behind(script.number, request));
    answer.response(body).await
}

fn failure(status: StatusCode) -> Response {
    Response { answered_by: kirin_lua::ANSWERED_BY, ..Response::error(status) }
}

/// Waits for all answers together.
async fn all(mut answers: Vec<FetchAnswer>) -> Result<Vec<Fetched>, String> {
    std::future::poll_fn(|context| {
        let mut is_ready = true;
        for one in &mut answers {
            if let FetchAnswer::Coming(coming) = one {
                match coming.as_mut().poll(context) {
                    Poll::Ready(Ok(fetched)) => *one = FetchAnswer::Here(fetched),
                    Poll::Ready(Err(problem)) => return Poll::Ready(Err(problem)),
                    Poll::Pending => is_ready = false,
                }
            }
        }
        if is_ready { Poll::Ready(Ok(())) } else { Poll::Pending }
    })
    .await?;
    let here = |answers| match answers {
        FetchAnswer::Here(fetched) => Some(fetched),
        FetchAnswer::Coming(_) => None,
    };
    Ok(answers.into_iter().filter_map(here).collect())
}

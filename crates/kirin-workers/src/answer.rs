//! The way of one request through an application: body, queue, worker, and another worker if the
//! first one fails.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_balance::ClientKey;
use kirin_cgi::{MetaVariables, RequestBlock};
use kirin_files::AppFiles;
use kirin_http::{
    Answer, BodyLength, ClientWatch, Method, Origin, RequestBody, RequestHead, RequestSteps,
    Response, StatusCode, StepKind, Version, address_key,
};
use kirin_spool::{SpoolError, SpooledBody};

use crate::app::App;
use crate::capacity::Capacity;
use crate::exchange::{Failure, WorkerRequest, exchange};
use crate::parsed;
use crate::pool::{Acquired, Refused};
use crate::ring_exchange;
use crate::trial::{Outcome, Visitor};

/// The most retries of a request that no worker has read yet.
const UNREAD_TRIES: u32 = 3;

/// What decides when a request has its turn, and at which workers.
struct Turn {
    address: ClientKey,
    /// Since when the request waits, if it has had to.
    since: Option<Instant>,
    /// The visitor, while new code is on trial.
    visitor: Option<Visitor>,
}

impl Turn {
    /// Returns whether the visitor tries the new code, and it is that of `generation`.
    fn tries(&self, generation: Option<u64>) -> bool {
        let tries = self.visitor.as_ref().and_then(Visitor::tries);
        tries.is_some() && tries == generation
    }
}

impl App {
    /// Answers one request. Call this in a task of an event loop, with the `files` of that loop.
    /// `session` names the visitor's session; it is needed only during a trial
    /// ([`App::has_trial`]).
    pub fn answer(
        self: &Arc<Self>,
        request: &RequestHead<'_>,
        origin: Origin<'_>,
        files: &Rc<AppFiles>,
        meta: &MetaVariables<'_>,
        session: Option<&[u8]>,
    ) -> Answer {
        self.counters.requests.add(1);
        let Ok(mut block) = RequestBlock::encode(request, origin, meta) else {
            return Answer::Now(Response::error(StatusCode::BAD_REQUEST));
        };
        parsed::add_to_head(&mut block, request.query, self.wanted.get());
        let is_get = request.method == Method::GET;
        let is_head = request.method == Method::HEAD;
        let idempotent = request.method.is_idempotent();
        let upgrade = request.field("upgrade").is_some()
            && request.version >= Version::Http11
            && request.body == BodyLength::None;
        let files = Rc::clone(files);
        let outgoing = WorkerRequest {
            block,
            is_get,
            is_head,
            upgrade,
            client: None,
            informational: None,
            idempotent,
            files,
            steps: Rc::clone(origin.notes.steps()),
        };
        let (app, address) = (Arc::clone(self), address_key(origin.peer));
        let turn = Turn { address, since: None, visitor: self.visitor(session, address) };
        Answer::later(move |body| app.answer_later(outgoing, turn, body))
    }

    async fn answer_later(
        self: Arc<Self>,
        mut outgoing: WorkerRequest,
        mut turn: Turn,
        mut body: RequestBody,
    ) -> Response {
        outgoing.informational = body.informational();
        outgoing.client = body.client();
        let client = outgoing.client.clone();
        let share = body.share().clone();
        body.limit(self.config().body_limit_bytes);
        let body = match SpooledBody::read(&mut body, &self.spool_directory).await {
            Ok(body) => body,
            Err(error) => return self.refuse_body(&error),
        };
        if self.wanted.get().form
            && let SpooledBody::Memory { bytes: form, .. } = &body
            && !form.is_empty()
        {
            parsed::add_form(&mut outgoing.block, form);
        }
        outgoing.block.finish(body.length());
        let (mut tries, mut files_refused) = (0, false);
        loop {
            let taken = self.take_worker(&mut turn, client.as_ref(), &outgoing.steps).await;
            let capacity = match taken {
                Ok(capacity) => capacity,
                Err(refused) => {
                    self.note_refused(&turn, refused);
                    return self.refuse(refused);
                }
            };
            let generation = turn.visitor.as_ref().map(|_| capacity.generation());
            let had_others = capacity.is_concurrent();
            let answered = match capacity {
                Capacity::Ring(place) => {
                    let client = client.as_ref();
                    ring_exchange::exchange(&self, place, &outgoing, &body, &share, client).await
                }
                Capacity::Connection(connection) => {
                    exchange(&self, connection, &outgoing, &body, &share).await
                }
            };
            if let (Some(visitor), Some(generation)) = (&turn.visitor, generation)
                && let Some(outcome) = outcome(&answered, had_others, &outgoing.steps)
            {
                self.note_outcome(visitor, generation, outcome);
            }
            let failure = match answered {
                Ok(response) => return response,
                Err(Failure::Refused(refused)) => return self.refuse(refused),
                // No worker has seen the request. It keeps its turn.
                Err(Failure::Withdrawn { put_at }) => {
                    turn.since.get_or_insert(put_at);
                    continue;
                }
                Err(failure) => failure,
            };
            tries += 1;
            let is_unread = matches!(failure, Failure::NotRead { .. });
            // A worker may be told to leave at the moment in which it gets a request. So there are
            // more retries while the application has not seen the request.
            let may_try = match failure {
                Failure::NotRead { .. } => tries <= UNREAD_TRIES,
                Failure::File { .. } => !std::mem::replace(&mut files_refused, true),
                _ => tries <= 1,
            };
            // Only workers that are lost again and again get here before they have read it.
            if let (true, Some(visitor), Some(generation)) =
                (is_unread && !may_try, &turn.visitor, generation)
            {
                self.note_outcome(visitor, generation, Outcome::Lost { had_others: false });
            }
            // The old code tries what the new code has failed at.
            let goes_over = turn.tries(generation)
                && match failure {
                    Failure::NotRead { .. } => !may_try,
                    Failure::File { .. } => false,
                    _ => true,
                };
            if (may_try || goes_over) && failure.may_be_retried(&outgoing) {
                self.counters.retried.add(1);
                match failure {
                    Failure::File { .. } => {
                        outgoing.block.add("KIRIN_SENDFILE", "0");
                        outgoing.block.finish(body.length());
                        self.log_failure(&failure, &outgoing, "a worker is to send it itself");
                    }
                    // This happens regularly when workers leave.
                    Failure::NotRead { pid } if !goes_over => {
                        tracing::debug!(
                            app = self.name(),
                            pid,
                            "worker left before it read the request"
                        );
                    }
                    _ => self.log_failure(&failure, &outgoing, "another worker tries"),
                }
                if goes_over {
                    turn.visitor = None;
                    // A request that was read may be what ends workers, so it has one more try.
                    tries = u32::from(!is_unread);
                }
                // A worker has had its turn.
                turn.since = None;
                continue;
            }
            let counter = match failure {
                Failure::Overdue { .. } | Failure::GivenUp { .. } => &self.counters.overdue,
                _ => &self.counters.failed,
            };
            counter.add(1);
            self.log_failure(&failure, &outgoing, "request failed");
            return Response::error(failure.status());
        }
    }

    /// Returns an idle worker, or waits for one when it is this request's turn. The wait ends if
    /// the client goes.
    async fn take_worker(
        &self,
        turn: &mut Turn,
        client: Option<&ClientWatch>,
        steps: &Rc<RequestSteps>,
    ) -> Result<Capacity, Refused> {
        let here = std::thread::current().id();
        loop {
            let tries = turn.visitor.as_ref().and_then(Visitor::tries);
            let tries = tries.is_some_and(|generation| self.pools.is_on_trial(generation));
            let pool = if tries { self.pools.trial() } else { self.pools.serving() };
            let taken = match pool.take(here, turn.address, turn.since) {
                Ok(Acquired::Worker(capacity)) => Ok(capacity),
                Err(refused) => Err(refused),
                Ok(Acquired::Wait(wait)) => {
                    if turn.since.is_none() {
                        self.counters.queued.add(1);
                        turn.since = Some(wait.since);
                    }
                    self.ask_for_connections();
                    let _step = steps.begin(StepKind::Queue, self.label());
                    match client {
                        None => wait.await,
                        Some(client) => tokio::select! {
                            biased;
                            worker = wait => worker,
                            () = client.gone() => Err(Refused::ClientGone),
                        },
                    }
                }
            };
            let capacity = match taken {
                // The trial has ended.
                Err(Refused::Closed) if tries => {
                    turn.visitor = None;
                    continue;
                }
                taken => taken?,
            };
            match capacity {
                Capacity::Connection(mut connection) => {
                    if connection.is_waiting().await {
                        return Ok(Capacity::Connection(connection));
                    }
                    self.note_unread(&connection.handle.process);
                }
                place @ Capacity::Ring(_) => return Ok(place),
            }
        }
    }

    /// Notes for a trial that a request has got no worker.
    fn note_refused(&self, turn: &Turn, refused: Refused) {
        let is_failure = matches!(refused, Refused::Full | Refused::WaitedTooLong);
        if let Some(visitor) = turn.visitor.as_ref().filter(|_| is_failure) {
            self.note_outcome(visitor, visitor.generation(), Outcome::Refused);
        }
    }

    fn refuse(&self, refused: Refused) -> Response {
        match refused {
            Refused::Full => self.counters.refused_full.add(1),
            Refused::WaitedTooLong => self.counters.refused_waited.add(1),
            Refused::Closed => {}
            Refused::ClientGone => {
                self.counters.clients_gone.add(1);
                // Only the access log sees this status.
                return Response::error(Response::client_gone_status());
            }
        }
        let mut response = Response::error(StatusCode::SERVICE_UNAVAILABLE);
        response.fields.push("Retry-After", "1");
        response
    }

    fn refuse_body(&self, error: &SpoolError) -> Response {
        if matches!(error, SpoolError::Spool { .. }) {
            self.counters.spool_failed.add(1);
            tracing::error!(app = self.name(), %error, "request body is not taken");
        }
        error.response()
    }

    fn log_failure(&self, failure: &Failure, outgoing: &WorkerRequest, what: &str) {
        let value = |name| {
            String::from_utf8_lossy(outgoing.block.value(name).unwrap_or_default()).into_owned()
        };
        let request = format!("{} {}", value("REQUEST_METHOD"), value("REQUEST_URI"));
        tracing::warn!(app = self.name(), %failure, request, "{what}");
    }
}

/// Returns what a trial notes of an attempt. `None` if it says nothing about the application.
fn outcome(
    answered: &Result<Response, Failure>,
    had_others: bool,
    steps: &RequestSteps,
) -> Option<Outcome> {
    match answered {
        Ok(response) => {
            // The time of the worker only: the queue of a side depends on its share.
            let worker = steps.last(StepKind::Worker);
            let took = worker.map_or(Duration::ZERO, |step| step.took(Instant::now()));
            Some(Outcome::Answered { is_error: response.status.is_server_error(), took })
        }
        Err(Failure::Overdue { .. } | Failure::GivenUp { .. }) => Some(Outcome::Overdue),
        Err(Failure::NoResponse { .. } | Failure::Truncated { .. } | Failure::Protocol { .. }) => {
            Some(Outcome::Lost { had_others })
        }
        Err(Failure::Refused(Refused::Full | Refused::WaitedTooLong)) => Some(Outcome::Refused),
        Err(
            Failure::Refused(Refused::Closed | Refused::ClientGone)
            | Failure::NotRead { .. }
            | Failure::Withdrawn { .. }
            | Failure::File { .. },
        ) => None,
    }
}

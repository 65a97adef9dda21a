//! The way of one request through a program: its variables, its body, the queue, and the process.

use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

use kirin_balance::ClientKey;
use kirin_cgi::{MetaVariables, RequestBlock};
use kirin_http::{
    Answer, BodyLength, InRequest, Method, Origin, RequestBody, RequestHead, RequestSteps,
    Response, StatusCode, StepKind, StepPeer, address_key,
};
use kirin_spool::SpooledBody;

use crate::ProgramSettings;
use crate::environment::{Variables, variables};
use crate::error_log::log_errors;
use crate::failure::ProgramFailure;
use crate::input::standard_input;
use crate::keeper::{KeptProgram, keep};
use crate::pool::Slot;
use crate::process::ProgramCommand;
use crate::response::RunningProgram;
use crate::time_left::TimeLeft;

/// The programs of one place, on one event loop.
pub struct CgiPrograms {
    settings: ProgramSettings,
    /// The name of the place in logs and traces.
    label: Arc<str>,
}

/// A request, and the program that answers it.
pub struct ProgramRequest<'a> {
    /// The head.
    pub head: &'a RequestHead<'a>,
    /// The client and the listener.
    pub origin: Origin<'a>,
    /// `SCRIPT_NAME`, `PATH_INFO` and others.
    pub meta: MetaVariables<'a>,
    /// The absolute path of the program.
    pub file: PathBuf,
}

/// A request that outlives the connection's buffer.
struct OutgoingRequest {
    block: RequestBlock,
    file: PathBuf,
    is_head: bool,
    client: ClientKey,
    steps: Rc<RequestSteps>,
}

impl CgiPrograms {
    /// Returns the programs of a place. `label` names it in logs and traces.
    pub fn new(settings: ProgramSettings, label: &str) -> Self {
        Self { settings, label: label.into() }
    }

    /// Answers one request. Call this on an event loop.
    pub fn answer(self: &Rc<Self>, request: ProgramRequest<'_>) -> Answer {
        let ProgramRequest { head, origin, meta, file } = request;
        let Ok(mut block) = RequestBlock::encode(head, origin, &meta) else {
            return Answer::Now(Response::error(StatusCode::BAD_REQUEST));
        };
        block.add("REQUEST_SCHEME", if origin.secure { "https" } else { "http" });
        let outgoing = OutgoingRequest {
            block,
            file,
            is_head: head.method == Method::HEAD,
            client: address_key(origin.peer),
            steps: Rc::clone(origin.notes.steps()),
        };
        let programs = Rc::clone(self);
        Answer::later(move |body| programs.answer_later(outgoing, body))
    }

    async fn answer_later(self: Rc<Self>, request: OutgoingRequest, body: RequestBody) -> Response {
        match self.run(&request, body).await {
            Ok(response) => response,
            Err(failure) => {
                self.log(&request, &failure);
                failure.response()
            }
        }
    }

    async fn run(
        self: &Rc<Self>,
        request: &OutgoingRequest,
        mut body: RequestBody,
    ) -> Result<Response, ProgramFailure> {
        let client = body.client();
        let has_body = body.length() != BodyLength::None;
        let spooled = SpooledBody::read(&mut body, &self.settings.spool_directory).await?;
        let length = has_body.then(|| spooled.length());
        let queued = || request.steps.begin(StepKind::Queue, &self.label);
        let slot = self.settings.pool.slot(request.client, client.as_ref(), queued).await?;
        let own = &self.settings.environment;
        let variables = variables(&request.block, &request.file, length, own);
        let program = self.start(request, variables, spooled, slot).await?;
        let (programs, name) = (Rc::clone(self), program_name(request));
        let line = request.line();
        let cut = move |reason: &str| {
            programs.settings.pool.count_failure();
            let program = &*name;
            tracing::warn!(program, request = line, error = reason, "response was cut");
        };
        program.respond(request.is_head, client.as_ref(), cut).await
    }

    /// Starts the program on another thread, and lets this event loop watch it.
    async fn start(
        &self,
        request: &OutgoingRequest,
        variables: Variables,
        mut body: SpooledBody,
        slot: Slot,
    ) -> Result<RunningProgram, ProgramFailure> {
        let input = standard_input(&mut body).map_err(ProgramFailure::Input)?;
        let step = request.steps.begin(StepKind::Worker, &self.label);
        let command = ProgramCommand { file: request.file.clone(), variables, input };
        let started = tokio::task::spawn_blocking(move || command.start()).await;
        let started = started.unwrap_or_else(|error| Err(error.into()));
        let started = started.map_err(ProgramFailure::Start)?;
        step.set_peer(StepPeer::Process(started.id()));
        let (program, output, errors) = started.watch().map_err(ProgramFailure::Start)?;
        let errors = log_errors(errors, program_name(request));
        let errors = tokio::task::spawn_local(InRequest::of_current(errors));
        let keeper = keep(KeptProgram { program, slot, body, errors });
        let time = TimeLeft::new(self.settings.deadline);
        Ok(RunningProgram { output, time, keeper, _step: step })
    }

    fn log(&self, request: &OutgoingRequest, failure: &ProgramFailure) {
        if failure.is_of_program() {
            self.settings.pool.count_failure();
        }
        let (program, line) = (program_name(request), request.line());
        let (program, request) = (&*program, line.as_str());
        if failure.is_warning() {
            tracing::warn!(program, request, %failure, "request failed");
        } else {
            tracing::debug!(program, request, %failure, "request failed");
        }
    }
}

/// Returns the name of the program in the log.
fn program_name(request: &OutgoingRequest) -> Arc<str> {
    request.file.to_string_lossy().into()
}

impl OutgoingRequest {
    /// Returns method and target, for the log.
    fn line(&self) -> String {
        let value = |name| String::from_utf8_lossy(self.block.value(name).unwrap_or_default());
        format!("{} {}", value("REQUEST_METHOD"), value("REQUEST_URI"))
    }
}

#![forbid(unsafe_code)]
//! Application workers: Kirin's half of the worker protocol, the queue, and supervision.
//!
//! [`App::start`] starts an application's parent process and its supervisor. A route calls
//! [`App::answer`] for each request. `docs/worker-protocol.md` describes the protocol, and
//! `adapters/perl`, `adapters/python` and `adapters/ruby` implement the other half.
//!
//! The way of a request: `answer` encodes the head, kirin-http spools the body, `pool` finds a
//! worker, `exchange` sends the request and reads the response. `response_pump` reads a large body,
//! and `after_response` gives the worker back.

mod adapter;
mod after_response;
mod answer;
mod app;
mod app_code;
mod capacity;
mod config;
mod control;
mod counters;
mod current_request;
mod deadlines;
mod descriptor_message;
mod error;
mod event;
mod exchange;
mod generation;
mod greeting;
mod handed_file;
mod known_workers;
mod launch;
mod orphans;
mod parent;
mod parsed;
mod pool;
mod profile;
mod read_ahead;
mod replacement;
mod response_pump;
mod ring;
mod ring_exchange;
mod sampler;
mod slow_requests;
mod slow_watch;
mod stacks;
mod supervisor;
mod trial;
mod tunnel;
mod worker;
mod worker_handle;
mod worker_process;
mod worker_response;
mod worker_status;
mod worker_totals;

pub use app::{App, AppState};
pub use app_code::{AppCode, Language};
pub use config::{
    AppConfig, LoadedParent, MAX_SHARED_MEMORY_BYTES, MAX_WORKERS, ParentInvocation, Preload,
    TrialConfig, TrialDecision,
};
pub use counters::CounterValues;
pub use current_request::RunningRequest;
pub use error::AppError;
pub use kirin_cgi::{MetaVariables, User, is_given};
pub use profile::{MAX_PROFILE_HZ, MAX_PROFILE_TIME, Profile, ProfileError, ProfileOptions};
pub use ring::{RingStatus, SLOT_BYTES};
pub use slow_requests::SlowRequest;
pub use stacks::StackError;
pub use trial::{TrialEnd, TrialReport, TrialSide};
pub use worker_status::WorkerStatus;
pub use worker_totals::WorkerTotals;

/// The label of responses by applications.
pub const ANSWERED_BY: kirin_http::AnsweredBy = kirin_files::ANSWERED_BY_APP;

//! `/advise` of the admin listener: starts a run of `kirin advise`, and hands out its report.
//!
//! A run ends by itself after its time, so a client that has disconnected does not prolong it. The
//! last report is kept until the next run.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use http::{Method, StatusCode};
use kirin_advice::report::Report;
use kirin_advice::survey::Demands;
use kirin_gateway::filters::advise::sampling::{Run, Sampling, SamplingScope};
use kirin_gateway::routing::route_names::RouteNames;
use kirin_http::{Answer, RequestHead, Response};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use tokio::task::{spawn_blocking, spawn_local};
use tokio::time::sleep;

use crate::answers::{json, not_allowed, read, text};

/// The longest run in seconds.
pub const MAX_SECONDS: u64 = 3600;

/// The request of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StartRun {
    /// The length of the run.
    pub seconds: u64,
    /// The places to observe, such as `app:web`. None means all.
    #[serde(default)]
    pub places: Vec<String>,
    /// The labels of the sites to observe. `-` means the routes at the top level, and none means
    /// all sites.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sites: Vec<String>,
    /// The fewest visitors that an advice needs.
    #[serde(default = "visitors")]
    pub visitors: usize,
    /// The fewest addresses that an advice needs.
    #[serde(default = "visitors")]
    pub addresses: usize,
    /// The cookies that name sessions.
    #[serde(default)]
    pub sessions: Vec<String>,
}

/// The places that can be observed, and their configuration.
#[derive(Clone, Default)]
pub struct Observable {
    /// The places, such as `app:web`.
    pub places: Vec<String>,
    /// The names of the routes, by their numbers.
    pub route_names: Arc<RouteNames>,
    /// The cookies that name sessions.
    pub sessions: Vec<String>,
}

/// The word for routes at the top level.
const NO_SITE: &str = "-";

/// The state of a run, for its client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum RunState {
    /// None was started.
    None,
    /// It observes.
    On {
        /// The seconds that are left.
        seconds_left: u64,
        /// The requests so far.
        requests: u64,
    },
    /// It has ended, and its report is being made.
    Ending,
    /// It has ended.
    Done {
        /// The report.
        report: Box<Report>,
    },
}

/// The runs of this Kirin.
#[derive(Default)]
pub struct Runs {
    /// The switch that all event loops see.
    pub sampling: Arc<Sampling>,
    state: Mutex<LastRun>,
}

/// The run that was started last.
#[derive(Default)]
enum LastRun {
    #[default]
    None,
    On(Arc<Run>),
    Ending,
    Done(Box<Report>),
}

fn visitors() -> usize {
    Demands::default().visitors
}

fn site_word(label: &str) -> &str {
    if label.is_empty() { NO_SITE } else { label }
}

impl StartRun {
    /// Returns a message about the first value that is not allowed.
    pub fn check(&self, observable: &Observable) -> Result<(), String> {
        let places = &observable.places;
        if !(1..=MAX_SECONDS).contains(&self.seconds) {
            return Err(format!("seconds is {}; it must be 1 to {MAX_SECONDS}", self.seconds));
        }
        for (name, value, least) in
            [("visitors", self.visitors, visitors()), ("addresses", self.addresses, 1)]
        {
            if !(least..=8).contains(&value) {
                return Err(format!("{name} is {value}; it must be {least} to 8"));
            }
        }
        let labels: BTreeSet<&str> = observable.route_names.sites().map(site_word).collect();
        if let Some(site) = self.sites.iter().find(|site| !labels.contains(site.as_str())) {
            let labels = Vec::from_iter(labels).join(", ");
            return Err(format!("there is no site `{site}`; there is {labels}"));
        }
        match self.places.iter().find(|place| !places.contains(place)) {
            None => Ok(()),
            Some(place) if places.is_empty() => {
                Err(format!("there is no `{place}`: no application and no upstream is configured"))
            }
            Some(place) => Err(format!("there is no `{place}`; there is {}", places.join(", "))),
        }
    }
}

impl Runs {
    /// Answers a request for `/advise`.
    pub fn answer(self: &Arc<Self>, request: &RequestHead<'_>, observable: Observable) -> Answer {
        match request.method {
            Method::GET | Method::HEAD => Answer::Now(json(&serde_json::json!(self.state()))),
            Method::POST => {
                let runs = Arc::clone(self);
                Answer::later(move |body| async move {
                    let body = match read(body).await {
                        Ok(body) => body,
                        Err(status) => return Response::error(status),
                    };
                    match serde_json::from_slice::<StartRun>(&body) {
                        Ok(start) => runs.start(start, observable),
                        Err(error) => text(StatusCode::BAD_REQUEST, &format!("{error}\n")),
                    }
                })
            }
            Method::DELETE => {
                let runs = Arc::clone(self);
                Answer::later(move |_| async move {
                    let run = match &*runs.state.lock() {
                        LastRun::On(run) => Some(Arc::clone(run)),
                        _ => None,
                    };
                    if let Some(run) = run {
                        runs.end(&run).await;
                    }
                    json(&serde_json::json!(runs.state()))
                })
            }
            _ => Answer::Now(not_allowed("GET, HEAD, POST, DELETE")),
        }
    }

    fn start(self: &Arc<Self>, start: StartRun, observable: Observable) -> Response {
        if let Err(message) = start.check(&observable) {
            return text(StatusCode::BAD_REQUEST, &format!("{message}\n"));
        }
        let StartRun { seconds, places, sites, visitors, addresses, mut sessions } = start;
        let Observable { route_names, sessions: configured, .. } = observable;
        sessions.extend(configured);
        let label = |site: String| if site == NO_SITE { String::new() } else { site };
        let scope =
            SamplingScope { places, sites: sites.into_iter().map(label).collect(), route_names };
        let demands = Demands { visitors, addresses, sessions };
        let limit = Duration::from_secs(seconds);
        let run = {
            // The state changes together with the switch. The end of another run cannot come
            // between the two, and take this state away.
            let mut state = self.state.lock();
            if matches!(*state, LastRun::Ending) {
                return text(StatusCode::CONFLICT, "the report of the last run is being made\n");
            }
            match self.sampling.start(scope, demands, limit) {
                Ok(run) => {
                    *state = LastRun::On(Arc::clone(&run));
                    run
                }
                Err(error) => return text(StatusCode::CONFLICT, &format!("{error}\n")),
            }
        };
        tracing::info!(seconds, "advise: observing what applications and upstreams answer");
        let runs = Arc::clone(self);
        spawn_local(async move {
            sleep(limit).await;
            runs.end(&run).await;
        });
        json(&serde_json::json!(self.state()))
    }

    /// Ends a run that is in progress, and waits for its report. Another thread makes it.
    async fn end(self: &Arc<Self>, run: &Arc<Run>) {
        {
            let mut state = self.state.lock();
            if !self.sampling.end(run) {
                return;
            }
            *state = LastRun::Ending;
        }
        let (runs, run) = (Arc::clone(self), Arc::clone(run));
        // A task of its own keeps the report, because the client may go away before it is made.
        let made = spawn_local(async move {
            let report = spawn_blocking(move || run.report()).await;
            *runs.state.lock() = match report {
                Ok(report) => LastRun::Done(Box::new(report)),
                Err(error) => {
                    tracing::error!(%error, "advise: no report could be made");
                    LastRun::None
                }
            };
            tracing::info!("advise: the run has ended");
        });
        _ = made.await;
    }

    fn state(&self) -> RunState {
        match &*self.state.lock() {
            LastRun::None => RunState::None,
            LastRun::Ending => RunState::Ending,
            LastRun::Done(report) => RunState::Done { report: report.clone() },
            LastRun::On(run) => RunState::On {
                seconds_left: run.limit().saturating_sub(run.elapsed()).as_secs(),
                requests: run.totals().requests,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Waker};

    use tokio::runtime::Builder;
    use tokio::task::{LocalSet, yield_now};

    use super::*;
    use kirin_gateway::routing::route_names::RouteName;

    #[test]
    fn a_run_starts_when_the_last_one_has_its_report() {
        let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
        LocalSet::new().block_on(&runtime, async {
            let runs = Arc::new(Runs::default());
            let minute = || serde_json::from_str(r#"{"seconds": 60}"#).expect("a start");
            let start = || runs.start(minute(), Observable::default()).status;
            assert_eq!(start(), StatusCode::OK);
            assert_eq!(start(), StatusCode::CONFLICT);
            let run = runs.sampling.run().expect("a run is on");
            // The client that ends the run goes away at once.
            let mut end = Box::pin(runs.end(&run));
            assert!(end.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            drop(end);
            assert_eq!(start(), StatusCode::CONFLICT);
            while matches!(runs.state(), RunState::Ending) {
                yield_now().await;
            }
            assert!(matches!(runs.state(), RunState::Done { .. }), "{:?}", runs.state());
            assert_eq!(start(), StatusCode::OK);
            assert!(matches!(runs.state(), RunState::On { .. }), "{:?}", runs.state());
        });
    }

    #[test]
    fn a_run_has_checked_limits() {
        let name =
            |site: &str| RouteName { site: site.into(), path: "/".into(), route: "/".into() };
        let observable = Observable {
            places: vec!["app:web".to_owned()],
            route_names: Arc::new((0..).zip(["", "wiki", "wiki"].map(name)).collect()),
            sessions: Vec::new(),
        };
        let start = |json: &str| serde_json::from_str::<StartRun>(json).expect(json);
        assert_eq!(start(r#"{"seconds": 60}"#).check(&observable), Ok(()));
        let good = r#"{"seconds": 60, "places": ["app:web"], "sites": ["wiki", "-"],
                       "addresses": 1, "visitors": 5}"#;
        assert_eq!(start(good).check(&observable), Ok(()));
        for (json, part) in [
            (r#"{"seconds": 0}"#, "1 to 3600"),
            (r#"{"seconds": 3601}"#, "1 to 3600"),
            (r#"{"seconds": 1, "visitors": 2}"#, "3 to 8"),
            (r#"{"seconds": 1, "addresses": 0}"#, "1 to 8"),
            (r#"{"seconds": 1, "places": ["app:x"]}"#, "there is app:web"),
            (r#"{"seconds": 1, "sites": ["git"]}"#, "no site `git`; there is -, wiki"),
        ] {
            let error = start(json).check(&observable).expect_err(json);
            assert!(error.contains(part), "{json}: {error}");
        }
        assert!(serde_json::from_str::<StartRun>(r#"{"seconds": 1, "x": 1}"#).is_err());
    }
}

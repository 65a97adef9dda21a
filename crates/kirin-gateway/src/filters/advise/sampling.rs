//! The run of `kirin advise`, which all event loops share.

use std::collections::BTreeMap;
use std::hash::RandomState;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use kirin_advice::observation::{AdvisedRoute, Observation};
use kirin_advice::report::{self, Report, RouteFacts};
use kirin_advice::survey::{Demands, Survey, Totals};
use kirin_store::Namespace;
use parking_lot::Mutex;

use crate::routing::route_names::RouteNames;

/// The run of `kirin advise`, if one is in progress.
#[derive(Default)]
pub struct Sampling {
    is_on: AtomicBool,
    run: Mutex<Option<Arc<Run>>>,
}

/// A run.
pub struct Run {
    /// The key of all hashes. No other run has it.
    pub key: RandomState,
    scope: SamplingScope,
    demands: Demands,
    began: Instant,
    limit: Duration,
    observed: Mutex<ObservedRun>,
}

/// The answers that a run observes.
#[derive(Clone, Debug, Default)]
pub struct SamplingScope {
    /// The places, such as `app:web`. Empty: all.
    pub places: Vec<String>,
    /// The labels of the sites. An empty label stands for routes at the top level. Empty: all.
    pub sites: Vec<String>,
    /// The names of the routes, by their numbers.
    pub route_names: Arc<RouteNames>,
}

/// The answers that a run has observed.
#[derive(Default)]
struct ObservedRun {
    survey: Survey,
    routes: BTreeMap<u32, RouteFacts>,
}

/// The route of an answer. It is cheap to make for each request.
#[derive(Clone)]
pub struct ObservedRoute {
    /// The route without the name of its site.
    pub route: Arc<AdvisedRoute>,
    /// The part of the store that belongs to the site.
    pub namespace: Namespace,
    /// Whether this request had to pass a condition about its client.
    pub is_protected: bool,
}

/// Another run is in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a run is on already")]
pub struct AlreadyOn;

impl Sampling {
    /// Returns whether a run is in progress.
    pub fn is_on(&self) -> bool {
        self.is_on.load(Ordering::Relaxed)
    }

    /// Starts a run. It ends after `limit` at the latest, and takes no answer after that.
    pub fn start(
        &self,
        scope: SamplingScope,
        demands: Demands,
        limit: Duration,
    ) -> Result<Arc<Run>, AlreadyOn> {
        let mut run = self.run.lock();
        if run.is_some() {
            return Err(AlreadyOn);
        }
        let started = Arc::new(Run {
            key: RandomState::new(),
            scope,
            demands,
            began: Instant::now(),
            limit,
            observed: Mutex::default(),
        });
        *run = Some(Arc::clone(&started));
        self.is_on.store(true, Ordering::Relaxed);
        Ok(started)
    }

    /// Ends this run, if it is in progress. Returns whether it was.
    pub fn end(&self, run: &Arc<Run>) -> bool {
        let mut present = self.run.lock();
        let is_on = present.as_ref().is_some_and(|present| Arc::ptr_eq(present, run));
        if is_on {
            self.is_on.store(false, Ordering::Relaxed);
            *present = None;
        }
        is_on
    }

    /// Returns the run that is in progress.
    pub fn run(&self) -> Option<Arc<Run>> {
        self.run.lock().clone()
    }
}

impl Run {
    /// Returns whether it observes a place of the route with this number now.
    pub fn observes(&self, place: &str, route: u32) -> bool {
        let SamplingScope { places, sites, .. } = &self.scope;
        self.began.elapsed() < self.limit
            && (places.is_empty() || places.iter().any(|name| name == place))
            && (sites.is_empty() || sites.iter().any(|site| site == self.site_of(route)))
    }

    /// Returns the label of the site of a route.
    fn site_of(&self, route: u32) -> &str {
        self.scope.route_names.get(route).map_or("", |name| &name.site)
    }

    /// Returns the time since its start.
    pub fn elapsed(&self) -> Duration {
        self.began.elapsed()
    }

    /// Returns how long it lasts at most.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Returns the time from its start to `moment`.
    pub fn time_of(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.began)
    }

    /// Adds an answer of a route.
    pub fn add(&self, observation: Observation, route: &ObservedRoute) {
        let mut observed = self.observed.lock();
        // One number may stand for several parts of the store; the first one names the route. One
        // request that had to pass a condition protects all of it.
        let number = observation.target.route;
        let facts = observed.routes.entry(number);
        let facts = facts.or_insert_with(|| route.facts(self.site_of(number)));
        facts.is_protected |= route.is_protected;
        observed.survey.add(observation);
    }

    /// Returns the counts so far.
    pub fn totals(&self) -> Totals {
        self.observed.lock().survey.totals()
    }

    /// Returns the report, and forgets what was observed. It takes some time with many pages.
    pub fn report(&self) -> Report {
        let ObservedRun { survey, routes } = std::mem::take(&mut *self.observed.lock());
        let seconds = self.elapsed().min(self.limit).as_secs_f64();
        report::report(&survey, &self.demands, &routes, seconds)
    }
}

impl ObservedRoute {
    fn facts(&self, label: &str) -> RouteFacts {
        let site = self.namespace.name().to_owned();
        let route = AdvisedRoute { site, ..AdvisedRoute::clone(&self.route) };
        RouteFacts { route, site: label.to_owned(), is_protected: self.is_protected }
    }
}

#[cfg(test)]
mod tests {
    use kirin_advice::observation::ObservedTarget;
    use kirin_advice::verdict::{PageVerdict, Reason};

    use super::*;
    use crate::routing::route_names::RouteName;

    #[test]
    fn one_request_that_had_to_pass_a_condition_protects_its_route() {
        for order in [[true, false], [false, true]] {
            let sampling = Sampling::default();
            let demands = Demands::default();
            let run = sampling
                .start(SamplingScope::default(), demands, Duration::MAX)
                .expect("no run is on");
            for is_protected in order {
                let route = ObservedRoute {
                    route: Arc::default(),
                    namespace: Namespace::default(),
                    is_protected,
                };
                let target = ObservedTarget { is_read: true, ..ObservedTarget::default() };
                let answer = Observation { target, status: 200, ..Observation::default() };
                run.add(answer, &route);
            }
            let report = run.report();
            let PageVerdict::Unsafe { reasons } = &report.entries[0].verdict else {
                panic!("{order:?}: {report:?}")
            };
            assert_eq!(reasons[..], [Reason::Protected], "{order:?}");
        }
    }

    #[test]
    fn one_run_is_on_at_a_time_and_ends_by_itself() {
        let sampling = Sampling::default();
        assert!(!sampling.is_on() && sampling.run().is_none());
        let name =
            |site: &str| RouteName { site: site.into(), path: "/".into(), route: "/".into() };
        let names = (0..).zip(["wiki", "", "git"].map(name));
        let scope = SamplingScope {
            places: vec!["app:web".into()],
            sites: vec!["wiki".into(), String::new()],
            route_names: Arc::new(names.collect()),
        };
        let start = |limit| sampling.start(scope.clone(), Demands::default(), limit);
        let run = start(Duration::from_secs(60)).expect("no run is on");
        assert!(sampling.is_on() && run.observes("app:web", 0) && !run.observes("app:other", 0));
        assert!(run.observes("app:web", 1) && !run.observes("app:web", 2));
        assert_eq!(start(Duration::ZERO).err(), Some(AlreadyOn));
        assert!(sampling.end(&run) && !sampling.end(&run));
        let over = start(Duration::ZERO).expect("no run is on");
        assert!(!over.observes("app:web", 0));
        // The end of an old run does not end another one.
        assert!(!sampling.end(&run) && sampling.is_on());
        assert!(sampling.end(&over) && !sampling.is_on());
    }
}

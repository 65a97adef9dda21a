//! Counts the requests of one event loop.

use std::cell::RefCell;
use std::sync::Arc;
use std::time::Instant;

use kirin_gateway::routing::route_names::RouteNames;
use kirin_http::{RequestSteps, StepKind};
use kirin_metrics::{Histogram, SeriesTable};
use kirin_server::{EndedRequest, RequestObserver};
use kirin_workers::App;

use crate::metrics::counters::{
    LoopCounters, RequestLabels, RequestSeries, StatusClass, StepLabels, TimedStep,
};

/// The observer of one event loop.
pub struct RequestMetrics {
    requests: SeriesTable<RequestLabels, RequestSeries>,
    steps: SeriesTable<StepLabels, Histogram>,
    /// The names of the applications. An upstream may have the same name, but not the same `Arc`.
    apps: RefCell<Vec<Arc<str>>>,
}

impl RequestMetrics {
    /// Returns the observer that counts in `counters`.
    pub fn new<'a>(counters: &LoopCounters, apps: impl Iterator<Item = &'a Arc<App>>) -> Self {
        Self {
            requests: SeriesTable::new(Arc::clone(&counters.requests)),
            steps: SeriesTable::new(Arc::clone(&counters.steps)),
            apps: RefCell::new(labels(apps)),
        }
    }

    /// Knows these applications from now on: those of the present configuration, and those of the
    /// one before, of which requests are in progress.
    pub fn set_apps<'a>(&self, apps: impl Iterator<Item = &'a Arc<App>>) {
        self.apps.replace(labels(apps));
    }

    /// Forgets the requests of routes that are in neither of two configurations, of which one
    /// follows the other.
    pub fn forget_other_routes(&self, before: &RouteNames, after: &RouteNames) {
        let is_known = |route| before.get(route).is_some() || after.get(route).is_some();
        self.requests.retain(|labels| labels.route.is_none_or(is_known));
    }

    /// Counts the steps that belong to an application or an upstream, and those of included parts.
    fn count_steps(&self, steps: &RequestSteps, ended: Instant) {
        steps.with(|steps| {
            for step in steps {
                let kind = match step.kind {
                    StepKind::Worker => TimedStep::App,
                    StepKind::Upstream => TimedStep::Upstream,
                    StepKind::Queue if self.is_app(&step.name) => TimedStep::AppQueue,
                    StepKind::Queue => TimedStep::UpstreamQueue,
                    StepKind::Fetch | StepKind::Include => {
                        if let Some(parts) = &step.parts {
                            self.count_steps(parts, ended);
                        }
                        continue;
                    }
                };
                let labels = StepLabels { kind, name: Arc::clone(&step.name) };
                self.steps.with(&labels, |histogram| histogram.observe(step.took(ended)));
            }
        });
    }

    fn is_app(&self, name: &Arc<str>) -> bool {
        self.apps.borrow().iter().any(|app| Arc::ptr_eq(app, name))
    }
}

fn labels<'a>(apps: impl Iterator<Item = &'a Arc<App>>) -> Vec<Arc<str>> {
    apps.map(|app| Arc::clone(app.label())).collect()
}

impl RequestObserver for RequestMetrics {
    fn request_ended(&self, request: &EndedRequest<'_>) {
        let labels = RequestLabels {
            route: request.route.number,
            place: request.place(),
            class: StatusClass::of(request.status),
        };
        self.requests.with(&labels, |series| {
            series.duration.observe(request.took);
            series.request_bytes.add_many(request.received_bytes);
            series.response_bytes.add_many(request.body_bytes);
            if request.is_cut {
                series.cut.add();
            }
        });
        if let Some(steps) = request.steps {
            self.count_steps(steps, request.started + request.took);
        }
    }
}

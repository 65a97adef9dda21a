//! Learns about the requests of one event loop, and queues the spans of those that are sampled.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use kirin_http::RequestIds;
use kirin_server::{EndedRequest, RequestObserver};

use crate::exporter::TraceExporter;
use crate::spans::{ClockReading, request_spans};

/// The observer of one event loop.
pub struct TraceObserver {
    exporter: TraceExporter,
    /// The paths of the routes as configured, by their numbers.
    routes: Arc<HashMap<u32, String>>,
    ids: RequestIds,
}

impl TraceObserver {
    /// Returns an observer that queues spans in `exporter`.
    pub fn new(exporter: TraceExporter, routes: Arc<HashMap<u32, String>>) -> Rc<Self> {
        Rc::new(Self { exporter, routes, ids: RequestIds::default() })
    }
}

impl RequestObserver for TraceObserver {
    fn request_ended(&self, request: &EndedRequest<'_>) {
        let Some(trace) = request.trace.filter(|trace| trace.is_sampled) else { return };
        let clock = ClockReading { instant: Instant::now(), time: SystemTime::now() };
        let route = request.route.number.and_then(|number| self.routes.get(&number));
        let mut export = |span| self.exporter.export(span);
        let next_id = || self.ids.next_half();
        request_spans(request, trace, route.map(String::as_str), clock, next_id, &mut export);
    }
}

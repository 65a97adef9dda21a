//! The spans of a request: one for the request, and one for each of its steps. Pure: time and ids
//! are arguments.
//!
//! Names and attributes are those of the semantic conventions for HTTP. A query may have secrets,
//! so it is left out.

use std::borrow::Cow;
use std::time::{Instant, SystemTime};

use kirin_http::request_steps::Step;
use kirin_http::{RequestId, RequestSteps, StepKind, StepPeer, TraceContext};
use kirin_server::EndedRequest;
use opentelemetry::trace::{
    SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState,
};
use opentelemetry::{InstrumentationScope, KeyValue, Value};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

/// One moment on the two clocks, by which the times of a request are converted.
#[derive(Clone, Copy, Debug)]
pub struct ClockReading {
    /// The moment on the clock that nobody sets.
    pub instant: Instant,
    /// The same moment on the wall clock.
    pub time: SystemTime,
}

impl ClockReading {
    fn time_of(self, moment: Instant) -> SystemTime {
        self.time - self.instant.saturating_duration_since(moment)
    }
}

/// Makes the spans of a request, and calls `export` with each. `route` is the path of its route.
pub fn request_spans(
    request: &EndedRequest<'_>,
    trace: TraceContext,
    route: Option<&str>,
    clock: ClockReading,
    next_id: impl Fn() -> u64,
    export: &mut impl FnMut(SpanData),
) {
    let name = match route {
        Some(route) => format!("{} {route}", request.method),
        None => request.method.to_string(),
    };
    let path = request.target.split('?').next().unwrap_or_default();
    let mut attributes = vec![
        KeyValue::new("http.request.method", request.method.to_string()),
        KeyValue::new("url.path", path.to_owned()),
        KeyValue::new("server.address", request.host.to_owned()),
        KeyValue::new("http.response.status_code", i64::from(request.status.as_u16())),
        KeyValue::new("http.response.body.size", whole(request.body_bytes)),
        KeyValue::new("kirin.place", request.answered_by.name()),
    ];
    attributes.extend(route.map(|route| KeyValue::new("http.route", route.to_owned())));
    let cache = request.cache_result.map(|result| KeyValue::new("kirin.cache", result.name()));
    attributes.extend(cache);
    attributes.extend(request.is_cut.then(|| KeyValue::new("kirin.cut", true)));
    if let RequestId::Taken(id) = request.id {
        attributes.push(KeyValue::new("kirin.request_id", id.to_string()));
    }
    let ids = Ids { trace, span: trace.span_id, parent: trace.parent };
    let is_failure = request.status.is_server_error();
    let times = (request.started, request.started + request.took);
    let span = span(ids, SpanKind::Server, name.into(), times, attributes, clock);
    export(SpanData {
        parent_span_is_remote: true,
        status: if is_failure { Status::error("") } else { Status::Unset },
        ..span
    });
    if let Some(steps) = request.steps {
        step_spans(steps, trace, trace.span_id, clock, &next_id, export);
    }
}

/// Makes the spans of steps below the span `parent`.
fn step_spans(
    steps: &RequestSteps,
    trace: TraceContext,
    parent: u64,
    clock: ClockReading,
    next_id: &impl Fn() -> u64,
    export: &mut impl FnMut(SpanData),
) {
    steps.with(|steps| {
        for step in steps {
            let ids = Ids { trace, span: next_id().max(1), parent: Some(parent) };
            let kind = match step.kind {
                StepKind::Worker | StepKind::Upstream => SpanKind::Client,
                StepKind::Queue | StepKind::Fetch | StepKind::Include => SpanKind::Internal,
            };
            let name = format!("{} {}", step.kind.name(), step.name);
            let times = (step.started, step.end(clock.instant));
            export(span(ids, kind, name.into(), times, peer_attributes(step), clock));
            if let Some(parts) = &step.parts {
                step_spans(parts, trace, ids.span, clock, next_id, export);
            }
        }
    });
}

fn peer_attributes(step: &Step) -> Vec<KeyValue> {
    match &step.peer {
        Some(StepPeer::Process(pid)) => vec![KeyValue::new("process.pid", i64::from(*pid))],
        Some(StepPeer::Server(address)) => {
            vec![KeyValue::new("server.address", Value::from(address.to_string()))]
        }
        None => Vec::new(),
    }
}

/// The ids of one span.
#[derive(Clone, Copy)]
struct Ids {
    trace: TraceContext,
    span: u64,
    parent: Option<u64>,
}

fn span(
    ids: Ids,
    span_kind: SpanKind,
    name: Cow<'static, str>,
    (started, ended): (Instant, Instant),
    attributes: Vec<KeyValue>,
    clock: ClockReading,
) -> SpanData {
    SpanData {
        span_context: SpanContext::new(
            TraceId::from(ids.trace.trace_id),
            SpanId::from(ids.span),
            TraceFlags::SAMPLED,
            false,
            TraceState::default(),
        ),
        parent_span_id: ids.parent.map_or(SpanId::INVALID, SpanId::from),
        parent_span_is_remote: false,
        span_kind,
        name,
        start_time: clock.time_of(started),
        end_time: clock.time_of(ended),
        attributes,
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::builder("kirin")
            .with_version(env!("CARGO_PKG_VERSION"))
            .build(),
    }
}

fn whole(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::rc::Rc;
    use std::time::Duration;

    use kirin_http::{AnsweredBy, CacheResult, Method, RouteNote, StatusCode};

    #[test]
    fn the_parts_of_a_page_are_child_spans_of_its_span() {
        let (page, part) = (Rc::<RequestSteps>::default(), Rc::<RequestSteps>::default());
        let started = Instant::now();
        drop(page.begin(StepKind::Queue, &"web".into()));
        let worker = part.begin(StepKind::Worker, &"web".into());
        worker.set_peer(StepPeer::Process(17));
        drop(worker);
        page.add_part("/part".into(), started, part);
        let trace = TraceContext { trace_id: 1, span_id: 2, parent: Some(3), is_sampled: true };
        let request = EndedRequest {
            id: &RequestId::Taken("front-1".into()),
            trace: Some(trace),
            host: "example.org",
            method: &Method::GET,
            target: "/page?secret=1",
            route: RouteNote::default(),
            cache_result: Some(CacheResult::Miss),
            steps: Some(&page),
            status: StatusCode::BAD_GATEWAY,
            answered_by: AnsweredBy::SERVER,
            body_bytes: 5,
            received_bytes: 0,
            is_cut: false,
            started,
            took: Duration::from_millis(7),
        };
        let (mut spans, count) = (Vec::new(), Cell::new(100));
        let next_id = || count.replace(count.get() + 1);
        let clock = ClockReading { instant: started + request.took, time: SystemTime::now() };
        let mut export = |span| spans.push(span);
        request_spans(&request, trace, Some("/page"), clock, next_id, &mut export);
        let told: Vec<_> = spans
            .iter()
            .map(|span| (&*span.name, span.parent_span_id, span.span_context.span_id()))
            .collect();
        let id = |number: u64| SpanId::from(number);
        assert_eq!(
            told,
            [
                ("GET /page", id(3), id(2)),
                ("queue web", id(2), id(100)),
                ("include /part", id(2), id(101)),
                ("worker web", id(101), id(102)),
            ]
        );
        let took = spans[0].end_time.duration_since(spans[0].start_time);
        assert_eq!(took.ok(), Some(Duration::from_millis(7)));
        assert!(spans.iter().all(|span| span.end_time >= span.start_time));
        assert_eq!(spans[0].status, Status::error(""));
        let text = format!("{:?}", spans[0].attributes);
        assert!(!text.contains("secret") && text.contains("front-1"), "{text}");
    }
}

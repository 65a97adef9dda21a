//! The watch over requests that take longer than `slow`: each is logged with the stack of its
//! worker, and goes on.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use tokio::time::timeout;

use crate::app::App;
use crate::exchange::WorkerRequest;
use crate::slow_requests::{MAX_CALLS, MAX_TEXT_BYTES, SlowRequest, shortened};
use crate::stacks::StackError;
use crate::worker_handle::WorkerHandle;

/// Waits for `exchange`. If the worker that `who` returns has had the request for longer than
/// `limit`, its stack is logged and kept, once. `who` returns `None` while no worker has it.
pub(crate) async fn watch<T>(
    app: &Arc<App>,
    request: &WorkerRequest,
    limit: Duration,
    who: impl Fn() -> Option<(Arc<WorkerHandle>, Instant)>,
    exchange: impl Future<Output = T>,
) -> T {
    let mut exchange = pin!(exchange);
    let mut wait = limit;
    let (worker, begun) = loop {
        if let Ok(result) = timeout(wait, exchange.as_mut()).await {
            return result;
        }
        wait = match who() {
            Some((worker, begun)) if begun.elapsed() >= limit => break (worker, begun),
            Some((_, begun)) => limit.saturating_sub(begun.elapsed()),
            None => limit,
        };
    };
    let pid = worker.pid;
    // The kernel may have to read pages of the worker from the disk.
    let mut reading = {
        let app = Arc::clone(app);
        tokio::task::spawn_blocking(move || app.stack_reader(&worker.process)?.read())
    };
    let mut result = None;
    let stack = loop {
        tokio::select! {
            stack = &mut reading => break stack.unwrap_or(Err(StackError::NoStack)),
            early = exchange.as_mut(), if result.is_none() => result = Some(early),
        }
    };
    let number = app.slow.keep(record(app, pid, request, begun.elapsed(), stack));
    let result = match result {
        Some(result) => result,
        None => exchange.await,
    };
    app.slow.end(number, begun.elapsed());
    result
}

/// Logs a slow request. Returns what is kept of it.
fn record(
    app: &App,
    pid: u32,
    request: &WorkerRequest,
    elapsed: Duration,
    stack: Result<Vec<Arc<str>>, StackError>,
) -> SlowRequest {
    let value = |name| {
        let value = request.block.value(name).unwrap_or_default();
        String::from_utf8_lossy(value).into_owned()
    };
    let uri = value("REQUEST_URI");
    let (path, query) = match uri.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (uri.as_str(), None),
    };
    let mut slow = SlowRequest {
        time: SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs(),
        method: shortened(&value("REQUEST_METHOD")).to_owned(),
        host: shortened(&value("HTTP_HOST")).to_owned(),
        path: shortened(path).to_owned(),
        query: query.map(|query| shortened(query).to_owned()),
        elapsed,
        pid,
        stack: Vec::new(),
    };
    let mut lines = String::new();
    match stack {
        Ok(stack) => {
            slow.stack = stack
                .iter()
                .rev()
                .take(MAX_CALLS)
                .map(|call| {
                    if call.len() <= MAX_TEXT_BYTES {
                        Arc::clone(call)
                    } else {
                        shortened(call).into()
                    }
                })
                .collect();
            for call in &slow.stack {
                lines.push_str("\n\t");
                lines.push_str(call);
            }
            if slow.stack.is_empty() {
                lines.push_str("none, because it has just ended");
            }
        }
        Err(error) => lines = format!("not read: {error}"),
    }
    app.counters.slow.add(1);
    // The log has no query, which may have secrets.
    tracing::warn!(
        app = app.name(),
        pid,
        elapsed_ms = elapsed.as_millis() as u64,
        request = format!("{} {}", slow.method, slow.path),
        stack = %lines,
        "request is slow"
    );
    slow
}

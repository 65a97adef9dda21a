//! The HTTP client of the exporter. It blocks the exporter's own thread and no other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};

/// The largest answer of a collector that is read, in bytes. It has at most a short message.
const ANSWER_LIMIT_BYTES: u64 = 64 * 1024;

/// Sends requests to the collector, and logs when it cannot be reached.
#[derive(Debug)]
pub struct CollectorClient {
    agent: ureq::Agent,
    is_failing: AtomicBool,
}

impl CollectorClient {
    /// Returns a client that waits at most `limit` for one answer.
    pub fn new(limit: Duration) -> Self {
        let tls = ureq::tls::TlsConfig::builder()
            .unversioned_rustls_crypto_provider(rustls::crypto::ring::default_provider().into())
            .build();
        let config = ureq::Agent::config_builder()
            .timeout_global(Some(limit))
            .http_status_as_error(false)
            .max_redirects(0)
            .tls_config(tls)
            .build();
        Self { agent: config.into(), is_failing: AtomicBool::new(false) }
    }

    fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, ureq::Error> {
        let (parts, body) = request.into_parts();
        let answer = self.agent.run(Request::from_parts(parts, &body[..]))?;
        let (parts, mut body) = answer.into_parts();
        let body = body.with_config().limit(ANSWER_LIMIT_BYTES).read_to_vec()?;
        Ok(Response::from_parts(parts, body.into()))
    }

    /// Logs the first failure, and the end of failing.
    fn log(&self, failure: Option<String>) {
        let was_failing = self.is_failing.swap(failure.is_some(), Ordering::Relaxed);
        match failure {
            Some(failure) if !was_failing => {
                tracing::warn!(failure, "traces cannot be exported; spans are lost until they can");
            }
            None if was_failing => tracing::info!("traces are exported again"),
            _ => {}
        }
    }
}

#[async_trait]
impl HttpClient for CollectorClient {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let answer = self.send(request);
        self.log(match &answer {
            Ok(answer) if answer.status().is_success() => None,
            Ok(answer) => Some(format!("the collector answers {}", answer.status())),
            Err(error) => Some(error.to_string()),
        });
        Ok(answer?)
    }
}

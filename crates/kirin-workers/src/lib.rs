#![forbid(unsafe_code)]
//! local compile stub, never committed
#![allow(missing_docs)]
use std::{collections::BTreeMap, path::PathBuf, sync::Arc, time::Duration};
#[derive(Default)]
pub struct AppConfig {
    pub name: String,
    pub load: PathBuf,
    pub directory: PathBuf,
    pub workers: usize,
    pub env: BTreeMap<String, String>,
    pub queue_length: usize,
    pub queue_wait: Duration,
    pub request_deadline: Duration,
    pub start_limit: Duration,
    pub max_requests: u64,
    pub body_limit_bytes: u64,
    pub sendfile_roots: Vec<PathBuf>,
}
#[derive(Debug, thiserror::Error)]
#[error("x")]
pub struct AppError;
pub struct App {
    name: String,
}
impl App {
    pub fn new(c: AppConfig) -> Arc<Self> {
        Arc::new(Self { name: c.name })
    }
    pub async fn supervise(self: Arc<Self>, _: Vec<tokio::runtime::Handle>) {}
    pub async fn ready(&self) -> Result<(), AppError> {
        Ok(())
    }
    pub async fn stop(&self) {}
    pub fn name(&self) -> &str {
        &self.name
    }
    pub fn answer(
        self: &Arc<Self>,
        _: &kirin_http::RequestHead<'_>,
        _: kirin_http::Origin<'_>,
    ) -> kirin_http::Answer {
        kirin_http::Answer::Now(kirin_http::Response::error(kirin_http::StatusCode::BAD_GATEWAY))
    }
}

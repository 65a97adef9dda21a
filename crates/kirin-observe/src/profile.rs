//! `POST /profile`: a profile of an application, for `kirin profile`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http::StatusCode;
use kirin_http::{Answer, RequestHead, Response};
use kirin_workers::{App, MAX_PROFILE_HZ, MAX_PROFILE_TIME, Profile, ProfileError, ProfileOptions};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::answers::{json, read, refusal_of_body, text};

/// The body of `POST /profile`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Question {
    /// The name of the application. Default: the only one.
    pub app: Option<String>,
    /// The duration of the profile.
    pub seconds: u64,
    /// The number of times that the stacks are read in a second.
    #[serde(default = "default_hz")]
    pub hz: u32,
}

/// The answer to `POST /profile`.
#[derive(Debug, Serialize, Deserialize)]
pub struct ProfileAnswer {
    /// The name of the application.
    pub app: String,
    /// The number of times that all stacks were read.
    pub ticks: u64,
    /// The number of stacks of requests that were read.
    pub samples: u64,
    /// The number of stacks of requests that could not be read.
    pub missed: u64,
    /// The number of workers that had a request.
    pub workers: usize,
    /// The folded stacks with their numbers of samples, the most frequent first.
    pub stacks: Vec<(String, u64)>,
}

fn default_hz() -> u32 {
    100
}

/// Answers `kirin profile`.
pub fn answer(apps: &[Arc<App>], request: &RequestHead<'_>) -> Answer {
    if let Some(refusal) = refusal_of_body(request) {
        return Answer::Now(refusal);
    }
    let apps = apps.to_vec();
    Answer::later(move |body| async move {
        let client = body.client();
        let body = match read(body).await {
            Ok(body) => body,
            Err(status) => return Response::error(status),
        };
        // Dropping the profile ends it.
        let result = match client {
            None => profile(&apps, &body).await,
            Some(client) => tokio::select! {
                biased;
                result = profile(&apps, &body) => result,
                () = client.gone() => return Response::error(Response::client_gone_status()),
            },
        };
        match result {
            Ok(answer) => json(&json!(answer)),
            Err((status, message)) => text(status, &format!("{message}\n")),
        }
    })
}

/// The reason why there is no profile: the status and the message.
type ProfileRefusal = (StatusCode, String);

async fn profile(apps: &[Arc<App>], body: &[u8]) -> Result<ProfileAnswer, ProfileRefusal> {
    let bad = |message: String| (StatusCode::BAD_REQUEST, message);
    let question: Question =
        serde_json::from_slice(body).map_err(|error| bad(error.to_string()))?;
    let time = Duration::from_secs(question.seconds);
    if time.is_zero() || time > MAX_PROFILE_TIME {
        return Err(bad(format!("`seconds` is from 1 to {}", MAX_PROFILE_TIME.as_secs())));
    }
    if !(1..=MAX_PROFILE_HZ).contains(&question.hz) {
        return Err(bad(format!("`hz` is from 1 to {MAX_PROFILE_HZ}")));
    }
    let app = Arc::clone(find(apps, question.app.as_deref())?);
    let name = app.name().to_owned();
    let cancelled = CancelOnDrop::default();
    let flag = Arc::clone(&cancelled.0);
    let options = ProfileOptions { time, hz: question.hz };
    let profile = tokio::task::spawn_blocking(move || app.profile(options, &flag)).await;
    match profile {
        Ok(Ok(Profile { ticks, samples, missed, workers, stacks })) => {
            Ok(ProfileAnswer { app: name, ticks, samples, missed, workers, stacks })
        }
        Ok(Err(error @ ProfileError::Running { .. })) => {
            Err((StatusCode::CONFLICT, error.to_string()))
        }
        Ok(Err(error @ ProfileError::Unreadable { .. })) => {
            Err((StatusCode::NOT_IMPLEMENTED, error.to_string()))
        }
        Err(error) => Err((StatusCode::INTERNAL_SERVER_ERROR, error.to_string())),
    }
}

/// Returns the application with this name, or the only one.
fn find<'a>(apps: &'a [Arc<App>], name: Option<&str>) -> Result<&'a Arc<App>, ProfileRefusal> {
    let names: Vec<String> = apps.iter().map(|app| format!("`{}`", app.name())).collect();
    let message = match (apps, name) {
        ([app], None) => return Ok(app),
        ([], _) => "there is no application".into(),
        (_, None) => format!("say which application: {}", names.join(", ")),
        (_, Some(name)) => match apps.iter().find(|app| app.name() == name) {
            Some(app) => return Ok(app),
            None => format!("there is no app `{name}`, but {}", names.join(", ")),
        },
    };
    Err((StatusCode::NOT_FOUND, message))
}

/// A flag that becomes true when this is dropped.
#[derive(Default)]
struct CancelOnDrop(Arc<AtomicBool>);

impl Drop for CancelOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

//! The answers about all machines with the same origin, and those about this one that name or count
//! the others.

use std::sync::Arc;

use http::StatusCode;
use kirin_gateway::purge::command::Purged;
use kirin_http::{Answer, AnsweredBy, Body, Response};
use kirin_observe::answers::{json, text};
use kirin_observe::machines::announcing::count_machines;
use kirin_observe::machines::question::MachineQuestion;
use kirin_observe::status;
use kirin_origin::NearStore;
use serde_json::{Value, json};

use crate::admin::AdminParts;

/// The answer of a Kirin that has no others.
const NO_ORIGIN: &str = "this Kirin knows no other machines: its [store] has no `origin`\n";

/// Answers `GET /status`. With an origin it has the names of the machines, if the origin answers
/// soon.
pub fn status(parts: &AdminParts) -> Answer {
    let mut status = status::status(&parts.observed);
    let Some(machines) = parts.machines.clone() else { return Answer::Now(json(&status)) };
    Answer::later(move |_| async move {
        status["machines"] = json!(machines.names().await);
        json(&status)
    })
}

/// Answers `GET /machines/status` and `GET /machines/top`.
pub fn all(parts: &AdminParts, question: MachineQuestion) -> Answer {
    let Some(machines) = parts.machines.clone() else {
        return Answer::Now(text(StatusCode::CONFLICT, NO_ORIGIN));
    };
    Answer::later(move |_| async move {
        match machines.ask(question).await {
            Ok(answers) => answered(&answers),
            Err(error) => text(StatusCode::SERVICE_UNAVAILABLE, &format!("{error}\n")),
        }
    })
}

/// Returns the answer to a purge: how many names were found, and for how many machines it holds. It
/// is one write at the origin, of which all of them hear.
pub async fn purged(purged: &Purged, near: &NearStore) -> Value {
    let mut answer = json!(purged);
    if let Some(origin) = near.origin()
        && let Some(count) = count_machines(origin).await
    {
        answer["machines"] = count.into();
    }
    answer
}

fn answered(answers: &Arc<str>) -> Response {
    let body = Body::from(answers.as_bytes().to_vec());
    let mut response = Response::new(AnsweredBy::SERVER, StatusCode::OK, body);
    response.fields.push("Content-Type", "application/json");
    response.fields.push("Cache-Control", "no-store");
    response
}

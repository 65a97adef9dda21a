//! The values of a line that are known when the response has ended.

use std::io::Write;
use std::time::Duration;

use http::StatusCode;
use kirin_http::request_steps::{RequestSteps, StepKind, StepPeer};

use super::escaping::Escaping;
use super::log_time::{rounded_down, write_number, write_seconds};
use crate::ended_request::EndedRequest;

/// A value that is known when the response has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseValue {
    /// The status code.
    Status,
    /// The number of bytes of the body.
    Bytes,
    /// The same, or `-` for 0.
    BytesOrDash,
    /// The time that the request took, in microseconds.
    Microseconds,
    /// The same in milliseconds.
    Milliseconds,
    /// The same in whole seconds.
    WholeSeconds,
    /// The same in seconds with six decimals.
    Seconds,
    /// The part of the server that answered, such as `app`.
    AnsweredBy,
    /// The place that answered, such as `app:web`.
    Place,
    /// The cache status.
    Cache,
    /// The seconds that the request waited in queues.
    Queue,
    /// The seconds that workers had the request.
    Worker,
    /// The address of the server of the upstream.
    Upstream,
    /// The seconds that servers of the upstream had the request.
    UpstreamTime,
    /// The id of the request.
    RequestId,
    /// The number of bytes of the request's body that were received.
    BytesIn,
    /// `whole` or `cut`.
    End,
    /// ` cut` if the response was cut.
    CutSuffix,
    /// The process id of the worker that answered, or of Kirin.
    Process,
    /// The escape sequence of a terminal that colours the status.
    StatusColour,
    /// The time that the request took, for people.
    ShortTime,
    /// The number of bytes of the body, for people.
    ShortBytes,
}

impl ResponseValue {
    /// Appends the value. Returns false if there is none.
    pub fn write(self, request: &EndedRequest<'_>, escaping: Escaping, out: &mut Vec<u8>) -> bool {
        match self {
            Self::Status => out.extend_from_slice(request.status.as_str().as_bytes()),
            Self::Bytes => write_number(request.body_bytes, out),
            Self::BytesOrDash if request.body_bytes == 0 => return false,
            Self::BytesOrDash => write_number(request.body_bytes, out),
            Self::Microseconds => write_number(rounded_down(request.took.as_micros()), out),
            Self::Milliseconds => write_number(rounded_down(request.took.as_millis()), out),
            Self::WholeSeconds => write_number(request.took.as_secs(), out),
            Self::Seconds => write_seconds(request.took, out),
            Self::AnsweredBy => escaping.write_plain(request.answered_by.name().as_bytes(), out),
            Self::Place => {
                let place = request.place();
                match place.name {
                    None => escaping.write_plain(place.part.name().as_bytes(), out),
                    Some(_) => escaping.write(place.to_string().as_bytes(), out),
                }
            }
            Self::Cache => match request.cache_result {
                Some(result) => escaping.write_plain(result.name().as_bytes(), out),
                None => return false,
            },
            Self::Queue => return write_total(request, StepKind::Queue, out),
            Self::Worker => return write_total(request, StepKind::Worker, out),
            Self::UpstreamTime => return write_total(request, StepKind::Upstream, out),
            Self::Upstream => match last_peer(request.steps, StepKind::Upstream) {
                Some(StepPeer::Server(address)) => escaping.write(address.as_bytes(), out),
                _ => return false,
            },
            Self::RequestId => {
                let mut text = Vec::with_capacity(32);
                request.id.write_to(&mut text);
                escaping.write(&text, out);
            }
            Self::BytesIn => write_number(request.received_bytes, out),
            Self::End => {
                escaping.write_plain(if request.is_cut { b"cut" } else { b"whole" }, out);
            }
            Self::CutSuffix => {
                if request.is_cut {
                    out.extend_from_slice(b" cut");
                }
            }
            Self::Process => match last_peer(request.steps, StepKind::Worker) {
                Some(StepPeer::Process(id)) => write_number(u64::from(id), out),
                _ => write_number(u64::from(std::process::id()), out),
            },
            Self::StatusColour => out.extend_from_slice(colour(request.status)),
            Self::ShortTime => write_short_time(request.took, out),
            Self::ShortBytes => write_short_bytes(request.body_bytes, out),
        }
        true
    }
}

fn write_total(request: &EndedRequest<'_>, kind: StepKind, out: &mut Vec<u8>) -> bool {
    let now = request.started + request.took;
    match request.steps.and_then(|steps| steps.total(kind, now)) {
        Some(time) => {
            write_seconds(time, out);
            true
        }
        None => false,
    }
}

fn last_peer(steps: Option<&RequestSteps>, kind: StepKind) -> Option<StepPeer> {
    steps.and_then(|steps| steps.last(kind)).and_then(|step| step.peer)
}

/// Returns the colour of a class of statuses: green, cyan, yellow, red.
fn colour(status: StatusCode) -> &'static [u8] {
    match status.as_u16() {
        ..=299 => b"\x1b[32m",
        300..=399 => b"\x1b[36m",
        400..=499 => b"\x1b[33m",
        _ => b"\x1b[1;31m",
    }
}

fn write_short_time(took: Duration, out: &mut Vec<u8>) {
    let (millis, seconds) = (took.as_secs_f64() * 1000.0, took.as_secs_f64());
    // A vector takes all bytes.
    let _ = match millis {
        ..10.0 => write!(out, "{millis:.2} ms"),
        ..1000.0 => write!(out, "{millis:.0} ms"),
        _ => write!(out, "{seconds:.2} s"),
    };
}

fn write_short_bytes(bytes: u64, out: &mut Vec<u8>) {
    let mut size = bytes as f64;
    for unit in ["B", "KB", "MB", "GB"] {
        if size < 1000.0 || unit == "GB" {
            // A vector takes all bytes.
            let _ = match unit {
                "B" => write!(out, "{bytes} B"),
                _ => write!(out, "{size:.1} {unit}"),
            };
            return;
        }
        size /= 1024.0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_short_on_a_terminal() {
        for (micros, expected) in
            [(7, "0.01 ms"), (1234, "1.23 ms"), (56_789, "57 ms"), (2_346_000, "2.35 s")]
        {
            let mut out = Vec::new();
            write_short_time(Duration::from_micros(micros), &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
        for (bytes, expected) in [
            (0, "0 B"),
            (999, "999 B"),
            (2048, "2.0 KB"),
            (5 << 20, "5.0 MB"),
            (3 << 40, "3072.0 GB"),
        ] {
            let mut out = Vec::new();
            write_short_bytes(bytes, &mut out);
            assert_eq!(String::from_utf8(out).unwrap(), expected);
        }
    }
}

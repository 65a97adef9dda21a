//! The reasons why a request has no response from its program.

use std::fmt;
use std::io;

use kirin_cgi::BadHead;
use kirin_http::{Response, StatusCode};
use kirin_spool::{SpoolError, is_out_of_descriptors};

/// How a program has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ProgramEnd {
    /// It has exited with this status.
    Exited(i32),
    /// This signal has ended it.
    Killed(i32),
}

impl fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "it exited with status {status}"),
            Self::Killed(signal) => write!(f, "signal {signal} ended it"),
        }
    }
}

/// The reason why there is no response. The texts are for the log.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProgramFailure {
    #[error("`max_in_flight` programs of the route run, and the queue is full")]
    QueueFull,
    #[error("`max_in_flight` programs of the route ran for as long as the request could wait")]
    QueueTimeout,
    #[error("cannot be started: {0}")]
    Start(io::Error),
    #[error("its input cannot be prepared: {0}")]
    Input(io::Error),
    #[error("its output cannot be read: {0}")]
    Output(io::Error),
    #[error("took longer than `deadline`")]
    Overdue,
    #[error("ended its output before the end of the response's head{}", ended(*.0))]
    NoHead(Option<ProgramEnd>),
    #[error("sent a response head of more than {0} bytes")]
    LongHead(usize),
    #[error(transparent)]
    Head(#[from] BadHead),
    #[error(transparent)]
    Spool(#[from] SpoolError),
    /// No client waits for the response any more.
    #[error("the client has gone")]
    ClientGone,
}

fn ended(end: Option<ProgramEnd>) -> String {
    end.map_or_else(String::new, |end| format!("; {end}"))
}

impl ProgramFailure {
    /// Returns the response to the client.
    pub(crate) fn response(&self) -> Response {
        let status = match self {
            Self::Spool(error) => return error.response(),
            Self::QueueFull | Self::QueueTimeout => StatusCode::SERVICE_UNAVAILABLE,
            Self::Start(error) | Self::Input(error) if is_temporary(error) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            Self::Overdue => StatusCode::GATEWAY_TIMEOUT,
            Self::ClientGone => Response::client_gone_status(),
            Self::Input(_) => StatusCode::INTERNAL_SERVER_ERROR,
            Self::Start(_) | Self::Output(_) | Self::NoHead(_) | Self::LongHead(_) => {
                StatusCode::BAD_GATEWAY
            }
            Self::Head(_) => StatusCode::BAD_GATEWAY,
        };
        let mut response = Response::error(status);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            response.fields.push("Retry-After", "1");
        }
        response
    }

    /// Returns whether the log should warn, because the cause is the program or Kirin itself.
    pub(crate) fn is_warning(&self) -> bool {
        match self {
            Self::ClientGone => false,
            Self::Spool(error) => matches!(error, SpoolError::Spool { .. }),
            _ => true,
        }
    }

    /// Returns whether the program or its start has failed.
    pub(crate) fn is_of_program(&self) -> bool {
        !matches!(
            self,
            Self::QueueFull
                | Self::QueueTimeout
                | Self::ClientGone
                | Self::Spool(_)
                | Self::Input(_)
        )
    }
}

/// Returns whether the machine has no room for another process at the moment.
fn is_temporary(error: &io::Error) -> bool {
    is_out_of_descriptors(error)
        || matches!(error.kind(), io::ErrorKind::OutOfMemory | io::ErrorKind::WouldBlock)
}

#[cfg(test)]
mod tests {
    use rustix::io::Errno;

    use super::*;

    #[test]
    fn a_failure_has_the_status_of_its_cause() {
        let start = |errno: Errno| ProgramFailure::Start(errno.into());
        for (failure, status) in [
            (ProgramFailure::QueueFull, 503),
            (ProgramFailure::QueueTimeout, 503),
            (start(Errno::AGAIN), 503),
            (start(Errno::MFILE), 503),
            (start(Errno::NOENT), 502),
            (start(Errno::ACCESS), 502),
            (ProgramFailure::Overdue, 504),
            (ProgramFailure::NoHead(Some(ProgramEnd::Killed(9))), 502),
            (ProgramFailure::Head(BadHead::NothingSaid), 502),
            (ProgramFailure::ClientGone, 499),
        ] {
            let response = failure.response();
            assert_eq!(response.status.as_u16(), status, "{failure}");
            assert_eq!(response.fields.get("retry-after").is_some(), status == 503, "{failure}");
        }
    }

    #[test]
    fn the_log_says_how_a_program_has_ended() {
        for (end, text) in [
            (None, "ended its output before the end of the response's head"),
            (
                Some(ProgramEnd::Exited(3)),
                "ended its output before the end of the response's head; it exited with status 3",
            ),
        ] {
            assert_eq!(ProgramFailure::NoHead(end).to_string(), text);
        }
    }
}

//! The body of a program's response.
//!
//! Kirin reads from the program only when the client has taken what was read before. So at most one
//! piece is in memory; the rest waits in the pipe, and the program waits with it.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use kirin_http::{BodyStream, StreamError};
use tokio::time::Sleep;

use crate::failure::ProgramEnd;
use crate::response::{END_WAIT, ReadFailure, RunningProgram};

/// Where the body comes from.
enum Source {
    /// The program still sends it.
    Output(Box<RunningProgram>),
    /// The output has ended, and the sleep is over soon. The end of the program says whether the
    /// body is complete.
    Ending(Box<RunningProgram>, Pin<Box<Sleep>>),
    /// All of it has been read.
    Ended,
}

/// A body that a program sends. Dropping it stops the program.
pub(crate) struct ProgramBody<F> {
    source: Source,
    /// Bytes that have been read and not been given to the client.
    data: BytesMut,
    length: Option<u64>,
    /// The bytes that are still to come, if the program has said how many there are.
    left: Option<u64>,
    /// Is called if the body ends too early.
    cut: Option<F>,
}

impl<F: FnOnce(&str)> ProgramBody<F> {
    /// Returns the body that begins with `data`.
    pub(crate) fn new(
        program: RunningProgram,
        data: BytesMut,
        length: Option<u64>,
        cut: F,
    ) -> Self {
        let source = Source::Output(Box::new(program));
        Self { source, data, length, left: length, cut: Some(cut) }
    }

    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, String>> {
        loop {
            if let Some(bytes) = self.take_data() {
                self.end_if_complete();
                return Poll::Ready(Ok(Some(bytes)));
            }
            match std::mem::replace(&mut self.source, Source::Ended) {
                Source::Ended => return Poll::Ready(Ok(None)),
                Source::Output(mut program) => {
                    let read = program.poll_read(context, &mut self.data);
                    match read {
                        Poll::Ready(Ok(0)) => {
                            let wait = Box::pin(tokio::time::sleep(END_WAIT));
                            self.source = Source::Ending(program, wait);
                        }
                        Poll::Ready(Err(ReadFailure::Overdue)) => {
                            return Poll::Ready(Err("it took longer than `deadline`".into()));
                        }
                        Poll::Ready(Err(ReadFailure::Failed(error))) => {
                            return Poll::Ready(Err(error.to_string()));
                        }
                        Poll::Ready(Ok(_)) => self.source = Source::Output(program),
                        Poll::Pending => {
                            self.source = Source::Output(program);
                            return Poll::Pending;
                        }
                    }
                }
                Source::Ending(mut program, mut wait) => {
                    let end = match Pin::new(&mut program.keeper.end).poll(context) {
                        Poll::Ready(end) => end.ok(),
                        Poll::Pending if wait.as_mut().poll(context).is_ready() => None,
                        Poll::Pending => {
                            self.source = Source::Ending(program, wait);
                            return Poll::Pending;
                        }
                    };
                    self.check_end(end)?;
                    program.release();
                }
            }
        }
    }

    /// Takes the bytes that are there and belong to the body.
    fn take_data(&mut self) -> Option<Bytes> {
        let mut bytes = self.data.split();
        if let Some(left) = &mut self.left {
            bytes.truncate(usize::try_from(*left).unwrap_or(usize::MAX));
            *left -= bytes.len() as u64;
        }
        (!bytes.is_empty()).then(|| bytes.freeze())
    }

    /// Lets the program go on if all bytes of its `Content-Length` have been read. Nobody asks for
    /// more of such a body.
    fn end_if_complete(&mut self) {
        if self.left == Some(0)
            && let Source::Output(program) = std::mem::replace(&mut self.source, Source::Ended)
        {
            program.discard_rest();
        }
    }

    /// Checks whether the body is complete after the end of the output.
    fn check_end(&self, end: Option<ProgramEnd>) -> Result<(), String> {
        match (self.left, end) {
            (Some(left @ 1..), _) => {
                Err(format!("its output ended {left} bytes before its `Content-Length`"))
            }
            // An exit status says nothing about the response: that of a script is the status of its
            // last command.
            (None, Some(end @ ProgramEnd::Killed(_))) => Err(end.to_string()),
            _ => Ok(()),
        }
    }
}

impl<F: FnOnce(&str)> BodyStream for ProgramBody<F> {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        let next = ready!(self.poll_next(context));
        Poll::Ready(match next {
            Ok(bytes) => bytes.map(Ok),
            Err(reason) => {
                if let Some(cut) = self.cut.take() {
                    cut(&reason);
                }
                Some(Err(StreamError(reason)))
            }
        })
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

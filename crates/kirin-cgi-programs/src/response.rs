//! The response of a program: its head, and where its body comes from.

use std::future::poll_fn;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use kirin_cgi::parse_head;
use kirin_faults::{Errno, Point};
use kirin_http::{
    Body, ClientWatch, OpenStep, ReceivedBody, Response, client_gone, response_head::ResponseHead,
};
use tokio::io::AsyncReadExt;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::failure::{ProgramEnd, ProgramFailure};
use crate::keeper::KeeperHandle;
use crate::response_body::ProgramBody;
use crate::time_left::TimeLeft;

static READ: Point = Point::new("program.read", &[Errno::IO]);

/// The most bytes of a head. It is the same for upstreams.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Bytes read at once.
const PIECE_BYTES: usize = 64 * 1024;

/// How long Kirin waits for the end of a program that has closed its output. A program that has
/// ended closes it a moment before.
pub(crate) const END_WAIT: Duration = Duration::from_secs(1);

/// A program that runs, as the reader of its response sees it. Dropping it stops the program.
pub(crate) struct RunningProgram {
    pub(crate) output: pipe::Receiver,
    pub(crate) time: TimeLeft,
    pub(crate) keeper: KeeperHandle,
    /// Lasts as long as the response.
    pub(crate) _step: OpenStep,
}

/// Why the output ended too early.
#[derive(Debug)]
pub(crate) enum ReadFailure {
    Overdue,
    Failed(io::Error),
}

impl RunningProgram {
    /// Appends the next bytes of the output to `data`. Returns how many; 0 at the end.
    pub(crate) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        data: &mut BytesMut,
    ) -> Poll<Result<usize, ReadFailure>> {
        ready!(READ.poll(context)).map_err(ReadFailure::Failed)?;
        data.reserve(PIECE_BYTES);
        if let Poll::Ready(read) = pin!(self.output.read_buf(data)).poll(context) {
            self.time.pause();
            return Poll::Ready(read.map_err(ReadFailure::Failed));
        }
        self.time.poll_over(context).map(|()| Err(ReadFailure::Overdue))
    }

    /// Lets the program end by itself, after its response.
    pub(crate) fn release(mut self) {
        self.time.pause();
        // It fails only if the program has ended.
        let _ = self.keeper.release.send(self.time.left());
    }

    /// Reads and discards the rest of the output, and lets the program end by itself. A program
    /// that writes more than the client gets must not fail.
    pub(crate) fn discard_rest(mut self) {
        tokio::task::spawn_local(async move {
            let mut data = BytesMut::new();
            loop {
                match poll_fn(|context| self.poll_read(context, &mut data)).await {
                    Ok(1..) => data.clear(),
                    Ok(_) => return self.release(),
                    Err(_) => return,
                }
            }
        });
    }

    /// Reads the head. Returns it with the bytes that have come behind it.
    async fn head(
        &mut self,
        client: Option<&ClientWatch>,
    ) -> Result<(ResponseHead, BytesMut), ProgramFailure> {
        let mut input = BytesMut::new();
        loop {
            let read = tokio::select! {
                biased;
                read = poll_fn(|context| self.poll_read(context, &mut input)) => read,
                () = client_gone(client) => return Err(ProgramFailure::ClientGone),
            };
            match read {
                Ok(1..) => {}
                Ok(_) => return Err(ProgramFailure::NoHead(self.end().await)),
                Err(ReadFailure::Overdue) => return Err(ProgramFailure::Overdue),
                Err(ReadFailure::Failed(error)) => return Err(ProgramFailure::Output(error)),
            }
            if let Some((head, length)) = parse_head(&input)? {
                input.advance(length);
                return Ok((head, input));
            }
            if input.len() > MAX_HEAD_BYTES {
                return Err(ProgramFailure::LongHead(MAX_HEAD_BYTES));
            }
        }
    }

    /// Returns how the program has ended; `None` if it still runs.
    async fn end(&mut self) -> Option<ProgramEnd> {
        timeout(END_WAIT, &mut self.keeper.end).await.ok()?.ok()
    }

    /// Reads the head and returns the response. `is_head` says whether the method is HEAD. `cut` is
    /// called with the reason if the body ends too early.
    pub(crate) async fn respond(
        mut self,
        is_head: bool,
        client: Option<&ClientWatch>,
        cut: impl FnOnce(&str) + 'static,
    ) -> Result<Response, ProgramFailure> {
        let (head, data) = self.head(client).await?;
        let received = ReceivedBody::new(head.framing, head.status, is_head);
        let nothing = || (received.length() == Some(0)).then_some(Body::Empty);
        let body = match received.withheld().or_else(nothing) {
            Some(body) => {
                self.discard_rest();
                body
            }
            None => {
                let body = ProgramBody::new(self, data, received.length(), cut);
                Body::Stream(Box::new(body))
            }
        };
        let (status, fields) = (head.status, head.fields);
        Ok(Response { status, fields, body, answered_by: crate::ANSWERED_BY })
    }
}

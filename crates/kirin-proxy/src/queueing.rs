//! The way of a request to a server: at once if there is room, and otherwise through the queue of
//! the upstream (see `kirin-balance`).

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use kirin_balance::{Attempt, Entered, Leaving, QueueRefusal, SlotClaim};
use kirin_http::{ClientWatch, StepKind, client_gone};

use crate::failure::ProxyFailure;
use crate::local_upstream::LocalUpstream;
use crate::selection::{Selection, ServerSet};
use crate::upstream_request::UpstreamRequest;

impl LocalUpstream {
    /// Waits until a server of `set` takes a request. If the servers change in the meantime, `set`
    /// becomes the new set. The wait ends if the client goes.
    pub(crate) async fn take_turn(
        &self,
        set: &mut Arc<ServerSet>,
        selection: &mut Selection,
        request: &UpstreamRequest,
    ) -> Result<Attempt, ProxyFailure> {
        match self.select(set, selection) {
            SlotClaim::Given(attempt) => Ok(attempt),
            SlotClaim::NoServer => Err(no_server(set)),
            // This is rare. The box keeps the futures of other requests small.
            SlotClaim::Full => {
                let _step = request.steps.begin(StepKind::Queue, &self.label);
                Box::pin(self.wait_for_turn(set, selection, request.client.as_ref())).await
            }
        }
    }

    async fn wait_for_turn(
        &self,
        set: &mut Arc<ServerSet>,
        selection: &mut Selection,
        client: Option<&ClientWatch>,
    ) -> Result<Attempt, ProxyFailure> {
        let since = Instant::now();
        let queue = Arc::clone(set.known.queue());
        let mut overdue = pin!(tokio::time::sleep(self.config().queue.wait));
        let mut gone = pin!(client_gone(client));
        let mut ticket = None;
        loop {
            let refused =
                match queue.enter(&set.known, selection.criteria(), ticket, Instant::now()) {
                    Ok(Entered::Given(attempt)) => return Ok(attempt),
                    Ok(Entered::Waits(wait)) => {
                        ticket = Some(wait.ticket());
                        tokio::select! {
                            biased;
                            given = wait => match given {
                                Ok(attempt) => {
                                    queue.count_waited(since.elapsed());
                                    return Ok(attempt);
                                }
                                Err(refused) => refused,
                            },
                            () = &mut gone => {
                                queue.count_leaving(Leaving::ClientGone);
                                return Err(ProxyFailure::ClientGone);
                            }
                            () = &mut overdue => {
                                queue.count_leaving(Leaving::TimedOut);
                                return Err(ProxyFailure::QueueTimeout);
                            }
                        }
                    }
                    Err(refused) => refused,
                };
            match refused {
                QueueRefusal::Full => return Err(ProxyFailure::QueueFull),
                QueueRefusal::NoServer => return Err(no_server(set)),
                QueueRefusal::Exchanged => {
                    *set = self.servers();
                    selection.forget_tried();
                }
            }
        }
    }
}

fn no_server(set: &ServerSet) -> ProxyFailure {
    if set.servers.is_empty() { ProxyFailure::NoServer } else { ProxyFailure::AllUnhealthy }
}

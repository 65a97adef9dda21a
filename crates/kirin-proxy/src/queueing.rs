//! A request's turn: at once where there is room, and otherwise after a time in the upstream's
//! queue (`kirin-balance`).

use std::pin::pin;
use std::sync::Arc;
use std::time::Instant;

use kirin_balance::{Attempt, Claim, Entered, Leaving, Refused};
use kirin_http::ClientWatch;

use crate::choose::{Choice, ServerSet};
use crate::failure::Failure;
use crate::local_upstream::LocalUpstream;
use crate::upstream_request::client_gone;

impl LocalUpstream {
    /// A server of `set` for a request, when it is its turn; of other servers if there are others
    /// by then. The turn does not come if the client goes before.
    pub(crate) async fn take_turn(
        &self,
        set: &mut Arc<ServerSet>,
        choice: &mut Choice,
        client: Option<&ClientWatch>,
    ) -> Result<Attempt, Failure> {
        match self.choose(set, choice) {
            Claim::Given(attempt) => Ok(attempt),
            Claim::NoServer => Err(no_server(set)),
            // Rare, and not to make every request larger.
            Claim::Full => Box::pin(self.wait_for_turn(set, choice, client)).await,
        }
    }

    async fn wait_for_turn(
        &self,
        set: &mut Arc<ServerSet>,
        choice: &mut Choice,
        client: Option<&ClientWatch>,
    ) -> Result<Attempt, Failure> {
        let since = Instant::now();
        let queue = Arc::clone(set.known.queue());
        let mut overdue = pin!(tokio::time::sleep(self.config().queue.wait));
        let mut gone = pin!(client_gone(client));
        let mut ticket = None;
        loop {
            let refused = match queue.enter(&set.known, choice.wish(), ticket, Instant::now()) {
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
                            return Err(Failure::ClientGone);
                        }
                        () = &mut overdue => {
                            queue.count_leaving(Leaving::TimedOut);
                            return Err(Failure::QueueTimeout);
                        }
                    }
                }
                Err(refused) => refused,
            };
            match refused {
                Refused::Full => return Err(Failure::QueueFull),
                Refused::NoServer => return Err(no_server(set)),
                Refused::Exchanged => {
                    *set = self.servers();
                    choice.forget_tried();
                }
            }
        }
    }
}

fn no_server(set: &ServerSet) -> Failure {
    if set.servers.is_empty() { Failure::NoServer } else { Failure::AllUnhealthy }
}

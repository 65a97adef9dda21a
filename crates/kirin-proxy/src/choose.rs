//! Which server gets a request. The seam for balancing: today one after the other.

use crate::server::Server;
use std::cell::Cell;
use std::sync::Arc;

/// Round robin on one event loop.
#[derive(Default)]
pub(crate) struct Chooser {
    turn: Cell<usize>,
}

impl Chooser {
    /// The next of `servers` that is not among `tried`, which are those that could not be reached for this request.
    pub(crate) fn choose(&self, servers: &[Arc<Server>], tried: &[u64]) -> Option<Arc<Server>> {
        let turn = self.turn.get();
        let (before, after) = servers.split_at(turn.checked_rem(servers.len())?);
        let mut in_turn = after.iter().chain(before).enumerate();
        let (skipped, server) = in_turn.find(|(_, server)| !tried.contains(&server.id))?;
        self.turn.set(turn.wrapping_add(skipped + 1));
        Some(Arc::clone(server))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Endpoint;

    fn servers(count: u16) -> Vec<Arc<Server>> {
        let server = |port| {
            let address: crate::ServerAddress = format!("127.0.0.1:{}", port + 1).parse().unwrap();
            let endpoint = Endpoint::of(&address.location).unwrap();
            Arc::new(Server::new(address, endpoint))
        };
        (0..count).map(server).collect()
    }

    #[test]
    fn servers_take_turns_and_those_that_were_tried_are_left_out() {
        let (servers, chooser) = (servers(3), Chooser::default());
        let index = |tried: &[u64]| {
            let chosen = chooser.choose(&servers, tried)?;
            servers.iter().position(|server| server.id == chosen.id)
        };
        assert_eq!([index(&[]), index(&[]), index(&[]), index(&[])], [Some(0), Some(1), Some(2), Some(0)]);
        assert_eq!(index(&[servers[1].id]), Some(2));
        assert_eq!(index(&[]), Some(0));
        assert_eq!(index(&[servers[0].id, servers[1].id, servers[2].id]), None);
        assert!(chooser.choose(&[], &[]).is_none());
    }
}

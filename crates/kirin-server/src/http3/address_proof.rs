//! How much a client may get before it has shown that it has its address: three times what has
//! come from there (RFC 9000 sections 8.1 and 9.3.1). Otherwise Kirin could be made to flood the
//! owner of an address that somebody else names.
//!
//! QUIC's library keeps this limit too, but sends the datagram that crosses it, and begins again
//! with each change of the address: a client that changes it with every packet would get 35 times
//! what it has sent. It also always fills the datagram with a challenge. So one such datagram
//! is allowed for each change, and changes have a limit of their own.

use std::net::SocketAddr;

use smallvec::SmallVec;

/// What may be sent for each byte that has come.
const FACTOR: u64 = 3;

/// The most addresses that are known to be the client's. It may come back to one of them.
const MOST_PROVEN: usize = 4;

/// The most changes of the address at once, and the seconds after which one more is allowed.
const MOST_CHANGES: u64 = 16;
const CHANGE_SECONDS: u64 = 1;

/// The most bytes of a datagram with a challenge: what the path took before.
const CHALLENGE_BYTES: u64 = 1472;

/// The addresses of one client.
#[derive(Debug)]
pub(super) struct AddressProof {
    /// The addresses that the client has shown to have.
    proven: SmallVec<[SocketAddr; 1]>,
    /// The address from which something has come last, if it is another one.
    claimed: SocketAddr,
    change: Change,
    received: u64,
    sent: u64,
    /// The second at which all changes are allowed again.
    changes_full_at: u64,
}

/// How the claimed address came to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Change {
    /// It is the first one, which the handshake proves.
    None,
    /// There were too many changes. Nothing is believed until another one is allowed.
    TooMany { has_answered: bool },
    /// The address has changed.
    Allowed,
}

impl AddressProof {
    /// Returns the state of a client that sends from `address`.
    pub(super) fn new(address: SocketAddr, is_proven: bool) -> Self {
        let proven = is_proven.then_some(address).into_iter().collect();
        let (change, received, sent, changes_full_at) = (Change::None, 0, 0, 0);
        Self { proven, claimed: address, change, received, sent, changes_full_at }
    }

    /// Returns whether the client has shown to have this address.
    pub(super) fn is_proven(&self, address: SocketAddr) -> bool {
        self.proven.contains(&address)
    }

    /// Notes that the client has this address.
    pub(super) fn prove(&mut self, address: SocketAddr) {
        if !self.is_proven(address) {
            if self.proven.len() == MOST_PROVEN {
                self.proven.remove(0);
            }
            self.proven.push(address);
        }
    }

    /// Notes that `bytes` have come from `address`, which is not proven, at second `now`.
    pub(super) fn receive(&mut self, address: SocketAddr, bytes: usize, now: u64) {
        if self.claimed != address {
            (self.claimed, self.received, self.sent) = (address, 0, 0);
            self.change = Change::TooMany { has_answered: false };
        }
        self.received += bytes as u64;
        if let Change::TooMany { has_answered } = self.change {
            let full_at = self.changes_full_at.max(now) + CHANGE_SECONDS;
            if full_at <= now + MOST_CHANGES * CHANGE_SECONDS {
                self.changes_full_at = full_at;
                self.change = Change::Allowed;
                if has_answered {
                    self.prove(address);
                }
            }
        }
    }

    /// Notes that the last datagram has answered a challenge. The library does not say whether
    /// rightly.
    pub(super) fn answer(&mut self) {
        match &mut self.change {
            Change::None => {}
            Change::TooMany { has_answered } => *has_answered = true,
            Change::Allowed => self.prove(self.claimed),
        }
    }

    /// Returns how many of `bytes` may be sent to `address`, in whole pieces of `piece` bytes, and
    /// counts them.
    pub(super) fn send(&mut self, address: SocketAddr, bytes: usize, piece: usize) -> usize {
        if self.is_proven(address) {
            return bytes;
        }
        if self.claimed != address {
            // Nothing has come from there lately.
            return 0;
        }
        let of_challenge = if self.change == Change::Allowed { CHALLENGE_BYTES } else { 0 };
        let room = (FACTOR * self.received).max(of_challenge).saturating_sub(self.sent);
        let room = usize::try_from(room).unwrap_or(usize::MAX);
        let allowed = if bytes <= room { bytes } else { room - room % piece.max(1) };
        self.sent += allowed as u64;
        allowed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        ([127, 0, 0, 1], port).into()
    }

    #[test]
    fn a_new_client_gets_three_times_what_came_from_it() {
        let mut proof = AddressProof::new(address(1), false);
        proof.receive(address(1), 1200, 0);
        assert_eq!(proof.send(address(1), 1200, 1200), 1200);
        assert_eq!(proof.send(address(1), 222, 222), 222);
        assert_eq!(proof.send(address(1), 4800, 1200), 1200);
        assert_eq!(proof.send(address(1), 1200, 1200), 0);
        proof.answer();
        assert_eq!(proof.send(address(1), 1200, 1200), 0, "the handshake proves it");
        proof.receive(address(1), 100, 0);
        assert_eq!(proof.send(address(1), 1200, 1200), 1200);
        proof.prove(address(1));
        assert_eq!(proof.send(address(1), 100_000, 1200), 100_000);
    }

    #[test]
    fn another_address_must_be_shown_too() {
        let mut proof = AddressProof::new(address(1), true);
        assert_eq!(proof.send(address(2), 1200, 1200), 0, "nothing has come from there");
        proof.receive(address(2), 100, 0);
        assert_eq!(proof.send(address(1), 9000, 1200), 9000, "the old one is proven");
        let challenge = CHALLENGE_BYTES as usize;
        assert_eq!(proof.send(address(2), challenge, challenge), challenge, "a challenge");
        assert_eq!(proof.send(address(2), 300, 300), 0);
        proof.receive(address(2), 1200, 0);
        assert_eq!(proof.send(address(2), 9000, 1200), 2400);
        proof.answer();
        assert_eq!(proof.send(address(2), 9000, 1200), 9000, "the challenge was answered");
        assert_eq!(proof.send(address(1), 9000, 1200), 9000, "the client may come back");
    }

    #[test]
    fn changes_have_a_limit() {
        let mut proof = AddressProof::new(address(1), true);
        let mut change = |port, now| {
            proof.receive(address(port), 10, now);
            proof.answer();
            proof.is_proven(address(port))
        };
        for port in 2..2 + MOST_CHANGES as u16 {
            assert!(change(port, 100));
        }
        assert!(!change(100, 100) && !change(101, 100 + CHANGE_SECONDS - 1));
        assert!(change(102, 100 + CHANGE_SECONDS));
        assert!(!change(103, 100 + CHANGE_SECONDS));
        assert_eq!(proof.send(address(103), 1200, 1200), 0, "not even a challenge");
        proof.receive(address(103), 10, 100 + 2 * CHANGE_SECONDS);
        assert!(proof.is_proven(address(103)), "the answer counts later");
    }
}

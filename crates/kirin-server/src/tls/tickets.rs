//! Session tickets (RFC 5077; RFC 8446 section 4.6.1), whose keys follow from one secret.
//!
//! rustls makes ticket keys of its own and gives them to nobody. With keys that follow from a
//! secret and the time, sessions go on in the next program after an upgrade, and on all machines
//! that have the same secret.

use std::fmt;
use std::time::SystemTime;

use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::digest::{Context, SHA256};
use ring::hkdf::{self, HKDF_SHA256, Prk, Salt};
use ring::rand::{SecureRandom, SystemRandom};
use rustls::RootCertStore;
use rustls::server::ProducesTickets;

/// The length of a secret and of a key in bytes.
const KEY_BYTES: usize = 32;

/// How long tickets are made with the same key, in seconds.
const PERIOD_SECONDS: u64 = 6 * 60 * 60;

/// How long a client may keep a ticket, in seconds. It may be read until the end of the period
/// after that in which it was made.
const LIFETIME_SECONDS: u32 = 12 * 60 * 60;

/// The begin of a ticket: the number of its period. A nonce and the encrypted session follow.
const PERIOD_BYTES: usize = size_of::<u64>();

/// What the keys of all tickets of a listener are made from. Its `Debug` text does not show it.
#[derive(Clone, PartialEq, Eq)]
pub struct TicketSecret([u8; KEY_BYTES]);

impl TicketSecret {
    /// Makes a secret that nobody else has. Fails if the system gives no random numbers.
    pub fn random() -> Result<Self, rustls::Error> {
        let mut secret = [0; KEY_BYTES];
        let filled = SystemRandom::new().fill(&mut secret);
        filled.map_err(|_| rustls::Error::FailedToGetRandomBytes)?;
        Ok(Self(secret))
    }

    /// Returns the secret, for another process or another machine.
    pub fn bytes(&self) -> &[u8; KEY_BYTES] {
        &self.0
    }
}

impl From<[u8; KEY_BYTES]> for TicketSecret {
    fn from(bytes: [u8; KEY_BYTES]) -> Self {
        Self(bytes)
    }
}

impl fmt::Debug for TicketSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TicketSecret")
    }
}

/// A hash of how clients are verified: all zeros if they are not.
///
/// A ticket has the certificate that its client has shown. The keys follow from this hash, too, so
/// no listener takes a certificate that its own authorities have not verified.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ClientCheck([u8; KEY_BYTES]);

impl ClientCheck {
    pub(crate) fn new(authorities: &RootCertStore, required: bool) -> Self {
        let mut context = Context::new(&SHA256);
        context.update(&[u8::from(required)]);
        for root in &authorities.roots {
            for part in [root.subject.as_ref(), root.subject_public_key_info.as_ref()] {
                context.update(&(part.len() as u64).to_be_bytes());
                context.update(part);
            }
        }
        let mut hash = [0; KEY_BYTES];
        hash.copy_from_slice(context.finish().as_ref());
        Self(hash)
    }
}

/// Makes and reads the tickets of a listener.
pub(crate) struct Tickets {
    secret: Prk,
    clients: ClientCheck,
}

impl Tickets {
    pub(crate) fn new(secret: &TicketSecret, clients: ClientCheck) -> Self {
        let secret = Salt::new(HKDF_SHA256, b"kirin session tickets").extract(&secret.0);
        Self { secret, clients }
    }

    /// Encrypts a session with the key of a period.
    fn seal(&self, period: u64, session: &[u8]) -> Option<Vec<u8>> {
        let period = period.to_be_bytes();
        let mut nonce = [0; NONCE_LEN];
        SystemRandom::new().fill(&mut nonce).ok()?;
        let mut encrypted = session.to_vec();
        let unique = Nonce::assume_unique_for_key(nonce);
        self.key(&period)?.seal_in_place_append_tag(unique, Aad::empty(), &mut encrypted).ok()?;
        Some([&period[..], &nonce, &encrypted].concat())
    }

    /// Decrypts a ticket of this period or of the one before. Clocks of machines differ a little,
    /// so the next one counts, too.
    fn open(&self, period: u64, ticket: &[u8]) -> Option<Vec<u8>> {
        let (made_in, rest) = ticket.split_first_chunk::<PERIOD_BYTES>()?;
        if !(period.saturating_sub(1)..=period + 1).contains(&u64::from_be_bytes(*made_in)) {
            return None;
        }
        let (nonce, encrypted) = rest.split_at_checked(NONCE_LEN)?;
        let nonce = Nonce::try_assume_unique_for_key(nonce).ok()?;
        let mut encrypted = encrypted.to_vec();
        let session = self.key(made_in)?.open_in_place(nonce, Aad::empty(), &mut encrypted).ok()?;
        Some(session.to_vec())
    }

    /// Derives the key of a period, by one HMAC (RFC 5869 section 2.3).
    fn key(&self, period: &[u8; PERIOD_BYTES]) -> Option<LessSafeKey> {
        let mut key = [0; KEY_BYTES];
        let info = [&self.clients.0[..], period];
        self.secret.expand(&info, Length).ok()?.fill(&mut key).ok()?;
        UnboundKey::new(&CHACHA20_POLY1305, &key).ok().map(LessSafeKey::new)
    }
}

impl ProducesTickets for Tickets {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        LIFETIME_SECONDS
    }

    fn encrypt(&self, plain: &[u8]) -> Option<Vec<u8>> {
        self.seal(period(), plain)
    }

    fn decrypt(&self, cipher: &[u8]) -> Option<Vec<u8>> {
        self.open(period(), cipher)
    }
}

impl fmt::Debug for Tickets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tickets").field("clients", &self.clients).finish_non_exhaustive()
    }
}

/// The length of a key, for `ring`.
struct Length;

impl hkdf::KeyType for Length {
    fn len(&self) -> usize {
        KEY_BYTES
    }
}

/// Returns the number of the present period. All machines count from the same moment.
fn period() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    since.as_secs() / PERIOD_SECONDS
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: TicketSecret = TicketSecret([7; KEY_BYTES]);
    const SESSION: &[u8] = b"a session";

    fn tickets() -> Tickets {
        Tickets::new(&SECRET, ClientCheck::default())
    }

    #[test]
    fn whoever_has_the_secret_reads_a_ticket_in_this_period_and_the_next() {
        let ticket = tickets().seal(100, SESSION).unwrap();
        for (period, is_read) in [(98, false), (99, true), (100, true), (101, true), (102, false)] {
            let read = tickets().open(period, &ticket);
            assert_eq!(read.as_deref(), is_read.then_some(SESSION), "{period}");
        }
        let now = tickets().encrypt(SESSION).unwrap();
        assert_eq!(tickets().decrypt(&now).as_deref(), Some(SESSION));
    }

    #[test]
    fn nobody_else_reads_a_ticket() {
        let ticket = tickets().seal(100, SESSION).unwrap();
        let other = TicketSecret::random().unwrap();
        assert_eq!(Tickets::new(&other, ClientCheck::default()).open(100, &ticket), None);
        let checked = ClientCheck::new(&RootCertStore::empty(), true);
        assert_eq!(Tickets::new(&SECRET, checked).open(100, &ticket), None);
        let optional = ClientCheck::new(&RootCertStore::empty(), false);
        assert!(checked != optional && optional != ClientCheck::default());
    }

    #[test]
    fn a_changed_or_cut_ticket_is_not_read() {
        let ticket = tickets().seal(100, SESSION).unwrap();
        for length in 0..ticket.len() {
            assert_eq!(tickets().open(100, &ticket[..length]), None, "{length}");
        }
        for at in 0..ticket.len() {
            let mut changed = ticket.clone();
            changed[at] ^= 1;
            assert_eq!(tickets().open(100, &changed), None, "{at}");
        }
    }

    #[test]
    fn no_two_tickets_are_alike_and_none_shows_the_session() {
        let (one, two) = (tickets().seal(1, SESSION).unwrap(), tickets().seal(1, SESSION).unwrap());
        assert_ne!(one, two);
        assert!(!one.windows(SESSION.len()).any(|part| part == SESSION));
        assert_eq!(format!("{SECRET:?}"), "TicketSecret");
        assert!(!format!("{:?}", tickets()).contains('7'));
    }
}

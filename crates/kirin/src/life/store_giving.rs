//! Hands the store over to a new program, by a socket of their own. The calls block, so they are
//! made on threads that serve nobody.

use std::io::BufWriter;
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use kirin_store::{HandOver, HandOverError, Now, Store};

/// The bytes that are sent together.
const BUFFER_BYTES: usize = 1 << 20;

/// The new program follows closely when this many changes were sent at a time.
const FEW_CHANGES: usize = 100;

/// How often the changes are sent until there are few. Clients that write faster than the new
/// program follows do not keep it from serving.
const ROUNDS: usize = 1000;

/// How long the new program may take nothing after the switch.
const WRITE_TIME: Duration = Duration::from_secs(5);

/// The time between two looks for changes after the switch.
const INTERVAL: Duration = Duration::from_millis(1);

/// The hand-over of the store to a new program.
pub struct StoreGiving {
    hand_over: HandOver,
    to: BufWriter<UnixStream>,
    /// The number of rounds of changes that have begun after the switch.
    rounds: Arc<AtomicU64>,
}

impl StoreGiving {
    /// Begins to note what changes in `store`.
    pub fn begin(store: Arc<Store>, to: UnixStream) -> Result<Self, HandOverError> {
        let to = BufWriter::with_capacity(BUFFER_BYTES, to);
        Ok(Self { hand_over: HandOver::begin(store)?, to, rounds: Arc::default() })
    }

    /// Returns the number of rounds of changes that have begun after the switch, for other threads.
    pub fn rounds(&self) -> Arc<AtomicU64> {
        Arc::clone(&self.rounds)
    }

    /// Sends all items, and what has changed, until there is little left. Returns the number of
    /// items.
    pub fn copy(mut self) -> Result<(Self, u64), HandOverError> {
        let items = self.hand_over.copy(&mut self.to, Now::on_steady_clock)?;
        for _ in 0..ROUNDS {
            if self.send_changes()? < FEW_CHANGES {
                break;
            }
        }
        Ok((self, items))
    }

    /// Sends the last changes before the new program serves. Memcached clients have to wait
    /// meanwhile.
    pub fn switch(mut self) -> Result<Self, HandOverError> {
        self.hand_over.switch(&mut self.to, Now::on_steady_clock())?;
        Ok(self)
    }

    /// Goes on to send what the last requests of this program change, until it is told to end.
    pub fn go_on(mut self) -> std::io::Result<GivingThread> {
        // A new program that hangs does not keep this one.
        self.to.get_ref().set_write_timeout(Some(WRITE_TIME))?;
        self.hand_over.leave_flush();
        let ends = Arc::<AtomicBool>::default();
        let told = Arc::clone(&ends);
        let run = move || {
            loop {
                let is_last = told.load(Ordering::Acquire);
                let number = self.rounds.fetch_add(1, Ordering::AcqRel) + 1;
                let now = Now::on_steady_clock();
                if let Err(error) = self.hand_over.send_round(&mut self.to, number, now) {
                    tracing::error!(%error, "what the last requests here change in the store is lost");
                    return;
                }
                if is_last {
                    return;
                }
                std::thread::sleep(INTERVAL);
            }
        };
        let thread = std::thread::Builder::new().name("store-giving".into()).spawn(run)?;
        Ok(GivingThread { ends, thread })
    }

    fn send_changes(&mut self) -> Result<usize, HandOverError> {
        self.hand_over.send_changes(&mut self.to, Now::on_steady_clock())
    }
}

/// The thread that sends the last changes.
pub struct GivingThread {
    ends: Arc<AtomicBool>,
    thread: JoinHandle<()>,
}

impl GivingThread {
    /// Sends the changes up to now, and ends the hand-over.
    pub fn end(self) {
        self.ends.store(true, Ordering::Release);
        if self.thread.join().is_err() {
            tracing::error!("the hand-over of the store has ended by a panic");
        }
    }
}

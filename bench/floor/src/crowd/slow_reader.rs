//! Slow readers. They request something large and read one byte a second.

use std::cell::Cell;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use super::Crowd;

/// The time between two bytes.
const PACE: Duration = Duration::from_secs(1);

/// The smallest receive buffer that the kernel allows, so that the response stays with the server.
const RECEIVE_BUFFER_BYTES: u32 = 4096;

/// The segment size of Ethernet. Loopback's is 64 KB, and with it the kernel gives the server a
/// send buffer of megabytes. That buffer would hold a response which on a network would block its
/// worker.
const SEGMENT_BYTES: u32 = 1448;

/// All slow readers, until [`SlowReaders::end`].
pub struct SlowReaders {
    tasks: JoinSet<()>,
    tally: Rc<Tally>,
    count: usize,
}

#[derive(Default)]
struct Tally {
    served: Cell<usize>,
    open: Cell<usize>,
}

impl SlowReaders {
    /// Starts all slow readers.
    pub fn start(crowd: &Crowd) -> Self {
        let tally = Rc::new(Tally::default());
        let mut tasks = JoinSet::new();
        for _ in 0..crowd.slow_readers {
            let (tally, address) = (Rc::clone(&tally), crowd.address);
            let request = format!("GET {} HTTP/1.1\r\nHost: {address}\r\n\r\n", crowd.slow_path);
            tasks.spawn_local(async move {
                // The tally has the outcome. A reader that is refused does not count as served.
                let _ = read_slowly(address, &request, &tally).await;
            });
        }
        Self { tasks, tally, count: crowd.slow_readers }
    }

    /// Waits until each reader has the first byte of its response, or until `limit` is over.
    pub async fn wait_for_first_bytes(&self, limit: Duration) {
        let end = Instant::now() + limit;
        while self.tally.served.get() < self.count && Instant::now() < end {
            sleep(Duration::from_millis(10)).await;
        }
    }

    /// Stops all readers. Returns how many got a first byte, and how many of those were still
    /// connected.
    pub fn end(&mut self) -> (usize, usize) {
        self.tasks.abort_all();
        (self.tally.served.get(), self.tally.open.get())
    }
}

async fn read_slowly(address: SocketAddr, request: &str, tally: &Tally) -> io::Result<()> {
    let mut connection = connect(address).await?;
    connection.write_all(request.as_bytes()).await?;
    connection.read_u8().await?;
    tally.served.set(tally.served.get() + 1);
    tally.open.set(tally.open.get() + 1);
    let ended = loop {
        sleep(PACE).await;
        if let Err(error) = connection.read_u8().await {
            break error;
        }
    };
    tally.open.set(tally.open.get() - 1);
    Err(ended)
}

async fn connect(address: SocketAddr) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4() } else { TcpSocket::new_v6() }?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_BYTES)?;
    socket2::SockRef::from(&socket).set_tcp_mss(SEGMENT_BYTES)?;
    socket.connect(address).await
}

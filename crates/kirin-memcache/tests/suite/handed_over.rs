//! Clients whose sockets another process has handed over.

use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::sync::Arc;

use kirin_memcache::{MemcachedServer, ServerOptions, serve_adopted};
use kirin_store::{Store, StoreConfig};
use kirin_tests::wait_limit;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

#[test]
fn a_silent_client_goes_to_the_next_process_after_the_one_before_has_ended() {
    let store = Store::new(StoreConfig { memory_bytes: 16 << 20, ..StoreConfig::default() });
    let server = MemcachedServer::new(Arc::new(store), ServerOptions::default());
    let (clients, adopted) = mpsc::unbounded_channel::<OwnedFd>();
    let (ended, has_ended) = std::sync::mpsc::channel();
    let of_loop = Arc::clone(&server);
    let serving = std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        LocalSet::new().block_on(&runtime, async move {
            serve_adopted(of_loop, adopted).await;
            _ = ended.send(());
        });
    });

    let (mut client, socket) = UnixStream::pair().expect("a connection");
    client.set_read_timeout(Some(wait_limit())).expect("a limit");
    clients.send(OwnedFd::from(socket)).expect("a loop");
    client.write_all(b"mn\r\n").expect("a command");
    let mut answer = [0; 4];
    client.read_exact(&mut answer).expect("an answer");
    assert_eq!(&answer, b"MN\r\n");
    // The process before this one has ended, so that no more clients come.
    drop(clients);
    client.write_all(b"mn\r\n").expect("a command");
    client.read_exact(&mut answer).expect("an answer");

    let (successor, mut given) = mpsc::unbounded_channel();
    server.hand_over(successor);
    has_ended.recv_timeout(wait_limit()).expect("the end of the loop");
    serving.join().expect("the loop");
    assert!(given.try_recv().is_ok(), "the client was not given away");
}

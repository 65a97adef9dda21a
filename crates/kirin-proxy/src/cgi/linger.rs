//! FastCGI connections whose response is whole for the client, but whose request the server has not
//! ended: a script that works on after its output, or says more than it has promised. Closing would
//! end the script.

use std::future::poll_fn;
use std::rc::Rc;

use crate::place::{Link, State};

/// Bytes that are read and dropped before the connection is closed.
const MAX_EXCESS_BYTES: usize = 1024 * 1024;

/// Waits for the request's end, for as long as a server may be silent, and keeps the connection
/// then.
pub(crate) async fn linger(link: Link, place: Rc<State>) {
    let socket = Rc::clone(&link.connection.socket);
    let mut dropped = 0;
    let mut excess = [0; 4096];
    while dropped < MAX_EXCESS_BYTES {
        socket.read_deadline.set(place.deadlines.after(place.config().timeouts.idle));
        match poll_fn(|context| socket.poll_read(context, &mut excess)).await {
            Ok(count @ 1..) => dropped += count,
            Ok(_) => return link.give_back(&place, None),
            Err(_) => return,
        }
    }
}

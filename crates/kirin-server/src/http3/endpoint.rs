//! The task of a UDP socket: gives datagrams to their connections, lets them send, and calls them
//! when their time has come.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use kirin_h3::Code;
use kirin_http::handler::Handler;
use kirin_http::panics;
use kirin_http::peer::Peer;
use quinn_proto::{ConnectionHandle, DatagramEvent, Endpoint, Incoming, Transmit};
use tokio::time::{Interval, MissedTickBehavior, Sleep};

use super::address_proof::AddressProof;
use super::connection::{Http3Connection, Touched};
use super::socket::{Datagram, DatagramSocket};
use super::steering::Place;
use super::succession::{SuccessorLink, SuccessorMessage};
use super::timers::Timers;
use super::transport::{endpoint_config, server_config};
use crate::limits::admission::{AddressRefusal, ConnectionAdmission};
use crate::listening::listener::{LAST_REQUEST_TIME, OccasionalWarning};
use crate::server::InForce;
use crate::streams::stream_task::yield_turn;

/// Datagrams that are taken before other tasks of the loop get their turn.
const TURN_DATAGRAMS: usize = 256;

/// Datagrams that one connection sends before others get their turn.
const TURN_SEGMENTS: usize = 64;

/// The least length of a datagram with an Initial packet.
const INITIAL_BYTES: usize = 1200;

/// Handshakes in progress above which clients must first show that they have their address (Retry,
/// RFC 9000 section 8.1.2).
const UNPROVEN_HANDSHAKES: usize = 64;

/// How long the clients of a program that ends may take to confirm what they have got.
const LAST_WORDS: Duration = Duration::from_millis(200);

/// How an endpoint ends.
#[derive(Clone, Copy, Debug)]
pub struct EndpointEnd {
    /// How long requests in progress may take.
    pub limit: Duration,
    /// Whether another Kirin serves new clients, and may have got the socket.
    pub has_successor: bool,
}

/// A UDP socket with its connections.
struct Http3Endpoint<H> {
    quic: Endpoint,
    socket: DatagramSocket,
    place: Place,
    successor: Option<SuccessorLink>,
    /// Whether the next program serves new clients.
    is_succeeded: bool,
    in_force: Rc<InForce<H>>,
    connections: Vec<Option<Rc<Http3Connection<H>>>>,
    touched: Rc<Touched>,
    timers: Timers,
    /// The first time of `timers`.
    sleep: Option<(Instant, Pin<Box<Sleep>>)>,
    second: Interval,
    /// What the socket has not taken.
    blocked: Option<(Transmit, Vec<u8>)>,
    buffer: Vec<u8>,
    is_going: bool,
    refused: OccasionalWarning,
}

/// Serves HTTP/3 on a socket until `ends` completes, and then ends all connections.
pub(crate) async fn serve<H: Handler>(
    socket: std::net::UdpSocket,
    place: Place,
    in_force: Rc<InForce<H>>,
    ends: impl Future<Output = EndpointEnd>,
) -> io::Result<()> {
    let mut endpoint = Http3Endpoint::new(DatagramSocket::new(socket)?, place, in_force)?;
    endpoint.place.steering.receives();
    let mut ends = pin!(ends);
    let end = poll_fn(|context| {
        if let Poll::Ready(end) = ends.as_mut().poll(context) {
            return Poll::Ready(end);
        }
        endpoint.poll_turn(context);
        Poll::Pending
    })
    .await;
    endpoint.drain(end).await;
    Ok(())
}

impl<H: Handler> Http3Endpoint<H> {
    fn new(socket: DatagramSocket, mut place: Place, in_force: Rc<InForce<H>>) -> io::Result<Self> {
        // A connection that is accepted gets the settings that are in force then. Until then, only
        // the keys of these matter.
        let settings = server_config(&in_force.borrow(), &place.steering.keys);
        let config = Arc::new(endpoint_config(&place));
        let mut second = tokio::time::interval(Duration::from_secs(1));
        second.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let successor = place.successor.take().map(SuccessorLink::new).transpose()?;
        Ok(Self {
            quic: Endpoint::new(config, settings, socket.keeps_size(), None),
            socket,
            place,
            successor,
            is_succeeded: false,
            in_force,
            connections: Vec::new(),
            touched: Rc::default(),
            timers: Timers::default(),
            sleep: None,
            second,
            blocked: None,
            buffer: Vec::new(),
            is_going: false,
            refused: OccasionalWarning::default(),
        })
    }

    /// Does everything that can be done now.
    fn poll_turn(&mut self, context: &mut Context<'_>) {
        self.touched.task.set(context);
        let is_unsent = self.blocked.take().is_some_and(|(transmit, contents)| {
            let is_sent = self.socket.send(context, &transmit, &contents);
            if !is_sent {
                self.blocked = Some((transmit, contents));
            }
            !is_sent
        });
        let has_more = self.receive(context);
        let now = Instant::now();
        self.call_due(now);
        while self.second.poll_tick(context).is_ready() {
            self.check_times();
        }
        if !is_unsent {
            self.let_connections_send(now, context);
        }
        self.arm(context);
        if has_more || (self.blocked.is_none() && !self.touched.numbers.borrow().is_empty()) {
            yield_turn(context);
        }
    }

    /// Takes datagrams out of the socket. Returns whether more may be there.
    fn receive(&mut self, context: &mut Context<'_>) -> bool {
        let mut count = self.receive_from_successor(context);
        let mut received = Vec::new();
        let is_left = self.is_succeeded && self.place.steering.has_receiving_successor();
        while count < TURN_DATAGRAMS && !is_left {
            match self.socket.poll_receive(context, &mut received) {
                Poll::Ready(Ok(())) => count += received.len(),
                // An error is about an earlier transmission, such as a port that nobody has.
                Poll::Ready(Err(error)) => {
                    tracing::debug!(%error, "UDP socket");
                    count += 1;
                }
                Poll::Pending => break,
            }
            let now = Instant::now();
            for datagram in received.drain(..) {
                self.steer(datagram, now, context);
            }
        }
        while count < TURN_DATAGRAMS {
            let Poll::Ready(Some(datagram)) = self.place.forwarded.poll_recv(context) else {
                break;
            };
            self.take(datagram, Instant::now(), context);
            count += 1;
        }
        count >= TURN_DATAGRAMS
    }

    /// Takes what the next program says. Returns the number of datagrams.
    fn receive_from_successor(&mut self, context: &mut Context<'_>) -> usize {
        let mut count = 0;
        while count < TURN_DATAGRAMS
            && let Some(successor) = &mut self.successor
            && let Poll::Ready(message) = successor.poll(context)
        {
            match message {
                Some(SuccessorMessage::Receives) => self.place.steering.successor_receives(),
                Some(SuccessorMessage::Datagram(datagram)) => {
                    self.steer(datagram, Instant::now(), context);
                    count += 1;
                }
                None => self.successor = None,
            }
        }
        count
    }

    /// Gives a datagram to its endpoint.
    fn steer(&mut self, datagram: Datagram, now: Instant, context: &mut Context<'_>) {
        if let Some(own) = self.place.steering.steer(self.place.id, datagram) {
            self.take(own, now, context);
        }
    }

    /// Gives a datagram to its connection.
    fn take(&mut self, datagram: Datagram, now: Instant, context: &mut Context<'_>) {
        let Datagram { bytes, sender, receiver, ecn } = datagram;
        let length = bytes.len();
        if is_short_initial(&bytes) {
            return;
        }
        self.buffer.clear();
        match self.quic.handle(now, sender, receiver, ecn, bytes, &mut self.buffer) {
            Some(DatagramEvent::ConnectionEvent(handle, event)) => {
                if let Some(connection) = self.connection(handle.0) {
                    let mut quic = connection.quic.borrow_mut();
                    let mut address = connection.address.borrow_mut();
                    if address.is_proven(sender) {
                        quic.handle_event(event);
                    } else {
                        let now = self.in_force.borrow().clock().now();
                        address.receive(sender, length, now);
                        let answers = quic.stats().frame_rx.path_response;
                        quic.handle_event(event);
                        if quic.stats().frame_rx.path_response > answers {
                            address.answer();
                        }
                    }
                    drop(address);
                    drop(quic);
                    connection.touch();
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => {
                self.accept(incoming, length, now, context);
            }
            Some(DatagramEvent::Response(transmit)) => self.reply(&transmit, context),
            None => {}
        }
    }

    /// Sends a packet that belongs to no connection. It is lost if the socket is full.
    fn reply(&self, transmit: &Transmit, context: &mut Context<'_>) {
        if self.blocked.is_none() {
            self.socket.send(context, transmit, &self.buffer);
        }
    }

    fn connection(&self, number: usize) -> Option<Rc<Http3Connection<H>>> {
        self.connections.get(number)?.clone()
    }

    /// Begins a connection, or refuses it.
    fn accept(
        &mut self,
        incoming: Incoming,
        length: usize,
        now: Instant,
        context: &mut Context<'_>,
    ) {
        let server = self.in_force.current();
        let has_many = self.touched.handshakes.get() >= UNPROVEN_HANDSHAKES;
        if has_many && !incoming.remote_address_validated() {
            self.buffer.clear();
            let retry = self.quic.retry(incoming, &mut self.buffer);
            // It is an error only for a client that has shown its address.
            if let Ok(transmit) = retry {
                self.reply(&transmit, context);
            }
            return;
        }
        if self.is_going {
            // The client tries HTTP/2 at once, and need not wait.
            self.buffer.clear();
            let transmit = self.quic.refuse(incoming, &mut self.buffer);
            return self.reply(&transmit, context);
        }
        let peer = Peer::Tcp(incoming.remote_address());
        let admission = server.limits.admission.as_ref();
        let is_full = admission.is_some_and(|admission| !admission.has_room());
        let address_permit = match server.admit_client(&peer) {
            Ok(permit) if !is_full => permit,
            Err(AddressRefusal::Blocked) => return self.quic.ignore(incoming),
            Ok(_) | Err(AddressRefusal::TooMany) => {
                if !is_full && self.refused.is_due(&server) {
                    tracing::warn!(address = %server.local, %peer, "connections are refused: there are too many from one address");
                }
                self.buffer.clear();
                let transmit = self.quic.refuse(incoming, &mut self.buffer);
                return self.reply(&transmit, context);
            }
        };
        server.counters.accepted.add();
        let (sender, is_proven) = (incoming.remote_address(), incoming.remote_address_validated());
        let mut address = AddressProof::new(sender, is_proven);
        address.receive(sender, length, server.clock().now());
        self.buffer.clear();
        let config = server_config(&server, &self.place.steering.keys);
        match self.quic.accept(incoming, now, &mut self.buffer, config) {
            Ok((handle, quic)) => {
                let permits = (admission.map(ConnectionAdmission::admit), address_permit);
                let in_force = Rc::clone(&self.in_force);
                let touched = Rc::clone(&self.touched);
                let time = server.tls.as_ref().map_or(1, |tls| tls.handshake_time().as_secs());
                let deadline = server.clock().now() + time.max(1);
                let quic = (handle, quic);
                let times = (deadline, address);
                let connection =
                    Rc::new(Http3Connection::new(quic, in_force, touched, permits, times));
                connection.touch();
                if self.connections.len() <= handle.0 {
                    self.connections.resize(handle.0 + 1, None);
                }
                if let Some(place) = self.connections.get_mut(handle.0) {
                    *place = Some(connection);
                }
            }
            Err(error) => {
                server.counters.handshakes.failed.add();
                tracing::debug!(%peer, error = %error.cause, "QUIC handshake");
                if let Some(transmit) = error.response {
                    self.reply(&transmit, context);
                }
            }
        }
    }

    /// Calls the connections whose time has come.
    fn call_due(&mut self, now: Instant) {
        while let Some(number) = self.timers.pop_due(now) {
            let Some(connection) = self.connection(number) else { continue };
            connection.timer.set(None);
            let mut quic = connection.quic.borrow_mut();
            // Its time may be later by now. Then it is entered again.
            if quic.poll_timeout().is_some_and(|time| time <= now) {
                quic.handle_timeout(now);
            }
            drop(quic);
            connection.touch();
        }
    }

    /// Does what is due once a second.
    fn check_times(&self) {
        let server = self.in_force.current();
        let now = server.clock().now();
        let mut open = 0;
        for connection in self.connections.iter().flatten() {
            open += 1;
            connection.check_time(now);
        }
        server.counters.open.http3.set(open);
    }

    /// Lets the connections that have something to do carry it out and send. What they touch
    /// meanwhile has its turn in the next round.
    fn let_connections_send(&mut self, now: Instant, context: &mut Context<'_>) {
        let server = self.in_force.current();
        let mut numbers = self.touched.numbers.take().into_iter();
        for number in numbers.by_ref() {
            let Some(connection) = self.connection(number) else { continue };
            // A panic ends this connection, and not those of other clients.
            let worked = panics::catch(|| {
                connection.take_events();
                connection.count_held(&server)
            });
            match worked {
                Ok(Ok(())) => {}
                Ok(Err(failure)) => connection.fail(failure),
                Err(_) => connection.close(Code::Internal),
            }
            connection.clear_touch();
            let is_stalled = !self.send(&connection, number, now, context);
            self.exchange_events(&connection, number);
            if is_stalled {
                break;
            }
        }
        // They are touched, so they are in no other list.
        self.touched.numbers.borrow_mut().extend(numbers);
    }

    /// Lets a connection send. Returns false if the socket takes nothing more.
    fn send(
        &mut self,
        connection: &Http3Connection<H>,
        number: usize,
        now: Instant,
        context: &mut Context<'_>,
    ) -> bool {
        let most = self.socket.most_segments();
        let mut segments = 0;
        while segments < TURN_SEGMENTS {
            self.buffer.clear();
            let mut quic = connection.quic.borrow_mut();
            let transmit = quic.poll_transmit(now, most, &mut self.buffer);
            let Some(mut transmit) = transmit else { break };
            let piece = transmit.segment_size.unwrap_or(transmit.size);
            drop(quic);
            let mut address = connection.address.borrow_mut();
            transmit.size = address.send(transmit.destination, transmit.size, piece);
            drop(address);
            if transmit.size == 0 {
                // It is lost for QUIC, which sends it again.
                segments += 1;
                continue;
            }
            segments += transmit.segment_size.map_or(1, |size| transmit.size.div_ceil(size));
            if !self.socket.send(context, &transmit, &self.buffer) {
                self.blocked = Some((transmit, std::mem::take(&mut self.buffer)));
                connection.touch();
                return false;
            }
        }
        if segments >= TURN_SEGMENTS {
            connection.touch();
        }
        if let Some(time) = connection.quic.borrow_mut().poll_timeout() {
            let mut entered = connection.timer.get();
            self.timers.enter(number, time, &mut entered);
            connection.timer.set(entered);
        }
        true
    }

    /// Passes what QUIC's connection and QUIC's endpoint have to tell each other. Forgets a
    /// connection that is over.
    fn exchange_events(&mut self, connection: &Rc<Http3Connection<H>>, number: usize) {
        loop {
            let event = connection.quic.borrow_mut().poll_endpoint_events();
            let Some(event) = event else { return };
            let is_over = event.is_drained();
            if let Some(answer) = self.quic.handle_event(ConnectionHandle(number), event) {
                connection.quic.borrow_mut().handle_event(answer);
                connection.touch();
            }
            if is_over {
                let mut entered = connection.timer.get();
                self.timers.leave(number, &mut entered);
                connection.timer.set(None);
                if let Some(place) = self.connections.get_mut(number) {
                    *place = None;
                }
                return;
            }
        }
    }

    /// Has the task woken at the first time of a connection.
    fn arm(&mut self, context: &mut Context<'_>) {
        let Some(first) = self.timers.first() else {
            self.sleep = None;
            return;
        };
        let sleep = match &mut self.sleep {
            Some((time, sleep)) if *time == first => sleep,
            Some((time, sleep)) => {
                *time = first;
                sleep.as_mut().reset(first.into());
                sleep
            }
            none => {
                let sleep = Box::pin(tokio::time::sleep_until(first.into()));
                &mut none.insert((first, sleep)).1
            }
        };
        if sleep.as_mut().poll(context).is_ready() {
            yield_turn(context);
        }
    }

    /// Tells all clients to send no more requests, and waits until those in progress are answered.
    async fn drain(&mut self, end: EndpointEnd) {
        let EndpointEnd { limit, has_successor } = end;
        let until = Instant::now() + limit;
        if has_successor {
            self.leave_socket(LAST_REQUEST_TIME.min(limit)).await;
        }
        self.is_going = true;
        // A request may be on its way over a connection that is idle here.
        self.connections.iter().flatten().for_each(|connection| connection.warn_of_end());
        if self.quic.open_connections() > 0 {
            let last_requests = poll_fn(|context| {
                self.poll_turn(context);
                Poll::<()>::Pending
            });
            _ = tokio::time::timeout(LAST_REQUEST_TIME.min(limit), last_requests).await;
        }
        self.connections.iter().flatten().for_each(|connection| connection.go_away());
        let in_progress = poll_fn(|context| {
            self.poll_turn(context);
            let mut is_over = true;
            for connection in self.connections.iter().flatten() {
                if connection.is_idle() && !connection.is_closed() {
                    connection.close(Code::NoError);
                }
                is_over &= connection.is_closed();
            }
            if is_over { Poll::Ready(()) } else { Poll::Pending }
        });
        let left = until.saturating_duration_since(Instant::now());
        if tokio::time::timeout(left, in_progress).await.is_err() {
            let open = self.connections.iter().flatten();
            let left = open.filter(|connection| !connection.is_closed()).count();
            tracing::warn!(left, "HTTP/3 connections are cut: their responses took too long");
        }
        for connection in self.connections.iter().flatten() {
            if !connection.is_closed() {
                connection.close(Code::NoError);
            }
        }
        // The clients shall know of it.
        let last = poll_fn(|context| {
            self.poll_turn(context);
            match self.blocked.is_none() && self.touched.numbers.borrow().is_empty() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        });
        _ = tokio::time::timeout(LAST_WORDS, last).await;
        if self.successor.is_some() {
            // The other endpoints get their datagrams through this one.
            let steering = Arc::clone(&self.place.steering);
            let mut others = pin!(steering.others_end(self.place.id));
            let forwarding = poll_fn(|context| {
                self.poll_turn(context);
                others.as_mut().poll(context)
            });
            let left = until.saturating_duration_since(Instant::now());
            _ = tokio::time::timeout(left, forwarding).await;
        }
    }

    /// Serves new clients until the next program does, or `limit` is over: that program may have
    /// got another configuration, in which nobody receives on the socket.
    async fn leave_socket(&mut self, limit: Duration) {
        self.is_succeeded = true;
        let receives = poll_fn(|context| {
            self.poll_turn(context);
            match self.place.steering.has_receiving_successor() {
                true => Poll::Ready(()),
                false => Poll::Pending,
            }
        });
        _ = tokio::time::timeout(limit, receives).await;
    }
}

/// Returns whether a datagram begins with an Initial packet and is too short for one. It must get
/// no answer, because that could be longer (RFC 9000 section 14.1).
fn is_short_initial(datagram: &[u8]) -> bool {
    let is_initial = datagram.first().is_some_and(|first| first & 0xb0 == 0x80);
    is_initial && datagram.len() < INITIAL_BYTES
}

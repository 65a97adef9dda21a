//! The settings of QUIC: what a client may send and keep open.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::{
    EndpointConfig, IdleTimeout, ServerConfig, TransportConfig, ValidationTokenConfig, VarInt,
};

use super::connection_ids::ConnectionIds;
use super::secret::Keys;
use super::steering::Place;
use crate::server::Server;
use crate::streams::{CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES, STREAMS};

/// The most streams in the direction of the server: one control stream, two of QPACK, and some of
/// unknown types, which are not read.
const CLIENT_STREAMS: u32 = 8;

/// Bytes of all responses that are kept until the client has confirmed them.
pub(super) const UNCONFIRMED_BYTES: u64 = 1024 * 1024;

/// Handshake messages of a client that are not complete.
const HANDSHAKE_BYTES: usize = 16 * 1024;

/// The most attempts to connect that have come and were not looked at. Each is looked at at once.
const MOST_INCOMING: usize = 64;
const INCOMING_BYTES: u64 = 64 * 1024;

/// How many tokens a client gets, by which it shows its address in the first packet of a later
/// connection (RFC 9000 section 8.1.3), and how long they count.
const TOKENS: u32 = 2;
const TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);

/// The only version of QUIC (RFC 9000 section 15).
const VERSION_1: u32 = 1;

/// Returns the settings of an endpoint.
pub(super) fn endpoint_config(place: &Place) -> EndpointConfig {
    let mut config = EndpointConfig::new(Arc::clone(&place.steering.keys.resets));
    let (id, keys) = (place.id, Arc::clone(&place.steering.keys));
    config.cid_generator(move || Box::new(ConnectionIds::new(id, Arc::clone(&keys))));
    config.supported_versions(vec![VERSION_1]);
    config
}

/// Returns the settings of the connections that begin now. `None` if the listener has no TLS.
pub(super) fn server_config<H>(server: &Server<H>, keys: &Keys) -> Option<Arc<ServerConfig>> {
    let tls = server.tls.as_ref()?;
    let mut config = ServerConfig::new(tls.quic(), Arc::clone(&keys.tokens));
    let mut tokens = ValidationTokenConfig::default();
    tokens.log(Arc::clone(&keys.used_tokens) as _).lifetime(TOKEN_LIFETIME);
    // A request in early data needs one, and otherwise nobody does.
    tokens.sent(if tls.has_early_data() { TOKENS } else { 0 });
    config.validation_token_config(tokens);
    config.max_incoming(MOST_INCOMING);
    config.incoming_buffer_size(INCOMING_BYTES);
    config.incoming_buffer_size_total(INCOMING_BYTES * MOST_INCOMING as u64);
    config.transport_config(Arc::new(transport_config(server)));
    Some(Arc::new(config))
}

fn transport_config<H>(server: &Server<H>) -> TransportConfig {
    let mut transport = TransportConfig::default();
    let idle = Duration::from_secs(server.deadlines.keep_alive);
    // A time that QUIC has no number for is as good as none.
    transport.max_idle_timeout(IdleTimeout::try_from(idle).ok());
    transport.max_concurrent_bidi_streams(VarInt::from_u32(STREAMS));
    transport.max_concurrent_uni_streams(VarInt::from_u32(CLIENT_STREAMS));
    transport.stream_receive_window(VarInt::from_u32(STREAM_WINDOW_BYTES));
    transport.receive_window(VarInt::from_u32(CONNECTION_WINDOW_BYTES));
    transport.send_window(UNCONFIRMED_BYTES);
    transport.crypto_buffer_size(HANDSHAKE_BYTES);
    // Datagrams of the application (RFC 9221) are not used.
    transport.datagram_receive_buffer_size(None);
    transport
}

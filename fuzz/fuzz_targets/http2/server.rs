//! A server that answers each request with a hundred bytes.

use kirin_h2::hpack::FieldBuffer;
use kirin_h2::{Connection, Event, Limits};

/// The preface and empty SETTINGS.
pub const BEGIN: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

const LIMITS: Limits = Limits {
    streams: 10,
    header_list_bytes: 4096,
    header_fields: 50,
    stream_window_bytes: 20_000,
    connection_window_bytes: 70_000,
    extended_connect: true,
};

/// What a connection has done: its events, the bytes of data that it received, and how it ended.
#[derive(Debug, Default, PartialEq)]
struct Seen {
    events: Vec<String>,
    data_bytes: usize,
    failure: Option<String>,
}

/// Serves a connection to which `input` comes in pieces of this size.
fn serve(input: &[u8], piece: usize) -> Seen {
    let mut connection = Connection::<u32>::new(LIMITS, 0);
    let mut fields = FieldBuffer::default();
    let mut seen = Seen::default();
    for input in input.chunks(piece) {
        let mut at = 0;
        while at < input.len() {
            let received = match connection.receive(&input[at..], 0, &mut fields) {
                Ok(received) => received,
                Err(failure) => {
                    seen.failure = Some(failure.to_string());
                    return seen;
                }
            };
            assert!(received.used > 0, "nothing of {} bytes is used", input.len() - at);
            at += received.used;
            let Some(event) = received.event else { continue };
            handle(event, &mut connection, &fields, &mut seen);
            while let Some(stream) = connection.next_sender() {
                let filled = connection.fill(stream, |out, most| {
                    out.extend_from_slice(&[b'x'; 100][..most.min(100)]);
                    Ok(true)
                });
                assert!(filled.is_ok());
            }
            assert!(connection.held_bytes() < 200_000, "{} are held", connection.held_bytes());
            connection.output().clear();
        }
    }
    seen
}

fn handle(
    event: Event<u32>,
    connection: &mut Connection<u32>,
    fields: &FieldBuffer,
    seen: &mut Seen,
) {
    let answered = match event {
        Event::Request { stream, ended, is_too_large } => {
            let valid = fields.iter().all(|field| field.is_valid);
            assert!(valid || is_too_large, "a field that is not valid is told");
            seen.events.push(format!("request {stream} {} {is_too_large}", fields.len()));
            connection.open(stream);
            ended.then_some(stream)
        }
        Event::Data { stream, data, ended } => {
            seen.data_bytes += data.len();
            connection.release(stream, data.len());
            ended.then_some(stream)
        }
        Event::Trailers { stream } => {
            seen.events.push(format!("trailers {stream} {}", fields.len()));
            Some(stream)
        }
        Event::Reset { stream, .. } => {
            seen.events.push(format!("reset {stream}"));
            None
        }
    };
    if let Some(stream) = answered {
        seen.events.push(format!("end {stream}"));
        connection.head(stream, 200, false, |writer| writer.field(b"X-A", b"b"));
        connection.set_ready(stream, true);
    }
}

/// Compares how a connection goes whose input comes at once, and in pieces.
pub fn compare(input: &[u8], piece: usize) {
    let whole = serve(input, input.len().max(1));
    assert_eq!(serve(input, piece), whole);
}

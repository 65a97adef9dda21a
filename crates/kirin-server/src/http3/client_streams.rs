//! The streams that a client opens in one direction: its control stream, and those of QPACK.

use std::collections::HashMap;
use std::rc::Rc;

use kirin_h3::control::{ControlEvent, ControlReader};
use kirin_h3::qpack_streams::{DecoderStreamReader, EncoderStreamReader};
use kirin_h3::stream_type::StreamType;
use kirin_h3::{Code, Failure, varint};
use kirin_http::handler::Handler;
use quinn_proto::{StreamId, VarInt};

use super::connection::Http3Connection;
use super::priority::quic_priority;
use super::stream::Read;

/// The streams of one client.
#[derive(Default)]
pub(super) struct ClientStreams {
    streams: HashMap<StreamId, ClientStream>,
    has_control: bool,
    has_encoder: bool,
    has_decoder: bool,
}

enum ClientStream {
    /// Its type is not complete.
    New(Vec<u8>),
    Control(Box<ControlReader>),
    Encoder(EncoderStreamReader),
    Decoder(DecoderStreamReader),
}

/// What is to be done after some bytes of a stream.
enum Step {
    Nothing,
    Priority(StreamId, i32),
    /// The stream is not read.
    Ignore,
}

impl ClientStreams {
    pub(super) fn open(&mut self, id: StreamId) {
        self.streams.insert(id, ClientStream::New(Vec::new()));
    }

    /// Notes the end of a stream.
    fn end(&mut self, id: StreamId) -> Result<(), Failure> {
        match self.streams.remove(&id) {
            None | Some(ClientStream::New(_)) => Ok(()),
            Some(_) => Err(Failure {
                code: Code::ClosedCriticalStream,
                what: "a stream ends that must last as long as the connection",
            }),
        }
    }

    /// Takes bytes of a stream from the front of `input`.
    fn take(&mut self, id: StreamId, input: &mut &[u8]) -> Result<Step, Failure> {
        let Some(stream) = self.streams.get_mut(&id) else {
            *input = &[];
            return Ok(Step::Nothing);
        };
        match stream {
            ClientStream::New(octets) => {
                let Some((octet, rest)) = input.split_first() else { return Ok(Step::Nothing) };
                *input = rest;
                octets.push(*octet);
                match varint::read(octets) {
                    Some((number, _)) => self.begin(id, StreamType::of(number)),
                    None => Ok(Step::Nothing),
                }
            }
            ClientStream::Control(reader) => match reader.take(input)? {
                Some(ControlEvent::Priority(stream, priority)) => {
                    let Ok(id) = VarInt::from_u64(stream) else { return Ok(Step::Nothing) };
                    let id = StreamId::from(id);
                    Ok(Step::Priority(id, quic_priority(priority, id.index())))
                }
                Some(ControlEvent::Settings) | None => Ok(Step::Nothing),
            },
            ClientStream::Encoder(reader) => {
                let all = std::mem::take(input);
                reader.take(all).map(|()| Step::Nothing)
            }
            ClientStream::Decoder(reader) => {
                let all = std::mem::take(input);
                reader.take(all).map(|()| Step::Nothing)
            }
        }
    }

    fn begin(&mut self, id: StreamId, kind: StreamType) -> Result<Step, Failure> {
        let (stream, is_second) = match kind {
            StreamType::Control => (
                ClientStream::Control(Box::default()),
                std::mem::replace(&mut self.has_control, true),
            ),
            StreamType::QpackEncoder => (
                ClientStream::Encoder(EncoderStreamReader::default()),
                std::mem::replace(&mut self.has_encoder, true),
            ),
            StreamType::QpackDecoder => (
                ClientStream::Decoder(DecoderStreamReader::default()),
                std::mem::replace(&mut self.has_decoder, true),
            ),
            StreamType::Push => {
                let what = "a client must not push";
                return Err(Failure { code: Code::StreamCreation, what });
            }
            StreamType::Unknown => {
                self.streams.remove(&id);
                return Ok(Step::Ignore);
            }
        };
        if is_second {
            let what = "a stream of which there must be one";
            return Err(Failure { code: Code::StreamCreation, what });
        }
        self.streams.insert(id, stream);
        Ok(Step::Nothing)
    }
}

impl<H: Handler> Http3Connection<H> {
    /// Reads what has come on a stream in one direction.
    pub(super) fn read_client_stream(self: &Rc<Self>, id: StreamId) {
        loop {
            let bytes = match self.read(id) {
                Read::Bytes(bytes) => bytes,
                Read::Nothing => return,
                Read::End | Read::Reset => {
                    let ended = self.client_streams.borrow_mut().end(id);
                    return ended.unwrap_or_else(|failure| self.fail(failure));
                }
            };
            let mut input = &bytes[..];
            while !input.is_empty() {
                let step = self.client_streams.borrow_mut().take(id, &mut input);
                match step {
                    Ok(Step::Nothing) => {}
                    Ok(Step::Priority(id, priority)) => self.set_priority(id, priority),
                    Ok(Step::Ignore) => {
                        let code = VarInt::from_u32(Code::StreamCreation.number());
                        _ = self.quic.borrow_mut().recv_stream(id).stop(code);
                        return self.touch();
                    }
                    Err(failure) => return self.fail(failure),
                }
            }
        }
    }

    /// Changes the priority of a response that has not ended. One for a request that has not come
    /// yet is not kept.
    fn set_priority(&self, id: StreamId, priority: i32) {
        if self.streams.borrow().contains_key(&id) {
            // It fails if the response has ended.
            _ = self.quic.borrow_mut().send_stream(id).set_priority(priority);
        }
    }
}

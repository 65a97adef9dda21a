//! The client's side of a WebSocket (RFC 6455), with messages of up to 125 bytes.

/// The fields of a handshake. The key is that of RFC 6455 section 1.3.
pub const FIELDS: [&str; 4] = [
    "Connection: Upgrade",
    "Upgrade: websocket",
    "Sec-WebSocket-Version: 13",
    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
];

/// The field of the answer to it.
pub const ACCEPT: &str = "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=";

/// The first byte of the frame of a complete text message, and of a close frame.
const TEXT: u8 = 0x81;
pub const CLOSE: u8 = 0x88;

/// The flag of a mask, which is beside the length.
const MASKED: u8 = 0x80;

/// Returns a text message as a server sends it.
pub fn message(text: &[u8]) -> Vec<u8> {
    [&[TEXT, length(text)], text].concat()
}

/// Returns a text message as a client sends it.
pub fn masked_message(text: &[u8]) -> Vec<u8> {
    masked(TEXT, text)
}

/// Returns the close frame of a client.
pub fn masked_close(code: u16) -> Vec<u8> {
    masked(CLOSE, &code.to_be_bytes())
}

fn masked(first: u8, data: &[u8]) -> Vec<u8> {
    let mask = [0x37, 0xfa, 0x21, 0x3d];
    let bytes = data.iter().zip(mask.iter().cycle()).map(|(byte, mask)| byte ^ mask);
    [&[first, MASKED | length(data)], &mask[..], &bytes.collect::<Vec<u8>>()].concat()
}

fn length(data: &[u8]) -> u8 {
    u8::try_from(data.len()).ok().filter(|&length| length <= 125).expect("a short message")
}

//! Informational responses over HTTP/1.1.

use std::io;
use std::pin::Pin;

use bytes::Bytes;
use http::StatusCode;
use kirin_http::field_lines::FieldLines;
use kirin_http::informational::InformationalClient;
use kirin_http::pace::Pace;

use crate::connection::io::Io;
use crate::http1::output::Unsent;
use crate::http1::response_writer::write_status_line;
use crate::http1::sending;

impl InformationalClient for Io {
    fn send<'a>(
        &'a self,
        status: StatusCode,
        fields: &'a FieldLines,
        pace: &'a mut Pace,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + 'a>> {
        let mut head = Vec::with_capacity(fields.len_bytes() + 40);
        write_status_line(status, &mut head);
        fields.write_to(&mut head);
        head.extend_from_slice(b"\r\n");
        Box::pin(async move {
            let mut unsent = Unsent::one(Bytes::from(head));
            sending::flush_at(self, pace, &mut unsent).await
        })
    }
}

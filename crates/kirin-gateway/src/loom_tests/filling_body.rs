//! A body that one task fills and another reads.

use std::future::poll_fn;

use bytes::Bytes;
use kirin_http::body::BodyStream;
use kirin_sync::model::{check, join, spawn, wait_for};

use crate::filters::cache::filling_body::{BodyReader, Demand, Filler, FillingBody};

/// As many bytes as are read ahead of the fastest reader.
const PIECE: Bytes = Bytes::from_static(&[b'a'; 64 * 1024]);

/// Returns how many bytes a reader gets until the end.
fn read(mut reader: BodyReader) -> usize {
    let mut bytes = 0;
    while let Some(piece) = wait_for(poll_fn(|context| reader.poll_chunk(context))) {
        bytes += piece.expect("the body is whole").len();
    }
    bytes
}

#[test]
fn a_reader_that_waits_misses_neither_a_piece_nor_the_end() {
    check(5, || {
        let (_body, filler, reader) = FillingBody::new(None, 1 << 20);
        let thread = spawn(move || {
            filler.push(PIECE);
            filler.end();
        });
        assert_eq!(read(reader), PIECE.len());
        join(thread);
    });
}

#[test]
fn a_filler_that_waits_misses_no_reader() {
    fn demand(filler: &Filler) -> Demand {
        wait_for(poll_fn(|context| filler.poll_demand(context)))
    }
    check(5, || {
        let (_body, filler, reader) = FillingBody::new(None, 1);
        filler.is_too_long();
        let thread = spawn(move || read(reader));
        filler.push(PIECE);
        assert_eq!(demand(&filler), Demand::More);
        filler.end();
        assert_eq!(join(thread), PIECE.len());
        assert_eq!(demand(&filler), Demand::Nobody);
    });
}

//! Tests of the FastCGI records.

use std::mem::MaybeUninit;

use kirin_http::request::{HeadLimits, MAX_FIELDS, Parsed, parse};
use kirin_http::{Client, ListenAddress, Origin, Peer, RequestNotes};
use proptest::prelude::*;

use super::*;
use crate::meta_variables::MetaVariables;

fn block(request: &str) -> RequestBlock {
    let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let limits = HeadLimits { head_bytes: 1 << 20, ..HeadLimits::default() };
    let Ok(Parsed::Complete(head, _)) = parse(request.as_bytes(), &mut storage, &limits) else {
        panic!("not a request")
    };
    let local = ListenAddress::Unix("/s".into());
    let origin = Origin {
        peer: &Peer::Unix,
        local: &local,
        secure: false,
        client: Client::NotRequested,
        proxy: None,
        now: 0,
        notes: &RequestNotes::default(),
    };
    RequestBlock::encode(&head, origin, &MetaVariables::default()).unwrap()
}

/// Returns type and content of each record.
fn records(mut bytes: &[u8]) -> Vec<(u8, Vec<u8>)> {
    let mut records = Vec::new();
    while !bytes.is_empty() {
        let content = usize::from(u16::from_be_bytes([bytes[4], bytes[5]]));
        assert_eq!((bytes[0], bytes[2], bytes[3]), (1, 0, 1));
        records.push((bytes[1], bytes[8..8 + content].to_vec()));
        bytes = &bytes[8 + content + usize::from(bytes[6])..];
    }
    records
}

/// Decodes names and values as a FastCGI server does.
fn pairs(mut params: &[u8]) -> Vec<(String, String)> {
    fn length(params: &mut &[u8]) -> usize {
        let first = params[0];
        if first < 128 {
            *params = &params[1..];
            return usize::from(first);
        }
        let long = u32::from_be_bytes(params[..4].try_into().unwrap()) & 0x7fff_ffff;
        *params = &params[4..];
        long as usize
    }
    let mut pairs = Vec::new();
    while !params.is_empty() {
        let (name, value) = (length(&mut params), length(&mut params));
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        pairs.push((text(&params[..name]), text(&params[name..name + value])));
        params = &params[name + value..];
    }
    pairs
}

#[test]
fn a_request_becomes_records() {
    let block = block("POST /a.php?x=1 HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n");
    let bytes = begin(&block, 3, &[("SCRIPT_FILENAME", "/srv/a.php")], true);
    let records = records(&bytes);
    let kinds: Vec<u8> = records.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(kinds, [BEGIN_REQUEST, PARAMS, PARAMS]);
    assert_eq!(records[0].1, [0, 1, 1, 0, 0, 0, 0, 0]);
    assert!(records[2].1.is_empty());
    let pairs = pairs(&records[1].1);
    for (name, value) in [
        ("REQUEST_METHOD", "POST"),
        ("QUERY_STRING", "x=1"),
        ("HTTP_HOST", "h"),
        ("CONTENT_LENGTH", "3"),
        ("GATEWAY_INTERFACE", "CGI/1.1"),
        ("SCRIPT_FILENAME", "/srv/a.php"),
    ] {
        assert!(pairs.contains(&(name.into(), value.into())), "{name}: {pairs:?}");
    }
}

#[test]
fn long_parameters_are_spread_over_records() {
    let long = "y".repeat(200_000);
    let block = block(&format!("GET / HTTP/1.1\r\nHost: h\r\nX-Long: {long}\r\n\r\n"));
    let records = records(&begin(&block, 0, &[], false));
    assert!(records.iter().filter(|(kind, _)| *kind == PARAMS).count() > 4);
    let params: Vec<u8> =
        records.iter().filter(|(kind, _)| *kind == PARAMS).flat_map(|r| r.1.clone()).collect();
    assert!(pairs(&params).contains(&("HTTP_X_LONG".into(), long)));
}

fn record(kind: u8, id: u16, content: &[u8], padding: u8) -> Vec<u8> {
    let [high, low] = u16::try_from(content.len()).unwrap().to_be_bytes();
    let [id_high, id_low] = id.to_be_bytes();
    let mut record = vec![1, kind, id_high, id_low, high, low, padding, 0];
    record.extend_from_slice(content);
    record.resize(record.len() + usize::from(padding), 0);
    record
}

fn read_all(decoder: &mut Decoder, input: &mut BytesMut) -> Result<Vec<FastCgiEvent>, BadRecord> {
    let mut events = Vec::new();
    while let Some(event) = decoder.next(input)? {
        events.push(event);
    }
    Ok(events)
}

#[test]
fn records_become_their_events() {
    let mut input = BytesMut::new();
    input.extend(record(STDERR, 1, b"notice", 2));
    input.extend(record(STDOUT, 1, b"Content-Type: a/b\r\n\r\nhello", 5));
    input.extend(record(STDOUT, 1, b"", 0));
    input.extend(record(END_REQUEST, 1, &[0; 8], 0));
    let mut decoder = Decoder::default();
    let events = read_all(&mut decoder, &mut input).unwrap();
    let expected = [
        FastCgiEvent::Stderr(Bytes::from_static(b"notice")),
        FastCgiEvent::Stdout(Bytes::from_static(b"Content-Type: a/b\r\n\r\nhello")),
        FastCgiEvent::End,
    ];
    assert_eq!(events, expected);
    assert!(input.is_empty() && !decoder.is_inside_record());
}

#[test]
fn malformed_records_are_refused() {
    for (bytes, expected) in [
        (b"HTTP/1.1 400".to_vec(), BadRecord::Version(b'H')),
        (b"H".to_vec(), BadRecord::Version(b'H')),
        (record(STDOUT, 2, b"x", 0), BadRecord::Unexpected(STDOUT, 2)),
        (record(9, 1, b"x", 0), BadRecord::Unexpected(9, 1)),
        (record(END_REQUEST, 1, b"x", 0), BadRecord::End(1)),
        (record(END_REQUEST, 1, &[0, 0, 0, 0, 2, 0, 0, 0], 0), BadRecord::Refused(2)),
    ] {
        let mut input = BytesMut::from(&bytes[..]);
        assert_eq!(read_all(&mut Decoder::default(), &mut input), Err(expected));
    }
}

#[test]
fn the_decoder_knows_that_it_is_inside_a_cut_record() {
    let whole = record(STDOUT, 1, b"hello", 3);
    for end in 9..whole.len() {
        let mut decoder = Decoder::default();
        read_all(&mut decoder, &mut BytesMut::from(&whole[..end])).unwrap();
        assert!(decoder.is_inside_record(), "{end}");
    }
}

proptest! {
    #[test]
    fn the_events_do_not_depend_on_how_the_input_is_cut(
        contents in proptest::collection::vec((any::<bool>(), proptest::collection::vec(any::<u8>(), 0..300), 0u8..9), 0..8),
        cuts in proptest::collection::vec(1usize..50, 1..100),
    ) {
        let mut stream = Vec::new();
        let mut expected = [Vec::new(), Vec::new()];
        for (is_error, content, padding) in &contents {
            stream.extend(record(if *is_error { STDERR } else { STDOUT }, 1, content, *padding));
            expected[usize::from(*is_error)].extend_from_slice(content);
        }
        stream.extend(record(END_REQUEST, 1, &[0; 8], 4));
        let mut found = [Vec::new(), Vec::new()];
        let (mut decoder, mut input, mut ends) = (Decoder::default(), BytesMut::new(), 0);
        let (mut rest, mut cuts) = (&stream[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, after) = rest.split_at((*cuts.next().unwrap()).min(rest.len()));
            input.extend_from_slice(piece);
            rest = after;
            for event in read_all(&mut decoder, &mut input).unwrap() {
                match event {
                    FastCgiEvent::Stdout(bytes) => found[0].extend_from_slice(&bytes),
                    FastCgiEvent::Stderr(bytes) => found[1].extend_from_slice(&bytes),
                    FastCgiEvent::End => ends += 1,
                }
            }
        }
        prop_assert_eq!(found, expected);
        prop_assert_eq!(ends, 1);
    }

    #[test]
    fn any_bytes_become_events_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
        let mut input = BytesMut::from(&bytes[..]);
        let _ = read_all(&mut Decoder::default(), &mut input);
    }
}

//! Tests of the PROXY protocol.

use proptest::prelude::*;

use super::*;

fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    header.extend([command, family]);
    header.extend((rest.len() as u16).to_be_bytes());
    header.extend(rest);
    header
}

fn tcp(address: &str) -> Option<Peer> {
    Some(Peer::Tcp(address.parse().unwrap()))
}

fn complete(input: &[u8]) -> (Option<Peer>, usize) {
    match parse(input) {
        Ok(ParsedHeader::Complete { client, length }) => (client, length),
        other => panic!("{:?}: {other:?}", String::from_utf8_lossy(input)),
    }
}

const V4: &[u8] = &[192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 0, 80];

fn v6() -> Vec<u8> {
    let mut addresses = "2001:db8::7".parse::<Ipv6Addr>().unwrap().octets().to_vec();
    addresses.extend("::1".parse::<Ipv6Addr>().unwrap().octets());
    addresses.extend([0x12, 0x67, 0, 80]);
    addresses
}

#[test]
fn the_client_is_the_source_address() {
    for (line, client) in [
        ("PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\n", tcp("192.0.2.7:4711")),
        ("PROXY TCP6 2001:db8::7 ::1 4711 80\r\n", tcp("[2001:db8::7]:4711")),
        ("PROXY TCP6 ::ffff:192.0.2.7 ::1 0 65535\r\n", tcp("192.0.2.7:0")),
        ("PROXY UNKNOWN\r\n", None),
        ("PROXY UNKNOWN ffff:f...f ffff 65535 whatever\r\n", None),
    ] {
        let input = format!("{line}GET / HTTP/1.1\r\n");
        assert_eq!(complete(input.as_bytes()), (client, line.len()), "{line}");
    }
    for (header, client) in [
        (v2(0x21, 0x11, V4), tcp("192.0.2.7:4711")),
        (v2(0x21, 0x21, &v6()), tcp("[2001:db8::7]:4711")),
        (v2(0x21, 0x31, &[b'x'; 216]), Some(Peer::Unix)),
        (v2(0x21, 0x00, b"unspecified"), None),
        (v2(0x20, 0x00, b""), None),
        // LOCAL: the addresses must be ignored.
        (v2(0x20, 0x11, V4), None),
        // Type-length-values follow the addresses.
        (
            v2(0x21, 0x11, &[V4, &[4, 0, 3, 0, 0, 0], &[0xee, 0, 1, 9]].concat()),
            tcp("192.0.2.7:4711"),
        ),
    ] {
        let input = [&header[..], b"\x16\x03\x01"].concat();
        assert_eq!(complete(&input), (client, header.len()), "{header:?}");
    }
}

#[test]
fn a_malformed_header_is_refused() {
    let long_line = format!("PROXY UNKNOWN {}", "x".repeat(100));
    for (input, expected) in [
        (&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], Malformed::Start),
        (b"\x16\x03\x01", Malformed::Start),
        (b"PROXY\tTCP4", Malformed::Start),
        (b"proxy TCP4", Malformed::Start),
        (long_line.as_bytes(), Malformed::LineTooLong),
        (b"PROXY \r\n", Malformed::Line),
        (b"PROXY TCP5 192.0.2.7 10.0.0.1 4711 80\r\n", Malformed::Line),
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 4711\r\n", Malformed::Line),
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 80 \r\n", Malformed::Line),
        (b"PROXY TCP4  192.0.2.7 10.0.0.1 4711 80\r\n", Malformed::Line),
        (b"PROXY TCP4 192.0.2.256 10.0.0.1 4711 80\r\n", Malformed::Line),
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 65536 80\r\n", Malformed::Line),
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 +80 80\r\n", Malformed::Line),
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 080 80\r\n", Malformed::Line),
        (b"PROXY TCP4 2001:db8::7 ::1 4711 80\r\n", Malformed::Line),
        (b"PROXY TCP6 192.0.2.7 10.0.0.1 4711 80\r\n", Malformed::Line),
        (b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\nGET\r\n", Malformed::Line),
        (b"PROXY TCP4 \xff\r\n", Malformed::Line),
        (&v2(0x11, 0x11, V4), Malformed::Version(1)),
        (&v2(0x31, 0x11, V4), Malformed::Version(3)),
        (&v2(0x22, 0x11, V4), Malformed::Command(2)),
        (&v2(0x21, 0x12, V4), Malformed::Family(0x12)),
        (&v2(0x21, 0x41, V4), Malformed::Family(0x41)),
        (&v2(0x21, 0x11, &V4[..11]), Malformed::Addresses),
        (&v2(0x21, 0x21, V4), Malformed::Addresses),
        (&v2(0x21, 0x31, V4), Malformed::Addresses),
        (&v2(0x21, 0x11, &[0; MAX_V2_REST_BYTES + 1]), Malformed::TooLong),
    ] {
        assert_eq!(parse(input), Err(expected), "{:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn a_header_is_partial_up_to_its_last_byte() {
    for header in [
        b"PROXY TCP6 2001:db8::7 ::1 4711 80\r\n".to_vec(),
        b"PROXY UNKNOWN\r\n".to_vec(),
        v2(0x21, 0x11, V4),
        v2(0x21, 0x21, &[&v6()[..], &[4, 0, 1, 0]].concat()),
        v2(0x20, 0x00, b""),
    ] {
        for end in 0..header.len() {
            assert_eq!(parse(&header[..end]), Ok(ParsedHeader::Partial), "{end} of {header:?}");
        }
        assert_eq!(complete(&header).1, header.len());
    }
}

#[test]
fn headers_cost_no_more_than_their_bytes() {
    let mut table = kirin_doubling::Table::new();
    for piece in ["PROXY ", "PROXY TCP4 ", "\r\n\r\n\0\r\nQUIT\n", "PROXY UNKNOWN "] {
        table.check(
            &format!("PROXY {piece:?}"),
            100,
            move |count| piece.repeat(count).into_bytes(),
            |input: &Vec<u8>| parse(input),
        );
    }
    let binary = |count: usize| {
        let length = u16::try_from(12 + count).unwrap_or(u16::MAX).to_be_bytes();
        [&b"\r\n\r\n\0\r\nQUIT\n\x21\x11"[..], &length, &vec![4; 12 + count]].concat()
    };
    table.check("PROXY, values", 500, binary, |input: &Vec<u8>| parse(input));
    table.finish();
}

proptest! {
    #[test]
    fn any_bytes_are_read_without_a_panic_and_never_past_their_end(
        start in prop::sample::select(vec![&b""[..], LINE_START, SIGNATURE, b"PROXY TCP4 ", b"\r\n\r\n\0\r\nQUIT\n\x21\x11\x00"]),
        rest in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let input = [start, &rest].concat();
        if let Ok(ParsedHeader::Complete { length, .. }) = parse(&input) {
            prop_assert!(length <= input.len() && length <= MAX_HEADER_BYTES);
        }
    }

    #[test]
    fn a_written_header_of_either_version_is_read_back(address: u32, from: u16, to: u16, v6: u128) {
        let source = SocketAddr::from((Ipv4Addr::from(address), from));
        let line = format!("PROXY TCP4 {} 10.0.0.1 {from} {to}\r\n", source.ip());
        prop_assert_eq!(complete(line.as_bytes()).0, Some(Peer::Tcp(source)));
        let rest = [&address.to_be_bytes()[..], &[10, 0, 0, 1], &from.to_be_bytes(), &to.to_be_bytes()].concat();
        prop_assert_eq!(complete(&v2(0x21, 0x11, &rest)).0, Some(Peer::Tcp(source)));
        let source = SocketAddr::new(IpAddr::from(v6.to_be_bytes()).to_canonical(), from);
        let rest = [&v6.to_be_bytes()[..], &[0; 16], &from.to_be_bytes(), &to.to_be_bytes()].concat();
        prop_assert_eq!(complete(&v2(0x21, 0x21, &rest)).0, Some(Peer::Tcp(source)));
    }
}

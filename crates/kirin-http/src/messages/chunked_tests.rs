//! Tests of the chunked coding.

use proptest::prelude::*;

use super::*;

/// Returns the data of a body and the bytes behind its end, or `None` if it has not ended.
type Decoded = Option<(Vec<u8>, Vec<u8>)>;

/// Feeds `pieces` one after another.
fn decode(pieces: &[&[u8]]) -> Result<Decoded, ChunkedError> {
    let mut decoder = ChunkedDecoder::new();
    let (mut data, mut rest) = (Vec::new(), Vec::new());
    for piece in pieces {
        let mut input = *piece;
        if decoder.is_done() {
            rest.extend_from_slice(input);
            continue;
        }
        loop {
            match decoder.decode(input)? {
                Event::Data { start, end } => {
                    data.extend_from_slice(&input[start..end]);
                    input = &input[end..];
                }
                Event::NeedMore => break,
                Event::End { consumed } => {
                    rest.extend_from_slice(&input[consumed..]);
                    break;
                }
            }
        }
    }
    Ok(decoder.is_done().then_some((data, rest)))
}

#[test]
fn chunks_extensions_and_trailers_are_taken_and_the_rest_is_left() {
    let whole = b"5;name=\"v\"\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 1\r\n\r\nGET / ";
    assert_eq!(decode(&[whole]), Ok(Some((b"hello world".to_vec(), b"GET / ".to_vec()))));
}

/// Returns the trailers of a body whose last part is `section`, fed in two pieces that meet at
/// `at`.
fn trailers(section: &[u8], at: usize) -> Result<Option<String>, ChunkedError> {
    let whole = [&b"2\r\nhi\r\n0\r\n"[..], section, b"GET /"].concat();
    let mut decoder = ChunkedDecoder::new();
    for mut piece in [&whole[..at.min(whole.len())], &whole[at.min(whole.len())..]] {
        assert!(
            decoder.is_done() || decoder.take_trailers().is_none(),
            "they are there before the end"
        );
        while let Event::Data { end, .. } = decoder.decode(piece)? {
            piece = &piece[end..];
        }
    }
    assert!(decoder.is_done(), "{section:?}");
    Ok(decoder.take_trailers().map(|trailers| {
        let mut out = Vec::new();
        trailers.write_to(&mut out);
        String::from_utf8(out).unwrap()
    }))
}

#[test]
fn trailers_are_the_same_wherever_the_input_is_split() {
    for (section, expected) in [
        ("\r\n", None),
        ("X-Sum: 1\r\n\r\n", Some("x-sum: 1\r\n")),
        ("A:\r\n\r\n", Some("a: \r\n")),
        (
            "A:b:c\r\nA: \t d \r\nGrpc-Status: 0\r\n\r\n",
            Some("a: b:c\r\na: d\r\ngrpc-status: 0\r\n"),
        ),
        ("Content-Length: 9\r\nHost: c\r\n\r\n", None),
        ("Content-Length: 9\r\nX: 1\r\nSet-Cookie: a\r\n\r\n", Some("x: 1\r\n")),
    ] {
        for at in 0..section.len() + 20 {
            let got = trailers(section.as_bytes(), at);
            assert_eq!(got.as_ref().map(|got| got.as_deref()), Ok(expected), "{section:?} at {at}");
        }
    }
}

#[test]
fn written_trailers_are_read_back() {
    let mut first = ChunkedDecoder::new();
    first.decode(b"0\r\nX-A: 1\r\nB: 2\r\nx-a: 3\r\n\r\n").unwrap();
    let mut written = Vec::new();
    write_end(&first.take_trailers().unwrap(), &mut written);
    assert_eq!(String::from_utf8_lossy(&written), "0\r\nx-a: 1\r\nx-a: 3\r\nb: 2\r\n\r\n");
    let mut second = ChunkedDecoder::new();
    assert_eq!(second.decode(&written), Ok(Event::End { consumed: written.len() }));
    let mut again = Vec::new();
    write_end(&second.take_trailers().unwrap(), &mut again);
    assert_eq!(again, written);
}

#[test]
fn broken_framing_is_refused() {
    for input in [
        &b"\r\n"[..],
        b"g\r\n",
        b"-1\r\n",
        b"+1\r\na",
        b"0x5\r\nhello\r\n",
        b" 5\r\n",
        b"5 \r\nhello\r\n",
        b"5\nhello",
        b"5\rhello",
        b"5;a\nhello",
        b"5\r\nhelloX\r\n",
        b"5\r\nhello\n0\r\n\r\n",
        b"fffffffffffffffff\r\n",
        b"11111111111111111\r\n",
        b"0\r\nX: \0\r\n\r\n",
        b"0\r\nX: 1\n\r\n",
        b"0\r\n\n",
        b"5;\r\nhello\r\n",
        b"5; \r\nhello\r\n",
        b"5;a \r\nhello\r\n",
        b"5;a=\r\nhello\r\n",
        b"5;=b\r\nhello\r\n",
        b"5;a=b c\r\nhello\r\n",
        b"5;a=\"b\r\nhello\r\n",
        b"5;a=\"b\"c\r\nhello\r\n",
        b"5;a=\"\x01\"\r\nhello\r\n",
        b"5;\xe9\r\nhello\r\n",
        b"5 a\r\nhello\r\n",
        b"5;a\rb\r\nhello\r\n",
        b"0\r\nX\r\n\r\n",
        b"0\r\nX : 1\r\n\r\n",
        b"0\r\n X: 1\r\n\r\n",
        b"0\r\n: 1\r\n\r\n",
        b"0\r\nX: 1\r\n folded\r\n\r\n",
        b"0\r\nX: 1\rY\r\n\r\n",
        b"0\r\nGET / HTTP/1.1\r\n\r\n",
    ] {
        assert!(decode(&[input]).is_err(), "{:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn extensions_of_every_form_are_ignored() {
    for extension in [
        ";a",
        ";a;b",
        " ; a",
        "\t;\ta\t=\tb",
        ";a=b;c",
        ";a=\"b c;\\\"d\"",
        ";a=\"\" ;b",
        ";a=\"\u{e9}\"",
        ";a ; b",
    ] {
        let input = format!("5{extension}\r\nhello\r\n0{extension}\r\n\r\n");
        assert_eq!(
            decode(&[input.as_bytes()]),
            Ok(Some((b"hello".to_vec(), Vec::new()))),
            "{input:?}"
        );
    }
}

#[test]
fn endless_size_lines_and_trailers_are_refused() {
    let line = [&b"5;"[..], &b"a".repeat(300)].concat();
    assert!(decode(&[&line]).is_err());
    let chunks = [&b"1;"[..], &b"a".repeat(200), b"\r\nx\r\n"].concat().repeat(100);
    assert!(decode(&[&chunks]).is_err());
    let zeros = b"0".repeat(300);
    assert!(decode(&[&zeros]).is_err());
    let trailers = [&b"0\r\n"[..], &b"X: y\r\n".repeat(3000)].concat();
    assert!(decode(&[&trailers]).is_err());
    for (count, is_ok) in [(MAX_TRAILER_FIELDS, true), (MAX_TRAILER_FIELDS + 1, false)] {
        let many = [&b"0\r\n"[..], &b"A:\r\n".repeat(count), b"\r\n"].concat();
        assert_eq!(decode(&[&many]).is_ok(), is_ok, "{count}");
    }
    for (bytes, is_ok) in [(MAX_TRAILER_BYTES - 2, true), (MAX_TRAILER_BYTES - 1, false)] {
        let long = [&b"0\r\nA:"[..], &b"x".repeat(bytes), b"\r\n\r\n"].concat();
        assert_eq!(decode(&[&long]).is_ok(), is_ok, "{bytes}");
    }
}

proptest! {
    #[test]
    fn any_split_gives_the_same_data(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6), at in 0usize..400) {
        let mut whole = Vec::new();
        for chunk in &chunks {
            write_chunk_head(chunk.len(), &mut whole);
            whole.extend_from_slice(chunk);
            whole.extend_from_slice(b"\r\n");
        }
        whole.extend_from_slice(LAST_CHUNK);
        whole.extend_from_slice(b"next");
        let at = at.min(whole.len());
        let (first, second) = whole.split_at(at);
        prop_assert_eq!(decode(&[first, second]), Ok(Some((chunks.concat(), b"next".to_vec()))));
    }

    #[test]
    fn trailers_that_are_written_are_read_from_any_two_pieces(
        fields in prop::collection::vec(("y-[a-z0-9!#$&|~_-]{0,8}", "([!-~]([ -~]{0,12}[!-~])?)?"), 1..8),
        at in 0usize..300,
    ) {
        let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
        let got = trailers(format!("{lines}\r\n").as_bytes(), at).unwrap().unwrap();
        let sorted = |text: &str| {
            let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        prop_assert_eq!(sorted(&got), sorted(&lines));
    }

    #[test]
    fn no_input_panics(input in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&[&input]);
    }
}

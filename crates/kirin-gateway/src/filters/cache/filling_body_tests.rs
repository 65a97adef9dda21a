//! Tests of the body that fills the cache while it is sent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Wake;

use proptest::prelude::*;

use super::*;

/// Counts how often it was woken.
#[derive(Default)]
struct Woken(AtomicUsize);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Woken {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

fn piece(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

fn poll(reader: &mut BodyReader) -> Poll<Option<Result<Bytes, StreamError>>> {
    reader.poll_chunk(&mut Context::from_waker(Waker::noop()))
}

/// Returns the bytes that a reader gets now, and its next state.
fn read(reader: &mut BodyReader) -> (String, &'static str) {
    let mut text = String::new();
    loop {
        match poll(reader) {
            Poll::Pending => return (text, "waits"),
            Poll::Ready(None) => return (text, "ends"),
            Poll::Ready(Some(Err(_))) => return (text, "is cut"),
            Poll::Ready(Some(Ok(piece))) => {
                assert!(!piece.is_empty());
                text.push_str(std::str::from_utf8(&piece).unwrap());
            }
        }
    }
}

fn got(text: &str, then: &'static str) -> (String, &'static str) {
    (text.to_owned(), then)
}

fn demand(filler: &Filler) -> Poll<Demand> {
    filler.poll_demand(&mut Context::from_waker(Waker::noop()))
}

fn has_room(filler: &Filler) -> bool {
    filler.poll_room(&mut Context::from_waker(Waker::noop())).is_ready()
}

#[test]
fn each_reader_gets_the_complete_body_whenever_it_joins() {
    let (body, filler, mut first) = FillingBody::new(None, 100);
    filler.push(piece("ab"));
    assert_eq!(read(&mut first), got("ab", "waits"));
    let mut second = body.reader(None).unwrap();
    filler.push(piece("cd"));
    assert_eq!(read(&mut second), got("abcd", "waits"));
    filler.end();
    let mut third = body.reader(None).unwrap();
    assert_eq!(read(&mut first), got("cd", "ends"));
    assert_eq!(read(&mut second), got("", "ends"));
    assert_eq!(read(&mut third), got("abcd", "ends"));
    assert_eq!(read(&mut third), got("", "ends"));
}

#[test]
fn a_cut_body_is_cut_for_all_and_takes_no_more_readers() {
    for is_told in [true, false] {
        let (body, filler, mut first) = FillingBody::new(Some(4), 100);
        let mut second = body.reader(None).unwrap();
        filler.push(piece("ab"));
        assert_eq!(read(&mut first), got("ab", "waits"));
        match is_told {
            true => filler.cut(&StreamError("gone".into())),
            false => drop(filler),
        }
        assert_eq!(read(&mut first), got("", "is cut"));
        assert_eq!(read(&mut second), got("ab", "is cut"));
        assert_eq!(read(&mut second), got("", "is cut"));
        assert!(body.reader(None).is_none());
    }
}

#[test]
fn each_change_wakes_waiting_readers_only() {
    let (body, filler, mut first) = FillingBody::new(None, 100);
    let mut second = body.reader(None).unwrap();
    let woken = [Arc::<Woken>::default(), Arc::default()];
    let waits = |reader: &mut BodyReader, woken: &Arc<Woken>| {
        reader.poll_chunk(&mut Context::from_waker(&Arc::clone(woken).into())).is_pending()
    };
    assert!(waits(&mut first, &woken[0]) && waits(&mut second, &woken[1]));
    filler.push(piece("a"));
    assert_eq!(woken.each_ref().map(|woken| woken.count()), [1, 1]);
    assert_eq!(read(&mut first), got("a", "waits"));
    assert!(waits(&mut first, &woken[0]));
    filler.push(piece("b"));
    assert_eq!(woken.each_ref().map(|woken| woken.count()), [2, 1]);
    assert_eq!(read(&mut second), got("ab", "waits"));
    assert!(waits(&mut second, &woken[1]));
    filler.end();
    assert_eq!(
        woken.each_ref().map(|woken| woken.count()),
        [2, 2],
        "the first had read nothing since"
    );
    assert_eq!(read(&mut first), got("b", "ends"));
}

#[test]
fn a_part_is_cut_out_of_the_pieces() {
    for (start, length, expected) in
        [(0, 1, "a"), (0, 8, "abcdefgh"), (1, 3, "bcd"), (2, 2, "cd"), (3, 4, "defg"), (7, 1, "h")]
    {
        let (body, filler, _first) = FillingBody::new(Some(8), 100);
        let mut part = body.reader(Some(ByteRange { start, length })).unwrap();
        assert_eq!(part.length(), Some(length));
        for text in ["ab", "c", "def", "gh"] {
            filler.push(piece(text));
        }
        // The body need not end for that.
        assert_eq!(read(&mut part), got(expected, "ends"), "{start} {length}");
    }
    let (body, filler, _first) = FillingBody::new(Some(8), 100);
    let mut part = body.reader(Some(ByteRange { start: 1, length: 4 })).unwrap();
    filler.push(piece("abc"));
    drop(filler);
    assert_eq!(read(&mut part), got("bc", "is cut"));
}

#[test]
fn a_body_too_long_to_be_stored_takes_no_more_readers() {
    let (body, filler, mut first) = FillingBody::new(None, 4);
    let mut second = body.reader(None).unwrap();
    filler.push(piece("abc"));
    filler.push(piece("def"));
    filler.is_too_long();
    assert!(body.reader(None).is_none());
    assert_eq!(read(&mut first), got("abcdef", "waits"));
    // The second reader has all of it to read. That is more than could have been stored.
    assert_eq!((demand(&filler), has_room(&filler)), (Poll::Ready(Demand::More), false));
    assert_eq!(poll(&mut second).map(|piece| piece.unwrap().unwrap()), Poll::Ready(piece("abc")));
    assert!(has_room(&filler));
    assert_eq!(body.shared.lock().pieces, [piece("def")], "what all have read is let go");
    filler.push(piece("gh"));
    filler.end();
    assert_eq!(read(&mut first), got("gh", "ends"));
    assert_eq!(read(&mut second), got("defgh", "ends"));
}

#[test]
fn a_body_that_is_not_stored_is_filled_at_the_fastest_readers_pace() {
    let (body, filler, mut first) = FillingBody::new(None, 1_000_000);
    let second = body.reader(None).unwrap();
    filler.push(Bytes::from(vec![b'x'; AHEAD_BYTES as usize]));
    filler.is_too_long();
    let woken = Arc::<Woken>::default();
    let waker = Arc::clone(&woken).into();
    assert!(filler.poll_demand(&mut Context::from_waker(&waker)).is_pending());
    assert!(poll(&mut first).is_ready());
    assert_eq!((woken.count(), demand(&filler)), (1, Poll::Ready(Demand::More)));
    assert!(filler.poll_deserted(&mut Context::from_waker(&waker)).is_pending());
    drop(first);
    assert_eq!((woken.count(), demand(&filler)), (2, Poll::Pending));
    assert!(filler.poll_deserted(&mut Context::from_waker(&waker)).is_pending());
    drop(second);
    assert_eq!((woken.count(), demand(&filler)), (3, Poll::Ready(Demand::Nobody)));
    assert!(filler.poll_deserted(&mut Context::from_waker(&waker)).is_ready());
}

#[test]
fn the_slowest_reader_is_cut_only_if_others_have_nothing_to_read() {
    let (body, filler, mut first) = FillingBody::new(None, 2);
    let (mut second, mut third) = (body.reader(None).unwrap(), body.reader(None).unwrap());
    filler.push(piece("a"));
    filler.push(piece("bc"));
    filler.is_too_long();
    // No reader has read all of it.
    assert!(poll(&mut first).is_ready());
    filler.cut_slowest();
    assert_eq!(read(&mut first), got("bc", "waits"));
    assert!(poll(&mut second).is_ready());
    assert!(!has_room(&filler));
    filler.cut_slowest();
    assert_eq!(read(&mut third), got("", "is cut"));
    assert_eq!(read(&mut second), got("bc", "waits"));
    // All readers that are left have read the same.
    assert!(has_room(&filler));
    filler.cut_slowest();
    assert_eq!((read(&mut first), read(&mut second)), (got("", "waits"), got("", "waits")));
    drop((first, second));
    // A reader that is cut does not count.
    assert_eq!(demand(&filler), Poll::Ready(Demand::Nobody));
    assert!(has_room(&filler));
}

proptest! {
    /// Checks every order of pieces, reads and the change to too long. A reader has the first part
    /// of the body. It has an end only if that part is the complete body. The memory is bounded.
    #[test]
    fn no_reader_sees_other_bytes_or_a_false_end(
        steps in prop::collection::vec((0..6u8, 0..4usize, 1..9usize), 1..80), ends in 0..3u8,
    ) {
        const LIMIT: u64 = 20;
        let (body, filler, first) = FillingBody::new(None, LIMIT);
        let mut readers = vec![(first, Vec::new())];
        let mut gone = Vec::new();
        let mut sent = Vec::new();
        let mut is_too_long = false;
        for (step, index, length) in steps {
            match step {
                0 | 1 => {
                    if is_too_long && !(demand(&filler) == Poll::Ready(Demand::More) && has_room(&filler)) {
                        continue;
                    }
                    let bytes: Vec<u8> = (0..length).map(|index| (sent.len() + index) as u8).collect();
                    sent.extend_from_slice(&bytes);
                    filler.push(Bytes::from(bytes));
                    if sent.len() as u64 > LIMIT && !is_too_long {
                        filler.is_too_long();
                        is_too_long = true;
                    }
                    let kept: usize = body.shared.lock().pieces.iter().map(Bytes::len).sum();
                    prop_assert!(kept < LIMIT as usize + 9, "{kept}");
                }
                2 => match body.reader(None) {
                    Some(reader) => {
                        prop_assert!(!is_too_long);
                        readers.push((reader, Vec::new()));
                    }
                    None => prop_assert!(is_too_long),
                },
                3 | 4 => {
                    let count = readers.len();
                    if let Some((reader, got)) = readers.get_mut(index % count.max(1))
                        && let Poll::Ready(Some(Ok(piece))) = poll(reader)
                    {
                        got.extend_from_slice(&piece);
                    }
                }
                _ if readers.len() > 1 && length == 1 => gone.push(readers.swap_remove(index % readers.len()).1),
                _ => {}
            }
        }
        match ends {
            0 => filler.end(),
            1 => filler.cut(&StreamError("cut".into())),
            _ => drop(filler),
        }
        for (mut reader, mut got) in readers {
            let is_ended = loop {
                match poll(&mut reader) {
                    Poll::Ready(Some(Ok(piece))) => got.extend_from_slice(&piece),
                    Poll::Ready(end) => break end.is_none(),
                    Poll::Pending => prop_assert!(false, "it waits for ever"),
                }
            };
            prop_assert_eq!(is_ended, ends == 0);
            prop_assert_eq!(&got, &sent);
        }
        for got in gone {
            prop_assert!(sent.starts_with(&got));
        }
    }
}

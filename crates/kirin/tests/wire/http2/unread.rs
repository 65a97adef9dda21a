//! Clients that do not take what they have asked for, or send it byte by byte: they take little
//! memory, and other visitors are served.

use super::*;

/// Connections of such a client, and streams of each.
const CONNECTIONS: usize = 10;
const STREAMS: u32 = 100;

/// The memory that one connection may take, in kilobytes.
const CONNECTION_KILOBYTES: u64 = 16 * 1024;

fn assert_serves(kirin: &Kirin, what: &str) {
    let body = Http2Client::connect(kirin.address()).get("/large.bin").body;
    assert!(body == large(), "another visitor got {} bytes; {what}", body.len());
}

fn stream_numbers() -> impl Iterator<Item = u32> {
    (0..STREAMS).map(|number| 2 * number + 1)
}

/// Asks for a large file on each stream, with this window for each. Waits for all heads.
fn ask_for_much(kirin: &Kirin, window: u32) -> Connection {
    let mut connection = Connection::open(kirin.address());
    connection.send(settings(&[(INITIAL_WINDOW_SIZE, window)]));
    connection.send(window_update(0, MOST_WINDOW - FIRST_WINDOW));
    connection
        .send(stream_numbers().flat_map(|stream| get(stream, "/large.bin")).collect::<Vec<_>>());
    for stream in stream_numbers() {
        while connection.head_of(stream).is_none() {
            assert!(connection.next().is_some(), "no head of stream {stream}\n{connection}");
        }
    }
    connection
}

#[test]
fn streams_without_a_window_take_little_memory() {
    let (_site, kirin) = serve();
    assert_serves(&kirin, "at the start");
    let before = resident(&kirin);
    let mut connections: Vec<_> = (0..CONNECTIONS).map(|_| ask_for_much(&kirin, 0)).collect();
    assert_serves(&kirin, "1000 streams without a window");
    let grown = resident(&kirin).saturating_sub(before);
    // 1000 streams of 3 MB would be 3 GB. Of 32 KB each they are 32 MB.
    assert!(grown < 32 * 1024, "{grown} KB for 1000 streams without a window");
    let connection = &mut connections[3];
    connection.send(window_update(7, 3_000_000));
    let outcome = connection.outcome_of(7);
    assert!(outcome.ok() == Some(&large()[..]), "the window comes at last\n{connection}");
    assert!(stream_numbers().all(|stream| stream == 7 || connection.body_bytes(stream) == 0));
}

#[test]
fn windows_that_grow_by_one_byte_take_little_memory() {
    let (_site, kirin) = serve();
    assert_serves(&kirin, "at the start");
    let before = resident(&kirin);
    let mut connection = ask_for_much(&kirin, 1);
    'rounds: for round in 1..=100 {
        let bytes = |connection: &Connection| -> usize {
            stream_numbers().map(|stream| connection.body_bytes(stream)).sum()
        };
        while bytes(&connection) < round * STREAMS as usize {
            if connection.next().is_none() {
                let end = connection.end();
                let calm = Outcome::Goaway(ENHANCE_YOUR_CALM);
                assert_eq!(end, calm, "round {round}\n{connection}");
                break 'rounds;
            }
        }
        connection
            .send(stream_numbers().flat_map(|stream| window_update(stream, 1)).collect::<Vec<_>>());
    }
    assert_serves(&kirin, "100 streams that get a byte at a time");
    let grown = resident(&kirin).saturating_sub(before);
    assert!(grown < CONNECTION_KILOBYTES, "{grown} KB");
}

#[test]
fn a_client_that_does_not_read_its_socket_takes_little_memory() {
    let (site, kirin) = serve();
    std::fs::write(site.path("public/16k.bin"), [b'x'; 16 * 1024]).expect("write");
    assert_serves(&kirin, "at the start");
    let before = resident(&kirin);
    for (what, path, window) in [
        ("files of 16 KB", "/16k.bin", MOST_WINDOW),
        ("files of 3 MB", "/large.bin", MOST_WINDOW),
        ("errors", "/none", MOST_WINDOW),
        ("files without a window", "/16k.bin", 0),
    ] {
        let mut connection = Connection::open(kirin.address());
        connection.send(settings(&[(INITIAL_WINDOW_SIZE, window)]));
        connection.send(window_update(0, MOST_WINDOW - FIRST_WINDOW));
        // The same request each time, on another stream.
        let mut requests = get(1, path).repeat(200_000);
        for (stream, request) in (1u32..).step_by(2).zip(requests.chunks_mut(get(1, path).len())) {
            request[5..9].copy_from_slice(&stream.to_be_bytes());
        }
        let most = requests.len();
        let taken = connection.send_until_stuck(&requests, most);
        assert!(taken > 100 * get(1, path).len(), "{what}: {taken} bytes were taken");
        assert_serves(&kirin, what);
        let grown = resident(&kirin).saturating_sub(before);
        assert!(grown < CONNECTION_KILOBYTES, "{what}: {grown} KB");
    }
}

#[test]
fn a_body_in_frames_of_one_byte_takes_little_memory() {
    const BYTES: usize = 200_000;
    let (_site, kirin) = serve();
    assert_serves(&kirin, "at the start");
    let before = resident(&kirin);
    let mut connection = Connection::open(kirin.address());
    connection.send(post(1, "/app/body"));
    let byte = frame(DATA, 0, 1, b"x");
    // The windows of the connection and of the stream.
    let mut windows = [FIRST_WINDOW as usize; 2];
    let mut sent = 0;
    let is_ended = loop {
        let now = windows[0].min(windows[1]).min(BYTES - sent);
        connection.send(byte.repeat(now));
        sent += now;
        windows = windows.map(|window| window - now);
        if sent == BYTES {
            connection.send(frame(DATA, END_STREAM, 1, b""));
            break false;
        }
        match connection.next() {
            Some(frame) if frame.kind == WINDOW_UPDATE => {
                let more = frame.number(0).expect("a window") as usize;
                windows[usize::from(frame.stream == 1)] += more;
            }
            Some(frame) if frame.is(SETTINGS, 0) => {
                for setting in frame.payload.chunks_exact(6) {
                    if setting[..2] == INITIAL_WINDOW_SIZE.to_be_bytes() {
                        let size = u32::from_be_bytes(setting[2..].try_into().expect("4 bytes"));
                        windows[1] = (size as usize + windows[1]) - FIRST_WINDOW as usize;
                    }
                }
            }
            Some(frame) if frame.kind == GOAWAY => break true,
            Some(_) => {}
            None => break true,
        }
    };
    let outcome = if is_ended { connection.end() } else { connection.outcome_of(1) };
    let is_whole = outcome.ok().is_some_and(|body| body.starts_with(b"200000 "));
    let is_calmed = outcome == Outcome::Goaway(ENHANCE_YOUR_CALM);
    assert!(is_whole || is_calmed, "{sent} bytes: {outcome:?}\n{connection}");
    let grown = resident(&kirin).saturating_sub(before);
    assert!(grown < CONNECTION_KILOBYTES, "{grown} KB");
    assert_serves(&kirin, "at the end");
}

#[test]
fn requests_that_come_while_the_client_takes_nothing_are_answered() {
    let (_site, kirin) = serve();
    for count in [60, 80, 100, 120] {
        let mut connection = Connection::open_narrow(kirin.address());
        connection.send(settings(&[(INITIAL_WINDOW_SIZE, MOST_WINDOW)]));
        connection.send(window_update(0, MOST_WINDOW - FIRST_WINDOW));
        let streams: Vec<u32> = (0..count + 8).map(|number| 2 * number + 1).collect();
        let (first, later) = streams.split_at(count as usize);
        let requests = |streams: &[u32]| -> Vec<u8> {
            streams.iter().flat_map(|stream| get(*stream, "/middle.txt")).collect()
        };
        connection.send(requests(first));
        assert_serves(&kirin, "the first responses fill the socket");
        connection.send(requests(later));
        for stream in streams {
            let outcome = connection.outcome_of(stream);
            assert!(outcome.ok().is_some_and(|body| body.len() == 9800), "{count}\n{connection}");
        }
    }
}

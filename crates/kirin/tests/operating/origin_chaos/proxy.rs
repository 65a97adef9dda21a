//! A proxy between one Kirin and the Redis server: it can be cut, swallow or hold bytes, and meddle
//! with single frames.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

/// What happens to the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Pass,
    /// Each connection is closed at once.
    Cut,
    /// Connections are accepted and stay open, but nothing arrives. One that has lost bytes loses
    /// the rest, too.
    BlackHole,
    /// What has been sent arrives when the mode changes.
    Hold,
    /// Each piece arrives so much later.
    Delay(Duration),
}

/// The command at which everything stops.
struct Stop {
    /// The commands before it, without those that prove that the connection is there.
    commands_before: usize,
    /// Whether the server gets it. Nobody gets the reply.
    is_delivered: bool,
}

/// A proxy. It ends when it is dropped.
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

struct Shared {
    server: SocketAddr,
    mode: Mutex<Mode>,
    mode_changes: Condvar,
    streams: Mutex<Vec<TcpStream>>,
    drops_invalidations: AtomicBool,
    forges_puts: AtomicBool,
    stop: Mutex<Option<Stop>>,
    is_over: AtomicBool,
}

impl Proxy {
    /// Starts a proxy before a server. It passes everything.
    pub fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a listener");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(Shared {
            server,
            mode: Mutex::new(Mode::Pass),
            mode_changes: Condvar::new(),
            streams: Mutex::default(),
            drops_invalidations: AtomicBool::default(),
            forges_puts: AtomicBool::default(),
            stop: Mutex::default(),
            is_over: AtomicBool::default(),
        });
        let accepting = Arc::clone(&shared);
        std::thread::spawn(move || accepting.accept(&listener));
        Self { address, shared }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    pub fn set(&self, mode: Mode) {
        self.shared.set_mode(mode);
        if mode == Mode::Cut {
            self.shared.close_all();
        }
    }

    /// Lets no invalidation through any more, and everything else.
    pub fn drop_invalidations(&self) {
        self.shared.drops_invalidations.store(true, Relaxed);
    }

    /// Lets no write of an item through any more. The answer says that it was stored.
    pub fn forge_puts(&self) {
        self.shared.forges_puts.store(true, Relaxed);
    }
}

impl Proxy {
    /// Lets so many commands through, and nothing after them. The next one reaches the server if
    /// `is_delivered`, but its reply comes to nobody.
    pub fn stop_behind(&self, commands_before: usize, is_delivered: bool) {
        *self.shared.stop.lock() = Some(Stop { commands_before, is_delivered });
    }

    /// Returns whether the command has come at which everything stops.
    pub fn has_stopped(&self) -> bool {
        *self.shared.mode.lock() == Mode::BlackHole
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.is_over.store(true, Relaxed);
        self.set(Mode::Cut);
        // The thread that accepts looks at the flag.
        drop(TcpStream::connect(self.address));
    }
}

impl Shared {
    fn accept(self: Arc<Self>, listener: &TcpListener) {
        for kirin in listener.incoming() {
            if self.is_over.load(Relaxed) {
                return;
            }
            let Ok(kirin) = kirin else { continue };
            if *self.mode.lock() == Mode::Cut {
                continue;
            }
            let Ok(server) = TcpStream::connect(self.server) else { continue };
            for stream in [&kirin, &server] {
                stream.set_nodelay(true).expect("no delay");
                self.streams.lock().push(stream.try_clone().expect("a descriptor"));
            }
            let has_lost = Arc::new(AtomicBool::default());
            for is_request in [true, false] {
                let kirin = kirin.try_clone().expect("a descriptor");
                let server = server.try_clone().expect("a descriptor");
                let (shared, has_lost) = (Arc::clone(&self), Arc::clone(&has_lost));
                std::thread::spawn(move || {
                    let (from, to) = if is_request { (kirin, server) } else { (server, kirin) };
                    shared.pump(from, to, is_request, &has_lost);
                });
            }
            // The mode may have changed since it was looked at.
            if *self.mode.lock() == Mode::Cut {
                self.close_all();
            }
        }
    }

    fn close_all(&self) {
        for stream in self.streams.lock().drain(..) {
            // It may have ended.
            drop(stream.shutdown(Shutdown::Both));
        }
    }

    /// Carries one direction of a connection until it ends.
    fn pump(&self, mut from: TcpStream, mut to: TcpStream, is_request: bool, lost: &AtomicBool) {
        let mut held = Vec::new();
        let mut piece = vec![0; 64 << 10];
        while let Ok(count @ 1..) = from.read(&mut piece) {
            match self.mode_of_piece() {
                Mode::BlackHole => lost.store(true, Relaxed),
                Mode::Delay(time) => std::thread::sleep(time),
                Mode::Pass | Mode::Hold | Mode::Cut => {}
            }
            if lost.load(Relaxed) {
                continue;
            }
            held.extend_from_slice(&piece[..count]);
            let mut passed = Vec::new();
            while let Some(length) = frame_end(&held, 0) {
                let frame: Vec<u8> = held.drain(..length).collect();
                let stop = if is_request { self.stop_at(&frame) } else { None };
                if let Some(Stop { is_delivered, .. }) = stop {
                    lost.store(true, Relaxed);
                    self.set_mode(Mode::BlackHole);
                    if is_delivered {
                        passed.extend_from_slice(&frame);
                    }
                    break;
                }
                passed.extend_from_slice(self.changed(&frame, is_request));
            }
            if to.write_all(&passed).is_err() {
                break;
            }
        }
        // The end of one side does not come through a black hole, but the client's ends all.
        if is_request || !lost.load(Relaxed) {
            drop(from.shutdown(Shutdown::Both));
            drop(to.shutdown(Shutdown::Both));
        }
    }

    /// Waits while pieces are held, and returns what happens to the next one.
    fn mode_of_piece(&self) -> Mode {
        let mut mode = self.mode.lock();
        while *mode == Mode::Hold {
            self.mode_changes.wait(&mut mode);
        }
        *mode
    }

    fn set_mode(&self, mode: Mode) {
        *self.mode.lock() = mode;
        self.mode_changes.notify_all();
    }

    /// Returns the stop if everything stops at this command.
    fn stop_at(&self, command: &[u8]) -> Option<Stop> {
        let is_upkeep = |name: &[u8]| command.windows(name.len()).any(|part| part == name);
        let mut stop = self.stop.lock();
        if stop.is_none() || is_upkeep(b"\r\nTIME\r\n") || is_upkeep(b"\r\nHELLO\r\n") {
            return None;
        }
        match stop.as_mut() {
            Some(Stop { commands_before: left @ 1.., .. }) => {
                *left -= 1;
                None
            }
            _ => stop.take(),
        }
    }

    /// Returns what is sent in place of a frame.
    fn changed<'a>(&self, frame: &'a [u8], is_request: bool) -> &'a [u8] {
        /// It has the reply of a put that has stored, and comes at the place of that reply.
        const STORES_NOTHING: &[u8] = b"*3\r\n$4\r\nEVAL\r\n$16\r\nreturn {1, 1, 1}\r\n$1\r\n0\r\n";
        const INVALIDATION: &[u8] = b">2\r\n$10\r\ninvalidate\r\n";
        if is_request {
            let is_forged = self.forges_puts.load(Relaxed) && is_put(frame);
            return if is_forged { STORES_NOTHING } else { frame };
        }
        let is_dropped = self.drops_invalidations.load(Relaxed) && frame.starts_with(INVALIDATION);
        if is_dropped { b"" } else { frame }
    }
}

/// Returns where a frame of RESP3 ends that begins at `at`, or `None` if it is not complete.
fn frame_end(bytes: &[u8], at: usize) -> Option<usize> {
    let (line, next) = line(bytes, at)?;
    let (kind, text) = line.split_first().expect("a frame has a kind");
    let count = || std::str::from_utf8(text).expect("text").parse::<i64>().expect("a count");
    let frames = match kind {
        b'$' | b'=' | b'!' => {
            let Ok(length) = usize::try_from(count()) else { return Some(next) };
            let end = next + length + 2;
            return (bytes.len() >= end).then_some(end);
        }
        b'*' | b'~' | b'>' => count(),
        b'%' => 2 * count(),
        // An attribute, and what it belongs to.
        b'|' => 2 * count() + 1,
        _ => 0,
    };
    (0..frames).try_fold(next, |at, _| frame_end(bytes, at))
}

/// Returns a line without its end, and where the next one begins.
fn line(bytes: &[u8], at: usize) -> Option<(&[u8], usize)> {
    let rest = bytes.get(at..)?;
    let length = rest.windows(2).position(|end| end == b"\r\n")?;
    Some((&rest[..length], at + length + 2))
}

/// Returns whether a request runs `put.lua`: only that has a condition behind its keys.
fn is_put(request: &[u8]) -> bool {
    let words = words(request);
    let keys = words.get(2).and_then(|keys| std::str::from_utf8(keys).ok()?.parse::<usize>().ok());
    let condition = keys.and_then(|keys| words.get(3 + keys));
    words.first().is_some_and(|word| *word == b"EVALSHA")
        && condition.is_some_and(|word| [&b"any"[..], b"version", b"page"].contains(word))
}

/// Returns the words of a request, which is an array of strings.
fn words(request: &[u8]) -> Vec<&[u8]> {
    let mut words = Vec::new();
    let mut at = line(request, 0).map_or(request.len(), |(_, next)| next);
    while let (Some((_, begin)), Some(end)) = (line(request, at), frame_end(request, at)) {
        words.push(&request[begin..end - 2]);
        at = end;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_ends_where_its_parts_end() {
        for frame in [
            &b"+OK\r\n"[..],
            b":12\r\n",
            b"_\r\n",
            b"$-1\r\n",
            b"$4\r\na\r\nb\r\n",
            b"*0\r\n",
            b"*2\r\n$1\r\na\r\n*1\r\n:1\r\n",
            b"%1\r\n+a\r\n$1\r\nb\r\n",
            b">2\r\n$10\r\ninvalidate\r\n*1\r\n$1\r\na\r\n",
            b"|1\r\n+a\r\n:1\r\n+OK\r\n",
        ] {
            let followed = [frame, b"+more\r\n"].concat();
            assert_eq!(frame_end(&followed, 0), Some(frame.len()), "{}", frame.escape_ascii());
            for length in 0..frame.len() {
                assert_eq!(frame_end(&frame[..length], 0), None, "{length} of the frame");
            }
        }
    }

    #[test]
    fn a_put_is_known_by_its_condition() {
        let request = |words: &[&str]| {
            let words = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len()));
            let words: Vec<String> = words.collect();
            format!("*{}\r\n{}", words.len(), words.concat()).into_bytes()
        };
        let put =
            request(&["EVALSHA", "0a", "3", "i", "n", "p", "any", "0", "", "0", "0", "x\r\n"]);
        assert!(is_put(&put));
        assert!(!is_put(&request(&["EVALSHA", "0a", "2", "n", "p", "hard", "0", "a"])));
        assert!(!is_put(&request(&["GET", "any"])));
    }
}

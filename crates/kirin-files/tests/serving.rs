//! Files over real connections: a `kirin_http` server on a free port, curl and raw sockets as
//! clients.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

use std::fs;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use kirin_files::{CacheLimits, FileCache, Files, FilesConfig};
use kirin_http::{Answer, Handler, Origin, RequestHead, Response, StatusCode};
use kirin_server::{InForce, Limits, Listener, Observers, Server, listener};
use tempfile::TempDir;

struct FilesOnly(Files);

impl Handler for FilesOnly {
    fn answer(&self, request: &RequestHead<'_>, _: Origin<'_>) -> Answer {
        let answer = self.0.answer(request, Instant::now());
        Answer::Now(answer.unwrap_or_else(|| Response::error(StatusCode::NOT_FOUND)))
    }
}

/// A server thread over a directory; ends when dropped.
struct Site {
    root: TempDir,
    address: SocketAddr,
    stop: Option<tokio::sync::oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Site {
    fn serve(configure: fn(&mut FilesConfig, &mut CacheLimits)) -> Self {
        let root = tempfile::tempdir().unwrap();
        let mut config = FilesConfig::new(root.path());
        let mut limits = CacheLimits::default();
        configure(&mut config, &mut limits);
        let (ready, address) = mpsc::channel();
        let (stop, stopped) = tokio::sync::oneshot::channel();
        let thread = std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            tokio::task::LocalSet::new().block_on(&runtime, async move {
                let wanted = "127.0.0.1:0".parse().unwrap();
                let bound = Listener::bind(&wanted, 1).unwrap().pop().unwrap();
                let local = bound.address().unwrap();
                let cache = Rc::new(FileCache::new(limits));
                let handler = Rc::new(FilesOnly(Files::open(config, &cache).unwrap()));
                let server = InForce::new(Server::new(
                    handler,
                    local.clone(),
                    Limits::default(),
                    Observers::default(),
                ));
                ready.send(local.to_string().parse().unwrap()).unwrap();
                tokio::select! {
                    ended = listener::accept(bound, server) => ended.unwrap(),
                    _ = stopped => {}
                }
            });
        });
        let address = address.recv().unwrap();
        Self { root, address, stop: Some(stop), thread: Some(thread) }
    }

    fn write(&self, name: &str, contents: &[u8]) -> PathBuf {
        let path = self.root.path().join(name);
        fs::write(&path, contents).unwrap();
        path
    }

    /// Runs curl; returns head and body.
    fn curl(&self, path: &str, options: &[&str]) -> (String, Vec<u8>) {
        let output = Command::new("curl")
            .args([
                "--silent",
                "--show-error",
                "--include",
                "--path-as-is",
                "--max-time",
                "20",
                "--noproxy",
                "*",
            ])
            .args(options)
            .arg(format!("http://{}{path}", self.address))
            .output()
            .unwrap();
        assert!(output.status.success(), "{path} {options:?}: {output:?}");
        let end = output.stdout.windows(4).position(|window| window == b"\r\n\r\n").unwrap();
        let head = String::from_utf8(output.stdout[..end + 2].to_vec()).unwrap();
        (head, output.stdout[end + 4..].to_vec())
    }

    /// Sends bytes as they are, and reads to the end of the connection.
    fn raw(&self, request: &str) -> Vec<u8> {
        let mut stream = self.connect();
        stream.write_all(request.as_bytes()).unwrap();
        let mut received = Vec::new();
        stream.read_to_end(&mut received).unwrap();
        received
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            assert!(ended.is_ok() || std::thread::panicking());
        }
    }
}

/// Returns bytes in which every place looks different.
fn pattern(length: usize) -> Vec<u8> {
    (0..length as u64).map(|n| (n.wrapping_mul(2_654_435_761) >> 13) as u8).collect()
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| {
        let (field, value) = line.split_once(": ")?;
        field.eq_ignore_ascii_case(name).then_some(value)
    })
}

fn as_text(path: &Path) -> &str {
    path.to_str().unwrap()
}

#[test]
fn a_large_file_arrives_byte_for_byte() {
    let site = Site::serve(|_, _| {});
    let contents = pattern(5 * 1024 * 1024 + 7);
    site.write("large.bin", &contents);
    let (head, body) = site.curl("/large.bin", &[]);
    assert!(head.starts_with("HTTP/1.1 200 OK\r\n"), "{head}");
    assert_eq!(field(&head, "content-length"), Some("5242887"));
    assert!(body == contents, "{} bytes differ from what was written", body.len());
}

#[test]
fn a_slow_reader_gets_a_complete_large_file_and_the_connection_continues() {
    let site = Site::serve(|_, _| {});
    let contents = pattern(3 * 1024 * 1024);
    site.write("large.bin", &contents);
    site.write("small.txt", b"the next answer");
    let mut stream = site.connect();
    stream
        .write_all(
            b"GET /large.bin HTTP/1.1\r\nHost: x\r\n\r\nGET /small.txt HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
        )
        .unwrap();
    // The server meets a full socket buffer long before the end: we read by small pieces.
    let (mut received, mut piece) = (Vec::new(), [0; 4096]);
    loop {
        match stream.read(&mut piece).unwrap() {
            0 => break,
            count => received.extend_from_slice(&piece[..count]),
        }
    }
    let start = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let (large, rest) = received[start..].split_at(contents.len());
    assert!(large == contents);
    assert!(rest.starts_with(b"HTTP/1.1 200 OK\r\n") && rest.ends_with(b"\r\n\r\nthe next answer"));
}

#[test]
fn ranges_head_and_conditions_work_for_small_and_large_files() {
    let site = Site::serve(|_, _| {});
    for (name, length) in [("small.bin", 1000), ("large.bin", 300_000)] {
        let contents = pattern(length);
        let file = site.write(name, &contents);
        let path = &format!("/{name}");
        fs::File::options()
            .write(true)
            .open(&file)
            .unwrap()
            .set_modified(std::time::UNIX_EPOCH + Duration::from_secs(784_111_777))
            .unwrap();

        let (head, body) = site.curl(path, &["--range", "100-899"]);
        assert!(head.starts_with("HTTP/1.1 206 Partial Content\r\n"), "{head}");
        assert_eq!(field(&head, "content-range"), Some(&format!("bytes 100-899/{length}")[..]));
        assert_eq!(field(&head, "content-length"), Some("800"));
        assert!(body == contents[100..900]);

        let (head, body) = site.curl(path, &["--range", "-10"]);
        assert!(head.starts_with("HTTP/1.1 206 "), "{head}");
        assert!(body == contents[length - 10..]);

        let (head, _) = site.curl(path, &["--range", "300000-"]);
        assert!(head.starts_with("HTTP/1.1 416 "), "{head}");
        assert_eq!(field(&head, "content-range"), Some(&format!("bytes */{length}")[..]));

        let (head, body) = site.curl(path, &["--head"]);
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && body.is_empty(), "{head}");
        assert_eq!(field(&head, "content-length"), Some(&length.to_string()[..]));
        let tag = format!("If-None-Match: {}", field(&head, "etag").unwrap());

        let (head, body) = site.curl(path, &["--header", &tag]);
        assert!(head.starts_with("HTTP/1.1 304 Not Modified\r\n") && body.is_empty(), "{head}");
        assert_eq!(field(&head, "content-length"), None);
        assert!(field(&head, "etag").is_some() && field(&head, "date").is_some());

        let (head, _) = site.curl(path, &["--time-cond", as_text(&file)]);
        assert!(head.starts_with("HTTP/1.1 304 "), "{head}");
    }
}

#[test]
fn curl_decodes_every_variant() {
    let site = Site::serve(|_, _| {});
    let contents = b"some text that gzip makes no smaller".to_vec();
    let file = site.write("page.html", &contents);
    let gzip = Command::new("gzip").args(["--keep", as_text(&file)]).status().unwrap();
    assert!(gzip.success());
    let (head, body) =
        site.curl("/page.html", &["--header", "Accept-Encoding: gzip", "--compressed"]);
    assert_eq!(field(&head, "content-encoding"), Some("gzip"), "{head}");
    assert_eq!(field(&head, "vary"), Some("Accept-Encoding"));
    assert_eq!(body, contents);
}

#[test]
fn no_path_on_the_wire_leads_outside() {
    let site = Site::serve(|_, _| {});
    let secret = tempfile::tempdir().unwrap();
    fs::write(secret.path().join("secret"), "TOP SECRET").unwrap();
    std::os::unix::fs::symlink(secret.path(), site.root.path().join("link")).unwrap();
    let up = "/..".repeat(12);
    let outside = as_text(secret.path()).to_owned();
    let encoded = up.replace('.', "%2e");
    let slashes = up.replace('/', "%2f");
    for (path, status) in [
        ("/link/secret".to_owned(), "403"),
        (format!("{up}{outside}/secret"), "400"),
        (format!("{encoded}{outside}/secret"), "400"),
        (format!("/{slashes}{outside}/secret"), "404"),
        (format!("/{}{outside}/secret", up.replace('/', "\\")), "404"),
        (format!("/{outside}/secret"), "404"),
        (format!("http://x{up}{outside}/secret"), "400"),
    ] {
        let received =
            site.raw(&format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"));
        let received = String::from_utf8(received).unwrap();
        assert!(received.starts_with(&format!("HTTP/1.1 {status} ")), "{path}: {received}");
        assert!(!received.contains("TOP SECRET"), "{path}: {received}");
    }
}

#[test]
fn a_file_that_is_cut_short_cuts_the_connection() {
    let site = Site::serve(|_, limits| limits.validity = Duration::from_secs(3600));
    let file = site.write("log", &pattern(200_000));
    let (_, body) = site.curl("/log", &[]);
    assert_eq!(body.len(), 200_000);
    fs::File::options().write(true).open(&file).unwrap().set_len(1000).unwrap();
    let received = site.raw("GET /log HTTP/1.1\r\nHost: x\r\n\r\n");
    let start = received.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8(received[..start].to_vec()).unwrap();
    assert_eq!(field(&head, "content-length"), Some("200000"), "{head}");
    assert_eq!(received.len() - start, 1000);
}

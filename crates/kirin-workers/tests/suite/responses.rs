//! What an application answers arrives at the client as it was meant, and a request arrives as it
//! was sent.

use std::io::{Read, Write};

use crate::support::{Site, eventually, wait_limit};

#[test]
fn hello_comes_through_on_a_kept_connection() {
    let site = Site::start("sub { [200, ['Content-Type' => 'text/plain'], [\"hello\\n\"]] }");
    let mut client = site.connect();
    for _ in 0..3 {
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
        let reply = client.reply();
        assert_eq!((reply.status, reply.text().as_str()), (200, "hello\n"), "{reply:?}");
        assert_eq!(reply.field("Content-Type"), Some("text/plain"));
    }
}

/// Answers with the length and a digest of the body that came, and where it is kept.
const DIGEST: &str = r#"
use Digest::MD5;
sub {
    my $env = shift;
    my $read = 0;
    my $digest = Digest::MD5->new;
    for (1, 2) {    # psgi.input can be sought
        $digest->reset;
        $read = 0;
        while (my $count = $env->{'psgi.input'}->read(my $buffer, 10000)) {
            $read += $count;
            $digest->add($buffer);
        }
        seek $env->{'psgi.input'}, 0, 0;
    }
    my $kind = fileno($env->{'psgi.input'}) < 0 ? 'memory' : 'file';
    [200, [], ["$env->{REQUEST_METHOD} $env->{CONTENT_LENGTH} $read $kind " . $digest->hexdigest]];
}
"#;

/// Returns the MD5 digest of `bytes`, which the program `md5sum` computes.
fn md5(bytes: &[u8]) -> String {
    let mut child = std::process::Command::new("md5sum")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(bytes).unwrap();
    let output = child.wait_with_output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..32].to_owned()
}

#[test]
fn a_body_of_any_size_and_coding_reaches_the_application_whole() {
    let site = Site::start(DIGEST);
    let large: Vec<u8> = (0..3_000_000u32).map(|n| (n % 251) as u8).collect();
    let mut client = site.connect();
    for length in [0, 1, 10, 70_000, 1 << 20, (1 << 20) + 1, large.len()] {
        let body = &large[..length];
        let kind = if length > 1 << 20 { "file" } else { "memory" };
        let expected = format!("POST {length} {length} {kind} {}", md5(body));

        client.send(format!("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: {length}\r\n\r\n"));
        client.send(body);
        assert_eq!(client.reply().text(), expected);

        client.send("POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
        for chunk in body.chunks(50_000) {
            client.send(format!("{:x}\r\n", chunk.len()));
            client.send(chunk);
            client.send("\r\n");
        }
        client.send("0\r\n\r\n");
        assert_eq!(client.reply().text(), expected, "chunked");
    }
}

#[test]
fn a_body_longer_than_the_limit_is_answered_413() {
    let site = Site::start_with(DIGEST, |config| config.body_limit_bytes = 1000).unwrap();
    for request in [
        format!(
            "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1001\r\n\r\n{}",
            "a".repeat(1001)
        ),
        format!(
            "POST / HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n{}\r\n0\r\n\r\n",
            "a".repeat(1001)
        ),
    ] {
        let mut client = site.connect();
        client.send(request);
        assert_eq!(client.reply().status, 413);
    }
    let mut client = site.connect();
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 1000\r\n\r\n{}",
        "a".repeat(1000)
    ));
    assert_eq!(client.reply().status, 200);
}

#[test]
fn a_body_that_cannot_be_spooled_is_an_error_and_serving_goes_on() {
    let site =
        Site::start_with(DIGEST, |config| config.spool_directory = Some("/nonexistent".into()))
            .unwrap();
    let mut client = site.connect();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 2000000\r\n\r\n");
    let mut body = client.stream.try_clone().unwrap();
    std::thread::spawn(move || {
        // The server may stop reading.
        let _ = body.write_all(&vec![b'a'; 2_000_000]);
    });
    assert_eq!(client.reply().status, 500);
    assert_eq!(site.get("/").status, 200);
    assert_eq!(site.app.counters().spool_failed, 1);
}

#[test]
fn a_nul_in_the_path_is_answered_400() {
    let site = Site::start("sub { [200, [], [$_[0]{PATH_INFO}]] }");
    assert_eq!(site.get("/a%00b").status, 400);
    assert_eq!(site.get("/a%20b").text(), "/a b");
}

/// One response of each kind, by path.
const KINDS: &str = r#"
use IO::Handle;
package Lines { sub new { bless [@_[1 .. $#_]] } sub getline { shift @{ $_[0] } } sub close { } }
my $kinds = {
    '/handle' => sub { open my $handle, '<', '/etc/passwd'; [200, [], $handle] },
    '/object' => sub { [200, [], Lines->new('one ', '', 'two ', 'three')] },
    '/object-length' => sub { [200, ['Content-Length' => 6], Lines->new('one', 'two')] },
    '/too-short' => sub { [200, ['Content-Length' => 7], Lines->new('one', 'two')] },
    '/delayed' => sub { sub { $_[0]->([201, ['X-A' => 'b'], ['later']]) } },
    '/writer' => sub { sub { my $w = $_[0]->([200, []]); $w->write($_) for 'a', 'bc', ''; $w->close } },
    '/writer-open' => sub { sub { my $w = $_[0]->([200, []]); $w->write('abc') } },
    '/writer-empty' => sub { sub { $_[0]->([200, []])->close } },
    '/large' => sub { [200, [], ['x' x 3_000_000]] },
    '/empty' => sub { [200, [], []] },
    '/many' => sub { [200, [], ['a' .. 'e']] },
    '/no-content' => sub { [204, [], []] },
    '/not-modified' => sub { [304, ['ETag' => '"x"'], []] },
    '/wrong-length' => sub { [200, ['Content-Length' => 99], ['right']] },
    '/two-cookies' => sub { [200, ['Set-Cookie' => 'a=1', 'Set-Cookie' => 'b=2'], ['c']] },
    '/close' => sub { [200, ['Connection' => 'close'], ['kept']] },
    '/wide' => sub { [200, [], ["\x{3042}"]] },
    '/split' => sub { [200, ['X-A' => "a\r\nSet-Cookie: evil=1"], ['b']] },
    '/bad-status' => sub { ['fine', [], ['b']] },
    '/undef' => sub { undef },
    '/die' => sub { die "on purpose\n" },
    '/die-object' => sub { die { code => 1 } },
    '/die-delayed' => sub { sub { die "before the head" } },
    '/die-late' => sub { sub { my $w = $_[0]->([200, []]); $w->write('part'); die "after the head" } },
    '/print' => sub { print "exited 1 1\n"; [200, [], ['printed']] },
    '/harakiri' => sub { $_[0]{'psgix.harakiri.commit'} = 1; [200, [], ["$$"]] },
};
sub { my $env = shift; $kinds->{ $env->{PATH_INFO} }->($env) };
"#;

#[test]
fn every_kind_of_response_arrives_and_the_worker_goes_on() {
    let site = Site::start(KINDS);
    let passwd = std::fs::read_to_string("/etc/passwd").unwrap();
    let large = "x".repeat(3_000_000);
    let worker = site.worker();
    for (path, status, body) in [
        ("/handle", 200, passwd.as_str()),
        ("/object", 200, "one two three"),
        ("/object-length", 200, "onetwo"),
        ("/delayed", 201, "later"),
        ("/writer", 200, "abc"),
        ("/writer-open", 200, "abc"),
        ("/writer-empty", 200, ""),
        ("/large", 200, &large),
        ("/empty", 200, ""),
        ("/many", 200, "abcde"),
        ("/no-content", 204, ""),
        ("/not-modified", 304, ""),
        ("/wrong-length", 200, "right"),
        ("/two-cookies", 200, "c"),
        ("/close", 200, "kept"),
        ("/wide", 500, "Internal Server Error\n"),
        ("/split", 500, "Internal Server Error\n"),
        ("/bad-status", 500, "Internal Server Error\n"),
        ("/undef", 500, "Internal Server Error\n"),
        ("/die", 500, "Internal Server Error\n"),
        ("/die-object", 500, "Internal Server Error\n"),
        ("/die-delayed", 500, "Internal Server Error\n"),
        ("/print", 200, "printed"),
    ] {
        // Twice on one connection: the first response must have ended where it should.
        let mut client = site.connect();
        for _ in 0..2 {
            client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
            let reply = client.reply();
            assert_eq!(reply.status, status, "{path}: {reply:?}");
            // The id of the request is different each time.
            let text = reply.text();
            let text = text.split_inclusive('\n').filter(|line| !line.starts_with("Request id: "));
            assert!(
                text.collect::<String>() == body,
                "{path}: {} bytes {:.100}",
                reply.body.len(),
                reply.text()
            );
        }
        assert_eq!(site.worker(), worker, "{path} cost the worker its life");
    }
    let cookies = site.get("/two-cookies").head;
    assert!(cookies.contains("Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n"), "{cookies}");
}

#[test]
fn the_answer_to_head_is_the_head_of_get() {
    let site = Site::start(KINDS);
    let mut client = site.connect();
    for (path, length) in [
        ("/many", Some("5")),
        ("/object", None),
        ("/object-length", Some("6")),
        ("/writer", None),
        ("/large", Some("3000000")),
    ] {
        client.send(format!("HEAD {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let reply = client.reply_to_head();
        assert_eq!(
            (reply.status, reply.field("Content-Length")),
            (200, length),
            "{path}: {reply:?}"
        );
    }
    client.send("GET /many HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(client.reply().text(), "abcde");
}

#[test]
fn a_response_that_fails_after_its_head_is_cut_and_the_worker_goes_on() {
    let site = Site::start(KINDS);
    for path in ["/die-late", "/too-short"] {
        let mut client = site.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let reply = client.try_reply(false);
        let cut = match &reply {
            Err(_) => true,
            // A small response is read whole before the client gets a byte.
            Ok(reply) => reply.status == 502,
        };
        assert!(cut, "{path}: {reply:?}");
        assert_eq!(site.get("/many").text(), "abcde");
    }
}

#[test]
fn written_bytes_arrive_before_the_response_ends() {
    let directory = tempfile::tempdir().unwrap();
    let gate = directory.path().join("gate");
    let site = Site::start(&format!(
        "sub {{ sub {{ my $w = $_[0]->([200, []]); $w->write('first'); \
         select undef, undef, undef, 0.01 until -e '{}'; $w->write('second'); $w->close }} }}",
        gate.display()
    ));
    let mut client = site.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    client.head().unwrap();
    assert_eq!(client.chunk().unwrap().as_deref(), Some(&b"first"[..]));
    std::fs::write(&gate, "").unwrap();
    assert_eq!(client.chunk().unwrap().as_deref(), Some(&b"second"[..]));
    assert_eq!(client.chunk().unwrap(), None);
}

#[test]
fn a_worker_that_wants_to_leave_does_so_after_its_response() {
    let site = Site::start(KINDS);
    let first = site.get("/harakiri").text();
    let second = site.get("/harakiri").text();
    assert_ne!(first, second);
}

#[test]
fn a_slow_client_does_not_hold_the_worker_of_a_small_response() {
    let site = Site::start("sub { [200, [], ['x' x ($_[0]{PATH_INFO} eq '/' ? 1_000_000 : 3)]] }");
    let mut slow: Vec<_> = (0..20).map(|_| site.connect()).collect();
    for client in &mut slow {
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    // With one worker, this would wait for all of them.
    assert_eq!(site.get("/small").text(), "xxx");
    for client in &mut slow {
        assert_eq!(client.reply().body.len(), 1_000_000);
    }
}

#[test]
fn a_large_response_to_a_slow_client_is_whole() {
    let site = Site::start("sub { [200, [], ['0123456789' x 1_000_000]] }");
    let mut client = site.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    client.head().unwrap();
    client.stream.set_read_timeout(Some(wait_limit())).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(100));
    let mut reply = client;
    let mut rest = 10_000_000 - reply.buffered();
    let mut piece = vec![0; 30_000];
    while rest > 0 {
        let count = reply.stream.read(&mut piece).unwrap();
        assert!(count > 0, "cut with {rest} bytes missing");
        rest -= count;
    }
    eventually("the worker is free", || site.app.idle_workers() == 1);
}

#[test]
fn a_client_that_leaves_inside_a_stream_frees_the_worker() {
    let site = Site::start(
        "sub { $_[0]{PATH_INFO} eq '/' ? [200, [], [\"$$\"]] \
         : sub { my $w = $_[0]->([200, []]); while (1) { $w->write('x' x 100_000) } } }",
    );
    let before = site.get("/").text();
    let mut client = site.connect();
    client.send("GET /endless HTTP/1.1\r\nHost: test\r\n\r\n");
    client.head().unwrap();
    drop(client);
    assert_eq!(site.get("/").text(), before, "the same worker, none had to be forked");
}

#[test]
fn a_file_below_a_root_is_sent_in_place_of_the_body() {
    let files = tempfile::tempdir().unwrap();
    let file = files.path().join("file");
    std::fs::write(&file, "from the file").unwrap();
    let root = files.path().to_owned();
    let program = format!(
        "package WithPath {{ sub new {{ bless {{}} }} sub path {{ '{0}' }} sub getline {{ die 'read by the worker' }} }}\n\
         sub {{ my $path = $_[0]{{PATH_INFO}};\n\
           return [200, ['Content-Type' => 'text/x-test', 'Content-Length' => 13], WithPath->new] if $path eq '/object';\n\
           return [200, ['X-Sendfile' => '/etc/passwd'], []] if $path eq '/outside';\n\
           [200, ['Content-Type' => 'text/x-test', 'X-Sendfile' => '{0}'], []] }}",
        file.display()
    );
    let site = Site::start_with(&program, |config| config.sendfile_roots = vec![root]).unwrap();
    for path in ["/header", "/object"] {
        let reply = site.get(path);
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (200, "from the file"),
            "{path}: {reply:?}"
        );
        assert_eq!(reply.field("Content-Type"), Some("text/x-test"));
        assert_eq!(reply.field("X-Sendfile"), None);
    }
    assert_eq!(site.get("/outside").status, 500);
}

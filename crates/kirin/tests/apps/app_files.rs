//! Kirin sends the files that an application hands back (a body with a `path`) as a file server
//! would. It never sends other bytes than those that the application has opened.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;

use kirin_tests::{Client, Kirin, Reply, Site};
use rustix::process::geteuid;

const CONFIG: &str = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

/// An application with all of Plack's ways to send files, under one root, with and without
/// middlewares.
const PLACK: &str = r#"
use v5.16; use warnings;
use Plack::Builder; use Plack::App::File; use Plack::App::Directory;
my $file = Plack::App::File->new(root => 'static')->to_app;
builder {
    enable 'Static', path => qr{\A/[^/]+\.(?:txt|bin)\z}, root => 'static';
    mount '/file' => $file;
    mount '/directory' => Plack::App::Directory->new(root => 'static')->to_app;
    mount '/delayed' => sub { my $env = shift; sub { $_[0]->($file->($env)) } };
    mount '/middlewares' => builder { enable 'ContentLength'; enable 'XSendfile'; $file };
    mount '/conditional' => builder { enable 'ConditionalGET'; $file };
    mount '/head' => builder { enable 'Head'; $file };
    mount '/filtered' => builder { enable 'SimpleContentFilter', filter => sub { tr/a-z/A-Z/ }; $file };
    mount '/' => sub { [200, ['Content-Type' => 'text/plain'], ['dynamic']] };
};
"#;

fn site(program: &str) -> Site {
    let large: Vec<u8> = (0..200_000u32).map(|at| (at % 251) as u8).collect();
    Site::new()
        .with("app.psgi", program)
        .with("static/small.txt", "0123456789")
        .with("static/large.bin", large)
}

fn assert_whole(reply: &Reply, body: &[u8]) {
    assert_eq!(reply.status, 200, "{reply:?}");
    assert!(reply.body == body, "{}: {} bytes", reply.head, reply.body.len());
}

/// Sends all kinds of requests for a file with this path, which contains these bytes.
fn assert_served_as_a_file(client: &mut Client, path: &str, body: &[u8]) {
    let size = body.len();
    let whole = client.get(path);
    assert_whole(&whole, body);
    let tag = whole.field("etag").unwrap_or_else(|| panic!("{path}: {}", whole.head)).to_owned();
    let date = whole.field("last-modified").expect("Last-Modified").to_owned();
    assert_eq!(whole.field("accept-ranges"), Some("bytes"), "{path}");
    for name in ["kirin-file", "x-sendfile"] {
        assert_eq!(whole.field(name), None, "{path}");
    }

    let head = client.request("HEAD", path, "");
    assert_eq!((head.status, head.field("etag")), (200, Some(tag.as_str())), "{path}");
    assert_eq!(head.field("content-length"), Some(size.to_string().as_str()), "{path}");

    for fields in [format!("If-None-Match: {tag}\r\n"), format!("If-Modified-Since: {date}\r\n")] {
        for method in ["GET", "HEAD"] {
            let reply = client.request(method, path, &fields);
            assert_eq!(reply.status, 304, "{method} {path} {fields}{}", reply.head);
            assert_eq!(reply.field("etag"), Some(tag.as_str()), "{path}");
            assert_eq!(
                (reply.field("content-type"), reply.field("content-length")),
                (None, None),
                "{path}"
            );
        }
    }
    assert_whole(&client.request("GET", path, "If-None-Match: \"another\"\r\n"), body);
    assert_eq!(client.request("GET", path, "If-Match: \"another\"\r\n").status, 412, "{path}");

    for (range, start, length) in [("2-5", 2, 4), ("-3", size - 3, 3), ("7-", 7, size - 7)] {
        let part =
            client.request("GET", path, &format!("Range: bytes={range}\r\nIf-Range: {tag}\r\n"));
        assert_eq!(part.status, 206, "{path} {range}: {}", part.head);
        assert!(part.body == body[start..start + length], "{path} {range}");
        let expected = format!("bytes {start}-{}/{size}", start + length - 1);
        assert_eq!(part.field("content-range"), Some(expected.as_str()), "{path}");
        assert_eq!(part.field("content-type"), whole.field("content-type"), "{path}");
    }
    assert_whole(
        &client.request("GET", path, "Range: bytes=2-5\r\nIf-Range: \"another\"\r\n"),
        body,
    );
    let outside = client.request("GET", path, &format!("Range: bytes={size}-\r\n"));
    let expected = format!("bytes */{size}");
    assert_eq!(
        (outside.status, outside.field("content-range")),
        (416, Some(expected.as_str())),
        "{path}"
    );
}

#[test]
fn static_files_of_plack_are_served_as_by_a_file_server() {
    let site = site(PLACK);
    let kirin = Kirin::start(&site, CONFIG);
    let mut client = kirin.connect();
    let large = std::fs::read(site.path("static/large.bin")).expect("the file");
    for way in ["", "/file", "/directory", "/delayed", "/middlewares"] {
        assert_served_as_a_file(&mut client, &format!("{way}/small.txt"), b"0123456789");
        assert_served_as_a_file(&mut client, &format!("{way}/large.bin"), &large);
    }
    assert_eq!(client.get("/").text(), "dynamic");
    let conditional = client.get("/conditional/small.txt");
    let date = conditional.field("last-modified").expect("Last-Modified");
    assert_eq!(client.get("/none.txt").status, 404);
    let by_middleware =
        client.request("GET", "/conditional/small.txt", &format!("If-Modified-Since: {date}\r\n"));
    assert_eq!((by_middleware.status, by_middleware.field("etag")), (304, None));
    assert_eq!(client.request("HEAD", "/head/small.txt", "").field("content-length"), Some("10"));
    assert_eq!(client.get("/small.txt").field("content-type"), Some("text/plain; charset=utf-8"));
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn static_files_of_plack_need_no_configuration() {
    let site = site(PLACK);
    let kirin = Kirin::start_with(&site, &["serve", "--listen", "127.0.0.1:0", "app.psgi"]);
    assert_served_as_a_file(&mut kirin.connect(), "/small.txt", b"0123456789");
}

#[test]
fn the_worker_sends_a_file_that_a_filter_has_changed() {
    let site = site(PLACK).with("static/letters.html", "letters");
    let kirin = Kirin::start(&site, CONFIG);
    let reply = kirin.get("/filtered/letters.html");
    assert_whole(&reply, b"LETTERS");
    assert_eq!(reply.field("etag"), None);
}

#[test]
fn a_change_shows_in_the_next_response() {
    let site = site(PLACK);
    let kirin = Kirin::start(&site, CONFIG);
    let mut client = kirin.connect();
    let path = site.path("static/small.txt");
    for round in 0..100 {
        // The file changes in place and by another file, with the same size and within one tick of
        // the clock.
        let content = format!("round {round:04}");
        if round % 2 == 0 {
            std::fs::write(&path, &content).expect("written");
        } else {
            std::fs::write(site.path("new"), &content).expect("written");
            std::fs::rename(site.path("new"), &path).expect("renamed");
        }
        assert_whole(&client.get("/small.txt"), content.as_bytes());
        assert_whole(&client.get("/small.txt"), content.as_bytes());
    }
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(client.get("/small.txt").status, 404);
}

const HANDLES: &str = r#"
use v5.16; use warnings;
use IO::File; use Cwd;
package WithPath { our @ISA = 'IO::File'; sub path { ${ *{ $_[0] } }{path} } }
package Loud { our @ISA = 'WithPath'; sub getline { my $line = $_[0]->SUPER::getline; defined $line ? uc $line : undef } }
package main;
sub handle { my ($class, $path, $layer) = @_; my $handle = $class->new($path, '<' . ($layer // ':raw')) or die "$path: $!"; ${*$handle}{path} = $path; $handle }
my $file = 'static/small.txt';
my %kind = (
    plain     => sub { [200, [], handle('WithPath', $file)] },
    absolute  => sub { [200, [], handle('WithPath', Cwd::getcwd() . "/$file")] },
    outside   => sub { [200, [], handle('WithPath', 'app.psgi')] },
    link      => sub { [200, [], handle('WithPath', 'static/link')] },
    upgraded  => sub { my $path = $file; utf8::upgrade($path); [200, [], handle('WithPath', $path)] },
    loud      => sub { [200, [], handle('Loud', 'static/letters')] },
    read      => sub { my $handle = handle('WithPath', $file); read $handle, my $bytes, 4; [200, [], $handle] },
    layer     => sub { [200, [], handle('WithPath', 'static/lines', ':crlf')] },
    gone      => sub { my $handle = handle('WithPath', 'static/temporary'); unlink 'static/temporary'; [200, [], $handle] },
    another   => sub { my $handle = handle('WithPath', $file); ${*$handle}{path} = 'static/letters'; [200, [], $handle] },
    directory => sub { my $handle = handle('WithPath', $file); ${*$handle}{path} = 'static'; [200, [], $handle] },
    undef     => sub { my $handle = handle('WithPath', $file); ${*$handle}{path} = undef; [200, [], $handle] },
    newline   => sub { [200, [], handle('WithPath', "static/a\nb")] },
    space     => sub { [200, [], handle('WithPath', "static/a b ")] },
    inner     => sub { [200, [], handle('WithPath', "static/a  b")] },
    length    => sub { [200, ['Content-Length' => 4], handle('WithPath', $file)] },
    exact     => sub { [200, ['Content-Length' => 10], handle('WithPath', $file)] },
    missing   => sub { [404, ['Content-Type' => 'text/plain'], handle('WithPath', $file)] },
    part      => sub { [200, ['Content-Range' => 'bytes 0-9/100'], handle('WithPath', $file)] },
    tagged    => sub { [200, ['ETag' => '"mine"', 'Last-Modified' => 'Sun, 06 Nov 1994 08:49:37 GMT'], handle('WithPath', $file)] },
    weak      => sub { [200, ['ETag' => 'W/"mine"', 'Set-Cookie' => 'a=b', 'Content-Disposition' => 'inline'], handle('WithPath', $file)] },
    unquoted  => sub { [200, ['ETag' => 'mine'], handle('WithPath', $file)] },
    encoded   => sub { [200, ['Content-Encoding' => 'gzip'], handle('WithPath', $file)] },
    none      => sub { [200, ['Accept-Ranges' => 'none'], handle('WithPath', $file)] },
    forged    => sub { [200, ['Kirin-File' => '1 2 3 4 5 /etc/passwd', 'kirin-file' => 'x'], ['body']] },
    cleanup   => sub { push @{ $_[0]{'psgix.cleanup.handlers'} }, sub { print STDERR "cleaned up\n" }; [200, [], handle('WithPath', $file)] },
    leave     => sub { $_[0]{'psgix.harakiri.commit'} = 1; [200, [], handle('WithPath', $file)] },
    pid       => sub { [200, [], [$$]] },
);
sub { my $env = shift; $kind{ substr $env->{PATH_INFO}, 1 }->($env) };
"#;

fn handles() -> Site {
    let site = site(HANDLES)
        .with("static/letters", "letters\n")
        .with("static/lines", "one\r\ntwo\r\n")
        .with("static/temporary", "temporary")
        .with("static/a\nb", "a\nb")
        .with("static/a b ", "a b ")
        .with("static/a  b", "a  b");
    std::os::unix::fs::symlink("../app.psgi", site.path("static/link")).expect("a link");
    site
}

#[test]
fn the_client_gets_the_bytes_that_the_worker_would_send() {
    let site = handles();
    let kirin = Kirin::start(&site, CONFIG);
    let mut client = kirin.connect();
    let file = "0123456789";
    for (kind, status, body, by_front) in [
        ("plain", 200, file, true),
        ("absolute", 200, file, true),
        ("outside", 200, HANDLES, true),
        ("link", 200, HANDLES, true),
        ("upgraded", 200, file, true),
        ("inner", 200, "a  b", true),
        ("exact", 200, file, true),
        ("cleanup", 200, file, true),
        ("leave", 200, file, true),
        ("loud", 200, "LETTERS\n", false),
        ("read", 200, "456789", false),
        ("layer", 200, "one\ntwo\n", false),
        ("gone", 200, "temporary", false),
        ("another", 200, file, false),
        ("directory", 200, file, false),
        ("undef", 200, file, false),
        ("newline", 200, "a\nb", false),
        ("space", 200, "a b ", false),
        ("length", 200, "0123", false),
        ("forged", 200, "body", false),
        // The front sends it and adds nothing.
        ("missing", 404, file, false),
        ("part", 200, file, false),
    ] {
        let reply = client.get(&format!("/{kind}"));
        assert_eq!((reply.status, reply.text().as_str()), (status, body), "{kind}: {}", reply.head);
        assert_eq!(reply.field("etag").is_some(), by_front, "{kind}: {}", reply.head);
        assert_eq!(reply.field("kirin-file"), None, "{kind}");
    }
    for _ in 0..3 {
        client.send(
            "POST /plain HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nRange: bytes=0-1\r\n\r\n",
        );
        let reply = client.read_reply();
        assert_eq!((reply.status, reply.text().as_str()), (200, file), "{}", reply.head);
    }
    kirin.wait_for_log("cleaned up");
    assert!(!kirin.log().contains("handed back"), "{}", kirin.log());
}

#[test]
fn fields_of_the_application_for_its_file_stay() {
    let site = handles();
    let kirin = Kirin::start(&site, CONFIG);
    let mut client = kirin.connect();
    let since = "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT\r\n";
    for (kind, fields, status) in [
        ("tagged", "", 200),
        ("tagged", "If-None-Match: \"mine\"\r\n", 304),
        ("tagged", "If-None-Match: \"other\"\r\n", 200),
        ("tagged", since, 304),
        ("tagged", "If-Match: \"mine\"\r\n", 200),
        ("tagged", "Range: bytes=0-1\r\nIf-Range: \"mine\"\r\n", 206),
        ("plain", since, 200),
        ("weak", "If-None-Match: \"mine\"\r\n", 304),
        ("weak", "If-Match: W/\"mine\"\r\n", 412),
        ("weak", "Range: bytes=0-1\r\nIf-Range: W/\"mine\"\r\n", 200),
        ("weak", "Range: bytes=0-1\r\n", 206),
        ("unquoted", "If-None-Match: mine\r\n", 200),
        ("encoded", "Range: bytes=0-1\r\n", 200),
        ("none", "Range: bytes=0-1\r\n", 200),
        ("missing", "Range: bytes=0-1\r\n", 404),
        ("missing", "If-None-Match: *\r\n", 404),
        ("part", "Range: bytes=0-1\r\n", 200),
    ] {
        let reply = client.request("GET", &format!("/{kind}"), fields);
        assert_eq!(reply.status, status, "{kind} {fields}{}", reply.head);
        for name in ["etag", "last-modified", "accept-ranges", "content-encoding"] {
            let count = reply
                .head
                .lines()
                .filter(|line| line.to_lowercase().starts_with(&format!("{name}:")));
            assert!(count.count() <= 1, "{kind}: {}", reply.head);
        }
    }
    let tagged = client.get("/tagged");
    assert_eq!(tagged.field("etag"), Some("\"mine\""));
    assert_eq!(tagged.field("last-modified"), Some("Sun, 06 Nov 1994 08:49:37 GMT"));
    assert_eq!(client.get("/encoded").field("etag"), None);
    assert_eq!(client.get("/none").field("accept-ranges"), Some("none"));
    let not_modified = client.request("GET", "/weak", "If-None-Match: \"mine\"\r\n");
    assert_eq!(
        not_modified.field("set-cookie"),
        Some("a=b"),
        "the application may have begun a session"
    );
    assert_eq!(not_modified.field("content-disposition"), None);
}

const OBJECTS: &str = r#"
use v5.16; use warnings; use Cwd;
package Lines { sub new { my ($class, %self) = @_; bless \%self, $class } sub path { $_[0]{path} } sub getline { shift @{ $_[0]{lines} } } sub close { $_[0]{close}->() if $_[0]{close} } }
package main;
my $calls = 0;
my %kind = (
    inside  => sub { Lines->new(path => 'static/small.txt', lines => ['not these']) },
    outside => sub { Lines->new(path => 'other/file', lines => ['one', 'two']) },
    link    => sub { Lines->new(path => 'static/link', lines => ['one', 'two']) },
    none    => sub { Lines->new(path => 'static/none', lines => ['one', 'two']) },
    # When the front looks, another file has the name.
    replaced => sub { $calls++; Lines->new(path => 'static/small.txt', lines => ["call $calls"], close => sub { open my $new, '>', 'new'; print {$new} 'another'; close $new; rename 'new', 'static/small.txt' }) },
);
sub {
    my $path = substr $_[0]{PATH_INFO}, 1;
    return [200, ['X-Sendfile' => Cwd::getcwd() . "/static/$1"], []] if $path =~ /\Anamed-(.*)/;
    return [200, ['X-Sendfile' => Cwd::getcwd() . '/other/file'], []] if $path eq 'named_outside';
    [200, [], $kind{$path}->()]
};
"#;

#[test]
fn objects_and_names_count_below_the_configured_roots_only() {
    let site = site(OBJECTS).with("other/file", "other");
    std::os::unix::fs::symlink("../other/file", site.path("static/link")).expect("a link");
    let config = CONFIG.replace("workers = 2", "workers = 1\nsendfile = [\"static\"]");
    let kirin = Kirin::start(&site, &config);
    let mut client = kirin.connect();
    assert_served_as_a_file(&mut client, "/inside", b"0123456789");
    for kind in ["/outside", "/link", "/none"] {
        assert_whole(&client.get(kind), b"onetwo");
    }
    let large = std::fs::read(site.path("static/large.bin")).expect("the file");
    assert_served_as_a_file(&mut client, "/named-small.txt", b"0123456789");
    assert_served_as_a_file(&mut client, "/named-large.bin", &large);
    assert!(!kirin.log().contains("not sent"), "{}", kirin.log());
    for kind in ["/named_outside", "/named-link", "/named-none", "/named-"] {
        assert_eq!(client.get(kind).status, 500, "{kind}");
    }
    kirin.wait_for_log("is not below any directory of `sendfile`");
    // A name is not an open file, so Kirin checks again what it leads to.
    std::fs::write(site.path("static/small.txt"), "9876543210").expect("written");
    assert_whole(&client.get("/named-small.txt"), b"9876543210");
}

#[test]
fn a_file_that_is_replaced_at_the_last_moment_is_sent_by_a_worker() {
    let site = site(OBJECTS);
    let config = CONFIG.replace("workers = 2", "workers = 1\nsendfile = [\"static\"]");
    let kirin = Kirin::start(&site, &config);
    assert_whole(&kirin.get("/replaced"), b"call 2");
    kirin.wait_for_log("a worker is to send it itself");
}

/// The worker gives up root's rights, and its adapter has been turned against the front.
const DEPUTY: &str = r#"
use v5.16; use warnings;
use Kirin::Worker::Hooks qw(after_fork); use Plack::Util; use POSIX ();
my $secret = Cwd::getcwd() . '/secret';
after_fork(sub { POSIX::setgid(65534); POSIX::setuid(65534) });
{ no warnings 'redefine'; *Kirin::Worker::File::behind = sub { join ' ', (stat $secret)[0, 1, 7, 9, 10], $secret } }
sub {
    my $readable = open my $file, '<', $secret;
    open my $handle, '<:raw', 'static/small.txt' or die "small.txt: $!";
    Plack::Util::set_io_path($handle, Cwd::getcwd() . '/static/small.txt');
    [200, ['Content-Type' => 'text/plain', 'X-Readable' => $readable ? 1 : 0], $handle];
};
"#;

#[test]
fn no_file_is_read_for_a_worker_of_another_user() {
    if !geteuid().is_root() {
        // Only root can become another user.
        return;
    }
    let site = site(DEPUTY).with("secret", "for root only");
    std::fs::set_permissions(site.root(), Permissions::from_mode(0o755)).expect("a mode");
    std::fs::set_permissions(site.path("secret"), Permissions::from_mode(0o600)).expect("a mode");
    let kirin = Kirin::start(&site, CONFIG);
    let reply = kirin.get("/");
    assert_eq!(
        (reply.text().as_str(), reply.field("x-readable")),
        ("0123456789", Some("0")),
        "{}",
        reply.head
    );
    kirin.wait_for_log("the worker runs as another user than Kirin");
}

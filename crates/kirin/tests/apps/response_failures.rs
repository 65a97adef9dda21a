//! Responses that an application cannot give: it runs once, the client gets 500, and the log says
//! why.

use kirin_tests::{Kirin, Site};

const CONFIG: &str = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

/// An application that counts its runs. `/count` has the worker and the number of other runs.
const APP: &str = r#"
use v5.16; use warnings; use POSIX ();
package Body { sub new { bless [] } sub getline { die "no line\n" } sub close { } }
my (@children, $runs);
$runs = 0;
sub file_with {
    open my $file, '+>:encoding(UTF-8)', undef or die $!;
    print $file $_[0];
    seek $file, 0, 0;
    return $file;
}
my %body = (
    '/array' => sub { [200, [], ["\x{263a}"]] },
    '/file' => sub { [200, [], file_with("\x{263a}")] },
    '/file-with-length' => sub { [200, ['Content-Length' => 3], file_with("\x{263a}")] },
    '/later' => sub { my $file = file_with("\x{263a}"); sub { $_[0]->([200, [], $file]) } },
    '/short' => sub { [200, ['Content-Length' => 3], file_with('')] },
    '/forked' => sub { my $child = fork // die; sleep 60 * 60, POSIX::_exit(0) if !$child; push @children, $child; [200, [], Body->new] },
    '/end' => sub { kill KILL => splice @children; [200, [], ['ended']] },
    '/latin' => sub { [200, [], file_with("\xe9")] },
);
sub {
    my $path = $_[0]{PATH_INFO};
    return [200, [], ["$$ $runs"]] if $path eq '/count';
    $runs++;
    return $body{$path}->();
};
"#;

#[test]
fn a_body_that_cannot_be_sent_is_500_and_the_application_runs_once() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    let count = kirin.get("/count").text();
    let pid = count.strip_suffix(" 0").expect("no run yet");
    let mut client = kirin.connect();
    let wide = "Wide character in the response body: encode it before it is sent";
    let rows = [
        ("/array", wide),
        ("/file", wide),
        ("/file-with-length", wide),
        ("/later", wide),
        ("/short", "The response body is 3 bytes shorter than its Content-Length"),
    ];
    for (runs, (path, reason)) in rows.into_iter().enumerate() {
        let reply = client.get(path);
        assert_eq!(reply.status, 500, "{path}: {reply:?}\n{}", kirin.log());
        assert!(reply.text().starts_with("Internal Server Error\nRequest id: "), "{reply:?}");
        kirin.wait_for_log(&format!("GET {path}: {reason}"));
        assert_eq!(client.get("/count").text(), format!("{pid} {}", runs + 1), "{path}");
    }
    let reply = client.get("/latin");
    assert_eq!((reply.status, &reply.body[..]), (200, &b"\xe9"[..]));
    assert!(!kirin.log().contains("was lost"), "{}", kirin.log());
}

#[test]
fn a_process_in_the_background_does_not_keep_a_cut_response_open() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    let mut client = kirin.connect();
    client.send("GET /forked HTTP/1.1\r\nHost: a\r\n\r\n");
    let reply = String::from_utf8_lossy(&client.read_to_end()).into_owned();
    assert!(reply.starts_with("HTTP/1.1 200") && !reply.ends_with("0\r\n\r\n"), "{reply}");
    assert_eq!(kirin.get("/end").text(), "ended");
}

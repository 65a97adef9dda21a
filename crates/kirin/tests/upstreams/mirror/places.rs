//! The mirror of a route whose place is an application or a CGI program, or whose pages come from
//! the cache or have includes.

use std::collections::HashMap;
use std::fs::Permissions;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::mpsc;

use kirin_tests::{ADMIN, Site};

use super::{Backend, Gate, Mirrored, Mutex, ReceivedRequest, html, pages, reply, wait_limit};

/// Returns a configuration with the mirror `next`. `rest` ends with a route, which gets the mirror.
fn config(mirror: SocketAddr, rest: &str, keys: &str) -> String {
    format!(
        "threads = 1\nmetrics = \"127.0.0.1:0\"\n{ADMIN}[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[upstream]]\nname = \"next\"\nservers = [\"{mirror}\"]\n\
         {rest}mirror = {{ to = \"proxy:next\", {keys} }}\n"
    )
}

/// Returns the methods and targets of requests, in their order.
fn lines(asked: &Mutex<Vec<ReceivedRequest>>) -> Vec<String> {
    let line = |asked: &ReceivedRequest| {
        let mut words = asked.head.split(' ');
        let (method, target) = (words.next(), words.next());
        assert_eq!(asked.field("kirin-mirror"), Some("1"), "{}", asked.head);
        format!("{} {}", method.unwrap_or_default(), target.unwrap_or_default())
    };
    asked.lock().expect("a list").iter().map(line).collect()
}

/// Returns an answer to a request, which has no body if the request is a HEAD.
fn text(asked: &ReceivedRequest, body: &str) -> String {
    let whole = reply("200 OK", "Content-Type: text/plain\r\n", body);
    match asked.head.starts_with("HEAD ") {
        true => whole[..whole.len() - body.len()].to_owned(),
        false => whole,
    }
}

const APP: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    my ($path, @head) = ($env->{PATH_INFO}, 200, ['Content-Type' => 'text/plain']);
    return [@head, ['the place gets a copy']] if exists $env->{HTTP_KIRIN_MIRROR};
    return [@head, ['much ' x 500_000]] if $path eq '/much';
    if ($path eq '/file') { open my $file, '<', 'file.txt' or die $!; return [@head, $file] }
    return sub { my $writer = shift->([@head]); $writer->write("line $_\n") for 1 .. 3; $writer->close }
        if $path eq '/stream';
    die "on purpose\n" if $path eq '/dies';
    my $body = do { local $/; my $input = $env->{'psgi.input'}; <$input> } // '';
    [@head, ["$env->{REQUEST_METHOD} $env->{REQUEST_URI} $body"]];
};
"#;

/// Returns what [`APP`] and the CGI program answer to a request.
fn as_code(asked: &ReceivedRequest) -> String {
    let (method, body) = (asked.head.split(' ').next(), String::from_utf8_lossy(&asked.body));
    match asked.target() {
        "/much" => "much ".repeat(500_000),
        "/file" => "from a file\n".into(),
        "/stream" => "line 1\nline 2\nline 3\n".into(),
        target => format!("{} {target} {body}", method.unwrap_or_default()),
    }
}

#[test]
fn requests_of_an_application_are_copied_with_and_without_the_ring() {
    for ring in ["", "shared_memory = \"0B\"\n"] {
        let (mirror, asked) = pages(|asked| match asked.target() {
            "/other" => text(asked, "GET /other!"),
            "/longer" => text(asked, "GET /longer and more"),
            _ => text(asked, &as_code(asked)),
        });
        let rest = format!(
            "[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n{ring}\
             [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n"
        );
        let site = Site::new().with("app.psgi", APP).with("file.txt", "from a file\n");
        let keys = "methods = [\"GET\", \"POST\"]";
        let mirrored = Mirrored::start(site, &config(mirror.address(), &rest, keys));
        let mut client = mirrored.kirin.connect();
        let much = "much ".repeat(500_000);
        for (target, expected, result, count) in [
            ("/a?b=%2e", "GET /a?b=%2e ", "equal", 1),
            ("/much", &*much, "equal", 2),
            ("/stream", "line 1\nline 2\nline 3\n", "equal", 3),
            ("/file", "from a file\n", "equal", 4),
            ("/other", "GET /other ", "body", 1),
            ("/longer", "GET /longer ", "length", 1),
        ] {
            let answer = client.get(target);
            let is_right = answer.status == 200 && answer.text() == expected;
            assert!(is_right, "{ring} {target}: {}\n{}", answer.head, mirrored.kirin.log());
            mirrored.wait_for_result(result, count);
        }
        assert_eq!(client.get("/dies").status, 500);
        mirrored.wait_for_result("status", 1);
        assert_eq!(client.post("/form", "text/plain", b"hello").text(), "POST /form hello");
        mirrored.wait_for_result("equal", 5);
        assert_eq!(client.request("HEAD", "/a", "").status, 200);
        mirrored.wait_for_result("equal", 6);
        let expected = [
            "GET /a?b=%2e",
            "GET /much",
            "GET /stream",
            "GET /file",
            "GET /other",
            "GET /longer",
            "GET /dies",
            "POST /form",
            "HEAD /a",
        ];
        assert_eq!(lines(&asked), expected, "{ring}");
        let rings = mirrored.kirin.status()["apps"][0]["rings"].clone();
        let rings = rings.as_array().expect("rings").iter();
        let attached: u64 = rings.filter_map(|ring| ring["workers"].as_u64()).sum();
        // The whole suite runs once more without the ring.
        let has_ring = ring.is_empty() && std::env::var("KIRIN_RING").as_deref() != Ok("0");
        assert_eq!(attached > 0, has_ring);
        mirrored.wait_for_rest();
    }
}

const PROGRAM: &str = "#!/bin/sh
case $PATH_INFO in
/dies) printf 'Status: 500 Oh\\nContent-Type: text/plain\\n\\n'; exit;;
esac
printf 'Content-Type: text/plain\\n\\n'
printf '%s %s ' \"$REQUEST_METHOD\" \"$REQUEST_URI\"
test -z \"$HTTP_KIRIN_MIRROR\" || printf 'the place gets a copy'
test \"$REQUEST_METHOD\" != POST || cat
";

#[test]
fn requests_of_cgi_programs_are_copied() {
    let (mirror, asked) = pages(|asked| match asked.target() {
        "/print/other" => text(asked, "GET /print/other!"),
        _ => text(asked, &as_code(asked)),
    });
    let rest = "[[route]]\npath = \"/\"\ntry = [\"cgi:programs\", \"files:public\"]\n";
    let site = Site::new().with("programs/print", PROGRAM).with("public/print.txt", "a file");
    let program = site.path("programs/print");
    std::fs::set_permissions(program, Permissions::from_mode(0o755)).expect("a program");
    let keys = "methods = [\"GET\", \"POST\"]";
    let mirrored = Mirrored::start(site, &config(mirror.address(), rest, keys));
    let mut client = mirrored.kirin.connect();
    for (target, expected, result, count) in [
        ("/print/a?b=%2e", "GET /print/a?b=%2e ", "equal", 1),
        ("/print", "GET /print ", "equal", 2),
        ("/print/other", "GET /print/other ", "body", 1),
        ("/print/dies", "", "status", 1),
        // The next place has the file, and runs no code.
        ("/print.txt", "a file", "equal", 2),
    ] {
        let answer = client.get(target);
        assert_eq!(answer.text(), expected, "{target}: {}", answer.head);
        mirrored.wait_for_result(result, count);
    }
    assert_eq!(client.post("/print/form", "text/plain", b"hello").text(), "POST /print/form hello");
    mirrored.wait_for_result("equal", 3);
    let expected = [
        "GET /print/a?b=%2e",
        "GET /print",
        "GET /print/other",
        "GET /print/dies",
        "POST /print/form",
    ];
    assert_eq!(lines(&asked), expected);
    mirrored.wait_for_rest();
}

#[test]
fn of_a_cached_page_only_requests_that_reach_the_code_are_copied() {
    let (open, gate) = mpsc::channel();
    let gate: Gate = Mutex::new(gate);
    let (place, asked_place) = pages(move |asked| {
        let fields = match asked.target() {
            "/valid" if asked.field("if-none-match").is_some() => {
                return "HTTP/1.1 304 Not Modified\r\nETag: \"1\"\r\n\r\n".into();
            }
            "/valid" => "Cache-Control: no-cache\r\nETag: \"1\"\r\n",
            "/renewed" => "Cache-Control: max-age=0, stale-while-revalidate=600\r\n",
            "/never" => "Cache-Control: no-store\r\n",
            target => {
                if target == "/together" {
                    let _ = gate.lock().expect("a gate").recv_timeout(wait_limit());
                }
                "Cache-Control: max-age=600\r\n"
            }
        };
        reply("200 OK", fields, "a page")
    });
    let (mirror, asked) = pages(|asked| match asked.target() {
        "/other" => reply("200 OK", "", "a rage"),
        _ => reply("200 OK", "", "a page"),
    });
    let rest = format!(
        "[[upstream]]\nname = \"api\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\ncache = true\n",
        place.address()
    );
    let mirrored = Mirrored::start(Site::new(), &config(mirror.address(), &rest, ""));
    let mut client = mirrored.kirin.connect();
    let mut expected = Vec::new();
    for (target, cache_status, result, count) in [
        ("/a", "fwd=uri-miss", "equal", 1),
        ("/a", "hit", "equal", 1),
        ("/other", "fwd=uri-miss", "body", 1),
        ("/other", "hit", "body", 1),
        ("/never", "fwd=uri-miss", "equal", 2),
        ("/never", "fwd=", "equal", 3),
        ("/valid", "fwd=uri-miss", "equal", 4),
        // The place answers 304 to the cache, and the visitor gets the page.
        ("/valid", "fwd=stale; fwd-status=304", "equal", 4),
        ("/renewed", "fwd=uri-miss", "equal", 5),
        // The place is asked behind the visitor's back.
        ("/renewed", "hit", "equal", 6),
        ("/b", "fwd=uri-miss", "equal", 7),
    ] {
        let answer = client.get(target);
        let status = answer.field("cache-status").unwrap_or_default();
        let is_right = answer.status == 200 && answer.text() == "a page";
        assert!(is_right && status.contains(cache_status), "{target}: {}", answer.head);
        mirrored.wait_for_result(result, count);
        let is_hit = cache_status == "hit" && target != "/renewed";
        if !is_hit && !cache_status.contains("304") {
            expected.push(format!("GET {target}"));
        }
    }
    mirrored.wait_for_skips("not_modified", 1);
    // The cache asks for the complete response.
    assert_eq!(client.request("HEAD", "/head", "").status, 200);
    mirrored.wait_for_result("equal", 8);
    expected.push("GET /head".into());
    // Of visitors who want the same at the same time, one reaches the code.
    let mut visitors: Vec<_> = (0..4).map(|_| mirrored.kirin.connect()).collect();
    for visitor in &mut visitors {
        visitor.send("GET /together HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    open.send(()).expect("a gate");
    for visitor in &mut visitors {
        assert_eq!(visitor.read_reply().text(), "a page");
    }
    mirrored.wait_for_result("equal", 9);
    expected.push("GET /together".into());
    assert_eq!(lines(&asked), expected);
    let asked_place = asked_place.lock().expect("a list").len();
    assert_eq!(asked_place, expected.len() + 1, "all but the 304 have a copy");
    mirrored.wait_for_rest();
}

/// A page with two parts of the place, and one that is a file.
const PAGE: &str = "<p><!--#include virtual=\"/part?1\" -->, \
    <!--#include virtual=\"/part?2\" -->, <!--#include virtual=\"/file.txt\" --></p>";

fn includes(place: &Backend, mirror: &Backend, keys: &str) -> Mirrored {
    let rest = format!(
        "[[upstream]]\nname = \"api\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/\"\nssi = true\ntry = [\"files:public\", \"proxy:api\"]\n",
        place.address()
    );
    let site = Site::new().with("public/file.txt", "a file").with("public/page.html", PAGE);
    Mirrored::start(site, &config(mirror.address(), &rest, keys))
}

#[test]
fn a_page_and_its_parts_are_compared_each_for_itself() {
    let (open, gate) = mpsc::channel();
    let gate: Gate = Mutex::new(gate);
    let (arrived, arrivals) = mpsc::channel();
    let arrived = Mutex::new(arrived);
    let (place, _) = pages(move |asked| match asked.target() {
        "/part?2" => {
            let _ = arrived.lock().expect("a channel").send(());
            let _ = gate.lock().expect("a gate").recv_timeout(wait_limit());
            html("two")
        }
        "/part?1" => html("one"),
        _ => html(PAGE),
    });
    let (mirror, asked) = pages(|asked| match asked.target() {
        "/part?2" => html("too"),
        "/part?1" => html("one"),
        _ => html(PAGE),
    });
    let mirrored = includes(&place, &mirror, "");
    let mut client = mirrored.kirin.connect();
    // The page of the place has three copies, that of the file those of its parts.
    for (target, equal, body, copies) in [
        ("/page", 2, 1, vec!["/page", "/part?1", "/part?2"]),
        ("/page.html", 3, 2, vec!["/part?1", "/part?2"]),
    ] {
        client
            .send(format!("GET {target} HTTP/1.1\r\nHost: test\r\nX-Request-Id: {target}\r\n\r\n"));
        arrivals.recv_timeout(wait_limit()).expect("the last part");
        // No copy is sent before the visitor has the page.
        assert!(mirrored.value("held_bytes", "") > Some(0), "{}", mirrored.metrics());
        assert!(asked.lock().expect("a list").is_empty(), "{target}");
        open.send(()).expect("a gate");
        assert_eq!(client.read_reply().text(), "<p>one, two, a file</p>", "{target}");
        mirrored.wait_for_result("equal", equal);
        mirrored.wait_for_result("body", body);
        let mut sent = lines(&asked);
        sent.sort();
        let expected: Vec<_> = copies.iter().map(|target| format!("GET {target}")).collect();
        assert_eq!(sent, expected, "{target}");
        let mut asked = asked.lock().expect("a list");
        let ids: Vec<_> = asked.iter().filter_map(|asked| asked.field("x-request-id")).collect();
        assert!(ids.len() == copies.len() && ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        asked.clear();
    }
    // The parts of a copy are no requests of a visitor either.
    client.send("GET /page HTTP/1.1\r\nHost: test\r\nKirin-Mirror: 1\r\n\r\n");
    open.send(()).expect("a gate");
    assert_eq!(client.read_reply().text(), "<p>one, two, a file</p>");
    mirrored.wait_for_rest();
    assert!(lines(&asked).is_empty());
}

#[test]
fn a_share_chooses_a_page_with_all_of_its_parts() {
    const PAGES: usize = 60;
    let page = |asked: &ReceivedRequest| match asked.target() {
        "/page" => html(PAGE),
        _ => html("a part"),
    };
    let (place, _) = pages(page);
    let (mirror, asked) = pages(page);
    let mirrored = includes(&place, &mirror, "share = \"50%\"");
    let mut client = mirrored.kirin.connect();
    for _ in 0..PAGES {
        assert_eq!(client.get("/page").text(), "<p>a part, a part, a file</p>");
        mirrored.wait_for_few_in_flight();
    }
    mirrored.wait_for_rest();
    let asked = asked.lock().expect("a list");
    let mut copies: HashMap<&str, usize> = HashMap::new();
    for asked in asked.iter() {
        *copies.entry(asked.field("x-request-id").expect("an id")).or_default() += 1;
    }
    assert!(copies.values().all(|copies| *copies == 3), "{copies:?}");
    // Seven standard deviations.
    assert!((3..PAGES - 3).contains(&copies.len()), "{}", copies.len());
}

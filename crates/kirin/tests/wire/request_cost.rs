//! The cost of requests that are a few bytes on the wire. With HTTP/2 a head of 30 KB is a hundred
//! indexes into a table, so each of its bytes must cost little.

use kirin_tests::{Http2Client, Kirin, Site, wait_for};

/// Makes the front parse cookies.
const APP: &str = r#"
use v5.16; use warnings;
use Kirin::Worker::Parsed;
Kirin::Worker::Parsed::want(qw(query form cookies));
sub { return [200, ['Content-Type' => 'text/plain'], [defined $_[0]{'kirin.cookies'} ? "parsed\n" : "not parsed\n"]] };
"#;

const CONFIG: &str = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n[[route]]\npath = \"/\"\ntry = [\"store\", \"app:web\"]\nssi = true\n";

const REQUESTS: usize = 60;

/// The most that a request may cost, relative to an ordinary one of the same size.
const MOST: u64 = 8;

/// Returns the processor time of the program so far, in clock ticks of 1/100 second.
fn ticks(kirin: &Kirin) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", kirin.pid())).expect("stat");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let number =
        |index: usize| fields.split_whitespace().nth(index).expect("a field").parse::<u64>();
    number(11).expect("utime") + number(12).expect("stime")
}

/// Returns the cost of requests with these fields, in ticks: the least of several runs.
fn cost(kirin: &Kirin, client: &mut Http2Client, fields: &[(&str, &str)]) -> u64 {
    let run = |client: &mut Http2Client| {
        let before = ticks(kirin);
        for _ in 0..REQUESTS {
            let reply = client.request("GET", "/", fields);
            assert_eq!(reply.status, 200, "{}", reply.text());
        }
        ticks(kirin) - before
    };
    (0..3).map(|_| run(client)).min().unwrap_or(0)
}

#[test]
fn a_head_of_many_fields_costs_in_proportion_to_its_bytes() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    let mut client = Http2Client::connect(kirin.address());
    wait_for("a worker that asks for cookies", || {
        (client.request("GET", "/", &[("cookie", "a=b")]).text() == "parsed\n").then_some(())
    });
    // A cookie of 8 KB in crumbs. HTTP/2 sends each crumb as an index from the second request on.
    let crumbs = |cookie: &dyn Fn(usize) -> String| -> Vec<String> {
        (0..8).map(|crumb| (0..200).map(|n| cookie(crumb * 200 + n)).collect::<String>()).collect()
    };
    let ordinary = crumbs(&|_| "a=b;".to_owned());
    let different = crumbs(&|number| format!("{number:x}=;"));
    // As many fields as a head may have. Their names are long and similar.
    let names: Vec<String> =
        (0..90).map(|number| format!("{}-{number}", "a".repeat(300))).collect();
    let same: Vec<String> =
        (0..90).map(|number| format!("{}-{}", "a".repeat(300), number % 12)).collect();
    let plain =
        cost(&kirin, &mut client, &ordinary.iter().map(|c| ("cookie", &c[..])).collect::<Vec<_>>());
    for (shape, fields) in [
        ("cookies", different.iter().map(|crumb| ("cookie", &crumb[..])).collect::<Vec<_>>()),
        ("names", names.iter().map(|name| (&name[..], "b")).collect()),
        ("names that come again", same.iter().map(|name| (&name[..], "b")).collect()),
    ] {
        let cost = cost(&kirin, &mut client, &fields);
        assert!(
            cost <= MOST * plain.max(2),
            "{shape}: {cost} ticks, an ordinary head of 8 KB {plain}"
        );
    }
}

#[test]
fn a_head_is_measured_in_decoded_form() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    let mut client = Http2Client::connect(kirin.address());
    let crumb = "a".repeat(1000);
    for (count, status) in [(20, 200), (40, 431)] {
        for _ in 0..3 {
            let reply = client.request("GET", "/", &vec![("cookie", &crumb[..]); count]);
            assert_eq!(reply.status, status, "{count} indexed fields of 1 KB");
        }
    }
    let reply = client.request("GET", "/", &vec![("x", "y"); 101]);
    assert_eq!(reply.status, 431, "101 fields of a few bytes");
    assert_eq!(client.get("/").status, 200, "the connection goes on");
}

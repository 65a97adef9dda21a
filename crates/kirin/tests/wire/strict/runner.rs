//! Sends the cases of the table, complete and in two pieces, on many connections at the same time.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::time::Duration;

use kirin_tests::strict::Case;
use kirin_tests::{Kirin, Site};

/// Small limits, so that cases of every length can be cut everywhere.
const CONFIG: &str = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\nhead_limit = \"512B\"\nrequest_line_limit = \"128B\"\n\
    [[app]]\nname = \"echo\"\nload = \"echo.psgi\"\nworkers = 2\nbody_limit = \"64B\"\n\
    [[route]]\npath = \"/\"\ntry = [\"app:echo\"]\n\
    [[route]]\npath = \"/files\"\ntry = [\"files:public\"]\n";

/// An application that writes the request that it has seen to its response and to a file. So no
/// request stays unnoticed.
const ECHO: &str = r#"
use v5.16; use warnings;
open my $seen, '>>', 'seen' or die $!;
sub {
    my $env = shift;
    my $body = '';
    if ($env->{CONTENT_LENGTH}) { read $env->{'psgi.input'}, $body, $env->{CONTENT_LENGTH} }
    my $request = join ' ', @$env{qw(REQUEST_METHOD REQUEST_URI SERVER_PROTOCOL)},
        (exists $env->{HTTP_HOST} ? "host=$env->{HTTP_HOST}" : ()),
        (map { "$_=$env->{$_}" } grep { /^HTTP_X/ && $_ ne "HTTP_X_REQUEST_ID" } sort keys %$env),
        (length $body ? "body=$body" : ());
    syswrite $seen, unpack('H*', $request) . "\n";
    [200, ['Content-Type' => 'text/plain', 'X-Seen' => unpack 'H*', $request], ['ok']];
};
"#;

/// The number of connections that are open at the same time.
const AT_ONCE: usize = 400;

/// Runs all cases in one program and shows all differences.
pub(crate) fn run(cases: &[Case]) {
    let site = Site::new().with("echo.psgi", ECHO).with("public/files/a", "a\n");
    let kirin = Kirin::start(&site, CONFIG);
    let mut wrong = BTreeMap::new();
    let mut expected: BTreeMap<String, usize> = BTreeMap::new();
    // A cut behind the last byte is no cut.
    let runs: Vec<(&Case, usize)> =
        cases.iter().flat_map(|case| (1..=case.input.len()).map(move |cut| (case, cut))).collect();
    for runs in runs.chunks(AT_ONCE) {
        for ((case, cut), received) in runs.iter().zip(send_all(kirin.address(), runs)) {
            for outcome in &case.outcomes {
                *expected.entry(outcome.clone()).or_default() += 1;
            }
            match outcomes(&received) {
                Ok(got) if got == case.outcomes => {}
                got => {
                    let cut = if *cut == case.input.len() {
                        "whole".into()
                    } else {
                        format!("cut at {cut}")
                    };
                    wrong.entry(case.name).or_insert_with(|| {
                        let sent = String::from_utf8_lossy(&case.input).into_owned();
                        format!(
                            "{}, {cut}: sent {sent:?}\n  want {:?}\n  got  {got:?}",
                            case.name, case.outcomes
                        )
                    });
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} cases:\n{}",
        wrong.len(),
        wrong.into_values().collect::<Vec<_>>().join("\n")
    );
    expected.retain(|outcome, _| outcome.contains(' '));
    let mut seen: BTreeMap<String, usize> = BTreeMap::new();
    for line in std::fs::read_to_string(site.path("seen")).unwrap_or_default().lines() {
        *seen.entry(unhex(line)).or_default() += 1;
    }
    assert_eq!(seen, expected, "what the application has seen");
}

/// Opens a connection for each case, sends all first pieces, then all second ones, then reads the
/// responses.
fn send_all(address: SocketAddr, runs: &[(&Case, usize)]) -> Vec<Vec<u8>> {
    let mut streams = Vec::new();
    for (case, cut) in runs {
        let mut stream = TcpStream::connect(address).expect("connect");
        stream.set_nodelay(true).expect("nodelay");
        stream.set_read_timeout(Some(Duration::from_secs(60))).expect("read timeout");
        stream.write_all(&case.input[..*cut]).expect("first piece");
        streams.push(stream);
    }
    // The loop serves ready connections in order. When it answers here, it has read the first
    // pieces.
    for _ in 0..2 {
        let mut last = TcpStream::connect(address).expect("connect");
        last.write_all(b"GET /files/a HTTP/1.0\r\n\r\n").expect("request");
        last.read_to_end(&mut Vec::new()).expect("response");
    }
    for ((case, cut), stream) in runs.iter().zip(&mut streams) {
        // It may have been refused already.
        let _ = stream.write_all(&case.input[*cut..]);
        let _ = stream.shutdown(Shutdown::Write);
    }
    streams
        .into_iter()
        .map(|mut stream| {
            let mut received = Vec::new();
            let _ = stream.read_to_end(&mut received);
            received
        })
        .collect()
}

/// Reads the responses on a connection: the request that the application saw, or Kirin's own
/// status.
fn outcomes(received: &[u8]) -> Result<Vec<String>, String> {
    let failed = || String::from_utf8_lossy(received).into_owned();
    let mut outcomes = Vec::new();
    let mut rest = received;
    while !rest.is_empty() {
        let end = rest.windows(4).position(|window| window == b"\r\n\r\n").ok_or_else(failed)?;
        let head = String::from_utf8_lossy(&rest[..end]).into_owned();
        rest = &rest[end + 4..];
        let field = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find_map(|(field, value)| (field == name).then(|| value.to_owned()))
        };
        let status = head.get(9..12).ok_or_else(failed)?;
        if status.starts_with('1') {
            continue;
        }
        let length: usize =
            field("Content-Length").and_then(|length| length.parse().ok()).ok_or_else(failed)?;
        match field("X-Seen") {
            Some(seen) => {
                let seen = unhex(&seen);
                if !seen.starts_with("HEAD ") {
                    rest = rest.get(length..).ok_or_else(failed)?;
                }
                outcomes.push(seen);
            }
            None => {
                rest = rest.get(length..).ok_or_else(failed)?;
                // After a refusal Kirin reads no more, and says so.
                if status != "404" && field("Connection").as_deref() != Some("close") {
                    return Err(failed());
                }
                outcomes.push(status.to_owned());
            }
        }
    }
    Ok(outcomes)
}

/// Shows bytes as Latin-1 text, so that each has a character.
fn unhex(hex: &str) -> String {
    let digit = |byte: u8| (byte as char).to_digit(16).expect("a hexadecimal digit") as u8;
    hex.trim()
        .as_bytes()
        .chunks(2)
        .map(|pair| char::from(digit(pair[0]) << 4 | digit(pair[1])))
        .collect()
}

//! The same formats and requests for Kirin and for Apache::LogFormat::Compiler.

use std::io::Write;
use std::process::{Command, Stdio};

use kirin_tests::{Kirin, Reply, Site, wait_for};
use serde_json::{Value, json};

/// Answers with the environment as JSON, or with nothing.
const APP: &str = r#"
use v5.16; use warnings; use JSON::PP;
sub {
    my $env = shift;
    my %plain = map { $_ => $env->{$_} } grep { !ref $env->{$_} } keys %$env;
    my @head = ('Content-Type' => 'application/json', 'X-Pid' => $$, 'X-Env' => encode_json(\%plain));
    return [$env->{PATH_INFO} =~ /empty/ ? (204, \@head, []) : (200, \@head, ['0123456789'])];
};
"#;

/// Formats for Kirin, and for the Perl module where it needs another one for the same line.
const FORMATS: [(&str, &str); 22] = [
    ("%h %l %u %t \"%r\" %>s %b", "common"),
    ("%h %l %u %t \"%r\" %>s %b \"%{Referer}i\" \"%{User-agent}i\"", "combined"),
    ("%%", "%%"),
    ("100%% of %h!", ""),
    ("%h|%l|%u", ""),
    ("%t", ""),
    ("%s %>s %<s", ""),
    ("%b", ""),
    ("%T %D", ""),
    ("%v %V %p", ""),
    ("%m", ""),
    ("%U%q", ""),
    ("%q", ""),
    ("%H", ""),
    ("%{User-Agent}i %{X-Two}i %{X-None}i", ""),
    ("%{Content-Type}i", ""),
    ("%{Content-Type}o %{content-type}o %{X-None}o", ""),
    // The module puts a time into brackets, which Apache does not do.
    ("[%{%Y-%m-%dT%H:%M:%S%z}t]", "%{%Y-%m-%dT%H:%M:%S%z}t"),
    ("[%{%A %a %B %b %d %H %M %S %j}t]", "%{%A %a %B %b %d %H %M %S %j}t"),
    ("[%{%c|%x|%X|%D|%R|%T|%s}t]", "%{%c|%x|%X|%D|%R|%T|%s}t"),
    // Kirin has the process id of the worker that answered.
    ("%P", "%{X-Pid}o"),
    ("%h\t\"%r\"\t{%s}", ""),
];

/// Method, the end of the target, fields and body of a request.
const REQUESTS: [(&str, &str, &str, &str); 6] = [
    ("GET", "", "", ""),
    ("GET", "/a?x=1&y=%20", "User-Agent: curl/8 (x; y)\r\nReferer: http://a/?b\r\n", ""),
    ("POST", "/form?", "Content-Type: text/plain\r\nContent-Length: 5\r\n", "hello"),
    ("DELETE", "/empty", "X-Two: 1\r\nX-Two: 2\r\n", ""),
    ("GET", "/bytes", "User-Agent: caf\u{e9} a\tb\r\n", ""),
    ("GET", "/a!b", "User-Agent: -\r\nX-Two:\r\n", ""),
];

struct Row {
    kirin: String,
    case: Value,
    text: String,
}

#[test]
fn lines_are_those_of_apache_logformat_compiler() {
    let mut config = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
        [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n"
        .to_owned();
    for (number, (format, _)) in FORMATS.iter().enumerate() {
        config.push_str(&format!(
            "[[route]]\npath = \"/f{number}\"\ntry = [\"app:web\"]\naccess_log = {{ path = \
             \"{number}.log\", format = '''%{{sec}}t;%D;{format}''' }}\n"
        ));
    }
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, &config);
    let mut all = Vec::new();
    for number in 0..FORMATS.len() {
        let replies: Vec<_> = REQUESTS
            .iter()
            .map(|(method, end, fields, body)| {
                let mut client = kirin.connect();
                let head = format!(
                    "{method} /f{number}{end} HTTP/1.1\r\nHost: {}\r\n{fields}\r\n{body}",
                    kirin.address()
                );
                // The text has Latin-1 characters for bytes.
                client.send(head.chars().map(|c| c as u8).collect::<Vec<u8>>());
                client.read_reply()
            })
            .collect();
        all.push(replies);
    }
    let mut rows = Vec::new();
    for (number, ((format, of_module), replies)) in FORMATS.iter().zip(&all).enumerate() {
        let log = wait_for(&format!("the lines of {format}"), || {
            let log = std::fs::read_to_string(site.path(&format!("{number}.log"))).ok()?;
            (log.matches('\n').count() == REQUESTS.len()).then_some(log)
        });
        for (line, reply) in log.lines().zip(replies) {
            let of_module = if of_module.is_empty() { format } else { of_module };
            rows.push(row(line, of_module, reply));
        }
    }
    let lines = run_module(&rows);
    assert_eq!(rows.len(), FORMATS.len() * REQUESTS.len());
    assert_eq!(lines.len(), rows.len());
    for (row, line) in rows.iter().zip(lines) {
        assert_eq!(row.kirin, lower_case_escapes(&line), "{}", row.text);
    }
}

/// Takes the time of a request out of the line of Kirin, and makes the case for the module.
fn row(line: &str, format: &str, reply: &Reply) -> Row {
    let mut parts = line.splitn(3, ';');
    let mut number = || parts.next().expect("a number").parse::<u64>().expect("a number");
    let (time, reqtime) = (number(), number());
    let env = reply.field("X-Env").expect("the environment");
    let env: Value = serde_json::from_str(env).expect("JSON");
    let length = Some(reply.body.len()).filter(|length| *length > 0);
    let case = json!({
        "format": format,
        "env": env,
        "status": reply.status,
        "headers": [
            "Content-Type", reply.field("Content-Type"), "X-Pid", reply.field("X-Pid"),
        ],
        "length": length,
        "reqtime": reqtime,
        "time": time,
    });
    let kirin = lower_case_escapes(parts.next().expect("a line"));
    Row { kirin, text: format!("{format}: {line}"), case }
}

/// Returns the line with lower-case escapes. The module writes `\xe9`, Kirin `\xE9` as nginx does.
fn lower_case_escapes(line: &str) -> String {
    let mut parts = line.split("\\x");
    let mut lower = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (digits, rest) = part.split_at(2);
        lower.push_str(&format!("\\x{}{rest}", digits.to_ascii_lowercase()));
    }
    lower
}

fn run_module(rows: &[Row]) -> Vec<String> {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/operating/access_logs/log_formats.pl");
    let mut child = Command::new("perl")
        .arg(script)
        .env("TZ", "UTC")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("perl");
    let mut input = child.stdin.take().expect("its input");
    let cases: String = rows.iter().map(|row| format!("{}\n", row.case)).collect();
    let writing = std::thread::spawn(move || input.write_all(cases.as_bytes()));
    let output = child.wait_with_output().expect("lines");
    writing.join().expect("a thread").expect("written");
    assert!(output.status.success());
    String::from_utf8(output.stdout).expect("ASCII").lines().map(str::to_owned).collect()
}

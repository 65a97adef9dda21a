//! RFC 9111 sentence by sentence for a shared cache: tables of server responses and their effect on
//! requests.
//!
//! The tests follow the idea of the public suite for HTTP caches (cache-tests.fyi), but in our own
//! words. They check the requests that the server gets, and not Kirin's own report. Where Kirin
//! does not use a permission of the RFC, the row has the reason.

mod fields;
mod freshness;
mod invalidation;
mod parts;
mod requests;
mod stale;
mod statuses;
mod storing;
mod targeted;
mod validation;
mod variants;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use kirin_tests::{Backend, Client, Kirin, ReceivedRequest, Reply, Site};

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fate {
    /// It is answered from memory.
    Reused,
    /// The server gets a request for the complete response.
    Passed,
    /// The server gets a request to validate the stored response.
    Validated,
    /// One of these.
    Any,
}

use Fate::{Passed, Reused, Validated};

/// A field of a response, or its absence.
type Expected = (&'static str, Option<&'static str>);

/// A request and its expected result.
struct Ask {
    method: &'static str,
    /// Field lines, each with CR LF.
    fields: String,
    fate: Fate,
    status: Option<u16>,
    body: Option<&'static str>,
    expected: Vec<Expected>,
}

/// The responses of a server and their effect on requests, one after the other.
struct Case {
    section: &'static str,
    name: String,
    /// Statuses and field lines. The last one is for all further requests.
    answers: Vec<String>,
    asks: Vec<Ask>,
    target: Option<&'static str>,
}

/// Starts a case. The server sends `answers`. The first request is passed on.
fn case(section: &'static str, name: &str, answers: &[&str]) -> Case {
    let answers = answers.iter().map(|answer| dated(answer)).collect();
    Case { section, name: name.to_owned(), answers, asks: Vec::new(), target: None }
        .ask("GET", "", Passed)
}

/// Starts a case with two plain requests.
fn twice(section: &'static str, said: &str, fate: Fate) -> Case {
    case(section, said, &[said, "304"]).ask("GET", "", fate)
}

/// Replaces `{+60}` by the time in a minute, and `{-60}` by the time a minute ago.
fn dated(answer: &str) -> String {
    let mut text = answer.to_owned();
    while let Some((before, rest)) = text.split_once('{') {
        let (seconds, after) = rest.split_once('}').expect("a brace that is closed");
        let seconds: i64 = seconds.parse().expect("seconds");
        let (now, by) = (SystemTime::now(), Duration::from_secs(seconds.unsigned_abs()));
        let time = if seconds < 0 { now - by } else { now + by };
        text = format!("{before}{}{after}", httpdate::fmt_http_date(time));
    }
    text
}

impl Case {
    /// Adds one more request.
    fn ask(mut self, method: &'static str, fields: &str, fate: Fate) -> Self {
        let fields = if fields.is_empty() { String::new() } else { format!("{fields}\r\n") };
        self.asks.push(Ask {
            method,
            fields,
            fate,
            status: None,
            body: None,
            expected: Vec::new(),
        });
        self
    }

    fn get(self, fields: &str, fate: Fate) -> Self {
        self.ask("GET", fields, fate)
    }

    /// Sets the fields of the first request.
    fn first(mut self, fields: &str) -> Self {
        self.asks[0].fields = format!("{fields}\r\n");
        self
    }

    /// Sets the status that the last request must get.
    fn status(mut self, status: u16) -> Self {
        self.asks.last_mut().expect("a request").status = Some(status);
        self
    }

    /// Sets the body that the last request must get. The server's bodies are `body` and the number.
    fn body(mut self, body: &'static str) -> Self {
        self.asks.last_mut().expect("a request").body = Some(body);
        self
    }

    /// Expects this field in the response to the last request, or no field with this name.
    fn has(mut self, name: &'static str, value: Option<&'static str>) -> Self {
        self.asks.last_mut().expect("a request").expected.push((name, value));
        self
    }

    /// Uses the route that obeys reload directives of browsers.
    fn reloading(mut self) -> Self {
        self.target = Some("/reload");
        self
    }

    fn check(&self, ask: &Ask, heads: &[String], reply: &Reply) -> Result<(), String> {
        let fate = match heads {
            [] => Reused,
            [head]
                if ["if-none-match:", "if-modified-since:"]
                    .iter()
                    .any(|name| head.contains(name)) =>
            {
                Validated
            }
            _ => Passed,
        };
        let mut wrong = Vec::new();
        if fate != ask.fate && ask.fate != Fate::Any {
            wrong.push(format!("{:?} and not {:?}", fate, ask.fate));
        }
        if let Some(status) = ask.status.filter(|status| *status != reply.status) {
            wrong.push(format!("status {} and not {status}", reply.status));
        }
        if let Some(body) = ask.body.filter(|body| *body != reply.text()) {
            wrong.push(format!("body {:?} and not {body:?}", reply.text()));
        }
        for (name, value) in ask.expected.iter().filter(|(name, value)| reply.field(name) != *value)
        {
            wrong.push(format!("{name} is {:?} and not {value:?}", reply.field(name)));
        }
        if wrong.is_empty() { Ok(()) } else { Err(wrong.join(", ")) }
    }
}

/// Responses by target, and recorded requests by target.
#[derive(Default)]
struct Script {
    answers: HashMap<String, Vec<String>>,
    heads: HashMap<String, Vec<String>>,
}

fn answer(script: &Mutex<Script>, asked: &ReceivedRequest) -> String {
    let mut script = script.lock().unwrap();
    let target = asked.target().to_owned();
    let heads = script.heads.entry(target.clone()).or_default();
    heads.push(asked.head.to_ascii_lowercase());
    let number = heads.len();
    let answers = &script.answers[&target];
    let text = answers.get(number - 1).or(answers.last()).expect("an answer");
    let (status, fields) = text.split_once('\n').unwrap_or((text, ""));
    let lines: String = fields.lines().map(|line| format!("{line}\r\n")).collect();
    match status {
        "304" | "204" => format!("HTTP/1.1 {status} X\r\n{lines}\r\n"),
        _ => {
            let body = if asked.head.starts_with("HEAD") {
                String::new()
            } else {
                format!("body {number}")
            };
            format!(
                "HTTP/1.1 {status} X\r\n{lines}Content-Length: {}\r\n\r\n{body}",
                5 + number.to_string().len()
            )
        }
    }
}

/// Runs the cases, and fails with all differences.
fn run(cases: Vec<Case>) {
    let script = Arc::new(Mutex::new(Script::default()));
    let shared = Arc::clone(&script);
    let backend = Backend::answering(move |asked| answer(&shared, asked));
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"web\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:web\"]\ncache = true\n\
         [[route]]\npath = \"/reload\"\ntry = [\"proxy:web\"]\ncache = {{ reload = true }}\n",
        backend.address()
    );
    let kirin = Kirin::start(&Site::new(), &config);
    let mut wrong = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let target = format!("{}/{index}", case.target.unwrap_or_default());
        script.lock().unwrap().answers.insert(target.clone(), case.answers.clone());
        let mut client = kirin.connect();
        let mut before = 0;
        for (number, ask) in case.asks.iter().enumerate() {
            let reply = request(&mut client, ask, &target);
            let script = script.lock().unwrap();
            let heads = script.heads.get(&target).map_or(&[][..], |heads| &heads[before..]);
            if let Err(error) = case.check(ask, heads, &reply) {
                wrong.push(format!(
                    "section {}: {:?}, request {}: {error}\n{}",
                    case.section,
                    case.name,
                    number + 1,
                    reply.head
                ));
            }
            before += heads.len();
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {} are otherwise:\n{}",
        wrong.len(),
        cases.len(),
        wrong.join("\n\n")
    );
}

fn request(client: &mut Client, ask: &Ask, target: &str) -> Reply {
    client.request(ask.method, target, &ask.fields)
}

//! The store over upgrades: no acknowledged write is lost, and nothing that is gone comes back.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use kirin_tests::{Client, SetAtEnd, wait_for};

use super::{CONFIG, Service};

/// A memcached client that connects again when its connection has ended.
struct Reconnecting {
    path: PathBuf,
    stream: BufReader<UnixStream>,
    reconnects: u64,
}

impl Reconnecting {
    fn connect(path: &Path) -> Self {
        let stream = BufReader::new(UnixStream::connect(path).expect("the store"));
        Self { path: path.to_owned(), stream, reconnects: 0 }
    }

    /// Sends a command. Returns the first line of the answer, and a value if there is one. `None`:
    /// the connection has ended, so the command may have been carried out or not.
    fn ask(&mut self, command: &str) -> Option<(String, String)> {
        self.try_ask(command).or_else(|| {
            self.reconnects += 1;
            self.stream =
                wait_for("the store", || UnixStream::connect(&self.path).ok().map(BufReader::new));
            None
        })
    }

    fn try_ask(&mut self, command: &str) -> Option<(String, String)> {
        self.stream.get_mut().write_all(command.as_bytes()).ok()?;
        let line = self.line()?;
        let mut value = String::new();
        if let Some(length) = line.strip_prefix("VA ") {
            let length: usize = length.split(' ').next()?.parse().ok()?;
            let mut bytes = vec![0; length + 2];
            self.stream.read_exact(&mut bytes).ok()?;
            bytes.truncate(length);
            value = String::from_utf8(bytes).ok()?;
        }
        Some((line, value))
    }

    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let count = self.stream.read_line(&mut line).ok()?;
        (count > 0).then(|| line.trim_end().to_owned())
    }

    /// Asks until there is an answer.
    fn ask_again(&mut self, command: &str) -> (String, String) {
        loop {
            if let Some(answer) = self.ask(command) {
                return answer;
            }
        }
    }
}

/// What a writer knows of its item.
#[derive(Default)]
struct Known {
    value: Option<String>,
    cas: u64,
}

/// Writes one item in every way, and checks each answer. The item is its own.
struct Writer {
    client: Reconnecting,
    key: String,
    known: Known,
    /// Whether the item has its tag. `None`: it is not known.
    is_tagged: Option<bool>,
    number: u64,
}

impl Writer {
    /// Reads the item. It must be one of those that `expected` allows.
    fn check(&mut self, expected: &[Option<String>]) {
        let (line, value) = self.client.ask_again(&format!("mg {} v c\r\n", self.key));
        let found = line.starts_with("VA ").then_some(value);
        assert!(expected.contains(&found), "{}: {line} {found:?}, not {expected:?}", self.key);
        let cas = line.split(' ').find_map(|part| part.strip_prefix('c')?.parse().ok());
        self.known = Known { value: found, cas: cas.unwrap_or(0) };
    }

    /// Sends a command that makes the value another one. `answer` is that of success.
    fn change(&mut self, command: &str, answer: &str, after: Option<String>) {
        // An increment and a touch leave the tag as it is.
        let is_tagged = match command.get(..3) {
            Some("ma " | "mg ") => self.is_tagged,
            _ => Some(command.contains("Ptags=")),
        };
        match self.client.ask(command) {
            Some((line, _)) => {
                assert!(line.starts_with(answer), "{}: {command}: {line}", self.key);
                self.is_tagged = is_tagged;
                self.check(&[after]);
            }
            None => {
                let before = self.known.value.clone();
                self.is_tagged = self.is_tagged.filter(|before| Some(*before) == is_tagged);
                self.check(&[before, after]);
            }
        }
    }

    fn purge_tag(&mut self, tag: &str) {
        let is_answered = self.client.ask(&format!("md {tag} Ptag\r\n")).is_some();
        let before = self.known.value.clone();
        match (is_answered, self.is_tagged) {
            (true, Some(true)) => self.check(&[None]),
            (_, Some(false)) => self.check(&[before]),
            _ => self.check(&[before, None]),
        }
        if self.known.value.is_none() {
            self.is_tagged = Some(false);
        }
    }

    fn step(&mut self) {
        self.number += 1;
        let (key, number) = (self.key.clone(), self.number.to_string());
        let length = number.len();
        let tag = format!("tag-{key}");
        let is_there = self.known.value.is_some();
        match self.number % 7 {
            0 => {
                let answer = if is_there { "HD" } else { "NF" };
                self.change(&format!("md {key}\r\n"), answer, None);
            }
            1 => {
                let set = format!("ms {key} {length} Ptags={tag}\r\n{number}\r\n");
                self.change(&set, "HD", Some(number));
            }
            2 if is_there => {
                let known = self.known.value.clone().expect("a value");
                let next = known.parse::<u64>().expect("a number") + 7;
                self.change(&format!("ma {key} D7\r\n"), "HD", Some(next.to_string()));
            }
            // Its CAS unique has not changed, whichever program has the item.
            3 if is_there => {
                let cas = self.known.cas;
                let set = format!("ms {key} {length} C{cas} Ptags={tag}\r\n{number}\r\n");
                self.change(&set, "HD", Some(number));
            }
            4 if is_there => {
                let before = self.known.value.clone();
                self.change(&format!("mg {key} T3600\r\n"), "HD", before);
            }
            5 => self.purge_tag(&tag),
            _ => {
                let set = format!("ms {key} {length} T3600\r\n{number}\r\n");
                self.change(&set, "HD", Some(number));
            }
        }
    }
}

#[test]
fn no_acknowledged_write_is_lost() {
    const UPGRADES: u64 = 4;
    let service = Service::start(CONFIG);
    let store = service.site.path("store.sock");
    let mut filler = Reconnecting::connect(&store);
    for number in 0..20_000 {
        filler.ask(&format!("ms fill{number} 5\r\nvalue\r\n"));
    }
    let (is_over, writes) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut writers: Vec<Writer> = std::thread::scope(|scope| {
        let _over = SetAtEnd(&is_over);
        let (store, is_over, writes) = (&store, &is_over, &writes);
        let writers: Vec<_> = (0..4)
            .map(|number| {
                scope.spawn(move || {
                    let mut all: Vec<Writer> = (0..50)
                        .map(|item| Writer {
                            client: Reconnecting::connect(store),
                            key: format!("w{number}-{item}"),
                            known: Known::default(),
                            is_tagged: Some(false),
                            number: item,
                        })
                        .collect();
                    while !is_over.load(Ordering::Relaxed) {
                        for writer in &mut all {
                            writer.step();
                            writes.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                    all
                })
            })
            .collect();
        for _ in 0..UPGRADES {
            let before = writes.load(Ordering::Relaxed);
            wait_for("some writes", || {
                (writes.load(Ordering::Relaxed) > before + 2000).then_some(())
            });
            service.upgrade();
        }
        is_over.store(true, Ordering::Relaxed);
        writers.into_iter().flat_map(|writer| writer.join().expect("a writer")).collect()
    });
    for writer in &mut writers {
        let known = writer.known.value.clone();
        writer.check(&[known]);
        assert_eq!(writer.client.reconnects, 0, "its connection goes on");
    }
    for number in 0..20_000 {
        let (line, _) = filler.ask_again(&format!("mg fill{number} s\r\n"));
        assert_eq!(line, "HD s5", "{number}");
    }
}

/// An application whose requests wait for the file `go`, and then change the store.
const LATE: &str = r#"
use v5.16; use warnings;
use Kirin::Store;
my $store = Kirin::Store->new;
sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    if ($path =~ m{^/late/}) {
        open my $begun, '>', "begun.$$" or die; close $begun;
        select undef, undef, undef, 0.01 until -e 'go';
    }
    my @fields = ('Content-Type' => 'text/plain');
    push @fields, 'Kirin-Store' => 'ttl=600, tags="t"' if $path =~ m{/page|/purged};
    push @fields, 'Kirin-Purge' => 'keys="/old"' if $path =~ m{/purges};
    $store->set('by-application', 'late', 600) if $path =~ m{/sets};
    [200, \@fields, ["made for $path"]];
};
"#;

#[test]
fn what_late_requests_write_and_purge_is_in_the_new_store() {
    let config = CONFIG.replace("workers = 2", "workers = 4");
    let service = Service::start(&config);
    std::fs::write(service.site.path("app.psgi"), LATE).expect("app.psgi");
    service.first.wait_for_log("app is loaded");
    let before = service.upgrade();
    let mut client = Reconnecting::connect(&service.site.path("store.sock"));
    client.ask("ms /old 15\r\ntext/plain\r\nold\r\n");
    assert_eq!(service.get("/old"), "old");
    let late: Vec<Client> = ["/late/page", "/late/purged", "/late/purges", "/late/sets"]
        .map(|path| {
            let mut client = Client::connect(service.address());
            client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
            client
        })
        .into();
    service.site.wait_for_files("begun.", 4);
    // The old program goes on with these four.
    service.signal(rustix::process::Signal::USR2);
    wait_for("the next program", || service.pid().filter(|pid| *pid != before));
    wait_for("a connection to the new store", || {
        let mut client = Reconnecting::connect(&service.site.path("store.sock"));
        client.ask("mn\r\n")
    });
    // This page is being made at the time of its purge.
    let mut client = Reconnecting::connect(&service.site.path("store.sock"));
    client.ask_again("md /late/purged\r\n");
    std::fs::write(service.site.path("go"), "").expect("go");
    for mut client in late {
        assert!(client.read_reply().text().starts_with("made for /late/"));
    }
    let mut stored = |key: &str| client.ask_again(&format!("mg {key} v\r\n"));
    wait_for("the late page", || stored("/late/page").0.starts_with("VA ").then_some(()));
    wait_for("the late purge", || (stored("/old").0 == "EN").then_some(()));
    wait_for("the late item", || (stored("by-application").1 == "late").then_some(()));
    wait_for("the end of the old program", || super::has_ended(before).then_some(()));
    assert_eq!(stored("/late/purged").0, "EN", "it was begun before it was purged");
}

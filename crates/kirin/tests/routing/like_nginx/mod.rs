//! Requests to pairs of configurations, compared with nginx itself (Debian's nginx-light).
//!
//! Each pair says the same in both configurations. A request is answered alike, or it is listed
//! with what differs and why. One nginx serves all pairs, each on its own port.

mod answers;
mod backends;
mod imported;
mod nginx;
mod pair;
mod real_sites;
mod uwsgi;

mod access;
mod auth_requests;
mod bad_requests;
mod cgi;
mod compression;
mod conditions;
mod directories;
mod error_pages;
mod fastcgi;
mod fields;
mod limits;
mod locations;
mod mounts;
mod passwords;
mod paths;
mod proxy;
mod real_ip;
mod redirects;
mod server_names;
mod try_files;
mod upstreams;
mod variables;

use std::fmt::Write as _;
use std::fs::{File, Permissions};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, UNIX_EPOCH};

use kirin_tests::{Kirin, LeasedPort, Site};

use answers::{Answer, ask, differences};
use backends::Backends;
use nginx::Nginx;
use pair::{Expected, Pair, Request};

/// The pairs of each topic.
const TOPICS: &[&[Pair]] = &[
    access::PAIRS,
    auth_requests::PAIRS,
    bad_requests::PAIRS,
    cgi::PAIRS,
    compression::PAIRS,
    conditions::PAIRS,
    directories::PAIRS,
    error_pages::PAIRS,
    fastcgi::PAIRS,
    fields::PAIRS,
    limits::PAIRS,
    locations::PAIRS,
    mounts::PAIRS,
    passwords::PAIRS,
    paths::PAIRS,
    proxy::PAIRS,
    real_ip::PAIRS,
    redirects::PAIRS,
    server_names::PAIRS,
    try_files::PAIRS,
    upstreams::PAIRS,
    variables::PAIRS,
];

/// The listener of every Kirin. A pair may begin with more keys of it.
const LISTENER: &str = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n";

/// The number of threads that compare pairs. They wait more than they compute.
const THREADS: usize = 4;

/// The time of all files: 9 September 2001.
const CHANGED: Duration = Duration::from_secs(1_000_000_000);

/// A pair and what nginx serves for it.
struct Prepared<'a> {
    pair: &'a Pair,
    site: Site,
    port: LeasedPort,
}

impl Prepared<'_> {
    /// Returns a configuration with the files, the address and the backends of this run.
    fn filled(&self, config: &str, backends: &Backends) -> String {
        let files = self.site.path("files");
        let config = config.replace("{files}", &files.display().to_string());
        backends.fill(&config.replace("{listen}", &self.port.address().to_string()))
    }
}

/// The result of all requests of some pairs.
#[derive(Default)]
struct Report {
    alike: usize,
    different: usize,
    /// What was sent and what came back, of requests with another result than the expected one.
    unexpected: String,
}

impl Report {
    /// Compares the answers to a request with what is expected.
    fn add(
        &mut self,
        pair: &str,
        request: &Request,
        (nginx, kirin): (&Answer, &Answer),
        backends: &Backends,
    ) {
        let (of_nginx, of_kirin) = differences(nginx, kirin);
        let of_nginx = backends.without_addresses(&of_nginx);
        let of_kirin = backends.without_addresses(&of_kirin);
        let same = of_nginx.is_empty() && of_kirin.is_empty();
        if same {
            self.alike += 1;
        } else {
            self.different += 1;
        }
        let problem = match request.expected {
            Expected::Alike if same => None,
            Expected::Alike => Some("they differ".to_owned()),
            Expected::Differs { reason, .. } if same => {
                Some(format!("the listed difference has gone: {reason}"))
            }
            Expected::Differs { nginx, kirin, reason } => (nginx != of_nginx || kirin != of_kirin)
                .then(|| format!("another difference than `{nginx}` and `{kirin}`: {reason}")),
        };
        let summary = format!("{pair}: {:?}\nnginx: {of_nginx}\nkirin: {of_kirin}", request.text);
        println!("{summary}");
        if let Some(problem) = problem {
            let _ = writeln!(
                self.unexpected,
                "=== {problem}\n{summary}\n--- sent\n{}\n--- nginx\n{}\n--- kirin\n{}",
                nginx.sent, nginx.received, kirin.received
            );
        }
    }

    fn join(mut self, other: Self) -> Self {
        self.alike += other.alike;
        self.different += other.different;
        self.unexpected += &other.unexpected;
        self
    }
}

/// Sends the requests of a pair to both servers, in their order.
fn compare(prepared: &Prepared<'_>, backends: &Backends) -> Report {
    let pair = prepared.pair;
    let config = format!("{LISTENER}{}", prepared.filled(pair.kirin, backends));
    let kirin = Kirin::start(&prepared.site, &config);
    let mut report = Report::default();
    for request in pair.requests {
        let to = |address: SocketAddr| ask(address, request.text);
        let (of_nginx, of_kirin) = (to(prepared.port.address()), to(kirin.address()));
        report.add(pair.name, request, (&of_nginx, &of_kirin), backends);
    }
    report
}

/// All pairs, and an nginx that serves them.
struct Comparison<'a> {
    backends: Backends,
    prepared: Vec<Prepared<'a>>,
    nginx: Nginx,
}

impl<'a> Comparison<'a> {
    fn start(pairs: impl IntoIterator<Item = &'a Pair>) -> Self {
        let backends = Backends::start();
        let prepare = |pair| {
            let site = pair_files(pair);
            Prepared { pair, site, port: LeasedPort::lease() }
        };
        let prepared: Vec<_> = pairs.into_iter().map(prepare).collect();
        let nginx = Nginx::start(
            &prepared.iter().map(|one| one.filled(one.pair.nginx, &backends)).collect::<String>(),
            prepared.iter().map(|one| one.port.address()),
        );
        Self { backends, prepared, nginx }
    }

    /// Sends a request to both servers. Returns the parts of each answer that differ.
    fn differences(&self, of: &Prepared<'_>, kirin: &Kirin, request: &str) -> (String, String) {
        let of_nginx = ask(of.port.address(), request);
        let (nginx, kirin) = differences(&of_nginx, &ask(kirin.address(), request));
        (self.backends.without_addresses(&nginx), self.backends.without_addresses(&kirin))
    }

    /// Compares all pairs. Each thread takes the next one.
    fn of_each<R: Send>(&self, compare: impl Fn(&Prepared<'_>) -> R + Sync) -> Vec<R> {
        let next = AtomicUsize::new(0);
        let compare_some = || {
            let taken = || self.prepared.get(next.fetch_add(1, Ordering::Relaxed));
            std::iter::from_fn(taken).map(&compare).collect::<Vec<_>>()
        };
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(compare_some)).collect();
            threads.into_iter().flat_map(|thread| thread.join().expect("a comparison")).collect()
        })
    }
}

#[test]
fn requests_are_answered_as_by_nginx_or_differ_for_a_listed_reason() {
    let all = Comparison::start(TOPICS.iter().copied().flatten());
    let reports = all.of_each(|prepared| compare(prepared, &all.backends));
    let report = reports.into_iter().fold(Report::default(), Report::join);
    let pairs = all.prepared.len();
    println!("{pairs} pairs, {} alike, {} different", report.alike, report.different);
    assert!(report.unexpected.is_empty(), "{}\n{}", report.unexpected, all.nginx.errors());
}

/// Writes the files of a pair. All have the same old time, so that validators stay the same.
fn pair_files(pair: &Pair) -> Site {
    let site = Site::new().with("files/.pair", pair.name);
    pair.files.iter().fold(site, |site, (name, content)| {
        let site = site.with(&format!("files/{name}"), content);
        let file = File::open(site.path("files").join(name)).expect("the file");
        if content.starts_with("#!") {
            file.set_permissions(Permissions::from_mode(0o755)).expect("a program");
        }
        file.set_modified(UNIX_EPOCH + CHANGED).expect("its time");
        site
    })
}

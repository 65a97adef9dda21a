//! What goes wrong in an application costs the request that it happens to, and no other.

use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::support::{Site, eventually, is_alive, kill, patient};

/// Does what the path says; `/wait` until a file exists, whose directory is the working directory.
const TROUBLE: &str = r#"
sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    open my $log, '>>', 'calls' or die $!;
    syswrite $log, "$env->{REQUEST_METHOD} $path $$\n";
    exit 3 if $path eq '/exit';
    kill KILL => $$ if $path eq '/crash';
    if ($path eq '/wait') { select undef, undef, undef, 0.01 until -e 'gate' }
    if ($path eq '/hang') { sleep 1000 while 1 }
    if ($path eq '/crash-once' && !-e 'crashed') { open my $mark, '>', 'crashed'; kill KILL => $$ }
    if ($path eq '/crash-inside') {
        return sub { my $w = $_[0]->([200, ['Content-Length' => 2_000_000]]); $w->write('x' x 1_500_000); kill KILL => $$ }
    }
    if ($path eq '/fork-and-crash') { if (!fork) { select undef, undef, undef, 0.01 while -e 'calls'; exit } kill KILL => $$ }
    [200, [], ["$$"]];
}
"#;

fn calls(site: &Site) -> Vec<String> {
    let log = std::fs::read_to_string(site.directory.path().join("calls")).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

#[test]
fn an_application_that_exits_is_answered_502_and_replaced() {
    let site = Site::start(TROUBLE);
    let first = site.worker();
    assert_eq!(site.get("/exit").status, 502);
    assert_eq!(calls(&site).len(), 2, "a GET is tried once more");
    let reply = site.get("/");
    assert_eq!(reply.status, 200);
    assert_ne!(reply.text(), first.to_string());
    assert_eq!(site.app.counters().failed, 1);
    assert_eq!(site.app.counters().retried, 1);
}

#[test]
fn a_get_whose_worker_dies_is_tried_on_another() {
    let site = Site::start_with(TROUBLE, |config| config.workers = 2).unwrap();
    assert_eq!(site.get("/crash-once").status, 200);
    assert_eq!(site.app.counters().retried, 1);
}

#[test]
fn a_post_whose_worker_dies_is_not_repeated() {
    let site = Site::start_with(TROUBLE, |config| config.workers = 2).unwrap();
    let mut client = site.connect();
    client.send("POST /crash HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc");
    assert_eq!(client.reply().status, 502);
    assert_eq!(calls(&site).len(), 1, "{:?}", calls(&site));
}

#[test]
fn a_worker_killed_while_idle_costs_no_request_not_even_a_post() {
    let site = Site::start(TROUBLE);
    for _ in 0..3 {
        let pid = site.worker();
        kill(pid, Signal::KILL);
        let mut client = site.connect();
        client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\nabc");
        let reply = client.reply();
        assert_eq!(reply.status, 200, "{reply:?}");
        assert_ne!(reply.text(), pid.to_string());
    }
    assert_eq!(calls(&site).len(), 3);
}

#[test]
fn a_response_that_its_worker_does_not_live_to_end_is_cut() {
    let site = Site::start(TROUBLE);
    let mut client = site.connect();
    client.send("GET /crash-inside HTTP/1.1\r\nHost: test\r\n\r\n");
    let reply = client.try_reply(false);
    assert!(reply.is_err(), "{} bytes", reply.unwrap().body.len());
    assert_eq!(site.get("/").status, 200);
}

#[test]
fn a_worker_that_left_a_child_behind_is_seen_to_be_dead() {
    let site = Site::start(TROUBLE);
    let mut client = site.connect();
    // The child has the worker's socket open, so that its end is not seen there. It ends when the
    // directory is removed.
    client.send("POST /fork-and-crash HTTP/1.1\r\nHost: test\r\nContent-Length: 1\r\n\r\nx");
    assert_eq!(client.reply().status, 502);
    assert_eq!(site.get("/").status, 200);
}

#[test]
fn a_request_that_takes_too_long_is_answered_504_and_its_worker_killed() {
    // The last request must be answered in this time.
    let deadline = patient(Duration::from_secs(2));
    let site = Site::start_with(TROUBLE, |config| config.request_deadline = deadline).unwrap();
    let pid = site.worker();
    assert_eq!(site.get("/hang").status, 504);
    eventually("the worker is dead", || !is_alive(pid));
    assert_eq!(site.get("/").status, 200);
    assert_eq!(site.app.counters().overdue, 1);
}

#[test]
fn requests_wait_in_the_queue_and_are_refused_when_it_is_full() {
    let site = Site::start_with(TROUBLE, |config| config.queue_length = 2).unwrap();
    let mut waiting: Vec<_> = (0..3).map(|_| site.connect()).collect();
    waiting[0].send("GET /wait HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the worker is busy", || calls(&site).len() == 1);
    for client in &mut waiting[1..] {
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    eventually("two wait", || site.app.waiting_requests() == 2);

    let refused = site.get("/");
    assert_eq!((refused.status, refused.field("Retry-After")), (503, Some("1")), "{refused:?}");
    assert_eq!(site.app.counters().refused_full, 1);

    std::fs::write(site.directory.path().join("gate"), "").unwrap();
    for client in &mut waiting {
        assert_eq!(client.reply().status, 200);
    }
}

#[test]
fn a_request_that_waits_too_long_for_a_worker_is_answered_503() {
    let site =
        Site::start_with(TROUBLE, |config| config.queue_wait = Duration::from_millis(200)).unwrap();
    eventually("the worker is there", || site.app.idle_workers() == 1);
    let mut busy = site.connect();
    busy.send("GET /wait HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the worker is busy", || calls(&site).len() == 1);
    let start = Instant::now();
    let refused = site.get("/");
    assert_eq!((refused.status, refused.field("Retry-After")), (503, Some("1")), "{refused:?}");
    assert!(start.elapsed() >= Duration::from_millis(200), "{:?}", start.elapsed());
    assert_eq!(site.app.counters().refused_waited, 1);
    std::fs::write(site.directory.path().join("gate"), "").unwrap();
    assert_eq!(busy.reply().status, 200);
}

#[test]
fn workers_killed_under_load_lose_no_get() {
    const REQUESTS: usize = 300;
    let site = Site::start_with(TROUBLE, |config| config.workers = 3).unwrap();
    let answered: [AtomicUsize; 4] = Default::default();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // Not more often: workers that keep dying young are forked with pauses.
            for _ in 0..6 {
                std::thread::sleep(Duration::from_millis(30));
                let pids = site.app.worker_pids();
                if let Some(pid) =
                    pids.first().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()))
                {
                    // It may have ended already.
                    let _ = rustix::process::kill_process(pid, Signal::KILL);
                }
                // A request is retried once, so it must not meet the next killed worker too.
                let seen = answered.each_ref().map(|count| count.load(Ordering::Relaxed));
                eventually("the requests of that moment end", || {
                    let now = answered.each_ref().map(|count| count.load(Ordering::Relaxed));
                    now.iter().zip(seen).all(|(now, seen)| *now > seen || *now == REQUESTS)
                });
            }
        });
        for count in &answered {
            let site = &site;
            scope.spawn(move || {
                let mut client = site.connect();
                for _ in 0..REQUESTS {
                    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
                    let reply = client.reply();
                    assert_eq!(reply.status, 200, "{reply:?}");
                    count.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
}

#[test]
fn an_upload_that_stops_halfway_never_reaches_the_application() {
    let site = Site::start(TROUBLE);
    let mut client = site.connect();
    client.send("POST / HTTP/1.1\r\nHost: test\r\nContent-Length: 100000\r\n\r\nhalf");
    client.stream.flush().unwrap();
    drop(client);
    assert_eq!(site.get("/").status, 200);
    assert_eq!(calls(&site).len(), 1);
}

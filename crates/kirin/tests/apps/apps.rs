//! Applications through the built program: browsers, operators and failures.

use std::process::Command;

use kirin_tests::{Kirin, Site, patient_seconds, run_kirin, wait_for};
use rustix::process::Signal;

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\nenv = { GREETING = \"hi\" }\n\
    [[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\", \"app:web\"]\n";

const APP: &str = r#"
use v5.16; use warnings; use Plack::Request; use IO::Socket::UNIX;
sub {
    my $env = shift;
    my $request = Plack::Request->new($env);
    my $path = $env->{PATH_INFO};
    my $text = sub { [200, ['Content-Type' => 'text/plain'], [@_]] };
    return $text->("hello $ENV{GREETING} ", $request->param('name') // 'nobody') if $path eq '/';
    return $text->(join "\n", map { "$_=" . ($env->{$_} // '') } grep { !/^psgi/ } sort keys %$env) if $path =~ m{^/env};
    return $text->(length $request->content) if $path eq '/length';
    return $text->($request->uploads->{file}->filename . ' ' . -s $request->uploads->{file}->path) if $path eq '/upload';
    return sub { my $respond = shift; $respond->([201, ['X-Delayed' => 1], ['delayed']]) } if $path eq '/delayed';
    kill KILL => $$ if $path eq '/killed';
    if ($path eq '/slow') { sleep 60 }
    if ($path eq '/push') {
        my ($socket) = $ENV{KIRIN_STORE} =~ /^unix:(.+)/;
        my $store = IO::Socket::UNIX->new(Peer => $socket) or die "store: $!";
        my $page = "text/plain\r\npushed by an application";
        print $store sprintf("set /pushed 0 0 %d\r\n%s\r\n", length $page, $page);
        return $text->(scalar <$store>);
    }
    [404, ['Content-Type' => 'text/plain'], ['not here']];
};
"#;

fn serve() -> (Site, Kirin) {
    let site = Site::new().with("app.psgi", APP).with("public/a.css", "a {}");
    let kirin = Kirin::start(&site, CONFIG);
    (site, kirin)
}

#[test]
fn a_psgi_file_is_served_without_a_configuration() {
    let site = Site::new().with("app.psgi", APP).with("public/a.css", "a {}");
    let kirin = Kirin::start_with(&site, &["serve", "app.psgi", "--listen", "0", "--workers", "2"]);
    assert_eq!(kirin.get("/delayed").text(), "delayed");
    assert_eq!(kirin.get("/a.css").text(), "a {}");
}

#[test]
fn store_files_and_app_are_asked_in_order_and_the_log_names_the_place() {
    let (site, kirin) = serve();
    let mut client = kirin.connect();
    assert_eq!(client.get("/pushed").status, 404);
    assert_eq!(client.get("/push").text(), "STORED\r\n");
    assert_eq!(client.get("/pushed").text(), "pushed by an application");
    assert_eq!(client.get("/a.css").text(), "a {}");
    let log = wait_for("four lines", || {
        let log = std::fs::read_to_string(site.path("access.log")).unwrap_or_default();
        (log.lines().count() == 4).then_some(log)
    });
    let places: Vec<&str> = log.lines().filter_map(|line| line.rsplit(' ').nth(1)).collect();
    assert_eq!(places, ["app", "app", "store", "files"], "{log}");
}

#[test]
fn parameters_and_environment_are_as_plack_expects() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    assert_eq!(client.get("/?name=a%20b").text(), "hello hi a b");
    assert_eq!(
        client.post("/", "application/x-www-form-urlencoded", b"name=c").text(),
        "hello hi c"
    );
    let reply = client.request(
        "GET",
        "/env/a%20b?q=%20",
        "X-Custom: one\r\nX-Custom: two\r\nProxy: evil\r\nX_Custom: evil\r\n",
    );
    let port = kirin.address().port();
    for line in [
        "PATH_INFO=/env/a b",
        "REQUEST_URI=/env/a%20b?q=%20",
        "QUERY_STRING=q=%20",
        "SCRIPT_NAME=",
        "HTTP_X_CUSTOM=one, two",
        "REMOTE_ADDR=127.0.0.1",
        "SERVER_PROTOCOL=HTTP/1.1",
        "HTTP_HOST=test",
        &format!("SERVER_PORT={port}"),
    ] {
        assert!(reply.text().lines().any(|got| got == line), "no {line} in\n{}", reply.text());
    }
    assert!(!reply.text().contains("evil"), "{}", reply.text());
}

#[test]
fn bodies_of_any_size_and_framing_arrive_whole() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    for size in [0, 1, 70_000, 5_000_000] {
        let reply = client.post("/length", "application/octet-stream", &vec![b'x'; size]);
        assert_eq!(reply.text(), size.to_string());
    }
    client
        .send("POST /length HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n");
    client.send("4;x=y\r\ndefg\r\n0\r\nTrailer: x\r\n\r\n");
    assert_eq!(client.read_reply().text(), "7");
    client.send(
        "POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n",
    );
    assert_eq!(client.read_head_reply().status, 100);
    client.send("hello");
    assert_eq!(client.read_reply().text(), "5");
}

#[test]
fn an_upload_with_curl_reaches_plack() {
    let (site, kirin) = serve();
    std::fs::write(site.path("upload.bin"), vec![7; 2_000_000]).expect("a file");
    let output = Command::new("curl")
        .args([
            "-sS",
            "--max-time",
            "20",
            "-F",
            "file=@upload.bin",
            &format!("http://{}/upload", kirin.address()),
        ])
        .current_dir(site.root())
        .output()
        .expect("curl");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "upload.bin 2000000", "{output:?}");
}

#[test]
fn a_worker_that_is_killed_costs_its_request_and_no_other() {
    let (_site, kirin) = serve();
    let mut client = kirin.connect();
    // GET is retried with a second worker, which is killed too.
    assert_eq!(client.get("/killed").status, 502);
    for _ in 0..20 {
        assert_eq!(client.get("/").text(), "hello hi nobody");
    }
}

#[test]
fn a_request_past_its_deadline_gives_504_and_frees_the_worker() {
    // The last request must be answered in this time.
    let deadline = format!("workers = 2\ndeadline = \"{}\"", patient_seconds(3));
    let site = Site::new().with("app.psgi", APP).with("public/a.css", "a {}");
    let kirin = Kirin::start(&site, &CONFIG.replace("workers = 2", &deadline));
    let mut clients = [kirin.connect(), kirin.connect()];
    for client in &mut clients {
        client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for client in &mut clients {
        assert_eq!(client.read_reply().status, 504);
    }
    assert_eq!(kirin.get("/").status, 200);
}

#[test]
fn an_application_that_cannot_be_loaded_ends_the_program_with_its_reason() {
    let site = Site::new()
        .with("app.psgi", "die 'no database'")
        .with("kirin.toml", CONFIG)
        .with("public/a", "");
    let output = run_kirin(&site, &["serve"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("no database") && said.contains("app `web` cannot be loaded"), "{said}");
}

/// Returns processes whose parent chain starts at `pid`, from the output of ps.
fn children_of(pid: u32) -> Vec<String> {
    let output = Command::new("ps").args(["-e", "-o", "pid=,ppid="]).output().expect("ps");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut family = vec![pid.to_string()];
    // A child's number is lower than its parent's if the kernel's numbers have begun again.
    loop {
        let known = family.len();
        for line in text.lines() {
            let mut fields = line.split_whitespace();
            let (Some(child), Some(parent)) = (fields.next(), fields.next()) else { continue };
            let has = |pid: &str| family.iter().any(|member| member == pid);
            if has(parent) && !has(child) {
                family.push(child.to_owned());
            }
        }
        if family.len() == known {
            return family.split_off(1);
        }
    }
}

fn are_gone(pids: &[String]) -> bool {
    // A zombie has ended. It does not matter that its new parent has not collected it yet.
    let is_gone = |pid: &String| match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')),
        Err(_) => true,
    };
    pids.iter().all(is_gone)
}

#[test]
fn term_finishes_the_request_in_progress_and_leaves_no_process_behind() {
    let (_site, mut kirin) = serve();
    // The program serves when one worker is there.
    let family = wait_for("a parent and two workers", || {
        Some(children_of(kirin.pid())).filter(|family| family.len() >= 3)
    });
    let mut client = kirin.connect();
    client.send("POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nab");
    // The signal comes while the body is still on its way. Another connection shows that the loop
    // has seen its start.
    for _ in 0..10 {
        assert_eq!(kirin.get("/").status, 200);
    }
    kirin.signal(Signal::TERM);
    kirin.wait_until_draining();
    client.send("cde");
    let reply = client.read_reply();
    assert_eq!((reply.text().as_str(), reply.field("connection")), ("5", Some("close")));
    assert_eq!(kirin.wait().code(), Some(0), "{}", kirin.log());
    assert!(are_gone(&family), "{family:?}");
}

#[test]
fn int_ends_the_program_without_waiting_for_requests() {
    let (_site, mut kirin) = serve();
    let family = children_of(kirin.pid());
    let mut client = kirin.connect();
    client.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    kirin.signal(Signal::INT);
    assert_eq!(kirin.wait().code(), Some(0), "{}", kirin.log());
    // Workers have been killed by now. On a busy machine they may not have died yet.
    wait_for("killed workers to be gone", || are_gone(&family).then_some(()));
}

#[test]
fn a_front_that_is_killed_leaves_no_worker_behind() {
    let (_site, mut kirin) = serve();
    let family = children_of(kirin.pid());
    assert!(family.len() >= 3, "a parent and two workers: {family:?}");
    kirin.signal(Signal::KILL);
    kirin.wait();
    wait_for("parent and workers to go", || are_gone(&family).then_some(()));
}

#[test]
fn a_front_that_is_killed_leaves_no_application_behind_that_is_still_loading() {
    let app = "open my $file, '>', 'loading' or die $!; print $file \"$$\\n\"; close $file; sleep 1 while 1;";
    let site = Site::new().with("app.psgi", app);
    let mut kirin = Kirin::spawn(&site, &["serve", "app.psgi", "--listen", "0"]);
    let pid = wait_for("the application to load", || {
        let pid = std::fs::read_to_string(site.path("loading")).ok()?;
        pid.strip_suffix('\n').map(str::to_owned)
    });
    kirin.signal(Signal::KILL);
    kirin.wait();
    let family = [pid];
    wait_for("the parent to go", || are_gone(&family).then_some(()));
}

#[test]
fn a_slow_client_does_not_hold_a_worker() {
    let (_site, kirin) = serve();
    // There are more slow clients than workers. Each sends a part of its body and reads nothing of
    // its response.
    let mut slow: Vec<_> = (0..8).map(|_| kirin.connect()).collect();
    for client in &mut slow {
        client.send("POST /length HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\nabc");
    }
    let mut unread: Vec<_> = (0..8).map(|_| kirin.connect()).collect();
    for client in &mut unread {
        client.send("GET /env HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    for _ in 0..20 {
        assert_eq!(kirin.get("/").status, 200);
    }
}

//! Outputs that cannot be written or that nobody reads. None may end the program or delay it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

use kirin_tests::{ADMIN, Kirin, Site, kirin_command, wait_for};
use rustix::process::{Pid, Signal, kill_process};

const CONFIG: &str = r#"
threads = 2
[[listener]]
address = "unix:web.sock"
[admin]
address = "unix:admin.sock"
[store]
memcached = ["unix:m.sock"]
snapshot = "store.snapshot"
[[route]]
path = "/"
try = ["files:root"]
"#;

fn site() -> Site {
    Site::new().with("kirin.toml", CONFIG).with("root/page.html", "a page")
}

/// Sends one request over a unix socket of the site. Returns `None` if no process listens there.
fn ask(site: &Site, socket: &str, target: &str) -> Option<String> {
    let mut stream = UnixStream::connect(site.path(socket)).ok()?;
    stream.set_read_timeout(Some(kirin_tests::wait_limit())).expect("a timeout");
    let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply");
    Some(reply)
}

fn assert_serves(site: &Site, what: &str) {
    let reply = wait_for(&format!("a reply with {what}"), || ask(site, "web.sock", "/page.html"));
    assert!(reply.contains("200 OK") && reply.ends_with("a page"), "{what}: {reply}");
}

fn count(site: &Site, name: &str) -> u64 {
    let reply = ask(site, "admin.sock", "/status").expect("the admin listener");
    let (_, body) = reply.split_once("\r\n\r\n").expect("a body");
    let status: serde_json::Value = serde_json::from_str(body).expect("JSON");
    status[name].as_u64().unwrap_or_else(|| panic!("no {name}: {status}"))
}

/// A process that is killed when the test is over.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns a full pipe, and its reading end.
fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = rustix::pipe::pipe().expect("a pipe");
    rustix::io::ioctl_fionbio(&writer, true).expect("non-blocking");
    while rustix::io::write(&writer, &[b'x'; 4096]).is_ok() {}
    while rustix::io::write(&writer, b"x").is_ok() {}
    rustix::io::ioctl_fionbio(&writer, false).expect("blocking");
    (reader, writer)
}

#[test]
fn an_unwritable_standard_error_ends_and_delays_nothing() {
    let (_unread, full) = full_pipe();
    let (left, broken) = rustix::pipe::pipe().expect("a pipe");
    drop(left);
    let dev_full = File::options().write(true).open("/dev/full").expect("/dev/full");
    let outputs = [
        ("a full disk", Some(Stdio::from(dev_full))),
        ("a closed descriptor", None),
        ("a pipe whose reader has left", Some(Stdio::from(broken))),
        ("a full pipe that nobody reads", Some(Stdio::from(full))),
    ];
    for (what, stderr) in outputs {
        let site = site();
        let mut command = kirin_command(&site);
        let is_closed = stderr.is_none();
        match stderr {
            Some(stderr) => _ = command.arg("serve").stderr(stderr),
            None => {
                let program = command.get_program().to_owned();
                command = Command::new("sh");
                command
                    .args(["-c", "exec \"$0\" serve 2>&-"])
                    .arg(program)
                    .current_dir(site.root());
            }
        }
        let mut kirin = Running(command.spawn().expect("kirin starts"));
        assert_serves(&site, what);
        let pid = Pid::from_child(&kirin.0);
        for _ in 0..20 {
            kill_process(pid, Signal::HUP).expect("kill");
            assert_serves(&site, what);
        }
        if !is_closed && what != "a full pipe that nobody reads" {
            wait_for("lost lines to be counted", || {
                (count(&site, "log_lines_lost") > 0).then_some(())
            });
        }
        kill_process(pid, Signal::TERM).expect("kill");
        let status = wait_for("the end", || kirin.0.try_wait().expect("wait"));
        assert_eq!(status.code(), Some(0), "{what}");
        assert!(site.path("store.snapshot").exists(), "{what}: the snapshot is written");
    }
}

#[test]
fn log_lines_without_a_reader_are_counted_and_later_lines_written() {
    let site = site();
    let (reader, writer) = full_pipe();
    let mut command = kirin_command(&site);
    let _kirin = Running(
        command
            .arg("serve")
            .env("KIRIN_LOG", "trace")
            .stderr(writer)
            .spawn()
            .expect("kirin starts"),
    );
    assert_serves(&site, "a stuck log");
    wait_for("lost lines", || {
        for _ in 0..200 {
            ask(&site, "web.sock", "/page.html").expect("a reply");
            // Each of these is a line in the log: memcached's binary protocol is refused.
            let mut store = UnixStream::connect(site.path("m.sock")).expect("the store");
            let _ = store.write_all(&[0x80; 24]);
            let _ = store.read(&mut [0; 100]);
        }
        (count(&site, "log_lines_lost") > 0).then_some(())
    });
    assert_serves(&site, "a stuck log");
    let mut log = File::from(reader);
    let (mut seen, mut buffer) = (Vec::new(), vec![0; 1 << 16]);
    while !String::from_utf8_lossy(&seen).contains("lines of this log were lost") {
        let read = log.read(&mut buffer).expect("the log");
        seen.extend_from_slice(&buffer[..read]);
    }
}

#[test]
fn an_access_log_without_a_reader_delays_neither_start_nor_loops() {
    let agent = "a".repeat(7000);
    for target in ["fifo", "stdout"] {
        let site = site();
        rustix::fs::mkfifoat(
            rustix::fs::CWD,
            site.path("fifo"),
            rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
        )
        .expect("a FIFO");
        let config = CONFIG.replacen("[admin]", &format!("access_log = \"{target}\"\n[admin]"), 1);
        std::fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
        let (_unread, full) = full_pipe();
        let mut command = kirin_command(&site);
        let mut kirin = Running(
            command.arg("serve").stdout(full).stderr(Stdio::null()).spawn().expect("kirin starts"),
        );
        assert_serves(&site, target);
        let mut client = UnixStream::connect(site.path("web.sock")).expect("connect");
        wait_for("lost lines", || {
            for _ in 0..300 {
                let request =
                    format!("GET /none HTTP/1.1\r\nHost: a\r\nUser-Agent: {agent}\r\n\r\n");
                client.write_all(request.as_bytes()).expect("a request is taken");
                let read = client.read(&mut [0; 4096]).expect("a reply");
                assert!(read > 0, "{target}");
            }
            (count(&site, "access_log_lines_lost") > 0).then_some(())
        });
        assert_serves(&site, target);
        kill_process(Pid::from_child(&kirin.0), Signal::TERM).expect("kill");
        let status = wait_for("the end", || kirin.0.try_wait().expect("wait"));
        assert_eq!(status.code(), Some(0), "{target}");
    }
}

#[test]
fn an_access_log_in_a_fifo_reaches_a_later_reader() {
    let site = site();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        site.path("fifo"),
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .expect("a FIFO");
    let config = CONFIG.replacen("[admin]", "access_log = \"fifo\"\n[admin]", 1);
    std::fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
    let _kirin = Running(
        kirin_command(&site).arg("serve").stderr(Stdio::null()).spawn().expect("kirin starts"),
    );
    for _ in 0..2 {
        assert_serves(&site, "a FIFO");
        let mut reader = File::open(site.path("fifo")).expect("the FIFO");
        let (mut seen, mut buffer) = (String::new(), [0; 4096]);
        while !seen.contains("GET /page.html") {
            let read = reader.read(&mut buffer).expect("lines");
            seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
    }
}

#[test]
fn an_access_log_on_a_full_disk_loses_lines_and_no_requests() {
    let config = CONFIG.replacen("[admin]\naddress = \"unix:admin.sock\"\n", ADMIN, 1).replacen(
        "unix:web.sock\"",
        "127.0.0.1:0\"\naccess_log = \"/dev/full\"",
        1,
    );
    let site = site();
    let kirin = Kirin::start(&site, &config);
    assert_eq!(kirin.get("/page.html").status, 200);
    kirin.wait_for_log("access log cannot be written");
    assert!(kirin.status()["access_log_lines_lost"].as_u64() > Some(0), "{}", kirin.status());
    assert_eq!(kirin.get("/page.html").status, 200);
}

#[test]
fn unknown_log_levels_are_refused_with_the_allowed_ones() {
    let site = site();
    for (word, code) in [("bogus=zz", 1), ("bogus", 1), ("warn,kirin_proxy=debug", 0)] {
        let mut command = kirin_command(&site);
        let output = command
            .args(["check", "--config", "kirin.toml"])
            .env("KIRIN_LOG", word)
            .output()
            .expect("kirin");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(code), "{word}: {said}");
        assert!(
            code == 0 || said.contains(word) && said.contains("info, debug or trace"),
            "{said}"
        );
    }
}

#[test]
fn a_terminal_gets_colours_unless_no_color_says_otherwise() {
    for (no_color, is_coloured) in [(None, true), (Some(""), true), (Some("1"), false)] {
        let site = site();
        let mut command = kirin_command(&site);
        // script(1) runs it on its own terminal.
        let inner = format!("{} serve --pid-file pid", command.get_program().display());
        command = Command::new("script");
        command
            .args(["-qfec", &inner, "/dev/null"])
            .current_dir(site.root())
            .stdout(Stdio::piped());
        command.stdin(Stdio::null()).env_remove("KIRIN_LOG").env_remove("NO_COLOR");
        if let Some(value) = no_color {
            command.env("NO_COLOR", value);
        }
        let mut kirin = Running(command.spawn().expect("script(1)"));
        let mut output = kirin.0.stdout.take().expect("its output");
        let (mut seen, mut buffer) = (String::new(), [0; 4096]);
        while !seen.contains("Ctrl-C ends it") {
            let read = output.read(&mut buffer).expect("the log");
            assert!(read > 0, "it ended: {seen}");
            seen.push_str(&String::from_utf8_lossy(&buffer[..read]));
        }
        // The end of script(1) is not the end of its child, because HUP is not a signal to end.
        let pid = std::fs::read_to_string(site.path("pid")).expect("the pid file");
        let pid = pid.trim().parse().ok().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, Signal::INT).expect("kill");
        wait_for("the end", || kirin.0.try_wait().expect("wait"));
        assert_eq!(seen.contains('\u{1b}'), is_coloured, "NO_COLOR={no_color:?}: {seen:?}");
    }
}

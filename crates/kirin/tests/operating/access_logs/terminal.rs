//! What `kirin serve TARGET` shows on a terminal, and in a file. `script` runs it in a pty.

use std::io::Read;
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use kirin_tests::{Client, Kirin, Site, binary, wait_for};
use rustix::process::{Pid, Signal, kill_process};

struct Terminal {
    script: Child,
    site: Site,
    screen: Arc<Mutex<Vec<u8>>>,
    address: SocketAddr,
}

impl Terminal {
    fn open(no_color: bool) -> Self {
        let site = Site::new().with("public/a", "hello").with("public/b", "hello");
        let command =
            format!("{} serve --listen 127.0.0.1:0 --pid-file pid public", binary().display());
        let mut script = Command::new("script");
        script.args(["-qfc", &command, "/dev/null"]).current_dir(site.root());
        script.env_remove("KIRIN_LOG").env_remove("NO_COLOR");
        if no_color {
            script.env("NO_COLOR", "1");
        }
        let mut script = script
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("script is part of bsdutils");
        let mut output = script.stdout.take().expect("its output");
        let screen = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&screen);
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            while let Ok(count @ 1..) = output.read(&mut buffer) {
                seen.lock().expect("the screen").extend_from_slice(&buffer[..count]);
            }
        });
        let text = |screen: &Mutex<Vec<u8>>| {
            String::from_utf8_lossy(&screen.lock().expect("the screen")).into_owned()
        };
        let address = wait_for("the address", || {
            let text = text(&screen);
            let (_, url) = text.split_once("http://")?;
            url.split_once('/')?.0.parse().ok()
        });
        Self { script, site, screen, address }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.screen.lock().expect("the screen")).into_owned()
    }

    /// Returns the lines of requests, when there are so many.
    fn lines(&self, count: usize) -> Vec<String> {
        wait_for("the lines", || {
            let text = self.text();
            let is_of_request = |line: &&str| line.contains("GET") && line.contains("/");
            let lines: Vec<_> =
                text.split("\r\n").filter(is_of_request).map(str::to_owned).collect();
            (lines.len() >= count).then_some(lines)
        })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let pid = std::fs::read_to_string(self.site.path("pid")).unwrap_or_default();
        if let Some(pid) = pid.trim().parse().ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let _ = self.script.wait();
    }
}

#[test]
fn a_terminal_shows_a_coloured_line_for_each_request_in_order() {
    let terminal = Terminal::open(false);
    let targets = ["/a", "/none", "/b?1", "/a?2", "/b?3", "/a?4"];
    for target in targets {
        // Each connection is on the loop that the kernel chooses.
        Client::connect(terminal.address).get(target);
    }
    let lines = terminal.lines(targets.len());
    for (line, target) in lines.iter().zip(targets) {
        let status = if target == "/none" { "\u{1b}[33m404" } else { "\u{1b}[32m200" };
        assert!(line.contains(&format!("{status}\u{1b}[0m ")), "{target}: {line:?}");
        assert!(line.contains(&format!("\u{1b}[1mGET\u{1b}[0m {target}  ")), "{target}: {line:?}");
        let (_, time) = line.split_once(" B  ").unwrap_or_else(|| panic!("no size: {line:?}"));
        let has_unit = time.contains(" ms") || time.contains(" s");
        assert!(time.starts_with(|digit: char| digit.is_ascii_digit()) && has_unit, "{line:?}");
    }
    assert!(lines[0].ends_with("\u{1b}[0m  files\u{1b}[1;31m\u{1b}[0m"), "{:?}", lines[0]);
}

#[test]
fn no_color_takes_the_colours_away() {
    let terminal = Terminal::open(true);
    Client::connect(terminal.address).get("/a");
    let line = terminal.lines(1).remove(0);
    let (time, rest) = line.split_once(' ').expect("a time");
    assert!(time.len() == 8 && time.split(':').count() == 3, "{line:?}");
    assert!(rest.starts_with("200 GET /a  5 B  ") && rest.ends_with(" ms  files"), "{line:?}");
    assert!(!terminal.text().contains('\u{1b}'), "{:?}", terminal.text());
}

#[test]
fn a_terminal_shows_what_is_served_and_what_to_do_next() {
    let terminal = Terminal::open(true);
    let text = wait_for("the last row", || {
        let text = terminal.text();
        text.contains("Ctrl-C").then_some(text)
    });
    let rows = [
        format!("open    http://{}/", terminal.address),
        "serves  /  files:public".into(),
        "store   64 MB".into(),
        "admin   unix:".into(),
        "next    kirin top ".into(),
        "kirin reload --apps ".into(),
        "kirin serve --listen 127.0.0.1:0 public --print-config > kirin.toml".into(),
    ];
    let mut rest = &text[..];
    for row in rows {
        let (_, after) = rest.split_once(&row).unwrap_or_else(|| panic!("no `{row}`: {text}"));
        rest = after;
    }
}

#[test]
fn a_file_gets_the_combined_format() {
    let site = Site::new().with("public/a", "hello");
    let kirin = Kirin::start_with(&site, &["serve", "--listen", "127.0.0.1:0", "public"]);
    kirin.get("/a");
    kirin.wait_for_log("\"GET /a HTTP/1.1\" 200 5 \"-\" \"-\" files 0.");
    let log = kirin.log();
    assert!(log.contains("serving on http://") && !log.contains("Ctrl-C"), "{log}");
}

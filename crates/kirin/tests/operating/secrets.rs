//! What logs and sockets keep from others.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use kirin_tests::{Kirin, Site};

const COOKIE: &str = "c00kie-0f-a-visitor";
const PASSWORD: &str = "cGFzc3dvcmQtb2YtYS12aXNpdG9y";

#[test]
fn no_named_format_logs_cookies_or_passwords() {
    for format in ["combined", "common", "json", "ltsv", "terminal"] {
        let site = Site::new().with("public/a.txt", "a");
        let config = format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n\
             access_log = {{ path = \"access.log\", format = \"{format}\" }}\n\
             [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n"
        );
        let mut kirin = Kirin::start(&site, &config);
        let fields = format!("Cookie: sid={COOKIE}\r\nAuthorization: Bearer {PASSWORD}\r\n");
        assert_eq!(kirin.connect().request("GET", "/a.txt", &fields).text(), "a");
        // The last lines are written before the end.
        kirin.signal(rustix::process::Signal::TERM);
        kirin.wait();
        let log = fs::read_to_string(site.path("access.log")).expect("the log");
        assert!(log.contains("/a.txt"), "{format}: {log}");
        for text in [log, kirin.whole_log()] {
            assert!(!text.contains(COOKIE) && !text.contains(PASSWORD), "{format}: {text}");
        }
    }
}

#[test]
fn only_the_user_that_serves_can_enter_the_directories_of_worker_sockets() {
    let app = "sub { [200, ['Content-Type' => 'text/plain'], [$ENV{KIRIN_STORE}]] }";
    let site = Site::new().with("app.psgi", app);
    let kirin = Kirin::start_with(&site, &["serve", "app.psgi", "--listen", "127.0.0.1:0"]);
    let store = kirin.get("/").text();
    let store = Path::new(store.strip_prefix("unix:").unwrap_or(&store));
    let of_store = store.parent().expect("a directory");
    let inside = fs::read_dir(of_store).expect("the directory of the sockets");
    let inside = inside.map(|entry| entry.expect("an entry").path());
    let of_workers: Vec<_> = inside.filter(|path| path.join("workers").exists()).collect();
    assert_eq!(of_workers.len(), 1, "{}", of_store.display());
    for directory in [of_store, &of_workers[0]] {
        let mode = fs::metadata(directory).expect("a directory").mode();
        assert_eq!(mode & 0o777, 0o700, "{}", directory.display());
    }
}

//! The store from start to stop: snapshots and the stand-alone memcached.

use std::os::unix::net::UnixStream;

use kirin_tests::{Kirin, Memcached, Site, kirin_command, wait_for};
use rustix::process::{Pid, Signal, kill_process};

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n\
    snapshot = \"store.snapshot\"\n[[route]]\npath = \"/\"\ntry = [\"store\"]\n";

#[test]
fn a_restarted_kirin_serves_its_old_items() {
    let site = Site::new();
    let mut kirin = Kirin::start(&site, CONFIG);
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    for number in 0..1000 {
        memcached
            .set(&format!("/page/{number}"), format!("text/plain\r\npage {number}").as_bytes());
    }
    memcached.send("set /short 0 1 16\r\ntext/plain\r\ngone\r\n");
    assert_eq!(memcached.line(), "STORED");
    kirin.signal(Signal::TERM);
    assert_eq!(kirin.wait().code(), Some(0), "{}", kirin.log());
    drop(kirin);

    let kirin = Kirin::start(&site, CONFIG);
    kirin.wait_for_log("snapshot loaded");
    assert_eq!(kirin.get("/page/999").text(), "page 999");
    // Its lifetime continued while no program ran.
    wait_for("/short to expire", || (kirin.get("/short").status == 404).then_some(()));
}

#[test]
fn a_snapshot_is_written_on_command_while_serving() {
    let site = Site::new();
    let mut kirin = Kirin::start(&site, CONFIG);
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.set("/kept", b"text/plain\r\nkept");
    memcached.send("snapshot\r\n");
    assert_eq!(memcached.line(), "OK");
    kirin.wait_for_log("snapshot written");
    // It was killed without a chance to write another snapshot.
    kirin.signal(Signal::KILL);
    kirin.wait();
    drop(kirin);
    let kirin = Kirin::start(&site, CONFIG);
    assert_eq!(kirin.get("/kept").text(), "kept");
}

#[test]
fn a_damaged_snapshot_is_set_aside_and_the_store_starts_empty() {
    let site = Site::new();
    let mut kirin = Kirin::start(&site, CONFIG);
    Memcached::connect(&site.path("m.sock")).set("/kept", b"text/plain\r\nkept");
    kirin.signal(Signal::TERM);
    kirin.wait();
    drop(kirin);
    let mut bytes = std::fs::read(site.path("store.snapshot")).expect("a snapshot");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    std::fs::write(site.path("store.snapshot"), bytes).expect("a damaged snapshot");
    let kirin = Kirin::start(&site, CONFIG);
    kirin.wait_for_log("snapshot not loaded, set aside");
    assert_eq!(kirin.get("/kept").status, 404);
    assert!(site.path("store.snapshot.bad").exists());
}

#[test]
fn a_snapshot_command_without_a_file_says_so() {
    let site = Site::new();
    let _kirin = Kirin::start(&site, &CONFIG.replace("snapshot = \"store.snapshot\"\n", ""));
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.send("snapshot\r\n");
    assert_eq!(memcached.line(), "CLIENT_ERROR no snapshot file is configured");
}

#[test]
fn the_item_limit_of_the_configuration_is_that_of_the_memcached_port() {
    let site = Site::new();
    let config = CONFIG.replace("memory = \"16MB\"\n", "memory = \"32MB\"\nitem_limit = \"4MB\"\n");
    let _kirin = Kirin::start(&site, &config);
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.set("large", &vec![b'x'; 3 << 20]);
    assert_eq!(memcached.get("large").map(|value| value.len()), Some(3 << 20));
    memcached
        .send(format!("set larger 0 0 {}\r\n", 5 << 20))
        .send(vec![b'x'; 5 << 20])
        .send("\r\n");
    assert_eq!(memcached.line(), "SERVER_ERROR object too large for cache");
}

#[test]
fn a_stampede_guard_lets_one_plain_get_miss_before_the_end() {
    let site = Site::new();
    let config =
        CONFIG.replace("memory = \"16MB\"\n", "memory = \"16MB\"\nstampede_guard = \"1h\"\n");
    let _kirin = Kirin::start(&site, &config);
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.send("set k 0 60 3\r\nold\r\n");
    assert_eq!(memcached.line(), "STORED");
    let values: Vec<_> = (0..3).map(|_| memcached.get("k")).collect();
    assert_eq!(values, [None, Some(b"old".to_vec()), Some(b"old".to_vec())]);
}

#[test]
fn the_store_starts_alone_with_memcacheds_command_line() {
    let site = Site::new();
    let socket = site.path("alone.sock");
    let path = socket.to_str().expect("UTF-8");
    let arguments =
        ["memcached", "-s", path, "-m", "32", "-t", "1", "-o", "snapshot=kept.snapshot"];
    let mut kirin = kirin_command(&site).args(arguments).spawn().expect("kirin starts");
    wait_for("the socket", || UnixStream::connect(&socket).ok());
    Memcached::connect(&socket).set("a", b"b");
    kill_process(Pid::from_child(&kirin), Signal::TERM).expect("kill");
    assert_eq!(kirin.wait().expect("wait").code(), Some(0));
    assert!(site.path("kept.snapshot").exists());
    assert!(!socket.exists());
}

#[test]
fn a_kirin_killed_while_it_saves_leaves_a_complete_snapshot() {
    let site = Site::new();
    let mut kirin = Kirin::start(&site, CONFIG);
    let value = vec![b'v'; 1000];
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    for number in 0..5000 {
        memcached.set(&format!("/item/{number}"), &value);
    }
    memcached.send("snapshot\r\n");
    kirin.wait_for_log("snapshot written");
    for _ in 0..10 {
        let saves = |kirin: &Kirin| kirin.log().matches("snapshot written").count();
        let before = saves(&kirin);
        memcached.send("snapshot\r\n");
        wait_for("the save to begin, or to be over", || {
            (saves(&kirin) > before || files(&site).len() > 1).then_some(())
        });
        kirin.signal(Signal::KILL);
        kirin.wait();
        drop(kirin);
        kirin = Kirin::start(&site, CONFIG);
        kirin.wait_for_log("snapshot loaded items=5000");
        memcached = Memcached::connect(&site.path("m.sock"));
        assert!(files(&site).len() <= 2, "{:?}", files(&site));
    }
}

/// Returns the snapshot and other files that were made for it.
fn files(site: &Site) -> Vec<String> {
    let entries = std::fs::read_dir(site.root()).expect("the site").flatten();
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| name.starts_with("store.snapshot")).collect()
}

#[test]
fn a_snapshot_that_is_not_a_file_is_refused_at_the_start() {
    let site = Site::new();
    std::fs::create_dir(site.path("directory")).expect("a directory");
    rustix::fs::mkfifoat(rustix::fs::CWD, site.path("fifo"), rustix::fs::Mode::RUSR)
        .expect("a FIFO");
    for (path, what) in
        [("directory", "a directory"), ("fifo", "a FIFO"), ("/dev/null", "a device")]
    {
        let config = CONFIG.replace("store.snapshot", path);
        std::fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
        let mut kirin = Kirin::spawn(&site, &["serve"]);
        assert_eq!(kirin.wait().code(), Some(1), "{}", kirin.log());
        // The check of the configuration refuses a directory, even without a start.
        let by_check = "is not a file in a directory that exists";
        kirin.wait_for_log(if path == "directory" { by_check } else { what });
        let alone = ["memcached", "-p", "0", "-s", "x.sock", "-o", &format!("snapshot={path}")];
        let mut alone = Kirin::spawn(&site, &alone);
        assert_eq!(alone.wait().code(), Some(1), "{}", alone.log());
        alone.wait_for_log(&format!("it is {what}; name a regular file"));
    }
}

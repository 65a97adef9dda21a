//! Kirin that is started as root and serves as somebody else.

use kirin_tests::{Kirin, Site, kirin_command, run_kirin};
use rustix::process::{Signal, geteuid};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

const CONFIG: &str = "user = \"nobody\"\nthreads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n\
    [store]\nmemcached = [\"unix:store.sock\"]\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n\
    [[route]]\npath = \"/\"\ntry = [\"store\", \"app:web\"]\n";

const APP: &str = r#"
use Kirin::Store;
sub {
    my $env = shift;
    if ($env->{PATH_INFO} eq '/push') {
        my $store = Kirin::Store->new;
        $store->set_page('/page', 'text/plain', 'pushed', 60) or die $store->error;
    }
    [200, ['Content-Type' => 'text/plain'], [join ' ', $<, $>, (split ' ', $()[0]]];
};
"#;

/// The real, effective, saved and file system ids of every thread of a process.
fn ids(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("a running Kirin");
    let statuses =
        tasks.flatten().map(|task| fs::read_to_string(task.path().join("status")).expect("a status"));
    let lines = |status: String| {
        let of_id = |line: &&str| line.starts_with("Uid:") || line.starts_with("Gid:");
        status
            .lines()
            .filter(of_id)
            .map(|line| line[5..].split('\t').collect::<Vec<_>>().join(" "))
            .collect::<Vec<_>>()
    };
    statuses.flat_map(lines).collect()
}

/// A site that everybody can read; the modules too, as when they are installed.
fn site() -> Site {
    let site = Site::new().with("app.psgi", APP).with("kirin.toml", CONFIG);
    fs::set_permissions(site.root(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters/perl/lib");
    let copied = std::process::Command::new("cp").arg("-r").arg(library).arg(site.root()).status();
    assert!(copied.expect("cp").success());
    site
}

#[test]
fn root_opens_the_port_and_nobody_serves() {
    let site = site();
    if !geteuid().is_root() {
        let output = run_kirin(&site, &["serve"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("`user` is nobody, but only root can become another user"), "{said}");
        return;
    }
    let mut command = kirin_command(&site);
    command.args(["serve"]).env("PERL5LIB", site.path("lib"));
    let kirin = Kirin::start_command(&mut command);
    let whole = kirin.get("/").text();
    let [uid, effective, gid] = whole.split(' ').collect::<Vec<_>>()[..] else { panic!("{whole}") };
    assert_ne!((uid, gid), ("0", "0"));
    assert_eq!(uid, effective);
    let ids = ids(kirin.pid());
    assert!(ids.len() >= 6, "the main thread and two loops: {ids:?}");
    for id in &ids {
        assert!(*id == [uid; 4].join(" ") || *id == [gid; 4].join(" "), "{ids:?}");
    }
    // What was made as root before is at hand: the store's socket, and a new generation's.
    assert_eq!(kirin.get("/push").status, 200);
    assert_eq!(kirin.get("/page").text(), "pushed");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves app=\"web\" generation=2");
    assert_eq!(kirin.get("/").text(), whole);
}

#[test]
fn a_user_that_does_not_exist_is_named() {
    let site = Site::new().with("app.psgi", APP).with("kirin.toml", CONFIG.replace("nobody", "no-such-user"));
    let output = run_kirin(&site, &["serve"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("kirin.toml:1:8: there is no user `no-such-user`"), "{said}");
}

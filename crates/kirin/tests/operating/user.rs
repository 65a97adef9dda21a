//! A Kirin that is started as root and serves as another user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use kirin_tests::{Authority, Kirin, Site, kirin_command, run_kirin, wait_for};
use rustix::process::{Pid, Signal, geteuid, kill_process};

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

/// Returns the real, effective, saved and file system ids of every thread of a process.
fn ids(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).expect("a running Kirin");
    let statuses = tasks
        .flatten()
        .map(|task| fs::read_to_string(task.path().join("status")).expect("a status"));
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

/// Returns a copy of the program that other users can run. They may not reach the built one.
pub fn program_for_everybody(site: &Site) -> PathBuf {
    let program = site.path("kirin");
    fs::copy(kirin_tests::binary(), &program).expect("a copy");
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("a mode");
    program
}

/// Returns a site that all users can read, with the modules, as when they are installed.
pub fn site() -> Site {
    let site = Site::new().with("app.psgi", APP).with("kirin.toml", CONFIG);
    fs::set_permissions(site.root(), fs::Permissions::from_mode(0o755)).expect("a mode");
    let library = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../adapters/perl/lib");
    let copied = std::process::Command::new("cp")
        .args(["-r", "--no-preserve=mode"])
        .arg(library)
        .arg(site.root())
        .status();
    assert!(copied.expect("cp").success());
    site
}

#[test]
fn root_opens_the_port_and_the_user_nobody_serves() {
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
    // Files that root made before are usable: the store's socket, and that of a new generation.
    assert_eq!(kirin.get("/push").status, 200);
    assert_eq!(kirin.get("/page").text(), "pushed");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves app=\"web\" generation=2");
    assert_eq!(kirin.get("/").text(), whole);
}

/// Makes a log directory in the site that belongs to `nobody`, as docs/user.md says.
fn site_with_logs(log: &str) -> Site {
    let config = "user = \"nobody\"\nthreads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"LOG\"\n\
                  [[route]]\npath = \"/\"\ntry = [\"files:.\"]\n";
    let site = site().with("kirin.toml", config.replace("LOG", log)).with("secret", "before\n");
    fs::create_dir(site.path("logs")).expect("a directory");
    fs::create_dir(site.path("secrets")).expect("a directory");
    fs::create_dir(site.path("roots")).expect("a directory");
    let nobody = nix_id("-u");
    std::os::unix::fs::chown(site.path("logs"), Some(nobody), None).expect("chown");
    site
}

fn nix_id(option: &str) -> u32 {
    let output = std::process::Command::new("id").args([option, "nobody"]).output().expect("id");
    String::from_utf8_lossy(&output.stdout).trim().parse().expect("a number")
}

#[test]
fn root_follows_no_links_of_the_user_that_serves() {
    if !geteuid().is_root() {
        return;
    }
    for (log, link, target) in [
        ("logs/access.log", "logs/access.log", "secret"),
        ("logs/access.log", "logs/access.log", "not-there"),
        ("logs/there/access.log", "logs/there", "secrets"),
        ("logs/there/../access.log", "logs/there", "secrets/x"),
    ] {
        let site = site_with_logs(log);
        fs::create_dir(site.path("secrets/x")).expect("a directory");
        symlink(site.path(target), site.path(link)).expect("a link");
        let output = run_kirin(&site, &["serve"]);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains("is a symbolic link"), "{log}: {said}");
        assert_eq!(fs::read_to_string(site.path("secret")).expect("a file"), "before\n", "{log}");
        for name in ["not-there", "secrets/access.log", "secrets/x/access.log"] {
            assert!(!site.path(name).exists(), "{log}: {name}");
        }
    }
    // The same holds for other files that root makes: sockets, the pid file, the directory of ACME.
    let tls = "[listener.tls.acme]\ndomains = [\"a.test\"]\nstate = \"logs/there/acme\"\n[[listener]]\naddress = \"127.0.0.1:0\"\nredirect_to_https = 443\n";
    for (listener, more, arguments) in [
        ("unix:logs/there/http.sock", "", &[][..]),
        ("127.0.0.1:0", "[admin]\naddress = \"unix:logs/there/admin.sock\"\n", &[]),
        ("127.0.0.1:0", "[store]\nmemcached = [\"unix:logs/there/m.sock\"]\n", &[]),
        ("127.0.0.1:0", tls, &[]),
        ("127.0.0.1:0", "", &["--pid-file", "logs/there/pid"]),
    ] {
        let site = site_with_logs("-").with(
            "kirin.toml",
            format!(
                "user = \"nobody\"\n[[listener]]\naddress = \"{listener}\"\n{more}\
                 [[route]]\npath = \"/\"\ntry = [\"files:.\"]\n"
            ),
        );
        symlink(site.path("secrets"), site.path("logs/there")).expect("a link");
        let output = run_kirin(&site, &[&["serve"], arguments].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("is a symbolic link"), "{listener} {more}: {said}");
        assert_eq!(
            fs::read_dir(site.path("secrets")).expect("a directory").count(),
            0,
            "{listener} {more}"
        );
    }
}

#[test]
fn a_log_created_by_root_belongs_to_the_serving_user_and_is_private() {
    if !geteuid().is_root() {
        return;
    }
    // The log is in a directory of the user's, and behind a link of root's in another directory.
    for log in ["logs/access.log", "roots/link.log"] {
        let site = site_with_logs(log);
        symlink("../logs/access.log", site.path("roots/link.log")).expect("a link");
        let kirin = Kirin::start_with(&site, &["serve"]);
        kirin.get("/");
        let path = site.path("logs/access.log");
        kirin_tests::wait_for("a line", || {
            fs::read_to_string(&path).ok().filter(|text| text.contains("GET / "))
        });
        let metadata = fs::metadata(&path).expect("a log");
        assert_eq!((metadata.uid(), metadata.gid()), (nix_id("-u"), nix_id("-g")), "{log}");
        assert_eq!(metadata.mode() & 0o777, 0o640, "{log}");
        // The user can reopen it.
        fs::rename(&path, site.path("logs/access.log.1")).expect("a rename");
        kirin.signal(Signal::USR1);
        kirin.wait_for_log("is reopened");
    }
}

#[test]
fn a_log_that_cannot_be_opened_is_refused_with_the_command_that_helps() {
    if !geteuid().is_root() {
        return;
    }
    let site = site_with_logs("logs/access.log");
    let program = program_for_everybody(&site);
    let kirin_as_nobody = || {
        let mut command = std::process::Command::new("setpriv");
        command.args(["--reuid=nobody", "--regid", &nix_id("-g").to_string(), "--clear-groups"]);
        command.arg(&program).args(["serve", "-c"]).arg(site.path("kirin.toml"));
        let output = command.current_dir(site.root()).output().expect("setpriv of util-linux");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    // A run as root without `user` leaves it like this.
    fs::write(site.path("logs/access.log"), "").expect("a log");
    fs::set_permissions(site.path("logs/access.log"), fs::Permissions::from_mode(0o640))
        .expect("a mode");
    let (said, path) = (kirin_as_nobody(), site.path("logs/access.log"));
    let command = format!("chown nobody: {}", path.display());
    assert!(said.contains("cannot open the access log") && said.contains(&command), "{said}");
    // The directory belongs to root, too.
    fs::remove_file(&path).expect("a log");
    std::os::unix::fs::chown(site.path("logs"), Some(0), Some(0)).expect("chown");
    let (said, command) =
        (kirin_as_nobody(), format!("chown nobody: {}`", site.path("logs").display()));
    assert!(said.contains(&command), "{said}");
}

#[test]
fn a_user_that_does_not_exist_is_named() {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("kirin.toml", CONFIG.replace("nobody", "no-such-user"));
    let output = run_kirin(&site, &["serve"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("kirin.toml:1:8: there is no user `no-such-user`"), "{said}");
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
}

#[test]
fn a_password_of_the_origin_that_only_root_can_read_is_refused_at_once() {
    if !geteuid().is_root() {
        return;
    }
    let config = "user = \"nobody\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\n\
                  origin = \"redis://127.0.0.1\"\norigin_password_file = \"password\"\n\
                  [[route]]\npath = \"/\"\ntry = [\"files:.\"]\n";
    let site = Site::new().with("kirin.toml", config).with("password", "s3cret\n");
    set_mode(site.root(), 0o755);
    set_mode(&site.path("password"), 0o600);
    let file = site.path("password");
    for arguments in [&["check"][..], &["serve"]] {
        let output = run_kirin(&site, arguments);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let expected = format!("{}: the user nobody, who serves, cannot read", file.display());
        assert!(output.status.code() == Some(1) && said.contains(&expected), "{said}");
    }
    set_mode(&file, 0o644);
    let output = run_kirin(&site, &["check"]);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let warning = format!("the password file {} can be read by every user", file.display());
    assert!(output.status.success() && said.contains(&warning), "{said}");
}

#[test]
fn a_key_that_only_root_can_read_is_refused_at_once() {
    if !geteuid().is_root() {
        return;
    }
    let site = Site::new();
    let issued = Authority::new("test").issue(&["localhost"]);
    let config = "user = \"nobody\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\n\
                  certificates = [{ chain = \"tls/a.pem\", key = \"tls/a.key\" }]\n\
                  [[route]]\npath = \"/\"\ntry = [\"files:.\"]\n";
    let site = site
        .with("kirin.toml", config)
        .with("tls/a.pem", issued.chain)
        .with("tls/a.key", issued.key);
    set_mode(site.root(), 0o755);
    let key = site.path("tls/a.key");
    let refused = |file: &Path, blocked: &Path, command: &str| {
        for arguments in [&["check"][..], &["serve"]] {
            let output = run_kirin(&site, arguments);
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(output.status.code(), Some(1), "{said}");
            for part in [
                format!("{}: the user nobody, who serves, cannot read it", file.display()),
                format!("chgrp nobody {0} && chmod {command} {0}", blocked.display()),
            ] {
                assert!(said.contains(&part), "{part} in {said}");
            }
        }
    };
    set_mode(&key, 0o600);
    refused(&key, &key, "g+r");
    set_mode(&key, 0o644);
    set_mode(&site.path("tls"), 0o700);
    refused(&site.path("tls/a.pem"), &site.path("tls"), "g+x");
    set_mode(&site.path("tls"), 0o755);
    set_mode(&site.path("kirin.toml"), 0o600);
    refused(&site.path("kirin.toml"), &site.path("kirin.toml"), "g+r");
    set_mode(&site.path("kirin.toml"), 0o644);
    let output = run_kirin(&site, &["check"]);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let kirin = Kirin::start_command(kirin_command(&site).arg("serve"));
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("reloaded");
    assert!(!kirin.log().contains("ERROR"), "{}", kirin.log());
}

#[test]
fn the_pid_file_is_written_anew_by_the_user_that_serves() {
    if !geteuid().is_root() {
        return;
    }
    let config = "user = \"nobody\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
                  [[route]]\npath = \"/\"\ntry = [\"files:.\"]\n";
    let site = Site::new().with("kirin.toml", config);
    // Only root can make files in this directory, as in /run.
    set_mode(site.root(), 0o755);
    let program = program_for_everybody(&site);
    let mut command = kirin_command(&site);
    command.args(["serve", "--pid-file", "pid"]);
    let mut own = std::process::Command::new(program);
    own.args(command.get_args()).current_dir(site.root());
    own.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let mut first = Kirin::start_command(&mut own);
    let pid = || fs::read_to_string(site.path("pid")).unwrap_or_default();
    assert_eq!(pid(), format!("{}\n", first.pid()));
    first.signal(Signal::USR2);
    assert!(first.wait().success(), "{}", first.log());
    let second = pid();
    assert_ne!(second, format!("{}\n", first.pid()), "{}", first.log());
    let second: i32 = second.trim().parse().expect("a process id");
    kill_process(Pid::from_raw(second).expect("a process id"), Signal::TERM).expect("kill");
    wait_for("an empty file at the end", || pid().is_empty().then_some(()));
}
